//! Separate processes at the same moment on one table.

use std::collections::BTreeSet;

use deltaonce_tests::cli::Sandbox;

use crate::support::{NEWEST, create_orders, disk_and_s3, done, orders_csv, outcomes};

const JSON: &str = "--output json --quiet";

#[test]
fn one_identity_in_two_processes_is_applied_once() {
    for (sandbox, table) in disk_and_s3("orders") {
        create_orders(&sandbox, &table, "");
        let line = format!("append {table} day1.csv --txn orders=1 {JSON}");
        let runs = sandbox.race(&[line.clone(), line]);
        assert_eq!(outcomes(runs), ["committed", "skipped"]);
        assert_eq!(sandbox.table(&table).rows_by_all().len(), 12);
        assert_eq!(sandbox.table(&table).version(), Some(1));
    }
}

#[test]
fn one_key_inserted_by_two_processes_is_one_row() {
    for (sandbox, table) in disk_and_s3("orders") {
        create_orders(&sandbox, &table, "");
        for who in ["a", "b"] {
            sandbox.write(&format!("{who}.csv"), orders_csv("2026-10-01", [(7, who.to_owned(), 1)]));
        }
        let runs = sandbox.race(&["a", "b"].map(|who| format!("insert {table} {who}.csv --key order_id {JSON}")));
        let won: Vec<bool> = runs.into_iter().map(|run| run.ended(0).outcome() == "committed").collect();
        let rows = sandbox.table(&table).rows_by_all();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows.column("status"), [if won[0] { "a" } else { "b" }]);
        assert_eq!(won.iter().filter(|won| **won).count(), 1, "one inserts, the other finds its key");
    }
}

#[test]
fn eight_processes_create_one_table_and_all_their_rows_are_in_it() {
    for (sandbox, table) in disk_and_s3("orders") {
        let lines: Vec<String> =
            (0..8).map(|i| format!("append {table} day1.parquet --txn writer-{i}=1 {JSON}")).collect();
        assert_eq!(outcomes(sandbox.race(&lines)), ["committed"; 8]);
        let rows = sandbox.table(&table).rows_by_all();
        assert_eq!(rows.len(), 96);
        assert_eq!(outcomes(sandbox.race(&lines)), ["skipped"; 8]);
        assert_eq!(sandbox.table(&table).rows_by_all(), rows);
    }
}

#[test]
fn eight_processes_create_the_same_empty_table() {
    for (sandbox, table) in disk_and_s3("orders") {
        let line = format!("create {table} --schema schema.json --partition-by order_date {JSON}");
        let mut expected = vec!["committed"];
        expected.extend(["unchanged"; 7]);
        assert_eq!(outcomes(sandbox.race(&vec![line; 8])), expected);
        assert_eq!(sandbox.table(&table).version(), Some(0));
    }
}

/// What the eight writers of [`eight_processes_with_mixed_contracts`] bring.
fn mixed(sandbox: &Sandbox, table: &str) -> Vec<String> {
    let file = |name: &str, day, keys: std::ops::Range<u32>, status: &str, lsn| {
        sandbox.write(name, orders_csv(day, keys.map(|id| (id, status.to_owned(), lsn))));
    };
    file("append-a.csv", "2026-10-01", 2000..2010, "appended", 1);
    file("append-b.csv", "2026-10-01", 2010..2020, "appended", 1);
    file("merge-old.csv", "2026-10-02", 3000..3015, "old", 1);
    file("merge-new.csv", "2026-10-02", 3005..3020, "new", 2);
    file("insert-a.csv", "2026-10-03", 4000..4010, "inserted", 1);
    file("insert-b.csv", "2026-10-03", 4005..4020, "inserted", 1);
    file("replace-b.csv", "2026-10-04", 5000..5010, "replaced", 1);
    vec![
        format!("append {table} append-a.csv --txn a=1 {JSON}"),
        format!("append {table} append-b.csv --txn b=1 {JSON}"),
        format!("merge {table} merge-old.csv {NEWEST} {JSON}"),
        format!("merge {table} merge-new.csv {NEWEST} {JSON}"),
        format!("insert {table} insert-a.csv --key order_id {JSON}"),
        format!("insert {table} insert-b.csv --key order_id {JSON}"),
        format!("replace {table} day1.csv --where \"order_date = '2026-10-05'\" {JSON}"),
        format!("replace {table} replace-b.csv --partitions {JSON}"),
    ]
}

#[test]
fn eight_processes_with_mixed_contracts_lose_and_double_no_row() {
    for (sandbox, table) in disk_and_s3("orders") {
        create_orders(&sandbox, &table, "--partition-by order_date");
        sandbox.write("before.csv", orders_csv("2026-10-05", [(9999, "before".to_owned(), 1)]));
        done(&sandbox, &format!("append {table} before.csv --write-id before"));
        let lines = mixed(&sandbox, &table);
        for run in sandbox.race(&lines) {
            let _ = run.ended(0);
        }
        let rows = sandbox.table(&table).rows_by_all();
        let ids: Vec<u32> = rows.column("order_id").into_iter().map(|id| id.parse().unwrap()).collect();
        let expected: BTreeSet<u32> =
            (1001..1013).chain(2000..2020).chain(3000..3020).chain(4000..4020).chain(5000..5010).collect();
        assert_eq!(ids.iter().copied().collect::<BTreeSet<_>>(), expected);
        assert_eq!(ids.len(), expected.len(), "a row is doubled");
        for id in 3005..3020 {
            assert_eq!(rows.only("order_id", &id.to_string())["status"].as_deref(), Some("new"), "order {id}");
        }

        for run in sandbox.race(&lines) {
            assert!(matches!(run.ended(0).outcome().as_str(), "skipped" | "unchanged"));
        }
        assert_eq!(sandbox.table(&table).rows_by_all(), rows);
    }
}
