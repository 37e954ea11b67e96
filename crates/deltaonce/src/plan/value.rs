//! Text to typed values, exactly or not at all: partition values, SQL literals, interval bounds.

use arrow::datatypes::{DataType, TimeUnit};
use chrono::NaiveDate;
use datafusion::common::ScalarValue;

use crate::error::{Error, Result};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// The most digits that a decimal of the table can have.
const MAX_DIGITS: usize = 38;

/// A value written in a predicate, before it is known which type it is compared with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    /// A number as it was written, its sign included.
    Number(String),
    /// Quoted text.
    Text(String),
    Boolean(bool),
    Null,
    /// `DATE '…'`, the text between the quotes.
    Date(String),
    /// `TIMESTAMP '…'`, the text between the quotes.
    Timestamp(String),
    /// `X'…'`.
    Binary(Vec<u8>),
}

impl std::fmt::Display for Literal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(text) => f.write_str(text),
            Self::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Null => f.write_str("NULL"),
            Self::Date(text) => write!(f, "DATE '{text}'"),
            Self::Timestamp(text) => write!(f, "TIMESTAMP '{text}'"),
            Self::Binary(bytes) => {
                f.write_str("X'")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
                f.write_str("'")
            }
        }
    }
}

impl Literal {
    /// The literal as a value of `data_type`, for comparison with `what` (a column, say), which is of that type.
    ///
    /// Nothing is rounded: a value that the type cannot hold is refused, whatever the comparison. Only floats take the
    /// nearest value, as they did when the column was written. A date stands for its midnight in UTC where the type is
    /// a timestamp; a text with a time of day must then say its offset.
    ///
    /// # Errors
    /// `Invalid`, naming `what`, its type and the literal.
    pub(crate) fn typed(&self, data_type: &DataType, what: &str) -> Result<ScalarValue> {
        let refused = |why: &str| {
            Error::invalid(format!(
                "{what} is of type {} and cannot be compared with {self}{why}",
                type_name(data_type)
            ))
        };
        if matches!(self, Self::Null) {
            return ScalarValue::try_from(data_type).map_err(|e| refused("").caused_by(e));
        }
        let value = match (data_type, self) {
            (DataType::Boolean, Self::Boolean(value)) => Some(ScalarValue::Boolean(Some(*value))),
            (DataType::Boolean, Self::Text(text)) if text.eq_ignore_ascii_case("true") => {
                Some(ScalarValue::Boolean(Some(true)))
            }
            (DataType::Boolean, Self::Text(text)) if text.eq_ignore_ascii_case("false") => {
                Some(ScalarValue::Boolean(Some(false)))
            }
            (DataType::Utf8, Self::Text(text)) => Some(ScalarValue::Utf8(Some(text.clone()))),
            (DataType::Utf8, Self::Number(_)) => {
                return Err(refused("").hint(format!("quote it to compare it as text: '{self}'")));
            }
            (DataType::Binary, Self::Binary(bytes)) => Some(ScalarValue::Binary(Some(bytes.clone()))),
            (DataType::Date32, Self::Text(text) | Self::Date(text)) => match date(text) {
                Some(days) => Some(ScalarValue::Date32(Some(days))),
                None => return Err(refused("").hint("write a date as 'YYYY-MM-DD'")),
            },
            (
                DataType::Timestamp(TimeUnit::Microsecond, zone),
                Self::Text(text) | Self::Timestamp(text) | Self::Date(text),
            ) => {
                let micros = match (moment(text), zone) {
                    (Some(Moment { micros, form: Form::Date, .. }), _)
                    | (Some(Moment { micros, form: Form::Offset, .. }), Some(_))
                    | (Some(Moment { micros, form: Form::Local, .. }), None) => micros,
                    (Some(Moment { form: Form::Local, .. }), Some(_)) => {
                        return Err(refused(", which has no offset from UTC")
                            .hint(format!("write '{}Z' for UTC, or an offset such as '{0}+02:00'", text.trim())));
                    }
                    (Some(Moment { form: Form::Offset, .. }), None) => {
                        return Err(refused(", which has an offset").hint("leave the offset away: the column has none"));
                    }
                    (None, Some(_)) => return Err(refused("").hint("write it as '2026-10-05T00:00:00Z'")),
                    (None, None) => return Err(refused("").hint("write it as '2026-10-05T00:00:00'")),
                };
                Some(ScalarValue::TimestampMicrosecond(Some(micros), zone.clone()))
            }
            (_, Self::Number(text) | Self::Text(text)) => number(text, data_type),
            _ => None,
        };
        value.ok_or_else(|| match (self, Decimal::parse(&self.number_text())) {
            (Self::Number(_) | Self::Text(_), Some(_)) if is_number(data_type) => {
                refused(", which the type cannot hold exactly")
            }
            _ => refused(""),
        })
    }

