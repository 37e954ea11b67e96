//! The rows that a replace takes out and the only rows it may write: a scope, resolved against a table's columns.

use std::collections::BTreeSet;

use arrow::array::BooleanArray;
use arrow::compute::not;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::Expr;

use super::RowsRead;
use super::bounds::FileBounds;
use super::partitions::PartitionSet;
use super::predicate::{Predicate, is_true};
use super::value::{Literal, type_name};
use crate::error::{Error, Result};
use crate::load::Scope;
use crate::table::actions::AddFile;
use crate::table::schema::TableSchema;

/// How a file lies to a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// No row of the file is in the scope.
    Outside,
    /// Every row of the file is in the scope, so that the file can go unread.
    Inside,
    /// The file must be read to tell.
    Straddles,
}

/// A scope whose every literal and name is settled. A row is in it where it is true; where it is null, it is not.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedScope {
    schema: TableSchema,
    rows: Rows,
}

#[derive(Debug, Clone)]
enum Rows {
    Where(Predicate),
    /// An interval, as the predicate it is.
    Interval(Predicate),
    Partitions(PartitionSet),
    All,
}

impl ResolvedScope {
    /// Settles a scope for a table. The scope of partitions is still empty then, see [`ResolvedScope::observe`].
    ///
    /// # Errors
    /// `Invalid` where the scope cannot be meant for this table: never another scope than the one asked for.
    pub(crate) fn resolve(scope: &Scope, schema: &TableSchema) -> Result<Self> {
        let rows = match scope {
            Scope::Where(text) => Rows::Where(Predicate::parse(text, schema)?),
            Scope::Interval { column, start, end } => Rows::Interval(interval(column, start, end, schema)?),
            Scope::Partitions => Rows::Partitions(PartitionSet::of(schema)?),
            Scope::All => Rows::All,
        };
        Ok(Self { schema: schema.clone(), rows })
    }

    /// Takes the partitions of the incoming rows into a scope of partitions; nothing for other scopes.
    ///
    /// All incoming rows must be observed before coverage is asked for.
    ///
    /// # Errors
    /// As [`PartitionSet::observe`].
    pub(crate) fn observe(&mut self, batch: &RecordBatch) -> Result<()> {
        match &mut self.rows {
            Rows::Partitions(set) => set.observe(batch),
            _ => Ok(()),
        }
    }

    /// How a file of the table lies to the scope, by its partition values and statistics.
    pub(crate) fn coverage(&self, file: &AddFile) -> Coverage {
        let bounds = FileBounds::of(file, &self.schema);
        match &self.rows {
            Rows::All => Coverage::Inside,
            Rows::Partitions(set) => match set.holds(&bounds) {
                Some(true) => Coverage::Inside,
                Some(false) => Coverage::Outside,
                None => Coverage::Straddles,
            },
            Rows::Where(predicate) | Rows::Interval(predicate) => {
                let outcomes = predicate.outcomes(&bounds);
                match (outcomes.yes, outcomes.no || outcomes.null) {
                    (false, _) => Coverage::Outside,
                    (true, false) => Coverage::Inside,
                    (true, true) => Coverage::Straddles,
                }
            }
        }
    }

    /// Which incoming rows are in the scope; none where all are by the scope's nature.
    ///
    /// # Errors
    /// As [`Predicate::evaluate`].
    pub(crate) fn admits(&self, batch: &RecordBatch) -> Result<Option<BooleanArray>> {
        match &self.rows {
            Rows::All | Rows::Partitions(_) => Ok(None),
            Rows::Where(predicate) | Rows::Interval(predicate) => Ok(Some(is_true(&predicate.evaluate(batch)?))),
        }
    }

    /// Which rows of the table stay: those for which the scope is not true. `batch` has (at least) the columns that
    /// the scope reads, partition columns included.
    ///
    /// # Errors
    /// As [`Predicate::evaluate`].
    pub(crate) fn keeps(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let inside = match &self.rows {
            Rows::All => BooleanArray::from(vec![true; batch.num_rows()]),
            Rows::Partitions(set) => set.contains(batch)?,
            Rows::Where(predicate) | Rows::Interval(predicate) => is_true(&predicate.evaluate(batch)?),
        };
        not(&inside).map_err(|e| Error::internal("a scope cannot be turned round").caused_by(e))
    }

    /// Columns that tell whether a row is in the scope.
    pub(crate) fn columns(&self) -> BTreeSet<String> {
        match &self.rows {
            Rows::All => BTreeSet::new(),
            Rows::Partitions(_) => self.schema.partition_columns().iter().cloned().collect(),
            Rows::Where(predicate) | Rows::Interval(predicate) => predicate.columns().clone(),
        }
    }

    /// The scope's SQL for `commitInfo`; none for a scope that is no predicate.
    pub(crate) fn operation_predicate(&self) -> Option<String> {
        match &self.rows {
            Rows::All | Rows::Partitions(_) => None,
            Rows::Where(predicate) | Rows::Interval(predicate) => Some(predicate.text().to_owned()),
        }
    }
}

impl RowsRead for ResolvedScope {
    fn may_be_in(&self, file: &AddFile) -> bool {
        self.coverage(file) != Coverage::Outside
    }
}

/// `start <= column < end` as a predicate.
fn interval(column: &str, start: &str, end: &str, schema: &TableSchema) -> Result<Predicate> {
    let Some(field) = schema.column(column) else {
        let names: Vec<_> = schema.columns().fields().iter().map(|field| field.name().as_str()).collect();
        return Err(Error::invalid(format!("the interval names column '{column}', which the table does not have"))
            .hint(format!("its columns are {}", names.join(", "))));
    };
    let data_type = field.data_type();
    let takes = data_type.is_integer()
        || matches!(
            data_type,
            DataType::Decimal128(_, _) | DataType::Date32 | DataType::Timestamp(_, _) | DataType::Utf8
        );
    if !takes {
        return Err(Error::invalid(format!(
            "column '{column}' is of type {}, which takes no interval",
            type_name(data_type)
        ))
        .hint("intervals are of whole numbers, decimals, dates, timestamps and strings"));
    }
    let (from, to) = (Literal::Text(start.to_owned()), Literal::Text(end.to_owned()));
    let what = format!("the interval's column '{column}'");
    let (first, past) = (from.typed(data_type, &what)?, to.typed(data_type, &what)?);
    if first.partial_cmp(&past).is_none_or(std::cmp::Ordering::is_ge) {
        return Err(Error::invalid(format!(
            "the interval {column}={start}/{end} is empty: its start is not before its end"
        ))
        .hint("the start is inside, the end is not"));
    }
    let text = |literal: &Literal, value: &ScalarValue| match value {
        // Numbers go without quotes, as Spark's readers of the log expect.
        _ if data_type.is_integer() || matches!(data_type, DataType::Decimal128(_, _)) => value.to_string(),
        _ => literal.to_string(),
    };
    let name = format!("`{}`", column.replace('`', "``"));
    let sql = format!("{name} >= {} AND {name} < {}", text(&from, &first), text(&to, &past));
    let value = || Expr::Column(Column::new_unqualified(column));
    let literal = |value| Expr::Literal(value, None);
    let expr = value().gt_eq(literal(first)).and(value().lt(literal(past)));
    Predicate::compile(sql, expr, BTreeSet::from([column.to_owned()]), schema)
}

#[cfg(test)]
mod tests;
