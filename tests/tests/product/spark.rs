//! Spark with Delta as a neighbour on one table. That it reads what we write is checked where that is written.

use deltaonce_tests::cli::Sandbox;
use deltaonce_tests::peers;
use serde_json::json;

use crate::support::{NEWEST, counts, done, spark_reads};

/// A table of orders that masks rows, on disk; none where Spark cannot be asked.
fn beside_spark() -> Option<Sandbox> {
    peers::has_spark().then(|| {
        let sandbox = Sandbox::with_fixtures();
        let create = "create orders --schema schema.json --deletion-vectors --change-data-feed";
        done(&sandbox, &format!("{create} --property delta.checkpointInterval=3"));
        sandbox
    })
}

#[test]
fn identities_are_the_same_to_both() {
    let Some(sandbox) = beside_spark() else { return };
    let table = sandbox.table("orders");
    let appended = |version: u64| {
        let file = sandbox.path("day1.parquet");
        table.spark("append", json!({"file": file, "app_id": "orders", "app_version": version}));
        table.version()
    };
    done(&sandbox, "append orders day1.parquet --txn orders=5");
    assert_eq!(appended(5), Some(1), "Spark skips what we recorded");
    assert_eq!(appended(6), Some(2));
    for recorded in [5, 6] {
        let again = done(&sandbox, &format!("append orders day1.parquet --txn orders={recorded}"));
        assert_eq!(again["outcome"], "skipped", "{again}");
    }
    // A checkpoint of ours holds the identities, too.
    done(&sandbox, "append orders day1.parquet --txn orders=7");
    assert!(table.files().iter().any(|name| name.contains("3.checkpoint")), "{:?}", table.files());
    assert_eq!(appended(7), Some(3), "Spark skips what our checkpoint says");
    assert_eq!(table.rows_by_all().len(), 36);
}

#[test]
fn each_goes_on_where_the_other_was() {
    let Some(sandbox) = beside_spark() else { return };
    let table = sandbox.table("orders");
    let sql = |statement: &str| drop(table.spark("sql", json!({ "statement": statement })));
    let merge = format!("merge orders changes.ndjson {NEWEST}");
    done(&sandbox, "append orders day1.parquet --txn orders=1");
    sql("update {t} set status = 'looked at' where order_id = 1002");
    done(&sandbox, &merge);
    spark_reads(&sandbox, "orders", &table.rows_by_all());
    // A file whose rows both have masked.
    sql("delete from {t} where order_id = 1001");
    spark_reads(&sandbox, "orders", &table.rows_by_all());
    sql("optimize {t}");
    assert_eq!(done(&sandbox, &merge)["outcome"], "unchanged");
    let inserted = done(&sandbox, "insert orders day1.csv --key order_id");
    assert!(counts(&inserted).contains("inserted=1 unchanged="), "{inserted}");
    let replaced = done(&sandbox, "replace orders day1.csv --where \"order_date = '2026-10-05'\"");
    assert_eq!(replaced["outcome"], "committed");
    sql("reorg table {t} apply (purge)");
    let rows = table.rows_by_all();
    spark_reads(&sandbox, "orders", &rows);
    assert_eq!(done(&sandbox, "insert orders day1.csv --key order_id")["outcome"], "unchanged");
    assert_eq!(table.rows_by_all(), rows);
}
