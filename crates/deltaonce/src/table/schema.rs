//! The columns of a table, as every stage of a load sees them.

use arrow::datatypes::{Field, Schema, SchemaRef};

/// A table's columns in Arrow's types: the one schema that prepared rows, plans and data files share.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableSchema {
    columns: SchemaRef,
    partition_columns: Vec<String>,
}

impl TableSchema {
    /// All of the table's columns, partition columns included, in the table's order. Types are those that deltalake
    /// gives for Delta's: `Utf8`, `Timestamp(µs, "UTC")` for timestamp, `Timestamp(µs)` for timestamp_ntz, `Decimal128`.
    pub(crate) fn new(columns: SchemaRef, partition_columns: Vec<String>) -> Self {
        Self { columns, partition_columns }
    }

    /// All columns, partition columns included.
    pub(crate) fn columns(&self) -> &SchemaRef {
        &self.columns
    }

    /// Names of the partition columns, in order.
    pub(crate) fn partition_columns(&self) -> &[String] {
        &self.partition_columns
    }

    /// Whether a column is a partition column.
    pub(crate) fn is_partition_column(&self, name: &str) -> bool {
        self.partition_columns.iter().any(|column| column == name)
    }

    /// The columns that data files hold: all but the partition columns.
    pub(crate) fn file_columns(&self) -> SchemaRef {
        let fields: Vec<_> =
            self.columns.fields().iter().filter(|field| !self.is_partition_column(field.name())).cloned().collect();
        Schema::new(fields).into()
    }

    /// A column by its exact name.
    pub(crate) fn column(&self, name: &str) -> Option<&Field> {
        self.columns.column_with_name(name).map(|(_, field)| field)
    }
}
