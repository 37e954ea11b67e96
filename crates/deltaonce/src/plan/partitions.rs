//! A set of partitions, by their typed values.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use arrow::row::{OwnedRow, RowConverter, SortField};

use super::bounds::FileBounds;
use super::value::type_name;
use crate::error::{Error, Result};
use crate::table::schema::TableSchema;

/// Partitions that have a row in the source: tuples of typed values, in which null equals null.
#[derive(Debug, Clone)]
pub(crate) struct PartitionSet {
    columns: Vec<(String, DataType)>,
    // Stateless for the types that a partition column can have, so that rows of one set compare.
    converter: Arc<RowConverter>,
    tuples: HashSet<OwnedRow>,
}

impl PartitionSet {
    /// The empty set of a table's partitions.
    ///
    /// # Errors
    /// `Invalid` for a table without partitions; `Unsupported` for one partitioned by a float or by bytes, whose text
    /// in the log does not tell values apart surely.
    pub(crate) fn of(schema: &TableSchema) -> Result<Self> {
        if schema.partition_columns().is_empty() {
            return Err(Error::invalid(
                "the table is not partitioned, so the partitions in the source name no part of it",
            )
            .hint("name the rows with a predicate or an interval, or ask for the whole table in so many words"));
        }
        let mut columns = Vec::new();
        for name in schema.partition_columns() {
            let Some(field) = schema.column(name) else {
                return Err(Error::internal(format!("the table is partitioned by '{name}', which is not a column")));
            };
            if field.data_type().is_floating()
                || *field.data_type() == DataType::Binary
                || field.data_type().is_nested()
            {
                return Err(Error::unsupported(format!(
                    "the table is partitioned by '{name}' of type {}, whose partitions cannot be told apart surely",
                    type_name(field.data_type())
                ))
                .hint("name the rows with a predicate"));
            }
            columns.push((name.clone(), field.data_type().clone()));
        }
        let fields = columns.iter().map(|(_, data_type)| SortField::new(data_type.clone())).collect();
        let converter = RowConverter::new(fields).map_err(broken)?;
        Ok(Self { columns, converter: Arc::new(converter), tuples: HashSet::new() })
    }

    /// Adds the partitions of the rows of a batch.
    ///
    /// # Errors
    /// `Refused` for an empty text in a partition column: the log cannot tell it from null.
    pub(crate) fn observe(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = self.of_batch(batch)?;
        for (column, (name, _)) in columns.iter().zip(&self.columns) {
            if let Some(texts) = column.as_string_opt::<i32>()
                && texts.iter().any(|text| text == Some(""))
            {
                return Err(Error::refused(format!(
                    "partition column '{name}' has an empty text, which a Delta table cannot tell from null"
                )));
            }
        }
        let rows = self.converter.convert_columns(&columns).map_err(broken)?;
        let mut last = None;
        for row in &rows {
            // Sources are often sorted by partition.
            if last != Some(row) {
                if !self.tuples.contains(&row.owned()) {
                    self.tuples.insert(row.owned());
                }
                last = Some(row);
            }
        }
        Ok(())
    }

    /// Whether a file's partition is in the set; none where its partition values cannot be read.
    pub(crate) fn holds(&self, bounds: &FileBounds<'_>) -> Option<bool> {
        let values =
            self.columns.iter().map(|(name, _)| bounds.constant(name)?.to_array().ok()).collect::<Option<Vec<_>>>()?;
        let rows = self.converter.convert_columns(&values).ok()?;
        Some(self.tuples.contains(&rows.row(0).owned()))
    }

    /// For each row of a batch, whether its partition is in the set.
    ///
    /// # Errors
    /// `Internal` for a batch without the partition columns.
    pub(crate) fn contains(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let rows = self.converter.convert_columns(&self.of_batch(batch)?).map_err(broken)?;
        Ok(rows.iter().map(|row| Some(self.tuples.contains(&row.owned()))).collect())
    }

    fn of_batch(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.columns
            .iter()
            .map(|(name, data_type)| match batch.column_by_name(name) {
                Some(column) if column.data_type() == data_type => Ok(column.clone()),
                _ => Err(Error::internal(format!("rows lack the partition column '{name}' of its type"))),
            })
            .collect()
    }
}

fn broken(e: arrow::error::ArrowError) -> Error {
    Error::internal("partition values cannot be compared").caused_by(e)
}
