//! Rows by their partition: one batch becomes a batch per partition, without the partition columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    SchemaRef, TimeUnit, TimestampMicrosecondType,
};
use arrow::record_batch::RecordBatch;
use arrow::row::{OwnedRow, RowConverter, SortField};
use chrono::{NaiveDateTime, Timelike};

use super::text;
use crate::error::{Error, Result};
use crate::table::schema::TableSchema;

/// A partition's values in the order of the partition columns, each with its column's name.
pub(super) type Values = Vec<(String, Value)>;

/// A partition value in both of its spellings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value {
    /// As `partitionValues` has it.
    pub(super) log: Option<String>,
    /// As the name of the directory has it, not yet escaped.
    pub(super) directory: Option<String>,
}

/// What splitting needs to know of a table.
#[derive(Debug)]
pub(super) struct Partitioning {
    columns: Vec<(usize, String, DataType)>,
    file_columns: Vec<usize>,
    file_schema: SchemaRef,
}

/// Rows of one partition; `first` is where one of them stood in the batch that was split.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) first: usize,
    pub(super) rows: RecordBatch,
}

/// Splits batches. One per thread.
#[derive(Debug)]
pub(super) struct Splitter {
    partitioning: Arc<Partitioning>,
    converter: RowConverter,
}

impl Partitioning {
    /// # Errors
    /// `Unsupported` for a partition column of a type whose values have no agreed text, `Internal` for one that is no column.
    pub(super) fn new(schema: &TableSchema) -> Result<Self> {
        let mut columns = Vec::new();
        for name in schema.partition_columns() {
            let Some((index, field)) = schema.columns().column_with_name(name) else {
                return Err(Error::internal(format!("the partition column '{name}' is not a column of the table")));
            };
            let data_type = field.data_type();
            if !has_text(data_type) {
                return Err(Error::unsupported(format!(
                    "the table is partitioned by '{name}' of type {data_type}, which is not written"
                )));
            }
            columns.push((index, name.clone(), data_type.clone()));
        }
        let file_columns =
            (0..schema.columns().fields().len()).filter(|index| columns.iter().all(|(i, ..)| i != index)).collect();
        Ok(Self { columns, file_columns, file_schema: schema.file_columns() })
    }

    /// Whether there are partition columns.
    pub(super) fn is_partitioned(&self) -> bool {
        !self.columns.is_empty()
    }

    /// The columns of data files.
    pub(super) fn file_schema(&self) -> &SchemaRef {
        &self.file_schema
    }

    /// The partition of row `row` of `batch`, a batch with all of the table's columns.
    ///
    /// # Errors
    /// `Refused` for a value that no reader would give back as it is.
    pub(super) fn values(&self, batch: &RecordBatch, row: usize) -> Result<Values> {
        self.columns
            .iter()
            .map(|(index, name, data_type)| Ok((name.clone(), value(name, data_type, batch.column(*index), row)?)))
            .collect()
    }

    /// The partition that a row of just the partition columns says.
    ///
    /// # Errors
    /// As [`values`](Self::values).
    pub(super) fn values_alone(&self, partition: &RecordBatch) -> Result<Values> {
        let columns = self.columns.iter().zip(partition.columns());
        columns.map(|((_, name, data_type), column)| Ok((name.clone(), value(name, data_type, column, 0)?))).collect()
    }

    fn file_rows(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns: Vec<ArrayRef> = self.file_columns.iter().map(|index| batch.column(*index).clone()).collect();
        let options = arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.file_schema.clone(), columns, &options)
            .map_err(|e| Error::internal(format!("rows do not have the table's columns: {e}")).caused_by(e))
    }
}

impl Splitter {
    /// # Errors
    /// `Internal` where arrow cannot tell rows apart by the partition columns.
    pub(super) fn new(partitioning: Arc<Partitioning>) -> Result<Self> {
        let fields = partitioning.columns.iter().map(|(.., data_type)| SortField::new(data_type.clone())).collect();
        let converter = RowConverter::new(fields).map_err(internal)?;
        Ok(Self { partitioning, converter })
    }

    /// What [`split`](Self::split) calls the partition that a row of just the partition columns says.
    ///
    /// # Errors
    /// `Internal` for other columns.
    pub(super) fn partition(&self, partition: &RecordBatch) -> Result<Option<OwnedRow>> {
        if self.partitioning.columns.is_empty() {
            return Ok(None);
        }
        let rows = self.converter.convert_columns(partition.columns()).map_err(internal)?;
        Ok(rows.iter().next().map(|row| row.owned()))
    }

