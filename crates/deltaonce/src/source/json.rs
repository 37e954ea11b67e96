//! NDJSON files, one object a line, as batches of a table's types.

mod columns;
mod scan;

use std::sync::Arc;

use arrow::array::RecordBatchOptions;
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use futures::stream::BoxStream;

use super::chunks::{self, Chunk, End};
use super::names::refuse_unknown;
use super::{Place, SourceBatch, Unit};
use crate::error::{Error, Result};
use crate::prepare::text::{Misfit, shown};
use crate::table::schema::TableSchema;
use columns::{Names, Unfit, column};
use scan::Json;

/// The most rows in a batch: what is scanned stays in a core's cache until it is typed.
const ROWS: usize = 4096;

/// Reads the decompressed bytes of an NDJSON file, `parallelism` chunks at once.
///
/// Batches come in the order of the file, each with all of the table's columns, in its order and types, all nullable at
/// the top; a column that an object lacks is null. Lines with nothing but space are passed over. Numbers are
/// read from their digits; decimals, dates and timestamps may be strings, other numbers may not.
///
/// # Errors
/// In the stream, as its last item: `Refused` for the first line, named as `name` and its number, that is not one JSON
/// object, has a key twice or one that is no column, or has a value that does not fit its column.
pub(crate) fn read(
    name: Arc<str>,
    bytes: BoxStream<'static, Result<Bytes>>,
    schema: &TableSchema,
    parallelism: usize,
) -> BoxStream<'static, Result<SourceBatch>> {
    read_chunks(name, chunks::chunks(bytes, None), schema, parallelism)
}

fn read_chunks(
    name: Arc<str>,
    chunks: BoxStream<'static, Result<Chunk>>,
    schema: &TableSchema,
    parallelism: usize,
) -> BoxStream<'static, Result<SourceBatch>> {
    let fields = schema.columns().fields().iter();
    let fields: Vec<_> = fields.map(|field| Field::new(field.name(), field.data_type().clone(), true)).collect();
    let reader = Reader { name, table: schema.clone(), columns: Arc::new(Schema::new(fields)) };
    chunks::read_chunks(chunks, parallelism, move |chunk| reader.read(&chunk))
}

/// Reads chunks of one file.
struct Reader {
    name: Arc<str>,
    table: TableSchema,
    columns: SchemaRef,
}

/// Values of consecutive objects, column by column.
struct Objects<'a> {
    values: Vec<Vec<Json<'a>>>,
    lines: Vec<u64>,
}

impl Reader {
    fn read(&self, chunk: &Chunk) -> Result<Vec<SourceBatch>> {
        let (text, end) = chunk.text();
        let mut batches = Vec::new();
        let mut objects = self.objects();
        let mut names = Names::of(self.columns.fields());
        let mut lines = text.split('\n').peekable();
        let mut number = chunk.first_line;
        while let Some(line) = lines.next() {
            let scanned = if lines.peek().is_none() && end != End::Whole {
                Err(self.cut_off(number, line, end))
            } else {
                self.object(line, number, &mut names, &mut objects)
            };
            if let Err(refused) = scanned {
                // A misfit in a line before is the one to name.
                self.batch(&objects)?;
                return Err(refused);
            }
            number += 1;
            if objects.lines.len() == ROWS {
                batches.extend(self.batch(&objects)?);
                objects = self.objects();
            }
        }
        batches.extend(self.batch(&objects)?);
        Ok(batches)
    }

    fn objects<'a>(&self) -> Objects<'a> {
        Objects { values: vec![Vec::new(); self.columns.fields().len()], lines: Vec::new() }
    }

    fn place(&self, number: u64) -> Place {
        Place { source: self.name.clone(), unit: Unit::Line, number }
    }

    /// Adds the object on a line, or nothing if the line is blank. After an error `objects` has a row in part.
    fn object<'a>(&self, line: &'a str, number: u64, names: &mut Names<'_>, objects: &mut Objects<'a>) -> Result<()> {
        let text = line.trim_matches([' ', '\t', '\r']);
        if text.is_empty() {
            return Ok(());
        }
        let row = objects.lines.len();
        let scanned = scan::members(text, |key, value| {
            let key = key.text().map_err(|why| {
                Error::refused(format!("{}: key '{}' {why}", self.place(number), shown(&Json::String(key).to_string())))
            })?;
            let Some(values) = names.find(&key).and_then(|at| objects.values.get_mut(at)) else {
                return Err(refuse_unknown(&format!("{}: the object has key", self.place(number)), &key, &self.table));
            };
            if values.len() > row {
                return Err(Error::refused(format!("{}: key '{}' is there twice", self.place(number), shown(&key))));
            }
            values.push(value);
            Ok(())
        })?;
        if let Err(malformed) = scanned {
            let byte = malformed.at + 1 + (line.len() - line.trim_start_matches([' ', '\t', '\r']).len());
            let error =
                Error::refused(format!("{}: this is not one JSON object, from byte {byte} on", self.place(number)))
                    .detail(shown(text));
            return Err(if text.starts_with('[') {
                error.hint("NDJSON has one object a line, without an array around them")
            } else {
                error
            });
        }
        objects.lines.push(number);
        objects.values.iter_mut().for_each(|values| values.resize(row + 1, Json::Null));
        Ok(())
    }

    fn cut_off(&self, number: u64, line: &str, end: End) -> Error {
        match end {
            End::NotUtf8 => chunks::refuse_not_utf8(&self.place(number), None, line.len() + 1),
            End::Whole | End::Overlong => chunks::refuse_overlong(&self.place(number)),
        }
    }

    /// The objects in the table's types; none where there are none.
    fn batch(&self, objects: &Objects<'_>) -> Result<Option<SourceBatch>> {
        let mut rows = objects.lines.len();
        let mut first_misfit: Option<(usize, Misfit)> = None;
        let mut arrays = Vec::with_capacity(objects.values.len());
        for (at, (values, field)) in objects.values.iter().zip(self.columns.fields()).enumerate() {
            // Once a misfit is found all is read up to it only, the same column too: nested values are not visited row
            // by row, and the misfit of the first line is the one to name.
            loop {
                match column(field.data_type(), values.get(..rows).unwrap_or_default()) {
                    Ok(array) => arrays.push(array),
                    Err(Unfit::Misfit(misfit)) => {
                        rows = misfit.row;
                        first_misfit = Some((at, misfit));
                        continue;
                    }
                    Err(Unfit::Arrow(error)) => return Err(self.defect().caused_by(error)),
                }
                break;
            }
        }
        if let Some((at, misfit)) = first_misfit {
            let field = self.columns.field(at);
            let line = objects.lines.get(misfit.row).copied().unwrap_or_default();
            return Err(misfit.refuse(&self.place(line), field.name(), field.data_type()));
        }
        if rows == 0 {
            return Ok(None);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let rows = RecordBatch::try_new_with_options(self.columns.clone(), arrays, &options)
            .map_err(|error| self.defect().caused_by(error))?;
        Ok(Some(SourceBatch { rows, places: chunks::places(&self.name, &objects.lines) }))
    }

    fn defect(&self) -> Error {
        Error::internal(format!("{} was read into arrays that do not fit together", self.name))
    }
}

#[cfg(test)]
mod tests;
