//! The loads under test: one for each contract, on a table where it has something to do.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use deltaonce::{Format, Load, Outcome, Receipt, Scope, Source, TableSpec};

use super::place::{Medium, Objects, Place};

/// A load and its rows.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) load: Load,
    rows: Arc<str>,
}

impl Work {
    fn new(load: Load, rows: &str) -> Self {
        Self { load, rows: format!("id,day,value,version\n{rows}").into() }
    }

    /// Its rows, to be read once.
    pub(super) fn source(&self) -> Source {
        Source::reader(Cursor::new(self.rows.as_bytes().to_vec()), Format::Csv)
    }

    pub(super) fn within(&self, deadline: Duration) -> Self {
        Self { load: self.load.clone().deadline(deadline), rows: self.rows.clone() }
    }
}

/// What running a load once more does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    Skipped,
    Unchanged,
    /// It has no identity and adds its rows once more.
    Doubles,
}

impl Again {
    pub(super) fn is(self, receipt: &Receipt) -> bool {
        match self {
            Self::Skipped => matches!(receipt.outcome, Outcome::Skipped { .. }),
            Self::Unchanged => matches!(receipt.outcome, Outcome::Unchanged { .. }),
            Self::Doubles => matches!(receipt.outcome, Outcome::Committed { .. }),
        }
    }
}

/// A load on the table that it is meant for.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) work: Work,
    pub(super) again: Again,
    pub(super) base: Objects,
}

/// An app id that half of the loads carry.
pub(super) const APP: &str = "orders";

const SCHEMA: &str = "id bigint not null, day date, value string, version bigint";

fn spec(partition_by: &[&str], checkpoint_interval: u32) -> TableSpec {
    TableSpec {
        schema: Some(SCHEMA.to_owned()),
        partition_by: partition_by.iter().map(|name| (*name).to_owned()).collect(),
        properties: vec![("delta.checkpointInterval".to_owned(), checkpoint_interval.to_string())],
    }
}

/// A table of five rows in two loads: `1, 2` on the fifth and `3` on the sixth, then `4, 5` on the seventh.
async fn base(spec: TableSpec) -> Objects {
    let place = Place::holding(Medium::Memory, &Objects::default()).await;
    let first = "1,2026-10-05,one,1\n2,2026-10-05,two,5\n3,2026-10-06,three,1\n";
    for work in [
        Work::new(Load::append().create(spec), first),
        Work::new(Load::append(), "4,2026-10-07,four,1\n5,2026-10-07,five,1\n"),
    ] {
        place.load(&work).await.unwrap();
    }
    place.objects().await
}

/// All of them, by name.
pub(super) async fn cases() -> Vec<Case> {
    let plain = base(spec(&[], 100)).await;
    let case = |name, load, rows: &str, again, base: &Objects| Case {
        name,
        work: Work::new(load, rows),
        again,
        base: base.clone(),
    };
    let added = "8,2026-10-06,eight,1\n9,2026-10-07,nine,1\n";
    vec![
        // Lands as version 2, which is due for a checkpoint.
        case("append with an identity", Load::append().txn(APP, 7), added, Again::Skipped, &base(spec(&[], 2)).await),
        case("append", Load::append(), added, Again::Doubles, &plain),
        // The first file holds rows of the scope and others.
        case(
            "replace where",
            Load::replace(Scope::Where("day = '2026-10-05'".to_owned())),
            "1,2026-10-05,uno,2\n8,2026-10-05,ocho,1\n",
            Again::Unchanged,
            &plain,
        ),
        case(
            "replace partitions",
            Load::replace(Scope::Partitions),
            "1,2026-10-05,uno,2\n8,2026-10-08,ocho,1\n",
            Again::Unchanged,
            &base(spec(&["day"], 100)).await,
        ),
        // The table is read from a checkpoint. One row is newer, one older, one new.
        case(
            "merge",
            Load::merge(["id"]).newest_by("version desc").unwrap(),
            "1,2026-10-05,uno,2\n2,2026-10-05,dos,4\n8,2026-10-06,ocho,2\n",
            Again::Unchanged,
            &base(spec(&[], 1)).await,
        ),
        case("insert", Load::insert(["id"]), "1,2026-10-05,uno,2\n9,2026-10-06,nueve,1\n", Again::Unchanged, &plain),
        case("create", Load::append().create(spec(&[], 100)).txn(APP, 7), added, Again::Skipped, &Objects::default()),
    ]
}

/// What another writer updates, each time newer: a row of the file that the merge rewrites.
pub(super) fn rivals_merge(version: usize) -> Work {
    let load = Load::merge(["id"]).newest_by("version desc").unwrap();
    Work::new(load, &format!("2,2026-10-05,rival,{}\n", version + 10))
}

/// What another writer adds: keys that some of the loads hold too, in days that some replace.
pub(super) fn rivals_append() -> Work {
    let rows = "8,2026-10-05,rival,5\n9,2026-10-08,rival,1\n20,2026-10-06,rival,1\n";
    Work::new(Load::append().create(spec(&[], 100)), rows)
}
