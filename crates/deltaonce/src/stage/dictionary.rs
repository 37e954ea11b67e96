//! Which columns a dictionary would not pay for.
//!
//! Parquet's writer starts every column chunk with a dictionary and gives it up when it overflows. For a column of distinct values that is
//! a hash of every value until then, in every row group, for nothing.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use arrow::row::{RowConverter, SortField};

/// Bytes at which a dictionary is given up.
pub(super) const LIMIT: usize = 1024 * 1024;

const SAMPLE: usize = 8192;
const LEAST_SAMPLE: usize = 2048;

/// Names of top-level columns whose dictionary would overflow, judged from the first rows of a file.
///
/// Rows that are too few to judge by give none.
pub(super) fn futile(rows: &RecordBatch) -> Vec<String> {
    if rows.num_rows() < LEAST_SAMPLE {
        return Vec::new();
    }
    let sample = rows.slice(0, rows.num_rows().min(SAMPLE));
    let schema = sample.schema();
    let columns = schema.fields().iter().zip(sample.columns());
    columns.filter(|(_, column)| overflows(column)).map(|(field, _)| field.name().clone()).collect()
}

fn overflows(column: &ArrayRef) -> bool {
    let values = column.len() - column.null_count();
    let (Some(width), true) = (width(column), values >= LEAST_SAMPLE) else { return false };
    let Some(distinct) = distinct(column) else { return false };
    let repeats = values.saturating_sub(distinct);
    // Draws from n equally likely values repeat one about draws² / 2n times, so n is about draws² / 2·repeats.
    let Some(expected) = (values * values).checked_div(2 * repeats) else { return true };
    expected.saturating_mul(width) > LIMIT
}

/// Bytes of one value in a dictionary; none for columns that have none or are not judged.
fn width(column: &ArrayRef) -> Option<usize> {
    match column.data_type() {
        DataType::Boolean => None,
        DataType::Utf8 => {
            let text = column.as_string_opt::<i32>()?;
            let (first, last) = (text.value_offsets().first()?, text.value_offsets().last()?);
            let bytes = usize::try_from(last - first).ok()?;
            Some(4 + bytes / column.len().max(1))
        }
        other => other.primitive_width(),
    }
}

fn distinct(column: &ArrayRef) -> Option<usize> {
    let converter = RowConverter::new(vec![SortField::new(column.data_type().clone())]).ok()?;
    let rows = converter.convert_columns(std::slice::from_ref(column)).ok()?;
    let values: HashSet<_> =
        rows.iter().enumerate().filter(|(row, _)| column.is_valid(*row)).map(|(_, value)| value).collect();
    Some(values.len())
}
