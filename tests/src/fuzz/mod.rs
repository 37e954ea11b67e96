//! Bad input, made by the million from seeds: each case generates an input, gives it to the product and says whether
//! what came of it holds.
//!
//! There is no coverage to guide it, so inputs are made by what the product reads: rows that are known before they are
//! written as CSV, predicates whose truth is known row by row, logs that Spark and the product wrote, each then spoilt.

mod columns;
mod csv;
mod grid;
mod interval;
mod lake;
mod log;
mod mutate;
mod ndjson;
mod order;
mod predicate;
mod random;
mod sample;
mod scope;
mod text;

use std::panic::AssertUnwindSafe;
use std::sync::Mutex;

use futures::FutureExt;

use crate::panics::words_of;
use random::Random;

/// What is fuzzed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// CSV files: known rows land as they are; spoilt files are refused or loaded.
    Csv,
    /// NDJSON files, likewise.
    Ndjson,
    /// Predicates of `--where`: exactly the rows for which one is true are replaced; spoilt ones are refused or obeyed.
    Scope,
    /// Intervals of `--interval`, likewise.
    Interval,
    /// Column lists and Delta's schema JSON of `--schema`: the table has the columns that were asked for.
    Schema,
    /// Orders of `--newest-by`: the newest row wins.
    Order,
    /// Logs and data files of somebody else, spoilt: nothing breaks, and nothing is touched that is not ours.
    Log,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Csv, Self::Ndjson, Self::Scope, Self::Interval, Self::Schema, Self::Order, Self::Log];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
            Self::Scope => "scope",
            Self::Interval => "interval",
            Self::Schema => "schema",
            Self::Order => "order",
            Self::Log => "log",
        }
    }
}

/// One input: where its making draws from, and what is said of it if it does not hold.
#[derive(Debug)]
pub struct Case {
    random: Random,
    aloud: bool,
    notes: Vec<String>,
}

impl Case {
    /// Says what the input is.
    fn note(&mut self, note: impl Into<String>) {
        let note: String = note.into().chars().take(2_000).collect();
        if self.aloud {
            eprintln!("{note}");
        }
        self.notes.push(note);
    }
}

/// An input that does not hold.
#[derive(Debug)]
pub struct Failure {
    /// What is wrong.
    pub what: String,
    /// What the input was.
    pub input: Vec<String>,
}

/// What panicked since it was last asked, in any thread.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps panics of all threads, in place of printing them: a panic that some task of the product turned into an error is
/// one all the same.
///
/// # Panics
/// Never before a panic.
pub fn record_panics() {
    std::panic::set_hook(Box::new(|panic| {
        PANICS.lock().expect("no panic while one is kept").push(panic.to_string());
    }));
}

/// Makes what the cases of a target start from, which takes longer than a case.
///
/// # Panics
/// Where the machine lacks something.
pub async fn prepare(target: Target) {
    match target {
        Target::Scope | Target::Interval => _ = sample::sample().await,
        Target::Log => _ = log::tables().await,
        Target::Csv | Target::Ndjson | Target::Schema | Target::Order => {}
    }
}

/// Runs the case of `seed`. With `aloud` its input is printed as soon as it is made.
///
/// # Errors
/// Where it does not hold.
///
/// # Panics
/// Where the machine lacks something.
pub async fn run(target: Target, seed: u64, aloud: bool) -> Result<(), Failure> {
    let mut case = Case { random: Random::new(seed), aloud, notes: Vec::new() };
    let outcome = AssertUnwindSafe(run_case(target, &mut case)).catch_unwind().await;
    let panics = std::mem::take(&mut *PANICS.lock().expect("no panic while one is kept"));
    let what = match outcome {
        Ok(Ok(())) if panics.is_empty() => return Ok(()),
        Ok(Ok(())) => panics.join("\n"),
        Ok(Err(what)) => [what].into_iter().chain(panics).collect::<Vec<_>>().join("\n"),
        Err(panic) => {
            [format!("panicked: {}", words_of(panic.as_ref()))].into_iter().chain(panics).collect::<Vec<_>>().join("\n")
        }
    };
    Err(Failure { what, input: case.notes })
}

async fn run_case(target: Target, case: &mut Case) -> Result<(), String> {
    match target {
        Target::Csv => csv::run(case).await,
        Target::Ndjson => ndjson::run(case).await,
        Target::Scope => scope::run(case).await,
        Target::Interval => interval::run(case).await,
        Target::Schema => columns::run(case).await,
        Target::Order => order::run(case).await,
        Target::Log => log::run(case).await,
    }
}
