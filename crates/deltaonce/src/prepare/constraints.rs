//! The conditions that a table puts on every row written to it: CHECK constraints and column invariants.

use std::collections::BTreeMap;

use arrow::array::AsArray;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use serde::Deserialize;

use crate::error::{Error, Result};
use crate::plan::predicate::{Origin, Predicate, is_true};
use crate::plan::strays::sample;
use crate::source::Places;
use crate::table::schema::TableSchema;

/// Table property of a CHECK constraint, its name after the dot.
const CHECK: &str = "delta.constraints.";
/// Field metadata of a column invariant.
const INVARIANT: &str = "delta.invariants";
/// Rows shown in an error.
const SAMPLES: usize = 5;

/// What each row of a table must satisfy.
#[derive(Debug, Clone)]
pub(crate) struct Constraints {
    checks: Vec<Check>,
    /// Partition columns of type string: an empty text in one would come back as null.
    partition_texts: Vec<String>,
}

#[derive(Debug, Clone)]
struct Check {
    name: String,
    predicate: Predicate,
}

/// `{"expression":{"expression":"…"}}` (protocol, "Column Invariants").
#[derive(Deserialize)]
struct Invariant {
    expression: InvariantExpression,
}

#[derive(Deserialize)]
struct InvariantExpression {
    expression: String,
}

impl Constraints {
    /// The constraints of a table, from its properties (`configuration` of the `metaData` action) and the metadata of
    /// its columns' fields.
    ///
    /// # Errors
    /// `Unsupported`, naming the constraint, for one in words that this library does not take: a row could break it.
    pub(crate) fn of(schema: &TableSchema, properties: &BTreeMap<String, String>) -> Result<Self> {
        let mut checks = Vec::new();
        for (key, expression) in properties {
            if let Some(name) = key.strip_prefix(CHECK) {
                checks.push(Check::of(format!("CHECK constraint '{name}'"), expression, schema)?);
            }
        }
        for field in schema.columns().fields() {
            if let Some(json) = field.metadata().get(INVARIANT) {
                let name = format!("invariant of column '{}'", field.name());
                let invariant: Invariant = serde_json::from_str(json).map_err(|e| {
                    Error::unsupported(format!("the table's {name} is not in a form this library knows"))
                        .detail(json.clone())
                        .caused_by(e)
                })?;
                checks.push(Check::of(name, &invariant.expression.expression, schema)?);
            }
        }
        for field in schema.columns().fields() {
            if let Some(inner) = nested_invariant(field.data_type()) {
                return Err(Error::unsupported(format!(
                    "column '{}' has an invariant on its nested field '{inner}', which this library does not check",
                    field.name()
                )));
            }
        }
        let partition_texts = schema
            .partition_columns()
            .iter()
            .filter(|name| schema.column(name).is_some_and(|field| *field.data_type() == DataType::Utf8))
            .cloned()
            .collect();
        Ok(Self { checks, partition_texts })
    }

    /// No constraints.
    pub(crate) fn none() -> Self {
        Self { checks: Vec::new(), partition_texts: Vec::new() }
    }

    /// Checks rows that are to be written; `batch` has the table's columns.
    ///
    /// # Errors
    /// `Refused`, naming the constraint, its expression and the first rows for which it is false or null.
    pub(crate) fn check(&self, batch: &RecordBatch, places: &Places) -> Result<()> {
        for name in &self.partition_texts {
            let texts = batch.column_by_name(name).and_then(|column| column.as_string_opt::<i32>());
            let mut empty = texts.into_iter().flatten().enumerate().filter(|(_, text)| *text == Some(""));
            if let Some((first, _)) = empty.next() {
                let rows = empty.count() + 1;
                return Err(Error::refused(format!(
                    "partition column '{name}' has an empty text in {rows} row{}, which a Delta table cannot tell from null",
                    if rows == 1 { "" } else { "s" }
                ))
                .detail(places.of(first).to_string())
                .hint("write null, or another text"));
            }
        }
        for check in &self.checks {
            let held = is_true(&check.predicate.evaluate(batch)?);
            let broken = held.len() - held.true_count();
            if broken > 0 {
                let verb = if broken == 1 { "row breaks" } else { "rows break" };
                let rows = (0..held.len()).filter(|row| !held.value(*row));
                let samples = rows.take(SAMPLES).map(|row| sample(batch, row, places, check.predicate.columns()));
                return Err(Error::refused(format!(
                    "{broken} {verb} the table's {}: {}",
                    check.name,
                    check.predicate.text()
                ))
                .details(samples)
                .hint("a row for which the condition is null breaks it too"));
            }
        }
        Ok(())
    }
}

impl Check {
    fn of(name: String, expression: &str, schema: &TableSchema) -> Result<Self> {
        let predicate = Predicate::read(expression, schema, Origin::Table).map_err(|e| {
            Error::unsupported(format!("the table's {name} is in words that this library does not check: {expression}"))
                .detail(e.message().to_owned())
                .caused_by(e)
        })?;
        Ok(Self { name, predicate })
    }
}

/// The name of a field inside of a type that carries an invariant.
fn nested_invariant(data_type: &DataType) -> Option<String> {
    let inner: Vec<_> = match data_type {
        DataType::Struct(fields) => fields.iter().collect(),
        DataType::List(field) | DataType::Map(field, _) => vec![field],
        _ => return None,
    };
    inner.into_iter().find_map(|field| match field.metadata().contains_key(INVARIANT) {
        true => Some(field.name().clone()),
        false => nested_invariant(field.data_type()),
    })
}

#[cfg(test)]
mod tests;
