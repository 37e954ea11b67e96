//! An expression as DataFusion carries it out, within the bounds that keep one row from exhausting memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::concat;
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::DFSchema;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::execution_props::ExecutionProps;
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};

use super::limits;
use crate::error::{Error, Result};
use crate::plan::value::cut;
use crate::table::schema::TableSchema;

/// A compiled expression.
#[derive(Debug, Clone)]
pub(super) struct Program {
    text: String,
    compiled: Arc<dyn PhysicalExpr>,
    columns: BTreeSet<String>,
    /// The columns it reads, in the table's order.
    reads: SchemaRef,
    /// How many of its operations make texts.
    texts: usize,
}

impl Program {
    /// Compiles `expr`, which reads `columns` of `schema`; `text` is its SQL.
    ///
    /// # Errors
    /// `Internal` where DataFusion cannot carry it out.
    pub(super) fn compile(
        text: &str,
        expr: &Expr,
        columns: BTreeSet<String>,
        texts: usize,
        schema: &TableSchema,
    ) -> Result<Self> {
        let text = text.trim().to_owned();
        let fields: Vec<_> =
            schema.columns().fields().iter().filter(|field| columns.contains(field.name())).cloned().collect();
        let reads: SchemaRef = Schema::new(fields).into();
        let failed = |e| Error::internal(format!("the expression '{}' cannot be carried out", cut(&text))).caused_by(e);
        let names = DFSchema::try_from(reads.clone()).map_err(failed)?;
        let compiled = create_physical_expr(expr, &names, &ExecutionProps::new(), &PhysicalPlanningContext::default())
            .map_err(failed)?;
        Ok(Self { text, compiled, columns, reads, texts })
    }

    /// Columns that it reads.
    pub(super) fn columns(&self) -> &BTreeSet<String> {
        &self.columns
    }

    /// Its SQL, as it was given.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// A batch of one row with the columns that it reads, each of which `value` gives; none where one is not given.
    pub(super) fn row(&self, value: impl Fn(&str) -> Option<ArrayRef>) -> Option<RecordBatch> {
        let columns = self.reads.fields().iter().map(|field| value(field.name())).collect::<Option<Vec<_>>>()?;
        let fields: Vec<_> = self.reads.fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        RecordBatch::try_new_with_options(Schema::new(fields).into(), columns, &options).ok()
    }

    /// Its value for each row of a batch that has (at least) the columns it reads, under their names.
    ///
    /// # Errors
    /// `Refused` where a row cannot be computed (a sum beyond 38 digits); `Internal` where a column is missing.
    pub(super) fn run(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let at_once = self.rows_at_once(batch)?;
        if at_once >= batch.num_rows() {
            return self.run_at_once(batch);
        }
        let parts = (0..batch.num_rows())
            .step_by(at_once)
            .map(|start| self.run(&batch.slice(start, at_once.min(batch.num_rows() - start))));
        let parts: Vec<ArrayRef> = parts.collect::<Result<_>>()?;
        concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>())
            .map_err(|e| Error::internal(self.failed()).caused_by(e))
    }

    fn failed(&self) -> String {
        format!("the expression '{}' cannot be computed for these rows", cut(&self.text))
    }

    /// How many rows of a batch can be computed together so that the texts made of them stay within bounds: all, or half
    /// of them.
    ///
    /// # Errors
    /// `Refused` where the texts of one row are too long.
    fn rows_at_once(&self, batch: &RecordBatch) -> Result<usize> {
        let rows = batch.num_rows();
        if self.texts == 0 {
            return Ok(rows);
        }
        let read = self.columns.iter().filter_map(|name| batch.column_by_name(name)?.as_string_opt::<i32>());
        let length =
            |texts: &StringArray| Some((texts.value_offsets().last()? - texts.value_offsets().first()?) as usize);
        let read: usize = read.filter_map(length).sum();
        if limits::may_make(self.texts, read.saturating_add(rows.saturating_mul(self.text.len()))) {
            return Ok(rows);
        }
        if rows > 1 {
            return Ok(rows.div_ceil(2));
        }
        Err(Error::refused(format!(
            "the expression '{}' makes texts longer than can be computed with, of a row with {read} bytes of text",
            cut(&self.text)
        )))
    }

    fn run_at_once(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let columns = self
            .reads
            .fields()
            .iter()
            .map(|field| match batch.column_by_name(field.name()) {
                Some(column) if column.data_type().equals_datatype(field.data_type()) => Ok(column.clone()),
                _ => Err(Error::internal(self.failed()).detail(format!("no column '{}' of its type", field.name()))),
            })
            .collect::<Result<Vec<_>>>()?;
        // Nullability is the table's promise; the rows at hand are not yet checked against it.
        let fields = self.reads.fields().iter().zip(&columns);
        let fields: Vec<_> =
            fields.map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let rows = RecordBatch::try_new_with_options(Schema::new(fields).into(), columns, &options)
            .map_err(|e| Error::internal(self.failed()).caused_by(e))?;
        self.compiled
            .evaluate(&rows)
            .and_then(|value| value.into_array(rows.num_rows()))
            .map_err(|e| Error::refused(self.failed()).detail(e.to_string()).caused_by(e))
    }
}
