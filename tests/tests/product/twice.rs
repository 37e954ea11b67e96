//! Each contract run twice: the second run leaves the table as it was.

use crate::support::{NEWEST, counts, create_orders, disk_and_s3, done};

/// Runs `line` (`{}` stands for the table) twice on disk and on S3; the second run must end as `again` and leave the
/// version, where that writes nothing, and the rows as they were.
fn twice(line: &str, prepare: &str, rows: usize, again: &str) {
    for (sandbox, table) in disk_and_s3("orders") {
        create_orders(&sandbox, &table, prepare);
        let line = line.replace("{}", &table);
        let first = done(&sandbox, &line);
        assert_eq!(first["outcome"], "committed", "{line}");
        assert_eq!(first["version"], 1, "{line}");
        let at = sandbox.table(&table);
        let content = at.rows_by_all();
        assert_eq!(content.len(), rows, "{line}");
        let files = at.files();

        let second = done(&sandbox, &line);
        assert_eq!(second["outcome"], again, "{line}");
        assert_eq!(second["version"], 1, "{line}");
        assert_eq!(at.rows_by_all(), content, "{line}");
        assert_eq!(at.files(), files, "{line}: nothing is written, not even a file that no entry names");
    }
}

#[test]
fn append_with_an_identity() {
    twice("append {} day1.csv --txn-app-id bronze_orders_v1 --txn-version 42", "", 12, "skipped");
}

#[test]
fn append_with_a_name() {
    twice("append {} day1.parquet --write-id 2026-10-05/day1", "", 12, "skipped");
}

#[test]
fn replace_where() {
    twice("replace {} day1.parquet --where \"order_date = '2026-10-05'\"", "", 12, "unchanged");
}

#[test]
fn replace_an_interval() {
    twice(
        "replace {} day1.csv --interval order_ts=2026-10-05T00:00:00Z/2026-10-06T00:00:00Z",
        "--partition-by order_date",
        12,
        "unchanged",
    );
}

#[test]
fn replace_partitions() {
    twice("replace {} day1.parquet --partitions", "--partition-by order_date", 12, "unchanged");
}

#[test]
fn replace_all() {
    twice("replace {} day1.parquet --all", "", 12, "unchanged");
}

#[test]
fn merge_by_key_and_order() {
    twice(&format!("merge {{}} day1.csv {NEWEST}"), "--partition-by order_date", 12, "unchanged");
}

#[test]
fn merge_without_an_order() {
    twice("merge {} day1.parquet --key order_id", "", 12, "unchanged");
}

#[test]
fn insert_by_key() {
    twice("insert {} day1.csv --key order_id", "", 12, "unchanged");
}

#[test]
fn create() {
    for (sandbox, table) in disk_and_s3("orders") {
        create_orders(&sandbox, &table, "--partition-by order_date");
        let again = done(&sandbox, &format!("create {table} --schema schema.json --partition-by order_date"));
        assert_eq!((&again["outcome"], &again["version"]), (&"unchanged".into(), &0.into()), "{again}");
        assert_eq!(sandbox.table(&table).files(), ["_delta_log/00000000000000000000.json"]);
    }
}

#[test]
fn the_same_rows_from_csv_and_parquet_are_the_same_load() {
    let [(sandbox, table), _] = disk_and_s3("orders");
    create_orders(&sandbox, &table, "");
    done(&sandbox, &format!("replace {table} day1.csv --all"));
    let again = done(&sandbox, &format!("replace {table} day1.parquet --all"));
    assert_eq!(again["outcome"], "unchanged");
    let merged = done(&sandbox, &format!("merge {table} day1.parquet {NEWEST}"));
    assert_eq!(counts(&merged), "read=12 unchanged=12");
}

#[test]
fn a_table_is_made_by_its_first_load_where_types_are_known() {
    for (sandbox, table) in disk_and_s3("orders") {
        let first = done(&sandbox, &format!("append {table} day1.parquet --write-id first"));
        assert_eq!(first["outcome"], "committed");
        assert_eq!(sandbox.table(&table).rows_by_all().len(), 12);
        let again = done(&sandbox, &format!("append {table} day1.parquet --write-id first"));
        assert_eq!(again["outcome"], "skipped");
    }
}

#[test]
fn an_append_without_an_identity_says_what_it_is() {
    let [(sandbox, table), _] = disk_and_s3("orders");
    create_orders(&sandbox, &table, "");
    for rows in [12, 24] {
        let run = sandbox.run(&format!("append {table} day1.csv")).ended(0);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        assert!(run.stderr.contains("adds the rows again"), "{}", run.stderr);
        assert_eq!(sandbox.table(&table).rows().len(), rows);
    }
    let quiet = sandbox.run(&format!("append {table} day1.csv --quiet")).ended(0);
    assert_eq!(quiet.stderr, "");
}