    /// Splits a batch with all of the table's columns; partitions come in the order of their first rows, and so do the rows of each.
    ///
    /// # Errors
    /// `Internal` for a batch with other columns.
    pub(super) fn split(&self, batch: &RecordBatch) -> Result<Vec<(Option<OwnedRow>, Part)>> {
        let file_rows = self.partitioning.file_rows(batch)?;
        if self.partitioning.columns.is_empty() {
            return Ok(vec![(None, Part { first: 0, rows: file_rows })]);
        }
        let columns: Vec<ArrayRef> =
            self.partitioning.columns.iter().map(|(index, ..)| batch.column(*index).clone()).collect();
        let keys = self.converter.convert_columns(&columns).map_err(internal)?;
        let mut groups: Vec<Vec<u32>> = Vec::new();
        let mut group_of = HashMap::new();
        let mut last = None;
        for (row, key) in keys.iter().enumerate() {
            let group = match last {
                Some((last_key, group)) if last_key == key => group,
                _ => *group_of.entry(key).or_insert_with(|| {
                    groups.push(Vec::new());
                    groups.len() - 1
                }),
            };
            last = Some((key, group));
            if let Some(rows) = groups.get_mut(group) {
                rows.push(u32::try_from(row).map_err(internal)?);
            }
        }
        groups
            .into_iter()
            .filter_map(|rows| {
                let (first, last) = (*rows.first()? as usize, *rows.last()? as usize);
                Some((first, last, rows))
            })
            .map(|(first, last, rows)| {
                let key = Some(keys.row(first).owned());
                let rows = if last - first + 1 == rows.len() {
                    file_rows.slice(first, rows.len())
                } else {
                    take_record_batch(&file_rows, &UInt32Array::from(rows)).map_err(internal)?
                };
                Ok((key, Part { first, rows }))
            })
            .collect()
    }
}

fn internal(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::internal(format!("rows could not be split by partition: {error}")).caused_by(error)
}

/// Binary is left out although the protocol names a form for it: no two writers agree on it.
fn has_text(data_type: &DataType) -> bool {
    use DataType::{Boolean, Date32, Decimal128, Float32, Float64, Int8, Int16, Int32, Int64, Timestamp, Utf8};
    matches!(
        data_type,
        Boolean
            | Int8
            | Int16
            | Int32
            | Int64
            | Float32
            | Float64
            | Decimal128(..)
            | Date32
            | Timestamp(TimeUnit::Microsecond, _)
            | Utf8
    )
}

fn value(name: &str, data_type: &DataType, array: &ArrayRef, row: usize) -> Result<Value> {
    if array.is_null(row) {
        return Ok(Value { log: None, directory: None });
    }
    let alike = |text: String| Value { log: Some(text.clone()), directory: Some(text) };
    let calendar = |text: Option<Value>| {
        text.ok_or_else(|| {
            Error::refused(format!("a value of the partition column '{name}' is outside the years 1 to 9999"))
                .hint("readers do not agree on how such a value is written")
        })
    };
    Ok(match data_type {
        DataType::Boolean => alike(array.as_boolean().value(row).to_string()),
        DataType::Int8 => alike(array.as_primitive::<Int8Type>().value(row).to_string()),
        DataType::Int16 => alike(array.as_primitive::<Int16Type>().value(row).to_string()),
        DataType::Int32 => alike(array.as_primitive::<Int32Type>().value(row).to_string()),
        DataType::Int64 => alike(array.as_primitive::<Int64Type>().value(row).to_string()),
        DataType::Float32 => alike(float(array.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => alike(float(array.as_primitive::<Float64Type>().value(row))),
        DataType::Decimal128(_, scale) => {
            alike(text::decimal(array.as_primitive::<Decimal128Type>().value(row), *scale))
        }
        DataType::Date32 => calendar(text::date(array.as_primitive::<Date32Type>().value(row)).map(alike))?,
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let moment = text::date_time(array.as_primitive::<TimestampMicrosecondType>().value(row));
            calendar(moment.map(|moment| timestamp(moment, zone.is_some())))?
        }
        DataType::Utf8 => {
            let text = array.as_string::<i32>().value(row);
            if text.is_empty() {
                return Err(Error::refused(format!(
                    "the partition column '{name}' holds an empty string, which readers of the table would take for null"
                ))
                .hint("give null or a value that is not empty"));
            }
            alike(text.to_owned())
        }
        other => return Err(Error::internal(format!("the partition column '{name}' has the type {other}"))),
    })
}

/// As both Java and Rust read it back to the same bits.
fn float<F: std::fmt::Debug + Into<f64> + Copy>(number: F) -> String {
    let wide: f64 = number.into();
    match wide {
        _ if wide.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        _ => format!("{number:?}"),
    }
}

/// A moment of UTC is written with its zone: without one, readers take it for their own local time.
fn timestamp(moment: NaiveDateTime, zoned: bool) -> Value {
    let (day, time, micros) = (text::day(moment), text::time(moment), moment.nanosecond() / 1000);
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    let fraction = fraction.trim_end_matches('0');
    let directory = format!("{day} {time}{fraction}");
    let log = if zoned { format!("{day}T{time}.{micros:06}Z") } else { directory.clone() };
    Value { log: Some(log), directory: Some(directory) }
}
