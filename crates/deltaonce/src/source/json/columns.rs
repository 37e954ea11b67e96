//! JSON values as arrays of a table's types. Quotes are type information: a string is no number and the reverse.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, ListArray, MapArray, StringBuilder, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, FieldRef, Fields, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use arrow::error::ArrowError;

use super::scan::{self, Json, JsonString};
use crate::prepare::text::{self, Misfit, Why, Zone};

/// Why values are no array.
#[derive(Debug)]
pub(super) enum Unfit {
    Misfit(Misfit),
    /// Arrow denied an array that was checked before: a defect.
    Arrow(ArrowError),
}

impl From<Misfit> for Unfit {
    fn from(misfit: Misfit) -> Self {
        Self::Misfit(misfit)
    }
}

impl From<ArrowError> for Unfit {
    fn from(error: ArrowError) -> Self {
        Self::Arrow(error)
    }
}

/// Where a key stands among names: where the last one's successor is, most times.
pub(super) struct Names<'a> {
    names: Vec<&'a str>,
    next: usize,
}

impl<'a> Names<'a> {
    pub(super) fn of(fields: &'a Fields) -> Self {
        Self { names: fields.iter().map(|field| field.name().as_str()).collect(), next: 0 }
    }

    pub(super) fn find(&mut self, key: &str) -> Option<usize> {
        let at = match self.names.get(self.next) {
            Some(name) if *name == key => self.next,
            _ => self.names.iter().position(|name| *name == key)?,
        };
        self.next = at + 1;
        Some(at)
    }
}

fn present<'v, 'a>(values: &'v [Json<'a>]) -> impl ExactSizeIterator<Item = Option<Json<'a>>> + use<'v, 'a> {
    values.iter().map(|value| if *value == Json::Null { None } else { Some(*value) })
}

/// Reads a number, or what `other` makes of a string.
fn number<T>(
    value: Json<'_>,
    read: impl FnOnce(&str) -> Result<T, Why>,
    other: impl FnOnce(&str) -> Result<T, Why>,
) -> Result<T, Why> {
    match value {
        Json::Number(text) => read(text),
        Json::String(text) => other(&text.text()?),
        other => Err(other.misplaced()),
    }
}

fn string<T>(value: Json<'_>, read: impl FnOnce(&str) -> Result<T, Why>) -> Result<T, Why> {
    match value {
        Json::String(text) => read(&text.text()?),
        other => Err(other.misplaced()),
    }
}

fn no_string<T>(_: &str) -> Result<T, Why> {
    Err(Why::IsString)
}

/// JSON has no number for these three, so that they come as strings.
fn no_finite(text: &str) -> Result<f64, Why> {
    if matches!(text, "NaN" | "Infinity" | "-Infinity") { text::float64(text) } else { Err(Why::IsString) }
}

