//! What the log says about the values in a data file, as bounds that no value of the file lies outside of.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use serde::Deserialize;
use serde_json::Value;

use super::value::{Decimal, Form, Round, date, moment, partition_value};
use crate::table::actions::AddFile;
use crate::table::schema::TableSchema;

/// Statistics cut timestamps to milliseconds: this much may have been cut off, in microseconds.
const CUT_MICROS: i64 = 999;
/// Statistics cut text to this many characters.
const CUT_CHARACTERS: usize = 32;
/// Decimals may have gone through a double with a few roundings: then their error is below the value shifted right by this.
const DOUBLE_BITS: u32 = 50;
/// Decimals of at most this precision keep all their digits in a double.
const DOUBLE_DIGITS: u8 = 15;

/// Bounds of the values of each column of one file, from its partition values and its statistics.
///
/// A bound that is given holds for every row of the file, deleted rows included; what is missing, odd or cannot be
/// trusted is simply not given. Statistics of floats are never given: NaN and -0.0 lie outside of them. So are those
/// of binary and nested columns.
#[derive(Debug)]
pub(crate) struct FileBounds<'a> {
    schema: &'a TableSchema,
    partition: &'a BTreeMap<String, Option<String>>,
    stats: Stats,
    /// Whether null counts are of exactly the rows that are there.
    counts_hold: bool,
}

/// The statistics' JSON (protocol, "Per-file Statistics"); each part is checked when it is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Stats {
    num_records: Value,
    min_values: Value,
    max_values: Value,
    null_count: Value,
    tight_bounds: Value,
}

impl<'a> FileBounds<'a> {
    /// The bounds of a file of a table.
    pub(crate) fn of(file: &'a AddFile, schema: &'a TableSchema) -> Self {
        let stats: Stats = file.stats.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let counts_hold = file.deletion_vector.is_none() && stats.tight_bounds != Value::Bool(false);
        Self { schema, partition: &file.partition_values, stats, counts_hold }
    }

    /// Rows of the file, deleted ones included.
    pub(crate) fn rows(&self) -> Option<u64> {
        self.stats.num_records.as_u64()
    }

    /// The value that a partition column has in all rows of the file; a typed null where it is null.
    pub(crate) fn constant(&self, column: &str) -> Option<ScalarValue> {
        if !self.schema.is_partition_column(column) {
            return None;
        }
        partition_value(self.partition.get(column)?.as_deref(), self.schema.column(column)?.data_type())
    }

    /// How many rows of the file are null in a column; not known once rows are deleted, partition columns apart.
    pub(crate) fn null_count(&self, column: &str) -> Option<u64> {
        if self.schema.is_partition_column(column) {
            return if self.constant(column)?.is_null() { self.rows() } else { Some(0) };
        }
        let count = self.stats.null_count.get(column)?.as_u64()?;
        (self.counts_hold && self.rows().is_none_or(|rows| count <= rows)).then_some(count)
    }

    /// Whether a row of the file can be null in a column.
    pub(crate) fn may_be_null(&self, column: &str) -> bool {
        match self.constant(column) {
            Some(constant) => constant.is_null(),
            None => self.null_count(column) != Some(0),
        }
    }

    /// Whether a row of the file can be other than null in a column.
    pub(crate) fn may_be_value(&self, column: &str) -> bool {
        match self.constant(column) {
            Some(constant) => !constant.is_null(),
            None => self.rows().is_none() || self.null_count(column) != self.rows(),
        }
    }

    /// The least and the greatest value that a column can have in the file, nulls apart, where both are known.
    pub(crate) fn range(&self, column: &str) -> Option<(ScalarValue, ScalarValue)> {
        let (least, greatest) = self.ends(column);
        Some((least?, greatest?))
    }

    /// A value that no value of the column in the file is below, and one that none is above.
    pub(crate) fn ends(&self, column: &str) -> (Option<ScalarValue>, Option<ScalarValue>) {
        let Some(field) = self.schema.column(column) else {
            return (None, None);
        };
        if self.schema.is_partition_column(column) {
            let constant = self.constant(column).filter(|constant| !constant.is_null() && !is_float(constant));
            return (constant.clone(), constant);
        }
        let end = |values: &Value, end| values.get(column).and_then(|value| bound(value, field.data_type(), end));
        let least = end(&self.stats.min_values, End::Least);
        let greatest = end(&self.stats.max_values, End::Greatest);
        match (&least, &greatest) {
            // Ends that contradict each other say nothing.
            (Some(least), Some(greatest)) if least > greatest => (None, None),
            _ => (least, greatest),
        }
    }
}

