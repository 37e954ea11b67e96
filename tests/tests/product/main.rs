//! Whole-product tests: the real program, on local disk and on S3, beside other writers and readers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "tests may panic, and the clock and the environment are their own"
)]

mod bad_input;
mod change_feed;
mod ends;
mod faults;
mod golden;
mod harness;
mod identity;
mod input;
mod kills;
mod library;
mod masks;
mod merge;
mod neighbours;
mod odd_logs;
mod properties;
mod race;
mod readme;
mod refusals;
mod replace;
mod simulation;
mod spark;
mod storage_calls;
mod stores;
mod support;
mod troubles;
mod twice;
mod updates;
