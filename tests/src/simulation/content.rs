//! What a table holds, and what each kind of write makes of it: the oracle. Plain lists of rows, nothing of the product.

use std::collections::BTreeMap;
use std::fmt;

/// One row of every simulated table: `id bigint not null, day date, value string, version bigint`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    pub(super) id: u64,
    /// Day of October 2026.
    pub(super) day: u64,
    pub(super) value: String,
    pub(super) version: u64,
}

impl Row {
    /// The day as SQL and CSV write it.
    #[must_use]
    pub(super) fn date(&self) -> String {
        date(self.day)
    }
}

/// As the ledger writes rows.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "day={} id={} value={} version={}", self.date(), self.id, self.value, self.version)
    }
}

/// A day of October 2026.
#[must_use]
pub(super) fn date(day: u64) -> String {
    format!("2026-10-{day:02}")
}

/// What one write does to a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Write {
    Append,
    ReplaceAll,
    /// The days that the rows have.
    ReplacePartitions,
    ReplaceDay(u64),
    /// `from <= id < to`.
    ReplaceIds {
        from: u64,
        to: u64,
    },
    /// The highest version wins, and only what is higher than the table's.
    MergeNewest,
    /// What differs is updated.
    Merge,
    Insert,
    /// Takes rows of these ids away.
    Delete(Vec<u64>),
    /// Moves rows from file to file, or changes none.
    Nothing,
}

impl Write {
    /// Makes the write on `table`; none: it has to be refused, but see [`Write::if_taken`].
    #[must_use]
    pub(super) fn on(&self, table: &[Row], rows: &[Row]) -> Option<Vec<Row>> {
        self.make(table, rows, false)
    }

    /// Makes the write on `table`, where it may be refused or not: a key that the table holds twice is not looked for
    /// everywhere, where a row of it is as new as the source's, and then such a key is left as it is.
    #[must_use]
    pub(super) fn if_taken(&self, table: &[Row], rows: &[Row]) -> Option<Vec<Row>> {
        self.make(table, rows, true)
    }

    fn make(&self, table: &[Row], rows: &[Row], passes_over: bool) -> Option<Vec<Row>> {
        let replace = |inside: &dyn Fn(&Row) -> bool| {
            Some(table.iter().filter(|row| !inside(row)).chain(rows).cloned().collect())
        };
        let mut after: Vec<Row> = match self {
            Self::Append => table.iter().chain(rows).cloned().collect(),
            Self::ReplaceAll => rows.to_vec(),
            Self::ReplacePartitions => replace(&|row| rows.iter().any(|new| new.day == row.day))?,
            Self::ReplaceDay(day) => replace(&|row| row.day == *day)?,
            Self::ReplaceIds { from, to } => replace(&|row| (*from..*to).contains(&row.id))?,
            Self::MergeNewest => merge(table, rows, passes_over, |new, old| new.version > old.version)?,
            Self::Merge => merge(table, rows, passes_over, |new, old| new != old)?,
            Self::Insert => {
                let new = winners(rows);
                let absent = new.into_values().filter(|row| !table.iter().any(|old| old.id == row.id));
                table.iter().chain(absent).cloned().collect()
            }
            Self::Delete(ids) => table.iter().filter(|row| !ids.contains(&row.id)).cloned().collect(),
            Self::Nothing => table.to_vec(),
        };
        after.sort();
        Some(after)
    }
}

/// The row with the highest version of each id.
fn winners(rows: &[Row]) -> BTreeMap<u64, &Row> {
    let mut winners: BTreeMap<u64, &Row> = BTreeMap::new();
    for row in rows {
        let best = winners.entry(row.id).or_insert(row);
        if row.version > best.version {
            *best = row;
        }
    }
    winners
}

fn merge(table: &[Row], rows: &[Row], passes_over: bool, is_newer: impl Fn(&Row, &Row) -> bool) -> Option<Vec<Row>> {
    let mut winners = winners(rows);
    let held = |id: u64| table.iter().filter(move |row| row.id == id);
    let doubled: Vec<u64> = winners.keys().copied().filter(|id| held(*id).count() > 1).collect();
    let settled = |id: &u64| held(*id).any(|old| !is_newer(winners[id], old));
    if !doubled.iter().all(|id| passes_over && settled(id)) {
        return None;
    }
    for id in doubled {
        winners.remove(&id);
    }
    let mut after = Vec::new();
    for old in table {
        match winners.remove(&old.id) {
            Some(new) if is_newer(new, old) => after.push(new.clone()),
            _ => after.push(old.clone()),
        }
    }
    after.extend(winners.into_values().cloned());
    Some(after)
}
