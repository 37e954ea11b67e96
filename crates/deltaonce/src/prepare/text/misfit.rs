//! A value that does not fit its column, and how that is said.

use std::fmt;

use arrow::datatypes::{DataType, TimeUnit};

use crate::error::Error;
use crate::source::Place;

/// Why a value does not fit a type. Its display completes the sentence "'x' …".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Empty,
    NotWhole,
    NotNumber,
    NotBoolean,
    NotDate,
    NotTimestamp,
    NoSuchDay,
    NoSuchTime,
    OutOfRange,
    TooManyDigits,
    PastScale,
    FinerThanMicros,
    NoOffset,
    HasOffset,
    NotReadable,
    IsString,
    IsNumber,
    IsBoolean,
    IsObject,
    IsArray,
    IsNull,
    BadEscape,
    BadJson,
    UnknownField,
    RepeatedKey,
}

impl Why {
    /// `otherwise`, but for a text that is simply empty.
    pub(super) fn unless_empty(text: &str, otherwise: Self) -> Self {
        if text.is_empty() { Self::Empty } else { otherwise }
    }

    /// What to do about it, where that is not plain.
    fn hint(self) -> Option<&'static str> {
        match self {
            Self::NoOffset => {
                Some("say the offset in the file, as in 2026-10-05T04:12:00Z or 2026-10-05T04:12:00+02:00")
            }
            Self::HasOffset => {
                Some("a timestamp_ntz has no zone; leave the offset out, or make the column a timestamp")
            }
            Self::NotReadable => Some("load this column from Parquet or Arrow"),
            Self::IsString => Some("write the value without quotes if it is meant as this type"),
            _ => None,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "is empty",
            Self::NotWhole => "is not a whole number",
            Self::NotNumber => "is not a number",
            Self::NotBoolean => "is neither true nor false",
            Self::NotDate => "is not a date like 2026-10-05",
            Self::NotTimestamp => "is not a timestamp like 2026-10-05T04:12:00.5",
            Self::NoSuchDay => "is not a day of the calendar",
            Self::NoSuchTime => "is not a time of day",
            Self::OutOfRange => "is out of its range",
            Self::TooManyDigits => "has more digits than its precision",
            Self::PastScale => "has digits past its scale",
            Self::FinerThanMicros => "is finer than a microsecond",
            Self::NoOffset => "has no offset from UTC",
            Self::HasOffset => "has an offset from UTC",
            Self::NotReadable => "is text, which it cannot be read from",
            Self::IsString => "is a string",
            Self::IsNumber => "is a number",
            Self::IsBoolean => "is a boolean",
            Self::IsObject => "is an object",
            Self::IsArray => "is an array",
            Self::IsNull => "is null, which it may not be",
            Self::BadEscape => "has an escape that stands for no character",
            Self::BadJson => "is not JSON",
            Self::UnknownField => "has a field that it lacks",
            Self::RepeatedKey => "has a key twice",
        })
    }
}

/// A value that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// The value's position among those read together.
    pub(crate) row: usize,
    /// Where the value stands in a nested column, as in `.address.zip`; empty for the column itself.
    pub(crate) path: String,
    /// The type at that place; none: the column's own.
    pub(crate) nested_type: Option<DataType>,
    /// The value, shortened and escaped.
    pub(crate) value: String,
    pub(crate) why: Why,
}

impl Misfit {
    /// The value at position `row`, which does not fit.
    #[cold]
    pub(crate) fn new(row: usize, value: impl fmt::Display, why: Why) -> Self {
        Self { row, path: String::new(), nested_type: None, value: shown(&value.to_string()), why }
    }

    /// The same misfit, seen from the column around it: under `step` of its value at position `row`.
    pub(crate) fn within(mut self, step: &str, data_type: &DataType, row: usize) -> Self {
        self.path.insert_str(0, step);
        self.nested_type.get_or_insert_with(|| data_type.clone());
        self.row = row;
        self
    }

    /// The refusal: place, column, type, value and what is wrong with it, in one sentence.
    pub(crate) fn refuse(&self, place: &Place, column: &str, data_type: &DataType) -> Error {
        let takes = sql_name(self.nested_type.as_ref().unwrap_or(data_type));
        let error = Error::refused(format!(
            "{place}: column {column}{} is {takes}, but '{}' {}",
            self.path, self.value, self.why
        ));
        match self.why.hint() {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

/// A value as messages show it: on one line, at most 60 characters and an ellipsis.
pub(crate) fn shown(value: &str) -> String {
    let mut shown = String::new();
    for (i, c) in value.chars().enumerate() {
        if i == 60 {
            shown.push('…');
            break;
        }
        match c {
            '"' | '\'' => shown.push(c),
            _ => shown.extend(c.escape_debug()),
        }
    }
    shown
}

/// A type's name in SQL as Spark writes it.
pub(crate) fn sql_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "boolean".into(),
        DataType::Int8 => "tinyint".into(),
        DataType::Int16 => "smallint".into(),
        DataType::Int32 => "int".into(),
        DataType::Int64 => "bigint".into(),
        DataType::Float32 => "float".into(),
        DataType::Float64 => "double".into(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary".into(),
        DataType::Date32 => "date".into(),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamp".into(),
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp_ntz".into(),
        DataType::Decimal128(precision, scale) => format!("decimal({precision},{scale})"),
        DataType::Struct(fields) => {
            let fields: Vec<_> = fields.iter().map(|f| format!("{}: {}", f.name(), sql_name(f.data_type()))).collect();
            format!("struct<{}>", fields.join(", "))
        }
        DataType::List(item) | DataType::LargeList(item) => format!("array<{}>", sql_name(item.data_type())),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => {
                let pair: Vec<_> = pair.iter().map(|f| sql_name(f.data_type())).collect();
                format!("map<{}>", pair.join(", "))
            }
            other => format!("map<{}>", sql_name(other)),
        },
        other => other.to_string(),
    }
}
