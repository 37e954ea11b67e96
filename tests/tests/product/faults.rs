//! A commit on S3 whose answer is spoilt: it lands once, whatever the client hears, and whoever writes in between.

use std::time::Duration;

use deltaonce_tests::cli::Sandbox;
use deltaonce_tests::proxy::{Arm, Fault, Proxy};
use deltaonce_tests::s3::{self, options_at};
use deltaonce_tests::table::Table;
use serde_json::json;

use crate::support::{NEWEST, done};

const LATE: Duration = Duration::from_secs(3);

/// A table of three orders at version 0, and a sandbox whose program reaches it through a proxy.
fn three_orders() -> (Proxy, Sandbox, Table, String) {
    let server = s3::seaweedfs();
    let (direct, url) = (Sandbox::on(server), server.fresh_url("orders"));
    done(&direct, &format!("append {url} older.ndjson --schema schema.json --write-id older"));
    let table = direct.table(&url);
    assert_eq!(table.version(), Some(0));
    let proxy = Proxy::before(server.address());
    let sandbox = Sandbox::on(server).env(options_at(proxy.address()));
    (proxy, sandbox, table, url)
}

const CARRIED_OUT: [Fault; 8] = [
    Fault::Drop,
    Fault::Reset,
    Fault::Truncate,
    Fault::Status(500),
    Fault::Status(503),
    Fault::Status(409),
    Fault::Status(412),
    Fault::Delay(LATE),
];

const KEPT_BACK: [Fault; 5] =
    [Fault::Lost, Fault::Refuse(500), Fault::Refuse(503), Fault::Refuse(409), Fault::Stall(LATE)];

/// Loads under a fault on the commit of version 1, then again without.
fn lands_once(fault: Fault, load: &str, again: &str, rows: usize) {
    let (proxy, sandbox, table, url) = three_orders();
    proxy.arm(Arm::commit(1, fault));
    let line = load.replace("{}", &url) + " --storage-option timeout=1s";
    let first = done(&sandbox, &line);
    assert_eq!((&first["outcome"], &first["version"]), (&json!("committed"), &json!(1)), "{fault:?} {line}");
    assert_eq!(proxy.waiting(), 0, "{fault:?} {line}: the fault struck");
    assert_eq!(table.action(1, "commitInfo")["txnId"], first["token"], "{fault:?} {line}");
    assert_eq!(table.rows_by_all().len(), rows, "{fault:?} {line}");
    assert_eq!(done(&sandbox, &line)["outcome"], again, "{fault:?} {line}");
    // What was held back may arrive by now.
    if matches!(fault, Fault::Stall(_)) {
        std::thread::sleep(LATE);
    }
    assert_eq!(table.version(), Some(1), "{fault:?} {line}");
    assert_eq!(table.rows_by_all().len(), rows, "{fault:?} {line}");
}

#[test]
fn an_append_lands_once() {
    for fault in CARRIED_OUT.into_iter().chain(KEPT_BACK) {
        lands_once(fault, "append {} day1.csv --txn orders=1", "skipped", 15);
    }
}

#[test]
fn a_replace_lands_once() {
    for fault in [Fault::Drop, Fault::Status(503), Fault::Lost] {
        lands_once(fault, "replace {} day1.csv --all", "unchanged", 12);
    }
}

#[test]
fn a_merge_lands_once() {
    for fault in [Fault::Reset, Fault::Status(412), Fault::Refuse(503)] {
        lands_once(fault, &format!("merge {{}} changes.ndjson {NEWEST}"), "unchanged", 7);
    }
}

#[test]
fn an_insert_lands_once() {
    for fault in [Fault::Status(500), Fault::Delay(LATE), Fault::Refuse(409)] {
        lands_once(fault, "insert {} day1.csv --key order_id", "unchanged", 12);
    }
}

