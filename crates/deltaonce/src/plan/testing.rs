//! Small tables, rows and files for the tests of plans.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::BooleanArray;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::record_batch::RecordBatch;

use crate::source::{Places, Unit};
use crate::table::actions::AddFile;
use crate::table::schema::TableSchema;

pub(crate) const TIMESTAMP_NTZ: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

pub(crate) fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// A table of nullable columns.
pub(crate) fn table(columns: &[(&str, DataType)], partition_columns: &[&str]) -> TableSchema {
    let fields: Vec<_> = columns.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true)).collect();
    TableSchema::new(Schema::new(fields).into(), partition_columns.iter().map(ToString::to_string).collect())
}

/// A column of every kind, unpartitioned.
pub(crate) fn every_type() -> TableSchema {
    table(
        &[
            ("id", DataType::Int64),
            ("i", DataType::Int32),
            ("t", DataType::Int8),
            ("b", DataType::Boolean),
            ("f", DataType::Float32),
            ("dbl", DataType::Float64),
            ("dec", DataType::Decimal128(6, 1)),
            ("wide", DataType::Decimal128(38, 18)),
            ("s", DataType::Utf8),
            ("d", DataType::Date32),
            ("ts", timestamp()),
            ("ntz", TIMESTAMP_NTZ),
            ("OrderId", DataType::Int64),
        ],
        &[],
    )
}

/// Rows of a table from JSON lines; what a line does not name is null.
pub(crate) fn rows(schema: &TableSchema, lines: &[&str]) -> RecordBatch {
    let text = lines.join("\n");
    let mut reader = arrow::json::ReaderBuilder::new(schema.columns().clone())
        .with_batch_size(lines.len().max(1))
        .build(text.as_bytes())
        .unwrap();
    reader.next().map_or_else(|| RecordBatch::new_empty(schema.columns().clone()), |batch| batch.unwrap())
}

pub(crate) fn places(source: &str, first: u64) -> Places {
    Places::consecutive(Arc::from(source), Unit::Line, first)
}

/// A file of the table with partition values and statistics.
pub(crate) fn file(partition: &[(&str, Option<&str>)], stats: Option<&str>) -> AddFile {
    let partition_values: BTreeMap<_, _> =
        partition.iter().map(|(name, value)| (name.to_string(), value.map(str::to_owned))).collect();
    AddFile {
        path: "part-0.parquet".to_owned(),
        partition_values,
        size: 1,
        modification_time: 0,
        data_change: true,
        stats: stats.map(str::to_owned),
        tags: None,
        deletion_vector: None,
        base_row_id: None,
        default_row_commit_version: None,
        clustering_provider: None,
    }
}

/// Outcomes as letters: t, f, n.
pub(crate) fn letters(outcome: &BooleanArray) -> String {
    outcome.iter().map(|outcome| outcome.map_or('n', |yes| if yes { 't' } else { 'f' })).collect()
}
