//! Strict reading of text as the table's types: a value that does not fit is named, never bent.
//!
//! `arrow-cast` reads the same types, but leniently: it drops decimal digits past the scale, takes timestamps without an
//! offset for UTC and dates for timestamps. Here each of these is a misfit.

mod misfit;
mod numbers;
mod times;

use std::sync::Arc;

use arrow::array::{
    ArrayRef, ArrowPrimitiveType, BooleanBuilder, NullBufferBuilder, PrimitiveArray, StringBuilder, new_null_array,
};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimeUnit, TimestampMicrosecondType,
};

pub(crate) use misfit::{Misfit, Why, shown, sql_name};
pub(crate) use numbers::{decimal128, float32, float64, integer};
pub(crate) use times::{Zone, date32, timestamp_micros};

/// Whether [`column`] can read text as `data_type`. Binary and nested types have no one spelling as text.
pub(crate) fn is_readable(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Boolean
            | DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Float32
            | DataType::Float64
            | DataType::Decimal128(..)
            | DataType::Utf8
            | DataType::Date32
            | DataType::Timestamp(TimeUnit::Microsecond, _)
            | DataType::Null
    )
}

/// Reads one column's texts, `None` being null, as an array of `data_type`, one value a text.
///
/// # Errors
/// The first text that does not fit, by its position; also for a type that [`is_readable`] denies.
pub(crate) fn column<'a, T>(data_type: &DataType, texts: T) -> Result<ArrayRef, Misfit>
where
    T: Iterator<Item = Option<&'a str>>,
{
    match data_type {
        DataType::Utf8 => Ok(strings(texts)),
        DataType::Boolean => booleans(texts, boolean),
        DataType::Int8 => typed::<Int8Type, _, _>(data_type, texts, integer),
        DataType::Int16 => typed::<Int16Type, _, _>(data_type, texts, integer),
        DataType::Int32 => typed::<Int32Type, _, _>(data_type, texts, integer),
        DataType::Int64 => typed::<Int64Type, _, _>(data_type, texts, integer),
        DataType::Float32 => typed::<Float32Type, _, _>(data_type, texts, float32),
        DataType::Float64 => typed::<Float64Type, _, _>(data_type, texts, float64),
        DataType::Decimal128(precision, scale) => {
            typed::<Decimal128Type, _, _>(data_type, texts, |text: &str| decimal128(text, *precision, *scale))
        }
        DataType::Date32 => typed::<Date32Type, _, _>(data_type, texts, date32),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let zone = Zone::of(zone.as_deref());
            typed::<TimestampMicrosecondType, _, _>(data_type, texts, |text: &str| timestamp_micros(text, zone))
        }
        _ => {
            let mut rows = 0;
            for text in texts {
                if let Some(text) = text {
                    return Err(Misfit::new(rows, text, Why::NotReadable));
                }
                rows += 1;
            }
            Ok(new_null_array(data_type, rows))
        }
    }
}

/// Builds an array of `data_type`, whose native type is `P`'s, from values that `read` makes of each item.
///
/// # Errors
/// The first item that `read` denies.
pub(crate) fn typed<P, V, T>(
    data_type: &DataType,
    items: T,
    mut read: impl FnMut(V) -> Result<P::Native, Why>,
) -> Result<ArrayRef, Misfit>
where
    P: ArrowPrimitiveType,
    V: Copy + std::fmt::Display,
    T: Iterator<Item = Option<V>>,
{
    let expected = items.size_hint().0;
    let mut values: Vec<P::Native> = Vec::with_capacity(expected);
    let mut nulls = NullBufferBuilder::new(expected);
    for item in items {
        match item {
            None => {
                values.push(P::Native::default());
                nulls.append_null();
            }
            Some(item) => {
                values.push(read(item).map_err(|why| Misfit::new(values.len(), item, why))?);
                nulls.append_non_null();
            }
        }
    }
    let array = PrimitiveArray::<P>::new(values.into(), nulls.finish());
    Ok(Arc::new(array.with_data_type(data_type.clone())))
}

/// Builds an array of booleans from values that `read` makes of each item.
///
/// # Errors
/// The first item that `read` denies.
pub(crate) fn booleans<V, T>(items: T, mut read: impl FnMut(V) -> Result<bool, Why>) -> Result<ArrayRef, Misfit>
where
    V: Copy + std::fmt::Display,
    T: Iterator<Item = Option<V>>,
{
    let mut array = BooleanBuilder::with_capacity(items.size_hint().0);
    for (row, item) in items.enumerate() {
        let value = item.map(|item| read(item).map_err(|why| Misfit::new(row, item, why))).transpose()?;
        array.append_option(value);
    }
    Ok(Arc::new(array.finish()))
}

/// Takes texts as they are, spaces included.
fn strings<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    let expected = texts.size_hint().0;
    let mut array = StringBuilder::with_capacity(expected, expected * 16);
    for text in texts {
        array.append_option(text);
    }
    Arc::new(array.finish())
}

/// `true` or `false`, in any case.
fn boolean(text: &str) -> Result<bool, Why> {
    if text.eq_ignore_ascii_case("true") {
        Ok(true)
    } else if text.eq_ignore_ascii_case("false") {
        Ok(false)
    } else {
        Err(Why::unless_empty(text, Why::NotBoolean))
    }
}

#[cfg(test)]
mod tests;
