//! The least and the greatest value of a column in a file, as JSON text that never lies inwards.
//!
//! They come from the statistics that the Parquet writer gathers while it encodes, so no value is looked at twice.

use arrow::datatypes::{DataType, TimeUnit};
use chrono::Timelike;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;

use super::text;

/// Characters of a string bound that the log keeps.
const PREFIX: usize = 32;

/// Bytes that Parquet must keep of a string bound, so that [`PREFIX`] characters of it are known.
pub(super) const PARQUET_PREFIX: usize = PREFIX * 4 + 4;

/// Bounds of a column; an end that cannot be said rightly is absent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) min: Option<String>,
    pub(super) max: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Integer(i64),
    Decimal(i128),
    Float(f32),
    Double(f64),
    Text(Vec<u8>),
}

/// The bounds of a column of `data_type` over the row groups of one file.
///
/// Absent for types whose bounds the log does not hold (boolean, binary, nested), for a column of nulls, and where a row group
/// does not say them. NaN is invisible here: whoever knows of one must not use these.
pub(super) fn bounds<'a>(data_type: &DataType, chunks: impl Iterator<Item = &'a ColumnChunkMetaData>) -> Bounds {
    let mut ends: Option<(Value, Value)> = None;
    for chunk in chunks {
        let Some(statistics) = chunk.statistics() else { return Bounds::default() };
        if statistics.null_count_opt() == Some(chunk.num_values().unsigned_abs()) {
            continue;
        }
        let Some((min, max)) = values(data_type, statistics) else { return Bounds::default() };
        ends = Some(match ends {
            None => (min, max),
            Some((least, greatest)) => {
                (if less(&min, &least) { min } else { least }, if less(&greatest, &max) { max } else { greatest })
            }
        });
    }
    let Some((min, max)) = ends else { return Bounds::default() };
    Bounds { min: json(data_type, min, End::Least), max: json(data_type, max, End::Greatest) }
}

fn values(data_type: &DataType, statistics: &Statistics) -> Option<(Value, Value)> {
    use DataType::{Date32, Decimal128, Float32, Float64, Int8, Int16, Int32, Int64, Timestamp, Utf8};
    Some(match (data_type, statistics) {
        (Int8 | Int16 | Int32 | Date32, Statistics::Int32(s)) => {
            (Value::Integer((*s.min_opt()?).into()), Value::Integer((*s.max_opt()?).into()))
        }
        (Int64 | Timestamp(TimeUnit::Microsecond, _), Statistics::Int64(s)) => {
            (Value::Integer(*s.min_opt()?), Value::Integer(*s.max_opt()?))
        }
        (Decimal128(..), Statistics::Int32(s)) => {
            (Value::Decimal((*s.min_opt()?).into()), Value::Decimal((*s.max_opt()?).into()))
        }
        (Decimal128(..), Statistics::Int64(s)) => {
            (Value::Decimal((*s.min_opt()?).into()), Value::Decimal((*s.max_opt()?).into()))
        }
        (Decimal128(..), Statistics::FixedLenByteArray(s)) => {
            (Value::Decimal(big_endian(s.min_opt()?.data())?), Value::Decimal(big_endian(s.max_opt()?.data())?))
        }
        (Float32, Statistics::Float(s)) => (Value::Float(*s.min_opt()?), Value::Float(*s.max_opt()?)),
        (Float64, Statistics::Double(s)) => (Value::Double(*s.min_opt()?), Value::Double(*s.max_opt()?)),
        (Utf8, Statistics::ByteArray(s)) => {
            (Value::Text(s.min_opt()?.data().to_vec()), Value::Text(s.max_opt()?.data().to_vec()))
        }
        _ => return None,
    })
}

/// A two's complement number of at most 16 bytes, its first byte the highest.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let negative = bytes.first()? & 0x80 != 0;
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    let start = wide.len().checked_sub(bytes.len())?;
    wide.get_mut(start..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}

fn less(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => a < b,
        (Value::Decimal(a), Value::Decimal(b)) => a < b,
        (Value::Float(a), Value::Float(b)) => a < b,
        (Value::Double(a), Value::Double(b)) => a < b,
        (Value::Text(a), Value::Text(b)) => a < b,
        _ => false,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Least,
    Greatest,
}

