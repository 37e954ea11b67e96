//! Results to render in tests.

use std::collections::BTreeMap;
use std::time::Duration;

use deltaonce::{ByteCounts, Commit, Error, ErrorKind, FileCounts, Identity, Outcome, Receipt, RowCounts};

use super::Subject;

/// 2026-10-05 04:12:33.120 UTC
pub(super) const MORNING: i64 = 1_791_173_553_120;

pub(super) fn identity(app_id: &str, version: i64) -> Identity {
    Identity { app_id: app_id.to_owned(), version }
}

/// A receipt of a load that did nothing yet.
pub(super) fn receipt(contract: &str, outcome: Outcome) -> Receipt {
    Receipt {
        outcome,
        table: "lake/silver/orders".to_owned(),
        contract: contract.to_owned(),
        identities: Vec::new(),
        token: None,
        run_id: None,
        attempts: 0,
        rows: RowCounts::default(),
        files: FileCounts::default(),
        bytes: ByteCounts::default(),
        took: Duration::from_millis(431),
        warnings: Vec::new(),
    }
}

pub(super) fn merged() -> Receipt {
    Receipt {
        token: Some("6f0c".to_owned()),
        attempts: 1,
        rows: RowCounts {
            read: 12_041,
            superseded: 38,
            inserted: 2_871,
            updated: 9_120,
            stale: 12,
            ..RowCounts::default()
        },
        files: FileCounts { added: 4, removed: 3, masked: 0, probed: 4, pruned: 16 },
        bytes: ByteCounts { read: 1_048_576, written: 402_311 },
        ..receipt("merge", Outcome::Committed { version: 18 })
    }
}

pub(super) fn skipped(recorded: i64, at_version: Option<u64>) -> Receipt {
    let by = identity("orders", 42);
    let at_time = at_version.map(|_| MORNING);
    Receipt {
        identities: vec![by.clone()],
        ..receipt("append", Outcome::Skipped { by, recorded, at_version, at_time })
    }
}

pub(super) fn tie() -> Error {
    Error::refused("2 keys have more than one newest row, so the order is not total")
        .detail("order_id=1007  ties.csv line 3 and line 9")
        .detail("order_id=1044  ties.csv line 5 and line 6")
        .hint("add a column that tells them apart")
}

pub(super) fn failing(kind: ErrorKind) -> Error {
    Error::new(kind, "the log of lake/silver/orders cannot be read")
        .caused_by(std::io::Error::other("503 Slow Down\n  retry later"))
}

pub(super) fn merging() -> Subject {
    Subject { table: Some("lake/silver/orders".to_owned()), contract: Some("merge") }
}

/// A log of two versions, by two writers.
pub(super) fn commits() -> Vec<Commit> {
    let map =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let ours = Commit {
        version: 10,
        timestamp: Some(MORNING),
        operation: Some("WRITE".to_owned()),
        parameters: map(&[("mode", "Overwrite"), ("predicate", "order_date = '2026-10-05'")]),
        metrics: map(&[("numOutputRows", "1000"), ("numCopiedRows", "0"), ("numFiles", "1")]),
        identities: vec![identity("orders", 42)],
        engine: Some("deltaonce/0.1.0".to_owned()),
        run_id: Some("nightly".to_owned()),
        token: Some("6f0c".to_owned()),
    };
    let other = Commit {
        version: 9,
        operation: Some("OPTIMIZE".to_owned()),
        parameters: BTreeMap::new(),
        metrics: BTreeMap::new(),
        identities: Vec::new(),
        engine: None,
        run_id: None,
        token: None,
        ..ours.clone()
    };
    vec![ours, other]
}
