//! The tests' own tools do what the tests take them to do.

use std::time::{Duration, Instant};

use deltaonce_tests::fixture;
use deltaonce_tests::golden::Golden;
use deltaonce_tests::proxy::{Arm, Fault, Proxy};
use deltaonce_tests::s3::{self, block_on, client_at};
use deltaonce_tests::table::Table;
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _, PutMode, PutOptions};
use serde_json::json;

const TABLE: &str = "_delta_log/00000000000000000001.json";

fn put_if_absent(address: std::net::SocketAddr, key: &str, bytes: &'static [u8]) -> object_store::Result<()> {
    let options = PutOptions::from(PutMode::Create);
    block_on(async { client_at(address).put_opts(&Path::from(key), bytes.into(), options).await }).map(drop)
}

fn stored(key: &str) -> Option<Vec<u8>> {
    let client = s3::seaweedfs().client();
    block_on(async { client.get(&Path::from(key)).await.ok()?.bytes().await.ok() }).map(Vec::from)
}

#[test]
fn seaweedfs_keeps_the_first_of_two_conditional_puts() {
    let address = s3::seaweedfs().address();
    put_if_absent(address, "harness/one", b"first").expect("the first put");
    let second = put_if_absent(address, "harness/one", b"second");
    assert!(matches!(second, Err(object_store::Error::AlreadyExists { .. })), "{second:?}");
    assert_eq!(stored("harness/one").as_deref(), Some(b"first".as_slice()));
}

#[test]
fn rclone_ignores_the_condition() {
    let address = s3::rclone().address();
    put_if_absent(address, "one", b"first").expect("the first put");
    put_if_absent(address, "one", b"second").expect("a server that ignores the condition takes the second put too");
}

#[test]
fn the_proxy_spoils_answers_of_requests_that_were_carried_out() {
    for (i, fault) in [Fault::Drop, Fault::Reset, Fault::Truncate, Fault::Status(503)].into_iter().enumerate() {
        let proxy = Proxy::before(s3::seaweedfs().address());
        let key = format!("harness/{i}/{TABLE}");
        proxy.arm(Arm::commit(1, fault));
        put_if_absent(proxy.address(), &key, b"entry").expect_err("the answer is spoilt");
        assert_eq!(stored(&key).as_deref(), Some(b"entry".as_slice()), "{fault:?}");
        assert_eq!(proxy.waiting(), 0);
        let seen = proxy.seen();
        assert!(seen[0].if_none_match && seen[0].status == Some(200) && seen[0].fault == Some(fault), "{seen:?}");
    }
}

#[test]
fn the_proxy_keeps_requests_from_the_server() {
    for (i, fault) in [Fault::Lost, Fault::Refuse(409)].into_iter().enumerate() {
        let proxy = Proxy::before(s3::seaweedfs().address());
        let key = format!("harness/kept-{i}/{TABLE}");
        proxy.arm(Arm::commit(1, fault));
        put_if_absent(proxy.address(), &key, b"entry").expect_err("the request is not carried out");
        assert_eq!(stored(&key), None, "{fault:?}");
        put_if_absent(proxy.address(), &key, b"entry").expect("the fault is used up");
    }
}

#[test]
fn the_proxy_delays_and_lets_others_in_between() {
    let proxy = Proxy::before(s3::seaweedfs().address());
    let key = format!("harness/slow/{TABLE}");
    let rival = key.clone();
    proxy.arm(Arm::commit(1, Fault::Delay(Duration::from_millis(200))).meanwhile(move || {
        let lost = put_if_absent(s3::seaweedfs().address(), &rival, b"rival");
        assert!(lost.is_err(), "the server has carried the first put out by now");
    }));
    let start = Instant::now();
    put_if_absent(proxy.address(), &key, b"entry").expect("a late answer is an answer");
    assert!(start.elapsed() >= Duration::from_millis(200));

    proxy.arm(Arm::new("PUT", "zombie", Fault::Stall(Duration::from_millis(100))).times(2));
    put_if_absent(proxy.address(), "harness/zombie", b"1").expect("stalled, then carried out");
    assert_eq!(proxy.waiting(), 1, "one of two is used up");
}

#[test]
fn peers_agree_on_what_they_write_to_disk_and_to_s3() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = s3::seaweedfs();
    let tables = [Table::local(&folder.path().join("orders")), Table::on(server, &server.fresh_url("orders"))];
    for table in &tables {
        table.peer("write", json!({"file": fixture("orders/day1.parquet"), "partition_by": ["order_date"]}));
        table.peer("delete", json!({"predicate": "order_id = 1001"}));
        let rows = table.rows_by_all();
        assert_eq!(rows.len(), 11);
        assert_eq!(rows.only("order_id", "1004")["customer"].as_deref(), Some("Harbour Books\nattn. receiving"));
        assert_eq!(rows.only("order_id", "1010")["order_ts"].as_deref(), Some("2026-10-05 10:15:00.123456"));
        assert_eq!(table.version(), Some(1));
        assert_eq!(table.action(1, "commitInfo")["operation"], "DELETE");
        assert_eq!(table.data_files().len(), 2, "the file before and after the delete");
    }
    assert_eq!(tables[0].rows(), tables[1].rows());
}

#[test]
fn a_peer_says_why_it_cannot() {
    let error = Table::local(std::path::Path::new("/nowhere")).rows_by("deltalake").expect_err("no such table");
    assert!(error.contains("TableNotFound"), "{error}");
}

#[test]
fn golden_tables_have_rows() {
    let golden = Golden::default();
    assert_eq!(golden.names().len(), 26);
    for name in ["types", "partitioned_odd_values", "deletion_vectors"] {
        assert_eq!(golden.table(name).rows_by_all(), golden.rows(name), "{name}");
    }
}
