//! Lets eight writers and another tool work on one table for minutes, and says whether it holds what it must.
//!
//! ```sh
//! cargo build --release --workspace --bins && target/release/soak --s3
//! ```

#![allow(clippy::disallowed_macros, reason = "a program prints")]

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use deltaonce_tests::{s3, soak::soak};

/// Lets eight writers and another tool work on one table, and compares it with what it must hold.
#[derive(Debug, Parser)]
struct Arguments {
    /// For how long.
    #[arg(long, value_name = "M", default_value_t = 10.0)]
    minutes: f64,
    /// The table lies on an S3 server instead of local disk.
    #[arg(long)]
    s3: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let report = soak(arguments.s3.then(s3::seaweedfs), Duration::from_secs_f64(arguments.minutes * 60.0));
    println!("{report}");
    let place = if arguments.s3 { "S3" } else { "local disk" };
    if report.holds() {
        println!("on {place}, the table holds every row that it must, once, and no other");
        ExitCode::SUCCESS
    } else {
        println!("on {place}, the soak does not hold");
        ExitCode::FAILURE
    }
}
