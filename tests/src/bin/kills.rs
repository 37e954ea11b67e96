//! Kills loads at every call to their storage, and takes the power away at every call to their disk.
//!
//! Ends with one line, `N of N kills hold`, and with a status other than 0 where one does not.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a program of the tests: it prints what it found, and the clock is its own"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use deltaonce_tests::kills::{Bench, CASES, Case, Left, Medium, Moment};
use deltaonce_tests::s3::seaweedfs;

/// Kill loads at every call to their storage, and take the power away at every call to their disk
#[derive(Debug, Parser)]
struct Arguments {
    /// Do only these; repeatable
    #[arg(long, value_enum, default_values_t = [What::KillsOnDisk, What::KillsOnS3, What::Images, What::Twice])]
    only: Vec<What>,
    /// Only contracts whose name contains this
    #[arg(long, default_value = "")]
    case: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// SIGKILL at every call that changes or syncs a file, then the load again
    KillsOnDisk,
    /// SIGKILL at every request, before and after it is carried out, then the load again
    KillsOnS3,
    /// Every state in which the disk may be when the power goes, then the load on it again
    Images,
    /// SIGKILL at every call, the load again to its end, and then the power goes
    Twice,
}

/// What was tried, and how much of it held.
#[derive(Debug, Default)]
struct Tally {
    tried: usize,
    held: usize,
}

impl Tally {
    /// Does one check; a panic has said what is wrong.
    fn check<T>(&mut self, check: impl FnOnce() -> T) -> Option<T> {
        self.tried += 1;
        let held = catch_unwind(AssertUnwindSafe(check)).ok();
        self.held += usize::from(held.is_some());
        held
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut tally = Tally::default();
    for what in &arguments.only {
        println!(
            "{}",
            what.to_possible_value().and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
        );
        for case in CASES.iter().filter(|case| case.name.contains(&arguments.case)) {
            let start = Instant::now();
            let said = one(*what, case, &mut tally);
            println!("  {:<48} {said}  ({:.0} s)", case.name, start.elapsed().as_secs_f64());
        }
    }
    println!("{} of {} kills hold", tally.held, tally.tried);
    if tally.held == tally.tried { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Does all of one kind with one contract, and says what there was.
fn one(what: What, case: &'static Case, tally: &mut Tally) -> String {
    let medium = if what == What::KillsOnS3 { Medium::S3(seaweedfs()) } else { Medium::Disk };
    let bench = Bench::new(case, medium);
    match what {
        What::KillsOnDisk | What::KillsOnS3 => {
            let moments: Vec<Moment> = bench.moments();
            let left: Vec<Left> = moments.iter().filter_map(|moment| tally.check(|| bench.kill(*moment))).collect();
            let count = |which| left.iter().filter(|left| **left == which).count();
            format!(
                "{:>3} calls, {:>3} kills: nothing of it there {:>3}, all of it {:>3}, ended before {}",
                bench.calls(),
                moments.len(),
                count(Left::Nothing),
                count(Left::TheLoad),
                count(Left::NotKilled)
            )
        }
        What::Images => {
            let images = bench.images();
            for (number, image) in images.iter().enumerate() {
                tally.check(|| bench.wake_up_on(number, image));
            }
            let acknowledged = images.iter().filter(|(_, acknowledged)| *acknowledged).count();
            format!(
                "{:>3} calls, {:>3} states of the disk, {acknowledged} of them acknowledged",
                bench.calls(),
                images.len()
            )
        }
        What::Twice => {
            let numbers = 1..=bench.calls();
            let images: usize =
                numbers.filter_map(|number| tally.check(|| bench.kill_run_again_and_crash(number))).sum();
            format!("{:>3} calls, {:>3} kills, {images} states of the disk", bench.calls(), bench.calls())
        }
    }
}
