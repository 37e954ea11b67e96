//! Rows of a source made rows of the table: columns by name, types without loss, nothing null that must not be.

mod cast;
mod exact;
mod nested;

use arrow::array::new_empty_array;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};

use self::cast::{Caster, Misfit};
use crate::error::{Error, Result};
use crate::source::{Places, SourceBatch};
use crate::table::schema::TableSchema;

/// How a source's batches become the table's.
#[derive(Debug)]
pub(crate) struct Conform {
    columns: SchemaRef,
    missing: Vec<String>,
}

impl Conform {
    /// Checks that a source called `name`, of the columns `source`, can become rows of `table` at all.
    ///
    /// # Errors
    /// `Refused`, naming the columns: unknown to the table, spelt in another case, absent though the table says NOT NULL,
    /// or of a type that does not become the table's without loss.
    pub(crate) fn new(table: &TableSchema, source: &Schema, name: &str) -> Result<Self> {
        let empty: Vec<_> = source.fields().iter().map(|field| new_empty_array(field.data_type())).collect();
        let mut caster = Caster::default();
        caster
            .fields(&empty, source.fields(), table.columns().fields(), 0, None, "")
            .map_err(|misfit| misfit.into_error(name, None))?;
        Ok(Self { columns: table.columns().clone(), missing: caster.missing })
    }

    /// Columns of the table, and fields within them, that the source does not have: all their rows are null.
    pub(crate) fn missing(&self) -> &[String] {
        &self.missing
    }

    /// The batch with exactly the table's columns, in its order, types and nullability; places are the batch's.
    ///
    /// # Errors
    /// `Refused`, naming place, column and value: a value that the table's type does not hold exactly, or a null where
    /// the table says NOT NULL.
    pub(crate) fn apply(&self, batch: SourceBatch) -> Result<(RecordBatch, Places)> {
        let SourceBatch { rows, places } = batch;
        if rows.schema_ref() == &self.columns {
            return Ok((rows, places));
        }
        let source = rows.schema();
        let columns = Caster::default()
            .fields(rows.columns(), source.fields(), self.columns.fields(), rows.num_rows(), None, "")
            .map_err(|misfit| misfit.into_error(&places.of(0).source, Some(&places)))?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let rows = RecordBatch::try_new_with_options(self.columns.clone(), columns, &options)
            .map_err(|e| Error::internal(format!("{}: rows do not conform: {e}", places.of(0).source)).caused_by(e))?;
        Ok((rows, places))
    }
}

impl Misfit {
    fn into_error(self, name: &str, places: Option<&Places>) -> Error {
        match self {
            Self::Value { row, column, value, to } => {
                let place = places.map_or_else(|| name.to_owned(), |places| places.of(row).to_string());
                Error::refused(format!("{place}: column {column}: {value} does not fit {to}"))
            }
            Self::Columns { what, hint } => {
                let error = Error::refused(format!("{name} {what}"));
                match hint {
                    Some(hint) => error.hint(hint),
                    None => error,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
