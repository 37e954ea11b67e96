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

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;

use deltaonce::fault::CommitRule;

use crate::memory::s3_address;
use crate::panics::words_of;
use crate::threads::{each, of_this_machine};
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
    let run = match std::panic::catch_unwind(AssertUnwindSafe(|| run::run(dice, &s3_address(), broken))) {
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

/// The first of `seeds` whose schedule breaks a promise, with what happened.
///
/// # Panics
/// Where a thread of its own does.
#[must_use]
pub fn first_broken(seeds: Range<u64>, broken: Option<CommitRule>) -> Option<(u64, Report)> {
    let found = Mutex::new(BTreeMap::new());
    each(seeds, of_this_machine(), |seed| {
        let report = simulate(seed, broken, None);
        if report.broken.is_none() {
            return ControlFlow::Continue(());
        }
        found.lock().expect("nobody panicked").insert(seed, report);
        ControlFlow::Break(())
    });
    found.into_inner().expect("nobody panicked").pop_first()
}
