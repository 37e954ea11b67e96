//! Loads that are stopped or killed on the way: nothing is half visible, and running them again completes them.

use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use deltaonce_tests::cli::Sandbox;
use deltaonce_tests::s3;

use crate::support::{create_orders, disk_and_s3, done, orders_csv, outcomes};

const ROWS: u32 = 4_000;

fn many_orders() -> String {
    orders_csv("2026-10-01", (0..ROWS).map(|id| (id, "new".to_owned(), id)))
}

#[test]
fn a_stop_leaves_nothing_behind() {
    for signal in ["-INT", "-TERM"] {
        for (sandbox, table) in disk_and_s3("orders") {
            create_orders(&sandbox, &table, "");
            let line = format!("append {table} - --format csv --write-id x --output json --quiet");
            let mut child = sandbox.start_with_input(&line);
            let mut input = child.stdin.take().unwrap();
            input.write_all(many_orders().as_bytes()).unwrap();
            input.flush().unwrap();
            // The source goes on, so the load cannot end by itself.
            std::thread::sleep(Duration::from_millis(500));
            let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
            assert!(sent.success());
            let run = sandbox.finish(&line, child).ended(3);
            drop(input);
            assert_eq!(run.json()["error"]["kind"], "interrupted", "{signal}");
            assert_eq!(sandbox.table(&table).files(), ["_delta_log/00000000000000000000.json"], "{signal}");
        }
    }
}

#[test]
fn killed_at_any_moment_and_run_again_it_is_there_once() {
    for (sandbox, table) in disk_and_s3("orders") {
        create_orders(&sandbox, &table, "");
        sandbox.write("many.csv", many_orders());
        let line = |n: usize| format!("append {table} many.csv --txn orders={n}");
        let timed = |n: usize| {
            let start = Instant::now();
            done(&sandbox, &line(n));
            start.elapsed()
        };
        // The first also waits for what is not yet in memory.
        let whole = timed(0).min(timed(1));
        let mut killed = 0;
        for n in 2..=9_u32 {
            let mut child = sandbox.start(&line(n as usize));
            std::thread::sleep(whole * (n - 1) / 8);
            child.kill().unwrap();
            let run = sandbox.finish(&line(n as usize), child);
            killed += usize::from(run.status.is_none());
            let at = sandbox.table(&table);
            let seen = at.rows().len() as u32;
            assert!(seen == n * ROWS || seen == (n + 1) * ROWS, "{seen} rows after a kill: part of a load is visible");
            done(&sandbox, &line(n as usize));
            assert_eq!(at.rows().len() as u32, (n + 1) * ROWS);
            assert_eq!(at.version(), Some(u64::from(n) + 1), "no version was written twice");
        }
        assert!(killed > 2, "the kills came too late to show anything");
    }
}

#[test]
fn a_killed_load_does_not_stop_others() {
    let server = s3::seaweedfs();
    let (sandbox, table) = (Sandbox::on(server), server.fresh_url("orders"));
    create_orders(&sandbox, &table, "");
    sandbox.write("many.csv", many_orders());
    let victim = format!("append {table} many.csv --txn victim=1");
    let mut child = sandbox.start(&victim);
    std::thread::sleep(Duration::from_millis(100));
    child.kill().unwrap();
    let _ = sandbox.finish(&victim, child);
    let lines: Vec<String> =
        (0..2).map(|n| format!("append {table} day1.csv --txn other-{n}=1 --output json --quiet")).collect();
    assert_eq!(outcomes(sandbox.race(&lines)), ["committed"; 2]);
}
