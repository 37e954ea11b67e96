//! CSV files as batches of a table's types.
//!
//! `arrow-csv` is not used: it pads or cuts ragged records on request only as a whole, cannot tell `""` from nothing,
//! and types values leniently.

mod header;
mod records;

use std::sync::Arc;

use arrow::array::RecordBatchOptions;
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};

use super::chunks::{self, Chunk};
use super::{Place, SourceBatch, Unit};
use crate::error::{Error, Result};
use crate::prepare::text::{self, Misfit};
use crate::table::schema::TableSchema;
use header::Layout;
use records::{Dialect, Fault, Faulty, Field, Records, Splitter};

/// The most rows in a batch: what is split stays in a core's cache until it is typed.
const ROWS: usize = 8192;

/// How a CSV file is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CsvOptions {
    /// The ASCII character between fields.
    pub delimiter: u8,
    /// The ASCII character around fields, doubled within them; none: quotes are characters like any other.
    pub quote: Option<u8>,
    /// The unquoted text that stands for null; none: an unquoted field with nothing in it.
    pub null: Option<String>,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self { delimiter: b',', quote: Some(b'"'), null: None }
    }
}

impl CsvOptions {
    fn dialect(&self) -> Result<Dialect> {
        let bad = |byte: u8| !byte.is_ascii() || matches!(byte, b'\n' | b'\r' | 0);
        if bad(self.delimiter) {
            return Err(Error::invalid("the CSV delimiter must be one ASCII character, and no line end"));
        }
        if self.quote.is_some_and(bad) {
            return Err(Error::invalid("the CSV quote must be one ASCII character, and no line end"));
        }
        if self.quote == Some(self.delimiter) {
            return Err(Error::invalid("the CSV delimiter and the CSV quote are the same character"));
        }
        Ok(Dialect { delimiter: self.delimiter, quote: self.quote })
    }
}

/// Reads the decompressed bytes of a CSV file with a header, `parallelism` chunks at once.
///
/// Batches come in the order of the file, each with the columns that the header names, in the table's order and types,
/// all nullable. An empty string is told from null by its quotes, or by `null` text being declared.
///
/// # Errors
/// In the stream, as its last item; `Refused` for the first line that is not CSV, that has not the header's width, or
/// with a value that does not fit its column, named as `name` and a line (the header's being 1; a line feed within
/// quotes counts). `Refused` also for a header with names that are empty, repeated, or no column of the table, and
/// `Invalid` for unusable options.
pub(crate) fn read(
    name: Arc<str>,
    bytes: BoxStream<'static, Result<Bytes>>,
    schema: &TableSchema,
    options: &CsvOptions,
    parallelism: usize,
) -> BoxStream<'static, Result<SourceBatch>> {
    let (schema, options) = (schema.clone(), options.clone());
    stream::once(async move {
        let dialect = options.dialect()?;
        let chunks = chunks::chunks(bytes, dialect.quote);
        read_chunks(name, chunks, &schema, options, dialect, parallelism).await
    })
    .try_flatten()
    .boxed()
}

async fn read_chunks(
    name: Arc<str>,
    mut chunks: BoxStream<'static, Result<Chunk>>,
    schema: &TableSchema,
    options: CsvOptions,
    dialect: Dialect,
    parallelism: usize,
) -> Result<BoxStream<'static, Result<SourceBatch>>> {
    let empty = || Error::refused(format!("{name} is empty; a CSV file starts with a header"));
    let first = chunks.try_next().await?.ok_or_else(empty)?;
    let (text, end) = first.text();
    let mut splitter = Splitter::new(text, end, first.first_line, dialect);
    let names = match splitter.header() {
        Ok(Some(names)) => names,
        Ok(None) => return Err(empty()),
        Err(faulty) => return Err(refuse_fault(&name, faulty, &[])),
    };
    let layout = header::layout(&name, names, schema)?;
    let (taken, line) = splitter.position();
    let rest = Chunk { data: first.data.slice(taken..), first_line: line, overlong: first.overlong };
    let chunks = stream::once(async move { Ok(rest) }).chain(chunks).boxed();
    let reader = Reader { name, layout, null: options.null, dialect };
    Ok(chunks::read_chunks(chunks, parallelism, move |chunk| reader.read(&chunk)))
}