fn is_float(value: &ScalarValue) -> bool {
    value.data_type().is_floating()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Least,
    Greatest,
}

/// A statistic as a value of the column's type that is safely at, below (least) or above (greatest) the true one.
fn bound(value: &Value, data_type: &DataType, end: End) -> Option<ScalarValue> {
    match (data_type, value) {
        (DataType::Boolean, Value::Bool(value)) => Some(ScalarValue::Boolean(Some(*value))),
        (DataType::Int8, Value::Number(_)) => Some(ScalarValue::Int8(Some(value.as_i64()?.try_into().ok()?))),
        (DataType::Int16, Value::Number(_)) => Some(ScalarValue::Int16(Some(value.as_i64()?.try_into().ok()?))),
        (DataType::Int32, Value::Number(_)) => Some(ScalarValue::Int32(Some(value.as_i64()?.try_into().ok()?))),
        (DataType::Int64, Value::Number(_)) => Some(ScalarValue::Int64(Some(value.as_i64()?))),
        (DataType::Decimal128(precision, scale), Value::Number(number)) => {
            let unscaled = decimal_bound(&number.to_string(), *precision, *scale, end)?;
            Some(ScalarValue::Decimal128(Some(unscaled), *precision, *scale))
        }
        (DataType::Date32, Value::String(text)) => Some(ScalarValue::Date32(Some(date(text)?))),
        (DataType::Timestamp(TimeUnit::Microsecond, zone), Value::String(text)) => {
            let moment = moment(text)?;
            let expected = if zone.is_some() { Form::Offset } else { Form::Local };
            if moment.form != expected {
                return None;
            }
            let micros = match end {
                // Cutting towards zero raises what lies before the epoch.
                End::Least if moment.micros <= 0 => moment.micros.checked_sub(CUT_MICROS)?,
                End::Least => moment.micros,
                End::Greatest => moment.micros.checked_add(CUT_MICROS)?,
            };
            Some(ScalarValue::TimestampMicrosecond(Some(micros), zone.clone()))
        }
        (DataType::Utf8, Value::String(text)) => match end {
            End::Least => Some(ScalarValue::Utf8(Some(text.clone()))),
            End::Greatest => Some(ScalarValue::Utf8(Some(greatest_text(text)?))),
        },
        _ => None,
    }
}

/// Writers disagree on how exact a decimal is in JSON: some put every digit, some a double. Widening by what a double
/// can lose is safe for both.
fn decimal_bound(text: &str, precision: u8, scale: i8, end: End) -> Option<i128> {
    let wide = precision > DOUBLE_DIGITS;
    let round = if end == End::Least { Round::Down } else { Round::Up };
    let unscaled = Decimal::parse(text)?.at_scale(i32::from(scale), round)?;
    // Some writers cast to a 64-bit integer where there is no fraction, and what lies beyond ends at its limits.
    if wide && scale == 0 && (unscaled >= i128::from(i64::MAX) || unscaled <= i128::from(i64::MIN)) {
        return None;
    }
    let slack = (unscaled.abs() >> DOUBLE_BITS) + i128::from(wide);
    match end {
        End::Least => unscaled.checked_sub(slack),
        End::Greatest => unscaled.checked_add(slack),
    }
}

/// A text that no text is above whose statistics' maximum is `max`.
///
/// A maximum of full length was cut. Not every writer rounds it up after that, and a tie-breaker of U+FFFD sorts below
/// characters outside the basic plane; so only the cut text itself is trusted, and the bound is what comes after it.
fn greatest_text(max: &str) -> Option<String> {
    const TIE_BREAKER: char = '\u{FFFD}';
    // Characters in UTF-16, as a writer on the JVM may count; this is never more than it would keep.
    if max.encode_utf16().count() < CUT_CHARACTERS && !max.ends_with(TIE_BREAKER) {
        return Some(max.to_owned());
    }
    let mut units = 0;
    let kept: String = max
        .chars()
        .take_while(|character| {
            units += character.len_utf16();
            units < CUT_CHARACTERS
        })
        .collect();
    after_prefix(kept.trim_end_matches(TIE_BREAKER))
}

/// The least text that is above every text with this prefix; none where there is no such text.
pub(crate) fn after_prefix(prefix: &str) -> Option<String> {
    let mut text = prefix.to_owned();
    while let Some(last) = text.pop() {
        let next = match last {
            '\u{D7FF}' => Some('\u{E000}'),
            _ => char::from_u32(u32::from(last) + 1),
        };
        if let Some(next) = next {
            text.push(next);
            return Some(text);
        }
    }
    None
}

#[cfg(test)]
mod tests;