fn json(data_type: &DataType, value: Value, end: End) -> Option<String> {
    match (value, data_type) {
        (Value::Integer(days), DataType::Date32) => {
            text::date(i32::try_from(days).ok()?).map(|date| format!("\"{date}\""))
        }
        (Value::Integer(micros), DataType::Timestamp(_, zone)) => timestamp(micros, zone.is_some(), end),
        (Value::Integer(number), _) => Some(number.to_string()),
        (Value::Decimal(unscaled), DataType::Decimal128(_, scale)) => Some(text::decimal(unscaled, *scale)),
        (Value::Float(number), _) => {
            let number = if number == 0.0 { end.zero() as f32 } else { number };
            number.is_finite().then(|| serde_json::to_string(&number).ok()).flatten()
        }
        (Value::Double(number), _) => {
            let number = if number == 0.0 { end.zero() } else { number };
            // JSON has no infinity, and a reader that cannot parse one fails the whole scan.
            number.is_finite().then(|| serde_json::to_string(&number).ok()).flatten()
        }
        (Value::Text(bytes), _) => {
            let text = std::str::from_utf8(&bytes).ok()?;
            let text = match end {
                End::Least => text.chars().take(PREFIX).collect(),
                End::Greatest => at_least(text)?,
            };
            serde_json::to_string(&text).ok()
        }
        (Value::Decimal(_), _) => None,
    }
}

impl End {
    /// The zero that lies outwards: some readers order -0.0 before 0.0.
    fn zero(self) -> f64 {
        match self {
            Self::Least => -0.0,
            Self::Greatest => 0.0,
        }
    }
}

/// Milliseconds, because readers exist that take every digit after the point for a count of them; the greatest value is
/// rounded up to the next, since a bound below a true value makes readers skip rows.
fn timestamp(micros: i64, zoned: bool, end: End) -> Option<String> {
    const MILLI: i64 = 1000;
    let floor = micros.div_euclid(MILLI) * MILLI;
    let micros = if end == End::Greatest && floor != micros { floor.checked_add(MILLI)? } else { floor };
    let moment = text::date_time(micros)?;
    let zone = if zoned { "Z" } else { "" };
    Some(format!("\"{}T{}.{:03}{zone}\"", text::day(moment), text::time(moment), moment.nanosecond() / 1_000_000))
}

/// The text itself where it is short, else the shortest text of at most [`PREFIX`] characters that is not below it; none if
/// there is no such text.
fn at_least(text: &str) -> Option<String> {
    let mut prefix: Vec<char> = text.chars().take(PREFIX + 1).collect();
    if prefix.len() <= PREFIX {
        return Some(text.to_owned());
    }
    prefix.truncate(PREFIX);
    while let Some(last) = prefix.pop() {
        // The range knows that there are no surrogates between U+D7FF and U+E000.
        if let Some(next) = (last..=char::MAX).nth(1) {
            prefix.push(next);
            return Some(prefix.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_string_is_bounded_from_above() {
        let long = |last: char| format!("{}{last}tail", "x".repeat(31));
        assert_eq!(at_least(&"x".repeat(32)), Some("x".repeat(32)));
        assert_eq!(at_least(&long('a')), Some(format!("{}b", "x".repeat(31))));
        assert_eq!(at_least(&long('\u{d7ff}')), Some(format!("{}\u{e000}", "x".repeat(31))));
        assert_eq!(at_least(&long(char::MAX)), Some(format!("{}y", "x".repeat(30))));
        assert_eq!(at_least(&char::MAX.to_string().repeat(33)), None);
    }

    #[test]
    fn timestamps_are_rounded_outwards_to_milliseconds() {
        let both = |micros| [End::Least, End::Greatest].map(|end| timestamp(micros, true, end).unwrap());
        assert_eq!(both(1_123_456), ["\"1970-01-01T00:00:01.123Z\"", "\"1970-01-01T00:00:01.124Z\""]);
        assert_eq!(both(-1), ["\"1969-12-31T23:59:59.999Z\"", "\"1970-01-01T00:00:00.000Z\""]);
        assert_eq!(both(5_000), ["\"1970-01-01T00:00:00.005Z\"", "\"1970-01-01T00:00:00.005Z\""]);
        assert_eq!(timestamp(0, false, End::Least).unwrap(), "\"1970-01-01T00:00:00.000\"");
        // The last microsecond of the year 9999 would round up into a year of five digits.
        assert_eq!(timestamp(253_402_300_799_999_999, true, End::Greatest), None);
        assert_eq!(timestamp(i64::MAX, true, End::Greatest), None);
    }

    #[test]
    fn numbers_of_any_width_keep_their_sign() {
        assert_eq!(big_endian(&[0xff]), Some(-1));
        assert_eq!(big_endian(&[0x00, 0xff]), Some(255));
        assert_eq!(big_endian(&i128::MIN.to_be_bytes()), Some(i128::MIN));
        assert_eq!(big_endian(&[0; 17]), None);
        assert_eq!(big_endian(&[]), None);
    }
}
