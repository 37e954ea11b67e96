//! Short words for what most tests say.

use std::fmt::Write;

use deltaonce_tests::cli::{Run, Sandbox};
use deltaonce_tests::content::Rows;
use deltaonce_tests::s3;
use serde_json::Value;

/// A sandbox and a name for a table in it, once on local disk and once on S3.
pub(crate) fn disk_and_s3(name: &str) -> [(Sandbox, String); 2] {
    let server = s3::seaweedfs();
    [(Sandbox::with_fixtures(), format!("lake/{name}")), (Sandbox::on(server), server.fresh_url(name))]
}

/// Checks that Spark reads these rows from a table on disk, where it can be asked.
pub(crate) fn spark_reads(sandbox: &Sandbox, table: &str, rows: &Rows) {
    if !table.starts_with("s3://")
        && let Some(read) = sandbox.table(table).rows_by_spark()
    {
        assert_eq!(read, *rows, "Spark reads other rows from {table}");
    }
}

/// Runs a command that must end well, and gives its JSON.
pub(crate) fn done(sandbox: &Sandbox, line: &str) -> Value {
    sandbox.run(&format!("{line} --output json --quiet")).ended(0).json()
}

/// Runs a command that must be refused with an exit code, and gives its `error`.
pub(crate) fn refused(sandbox: &Sandbox, line: &str, code: i32) -> Value {
    sandbox.run(&format!("{line} --output json --quiet")).ended(code).json()["error"].take()
}

/// The outcomes of runs with JSON output, sorted.
pub(crate) fn outcomes(runs: Vec<Run>) -> Vec<String> {
    let mut outcomes: Vec<String> = runs.into_iter().map(|run| run.ended(0).outcome()).collect();
    outcomes.sort();
    outcomes
}

/// The numbers of `rows` that are not zero, as `read=9 inserted=2`, in the document's order.
pub(crate) fn counts(receipt: &Value) -> String {
    let names = [
        "read",
        "duplicates",
        "superseded",
        "inserted",
        "updated",
        "deleted",
        "stale",
        "divergent",
        "unchanged",
        "rejected",
    ];
    let mut text = String::new();
    for name in names {
        let n = receipt["rows"][name].as_u64().unwrap_or_else(|| panic!("no rows.{name} in {receipt}"));
        if n > 0 {
            write!(text, " {name}={n}").unwrap();
        }
    }
    text.trim_start().to_owned()
}

/// Makes an empty table of orders.
pub(crate) fn create_orders(sandbox: &Sandbox, table: &str, more: &str) {
    let made = done(sandbox, &format!("create {table} --schema schema.json {more}"));
    assert_eq!(made["outcome"], "committed");
}

/// Lines of `day1.csv`'s columns for orders of one day, each `(order_id, status, source_lsn)`.
pub(crate) fn orders_csv(day: &str, orders: impl IntoIterator<Item = (u32, String, u32)>) -> String {
    let mut csv = "order_id,customer,status,amount,order_ts,order_date,source_updated_at,source_lsn\n".to_owned();
    for (order_id, status, lsn) in orders {
        writeln!(csv, "{order_id},Customer {order_id},{status},1.00,{day}T12:00:00Z,{day},{day}T12:00:00Z,{lsn}")
            .unwrap();
    }
    csv
}

pub(crate) const NEWEST: &str = "--key order_id --newest-by 'source_updated_at desc, source_lsn desc'";
