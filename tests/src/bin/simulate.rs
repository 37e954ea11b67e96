//! Runs schedules of the simulation: `cargo run --release -p deltaonce-tests --bin simulate -- --seeds 100000 --first-seed 1`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a program of the tests: it prints and has a clock"
)]

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Parser;
use deltaonce::fault::CommitRule;
use deltaonce_tests::simulation::{Report, shrink, simulate};
use deltaonce_tests::threads::{each, of_this_machine};

/// Simulates writers, other tools and a store that fails, and holds the table against an oracle.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many schedules to run.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// The first one's seed.
    #[arg(long, default_value_t = 1)]
    first_seed: u64,
    /// Print what happens in each schedule.
    #[arg(long)]
    story: bool,
    /// A rule of the commit to break, to see that it is noticed.
    #[arg(long, value_parser = rule)]
    without: Option<CommitRule>,
    /// How many schedules run at a time.
    #[arg(long, default_value_t = of_this_machine())]
    threads: usize,
    /// How many runs may be spent on making a failing schedule short.
    #[arg(long, default_value_t = 400)]
    shrink: usize,
}

fn rule(name: &str) -> Result<CommitRule, String> {
    let found = CommitRule::ALL.into_iter().find(|rule| format!("{rule:?}") == name);
    found.ok_or_else(|| format!("the rules are {:?}", CommitRule::ALL))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // What a schedule's panic says is part of its report.
    std::panic::set_hook(Box::new(|_| {}));
    let start = Instant::now();
    let held = AtomicU64::new(0);
    let printing = Mutex::new(());
    let seeds = arguments.first_seed..arguments.first_seed.saturating_add(arguments.seeds);
    each(seeds, arguments.threads, |seed| {
        let report = simulate(seed, arguments.without, None);
        if report.broken.is_some() {
            let short = shrink(seed, arguments.without, report, arguments.shrink);
            let _alone = printing.lock();
            tell(&short, seed, arguments.without);
        } else {
            held.fetch_add(1, Ordering::Relaxed);
            if arguments.story {
                let _alone = printing.lock();
                println!("seed {seed}\n  {}", report.story.join("\n  "));
            }
        }
        ControlFlow::Continue(())
    });
    let held = held.into_inner();
    println!("{held} of {} schedules hold ({:.1} s)", arguments.seeds, start.elapsed().as_secs_f64());
    if held == arguments.seeds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What was broken, how it came to that, and how to see it again.
fn tell(report: &Report, seed: u64, without: Option<CommitRule>) {
    println!("seed {seed}: {}", report.broken.as_deref().unwrap_or_default());
    println!("  {}", report.story.join("\n  "));
    let without = without.map(|rule| format!(" --without {rule:?}")).unwrap_or_default();
    println!("  again: cargo run --release -p deltaonce-tests --bin simulate -- --first-seed {seed}{without}");
}
