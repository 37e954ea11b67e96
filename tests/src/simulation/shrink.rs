//! Makes a failing run short: takes events away as long as it still fails.

use std::collections::BTreeSet;

use deltaonce::fault::CommitRule;

use super::{Report, simulate};

/// A run of the same seed that breaks a promise too, with as few events as could be found in `runs` runs.
#[must_use]
pub fn shrink(seed: u64, broken: Option<CommitRule>, report: Report, runs: usize) -> Report {
    let mut best = report;
    let mut left = runs;
    let mut size = best.events.len().div_ceil(2).max(1);
    loop {
        let mut smaller = None;
        let events: Vec<String> = best.events.iter().cloned().collect();
        for start in (0..events.len()).step_by(size) {
            if left == 0 {
                return best;
            }
            left -= 1;
            let end = (start + size).min(events.len());
            let only: BTreeSet<String> = events[..start].iter().chain(&events[end..]).cloned().collect();
            let report = simulate(seed, broken, Some(only));
            if report.broken.is_some() {
                smaller = Some(report);
                break;
            }
        }
        match smaller {
            Some(report) if report.events.len() < best.events.len() => best = report,
            _ if size > 1 => size = size.div_ceil(2),
            _ => return best,
        }
    }
}
