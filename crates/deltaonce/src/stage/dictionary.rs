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

/// Names of top-level columns whose dictionary would overflow, judged from the first of `rows`; none if these are too few.
pub(super) fn futile(rows: &RecordBatch) -> Option<Vec<String>> {
    if rows.num_rows() < LEAST_SAMPLE {
        return None;
    }
    let sample = rows.slice(0, rows.num_rows().min(SAMPLE));
    let schema = sample.schema();
    let columns = schema.fields().iter().zip(sample.columns());
    Some(columns.filter(|(_, column)| overflows(column)).map(|(field, _)| field.name().clone()).collect())
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringArray};

    use super::*;

    #[test]
    fn only_columns_of_distinct_values_go_without() {
        let draw = |n: i64| {
            n.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64).rotate_left(31).wrapping_mul(0x2545_f491_4f6c_dd1d)
        };
        let longs = |below: i64| {
            Arc::new(Int64Array::from_iter_values((0..8192).map(|n| draw(n).rem_euclid(below)))) as ArrayRef
        };
        let texts = StringArray::from_iter_values((0..8192).map(|n| format!("order {n}")));
        let rows = RecordBatch::try_from_iter([
            ("twenty", longs(20)),
            ("fitting", longs(50_000)),
            ("overflowing", longs(5_000_000)),
            ("unique", Arc::new(texts) as ArrayRef),
            ("nulls", Arc::new(Int64Array::new_null(8192)) as ArrayRef),
        ])
        .unwrap();
        assert_eq!(futile(&rows).unwrap(), ["overflowing", "unique"]);
        assert_eq!(futile(&rows.slice(0, 100)), None);
    }
}
