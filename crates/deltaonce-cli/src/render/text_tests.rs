use deltaonce::{FileCounts, RowCounts};

use super::super::samples::{self, MORNING, failing, identity, merged, merging, receipt, skipped, tie};
use super::*;

fn said(receipt: Receipt) -> String {
    report(&Report::Load(Box::new(receipt)))
}

#[test]
fn a_merge_that_landed() {
    let expected = "\
committed  version 18 of lake/silver/orders
  source   12,041 rows: 12,003 keys, 38 older rows of the same key
  table    2,871 inserted, 9,120 updated, 12 already newer
  files    3 rewritten, 1 added; 4 of 20 probed
  took     0.4 s
";
    assert_eq!(said(merged()), expected);
}

#[test]
fn an_append_that_landed_at_the_third_attempt() {
    let load = Receipt {
        identities: vec![identity("orders", 42), identity("clicks", 7)],
        attempts: 3,
        rows: RowCounts { read: 1, inserted: 1, ..RowCounts::default() },
        files: FileCounts { added: 1, ..FileCounts::default() },
        ..receipt("append", Outcome::Committed { version: 0 })
    };
    let expected = "\
committed  version 0 of lake/silver/orders, a new table
  identity orders=42, clicks=7
  source   1 row
  table    1 inserted
  files    1 added
  commit   3 attempts
  took     0.4 s
";
    assert_eq!(said(load), expected);
}

#[test]
fn a_replace_that_landed() {
    let load = Receipt {
        rows: RowCounts { read: 1_000, inserted: 1_000, deleted: 998, ..RowCounts::default() },
        files: FileCounts { added: 2, removed: 3, masked: 0, probed: 1, pruned: 7 },
        ..receipt("replace", Outcome::Committed { version: 5 })
    };
    let expected = "\
committed  version 5 of lake/silver/orders
  source   1,000 rows
  table    998 deleted, 1,000 inserted
  files    2 added, 3 removed; 1 of 8 probed
  took     0.4 s
";
    assert_eq!(said(load), expected);
}

#[test]
fn an_insert_that_found_all_its_keys() {
    let load = Receipt {
        rows: RowCounts { read: 10, duplicates: 1, superseded: 2, unchanged: 6, divergent: 1, ..RowCounts::default() },
        files: FileCounts { probed: 2, ..FileCounts::default() },
        ..receipt("insert", Outcome::Unchanged { version: 18 })
    };
    let expected = "\
unchanged  version 18 of lake/silver/orders says this already
  source   10 rows: 7 keys, 2 further rows of the same key, 1 exact duplicate
  table    1 as new but different, kept as they were, 6 already there
  files    2 of 2 probed
  took     0.4 s
";
    assert_eq!(said(load), expected);
}

#[test]
fn a_skip_says_by_what() {
    let cases = [
        (
            skipped(42, Some(7)),
            "skipped    orders=42 was already applied by version 7 of lake/silver/orders (2026-10-05 04:12 UTC)\n",
        ),
        (skipped(42, None), "skipped    orders=42 was already applied to lake/silver/orders\n"),
        (
            skipped(45, Some(9)),
            "skipped    orders=42 is superseded by orders=45, applied by version 9 of lake/silver/orders (2026-10-05 04:12 UTC)\n",
        ),
        (skipped(45, None), "skipped    orders=42 is superseded by orders=45, applied to lake/silver/orders\n"),
    ];
    for (receipt, expected) in cases {
        assert_eq!(said(receipt), expected);
    }
    let mut several = skipped(42, Some(7));
    several.identities.push(identity("clicks", 7));
    assert!(said(several).ends_with("UTC)\n  identity orders=42, clicks=7\n"));
}

#[test]
fn a_table_that_was_asked_for() {
    let created = said(receipt("create", Outcome::Committed { version: 0 }));
    assert_eq!(created, "created    lake/silver/orders at version 0\n");
    let there = said(receipt("create", Outcome::Unchanged { version: 3 }));
    assert_eq!(there, "unchanged  lake/silver/orders is there already, as asked for, at version 3\n");
}