    fn number_text(&self) -> String {
        match self {
            Self::Number(text) | Self::Text(text) => text.clone(),
            _ => String::new(),
        }
    }
}

/// Whether values of the type are numbers.
pub(crate) fn is_number(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_floating() || matches!(data_type, DataType::Decimal128(_, _))
}

/// The type's name in Delta's SQL.
pub(crate) fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "boolean".to_owned(),
        DataType::Int8 => "tinyint".to_owned(),
        DataType::Int16 => "smallint".to_owned(),
        DataType::Int32 => "int".to_owned(),
        DataType::Int64 => "bigint".to_owned(),
        DataType::Float32 => "float".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Decimal128(precision, scale) => format!("decimal({precision},{scale})"),
        DataType::Date32 => "date".to_owned(),
        DataType::Timestamp(_, Some(_)) => "timestamp".to_owned(),
        DataType::Timestamp(_, None) => "timestamp_ntz".to_owned(),
        DataType::Utf8 => "string".to_owned(),
        DataType::Binary => "binary".to_owned(),
        DataType::Struct(_) => "struct".to_owned(),
        DataType::List(_) => "array".to_owned(),
        DataType::Map(_, _) => "map".to_owned(),
        other => other.to_string(),
    }
}

/// A partition value of the log as a value of its column's type (protocol, "Partition Value Serialization").
///
/// No text and empty text are null, for every type. A timestamp without an offset is in UTC. `None` where the text is
/// not a value of the type, or the type has no form that can be read back surely (binary).
pub(crate) fn partition_value(text: Option<&str>, data_type: &DataType) -> Option<ScalarValue> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return ScalarValue::try_from(data_type).ok();
    };
    match data_type {
        DataType::Boolean => match text {
            "true" => Some(ScalarValue::Boolean(Some(true))),
            "false" => Some(ScalarValue::Boolean(Some(false))),
            _ => None,
        },
        DataType::Utf8 => Some(ScalarValue::Utf8(Some(text.to_owned()))),
        DataType::Date32 => Some(ScalarValue::Date32(Some(date(text)?))),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => match moment(text)? {
            Moment { form: Form::Offset, .. } if zone.is_none() => None,
            Moment { micros, .. } => Some(ScalarValue::TimestampMicrosecond(Some(micros), zone.clone())),
        },
        _ => number(text, data_type),
    }
}

