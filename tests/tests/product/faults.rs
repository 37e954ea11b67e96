//! A commit on S3 whose answer is spoilt: it lands once, whatever the client hears, and whoever writes in between.

use deltaonce_tests::cli::Sandbox;
use deltaonce_tests::matrix::cell::{Cell, Contract, FAULTS, Reach, Rival};
use deltaonce_tests::matrix::run_cells;
use deltaonce_tests::proxy::{Arm, Fault, Proxy};
use deltaonce_tests::s3::{self, options_at};
use serde_json::json;

use crate::support::done;

/// The whole of it is the program `matrix`.
#[test]
fn a_sample_of_the_matrix_holds() {
    let cells = Cell::sample();
    let has = |what: &dyn Fn(&Cell) -> bool| assert!(cells.iter().any(what), "the sample leaves something out");
    for contract in Contract::ALL {
        for fault in FAULTS {
            has(&|cell| (cell.contract, cell.fault.0, cell.reach) == (contract, fault.0, Reach::Once));
        }
        for rival in Rival::ALL {
            for identity in [true, false] {
                has(&|cell| (cell.contract, cell.rival, cell.identity) == (contract, rival, identity));
            }
        }
        has(&|cell| (cell.contract, cell.reach) == (contract, Reach::PastDeadline));
    }
    let verdicts = run_cells(&cells, 4, |_| ());
    let complaints = verdicts.iter().flat_map(|verdict| {
        verdict.complaints.iter().map(|complaint| format!("{}: {complaint}", verdict.cell)).collect::<Vec<_>>()
    });
    let complaints: Vec<String> = complaints.collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
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

#[test]
fn a_store_that_stays_down_leaves_the_table_as_it_was() {
    let server = s3::seaweedfs();
    let (direct, url) = (Sandbox::on(server), server.fresh_url("orders"));
    done(&direct, &format!("append {url} older.ndjson --schema schema.json --write-id older"));
    let proxy = Proxy::before(server.address());
    proxy.arm(Arm::commit(1, Fault::Refuse(503)).times(usize::MAX));
    let sandbox = Sandbox::on(server).env(options_at(proxy.address()));
    let run = sandbox.run(&format!("append {url} day1.csv --txn orders=1 --commit-timeout 3s --output json --quiet"));
    // The server never saw the entry, but the program cannot tell a refusal from a lost answer for sure.
    assert_eq!(run.status, Some(4), "{run:?}");
    assert_eq!(run.json()["error"]["retryable"], json!(true));
    let table = direct.table(&url);
    assert_eq!(table.version(), Some(0));
    assert_eq!(table.rows_by_all().len(), 3);
    assert_eq!(table.data_files().len(), 2, "the files of an entry that may still come are kept");
}