#[test]
fn properties_that_were_set() {
    let set = |attempts, outcome| said(Receipt { attempts, ..receipt("set", outcome) });
    assert_eq!(set(1, Outcome::Committed { version: 4 }), "committed  version 4 of lake/silver/orders\n");
    let contended = set(3, Outcome::Committed { version: 4 });
    assert_eq!(contended, "committed  version 4 of lake/silver/orders\n  commit   3 attempts\n");
    let there = set(0, Outcome::Unchanged { version: 3 });
    assert_eq!(there, "unchanged  version 3 of lake/silver/orders says this already\n");
}

#[test]
fn a_refusal_shows_its_evidence() {
    let expected = "\
refused    2 keys have more than one newest row, so the order is not total; nothing was changed
  order_id=1007  ties.csv line 3 and line 9
  order_id=1044  ties.csv line 5 and line 6
  hint: add a column that tells them apart
";
    assert_eq!(error(&tie(), &merging()), expected);
}

#[test]
fn only_an_error_that_kept_the_table_says_so() {
    let first = |kind| {
        let text = error(&failing(kind), &merging());
        text.lines().next().unwrap().replace("the log of lake/silver/orders cannot be read", "…")
    };
    assert_eq!(first(ErrorKind::Invalid), "invalid    …");
    assert_eq!(first(ErrorKind::Unsupported), "unsupported  …; nothing was changed");
    assert_eq!(first(ErrorKind::Retryable), "retryable  …; nothing was changed");
    assert_eq!(first(ErrorKind::Interrupted), "interrupted  …; nothing was changed");
    assert_eq!(first(ErrorKind::Unknown), "unknown    …");
    assert_eq!(first(ErrorKind::Internal), "internal   …");
    let read = Subject { contract: None, ..merging() };
    let expected = "\
retryable  the log of lake/silver/orders cannot be read
  cause: 503 Slow Down retry later
";
    assert_eq!(error(&failing(ErrorKind::Retryable), &read), expected);
}

#[test]
fn a_table_as_it_is() {
    let description = Description {
        version: 18,
        schema: vec!["order_id bigint not null".to_owned(), "order_date date".to_owned()],
        partition_columns: vec!["order_date".to_owned()],
        properties: vec![("delta.appendOnly".to_owned(), "true".to_owned())],
        features: vec!["appendOnly".to_owned(), "invariants".to_owned()],
        files: 20,
        rows: Some(12_003),
        bytes: 12_400_000,
    };
    let expected = "\
lake/silver/orders  version 18
  columns     order_id bigint not null
              order_date date
  partitioned order_date
  properties  delta.appendOnly=true
  features    appendOnly, invariants
  rows        12,003
  files       20 files, 12.4 MB
";
    assert_eq!(described("lake/silver/orders", &description), expected);
}

#[test]
fn a_log_newest_first() {
    let samples = samples::commits();
    let expected = "\
10  2026-10-05 04:12:33 UTC  WRITE  orders=42  deltaonce/0.1.0  run nightly
    predicate=order_date = '2026-10-05', numOutputRows=1,000
 9  2026-10-05 04:12:33 UTC  OPTIMIZE
";
    assert_eq!(history("lake/silver/orders", &samples), expected);
    assert_eq!(samples[0].metrics["numCopiedRows"], "0");
    assert_eq!(history("t", &[]), "t has no version in its log\n");
}

#[test]
fn an_entry_that_the_log_still_holds() {
    let commit = samples::commits().remove(0);
    assert_eq!(held("t", &commit), "held       version 10 of t is this load's entry (2026-10-05 04:12:33 UTC)\n");
}

#[test]
fn recorded_identities() {
    let recorded =
        |app_id: &str, version, last_updated| RecordedIdentity { app_id: app_id.to_owned(), version, last_updated };
    let txns = [recorded("clicks", 7, None), recorded("orders_v1", 42, Some(MORNING))];
    assert_eq!(identities("t", &txns), "clicks=7\norders_v1=42  2026-10-05 04:12:33 UTC\n");
    assert_eq!(identities("t", &[]), "t records no identity\n");
}
