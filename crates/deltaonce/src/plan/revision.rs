//! How a merge makes the newer row of one that the table holds: which columns come from the source, which stay, and which
//! are computed from both.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Fields, Schema};

use crate::error::{Error, Result};
use crate::load::Update;
use crate::plan::predicate::Computed;
use crate::prepare::constraints::Constraints;
use crate::prepare::index::Slot;
use crate::prepare::keys::Keyed;
use crate::prepare::winners::Winners;
use crate::source::{Places, Unit};
use crate::table::schema::TableSchema;

/// What a merge updates of a row, over the columns of one table.
#[derive(Debug)]
pub(crate) struct Revision {
    values: Vec<Value>,
    /// Source and target columns, for what is computed.
    both: TableSchema,
    /// What rows must satisfy that do not come from the source as they are.
    constraints: Constraints,
}

/// Where the new value of a column comes from.
#[derive(Debug)]
enum Value {
    Source,
    Target,
    Computed(Computed),
}

impl Revision {
    /// What `update` says of rows with the key and order of `keyed`; new rows must satisfy `constraints`.
    ///
    /// # Errors
    /// `Invalid` for a column that the table lacks, that is named twice or that is part of the key, and for an expression
    /// that is not taken.
    pub(crate) fn new(keyed: &Keyed, update: &Update, constraints: Constraints) -> Result<Self> {
        let (values, both) = values(keyed, update)?;
        Ok(Self { values, both, constraints })
    }

    /// Whether a new row is the source's row in all columns.
    pub(crate) fn is_whole(&self) -> bool {
        self.values.iter().all(|value| matches!(value, Value::Source))
    }

    /// Whether the column at `index` comes from the source as it is.
    pub(super) fn takes(&self, index: usize) -> bool {
        matches!(self.values.get(index), Some(Value::Source))
    }

    /// Whether some column is computed.
    pub(super) fn computes(&self) -> bool {
        self.values.iter().any(|value| matches!(value, Value::Computed(_)))
    }

    /// Whether doing it once more could change a row once more.
    pub(crate) fn builds_on_target(&self) -> bool {
        self.values.iter().any(|value| matches!(value, Value::Computed(computed) if computed.reads_target()))
    }

    /// The columns that a source must have, of the table with `schema`.
    pub(crate) fn needed(&self, schema: &TableSchema) -> BTreeSet<String> {
        let mut needed = BTreeSet::new();
        for (value, field) in self.values.iter().zip(schema.columns().fields()) {
            match value {
                Value::Source => {
                    needed.insert(field.name().clone());
                }
                Value::Target => {}
                Value::Computed(computed) => needed.extend(computed.of_source()),
            }
        }
        needed
    }

    /// The new rows of `old` (all of the table's columns), given the slots of their winners.
    ///
    /// # Errors
    /// `Refused` where a value cannot be computed, or a new row is not one that the table takes.
    pub(super) fn of(&self, winners: &Winners, old: &RecordBatch, slots: &[Slot]) -> Result<RecordBatch> {
        let all: Vec<usize> = (0..old.num_columns()).collect();
        let new = winners.gather(slots, &all)?;
        let both = if self.computes() { Some(self.beside(old, &new)?) } else { None };
        let columns = self.values.iter().zip(old.columns()).zip(&new).zip(old.schema_ref().fields());
        let columns = columns.map(|(((value, old), new), field)| match (value, &both) {
            (Value::Source, _) => Ok(new.clone()),
            (Value::Computed(computed), Some(both)) => computed.column(both, field),
            (Value::Target | Value::Computed(_), _) => Ok(old.clone()),
        });
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        let rows = RecordBatch::try_new(old.schema(), columns)
            .map_err(|e| Error::internal("rows could not be brought up to date").caused_by(e))?;
        self.check(rows, &winners.keyed().schema, "updated")
    }

    /// Rows of the source that the table does not hold.
    ///
    /// # Errors
    /// `Refused` for one that the table does not take.
    pub(super) fn added(&self, rows: RecordBatch, schema: &TableSchema) -> Result<RecordBatch> {
        self.check(rows, schema, "new")
    }

