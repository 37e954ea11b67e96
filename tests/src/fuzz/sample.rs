//! A table of few rows with many corners, in several files, once plain and once partitioned.

use bytes::Bytes;
use deltaonce::{CsvOptions, Error, Format, Load, Receipt, Scope, Source, TableSpec};
use futures::stream;
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;

use super::lake::{Lake, Objects};
use super::random::Random;

/// One row. Decimals are in hundredths; dates and timestamps are ISO text, which orders as they do.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) id: i64,
    pub(super) p: Option<i64>,
    pub(super) q: Option<&'static str>,
    pub(super) b: Option<i64>,
    pub(super) n: Option<i64>,
    pub(super) m: Option<i64>,
    pub(super) f: Option<f64>,
    pub(super) s: Option<&'static str>,
    pub(super) d: Option<&'static str>,
    pub(super) t: Option<&'static str>,
    pub(super) k: Option<bool>,
}

pub(super) const INTS: [i64; 8] = [-2, -1, 0, 1, 2, 3, i32::MIN as i64, i32::MAX as i64];
pub(super) const BIGINTS: [i64; 8] = [0, 1, -1, 7, 9_007_199_254_740_992, 9_007_199_254_740_993, i64::MIN, i64::MAX];
pub(super) const HUNDREDTHS: [i64; 6] = [-150, 0, 10, 100, 105, 9_999_999_999];
pub(super) const DOUBLES: [f64; 8] = [f64::NAN, -0.0, 0.0, 1.5, -2.25, f64::INFINITY, f64::NEG_INFINITY, 1e300];
pub(super) const TEXTS: [&str; 14] = [
    "",
    "a",
    "A",
    "ab",
    "abc",
    "b%",
    "a_b",
    " x ",
    "é",
    "😀b",
    "it's",
    "a\nb",
    "\\",
    "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz",
];
pub(super) const PLAIN_TEXTS: [&str; 4] = ["a", "ab", "b", "zz"];
pub(super) const DATES: [&str; 6] =
    ["0001-01-01", "1969-12-31", "1970-01-01", "2024-02-29", "2024-03-01", "9999-12-31"];
pub(super) const TIMESTAMPS: [&str; 6] = [
    "0001-01-01T00:00:00.000000Z",
    "1969-12-31T23:59:59.999999Z",
    "1970-01-01T00:00:00.000000Z",
    "2024-02-29T12:00:00.000001Z",
    "2024-03-01T00:00:00.000000Z",
    "9999-12-31T23:59:59.999999Z",
];

/// The table, ready to be loaded into.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) rows: Vec<Row>,
    tables: [Objects; 2],
}

static SAMPLE: OnceCell<Sample> = OnceCell::const_new();

/// The same table for every case.
pub(super) async fn sample() -> &'static Sample {
    SAMPLE.get_or_init(Sample::make).await
}

impl Sample {
    async fn make() -> Self {
        const FILES: usize = 6;
        let mut random = Random::new(1);
        // Small domains in each file apart, so that statistics tell files apart.
        let rows: Vec<Row> = (0..54).map(|id| row(&mut random, id, id as usize / 9)).collect();
        let mut tables = [Objects::new(), Objects::new()];
        for (table, partition_by) in tables.iter_mut().zip([Vec::new(), vec!["p".to_owned(), "q".to_owned()]]) {
            let lake = Lake::holding(table).await;
            let schema = "id bigint not null, p int, q string, b int, n bigint, m decimal(10,2), f double, s string, \
                          d date, t timestamp, k boolean";
            let spec = TableSpec { schema: Some(schema.to_owned()), partition_by, ..TableSpec::default() };
            for file in rows.chunks(rows.len() / FILES) {
                let lines: String = file.iter().map(|row| row.json().to_string() + "\n").collect();
                let load = Load::append().create(spec.clone());
                lake.table().await.apply(&load, bytes(lines, Format::Ndjson)).await.expect("the sample is loaded");
            }
            *table = lake.objects().await;
        }
        Self { rows, tables }
    }

    /// A copy of the table.
    pub(super) async fn lake(&self, partitioned: bool) -> (Lake, &Objects) {
        let objects = &self.tables[usize::from(partitioned)];
        (Lake::holding(objects).await, objects)
    }
}

fn row(random: &mut Random, id: i64, file: usize) -> Row {
    fn some<T: Copy>(random: &mut Random, of: &[T], file: usize) -> Option<T> {
        match random.below(5) {
            0 => None,
            1 => Some(*random.pick(of)),
            // Two neighbours a file.
            _ => Some(of[(file + random.below(2)) % of.len()]),
        }
    }
    Row {
        id,
        p: some(random, &INTS[..4], file / 2),
        q: some(random, &PLAIN_TEXTS, file / 3),
        b: some(random, &INTS, file),
        n: some(random, &BIGINTS, file),
        m: some(random, &HUNDREDTHS, file),
        f: some(random, &DOUBLES, file),
        s: some(random, &TEXTS, 2 * file),
        d: some(random, &DATES, file),
        t: some(random, &TIMESTAMPS, file),
        k: some(random, &[true, false], file),
    }
}

impl Row {
    fn json(&self) -> Value {
        let mut row = Map::new();
        let double = |value: f64| match value {
            _ if value.is_nan() => json!("NaN"),
            _ if value.is_infinite() => json!(if value > 0.0 { "Infinity" } else { "-Infinity" }),
            _ => json!(value),
        };
        row.insert("id".into(), self.id.into());
        for (name, value) in [("p", self.p), ("b", self.b), ("n", self.n)] {
            row.insert(name.into(), value.into());
        }
        for (name, value) in [("q", self.q), ("s", self.s), ("d", self.d), ("t", self.t)] {
            row.insert(name.into(), value.into());
        }
        row.insert("m".into(), self.m.map(hundredths).into());
        row.insert("f".into(), self.f.map(double).into());
        row.insert("k".into(), self.k.into());
        Value::Object(row)
    }
}

/// `-150` as `-1.50`.
pub(super) fn hundredths(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", value.abs() / 100, value.abs() % 100)
}

/// Text as a source.
pub(super) fn bytes(text: impl Into<Bytes>, format: Format) -> Source {
    Source::bytes(stream::iter([Ok(text.into())]), format).csv(CsvOptions::default()).name("rows")
}

/// Replaces the rows of a scope by none.
pub(super) async fn empty(lake: &Lake, scope: Scope) -> Result<Receipt, Error> {
    let load = Load::replace(scope).allow_empty(true);
    lake.table().await.apply(&load, bytes("id\n", Format::Csv)).await
}

/// The ids of the rows that are left.
pub(super) async fn ids(lake: &Lake) -> Vec<i64> {
    let id = |row: &String| {
        // A text may hold anything; the id comes after it by name, and is followed by another column.
        let (_, rest) = row.split_once(" id=").expect("a row has an id");
        rest.split(' ').next().and_then(|id| id.parse().ok()).expect("an id is a number")
    };
    let mut ids: Vec<i64> = lake.rows().await.iter().map(id).collect();
    ids.sort_unstable();
    ids
}
