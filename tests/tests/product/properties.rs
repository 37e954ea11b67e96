//! Setting table properties: once however often, with all else of the table as it was, and beside other writers.

use deltaonce_tests::cli::Sandbox;
use deltaonce_tests::content::Rows;
use deltaonce_tests::golden::Golden;
use deltaonce_tests::table::Table;
use serde_json::{Value, json};

use crate::support::{create_orders, disk_and_s3, done, orders_csv, refused};

const JSON: &str = "--output json --quiet";

/// The newest action of a kind in the log, which must be whole.
fn newest(table: &Table, kind: &str) -> Value {
    let versions = (0..=table.version().expect("a table")).rev();
    let mut actions = versions.flat_map(|version| table.entry(version));
    actions.find_map(|mut action| action.get_mut(kind).map(Value::take)).unwrap_or_else(|| panic!("no {kind}"))
}

/// The `metaData` without its properties, and these.
fn split(mut metadata: Value) -> (Value, Value) {
    let configuration = metadata["configuration"].take();
    (metadata, configuration)
}

#[test]
fn what_is_set_twice_is_set_once() {
    for (sandbox, table) in disk_and_s3("orders") {
        create_orders(&sandbox, &table, "--partition-by order_date --property owner=me");
        done(&sandbox, &format!("append {table} day1.csv --write-id day1"));
        let before = sandbox.table(&table);
        let (rows, (definition, _)) = (before.rows_by_all(), split(newest(&before, "metaData")));

        let line = format!("set {table} delta.appendOnly=true deltaonce.bloomFilterColumns=order_id --run-id nightly");
        let first = done(&sandbox, &line);
        assert_eq!(
            (&first["outcome"], &first["version"], &first["contract"]),
            (&json!("committed"), &json!(2), &json!("set"))
        );
        assert_eq!((&first["run_id"], &first["rows"]["read"]), (&json!("nightly"), &json!(0)));
        let again = done(&sandbox, &line);
        assert_eq!(
            (&again["outcome"], &again["version"], &again["token"]),
            (&json!("unchanged"), &json!(2), &Value::Null)
        );

        let after = sandbox.table(&table);
        assert_eq!(after.version(), Some(2));
        assert_eq!(after.rows_by_all(), rows);
        let (same, configuration) = split(after.action(2, "metaData"));
        assert_eq!(same, definition);
        let expected = json!({"owner": "me", "delta.appendOnly": "true", "deltaonce.bloomFilterColumns": "order_id"});
        assert_eq!(configuration, expected);
        let state = after.peer("state", json!({}));
        assert_eq!((&state["version"], &state["properties"]), (&json!(2), &expected));

        let refusal = refused(&sandbox, &format!("replace {table} day1.csv --all"), 1);
        assert!(refusal.to_string().contains("append-only"), "{refusal}");
        let history = done(&sandbox, &format!("history {table} --limit 1"));
        assert_eq!(history["commits"][0]["operation"], "SET TBLPROPERTIES");
        assert_eq!(history["commits"][0]["run_id"], "nightly");
    }
}

#[test]
fn a_person_reads_what_was_done() {
    let sandbox = Sandbox::with_fixtures();
    create_orders(&sandbox, "lake/orders", "");
    let first = sandbox.run("set lake/orders owner=me").ended(0);
    assert_eq!(first.stdout, "committed  version 1 of lake/orders\n");
    let again = sandbox.run("set lake/orders owner=me").ended(0);
    assert_eq!(again.stdout, "unchanged  version 1 of lake/orders says this already\n");
}