/// A number as a value of a numeric type: exactly, or for floats the nearest.
fn number(text: &str, data_type: &DataType) -> Option<ScalarValue> {
    let integer = || i64::try_from(Decimal::parse(text)?.at_scale(0, Round::Exact)?).ok();
    match data_type {
        DataType::Int8 => Some(ScalarValue::Int8(Some(integer()?.try_into().ok()?))),
        DataType::Int16 => Some(ScalarValue::Int16(Some(integer()?.try_into().ok()?))),
        DataType::Int32 => Some(ScalarValue::Int32(Some(integer()?.try_into().ok()?))),
        DataType::Int64 => Some(ScalarValue::Int64(Some(integer()?))),
        DataType::Decimal128(precision, scale) => {
            let unscaled = Decimal::parse(text)?.at_scale(i32::from(*scale), Round::Exact)?;
            (digits(unscaled) <= usize::from(*precision)).then_some(ScalarValue::Decimal128(
                Some(unscaled),
                *precision,
                *scale,
            ))
        }
        DataType::Float32 => {
            let value = names_a_float(text).then(|| text.parse::<f32>().ok())??;
            (value.is_finite() || is_special_float(text)).then_some(ScalarValue::Float32(Some(value)))
        }
        DataType::Float64 => {
            let value = names_a_float(text).then(|| text.parse::<f64>().ok())??;
            (value.is_finite() || is_special_float(text)).then_some(ScalarValue::Float64(Some(value)))
        }
        _ => None,
    }
}

/// Digits of an integer, without its sign.
fn digits(value: i128) -> usize {
    value.unsigned_abs().checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// Whether the text names a float in the log's grammar, which is narrower than Rust's (inf, nan, infinity).
fn names_a_float(text: &str) -> bool {
    let written = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'+' | b'-' | b'e' | b'E');
    is_special_float(text) || text.bytes().all(written)
}

fn is_special_float(text: &str) -> bool {
    matches!(text, "NaN" | "Infinity" | "-Infinity")
}

/// Which way digits beyond the scale go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    /// Nowhere: a value that has them is none.
    Exact,
    Down,
    Up,
}

/// A decimal number of any scale, as its text says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    unscaled: i128,
    scale: i32,
}

impl Decimal {
    /// Reads `-12.30`, `1E-18`, `.5`; none for anything else and for more significant digits than a decimal can have.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, text.get(1..)?),
            b'+' => (false, text.get(1..)?),
            _ => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i16>().ok()?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() && fraction.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit())
        {
            return None;
        }
        let all = format!("{whole}{fraction}");
        let significant = all.trim_end_matches('0');
        let scale = i64::try_from(fraction.len()).ok()? - i64::try_from(all.len() - significant.len()).ok()?;
        let significant = significant.trim_start_matches('0');
        if significant.len() > MAX_DIGITS {
            return None;
        }
        let unscaled: i128 = if significant.is_empty() { 0 } else { significant.parse().ok()? };
        let scale = if unscaled == 0 { 0 } else { i32::try_from(scale - i64::from(exponent)).ok()? };
        Some(Self { unscaled: if negative { -unscaled } else { unscaled }, scale })
    }

    /// The number times ten to the power of `scale`; none where that overflows, or is not exact but has to be.
    pub(crate) fn at_scale(self, scale: i32, round: Round) -> Option<i128> {
        let shift = scale.checked_sub(self.scale)?;
        if let Ok(up) = u32::try_from(shift) {
            return if self.unscaled == 0 { Some(0) } else { self.unscaled.checked_mul(10_i128.checked_pow(up)?) };
        }
        // Fewer digits than the text has. A divisor too large for the type leaves nothing but the sign.
        let divisor = 10_i128.checked_pow(shift.unsigned_abs());
        let (quotient, exact) = match divisor {
            Some(divisor) => (self.unscaled.div_euclid(divisor), self.unscaled.rem_euclid(divisor) == 0),
            None => (if self.unscaled < 0 { -1 } else { 0 }, self.unscaled == 0),
        };
        match round {
            _ if exact => Some(quotient),
            Round::Exact => None,
            Round::Down => Some(quotient),
            Round::Up => quotient.checked_add(1),
        }
    }

    /// The least precision and scale whose decimals hold the number; none where there is no such decimal type.
    pub(crate) fn decimal_type(self) -> Option<(u8, i8)> {
        let scale = self.scale.max(0);
        let unscaled = self.at_scale(scale, Round::Exact)?;
        let precision = digits(unscaled).max(usize::try_from(scale).ok()?).max(1);
        (precision <= MAX_DIGITS).then_some(())?;
        Some((u8::try_from(precision).ok()?, i8::try_from(scale).ok()?))
    }
}

