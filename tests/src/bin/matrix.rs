//! Runs the fault matrix and prints what it showed.
//!
//! ```sh
//! cargo build --release --workspace --bins && target/release/matrix
//! ```

#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "a program prints, and looks at the clock")]

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use clap::Parser;
use deltaonce_tests::matrix::cell::{Cell, Reach};
use deltaonce_tests::matrix::run_cells;
use deltaonce_tests::matrix::verdict::{Verdict, table};

/// Spoils the answer to a commit in every way, for every contract, while other software works on the same table.
#[derive(Debug, Parser)]
struct Arguments {
    /// Run only the cells whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Run the sample that the tests run.
    #[arg(long)]
    sample: bool,
    /// Print each cell too.
    #[arg(long)]
    cells: bool,
    /// Cells under way at a time.
    #[arg(long, value_name = "N", default_value_t = 4)]
    at_a_time: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut cells = if arguments.sample { Cell::sample() } else { Cell::all() };
    cells.retain(|cell| cell.to_string().contains(&arguments.only));
    let start = Instant::now();
    let done = AtomicUsize::new(0);
    let verdicts = run_cells(&cells, arguments.at_a_time, |verdict| {
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(100) {
            eprintln!("{done} of {} cells after {:.0} s", cells.len(), start.elapsed().as_secs_f64());
        }
        for complaint in &verdict.complaints {
            eprintln!("{}: {complaint}", verdict.cell);
        }
    });
    let took = start.elapsed();
    if arguments.cells {
        for verdict in &verdicts {
            println!("{verdict}");
        }
    }
    for (reach, title) in [
        (Reach::Once, "The fault strikes once"),
        (Reach::PastDeadline, "The fault outlives the deadline, and the entry cannot be read back"),
    ] {
        let verdicts: Vec<&Verdict> = verdicts.iter().filter(|verdict| verdict.cell.reach == reach).collect();
        let by_contract = |cell: &Cell| [cell.contract.to_string(), cell.with_or_without().to_owned()];
        println!("### {title}\n");
        println!("{}", table(&verdicts, ["answer to the commit, and the entry"], |cell| [cell.fault.0.to_owned()]));
        println!("{}", table(&verdicts, ["contract", "identity"], by_contract));
        println!("{}", table(&verdicts, ["meanwhile, by Python deltalake"], |cell| [cell.rival.to_string()]));
    }
    let hold = verdicts.iter().filter(|verdict| verdict.holds()).count();
    println!("It took {:.0} s.", took.as_secs_f64());
    println!("{hold} of {} cells hold", verdicts.len());
    if hold == verdicts.len() && hold > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
