//! Replace: the scope's rows go, the new ones come, and nothing else changes.

use deltaonce_tests::cli::Sandbox;

use crate::support::{counts, create_orders, disk_and_s3, done, orders_csv, refused};

fn three_days(more: &str) -> (Sandbox, String) {
    let [(sandbox, table), _] = disk_and_s3("orders");
    create_orders(&sandbox, &table, more);
    for (n, day) in ["2026-10-04", "2026-10-05", "2026-10-06"].iter().enumerate() {
        let first = 2000 + 10 * u32::try_from(n).unwrap();
        sandbox.write("day.csv", orders_csv(day, (first..first + 3).map(|id| (id, "new".to_owned(), 1))));
        done(&sandbox, &format!("append {table} day.csv --write-id {day}"));
    }
    (sandbox, table)
}

#[test]
fn only_the_scope_changes_whether_files_lie_in_it_or_straddle_it() {
    for partitioned in ["", "--partition-by order_date"] {
        for scope in [
            "--where \"order_date = '2026-10-05'\"",
            "--where \"order_date = date '2026-10-05' and order_id < 100000\"",
            "--interval order_ts=2026-10-05T00:00:00Z/2026-10-06T00:00:00Z",
            "--interval order_date=2026-10-05/2026-10-06",
        ] {
            let (sandbox, table) = three_days(partitioned);
            sandbox.table(&table).peer("compact", serde_json::json!({}));
            let receipt = done(&sandbox, &format!("replace {table} day1.csv {scope}"));
            assert_eq!(counts(&receipt), "read=12 inserted=12 deleted=3", "{scope}");
            let rows = sandbox.table(&table).rows_by_all();
            assert_eq!(rows.len(), 18, "{scope}");
            let kept: Vec<&str> = rows.column("order_id").into_iter().filter(|id| id.starts_with('2')).collect();
            assert_eq!(kept, ["2000", "2001", "2002", "2020", "2021", "2022"], "{scope}");
        }
    }
}

#[test]
fn rows_outside_the_scope_are_refused_with_their_places() {
    let (sandbox, table) = three_days("--partition-by order_date");
    let before = sandbox.table(&table).files();
    let error = refused(&sandbox, &format!("replace {table} stray.csv --where \"order_date = '2026-10-05'\""), 1);
    let said = error.to_string();
    assert!(said.contains('2') && said.contains("stray.csv line 3") && said.contains("stray.csv line 4"), "{said}");
    assert_eq!(sandbox.table(&table).files(), before, "no version, and no data file left behind");
}

#[test]
fn null_partitions_have_their_own_scope() {
    for scope in ["--where 'order_date is null'", "--partitions"] {
        let (sandbox, table) = three_days("--partition-by order_date");
        sandbox.write("undated.ndjson", "{\"order_id\": 2100, \"order_date\": null}\n");
        for _ in 0..2 {
            done(&sandbox, &format!("replace {table} undated.ndjson {scope}"));
            let rows = sandbox.table(&table).rows_by_all();
            assert_eq!(rows.len(), 10, "{scope}: the dated partitions stay");
            assert_eq!(rows.only("order_id", "2100")["order_date"], None);
        }
    }
}

#[test]
fn a_scope_must_be_a_scope() {
    let (sandbox, table) = three_days("");
    for (scope, names) in [
        ("--partitions", "partition"),
        ("--where 'order_date <= current_date()'", "current_date"),
        ("--where 'random() < 0.5'", "random"),
        ("--where 'order_id in (select 1)'", "subquer"),
        ("--where \"order_id = 'x'\"", "order_id"),
        ("--where \"order_date = '05/10/2026'\"", "05/10/2026"),
        ("--where 'no_such_column = 1'", "no_such_column"),
    ] {
        let run = sandbox.run(&format!("replace {table} day1.csv {scope} --output json"));
        assert!(matches!(run.status, Some(1 | 2)), "{scope}: {run:?}");
        let error = run.json()["error"].to_string();
        assert!(error.contains(names), "{scope}: {error}");
    }
    assert_eq!(sandbox.table(&table).version(), Some(3));
    assert_eq!(sandbox.table(&table).rows().len(), 9);
}

#[test]
fn an_empty_source_deletes_only_when_told_to() {
    let (sandbox, table) = three_days("");
    sandbox.write("empty.csv", orders_csv("2026-10-05", []));
    let line = format!("replace {table} empty.csv --where \"order_date = '2026-10-05'\"");
    refused(&sandbox, &line, 1);
    assert_eq!(sandbox.table(&table).rows().len(), 9);
    let receipt = done(&sandbox, &format!("{line} --allow-empty"));
    assert_eq!(counts(&receipt), "deleted=3");
    assert_eq!(done(&sandbox, &format!("{line} --allow-empty"))["outcome"], "unchanged");
    assert_eq!(sandbox.table(&table).rows_by_all().len(), 6);
}
