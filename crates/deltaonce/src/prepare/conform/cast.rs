//! Which types become which: only where every value is kept.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute::{self, CastOptions};
use arrow::datatypes::{DataType, Field, Fields};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::exact;
use crate::table::columns::sql_type;

/// Letters of a value that a message shows.
const SHOWN: usize = 80;

/// Why rows do not become the table's.
#[derive(Debug)]
pub(super) enum Misfit {
    /// A value of one row.
    Value { row: usize, column: String, value: String, to: String },
    /// Columns or types as a whole; `what` goes on from the source's name.
    Columns { what: String, hint: Option<String> },
}

impl Misfit {
    pub(super) fn columns(what: String, hint: impl Into<String>) -> Self {
        Self::Columns { what, hint: Some(hint.into()) }
    }

    /// The value of `array` at `row`, which `to` does not hold.
    fn value(array: &dyn Array, row: usize, to: &Field, column: &str) -> Self {
        let options = FormatOptions::default();
        let value = if array.is_null(row) || array.data_type().is_null() {
            "null".to_owned()
        } else {
            let text = ArrayFormatter::try_new(array, &options).map(|formatter| formatter.value(row).to_string());
            text.unwrap_or_else(|_| "a value".into())
        };
        let value = match value.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}…", value.get(..end).unwrap_or_default()),
            None => value,
        };
        let not_null = if to.is_nullable() { "" } else { " not null" };
        Self::Value { row, column: column.to_owned(), value, to: format!("{}{not_null}", sql_type(to.data_type())) }
    }

    /// The misfit with `row` of an inner array made the row of the outer one that holds it.
    pub(super) fn of_outer(self, outer: impl FnOnce(usize) -> usize) -> Self {
        match self {
            Self::Value { row, column, value, to } => Self::Value { row: outer(row), column, value, to },
            columns @ Self::Columns { .. } => columns,
        }
    }
}

/// Casts arrays to the table's fields.
#[derive(Debug, Default)]
pub(super) struct Caster {
    /// Paths of fields that the source does not have.
    pub(super) missing: Vec<String>,
}

impl Caster {
    /// Arrays for the fields `to` out of `columns`, matched by name, `rows` long. Where `visible` is given, rows that it
    /// says are null lie within something null and need not hold anything.
    pub(super) fn fields(
        &mut self,
        columns: &[ArrayRef],
        from: &Fields,
        to: &Fields,
        rows: usize,
        visible: Option<&NullBuffer>,
        path: &str,
    ) -> Result<Vec<ArrayRef>, Misfit> {
        refuse_unknown(from, to, path)?;
        let by_name: HashMap<&str, &ArrayRef> = from.iter().map(|field| field.name().as_str()).zip(columns).collect();
        to.iter()
            .map(|field| {
                let path = join(path, field.name());
                match by_name.get(field.name().as_str()) {
                    Some(array) => self.cast(array, field, visible, &path),
                    None if field.is_nullable() => {
                        self.missing.push(path);
                        Ok(new_null_array(field.data_type(), rows))
                    }
                    None => Err(Misfit::columns(
                        format!("has no column {path}, which the table says is not null"),
                        "give the column in the source",
                    )),
                }
            })
            .collect()
    }

    /// `array` as an array of `to`'s type, checked for nulls where `to` is not nullable.
    pub(super) fn cast(
        &mut self,
        array: &ArrayRef,
        to: &Field,
        visible: Option<&NullBuffer>,
        path: &str,
    ) -> Result<ArrayRef, Misfit> {
        let cast = self.cast_type(array, to, path)?;
        if !to.is_nullable()
            && let Some(nulls) = cast.logical_nulls()
            && let Some(row) =
                (0..cast.len()).find(|row| nulls.is_null(*row) && visible.is_none_or(|visible| visible.is_valid(*row)))
        {
            return Err(Misfit::value(&cast, row, to, path));
        }
        Ok(cast)
    }

