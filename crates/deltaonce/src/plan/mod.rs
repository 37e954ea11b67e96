//! What a load changes in the table: a snapshot and prepared rows become a [`Change`].

pub(crate) mod append;
pub(crate) mod bounds;
mod compare;
mod digests;
pub(crate) mod fingerprint;
#[cfg(test)]
mod fixture;
pub(crate) mod insert;
pub(crate) mod merge;
pub(crate) mod partitions;
pub(crate) mod predicate;
mod probe;
pub(crate) mod replace;
mod rewrite;
pub(crate) mod scope;
pub(crate) mod source_keys;
pub(crate) mod strays;
pub(crate) mod target;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod truth;
pub(crate) mod value;

use std::collections::BTreeSet;
use std::fmt::Debug;

use crate::receipt::RowCounts;
use crate::table::actions::AddFile;

/// What a commit writes, and what it took for granted.
#[derive(Debug)]
pub(crate) struct Change {
    /// Staged files that join the table.
    pub(crate) adds: Vec<AddFile>,
    /// Files of the snapshot that leave the table, as their `add` says them.
    pub(crate) removes: Vec<AddFile>,
    /// What the plan read of the table and would not hold without.
    pub(crate) reads: Reads,
    pub(crate) rows: RowCounts,
    /// Rows of removed files that the added ones hold again, unchanged.
    pub(crate) copied: u64,
    /// Files that were opened to decide.
    pub(crate) probed: u64,
    /// Files that statistics or partition values ruled out.
    pub(crate) pruned: u64,
}

impl Change {
    /// A change of nothing that read nothing.
    pub(crate) fn none() -> Self {
        Self {
            adds: Vec::new(),
            removes: Vec::new(),
            reads: Reads { files: BTreeSet::new(), rows: Box::new(NoRows) },
            rows: RowCounts::default(),
            copied: 0,
            probed: 0,
            pruned: 0,
        }
    }

    /// Whether the table says the same without this change.
    pub(crate) fn is_empty(&self) -> bool {
        self.adds.is_empty() && self.removes.is_empty()
    }
}

/// What a plan read of the table; another writer's commit that touches it makes the plan stale.
#[derive(Debug)]
pub(crate) struct Reads {
    /// Paths (as in the log) of files whose rows the plan relied on, removed ones included.
    pub(crate) files: BTreeSet<String>,
    /// Which rows of files added later the plan would have had to see.
    pub(crate) rows: Box<dyn RowsRead>,
}

/// The rows that a plan looked for in the table.
pub(crate) trait RowsRead: Debug + Send + Sync {
    /// Whether `file` may hold one of them, by its partition values and statistics; true where that cannot be told.
    fn may_be_in(&self, file: &AddFile) -> bool;
}

/// A plan that looked at no row: a blind append.
#[derive(Debug)]
pub(crate) struct NoRows;

impl RowsRead for NoRows {
    fn may_be_in(&self, _: &AddFile) -> bool {
        false
    }
}
