//! Identities: what the log records decides, before the source is read.

use serde_json::{Value, json};

use crate::support::{NEWEST, create_orders, disk_and_s3, done, refused};

fn txns(sandbox: &deltaonce_tests::cli::Sandbox, table: &str) -> Vec<(String, i64)> {
    let document = done(sandbox, &format!("txns {table}"));
    let txns = document["txns"].as_array().expect("txns is a list").iter();
    txns.map(|txn| (txn["app_id"].as_str().unwrap().to_owned(), txn["version"].as_i64().unwrap())).collect()
}

#[test]
fn a_higher_recorded_version_supersedes() {
    let [(sandbox, table), _] = disk_and_s3("orders");
    create_orders(&sandbox, &table, "");
    done(&sandbox, &format!("append {table} day1.csv --txn orders=42"));
    let older = done(&sandbox, &format!("append {table} day1.csv --txn orders=41"));
    assert_eq!(older["outcome"], "skipped");
    assert_eq!(older["skipped_by"]["recorded_version"], 42);
    assert_eq!(older["skipped_by"]["superseded"], true);
    assert_eq!(older["warnings"].as_array().map(Vec::len), Some(1), "{older}");
    let newer = done(&sandbox, &format!("append {table} stray.csv --txn orders=43"));
    assert_eq!(newer["outcome"], "committed");
    assert_eq!(sandbox.table(&table).rows().len(), 15);
    let recorded = txns(&sandbox, &table);
    assert!(recorded.contains(&("orders".to_owned(), 43)), "{recorded:?}");
}

#[test]
fn a_skip_does_not_read_the_source() {
    let [(sandbox, table), _] = disk_and_s3("orders");
    create_orders(&sandbox, &table, "");
    done(&sandbox, &format!("append {table} day1.csv --txn orders=1"));
    let again = done(&sandbox, &format!("append {table} no-such-file.csv --txn orders=1"));
    assert_eq!(again["outcome"], "skipped");
}

#[test]
fn a_replay_with_other_rows_is_refused_when_asked() {
    for (sandbox, table) in disk_and_s3("orders") {
        create_orders(&sandbox, &table, "");
        done(&sandbox, &format!("append {table} day1.csv --txn orders=1 --txn more=1"));
        let again = format!("append {table} day1.parquet --txn orders=1 --txn more=1 --verify-replay");
        let same = done(&sandbox, &again);
        assert_eq!((&same["outcome"], &same["rows"]["read"]), (&json!("skipped"), &json!(12)));
        let contracts = [
            "append {} changes.ndjson".to_owned(),
            "replace {} stray.csv --where 'order_id < 0'".to_owned(),
            format!("merge {{}} older.ndjson {NEWEST}"),
            "insert {} changes.ndjson --key order_id".to_owned(),
        ];
        for contract in contracts {
            let line = contract.replace("{}", &table) + " --txn orders=1 --verify-replay";
            let error = refused(&sandbox, &line, 1);
            assert_eq!(error["kind"], "refused", "{line}");
            assert!(error["message"].as_str().unwrap().contains("orders=1 was applied"), "{error}");
        }
        assert_eq!(sandbox.table(&table).rows().len(), 12);
        refused(&sandbox, &format!("append {table} day1.csv --verify-replay"), 2);

        // Of an identity that a later one superseded there is nothing to compare with; the other still is.
        done(&sandbox, &format!("append {table} day1.csv --txn more=2"));
        let superseded = format!("append {table} no-such-file.csv --txn more=1 --verify-replay");
        assert_eq!(done(&sandbox, &superseded)["outcome"], "skipped");
        assert_eq!(done(&sandbox, &again)["outcome"], "skipped");
        refused(&sandbox, &again.replace("day1.parquet", "changes.ndjson"), 1);
        refused(&sandbox, &format!("append {table} day1.csv --write-id deltaonce.rows.1:orders"), 2);
    }
}

#[test]
fn several_identities_are_all_new_or_all_seen() {
    let [(sandbox, table), _] = disk_and_s3("orders");
    create_orders(&sandbox, &table, "");
    let both = format!("append {table} day1.csv --txn topic/0=7 --txn topic/1=9");
    assert_eq!(done(&sandbox, &both)["outcome"], "committed");
    assert_eq!(done(&sandbox, &both)["outcome"], "skipped");
    let error = refused(&sandbox, &format!("append {table} day1.csv --txn topic/0=7 --txn topic/1=10"), 1);
    let said = error.to_string();
    assert!(said.contains("topic/0=7") && said.contains("topic/1=10"), "{said}");
    assert_eq!(sandbox.table(&table).rows().len(), 12);
}

