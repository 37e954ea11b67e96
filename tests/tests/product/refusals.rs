//! A refused load changes nothing, leaves no file behind, and says where to look.

use deltaonce_tests::cli::Sandbox;
use insta::assert_snapshot;

use crate::support::{NEWEST, create_orders, disk_and_s3, refused};

/// Runs a line that must be refused on disk and on S3; what it says must hold `names`, and no file may come or go.
fn refuses(line: &str, code: i32, names: &[&str]) {
    for (sandbox, table) in disk_and_s3("orders") {
        create_orders(&sandbox, &table, "--partition-by order_date");
        let before = sandbox.table(&table).files();
        let error = refused(&sandbox, &line.replace("{}", &table), code);
        let said = error.to_string();
        for name in names {
            assert!(said.contains(name), "{name} is missing in {said}");
        }
        assert_eq!(sandbox.table(&table).files(), before, "{line}");
    }
}

#[test]
fn a_value_that_does_not_fit() {
    for contract in
        ["append {} bad_decimal.csv --write-id x".to_owned(), format!("merge {{}} bad_decimal.csv {NEWEST}")]
    {
        refuses(&contract, 1, &["bad_decimal.csv", "line 3", "amount", "19.999"]);
    }
}

#[test]
fn a_row_of_another_width() {
    refuses("append {} ragged.csv --write-id x", 1, &["ragged.csv", "line 3"]);
}

#[test]
fn a_bad_row_after_good_files() {
    refuses("append {} day1.csv bad_decimal.csv --write-id x", 1, &["bad_decimal.csv", "line 3"]);
}

#[test]
fn a_null_where_the_table_has_none() {
    let (sandbox, table) = (Sandbox::with_fixtures(), "lake/orders");
    create_orders(&sandbox, table, "");
    sandbox.write("null.ndjson", "{\"order_id\": 1}\n{\"order_id\": null, \"customer\": \"x\"}\n");
    let error = refused(&sandbox, &format!("append {table} null.ndjson --write-id x"), 1);
    assert!(error.to_string().contains("order_id"), "{error}");
    assert_eq!(sandbox.table(table).data_files(), [""; 0]);
}

#[test]
fn a_column_that_the_table_does_not_have() {
    let (sandbox, table) = (Sandbox::with_fixtures(), "lake/orders");
    create_orders(&sandbox, table, "");
    sandbox.write("extra.ndjson", "{\"order_id\": 1, \"colour\": \"red\"}\n");
    let error = refused(&sandbox, &format!("append {table} extra.ndjson --write-id x"), 1);
    assert!(error.to_string().contains("colour"), "{error}");
}

#[test]
fn text_cannot_make_a_table_without_declared_types() {
    let sandbox = Sandbox::with_fixtures();
    let run = sandbox.run("append lake/orders day1.csv --write-id x --output json");
    assert!(matches!(run.status, Some(1 | 2)), "{run:?}");
    assert!(run.json()["error"].to_string().contains("--schema"), "{run:?}");
    assert_eq!(sandbox.table("lake/orders").files(), [""; 0]);
}

#[test]
fn what_is_not_there() {
    let sandbox = Sandbox::with_fixtures();
    create_orders(&sandbox, "lake/orders", "");
    for line in ["append lake/orders nowhere.csv --write-id x", "show lake/nowhere"] {
        let error = refused(&sandbox, line, 2);
        assert!(error.to_string().contains("nowhere"), "{error}");
    }
    let usage = sandbox.run("merge lake/orders day1.csv").ended(2);
    assert!(usage.stderr.contains("--key"), "{}", usage.stderr);
}

#[test]
fn a_person_reads_the_first_line_and_knows() {
    let sandbox = Sandbox::with_fixtures();
    create_orders(&sandbox, "lake/orders", "");
    let tie = sandbox.run("merge lake/orders ties.csv --key order_id --newest-by source_updated_at");
    assert_snapshot!(tie.report(), @r#"
    --- stderr
    refused    2 keys have more than one newest row, so the order is not total; nothing was changed
      order_id=1007  ties.csv line 3 and line 9
      order_id=1044  ties.csv line 5 and line 6
      hint: add a column that tells them apart, for example --newest-by "source_updated_at desc, source_lsn desc"
    --- status 1
    "#);
}