/// Reads chunks of one file.
struct Reader {
    name: Arc<str>,
    layout: Layout,
    null: Option<String>,
    dialect: Dialect,
}

impl Reader {
    fn read(&self, chunk: &Chunk) -> Result<Vec<SourceBatch>> {
        let (text, end) = chunk.text();
        let mut splitter = Splitter::new(text, end, chunk.first_line, self.dialect);
        let width = self.layout.names.len();
        let mut batches = Vec::new();
        loop {
            // A field takes a byte at least, its delimiter.
            let most = ((text.len() - splitter.position().0) / width + 1).min(ROWS);
            let (records, faulty) = splitter.records(width, most);
            let batch = self.batch(&records)?;
            if let Some(faulty) = faulty {
                return Err(refuse_fault(&self.name, faulty, &self.layout.names));
            }
            match batch {
                Some(batch) => batches.push(batch),
                None => return Ok(batches),
            }
        }
    }

    /// The records in the table's types; none where there are none.
    fn batch(&self, records: &Records<'_>) -> Result<Option<SourceBatch>> {
        let mut rows = records.rows();
        let mut first_misfit: Option<(usize, Misfit)> = None;
        let mut arrays = Vec::with_capacity(self.layout.fields.len());
        for (column, (&field, target)) in self.layout.fields.iter().zip(self.layout.schema.fields()).enumerate() {
            let texts = records.column(field, rows).map(|(field, text)| self.value(field, text));
            match text::column(target.data_type(), texts) {
                Ok(array) => arrays.push(array),
                // Other columns are read up to here only: the misfit of the first line is the one to name.
                Err(misfit) => {
                    rows = misfit.row;
                    first_misfit = Some((column, misfit));
                }
            }
        }
        let places = chunks::places(&self.name, records.lines());
        if let Some((column, misfit)) = first_misfit {
            let target = self.layout.schema.field(column);
            return Err(misfit.refuse(&places.of(misfit.row), target.name(), target.data_type()));
        }
        if rows == 0 {
            return Ok(None);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let rows =
            RecordBatch::try_new_with_options(self.layout.schema.clone(), arrays, &options).map_err(|error| {
                Error::internal(format!("{} was read into unequal columns", self.name)).caused_by(error)
            })?;
        Ok(Some(SourceBatch { rows, places }))
    }

    #[inline]
    fn value<'t>(&self, field: Field, text: &'t str) -> Option<&'t str> {
        let is_null = match &self.null {
            None => text.is_empty(),
            Some(null) => text == null,
        };
        if is_null && !field.is_quoted() { None } else { Some(text) }
    }
}

/// The refusal of a record that cannot be split; no names: it is the header.
fn refuse_fault(name: &Arc<str>, faulty: Faulty, names: &[String]) -> Error {
    let Faulty { fault, line, field } = faulty;
    let place = Place { source: name.clone(), unit: Unit::Line, number: line };
    let column = match names.get(field) {
        Some(column) => format!("column {column}"),
        None => format!("field {}", field + 1),
    };
    let doubled = "a quote within a quoted field is written twice, and a backslash escapes nothing";
    match fault {
        Fault::Ragged { fields } => {
            Error::refused(format!("{place}: the record has {fields} fields, the header has {}", names.len()))
        }
        Fault::StrayQuote => Error::refused(format!("{place}: {column} has a quote but does not start with it"))
            .hint(format!("{doubled}; if quotes mean nothing in this file, declare that it has none")),
        Fault::AfterQuote => Error::refused(format!("{place}: {column} goes on after its closing quote")).hint(doubled),
        Fault::OpenQuote => Error::refused(format!("{place}: {column} starts with a quote that is never closed"))
            .hint("the file may be cut short"),
        Fault::Overlong => chunks::refuse_overlong(&place).hint("a quote may have been left open"),
        Fault::NotUtf8 { byte } => chunks::refuse_not_utf8(&place, Some(&column), byte),
    }
}

#[cfg(test)]
mod tests;
