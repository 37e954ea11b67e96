//! What the whole-product tests share: the real command line in a folder of its own, S3 servers, a proxy that spoils
//! answers, and other software that reads and writes the same tables.
//!
//! Everything here panics with a sentence where the machine lacks something: a test has no use for an error value.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "test support: it may panic, and the clock and the environment are its own"
)]

pub mod chance;
pub mod cli;
pub mod content;
pub mod crash;
pub mod disk_calls;
pub mod fuzz;
pub mod golden;
pub mod host;
pub mod kills;
pub mod ledger;
pub mod matrix;
pub mod memory;
pub mod panics;
pub mod peers;
pub mod process;
pub mod proxy;
pub mod redact;
pub mod s3;
pub mod simulation;
pub mod soak;
pub mod table;
pub mod threads;
pub mod vectors;

use std::path::{Path, PathBuf};

/// The root of the workspace.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a folder of the workspace")
}

/// A file under `fixtures/`.
#[must_use]
pub fn fixture(name: &str) -> PathBuf {
    root().join("fixtures").join(name)
}
