//! Rows that are known before any file holds them.

use super::random::Random;

/// A column's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bigint,
    Smallint,
    Text,
    Double,
    Decimal,
    Date,
    Timestamp,
    Boolean,
}

const KINDS: [Kind; 8] =
    [Kind::Bigint, Kind::Smallint, Kind::Text, Kind::Double, Kind::Decimal, Kind::Date, Kind::Timestamp, Kind::Boolean];

impl Kind {
    pub(super) fn sql(self) -> &'static str {
        match self {
            Self::Bigint => "bigint",
            Self::Smallint => "smallint",
            Self::Text => "string",
            Self::Double => "double",
            Self::Decimal => "decimal(12,2)",
            Self::Date => "date",
            Self::Timestamp => "timestamp",
            Self::Boolean => "boolean",
        }
    }

    /// A value, spelt as files may hold it and as the ledger shows it.
    fn value(self, random: &mut Random) -> String {
        match self {
            Self::Bigint => match random.below(4) {
                0 => random.pick(&[i64::MIN, i64::MAX, 0, 9_007_199_254_740_993]).to_string(),
                1 => (random.next() as i64).to_string(),
                _ => random.within(-9, 9).to_string(),
            },
            Self::Smallint => random.within(-32_768, 32_767).to_string(),
            Self::Text => text(random),
            Self::Double => format!("{:?}", random.within(-8_000_000, 8_000_000) as f64 / 8.0),
            Self::Decimal => {
                let unscaled = random.within(-999_999_999_999, 999_999_999_999);
                let sign = if unscaled < 0 { "-" } else { "" };
                format!("{sign}{}.{:02}", unscaled.abs() / 100, unscaled.abs() % 100)
            }
            Self::Date => date(random),
            Self::Timestamp => {
                let time =
                    format!("{}T{:02}:{:02}:{:02}", date(random), random.below(24), random.below(60), random.below(60));
                // No final zeros: the ledger would show three, six or nine digits all the same.
                let fraction = *random.pick(&["", ".123", ".000001", ".999999"]);
                format!("{time}{fraction}Z")
            }
            Self::Boolean => random.once_in(2).to_string(),
        }
    }
}

fn date(random: &mut Random) -> String {
    format!("{:04}-{:02}-{:02}", random.within(1, 9_999), random.within(1, 12), random.within(1, 28))
}

/// Text with what splits or quotes fields, ends lines, or is more than a byte.
fn text(random: &mut Random) -> String {
    const PIECES: [&str; 26] = [
        "a", "B", "7", " ", "\"", "'", ",", ";", "|", "\t", "\n", "\r\n", "\r", "\\", "\\N", "é", "漢", "😀",
        "\u{feff}", "\u{2028}", "\u{1}", "{", "}", "[", ":", "=",
    ];
    let longest = if random.once_in(200) { 4_000 } else { 12 };
    let text: String = (0..random.length(longest)).map(|_| *random.pick(&PIECES)).collect();
    if random.once_in(12) { random.pick(&["NULL", "true", "1", "NaN", "-", "id"]).to_string() } else { text }
}

/// Rows of a table, the first column being `id`, which is never null.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) columns: Vec<(String, Kind)>,
    pub(super) rows: Vec<Vec<Option<String>>>,
}

impl Grid {
    pub(super) fn new(random: &mut Random) -> Self {
        let mut columns = vec![("id".to_owned(), Kind::Bigint)];
        let names = ["a", "B2", "ö", "_x", "z\"q", "'s"];
        for name in names.iter().take(random.length(names.len())) {
            columns.push(((*name).to_owned(), *random.pick(&KINDS)));
        }
        // Now and then more than a chunk of a file.
        let count = if random.once_in(150) { 60_000 / columns.len() } else { random.length(60) };
        let rows = (0..count)
            .map(|id| {
                let others = columns.iter().skip(1).map(|(_, kind)| (!random.once_in(5)).then(|| kind.value(random)));
                let others: Vec<_> = others.collect();
                std::iter::once(Some(id.to_string())).chain(others).collect()
            })
            .collect();
        Self { columns, rows }
    }

    /// The columns in SQL.
    pub(super) fn schema(&self) -> String {
        let columns = self.columns.iter().map(|(name, kind)| format!("`{name}` {}", kind.sql()));
        columns.collect::<Vec<_>>().join(", ")
    }

    /// The rows as [`Ledger`](crate::ledger::Ledger) shows them.
    pub(super) fn shown(&self) -> Vec<String> {
        let mut by_name: Vec<usize> = (0..self.columns.len()).collect();
        by_name.sort_by(|a, b| self.columns[*a].0.cmp(&self.columns[*b].0));
        let row = |row: &Vec<Option<String>>| {
            let cells =
                by_name.iter().map(|at| format!("{}={}", self.columns[*at].0, row[*at].as_deref().unwrap_or("null")));
            cells.collect::<Vec<_>>().join(" ")
        };
        let mut rows: Vec<String> = self.rows.iter().map(row).collect();
        rows.sort();
        rows
    }
}
