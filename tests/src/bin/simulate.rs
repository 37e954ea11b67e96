//! Runs schedules of the simulation: `cargo run --release -p deltaonce-tests --bin simulate -- --seeds 100000 --first-seed 1`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a program of the tests: it prints and has a clock"
)]

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Parser;
use deltaonce::fault::CommitRule;
use deltaonce_tests::simulation::{shrink, simulate};

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
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from))]
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
    let (next, held) = (AtomicU64::new(0), AtomicU64::new(0));
    let printing = Mutex::new(());
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= arguments.seeds {
                        return;
                    }
                    let seed = arguments.first_seed + number;
                    let report = simulate(seed, arguments.without, None);
                    let lock = || printing.lock();
                    match &report.broken {
                        None => {
                            held.fetch_add(1, Ordering::Relaxed);
                            if arguments.story {
                                let _alone = lock();
                                println!("seed {seed}\n  {}", report.story.join("\n  "));
                            }
                        }
                        Some(_) => {
                            let short = shrink(seed, arguments.without, report, arguments.shrink);
                            let _alone = lock();
                            println!("seed {seed}: {}", short.broken.as_deref().unwrap_or_default());
                            println!("  {}", short.story.join("\n  "));
                            let without = arguments.without.map(|rule| format!(" --without {rule:?}"));
                            println!(
                                "  again: cargo run --release -p deltaonce-tests --bin simulate -- --first-seed {seed}{}",
                                without.unwrap_or_default()
                            );
                        }
                    }
                }
            });
        }
    });
    let held = held.into_inner();
    println!("{held} of {} schedules hold ({:.1} s)", arguments.seeds, start.elapsed().as_secs_f64());
    if held == arguments.seeds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