#[test]
fn a_create_lands_once() {
    for fault in [Fault::Drop, Fault::Status(503), Fault::Status(412), Fault::Lost] {
        let server = s3::seaweedfs();
        let (proxy, url) = (Proxy::before(server.address()), server.fresh_url("orders"));
        let sandbox = Sandbox::on(server).env(options_at(proxy.address()));
        proxy.arm(Arm::commit(0, fault));
        let line = format!("create {url} --schema schema.json");
        assert_eq!(done(&sandbox, &line)["outcome"], "committed", "{fault:?}");
        assert_eq!(proxy.waiting(), 0);
        assert_eq!(done(&sandbox, &line)["outcome"], "unchanged", "{fault:?}");
        assert_eq!(sandbox.table(&url).version(), Some(0), "{fault:?}");
    }
}

/// The answer to the commit is lost, and before the program can look again another writer works on what it wrote.
fn with_another_writer(fault: Fault, work: fn(&Table), rows: usize) {
    let (proxy, sandbox, table, url) = three_orders();
    let others = table.clone();
    proxy.arm(Arm::commit(1, fault).meanwhile(move || work(&others)));
    let line = format!("append {url} day1.csv --txn orders=1");
    let first = done(&sandbox, &line);
    assert_eq!((&first["outcome"], &first["version"]), (&json!("committed"), &json!(1)), "{fault:?}");
    assert_eq!(proxy.waiting(), 0);
    let after = table.rows_by_all();
    assert_eq!(after.len(), rows, "{fault:?}");
    assert_eq!(done(&sandbox, &line)["outcome"], "skipped", "{fault:?}");
    assert_eq!(table.rows_by_all(), after, "{fault:?}");
}

#[test]
fn another_writer_compacts_meanwhile() {
    for fault in [Fault::Drop, Fault::Status(503)] {
        with_another_writer(fault, |table| drop(table.peer("compact", json!({}))), 15);
    }
}

#[test]
fn another_writer_deletes_our_rows_meanwhile() {
    for fault in [Fault::Drop, Fault::Status(503)] {
        with_another_writer(fault, |table| drop(table.peer("delete", json!({"predicate": "order_id >= 1006"}))), 8);
    }
}

#[test]
fn another_writer_compacts_and_vacuums_meanwhile() {
    let work = |table: &Table| {
        table.peer("compact", json!({}));
        table.peer("vacuum", json!({}));
    };
    with_another_writer(Fault::Status(503), work, 15);
}

#[test]
fn another_writer_empties_the_table_meanwhile() {
    with_another_writer(Fault::Drop, |table| drop(table.peer("delete", json!({}))), 0);
}

#[test]
fn another_writer_takes_the_version_of_a_commit_that_was_kept_back() {
    let (proxy, sandbox, table, url) = three_orders();
    let others = table.clone();
    proxy.arm(Arm::commit(1, Fault::Refuse(503)).meanwhile(move || {
        others.peer("compact", json!({}));
        others.peer("delete", json!({"predicate": "order_id = 1001"}));
    }));
    let first = done(&sandbox, &format!("append {url} day1.csv --txn orders=1"));
    assert_eq!(first["outcome"], "committed");
    assert_eq!(table.rows_by_all().len(), 14, "two of the three, and the twelve");
    let seen = proxy.seen();
    let puts: Vec<_> = seen.iter().filter(|seen| seen.method == "PUT" && seen.path.contains("_delta_log/0")).collect();
    assert!(puts.iter().all(|put| put.if_none_match), "every log entry is put only if absent: {puts:#?}");
}

#[test]
fn a_store_that_stays_down_is_retryable_and_nothing_is_there() {
    let (proxy, sandbox, table, url) = three_orders();
    proxy.arm(Arm::commit(1, Fault::Refuse(503)).times(usize::MAX));
    let line = format!("append {url} day1.csv --txn orders=1 --commit-timeout 3s --output json --quiet");
    let run = sandbox.run(&line);
    // The entry was never seen by the server, but the program cannot tell a refusal from a lost answer for sure.
    assert!(matches!(run.status, Some(3 | 4)), "{run:?}");
    assert_eq!(run.json()["error"]["retryable"], true);
    assert_eq!(table.version(), Some(0));
    assert_eq!(table.rows_by_all().len(), 3);
}