#[test]
fn a_table_of_listed_features_is_read_and_written_by_others() {
    let sandbox = Sandbox::with_fixtures();
    create_orders(&sandbox, "lake/set", "");
    done(&sandbox, "append lake/set day1.csv --write-id day1");
    done(&sandbox, "set lake/set delta.enableDeletionVectors=true delta.enableChangeDataFeed=true");
    create_orders(&sandbox, "lake/made", "--deletion-vectors --change-data-feed --bloom 'order_id, customer'");
    done(&sandbox, "append lake/made day1.csv --write-id day1");
    for name in ["lake/set", "lake/made"] {
        let table = sandbox.table(name);
        let protocol = newest(&table, "protocol");
        assert_eq!((&protocol["minReaderVersion"], &protocol["minWriterVersion"]), (&json!(3), &json!(7)), "{name}");
        assert_eq!(protocol["readerFeatures"], json!(["deletionVectors"]), "{name}");
        let writer = protocol["writerFeatures"].as_array().unwrap();
        for feature in ["appendOnly", "invariants", "changeDataFeed", "deletionVectors"] {
            assert!(writer.contains(&json!(feature)), "{name}: {protocol}");
        }
        assert_eq!(table.rows_by_all().len(), 12, "{name}");
        done(&sandbox, &format!("append {name} day1.csv --write-id again"));
        assert_eq!(table.rows_by_all().len(), 24, "{name}");
    }
    let made = done(&sandbox, "show lake/made");
    let expected = json!({
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": "true",
        "deltaonce.bloomFilterColumns": "order_id, customer",
    });
    assert_eq!(made["properties"], expected);
}

#[test]
fn a_change_data_feed_alone_needs_no_list() {
    let sandbox = Sandbox::with_fixtures();
    create_orders(&sandbox, "lake/orders", "--change-data-feed");
    let table = sandbox.table("lake/orders");
    assert_eq!(newest(&table, "protocol"), json!({"minReaderVersion": 1, "minWriterVersion": 4}));
    done(&sandbox, "append lake/orders day1.csv --write-id day1");
    assert_eq!(table.rows_by_all().len(), 12);
}

/// As all readers that can read a golden table see it; at least one must.
fn rows(table: &Table) -> Rows {
    let read: Vec<Rows> = ["deltalake", "duckdb"].iter().filter_map(|with| table.rows_by(with).ok()).collect();
    assert!(!read.is_empty() && read.iter().all(|rows| *rows == read[0]), "{read:#?}");
    read[0].clone()
}

#[test]
fn tables_of_spark_keep_what_is_not_set() {
    let golden = Golden::default();
    for name in ["plain", "checkpoint_classic", "checkpoint_v2", "in_commit_timestamp"] {
        let (sandbox, table) = (Sandbox::default(), golden.table(name));
        let (definition, mut configuration) = split(newest(&table, "metaData"));
        let (protocol, version) = (newest(&table, "protocol"), table.version().unwrap());
        let before = newest(&table, "commitInfo");
        let path = golden.path(name).display().to_string();
        let line = format!("set {path} owner=me delta.enableDeletionVectors=true");

        assert_eq!(done(&sandbox, &line)["outcome"], "committed", "{name}");
        assert_eq!(done(&sandbox, &line)["outcome"], "unchanged", "{name}");
        assert_eq!(table.version(), Some(version + 1), "{name}");
        assert_eq!(rows(&table), golden.rows(name), "{name}");

        let (same, now) = split(table.action(version + 1, "metaData"));
        configuration["owner"] = json!("me");
        configuration["delta.enableDeletionVectors"] = json!("true");
        assert_eq!((same, now), (definition, configuration), "{name}");
        let upgraded = table.action(version + 1, "protocol");
        assert_eq!((&upgraded["minReaderVersion"], &upgraded["minWriterVersion"]), (&json!(3), &json!(7)), "{name}");
        for list in ["readerFeatures", "writerFeatures"] {
            let now = upgraded[list].as_array().unwrap();
            assert!(now.contains(&json!("deletionVectors")), "{name}: {upgraded}");
            for feature in protocol[list].as_array().into_iter().flatten() {
                assert!(now.contains(feature), "{name}: {upgraded}");
            }
        }
        if name == "in_commit_timestamp" {
            let time = |info: &Value| info["inCommitTimestamp"].as_i64().expect("it has one");
            assert!(time(&table.action(version + 1, "commitInfo")) > time(&before));
        }
    }
}

