//! What a table holds, as text that every reader spells alike.

use std::collections::BTreeMap;

use serde_json::Value;

/// One row: column to canonical text, or null (`tests/peers/content.py`).
pub type Row = BTreeMap<String, Option<String>>;

/// Rows of a table, sorted, so that equal content compares equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows(pub Vec<Row>);

impl Rows {
    /// Reads the JSON objects that a peer answered or that a golden file holds.
    ///
    /// # Panics
    /// Where a row is not an object of text and null.
    pub fn from_json(rows: impl IntoIterator<Item = Value>) -> Self {
        let mut rows: Vec<Row> = rows
            .into_iter()
            .map(|row| serde_json::from_value(row).expect("a row is an object of text and null"))
            .collect();
        rows.sort();
        Self(rows)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values of one column, nulls as `"null"`, in the rows' order.
    ///
    /// # Panics
    /// Where a row lacks the column.
    #[must_use]
    pub fn column(&self, name: &str) -> Vec<&str> {
        self.0.iter().map(|row| text(&row[name])).collect()
    }

    /// The one row whose `column` is `value`.
    ///
    /// # Panics
    /// Where there is none, or more than one.
    #[must_use]
    pub fn only(&self, column: &str, value: &str) -> &Row {
        let found: Vec<&Row> = self.0.iter().filter(|row| row[column].as_deref() == Some(value)).collect();
        assert_eq!(found.len(), 1, "rows with {column}={value}: {found:#?}");
        found[0]
    }

    /// A table of some columns, a row a line, for snapshots.
    #[must_use]
    pub fn show(&self, columns: &[&str]) -> String {
        let lines = self.0.iter().map(|row| columns.iter().map(|c| text(&row[*c])).collect::<Vec<_>>().join("  "));
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or("null")
}
