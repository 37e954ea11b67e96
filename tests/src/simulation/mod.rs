//! The whole product in a deterministic simulation: several writers, other tools and a store that fails, all decided by
//! one seed.
//!
//! The processes are real loads of the library on threads of their own, of which one runs at a time; time, chance and
//! the store are the simulation's. What the table has to be is decided by an oracle that shares nothing with the product
//! (`content.rs`), and read from the log by a reader that shares nothing with it either ([`crate::ledger`]).

mod check;
mod content;
mod dice;
mod host;
mod jobs;
mod process;
mod rivals;
mod run;
mod sea;
mod shrink;
mod store;

use std::any::Any;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};

use deltaonce::Location;
use deltaonce::fault::CommitRule;

use dice::Dice;
pub use shrink::shrink;

/// How a run ended.
#[derive(Debug)]
pub struct Report {
    /// What happened, line by line.
    pub story: Vec<String>,
    /// All that is in the store at the end: names with sizes and contents' hashes.
    pub objects: Vec<String>,
    /// The events that happened, by which a shorter run can be asked for.
    pub events: BTreeSet<String>,
    /// The promise that was broken, where one was.
    pub broken: Option<String>,
}

/// Runs the schedule of `seed`, with a rule of the commit broken where that is asked; of its events only those named
/// happen, where some are.
#[must_use]
pub fn simulate(seed: u64, broken: Option<CommitRule>, only: Option<BTreeSet<String>>) -> Report {
    let dice = match only {
        Some(only) => Dice::only(seed, only),
        None => Dice::new(seed),
    };
    let asked = dice.clone();
    let run = match std::panic::catch_unwind(AssertUnwindSafe(|| run::run(dice, &ADDRESS, broken))) {
        Ok(run) => run,
        Err(panic) => {
            let broken = Some(words_of(panic.as_ref()));
            return Report { story: Vec::new(), objects: Vec::new(), events: asked.happened(), broken };
        }
    };
    let verdict = std::panic::catch_unwind(AssertUnwindSafe(|| check::check(&run)));
    let broken = match verdict {
        Ok(verdict) => verdict.err(),
        Err(panic) => Some(words_of(panic.as_ref())),
    };
    Report { story: run.sea.story(), objects: run.sea.objects(), events: asked.happened(), broken }
}

/// The first of `seeds` whose schedule breaks a promise, with what happened; several are run at a time.
#[must_use]
pub fn first_broken(seeds: RangeInclusive<u64>, broken: Option<CommitRule>) -> Option<(u64, Report)> {
    let next = AtomicU64::new(*seeds.start());
    let found: Mutex<Option<(u64, Report)>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let lock = || found.lock().expect("nobody panicked");
                    if !seeds.contains(&seed) || lock().as_ref().is_some_and(|(found, _)| *found < seed) {
                        return;
                    }
                    let report = simulate(seed, broken, None);
                    let mut found = lock();
                    if report.broken.is_some() && found.as_ref().is_none_or(|(found, _)| seed < *found) {
                        *found = Some((seed, report));
                    }
                }
            });
        }
    });
    found.into_inner().expect("nobody panicked")
}

/// The address of every simulated table. Made once, since a client for S3 takes a while to make, and is not used here.
static ADDRESS: LazyLock<Location> = LazyLock::new(|| {
    let options = ["access_key_id", "secret_access_key", "region"].map(|name| (name.to_owned(), "none".to_owned()));
    Location::parse("s3://lake/t", options).expect("the address is one")
});

/// What a panic says.
fn words_of(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    words.unwrap_or("a panic without words").to_owned()
}
