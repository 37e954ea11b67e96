//! Whether another writer's entry leaves our change right.
//!
//! deltalake's own check is not used: it never plans again, it leaves unpredicated overwrites unchecked against
//! compactions, and it cannot tell our entry from a rival's.

use std::collections::BTreeSet;

use super::entry::Entry;
use super::rules::{CommitRule, Rules};
use crate::load::Identity;
use crate::plan::Reads;
use crate::table::actions::{AddFile, Txn, location};

/// What a change took for granted of the table, to be held against other writers' entries.
#[derive(Debug)]
pub(crate) struct Assumptions<'a> {
    reads: &'a Reads,
    files: BTreeSet<String>,
    identities: &'a [Identity],
    creates_table: bool,
    rules: Rules,
}

impl<'a> Assumptions<'a> {
    /// The files that are `replaced` and those of `reads` must still be there; no row of `reads` may have come.
    pub(crate) fn new<'f>(
        reads: &'a Reads,
        replaced: impl IntoIterator<Item = &'f AddFile>,
        identities: &'a [Identity],
        creates_table: bool,
        rules: Rules,
    ) -> Self {
        let paths = reads.files.iter().chain(replaced.into_iter().map(|file| &file.path));
        Self { reads, files: paths.map(|path| key(path)).collect(), identities, creates_table, rules }
    }

    pub(crate) fn rules(&self) -> Rules {
        self.rules
    }

    /// Why the change must be planned again after `entry`; none: it holds as it is.
    pub(crate) fn broken_by(&self, entry: &Entry) -> Option<&'static str> {
        if self.creates_table {
            return Some("another writer created the table");
        }
        if entry.changes_definition {
            return Some("another writer changed the table's schema, properties or protocol");
        }
        let same_app = |txn: &Txn| self.identities.iter().any(|identity| identity.app_id == txn.app_id);
        if self.rules.keep(CommitRule::IdentityInEachAttempt) && entry.txns.iter().any(same_app) {
            return Some("another writer recorded the same app id");
        }
        if !self.rules.keep(CommitRule::ReadSet) {
            return None;
        }
        if entry.removes.iter().any(|remove| self.files.contains(&key(&remove.path))) {
            return Some("another writer removed a file that this load removes or relied on");
        }
        if entry.adds.iter().any(|add| self.files.contains(&key(&add.path)) || self.reads.rows.may_be_in(add)) {
            return Some("another writer added rows that this load may cover");
        }
        None
    }
}

/// Writers encode one path in several ways, so files are compared by the object that the path names.
fn key(path: &str) -> String {
    location(path).map_or_else(|_| path.to_owned(), |location| location.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{NoRows, RowsRead};

    #[derive(Debug)]
    struct AnyRow;

    impl RowsRead for AnyRow {
        fn may_be_in(&self, _: &AddFile) -> bool {
            true
        }
    }

    fn reads(rows: Box<dyn RowsRead>, files: &[&str]) -> Reads {
        Reads { files: files.iter().map(|file| (*file).to_owned()).collect(), rows }
    }

    fn entry(lines: &str) -> Entry {
        Entry::parse(1, lines.as_bytes()).unwrap()
    }

    const ADD: &str =
        r#"{"add":{"path":"n.parquet","partitionValues":{},"size":1,"modificationTime":1,"dataChange":false}}"#;

    #[test]
    fn a_blind_append_holds_after_rows_came_and_went() {
        let reads = reads(Box::new(NoRows), &[]);
        let assumptions = Assumptions::new(&reads, &[], &[], false, Rules::default());
        assert_eq!(assumptions.broken_by(&entry(ADD)), None);
        assert_eq!(assumptions.broken_by(&entry(r#"{"remove":{"path":"a.parquet","dataChange":true}}"#)), None);
    }

    #[test]
    fn a_compaction_breaks_a_plan_that_read_the_rows() {
        let reads = reads(Box::new(AnyRow), &[]);
        assert!(Assumptions::new(&reads, &[], &[], false, Rules::default()).broken_by(&entry(ADD)).is_some());
    }

    #[test]
    fn a_removed_file_is_known_however_its_path_is_encoded() {
        let reads = reads(Box::new(NoRows), &["p=a%20b/f.parquet"]);
        let assumptions = Assumptions::new(&reads, &[], &[], false, Rules::default());
        for path in ["p=a%20b/f.parquet", "p=a b/f.parquet"] {
            let remove = format!(r#"{{"remove":{{"path":"{path}","dataChange":false}}}}"#);
            assert!(assumptions.broken_by(&entry(&remove)).is_some(), "{path}");
        }
    }

    #[test]
    fn the_same_app_id_at_any_version_breaks_it() {
        let reads = reads(Box::new(NoRows), &[]);
        let identities = [Identity { app_id: "a".into(), version: 8 }];
        let assumptions = Assumptions::new(&reads, &[], &identities, false, Rules::default());
        assert!(assumptions.broken_by(&entry(r#"{"txn":{"appId":"a","version":7}}"#)).is_some());
        assert_eq!(assumptions.broken_by(&entry(r#"{"txn":{"appId":"b","version":7}}"#)), None);
    }

    #[test]
    fn a_changed_definition_breaks_it() {
        let reads = reads(Box::new(NoRows), &[]);
        let assumptions = Assumptions::new(&reads, &[], &[], false, Rules::default());
        assert!(assumptions.broken_by(&entry(r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#)).is_some());
    }
}