/// Reads values as an array of `data_type`, one each.
///
/// # Errors
/// A value that does not fit; of a nested type perhaps not the first one.
pub(super) fn column(data_type: &DataType, values: &[Json<'_>]) -> Result<ArrayRef, Unfit> {
    macro_rules! typed {
        ($type:ty, $read:expr) => {
            Ok(text::typed::<$type, _, _>(data_type, present(values), $read)?)
        };
    }
    match data_type {
        DataType::Boolean => Ok(text::booleans(present(values), |value| match value {
            Json::Boolean(value) => Ok(value),
            other => Err(other.misplaced()),
        })?),
        DataType::Int8 => typed!(Int8Type, |value| number(value, text::integer, no_string)),
        DataType::Int16 => typed!(Int16Type, |value| number(value, text::integer, no_string)),
        DataType::Int32 => typed!(Int32Type, |value| number(value, text::integer, no_string)),
        DataType::Int64 => typed!(Int64Type, |value| number(value, text::integer, no_string)),
        DataType::Float32 => {
            typed!(Float32Type, |value| number(value, text::float32, |text| Ok(no_finite(text)? as f32)))
        }
        DataType::Float64 => typed!(Float64Type, |value| number(value, text::float64, no_finite)),
        DataType::Decimal128(precision, scale) => {
            let read = |text: &str| text::decimal128(text, *precision, *scale);
            typed!(Decimal128Type, |value| number(value, read, read))
        }
        DataType::Date32 => typed!(Date32Type, |value| string(value, text::date32)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let zone = Zone::of(zone.as_deref());
            typed!(TimestampMicrosecondType, |value| string(value, |text| text::timestamp_micros(text, zone)))
        }
        DataType::Utf8 => strings(values),
        DataType::Struct(fields) => structs(fields, values),
        DataType::List(item) => lists(item, values),
        DataType::Map(entries, sorted) => maps(data_type, entries, *sorted, values),
        _ => {
            if let Some((row, value)) = present(values).enumerate().find_map(|(row, value)| Some((row, value?))) {
                return Err(Misfit::new(row, value, Why::NotReadable).into());
            }
            Ok(arrow::array::new_null_array(data_type, values.len()))
        }
    }
}

fn strings(values: &[Json<'_>]) -> Result<ArrayRef, Unfit> {
    let mut array = StringBuilder::with_capacity(values.len(), values.len() * 16);
    for (row, value) in values.iter().enumerate() {
        match value {
            Json::Null => array.append_null(),
            Json::String(text) => {
                array.append_value(text.text().map_err(|why| Misfit::new(row, value, why))?);
            }
            other => return Err(Misfit::new(row, other, other.misplaced()).into()),
        }
    }
    Ok(Arc::new(array.finish()))
}

fn structs(fields: &Fields, values: &[Json<'_>]) -> Result<ArrayRef, Unfit> {
    let mut names = Names::of(fields);
    let mut children: Vec<Vec<Json<'_>>> = vec![Vec::with_capacity(values.len()); fields.len()];
    for (row, value) in values.iter().enumerate() {
        names.next = 0;
        match *value {
            Json::Null => {}
            Json::Object(text) => {
                let scanned = scan::members(text, |key, member| {
                    let key = key.text().map_err(|why| Misfit::new(row, value, why))?;
                    let child = names.find(&key).and_then(|at| children.get_mut(at));
                    let Some(child) = child else {
                        return Err(Misfit::new(row, key, Why::UnknownField));
                    };
                    if child.len() > row {
                        return Err(Misfit::new(row, key, Why::RepeatedKey));
                    }
                    child.push(member);
                    Ok(())
                })?;
                scanned.map_err(|_| Misfit::new(row, value, Why::BadJson))?;
            }
            other => return Err(Misfit::new(row, other, other.misplaced()).into()),
        }
        children.iter_mut().for_each(|child| child.resize(row + 1, Json::Null));
    }
    let nulls = NullBuffer::from_iter(values.iter().map(|value| *value != Json::Null));
    let mut arrays = Vec::with_capacity(fields.len());
    for (field, child) in fields.iter().zip(&children) {
        let step = format!(".{}", field.name());
        let array = column(field.data_type(), child).map_err(|unfit| within(unfit, &step, field, |row| row))?;
        if !field.is_nullable() {
            let null = child.iter().zip(&nulls).position(|(child, is_there)| is_there && *child == Json::Null);
            if let Some(row) = null {
                return Err(Misfit::new(row, "null", Why::IsNull).within(&step, field.data_type(), row).into());
            }
        }
        arrays.push(array);
    }
    let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), arrays, nulls, values.len())?))
}

