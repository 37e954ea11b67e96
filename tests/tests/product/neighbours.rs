//! Tables that Python deltalake makes and works on, beside ours.

use deltaonce_tests::cli::Sandbox;
use deltaonce_tests::s3;
use serde_json::json;

use crate::support::{NEWEST, counts, disk_and_s3, done, orders_csv, refused};

/// A table of the twelve orders as deltalake writes it.
fn theirs(sandbox: &Sandbox, table: &str, partition_by: &[&str]) {
    let partition_by = (!partition_by.is_empty()).then_some(partition_by);
    sandbox.table(table).peer("write", json!({"file": sandbox.path("day1.parquet"), "partition_by": partition_by}));
}

#[test]
fn their_tables_are_merged_replaced_and_inserted_into() {
    for partition_by in [&[][..], &["order_date"], &["status", "order_date"]] {
        for (sandbox, table) in disk_and_s3("orders") {
            theirs(&sandbox, &table, partition_by);
            let merged = done(&sandbox, &format!("merge {table} changes.ndjson {NEWEST}"));
            assert_eq!(counts(&merged), "read=9 duplicates=1 superseded=2 inserted=2 updated=3 stale=1");
            assert_eq!(sandbox.table(&table).rows_by_all().len(), 14);
            let inserted = done(&sandbox, &format!("insert {table} day1.csv --key order_id"));
            assert_eq!(inserted["outcome"], "unchanged", "{inserted}");
            let scope = "--where \"order_date = '2026-10-05'\"";
            let replaced = done(&sandbox, &format!("replace {table} day1.csv {scope}"));
            assert_eq!(counts(&replaced), "read=12 inserted=12 deleted=13");
            let rows = sandbox.table(&table).rows_by_all();
            assert_eq!(rows.len(), 13);
            assert_eq!(rows.only("order_id", "1004")["customer"].as_deref(), Some("Harbour Books\nattn. receiving"));
        }
    }
}

#[test]
fn they_go_on_with_our_tables() {
    for (sandbox, table) in disk_and_s3("orders") {
        done(
            &sandbox,
            &format!("append {table} day1.csv --schema schema.json --partition-by order_date --txn orders=1"),
        );
        let theirs = sandbox.table(&table);
        theirs.peer("write", json!({"file": sandbox.path("day1.parquet"), "mode": "append"}));
        theirs.peer("delete", json!({"predicate": "status = 'new'"}));
        theirs.peer("compact", json!({}));
        theirs.peer("checkpoint", json!({}));
        theirs.peer("vacuum", json!({}));
        let rows = theirs.rows_by_all();
        assert_eq!(rows.len(), 16);
        let again = done(&sandbox, &format!("append {table} day1.csv --txn orders=1"));
        assert_eq!(again["outcome"], "skipped", "the identity outlives checkpoints and compactions");
        let merged = done(&sandbox, &format!("insert {table} day1.parquet --key order_id"));
        assert_eq!(counts(&merged), "read=12 inserted=4 unchanged=8");
    }
}

#[test]
fn odd_partition_values_are_found_again() {
    let values = ["a b", "a/b", "50%", "x=y", "Zürich/東京", "a:b#c?d&e+f", "..", "quote\"s'"];
    let [(sandbox, table), _] = disk_and_s3("odd");
    let rows: Vec<_> = values.iter().enumerate().map(|(i, value)| json!([i.to_string(), value])).collect();
    sandbox
        .table(&table)
        .peer("write", json!({"schema": {"id": "int64", "p": "string"}, "rows": rows, "partition_by": ["p"]}));
    let lines: String = values.iter().enumerate().map(|(i, p)| json!({"id": i, "p": p}).to_string() + "\n").collect();
    sandbox.write("odd.ndjson", lines);
    let before = sandbox.table(&table).rows_by_all();
    for line in ["merge {} odd.ndjson --key id,p", "insert {} odd.ndjson --key p", "replace {} odd.ndjson --partitions"]
    {
        let receipt = done(&sandbox, &line.replace("{}", &table));
        assert_eq!(receipt["outcome"], "unchanged", "{line}: {receipt}");
    }
    sandbox.write("more.ndjson", json!({"id": 100, "p": "a/b"}).to_string());
    done(&sandbox, &format!("append {table} more.ndjson --write-id x"));
    done(&sandbox, &format!("replace {table} odd.ndjson --partitions"));
    assert_eq!(sandbox.table(&table).rows_by_all(), before);
}

#[test]
fn their_constraints_hold_for_us() {
    let [(sandbox, table), _] = disk_and_s3("orders");
    theirs(&sandbox, &table, &[]);
    sandbox.table(&table).peer("add_constraint", json!({"name": "small", "predicate": "source_lsn < 60000"}));
    sandbox.write("large.csv", orders_csv("2026-10-05", [(1, "new".to_owned(), 70000)]));
    let error = refused(&sandbox, &format!("append {table} large.csv --write-id x"), 1);
    assert!(error.to_string().contains("small"), "{error}");
    done(&sandbox, &format!("append {table} stray.csv --write-id y"));
}

#[test]
fn checkpoints_come_at_the_tables_interval_and_others_read_them() {
    let server = s3::seaweedfs();
    let (sandbox, table) = (Sandbox::on(server), server.fresh_url("orders"));
    done(&sandbox, &format!("create {table} --schema schema.json --property delta.checkpointInterval=3"));
    for i in 0..7 {
        done(&sandbox, &format!("append {table} day1.csv --txn orders={i}"));
    }
    let files = sandbox.table(&table).files();
    let checkpoints: Vec<&String> = files.iter().filter(|name| name.contains(".checkpoint")).collect();
    assert_eq!(checkpoints.len(), 2, "{files:?}");
    assert_eq!(sandbox.table(&table).rows_by_all().len(), 84);
    assert_eq!(done(&sandbox, &format!("append {table} day1.csv --txn orders=6"))["outcome"], "skipped");
}