    /// Rows that come from the source as they are were checked when they were read.
    fn check(&self, rows: RecordBatch, schema: &TableSchema, kind: &str) -> Result<RecordBatch> {
        if self.is_whole() {
            return Ok(rows);
        }
        let mut columns = schema.columns().fields().iter().zip(rows.columns());
        let null = columns.find(|(field, column)| !field.is_nullable() && column.null_count() > 0);
        if let Some((field, column)) = null {
            return Err(Error::refused(format!(
                "{} of the {kind} rows would have no value in column '{}', which holds no nulls; nothing was changed",
                column.null_count(),
                field.name()
            )));
        }
        self.constraints.check(&rows, &Places::consecutive(format!("{kind} rows").into(), Unit::Row, 1))?;
        Ok(rows)
    }

    fn beside(&self, old: &RecordBatch, new: &[ArrayRef]) -> Result<RecordBatch> {
        let columns = new.iter().chain(old.columns()).cloned().collect();
        RecordBatch::try_new(self.both.columns().clone(), columns)
            .map_err(|e| Error::internal("rows of source and table could not be put side by side").caused_by(e))
    }
}

/// The table's columns as a source has to fill them that need not have all: those not `needed` may be null.
pub(crate) fn relaxed(schema: &TableSchema, needed: &BTreeSet<String>) -> TableSchema {
    let fields = schema.columns().fields().iter().map(|field| {
        let nullable = field.is_nullable() || !needed.contains(field.name());
        Arc::new(field.as_ref().clone().with_nullable(nullable))
    });
    let fields: Fields = fields.collect();
    TableSchema::new(Arc::new(Schema::new(fields)), schema.partition_columns().to_vec())
}

fn values(keyed: &Keyed, update: &Update) -> Result<(Vec<Value>, TableSchema)> {
    let schema = &keyed.schema;
    let both = side_by_side(schema);
    let index = |name: &str, option: &str| {
        let index = schema
            .columns()
            .index_of(name)
            .map_err(|_| Error::invalid(format!("{} has no column '{name}', which {option} names", keyed.table)))?;
        if keyed.key.columns().contains(&index) {
            return Err(Error::invalid(format!(
                "{option} names '{name}', which is part of the key and stays as it is"
            )));
        }
        Ok(index)
    };
    let guard = keyed.order.as_ref().map(|order| order.columns()).unwrap_or_default();
    let is_whole = update.columns.is_empty() && update.set.is_empty();
    let fields = schema.columns().fields();
    // The order's columns say how new a row is: left behind, they would let the same rows in again.
    let from_source = |column: usize| is_whole || guard.contains(&column) || keyed.key.columns().contains(&column);
    let mut values: Vec<Value> =
        (0..fields.len()).map(|column| if from_source(column) { Value::Source } else { Value::Target }).collect();
    let mut named = BTreeSet::new();
    let mut put = |column: usize, value: Value| {
        let name = fields.get(column).map(|field| field.name().as_str()).unwrap_or_default();
        if !named.insert(column) {
            return Err(Error::invalid(format!("column '{name}' is to be updated in two ways")));
        }
        if let Some(place) = values.get_mut(column) {
            *place = value;
        }
        Ok(())
    };
    for name in &update.columns {
        put(index(name, "--update-columns")?, Value::Source)?;
    }
    for (name, text) in &update.set {
        let column = index(name, "--set")?;
        if guard.contains(&column) {
            return Err(Error::invalid(format!(
                "--set names '{name}', by which rows are ordered: it comes from the source"
            )));
        }
        if schema.is_partition_column(name) {
            return Err(Error::invalid(format!("--set names '{name}', a partition column")));
        }
        let data_type = fields.get(column).map(|field| field.data_type().clone());
        let data_type = data_type.ok_or_else(|| Error::internal("a column of the table is gone"))?;
        put(column, Value::Computed(Computed::parse(name, text, &data_type, &both)?))?;
    }
    Ok((values, both))
}

/// The columns of source and table under the names that expressions call them by.
fn side_by_side(schema: &TableSchema) -> TableSchema {
    let named = |side: &str| -> Vec<Field> {
        let fields = schema.columns().fields().iter();
        fields
            .map(|field| field.as_ref().clone().with_name(format!("{side}.{}", field.name())).with_nullable(true))
            .collect()
    };
    let fields: Fields = named("source").into_iter().chain(named("target")).collect();
    TableSchema::new(Arc::new(Schema::new(fields)), Vec::new())
}

#[cfg(test)]
mod tests;