#[test]
fn eight_processes_that_set_and_append_lose_nothing() {
    for (sandbox, table) in disk_and_s3("orders") {
        create_orders(&sandbox, &table, "");
        let mut lines = Vec::new();
        for i in 0..4_u32 {
            sandbox.write(&format!("{i}.csv"), orders_csv("2026-10-01", [(i, "new".to_owned(), 1)]));
            lines.push(format!("append {table} {i}.csv --txn writer-{i}=1 {JSON}"));
        }
        lines.push(format!("set {table} first=1 {JSON}"));
        lines.push(format!("set {table} second=2 deltaonce.bloomFilterColumns=order_id {JSON}"));
        lines.push(format!("set {table} delta.enableChangeDataFeed=true {JSON}"));
        lines.push(format!("set {table} delta.enableDeletionVectors=true {JSON}"));
        for run in sandbox.race(&lines) {
            assert_eq!(run.ended(0).outcome(), "committed");
        }
        let raced = sandbox.table(&table);
        assert_eq!(raced.version(), Some(8));
        assert_eq!(raced.rows_by_all().len(), 4);
        let expected = json!({
            "first": "1", "second": "2", "deltaonce.bloomFilterColumns": "order_id",
            "delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true",
        });
        assert_eq!(newest(&raced, "metaData")["configuration"], expected);
        let features = newest(&raced, "protocol")["writerFeatures"].take();
        for feature in ["changeDataFeed", "deletionVectors"] {
            assert!(features.as_array().unwrap().contains(&json!(feature)), "{features}");
        }
        for run in sandbox.race(&lines) {
            assert!(matches!(run.ended(0).outcome().as_str(), "skipped" | "unchanged"));
        }
        assert_eq!(raced.version(), Some(8));
    }
}

#[test]
fn what_cannot_be_set_is_refused_by_name() {
    let sandbox = Sandbox::with_fixtures();
    create_orders(&sandbox, "lake/orders", "--partition-by order_date");
    let files = sandbox.table("lake/orders").files();
    for (line, code, says) in [
        ("set lake/orders delta.enableRowTracking=true", 2, "delta.enableRowTracking"),
        ("set lake/orders deltaonce.bloom=order_id", 2, "deltaonce.bloom"),
        ("set lake/orders delta.appendOnly=yes", 2, "true or false"),
        ("set lake/orders a=1 a=2", 2, "twice"),
        ("set lake/orders 'delta.constraints.positive=order_id > 0'", 1, "checked"),
        ("set lake/orders deltaonce.bloomFilterColumns=order_date", 2, "'order_date', which is a partition column"),
        ("set lake/orders deltaonce.bloomFilterColumns=nothing", 2, "'nothing', which is not a column"),
        ("set lake/nowhere owner=me", 2, "there is no Delta table at lake/nowhere"),
    ] {
        let error = refused(&sandbox, line, code);
        assert!(error.to_string().contains(says), "{line}: {error}");
    }
    assert_eq!(sandbox.table("lake/orders").files(), files);
    assert_eq!(sandbox.table("lake/nowhere").files(), [""; 0]);

    for (line, code, says) in [
        ("--bloom b --schema 'a bigint'", 2, "'b', which is not a column"),
        ("--bloom s --schema 's struct<a: int>'", 2, "'s', which is nested"),
        ("--change-data-feed --schema 'a bigint, _change_type string'", 1, "'_change_type'"),
        ("--deletion-vectors --property delta.enableDeletionVectors=false --schema 'a bigint'", 2, "twice"),
    ] {
        let error = refused(&sandbox, &format!("create lake/new {line}"), code);
        assert!(error.to_string().contains(says), "{line}: {error}");
    }
    assert_eq!(sandbox.table("lake/new").files(), [""; 0]);
}

#[test]
fn a_table_that_is_not_written_is_not_changed_either() {
    let golden = Golden::default();
    for (name, feature) in [("row_tracking", "rowTracking"), ("variant", "variant")] {
        let (sandbox, before) = (Sandbox::default(), golden.table(name).files());
        let error = refused(&sandbox, &format!("set {} owner=me", golden.path(name).display()), 2);
        assert!(error.to_string().contains(feature), "{error}");
        assert_eq!(golden.table(name).files(), before);
    }
}