fn lists(item: &FieldRef, values: &[Json<'_>]) -> Result<ArrayRef, Unfit> {
    let mut children = Vec::new();
    let mut starts = Vec::with_capacity(values.len());
    for (row, value) in values.iter().enumerate() {
        starts.push(children.len());
        match *value {
            Json::Null => {}
            Json::Array(text) => scan::elements(text, |element| children.push(element))
                .map_err(|_| Misfit::new(row, value, Why::BadJson))?,
            other => return Err(Misfit::new(row, other, other.misplaced()).into()),
        }
    }
    let array = items(item, "[]", &children, &starts)?;
    let nulls = NullBuffer::from_iter(values.iter().map(|value| *value != Json::Null));
    let offsets = offsets(&starts, children.len());
    Ok(Arc::new(ListArray::try_new(item.clone(), offsets, array, Some(nulls))?))
}

fn maps(data_type: &DataType, entries: &FieldRef, sorted: bool, values: &[Json<'_>]) -> Result<ArrayRef, Unfit> {
    let pair = match entries.data_type() {
        DataType::Struct(pair) => pair,
        _ => return Err(ArrowError::SchemaError(format!("{data_type} has no entries")).into()),
    };
    let [key_field, value_field] = pair.as_ref() else {
        return Err(ArrowError::SchemaError(format!("{data_type} has no key and value")).into());
    };
    let mut keys: Vec<Cow<'_, str>> = Vec::new();
    let mut children = Vec::new();
    let mut starts = Vec::with_capacity(values.len());
    for (row, value) in values.iter().enumerate() {
        starts.push(children.len());
        let mut seen: HashSet<Cow<'_, str>> = HashSet::new();
        match *value {
            Json::Null => {}
            Json::Object(text) => {
                let scanned = scan::members(text, |key: JsonString<'_>, member| {
                    let key = key.text().map_err(|why| Misfit::new(row, value, why))?;
                    if !seen.insert(key.clone()) {
                        return Err(Misfit::new(row, key, Why::RepeatedKey));
                    }
                    keys.push(key);
                    children.push(member);
                    Ok(())
                })?;
                scanned.map_err(|_| Misfit::new(row, value, Why::BadJson))?;
            }
            other => return Err(Misfit::new(row, other, other.misplaced()).into()),
        }
    }
    let key_array = text::column(key_field.data_type(), keys.iter().map(|key| Some(key.as_ref())))
        .map_err(|misfit| within(misfit.into(), "[key]", key_field, |at| row_of(&starts, at)))?;
    let value_array = items(value_field, "[]", &children, &starts)?;
    let entries_array = StructArray::try_new_with_length(pair.clone(), vec![key_array, value_array], None, keys.len())?;
    let nulls = NullBuffer::from_iter(values.iter().map(|value| *value != Json::Null));
    let offsets = offsets(&starts, children.len());
    Ok(Arc::new(MapArray::try_new(entries.clone(), offsets, entries_array, Some(nulls), sorted)?))
}

/// Reads the items of lists or maps that start at `starts`.
fn items(field: &Field, step: &str, items: &[Json<'_>], starts: &[usize]) -> Result<ArrayRef, Unfit> {
    let array =
        column(field.data_type(), items).map_err(|unfit| within(unfit, step, field, |at| row_of(starts, at)))?;
    if !field.is_nullable()
        && let Some(at) = items.iter().position(|item| *item == Json::Null)
    {
        let misfit = Misfit::new(at, "null", Why::IsNull);
        return Err(misfit.within(step, field.data_type(), row_of(starts, at)).into());
    }
    Ok(array)
}

fn within(unfit: Unfit, step: &str, field: &Field, row: impl FnOnce(usize) -> usize) -> Unfit {
    match unfit {
        Unfit::Misfit(misfit) => {
            let row = row(misfit.row);
            Unfit::Misfit(misfit.within(step, field.data_type(), row))
        }
        Unfit::Arrow(error) => Unfit::Arrow(error),
    }
}

/// The row whose items, which start at `starts`, hold item `at`.
fn row_of(starts: &[usize], at: usize) -> usize {
    starts.partition_point(|start| *start <= at).saturating_sub(1)
}

fn offsets(starts: &[usize], end: usize) -> OffsetBuffer<i32> {
    let ends = starts.iter().skip(1).copied().chain(std::iter::once(end));
    OffsetBuffer::from_lengths(starts.iter().zip(ends).map(|(start, end)| end - start))
}
