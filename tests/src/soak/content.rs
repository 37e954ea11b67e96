//! What the table must hold in the end, on a plain map: whatever the interleaving, there is one answer.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use serde_json::{Value, json};

/// One row; `id` is the key of every contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: i64,
    pub(super) day: &'static str,
    pub(super) seq: i64,
    pub(super) status: String,
}

/// How rows come into the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// Their ids are new.
    Added,
    /// Those of absent ids are added; whoever brings an id brings the same row.
    Inserted,
    /// The greatest `seq` of an id wins; no two rows of an id share one.
    Newest,
    /// They take the place of the ids of this range, which one writer alone writes.
    Instead(Range<i64>),
}

/// The rows that the table must hold.
#[derive(Debug, Default)]
pub(super) struct Content(BTreeMap<i64, Row>);

impl Content {
    /// Takes in what was acknowledged.
    pub(super) fn take(&mut self, way: &Way, rows: &[Row]) {
        if let Way::Instead(scope) = way {
            self.0.retain(|id, _| !scope.contains(id));
        }
        for row in rows {
            if *way != Way::Newest || self.0.get(&row.id).is_none_or(|held| held.seq < row.seq) {
                self.0.insert(row.id, row.clone());
            }
        }
    }

    /// The rows as [`Ledger::rows`](crate::ledger::Ledger::rows) spells them, sorted.
    pub(super) fn rows(&self) -> Vec<String> {
        let mut rows: Vec<String> = self.0.values().map(Row::spelt).collect();
        rows.sort();
        rows
    }
}

impl Row {
    /// As [`Ledger::rows`](crate::ledger::Ledger::rows) spells it.
    pub(super) fn spelt(&self) -> String {
        let Self { id, day, seq, status } = self;
        format!("day={day} id={id} seq={seq} status={status}")
    }
}

/// The table's columns.
pub(super) const COLUMNS: &str = "id bigint, day date, seq bigint, status string";

/// Rows as a source.
pub(super) fn csv(rows: &[Row]) -> String {
    let mut csv = "id,day,seq,status\n".to_owned();
    for Row { id, day, seq, status } in rows {
        writeln!(csv, "{id},{day},{seq},{status}").expect("a text takes more");
    }
    csv
}

/// What makes the peer append rows.
pub(super) fn write_request(rows: &[Row]) -> Value {
    let rows: Vec<Value> =
        rows.iter().map(|Row { id, day, seq, status }| json!([day, id.to_string(), seq.to_string(), status])).collect();
    // In the names' order, which is the order of a JSON object here.
    json!({"schema": {"day": "date32", "id": "int64", "seq": "int64", "status": "string"}, "rows": rows})
}
