//! What a cell showed, and tables of many.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use super::cell::Cell;

/// What a cell showed.
#[derive(Debug)]
pub struct Verdict {
    /// Which cell.
    pub cell: Cell,
    /// How the load under the fault ended, with its exit code.
    pub first: String,
    /// How it ended when it was run again.
    pub again: Option<String>,
    /// Rows that should be there and are not.
    pub lost: usize,
    /// Rows that are there more often than they should be.
    pub doubled: usize,
    /// Errors for a load that landed, and successes for one that did not.
    pub false_failures: usize,
    /// All that is not as it should be, a sentence each.
    pub complaints: Vec<String>,
}

impl Verdict {
    /// Nothing shown yet.
    #[must_use]
    pub fn of(cell: Cell) -> Self {
        let (lost, doubled, false_failures) = (0, 0, 0);
        Self { cell, first: "nothing".to_owned(), again: None, lost, doubled, false_failures, complaints: Vec::new() }
    }

    /// Whether all is as it should be.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.complaints.is_empty()
    }

    /// Complains where something is not so.
    pub fn check(&mut self, is_so: bool, complaint: impl FnOnce() -> String) {
        if !is_so {
            self.complaints.push(complaint());
        }
    }

    /// Counts the rows that are lost and doubled.
    pub fn compare(&mut self, expected: &[String], found: &[String], when: &str) {
        let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
        for row in expected {
            *counts.entry(row).or_default() -= 1;
        }
        for row in found {
            *counts.entry(row).or_default() += 1;
        }
        for (row, count) in counts {
            if count < 0 {
                self.lost += count.unsigned_abs() as usize;
                self.complaints.push(format!("{when}: lost {row}"));
            } else if count > 0 {
                self.doubled += count.unsigned_abs() as usize;
                self.complaints.push(format!("{when}: {count} too many of {row}"));
            }
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let holds = if self.holds() { "holds" } else { "does not hold" };
        write!(f, "{}: {}", self.cell, self.first)?;
        if let Some(again) = &self.again {
            write!(f, ", then {again}")?;
        }
        write!(f, ": {holds}")
    }
}

/// A Markdown table of verdicts with a row for each group, in the order in which the groups come.
pub fn table<const N: usize>(
    verdicts: &[&Verdict],
    headings: [&str; N],
    group: impl Fn(&Cell) -> [String; N],
) -> String {
    let mut groups: Vec<([String; N], Vec<&Verdict>)> = Vec::new();
    for verdict in verdicts {
        let name = group(&verdict.cell);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) => members.push(verdict),
            None => groups.push((name, vec![verdict])),
        }
    }
    let mut table = format!(
        "| {} | cells that hold | rows lost | rows doubled | false failures | how it ended | run again |\n{}\n",
        headings.join(" | "),
        "| --- ".repeat(N + 6) + "|"
    );
    for (name, members) in groups {
        let sum = |count: fn(&Verdict) -> usize| members.iter().map(|verdict| count(verdict)).sum::<usize>();
        writeln!(
            table,
            "| {} | {} of {} | {} | {} | {} | {} | {} |",
            name.join(" | "),
            sum(|verdict| usize::from(verdict.holds())),
            members.len(),
            sum(|verdict| verdict.lost),
            sum(|verdict| verdict.doubled),
            sum(|verdict| verdict.false_failures),
            tally(members.iter().map(|verdict| verdict.first.as_str())),
            tally(members.iter().filter_map(|verdict| verdict.again.as_deref())),
        )
        .expect("a text takes more");
    }
    table
}

fn tally<'a>(endings: impl Iterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for ending in endings {
        *counts.entry(ending).or_default() += 1;
    }
    counts.iter().map(|(ending, count)| format!("{count} {ending}")).collect::<Vec<_>>().join(", ")
}
