//! What the log says about the values in a data file, as bounds that no value of the file lies outside of.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use serde_json::Value;

use crate::table::actions::AddFile;
use crate::table::scan::partition_scalar;
use crate::table::schema::TableSchema;

/// Bounds of the values of each column of one file, from its partition values and its statistics.
#[derive(Debug)]
pub(crate) struct FileBounds<'a> {
    file: &'a AddFile,
    schema: &'a TableSchema,
    stats: Value,
}

impl<'a> FileBounds<'a> {
    /// The bounds of a file of a table.
    pub(crate) fn of(file: &'a AddFile, schema: &'a TableSchema) -> Self {
        let stats = file.stats.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        Self { file, schema, stats }
    }

    fn constant(&self, column: &str) -> Option<ScalarValue> {
        if !self.schema.is_partition_column(column) {
            return None;
        }
        partition_scalar(self.file.partition_values.get(column)?.as_deref(), self.schema.column(column)?.data_type())
            .ok()
    }

    /// Whether a row of the file can be null in a column.
    pub(crate) fn may_be_null(&self, column: &str) -> bool {
        match self.constant(column) {
            Some(constant) => constant.is_null(),
            None => self.stats["nullCount"][column].as_u64() != Some(0),
        }
    }

    /// Whether a row of the file can be other than null in a column.
    pub(crate) fn may_be_value(&self, column: &str) -> bool {
        match self.constant(column) {
            Some(constant) => !constant.is_null(),
            None => {
                let rows = self.stats["numRecords"].as_u64();
                rows.is_none() || self.stats["nullCount"][column].as_u64() != rows
            }
        }
    }

    /// The least and the greatest value that a column can have in the file, nulls apart, where both are known.
    pub(crate) fn range(&self, column: &str) -> Option<(ScalarValue, ScalarValue)> {
        if let Some(constant) = self.constant(column) {
            return (!constant.is_null() && !constant.data_type().is_floating()).then(|| (constant.clone(), constant));
        }
        let end = |ends: &str| match (self.schema.column(column)?.data_type(), &self.stats[ends][column]) {
            (DataType::Int32, Value::Number(value)) => Some(ScalarValue::Int32(Some(value.as_i64()?.try_into().ok()?))),
            (DataType::Int64, Value::Number(value)) => Some(ScalarValue::Int64(Some(value.as_i64()?))),
            (DataType::Utf8, Value::String(text)) if text.len() < 32 => Some(ScalarValue::Utf8(Some(text.clone()))),
            _ => None,
        };
        Some((end("minValues")?, end("maxValues")?))
    }
}
