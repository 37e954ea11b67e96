//! The change data feed: each row that changed, once, and no other.

use deltaonce_tests::cli::Sandbox;
use serde_json::{Value, json};

use crate::support::{disk_and_s3, done};

const CREATE: &str = "--schema 'id bigint not null, day date, v string, n bigint' --change-data-feed";
const MERGE: &str = "--key id --newest-by n";

/// What Python deltalake and, on disk, Spark read of the feed of a version, as `id v kind`, sorted.
fn changes(sandbox: &Sandbox, table: &str, version: u64) -> Vec<String> {
    let rows = told(&sandbox.table(table).peer("changes", json!({ "version": version })));
    if !table.starts_with("s3://")
        && let Some(by_spark) = sandbox.table(table).spark("changes", json!({ "version": version }))
    {
        assert_eq!(told(&by_spark), rows, "Spark reads other changes of version {version} of {table}");
    }
    rows
}

fn told(changes: &Value) -> Vec<String> {
    let rows = changes.as_array().unwrap().iter().map(|row| {
        let text = |name: &str| row[name].as_str().unwrap_or("-").to_owned();
        format!("{} {} {}", text("id"), text("v"), text("_change_type"))
    });
    let mut rows: Vec<String> = rows.collect();
    rows.sort();
    rows
}

fn lines(rows: &[(i64, &str, &str, i64)]) -> String {
    rows.iter().map(|(id, day, v, n)| json!({"id": id, "day": day, "v": v, "n": n}).to_string() + "\n").collect()
}

#[test]
fn each_contract_tells_what_it_changed() {
    for vectors in ["", " --deletion-vectors"] {
        for (sandbox, table) in disk_and_s3("fed") {
            done(&sandbox, &format!("create {table} {CREATE}{vectors}"));
            let first: Vec<_> = (1..=8).map(|id| (id, "2026-10-05", "a", 1)).collect();
            sandbox.write("first.ndjson", lines(&first));
            done(&sandbox, &format!("append {table} first.ndjson --write-id first"));
            assert_eq!(changes(&sandbox, &table, 1).len(), 8);

            let second = [(2, "2026-10-05", "b", 2), (3, "2026-10-05", "old", 0), (9, "2026-10-06", "new", 1)];
            sandbox.write("second.ndjson", lines(&second));
            done(&sandbox, &format!("merge {table} second.ndjson {MERGE}"));
            let told = ["2 a update_preimage", "2 b update_postimage", "9 new insert"];
            assert_eq!(changes(&sandbox, &table, 2), told, "{table}{vectors}");
            let again = done(&sandbox, &format!("merge {table} second.ndjson {MERGE}"));
            assert_eq!(again["outcome"], "unchanged");

            sandbox.write("slice.ndjson", lines(&[(1, "2026-10-05", "r", 5)]));
            done(&sandbox, &format!("replace {table} slice.ndjson --where 'id <= 2'"));
            let told = ["1 a delete", "1 r insert", "2 b delete"];
            assert_eq!(changes(&sandbox, &table, 3), told, "{table}{vectors}");

            sandbox.write("more.ndjson", lines(&[(1, "2026-10-05", "x", 9), (10, "2026-10-05", "x", 9)]));
            done(&sandbox, &format!("insert {table} more.ndjson --key id"));
            assert_eq!(changes(&sandbox, &table, 4), ["10 x insert"]);
            assert_eq!(sandbox.table(&table).rows_by_all().len(), 9);

            let all = [(1, "2026-10-05", "r", 5), (3, "2026-10-05", "a", 1), (11, "2026-10-05", "n", 1)];
            sandbox.write("all.ndjson", lines(&all));
            done(&sandbox, &format!("replace {table} all.ndjson --all"));
            let told = ["10 x delete", "11 n insert", "4 a delete", "5 a delete", "6 a delete", "7 a delete"];
            let told: Vec<_> = told.into_iter().chain(["8 a delete", "9 new delete"]).collect();
            assert_eq!(changes(&sandbox, &table, 5), told, "{table}{vectors}");
        }
    }
}
