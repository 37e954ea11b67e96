//! Where rows come from: files and batches, as a stream of record batches that know where each row stood.

mod arrow_ipc;
mod batches;
mod chunks;
pub(crate) mod csv;
mod fault;
mod format;
mod given;
mod input;
pub(crate) mod json;
mod listing;
mod names;
mod object;
mod open;
mod parquet;
mod worker;

use std::fmt;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;

pub use csv::CsvOptions;
pub use format::Format;
pub use given::Source;
pub(crate) use open::OpenSource;

/// What one number of a [`Place`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Lines of a text file, from 1, the header included.
    Line,
    /// Rows of a typed file or batch stream, from 1.
    Row,
}

/// Where a row stood in its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) source: Arc<str>,
    pub(crate) unit: Unit,
    pub(crate) number: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            Unit::Line => "line",
            Unit::Row => "row",
        };
        write!(f, "{} {unit} {}", self.source, self.number)
    }
}

/// Where each row of a batch stood in its source.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    sources: Sources,
    numbers: Numbers,
}

#[derive(Debug, Clone)]
enum Sources {
    One(Arc<str>, Unit),
    /// Row i stood in the source whose number is the i-th.
    Each(Arc<[(Arc<str>, Unit)]>, Arc<[u32]>),
}

#[derive(Debug, Clone)]
enum Numbers {
    /// Row i stood at this number + i.
    From(u64),
    /// Row i stood at the i-th number (a record may span lines).
    Each(Arc<[u64]>),
}

impl Places {
    /// Rows that stood one after the other, the first at `first`.
    pub(crate) fn consecutive(source: Arc<str>, unit: Unit, first: u64) -> Self {
        Self { sources: Sources::One(source, unit), numbers: Numbers::From(first) }
    }

    /// Rows that stood where `numbers` says.
    pub(crate) fn each(source: Arc<str>, unit: Unit, numbers: Arc<[u64]>) -> Self {
        Self { sources: Sources::One(source, unit), numbers: Numbers::Each(numbers) }
    }

    /// Rows of several sources: row i stood in that of `sources` which the i-th of `which` counts, where the i-th of
    /// `numbers` says.
    pub(crate) fn mixed(sources: Arc<[(Arc<str>, Unit)]>, which: Arc<[u32]>, numbers: Arc<[u64]>) -> Self {
        Self { sources: Sources::Each(sources, which), numbers: Numbers::Each(numbers) }
    }

    /// Where row `row` of the batch stood.
    pub(crate) fn of(&self, row: usize) -> Place {
        let number = match &self.numbers {
            Numbers::From(first) => first + row as u64,
            Numbers::Each(numbers) => numbers.get(row).copied().unwrap_or_default(),
        };
        let (source, unit) = match &self.sources {
            Sources::One(source, unit) => (source.clone(), *unit),
            Sources::Each(sources, which) => {
                let source = which.get(row).and_then(|which| sources.get(*which as usize)).cloned();
                source.unwrap_or_else(|| ("the source".into(), Unit::Row))
            }
        };
        Place { source, unit, number }
    }
}

/// Rows of a source, with where they stood.
#[derive(Debug, Clone)]
pub(crate) struct SourceBatch {
    /// Columns as the source has them: of the table's types where the source is text, of its own where it is typed.
    pub(crate) rows: RecordBatch,
    pub(crate) places: Places,
}
