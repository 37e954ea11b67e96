//! What a soak showed, in figures.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::time::Duration;

use super::writer::Work;
use crate::cli::Run;
use crate::ledger::Ledger;

/// One run of the program.
#[derive(Debug)]
pub(super) struct Event {
    work: Work,
    pub(super) outcome: String,
    pub(super) may_try_again: bool,
    /// The table's version, where it committed one, and the token of the commit.
    committed: Option<(usize, String)>,
    attempts: u64,
    /// Why it did not end well.
    message: Option<String>,
    took: Duration,
}

impl Event {
    /// Reads a receipt or an error.
    pub(super) fn of(work: Work, run: &Run, took: Duration) -> Self {
        let receipt: serde_json::Value = serde_json::from_str(&run.stdout).unwrap_or_default();
        let outcome = receipt["outcome"].as_str().unwrap_or("nothing").to_owned();
        let committed = receipt["token"].as_str().and_then(|token| {
            let version = usize::try_from(receipt["version"].as_u64()?).ok()?;
            Some((version, token.to_owned()))
        });
        Self {
            work,
            may_try_again: receipt["error"]["retryable"].as_bool().unwrap_or_default(),
            committed: committed.filter(|_| outcome == "committed"),
            outcome,
            attempts: receipt["attempts"].as_u64().unwrap_or_default(),
            message: receipt["error"]["message"].as_str().map(str::to_owned),
            took,
        }
    }
}

/// What was seen on the way.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) events: Vec<Event>,
    /// What the other tool did: how often each thing went well, and its errors with how often they came.
    pub(super) neighbour: BTreeMap<String, usize>,
    pub(super) neighbour_errors: BTreeMap<String, usize>,
    pub(super) complaints: Vec<String>,
}

/// What a soak showed.
#[derive(Debug)]
pub struct Report {
    text: String,
    complaints: Vec<String>,
}

impl Report {
    /// Whether all is as it should be.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.complaints.is_empty()
    }

    /// Adds up what was seen, and holds every acknowledged commit against the log.
    pub(super) fn of(mut seen: Seen, ledger: &Ledger, lasted: Duration) -> Self {
        let (tokens, minutes) = (ledger.tokens(), lasted.as_secs_f64() / 60.0);
        let mut figures = Figures::default();
        let mut by_work: BTreeMap<Work, (usize, Vec<Duration>)> = BTreeMap::new();
        let (mut outcomes, mut failures) = (BTreeMap::<&str, usize>::new(), BTreeMap::<String, usize>::new());
        for event in &seen.events {
            *outcomes.entry(&event.outcome).or_default() += 1;
            let (commits, waits) = by_work.entry(event.work).or_default();
            waits.push(event.took);
            if let Some(message) = &event.message {
                *failures.entry(format!("{}: {message}", event.outcome)).or_default() += 1;
            }
            let Some((version, token)) = &event.committed else { continue };
            *commits += 1;
            figures.commits += 1;
            figures.conflicts += event.attempts.saturating_sub(1);
            if tokens.get(*version).and_then(Option::as_ref) != Some(token) {
                seen.complaints.push(format!("version {version} was acknowledged and is another's"));
                continue;
            }
            // A plan is put at each version after the one it read, until one is free; puts beyond that were of earlier plans.
            let puts_of_last_plan = read_version(ledger, *version).map_or(1, |read| *version as u64 - read);
            figures.planned_again += u64::from(event.attempts > puts_of_last_plan);
        }
        let mut text = String::new();
        let mut line = |what: &str, figure: String| writeln!(text, "| {what} | {figure} |").expect("a text takes more");
        line("it went on for", format!("{minutes:.1} minutes"));
        line("runs of the program", format!("{} ({})", seen.events.len(), tally(&outcomes)));
        line("its commits", format!("{}, {:.0} a minute", figures.commits, figures.commits as f64 / minutes));
        line("all commits", format!("{}, {:.0} a minute", tokens.len(), tokens.len() as f64 / minutes));
        line("puts that found their version taken", figures.conflicts.to_string());
        line("commits that were planned again", figures.planned_again.to_string());
        for (work, (commits, mut waits)) in by_work {
            waits.sort();
            let at = |share: usize| waits[(waits.len() - 1) * share / 100].as_secs_f64();
            let (half, most, longest) = (at(50), at(99), at(100));
            let figure = format!(
                "{commits} commits; a run took {half:.2} s (half), {most:.2} s (99 %), {longest:.2} s (longest)"
            );
            line(&format!("{work:?}"), figure);
        }
        line("failures", if failures.is_empty() { "none".to_owned() } else { tally(&failures) });
        line("the other tool", tally(&seen.neighbour));
        line(
            "its failures",
            if seen.neighbour_errors.is_empty() { "none".to_owned() } else { tally(&seen.neighbour_errors) },
        );
        line("rows and live files in the end", format!("{} and {}", ledger.rows.len(), ledger.live.len()));
        Self { text: format!("| what | figure |\n| --- | --- |\n{text}"), complaints: seen.complaints }
    }
}

#[derive(Default)]
struct Figures {
    commits: u64,
    conflicts: u64,
    planned_again: u64,
}

fn read_version(ledger: &Ledger, version: usize) -> Option<u64> {
    ledger.entries[version].iter().find_map(|action| action.get("commitInfo"))?["readVersion"].as_u64()
}

fn tally<K: fmt::Display>(counts: &BTreeMap<K, usize>) -> String {
    counts.iter().map(|(what, count)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        for complaint in &self.complaints {
            write!(f, "\n{complaint}")?;
        }
        Ok(())
    }
}
