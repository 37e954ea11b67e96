//! What of a file that is written again must be decoded for it.

use std::future::ready;
use std::ops::Range;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use parquet::arrow::ArrowSchemaConverter;
use parquet::file::metadata::ColumnChunkMetaData;
use roaring::RoaringTreemap;

use crate::error::{Error, Result};
use crate::stage::Piece;
use crate::table::encoded::place;
use crate::table::row_ranges::RowRanges;
use crate::table::scan::{OpenFile, Scanned};
use crate::table::schema::TableSchema;

/// Bytes of a row group from which on it is copied: smaller ones are better put together again, and cost a reader of them as
/// many requests.
const LEAST_COPIED: i64 = 1024 * 1024;

/// Rows that follow each other in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Run {
    /// Rows at these places, which are decoded.
    Rows(Range<u64>),
    /// The rows of the row group of this number, which are taken as they are.
    Group(usize),
}

/// Cuts `file` into row groups that can be copied and the rows between them, among which are all `changed` ones.
///
/// A row group is copied from [`LEAST_COPIED`] on, and where none of its rows changed or is masked, its columns are just those that a new file
/// would have, none of them nested (Parquet counts nulls in lists otherwise than the log does), and what its file says of
/// them is enough for a new one: where their pages are, and statistics. Whether a column of floats holds NaN these do not
/// tell, so such columns are read.
///
/// # Errors
/// Those of reading.
pub(super) async fn runs(file: &OpenFile, changed: &RoaringTreemap) -> Result<Vec<Run>> {
    runs_from(file, changed, LEAST_COPIED).await
}

async fn runs_from(file: &OpenFile, changed: &RoaringTreemap, least: i64) -> Result<Vec<Run>> {
    let (schema, footer) = (file.schema(), file.footer());
    let flat = schema.columns().fields().iter().all(|field| !field.data_type().is_nested());
    if !flat || !has_our_columns(file)? || footer.file_metadata().column_orders().is_none() {
        return Ok(vec![Run::Rows(0..file.physical_rows())]);
    }
    let floats = floats(schema);
    let mut runs: Vec<Run> = Vec::new();
    for ((number, place), group) in file.groups().iter().cloned().enumerate().zip(footer.row_groups()) {
        // Parquet's writer takes either all chunks of a file with the places of their pages, or none.
        let pages = footer.offset_index().and_then(|groups| groups.get(number)).map_or(0, Vec::len);
        let copied = !place.is_empty()
            && group.compressed_size() >= least
            && pages == group.columns().len()
            && !touches(changed, &place)
            && !touches(file.masked(), &place)
            && group.columns().iter().all(|chunk| tells_enough(chunk, group.num_rows(), file.file().size))
            && !has_nan(file, &floats, &place).await?;
        match runs.last_mut() {
            _ if copied => runs.push(Run::Group(number)),
            Some(Run::Rows(rows)) => rows.end = place.end,
            _ => runs.push(Run::Rows(place)),
        }
    }
    Ok(runs)
}

/// What [`runs`] of `file` are written as; `rows` reads those at places.
pub(super) fn pieces(
    file: &OpenFile,
    runs: Vec<Run>,
    mut rows: impl FnMut(Range<u64>) -> BoxStream<'static, Result<RecordBatch>>,
) -> BoxStream<'static, Result<Piece>> {
    let pieces = runs.into_iter().map(|run| match run {
        Run::Rows(places) => rows(places).map_ok(Piece::Rows).boxed(),
        Run::Group(number) => stream::once(ready(file.encoded(number).map(Piece::Group))).boxed(),
    });
    stream::iter(pieces.collect::<Vec<_>>()).flatten().boxed()
}

fn touches(places: &RoaringTreemap, group: &Range<u64>) -> bool {
    let before = |end: u64| end.checked_sub(1).map_or(0, |last| places.rank(last));
    before(group.end) > before(group.start)
}

/// Whether a new file would have the same columns, in Parquet's types.
fn has_our_columns(file: &OpenFile) -> Result<bool> {
    let ours = ArrowSchemaConverter::new().convert(&file.schema().file_columns()).map_err(|e| {
        Error::internal("the table's columns could not be written to Parquet").detail(e.to_string()).caused_by(e)
    })?;
    Ok(ours.root_schema().get_fields() == file.parquet_schema().root_schema().get_fields())
}

/// The table's columns of floats that files hold.
fn floats(schema: &TableSchema) -> Vec<usize> {
    let held = |field: &Field| {
        matches!(field.data_type(), DataType::Float32 | DataType::Float64) && !schema.is_partition_column(field.name())
    };
    (0..).zip(schema.columns().fields()).filter(|(_, field)| held(field)).map(|(number, _)| number).collect()
}

fn tells_enough(chunk: &ColumnChunkMetaData, rows: i64, file_size: i64) -> bool {
    let values = chunk.num_values().unsigned_abs();
    let known = chunk.statistics().is_some_and(|statistics| {
        let bounded = statistics.min_bytes_opt().is_some() && !statistics.is_min_max_deprecated();
        statistics.null_count_opt().is_some_and(|nulls| nulls == values || nulls < values && bounded)
    });
    let lies_within = |(start, length): (u64, u64)| start.saturating_add(length) <= file_size.unsigned_abs();
    known && chunk.num_values() == rows && place(chunk).is_some_and(lies_within)
}

async fn has_nan(file: &OpenFile, floats: &[usize], group: &Range<u64>) -> Result<bool> {
    if floats.is_empty() {
        return Ok(false);
    }
    let any = |scanned: Scanned| {
        Ok(scanned.rows.columns().iter().any(|column| match column.data_type() {
            DataType::Float32 => column.as_primitive::<Float32Type>().values().iter().any(|value| value.is_nan()),
            _ => column.as_primitive_opt::<Float64Type>().is_none_or(|all| all.values().iter().any(|v| v.is_nan())),
        }))
    };
    let mut batches = file.scan(floats, Some(&RowRanges::of([group.clone()])), any);
    while let Some(any) = batches.try_next().await? {
        if any {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
