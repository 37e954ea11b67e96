use deltaonce::{Error, ErrorKind};
use serde_json::{Value, json};

use super::super::samples::{self, MORNING, failing, identity, merged, merging, receipt, skipped, tie};
use super::*;

fn read(text: &str) -> Value {
    assert_eq!(text.matches('\n').count(), 1, "one document is one line: {text}");
    serde_json::from_str(text).unwrap()
}

fn said(receipt: Receipt) -> Value {
    read(&report(&Report::Load(Box::new(receipt))))
}

#[test]
fn a_load_that_landed() {
    let mut load = merged();
    load.identities = vec![identity("orders", 42)];
    load.warnings = vec!["no checkpoint".to_owned()];
    let expected = json!({
        "outcome": "committed", "table": "lake/silver/orders", "version": 18, "contract": "merge",
        "identity": [{"app_id": "orders", "version": 42}], "token": "6f0c", "run_id": null, "attempts": 1,
        "rows": {"read": 12041, "duplicates": 0, "superseded": 38, "inserted": 2871, "updated": 9120, "deleted": 0,
                 "stale": 12, "divergent": 0, "unchanged": 0, "rejected": 0},
        "files": {"added": 4, "removed": 3, "masked": 0, "probed": 4, "pruned": 16},
        "bytes": {"read": 1048576, "written": 402311},
        "took_ms": 431, "warnings": ["no checkpoint"],
    });
    assert_eq!(said(load), expected);
}

#[test]
fn the_outcome_comes_first() {
    assert!(report(&Report::Load(Box::new(merged()))).starts_with("{\"outcome\":\"committed\",\"table\":"));
    assert!(error(&tie(), &merging()).starts_with("{\"outcome\":\"refused\",\"table\":"));
}

#[test]
fn a_skip_says_by_what() {
    let load = said(skipped(45, Some(9)));
    assert_eq!((&load["outcome"], &load["version"]), (&json!("skipped"), &json!(9)));
    let by = json!({"app_id": "orders", "version": 42, "recorded_version": 45, "superseded": true,
                    "at_version": 9, "at_time": "2026-10-05T04:12:33.120Z"});
    assert_eq!(load["skipped_by"], by);
    let load = said(skipped(42, None));
    assert_eq!(load["version"], Value::Null);
    let by = json!({"app_id": "orders", "version": 42, "recorded_version": 42, "superseded": false,
                    "at_version": null, "at_time": null});
    assert_eq!(load["skipped_by"], by);
}

#[test]
fn a_table_that_says_it_already() {
    let load = said(receipt("insert", Outcome::Unchanged { version: 18 }));
    assert_eq!((&load["outcome"], &load["version"]), (&json!("unchanged"), &json!(18)));
    assert_eq!(load.get("skipped_by"), None);
}

#[test]
fn an_error_says_whether_to_run_it_again() {
    let expected = json!({
        "outcome": "refused", "table": "lake/silver/orders", "contract": "merge",
        "error": {
            "kind": "refused", "retryable": false,
            "message": "2 keys have more than one newest row, so the order is not total",
            "details": ["order_id=1007  ties.csv line 3 and line 9", "order_id=1044  ties.csv line 5 and line 6"],
            "hint": "add a column that tells them apart", "cause": null,
        },
    });
    assert_eq!(read(&error(&tie(), &merging())), expected);
    let kinds = [
        (ErrorKind::Refused, "refused", false),
        (ErrorKind::Invalid, "invalid", false),
        (ErrorKind::Unsupported, "unsupported", false),
        (ErrorKind::Retryable, "retryable", true),
        (ErrorKind::Unknown, "unknown", true),
        (ErrorKind::Interrupted, "interrupted", true),
        (ErrorKind::Internal, "internal", false),
    ];
    for (kind, name, retryable) in kinds {
        let document = read(&error(&failing(kind), &Subject::default()));
        assert_eq!(document["outcome"], name);
        assert_eq!(document["error"]["kind"], name);
        assert_eq!(document["error"]["retryable"], retryable);
        assert_eq!(document["error"]["cause"], "503 Slow Down\n  retry later");
        assert_eq!(document["table"], Value::Null);
    }
    assert_eq!(read(&error(&Error::invalid("a\nb"), &merging()))["error"]["message"], "a b");
}

#[test]
fn what_is_read_from_a_table() {
    let description = Description {
        version: 3,
        schema: vec!["id bigint".to_owned()],
        partition_columns: Vec::new(),
        properties: vec![("delta.appendOnly".to_owned(), "true".to_owned())],
        features: vec!["appendOnly".to_owned()],
        files: 2,
        rows: None,
        bytes: 10,
    };
    let table = read(&report(&Report::Table { table: "t".to_owned(), description }));
    let expected = json!({"table": "t", "version": 3, "schema": ["id bigint"], "partition_columns": [],
        "properties": {"delta.appendOnly": "true"}, "features": ["appendOnly"], "files": 2, "rows": null, "bytes": 10});
    assert_eq!(table, expected);

    let history = read(&report(&Report::History { table: "t".to_owned(), commits: samples::commits() }));
    let expected = json!({"version": 10, "timestamp": "2026-10-05T04:12:33.120Z", "operation": "WRITE",
        "operation_parameters": {"mode": "Overwrite", "predicate": "order_date = '2026-10-05'"},
        "metrics": {"numOutputRows": "1000", "numCopiedRows": "0", "numFiles": "1"},
        "identity": [{"app_id": "orders", "version": 42}], "engine": "deltaonce/0.1.0", "run_id": "nightly", "token": "6f0c"});
    assert_eq!(history["commits"][0], expected);

    let commit = samples::commits().remove(0);
    let held = read(&report(&Report::Held { table: "t".to_owned(), commit }));
    assert_eq!((&held["outcome"], &held["entry"]), (&json!("held"), &expected));

    let txns = vec![RecordedIdentity { app_id: "orders".to_owned(), version: 42, last_updated: Some(MORNING) }];
    let txns = read(&report(&Report::Txns { table: "t".to_owned(), txns }));
    let expected = json!({"table": "t", "txns": [{"app_id": "orders", "version": 42, "last_updated": "2026-10-05T04:12:33.120Z"}]});
    assert_eq!(txns, expected);
}
