//! A short round of each fuzzer, the same one each time; `docs/reliability.md` says how they run long.

use std::process::Command;

use deltaonce_tests::fuzz::Target;

/// Runs the inputs of the first seeds of a target.
fn holds(target: Target, inputs: u64) {
    let run = Command::new(env!("CARGO_BIN_EXE_fuzz"))
        .args([target.name(), "--seconds", "600", "--cases", &inputs.to_string()])
        .output()
        .expect("the fuzzer starts");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.ends_with(&format!("{inputs} of {inputs} inputs hold\n")), "{said}");
}

#[test]
fn csv_files() {
    holds(Target::Csv, 300);
}

#[test]
fn ndjson_files() {
    holds(Target::Ndjson, 300);
}

#[test]
fn predicates() {
    holds(Target::Scope, 250);
}

#[test]
fn intervals() {
    holds(Target::Interval, 100);
}

#[test]
fn schemas() {
    holds(Target::Schema, 250);
}

#[test]
fn orders() {
    holds(Target::Order, 100);
}

#[test]
fn logs_of_somebody_else() {
    holds(Target::Log, 200);
}
