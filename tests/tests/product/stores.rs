//! Where a table may be: stores that keep their promise, and one that does not.

use deltaonce_tests::cli::Sandbox;
use deltaonce_tests::s3;

use crate::support::{done, refused};

#[test]
fn a_store_that_ignores_put_if_absent_is_refused_before_the_first_commit() {
    let server = s3::rclone();
    let (sandbox, url) = (Sandbox::on(server), server.fresh_url("orders"));
    for line in [format!("append {url} day1.parquet --txn orders=1"), format!("create {url} --schema schema.json")] {
        let error = refused(&sandbox, &line, 2);
        assert!(error.to_string().to_lowercase().contains("if-none-match"), "{error}");
    }
    let left: Vec<String> =
        server.keys(&url).into_iter().filter(|key| key.ends_with(".json") || key.ends_with(".parquet")).collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn endpoint_and_keys_come_from_options_too() {
    let server = s3::seaweedfs();
    let (sandbox, url) = (Sandbox::with_fixtures(), server.fresh_url("orders"));
    let options: String = server
        .options()
        .iter()
        .filter(|(name, _)| *name != "AWS_EC2_METADATA_DISABLED")
        .map(|(name, value)| format!(" --storage-option {name}={value}"))
        .collect();
    assert_eq!(done(&sandbox, &format!("append {url} day1.parquet --txn orders=1{options}"))["outcome"], "committed");
    assert_eq!(done(&sandbox, &format!("append {url} day1.parquet --txn orders=1{options}"))["outcome"], "skipped");
}

#[test]
fn wrong_keys_are_said_and_never_shown() {
    let server = s3::seaweedfs();
    let wrong = [("AWS_SECRET_ACCESS_KEY".to_owned(), "very-secret-and-wrong".to_owned())];
    let (sandbox, url) = (Sandbox::on(server).env(wrong), server.fresh_url("orders"));
    let run = sandbox.run(&format!("append {url} day1.parquet --txn orders=1"));
    assert_eq!(run.status, Some(2), "{run:?}");
    assert!(!run.report().contains("very-secret"), "{run:?}");
}

#[test]
fn sources_may_be_on_s3_and_the_table_on_disk() {
    let server = s3::seaweedfs();
    let (sandbox, folder) = (Sandbox::on(server), server.fresh_url("landing"));
    for file in ["day1.parquet", "day2.parquet"] {
        server.put(&format!("{folder}/{file}"), &sandbox.path("day1.parquet"));
    }
    for (source, rows) in [("day1.parquet", 12), ("*.parquet", 24), ("", 24)] {
        let table = format!("lake/{rows}{}", source.len());
        let receipt = done(&sandbox, &format!("append {table} '{folder}/{source}' --write-id x"));
        assert_eq!(receipt["rows"]["read"], rows, "{source}");
        assert_eq!(sandbox.table(&table).rows().len(), rows, "{source}");
    }
}

#[test]
fn a_failed_load_leaves_no_temporary_file_on_disk() {
    let sandbox = Sandbox::with_fixtures();
    done(&sandbox, "append lake/orders day1.parquet --write-id x");
    let files = sandbox.table("lake/orders").files();
    assert_eq!(files.len(), 2, "one data file and one entry: {files:?}");
    refused(&sandbox, "append lake/orders bad_decimal.csv --write-id y", 1);
    assert_eq!(sandbox.table("lake/orders").files(), files);
}
