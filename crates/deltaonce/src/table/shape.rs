//! How the batches of a data file become batches of the table's columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::{Fields, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;

use super::actions::AddFile;
use super::schema::TableSchema;
use super::widen::widen;
use crate::error::{Error, Result};
use crate::plan::value::partition_value;

/// Where the values of one asked column come from.
#[derive(Debug, Clone)]
enum Origin {
    /// From the file, if it has a column of that name.
    File,
    /// From the log, if the file's entry says it.
    Partition(Option<Option<String>>),
}

/// Columns of the table that are asked of one file.
#[derive(Debug)]
struct Wanted {
    path: String,
    schema: SchemaRef,
    origins: Vec<Origin>,
}

impl Wanted {
    fn new(schema: &TableSchema, file: &AddFile, columns: &[usize]) -> Self {
        let fields: Fields =
            columns.iter().filter_map(|&column| schema.columns().fields().get(column)).cloned().collect();
        let origins = fields
            .iter()
            .map(|field| {
                if schema.is_partition_column(field.name()) {
                    Origin::Partition(file.partition_values.get(field.name()).cloned())
                } else {
                    Origin::File
                }
            })
            .collect();
        Self { path: file.path.clone(), schema: Arc::new(Schema::new(fields)), origins }
    }
}

/// How batches of the file become batches of the asked columns.
#[derive(Debug)]
pub(super) struct Shape {
    wanted: Wanted,
    fills: Vec<Fill>,
}

#[derive(Debug)]
enum Fill {
    /// The batch's column at this index.
    Column(usize),
    Value(ScalarValue),
    Null,
}

impl Shape {
    /// The shape of `columns` (indices into the table's columns) of `file`, and which columns of the file that takes.
    ///
    /// # Errors
    /// `Unsupported` where the log gives no value of its type for a partition column.
    pub(super) fn new(
        schema: &TableSchema,
        file: &AddFile,
        columns: &[usize],
        metadata: &ArrowReaderMetadata,
    ) -> Result<(Self, ProjectionMask)> {
        let wanted = Wanted::new(schema, file, columns);
        let had = metadata.schema().fields();
        // Exactly, else as readers do that do not care about case.
        let find = |name: &str| {
            let same = had.iter().position(|field| field.name() == name);
            same.or_else(|| had.iter().position(|field| field.name().eq_ignore_ascii_case(name)))
        };
        let places: Vec<Option<usize>> = wanted
            .schema
            .fields()
            .iter()
            .zip(&wanted.origins)
            .map(|(field, origin)| if matches!(origin, Origin::File) { find(field.name()) } else { None })
            .collect();
        let mut roots: Vec<usize> = places.iter().copied().flatten().collect();
        roots.sort_unstable();
        roots.dedup();
        let fills = places
            .iter()
            .zip(&wanted.origins)
            .zip(wanted.schema.fields())
            .map(|((place, origin), field)| match (place, origin) {
                (_, Origin::Partition(text)) => {
                    let value = text.as_ref().and_then(|text| partition_value(text.as_deref(), field.data_type()));
                    value.map(Fill::Value).ok_or_else(|| {
                        let (column, file, data_type) = (field.name(), &wanted.path, field.data_type());
                        let text = text.as_ref().map_or("nothing".to_owned(), |text| format!("{text:?}"));
                        Error::unsupported(format!(
                            "data file '{file}' has no value of the type {data_type} in partition column '{column}' but {text}"
                        ))
                    })
                }
                // A batch holds the asked roots in the file's order.
                (Some(root), Origin::File) => Ok(Fill::Column(roots.partition_point(|other| other < root))),
                (None, Origin::File) => Ok(Fill::Null),
            })
            .collect::<Result<_>>()?;
        let mask = ProjectionMask::roots(metadata.parquet_schema(), roots);
        Ok((Self { wanted, fills }, mask))
    }

    /// The asked columns of a batch of the file.
    ///
    /// # Errors
    /// `Unsupported` where its types are not the table's, or a column that may not be null is.
    pub(super) fn fit(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let count = batch.num_rows();
        let strange = |field: &str| {
            Error::unsupported(format!(
                "column '{field}' of data file '{}' does not fit the table's schema",
                self.wanted.path
            ))
        };
        let columns = self
            .fills
            .iter()
            .zip(self.wanted.schema.fields())
            .map(|(fill, field)| -> Result<ArrayRef> {
                match fill {
                    Fill::Column(index) => {
                        widen(batch.column(*index), field.data_type()).map_err(|e| strange(field.name()).caused_by(e))
                    }
                    Fill::Value(value) => value.to_array_of_size(count).map_err(|e| strange(field.name()).caused_by(e)),
                    Fill::Null => Ok(new_null_array(field.data_type(), count)),
                }
            })
            .collect::<Result<Vec<_>>>()?;
        if let Some((field, _)) = self
            .wanted
            .schema
            .fields()
            .iter()
            .zip(&columns)
            .find(|(field, column)| !field.is_nullable() && column.null_count() > 0)
        {
            return Err(strange(field.name()).detail("it holds nulls, and the table's column does not"));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        RecordBatch::try_new_with_options(self.wanted.schema.clone(), columns, &options).map_err(|e| {
            Error::unsupported(format!("data file '{}' does not fit the table's schema", self.wanted.path)).caused_by(e)
        })
    }
}