/// What a text says about its place on the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A date alone.
    Date,
    /// A date and a time of day.
    Local,
    /// A date, a time of day and an offset.
    Offset,
}

/// A date, or a date with a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Since the epoch; in UTC where there is an offset.
    pub(crate) micros: i64,
    pub(crate) form: Form,
}

/// Days since the epoch of `YYYY-MM-DD`, in the proleptic Gregorian calendar.
pub(crate) fn date(text: &str) -> Option<i32> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes.get(4) != Some(&b'-') || bytes.get(7) != Some(&b'-') {
        return None;
    }
    let date = NaiveDate::from_ymd_opt(
        i32::try_from(fixed(text.get(0..4)?)?).ok()?,
        u32::try_from(fixed(text.get(5..7)?)?).ok()?,
        u32::try_from(fixed(text.get(8..10)?)?).ok()?,
    )?;
    i32::try_from(date.signed_duration_since(NaiveDate::from_ymd_opt(1970, 1, 1)?).num_days()).ok()
}

/// Reads `YYYY-MM-DD`, then perhaps `T` or a space and `HH:MM[:SS[.ffffff]]`, then perhaps `Z` or `±HH[:MM]`.
/// Digits beyond microseconds must be zeros.
pub(crate) fn moment(text: &str) -> Option<Moment> {
    let day = i64::from(date(text.get(0..10)?)?) * MICROS_PER_DAY;
    let Some(separator) = text.as_bytes().get(10) else {
        return Some(Moment { micros: day, form: Form::Date });
    };
    if !matches!(separator, b'T' | b't' | b' ') {
        return None;
    }
    let rest = text.get(11..)?;
    let (time, offset) = match rest.find(['Z', 'z', '+', '-']) {
        Some(at) => (rest.get(..at)?, Some(offset_micros(rest.get(at..)?)?)),
        None => (rest, None),
    };
    // Between the time and its offset some writers leave a space.
    let time = if offset.is_some() { time.strip_suffix(' ').unwrap_or(time) } else { time };
    let local = day.checked_add(time_micros(time)?)?;
    match offset {
        Some(offset) => Some(Moment { micros: local.checked_sub(offset)?, form: Form::Offset }),
        None => Some(Moment { micros: local, form: Form::Local }),
    }
}

fn time_micros(text: &str) -> Option<i64> {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, fraction),
        None => (text, "0"),
    };
    let mut parts = clock.split(':');
    let hour = fixed(parts.next().filter(|part| part.len() == 2)?)?;
    let minute = fixed(parts.next().filter(|part| part.len() == 2)?)?;
    let second = match parts.next() {
        Some(part) if part.len() == 2 => fixed(part)?,
        Some(_) => return None,
        None if text.contains('.') => return None,
        None => 0,
    };
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 6 || (fraction.is_empty() && text.ends_with('.')) {
        return None;
    }
    let micros = if fraction.is_empty() { 0 } else { fixed(&format!("{fraction:0<6}"))? };
    Some(((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + micros)
}

fn offset_micros(text: &str) -> Option<i64> {
    let sign = match text.as_bytes().first()? {
        b'Z' | b'z' if text.len() == 1 => return Some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = match text.len() {
        3 => (text.get(1..3)?, "00"),
        5 => (text.get(1..3)?, text.get(3..5)?),
        6 if text.as_bytes().get(3) == Some(&b':') => (text.get(1..3)?, text.get(4..6)?),
        _ => return None,
    };
    let (hours, minutes) = (fixed(hours)?, fixed(minutes)?);
    (hours <= 18 && minutes <= 59).then_some(sign * (hours * 60 + minutes) * 60 * MICROS_PER_SECOND)
}

/// A text of ASCII digits alone as a number.
fn fixed(text: &str) -> Option<i64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests;
