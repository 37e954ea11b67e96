//! What happened.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::load::Identity;

/// How a load ended, when it did not fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[must_use]
pub enum Outcome {
    /// One log entry was written.
    Committed {
        /// The table's version that holds the load.
        version: u64,
    },
    /// The log already holds the load.
    Skipped {
        /// The identity that decided it.
        by: Identity,
        /// The version recorded for its app id: equal (already applied) or higher (superseded).
        recorded: i64,
        /// The table's version whose entry records it, where the log still holds that entry.
        at_version: Option<u64>,
        /// That entry's timestamp, milliseconds since the epoch.
        at_time: Option<i64>,
    },
    /// The table already says what the load asks for; no entry was written.
    Unchanged {
        /// The table's version that was compared.
        version: u64,
    },
}

/// Rows by what became of them; `read = duplicates + superseded + inserted + updated + stale + divergent + unchanged`
/// for every contract (a replace counts as inserted what it writes, as deleted what it takes out).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each is the row's fate in the contract's words, defined in the struct's contract")]
pub struct RowCounts {
    pub read: u64,
    /// Source rows that equal another source row in every column.
    pub duplicates: u64,
    /// Source rows older than another source row of their key.
    pub superseded: u64,
    pub inserted: u64,
    pub updated: u64,
    /// Table rows taken out by a replace.
    pub deleted: u64,
    /// Source rows older than the table's row of their key.
    pub stale: u64,
    /// Source rows as old as the table's row of their key, with other content; the table's row is kept.
    pub divergent: u64,
    /// Source rows that the table already holds.
    pub unchanged: u64,
}

impl std::ops::AddAssign for RowCounts {
    fn add_assign(&mut self, other: Self) {
        self.read += other.read;
        self.duplicates += other.duplicates;
        self.superseded += other.superseded;
        self.inserted += other.inserted;
        self.updated += other.updated;
        self.deleted += other.deleted;
        self.stale += other.stale;
        self.divergent += other.divergent;
        self.unchanged += other.unchanged;
    }
}

/// Data files by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each is named as in the log")]
pub struct FileCounts {
    pub added: u64,
    pub removed: u64,
    /// Files of the table that stay, with more rows masked by a deletion vector.
    #[serde(default)]
    pub masked: u64,
    /// Files of the table that were opened to decide.
    pub probed: u64,
    /// Files of the table that statistics or partition values ruled out.
    pub pruned: u64,
}

/// Bytes moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each is a plain count of bytes")]
pub struct ByteCounts {
    /// Bytes of source files.
    pub read: u64,
    /// Bytes of data files added.
    pub written: u64,
}

/// What a load did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// How it ended.
    pub outcome: Outcome,
    /// The table, as it was named.
    pub table: String,
    /// The contract's name.
    pub contract: String,
    /// The identities that the load carried.
    pub identities: Vec<Identity>,
    /// The attempt token (`commitInfo.txnId`): the log entry that holds the load carries it.
    pub token: Option<String>,
    /// The caller's name for the run.
    pub run_id: Option<String>,
    /// Log entries tried, the one that landed included.
    pub attempts: u32,
    /// Rows by what became of them.
    pub rows: RowCounts,
    /// Files by what became of them.
    pub files: FileCounts,
    /// Bytes moved.
    pub bytes: ByteCounts,
    /// How long it took.
    pub took: Duration,
    /// What went wrong without failing the load.
    pub warnings: Vec<String>,
}