#[test]
fn every_contract_records_its_identity_even_when_no_row_changes() {
    for contract in [
        "append {} day1.csv".to_owned(),
        "replace {} day1.csv --all".to_owned(),
        format!("merge {{}} day1.csv {NEWEST}"),
        "insert {} day1.csv --key order_id".to_owned(),
    ] {
        let [(sandbox, table), _] = disk_and_s3("orders");
        create_orders(&sandbox, &table, "");
        done(&sandbox, &format!("replace {table} day1.csv --all"));
        let line = contract.replace("{}", &table) + " --txn nightly=7 --run-id monday";
        let first = done(&sandbox, &line);
        assert_eq!((&first["outcome"], &first["version"]), (&"committed".into(), &2.into()), "{line}");
        let txn = sandbox.table(&table).action(2, "txn");
        assert_eq!((&txn["appId"], &txn["version"]), (&json!("nightly"), &json!(7)), "{line}");
        assert!(txn["lastUpdated"].is_i64(), "{line}");
        assert_eq!(done(&sandbox, &line)["outcome"], "skipped", "{line}");
        let rows = if line.starts_with("append") { 24 } else { 12 };
        assert_eq!(sandbox.table(&table).rows().len(), rows, "{line}");
    }
}

#[test]
fn an_entry_says_who_wrote_it_and_what() {
    let [(sandbox, table), _] = disk_and_s3("orders");
    create_orders(&sandbox, &table, "");
    let receipt = done(&sandbox, &format!("append {table} day1.csv --txn orders=42 --run-id nightly/2026-10-05"));
    let info: Value = sandbox.table(&table).action(1, "commitInfo");
    assert_eq!(info["operation"], "WRITE");
    assert_eq!(info["operationParameters"]["mode"], "Append");
    assert_eq!(info["isBlindAppend"], true);
    assert_eq!(info["txnId"], receipt["token"]);
    assert!(info.to_string().contains("nightly/2026-10-05"), "{info}");
    assert!(info["engineInfo"].as_str().is_some_and(|engine| engine.starts_with("deltaonce")), "{info}");

    let history = done(&sandbox, &format!("history {table}"));
    assert_eq!(history["commits"][0]["version"], 1);
    assert_eq!(history["commits"][0]["token"], receipt["token"]);
    assert_eq!(history["commits"][0]["identity"].as_array().map(Vec::len), Some(1), "{history}");
    assert_eq!(history["commits"][0]["identity"][0]["version"], 42);
}

#[test]
fn a_receipt_says_whether_the_log_still_holds_its_entry() {
    for (sandbox, table) in disk_and_s3("orders") {
        create_orders(&sandbox, &table, "");
        let load = format!("append {table} day1.csv --txn orders=1");
        sandbox.write("receipt.json", done(&sandbox, &load).to_string());
        let question = format!("txns {table} --receipt receipt.json");
        let held = done(&sandbox, &question);
        assert_eq!((&held["outcome"], &held["entry"]["version"]), (&json!("held"), &json!(1)));

        // As Spark does on S3 with its default log store: an entry put over ours.
        let entry = json!({"commitInfo": {"timestamp": 1, "operation": "WRITE", "engineInfo": "Apache-Spark"}});
        sandbox.table(&table).overwrite_entry(1, &entry.to_string());
        let lost = refused(&sandbox, &question, 1);
        let said = lost["message"].as_str().unwrap();
        assert!(said.contains("version 1") && said.contains(&table) && said.contains("Apache-Spark"), "{said}");
        assert_eq!(sandbox.table(&table).rows().len(), 0);

        let again = done(&sandbox, &load);
        assert_eq!((&again["outcome"], &again["version"]), (&json!("committed"), &json!(2)));
        assert_eq!(sandbox.table(&table).rows_by_all().len(), 12);
        sandbox.write("receipt.json", again.to_string());
        assert_eq!(done(&sandbox, &question)["outcome"], "held");

        sandbox.write("receipt.json", done(&sandbox, &load).to_string());
        let skipped = refused(&sandbox, &question, 2);
        assert!(skipped["message"].as_str().unwrap().contains("skipped"), "{skipped}");
    }
}