    fn cast_type(&mut self, array: &ArrayRef, to: &Field, path: &str) -> Result<ArrayRef, Misfit> {
        use DataType as T;
        let (from, target) = (array.data_type(), to.data_type());
        let misfit = |row: usize| Misfit::value(array, row, to, path);
        match (from, target) {
            _ if from == target => Ok(array.clone()),
            (T::Null, _) => Ok(new_null_array(target, array.len())),
            (T::Dictionary(_, value), _) => {
                let plain = plain_cast(array, value, path, to)?;
                self.cast_type(&plain, to, path)
            }
            (from, to_type) if from.is_integer() && to_type.is_integer() => {
                let cast = plain_cast(array, to_type, path, to)?;
                match first_lost(array, &cast) {
                    Some(row) => Err(misfit(row)),
                    None => Ok(cast),
                }
            }
            (from, T::Decimal128(precision, scale)) if from.is_integer() || is_decimal(from) => {
                exact::decimal(array, *precision, *scale).map_err(misfit)
            }
            (from, T::Float32 | T::Float64) if from.is_integer() => {
                exact::refuse_inexact_floats(array, target).map_err(misfit)?;
                plain_cast(array, target, path, to)
            }
            (T::Float16, T::Float32 | T::Float64) | (T::Float32, T::Float64) => plain_cast(array, target, path, to),
            (from, to_type) if is_string(from) && is_string(to_type) => plain_cast(array, target, path, to),
            (from, to_type) if is_binary(from) && is_binary(to_type) => plain_cast(array, target, path, to),
            (T::Date64, T::Date32) => exact::days(array).map_err(misfit),
            (T::Timestamp(unit, zone), T::Timestamp(arrow::datatypes::TimeUnit::Microsecond, to_zone))
                if zone.is_some() == to_zone.is_some() =>
            {
                exact::micros(array, *unit, to_zone.clone()).map_err(misfit)
            }
            (T::Timestamp(_, zone), T::Timestamp(..)) => Err(wrong_type(from, to, path, zone_hint(zone.is_some()))),
            (T::Struct(_), T::Struct(_)) => self.structure(array, to, path),
            (T::List(_) | T::LargeList(_) | T::FixedSizeList(..), T::List(_)) => self.list(array, to, path),
            (T::Map(..), T::Map(..)) => self.map(array, to, path),
            _ => Err(wrong_type(
                from,
                to,
                path,
                "convert the column in the source; types that could lose something are not converted here",
            )),
        }
    }
}

fn zone_hint(zoned: bool) -> &'static str {
    if zoned {
        "the source's times are instants; a timestamp_ntz column holds times without a zone"
    } else {
        "the source's times have no zone; give them one in the source, or make the table's column timestamp_ntz"
    }
}

pub(super) fn wrong_type(from: &DataType, to: &Field, path: &str, hint: &str) -> Misfit {
    let (from, to) = (sql_type(from), sql_type(to.data_type()));
    Misfit::columns(format!("has the column {path} as {from}, but the table's is {to}"), hint)
}

fn refuse_unknown(from: &Fields, to: &Fields, path: &str) -> Result<(), Misfit> {
    let mut unknown = Vec::new();
    for field in from {
        if to.iter().any(|column| column.name() == field.name()) {
            continue;
        }
        let twin = to.iter().find(|column| column.name().to_lowercase() == field.name().to_lowercase());
        if let Some(twin) = twin {
            let (ours, theirs) = (join(path, twin.name()), join(path, field.name()));
            return Err(Misfit::columns(
                format!("has the column {theirs}, which the table spells {ours}"),
                format!("rename it to {ours} in the source"),
            ));
        }
        unknown.push(join(path, field.name()));
    }
    if unknown.is_empty() {
        return Ok(());
    }
    let columns = if unknown.len() == 1 { "column" } else { "columns" };
    Err(Misfit::columns(
        format!("has the {columns} {}, which the table has not", unknown.join(", ")),
        "drop them in the source, or add them to the table",
    ))
}

/// Arrow's own cast, for pairs of types of which it keeps every value or makes it null.
fn plain_cast(array: &ArrayRef, target: &DataType, path: &str, to: &Field) -> Result<ArrayRef, Misfit> {
    let options = CastOptions { safe: true, ..CastOptions::default() };
    compute::cast_with_options(array, target, &options)
        .map_err(|e| wrong_type(array.data_type(), to, path, &format!("the conversion failed: {e}")))
}

/// The first row that is null only after a cast.
fn first_lost(before: &ArrayRef, after: &ArrayRef) -> Option<usize> {
    if before.null_count() == after.null_count() {
        return None;
    }
    (0..after.len()).find(|row| after.is_null(*row) && before.is_valid(*row))
}

fn is_string(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_binary(data_type: &DataType) -> bool {
    use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary};
    matches!(data_type, Binary | LargeBinary | BinaryView | FixedSizeBinary(_))
}

fn is_decimal(data_type: &DataType) -> bool {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256};
    matches!(data_type, Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..))
}

pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// `array` with more nulls: a row is null where it was or where `outer` is.
pub(super) fn masked(array: &ArrayRef, outer: Option<&NullBuffer>) -> ArrayRef {
    if outer.is_none_or(|outer| outer.null_count() == 0) || array.data_type().is_null() {
        return array.clone();
    }
    let nulls = NullBuffer::union(array.nulls(), outer);
    match array.to_data().into_builder().nulls(nulls).build() {
        Ok(data) => arrow::array::make_array(data),
        Err(_) => Arc::clone(array),
    }
}
