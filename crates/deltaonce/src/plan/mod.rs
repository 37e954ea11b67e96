//! What a load changes in the table: a snapshot and prepared rows become a [`Change`].

pub(crate) mod append;
pub(crate) mod bounds;
mod compare;
mod difference;
mod digests;
mod extents;
mod feed;
pub(crate) mod fingerprint;
#[cfg(test)]
mod fixture;
pub(crate) mod insert;
mod masking;
pub(crate) mod merge;
pub(crate) mod partitions;
pub(crate) mod predicate;
pub(crate) mod probe;
pub(crate) mod replace;
pub(crate) mod revision;
mod rewrite;
mod runs;
pub(crate) mod scope;
mod sieve;
pub(crate) mod source_keys;
pub(crate) mod spilled;
pub(crate) mod strays;
pub(crate) mod target;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod truth;
pub(crate) mod value;

use std::collections::BTreeSet;
use std::fmt::Debug;

use object_store::path::Path;

use crate::receipt::RowCounts;
use crate::table::actions::{AddFile, ChangeFile, location};

/// What a commit writes, and what it took for granted.
#[derive(Debug)]
pub(crate) struct Change {
    /// Staged files that join the table.
    pub(crate) adds: Vec<AddFile>,
    /// Files of the snapshot that leave the table, as their `add` says them.
    pub(crate) removes: Vec<AddFile>,
    /// Files of the snapshot that stay, with more of their rows masked.
    pub(crate) masks: Vec<Mask>,
    /// Staged files with the rows that changed, where readers of the change data feed could not tell them otherwise.
    pub(crate) changes: Vec<ChangeFile>,
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
            masks: Vec::new(),
            changes: Vec::new(),
            reads: Reads { files: BTreeSet::new(), rows: Box::new(NoRows) },
            rows: RowCounts::default(),
            copied: 0,
            probed: 0,
            pruned: 0,
        }
    }

    /// Whether the table says the same without this change.
    pub(crate) fn is_empty(&self) -> bool {
        self.adds.is_empty() && self.removes.is_empty() && self.masks.is_empty()
    }

    /// The staged objects that the change names.
    pub(crate) fn staged(&self) -> BTreeSet<Path> {
        let adds = self.adds.iter().filter_map(|add| add.location().ok());
        let vectors = self.masks.iter().filter_map(|mask| mask.masked.deletion_vector.as_ref()?.object());
        let changes = self.changes.iter().filter_map(|change| location(&change.path).ok());
        adds.chain(vectors).chain(changes).collect()
    }

    /// The files that leave the table as they are, those that come back with more rows masked included.
    pub(crate) fn replaced(&self) -> impl Iterator<Item = &AddFile> {
        self.removes.iter().chain(self.masks.iter().map(|mask| &mask.file))
    }
}

/// A file some of whose rows a new deletion vector masks. In the log its old state is removed and the new one added
/// (protocol, "Add File and Remove File").
#[derive(Debug)]
pub(crate) struct Mask {
    /// As the snapshot has it.
    pub(crate) file: AddFile,
    /// With the new vector.
    pub(crate) masked: AddFile,
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
