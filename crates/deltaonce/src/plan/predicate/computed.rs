//! A value that a merge computes of a row of the source and the table's row of the same key.

use arrow::array::{Array, ArrayRef};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field};
use datafusion::logical_expr::Expr;

use super::program::Program;
use super::translate::Translator;
use super::types::{Typed, TypedExpr, as_type, exact_type, loses_nothing};
use super::{Origin, syntax};
use crate::error::{Error, Result};
use crate::plan::value::{cut, type_name};
use crate::table::schema::TableSchema;

/// A SQL expression over `source.COLUMN` and `target.COLUMN`, of the part of SQL that predicates are written in.
#[derive(Debug, Clone)]
pub(crate) struct Computed {
    program: Program,
    data_type: DataType,
}

impl Computed {
    /// Reads the value of `column`, of `data_type`, over columns that are named with their side.
    ///
    /// # Errors
    /// `Invalid` for text that is no such expression, or whose values need not be ones of the column's type.
    pub(crate) fn parse(column: &str, text: &str, data_type: &DataType, both: &TableSchema) -> Result<Self> {
        let within = |error: Error| error.detail(format!("in --set {column} = {}", cut(text.trim())));
        let ast = syntax(text).map_err(within)?;
        let mut translator = Translator::new(both, Origin::Update);
        let expr = match translator.typed(&ast).map_err(within)? {
            Typed::Literal(literal) => {
                let value = literal.typed(data_type, &format!("column '{column}'")).map_err(within)?;
                Expr::Literal(value, None)
            }
            Typed::Expr(typed) => taken_by(typed, column, data_type).map_err(within)?,
        };
        let texts = translator.texts();
        let program = Program::compile(text, &expr, translator.columns(), texts, both)?;
        Ok(Self { program, data_type: data_type.clone() })
    }

    /// Names of the source's columns that it reads.
    pub(crate) fn of_source(&self) -> impl Iterator<Item = String> {
        self.program.columns().iter().filter_map(|name| Some(name.strip_prefix("source.")?.to_owned()))
    }

    /// Whether it reads the table's row.
    pub(crate) fn reads_target(&self) -> bool {
        self.program.columns().iter().any(|name| name.starts_with("target."))
    }

    /// Its values for rows of both sides, for the column `field`.
    ///
    /// # Errors
    /// `Refused` where a value cannot be computed, does not fit the column, or is null where the column is not.
    pub(crate) fn column(&self, both: &arrow::array::RecordBatch, field: &Field) -> Result<ArrayRef> {
        let values = self.program.run(both)?;
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let values = cast_with_options(&values, &self.data_type, &strict).map_err(|e| {
            Error::refused(format!(
                "'{}' gives a value that column '{}' ({}) does not hold; nothing was changed",
                cut(self.program.text()),
                field.name(),
                type_name(&self.data_type)
            ))
            .detail(e.to_string())
            .caused_by(e)
        })?;
        if !field.is_nullable() && values.null_count() > 0 {
            return Err(Error::refused(format!(
                "'{}' gives a null for column '{}', which holds none; nothing was changed",
                cut(self.program.text()),
                field.name()
            )));
        }
        Ok(values)
    }
}

/// The expression, where the column takes each of its values as it is, or where only its size is in question: that is
/// seen when it is computed.
fn taken_by(typed: TypedExpr, column: &str, data_type: &DataType) -> Result<Expr> {
    if loses_nothing(&typed.data_type, data_type) {
        return Ok(as_type(&typed, data_type));
    }
    match (exact_type(&typed.data_type), exact_type(data_type)) {
        (DataType::Decimal128(_, from), DataType::Decimal128(_, to)) if from <= to => Ok(typed.expr),
        _ => Err(Error::invalid(format!(
            "{} is of type {}, and column '{column}' of type {}",
            typed.what,
            type_name(&typed.data_type),
            type_name(data_type)
        ))),
    }
}
