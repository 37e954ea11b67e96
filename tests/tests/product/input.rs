//! Files as they come: compressed, split, with a BOM, from stdin.

use std::fs;
use std::process::Command;

use deltaonce_tests::cli::Sandbox;
use deltaonce_tests::fixture;

use crate::support::{create_orders, done, refused};

fn orders() -> Sandbox {
    let sandbox = Sandbox::with_fixtures();
    create_orders(&sandbox, "lake/orders", "");
    sandbox
}

/// Loads `sources` and expects the rows of `day1.csv`.
fn is_day1(sandbox: &Sandbox, sources: &str) {
    done(sandbox, &format!("replace lake/orders {sources} --all"));
    let expected = Sandbox::with_fixtures();
    create_orders(&expected, "lake/orders", "");
    done(&expected, "append lake/orders day1.parquet --write-id x");
    assert_eq!(sandbox.table("lake/orders").rows(), expected.table("lake/orders").rows(), "{sources}");
}

/// `day1.csv` in two files, the header in both.
fn halves() -> [Vec<u8>; 2] {
    let text = fs::read_to_string(fixture("orders/day1.csv")).unwrap();
    let header = &text[..=text.find('\n').unwrap()];
    let (first, second) = text.split_at(text.find("1007,").unwrap());
    [first.into(), format!("{header}{second}").into()]
}

fn packed(program: &str, bytes: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .arg("-c")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program} does not start: {error}"));
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), bytes).unwrap();
    child.wait_with_output().unwrap().stdout
}

#[test]
fn gzip_with_several_members() {
    let sandbox = orders();
    let text = fs::read(fixture("orders/day1.csv")).unwrap();
    let (first, second) = text.split_at(text.len() / 2);
    sandbox.write("day1.csv.gz", [packed("gzip", first), packed("gzip", second)].concat());
    is_day1(&sandbox, "day1.csv.gz");
    let whole = packed("gzip", &text);
    sandbox.write("cut.csv.gz", &whole[..whole.len() - 10]);
    let error = refused(&sandbox, "append lake/orders cut.csv.gz --write-id x", 1);
    assert!(error.to_string().contains("cut.csv.gz"), "{error}");
}

#[test]
fn several_files_a_glob_and_a_folder() {
    let sandbox = orders();
    fs::create_dir(sandbox.path("landing")).unwrap();
    for (i, half) in halves().iter().enumerate() {
        sandbox.write(&format!("landing/{i}.csv"), half);
    }
    for sources in ["landing/0.csv landing/1.csv", "landing/1.csv landing/0.csv", "'landing/*.csv'", "landing"] {
        is_day1(&sandbox, sources);
    }
}

#[test]
fn a_byte_order_mark_and_line_ends_of_windows() {
    let sandbox = orders();
    let text = fs::read_to_string(fixture("orders/day1.csv")).unwrap();
    // The line break inside quotes is part of a value and stays as it is.
    let text = text.replace('\n', "\r\n").replace("Books\r\nattn", "Books\nattn");
    sandbox.write("windows.csv", format!("\u{feff}{text}"));
    is_day1(&sandbox, "windows.csv");
}

#[test]
fn another_delimiter_and_null_text() {
    let sandbox = orders();
    sandbox.write("semicolon.csv", "order_id;customer;status;amount\n1;'a;b';\\N;1.50\n");
    done(&sandbox, "append lake/orders semicolon.csv --write-id x --delimiter ; --quote \"'\" --null '\\N'");
    let rows = sandbox.table("lake/orders").rows();
    assert_eq!(rows.show(&["order_id", "customer", "status", "amount"]), "1  a;b  null  1.50");
}

#[test]
fn stdin_needs_its_format() {
    let sandbox = orders();
    let day1 = fs::read(fixture("orders/day1.csv")).unwrap();
    let run = sandbox.run_with_input("append lake/orders - --write-id x --format csv --output json", &day1).ended(0);
    assert_eq!(run.outcome(), "committed");
    assert_eq!(sandbox.table("lake/orders").rows().len(), 12);
    let run = sandbox.run_with_input("append lake/orders - --write-id y", &day1).ended(2);
    assert!(run.stderr.contains("--format"), "{}", run.stderr);
}

#[test]
fn values_are_exact() {
    let sandbox = Sandbox::with_fixtures();
    sandbox.write(
        "exact.ndjson",
        "{\"code\":\"007\",\"big\":9007199254740993,\"price\":0.10,\"at\":\"2026-10-25T02:30:00+02:00\"}\n",
    );
    done(
        &sandbox,
        "append lake/t exact.ndjson --write-id x --schema 'code string, big bigint, price decimal(38,18), at timestamp'",
    );
    let rows = sandbox.table("lake/t").rows_by_all();
    let shown = rows.show(&["code", "big", "price", "at"]);
    assert_eq!(shown, "007  9007199254740993  0.100000000000000000  2026-10-25 00:30:00");
}
