//! SQL predicates over a table's columns: typed when they are read, or refused.

mod functions;
mod limits;
mod translate;
mod types;

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::DFSchema;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::execution_props::ExecutionProps;
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use datafusion::sql::sqlparser::ast::{Expr as Syntax, UnaryOperator};
use datafusion::sql::sqlparser::dialect::{Dialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::bounds::FileBounds;
use super::truth::{self, Truths};
use super::value::cut;
use crate::error::{Error, Result};
use crate::table::schema::TableSchema;
use translate::Translator;

/// Comparisons of several words.
const DISTINCT: &str = "IS DISTINCT FROM";
const NOT_DISTINCT: &str = "IS NOT DISTINCT FROM";

/// Whose words a predicate's text is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Who asked for the load: names are exact, text is in single quotes and a backslash is a character.
    Load,
    /// The table's log, where Spark's rules hold: names ignore case, double quotes hold text too. Where an escape
    /// would have to be read Spark's way, the predicate is refused.
    Table,
}

/// A boolean SQL expression over the columns of a table.
///
/// Read with the meaning it has in Spark SQL, for the part of SQL that both have: comparisons (null-safe ones too),
/// `AND`, `OR`, `NOT`, `IN`, `BETWEEN`, `LIKE`, `IS [NOT] NULL/TRUE/FALSE/DISTINCT FROM`, `+ - * %`, `||`, casts that
/// lose nothing, and a few functions. All else is refused, what depends on time or chance above all, before anything
/// is computed. Comparisons of floats take NaN for equal to itself and above all else, and -0.0 for 0.0, as Spark does
/// (Arrow's kernels do not). Sums and products of integers are exact and do not wrap.
#[derive(Debug, Clone)]
pub(crate) struct Predicate {
    text: String,
    expr: Expr,
    compiled: Arc<dyn PhysicalExpr>,
    columns: BTreeSet<String>,
    /// The columns it reads, in the table's order.
    reads: SchemaRef,
    partition_only: bool,
    /// How many of its operations make texts.
    texts: usize,
}

impl Predicate {
    /// Reads the predicate of a load over the columns of a table.
    ///
    /// # Errors
    /// `Invalid` for text that is not a predicate this library takes, naming what is wrong with it.
    pub(crate) fn parse(text: &str, schema: &TableSchema) -> Result<Self> {
        Self::read(text, schema, Origin::Load)
    }

    /// Reads a predicate of `origin`; see [`Predicate::parse`].
    pub(crate) fn read(text: &str, schema: &TableSchema, origin: Origin) -> Result<Self> {
        let ast = syntax(text)?;
        let mut translator = Translator::new(schema, origin);
        let expr = translator.predicate(&ast).map_err(|e| within(text, e))?;
        let texts = translator.texts();
        Ok(Self { texts, ..Self::compile(text.trim().to_owned(), expr, translator.columns(), schema)? })
    }

    /// A predicate from an expression whose types agree; `text` is its SQL.
    ///
    /// # Errors
    /// `Internal` where DataFusion cannot carry it out.
    pub(super) fn compile(text: String, expr: Expr, columns: BTreeSet<String>, schema: &TableSchema) -> Result<Self> {
        let fields: Vec<_> =
            schema.columns().fields().iter().filter(|field| columns.contains(field.name())).cloned().collect();
        let reads: SchemaRef = Schema::new(fields).into();
        let failed = |e| Error::internal(format!("the predicate '{}' cannot be carried out", cut(&text))).caused_by(e);
        let names = DFSchema::try_from(reads.clone()).map_err(failed)?;
        let compiled = create_physical_expr(&expr, &names, &ExecutionProps::new(), &PhysicalPlanningContext::default())
            .map_err(failed)?;
        let partition_only = columns.iter().all(|column| schema.is_partition_column(column));
        Ok(Self { text, expr, compiled, columns, reads, partition_only, texts: 0 })
    }

    /// Columns that it reads.
    pub(crate) fn columns(&self) -> &BTreeSet<String> {
        &self.columns
    }

    /// Its SQL, as it was given.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The outcome for each row of a batch that has (at least) the columns it reads, under the table's names.
    ///
    /// # Errors
    /// `Refused` where a row cannot be computed (a sum beyond 38 digits); `Internal` where a column is missing.
    pub(crate) fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let at_once = self.rows_at_once(batch)?;
        if at_once >= batch.num_rows() {
            return self.evaluate_at_once(batch);
        }
        let parts = (0..batch.num_rows())
            .step_by(at_once)
            .map(|start| self.evaluate(&batch.slice(start, at_once.min(batch.num_rows() - start))));
        let parts: Vec<BooleanArray> = parts.collect::<Result<_>>()?;
        Ok(parts.iter().flatten().collect())
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
            "the predicate '{}' makes texts longer than can be computed with, of a row with {read} bytes of text",
            cut(&self.text)
        )))
    }

    fn evaluate_at_once(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let failed = || format!("the predicate '{}' cannot be computed for these rows", cut(&self.text));
        let columns = self
            .reads
            .fields()
            .iter()
            .map(|field| match batch.column_by_name(field.name()) {
                Some(column) if column.data_type().equals_datatype(field.data_type()) => Ok(column.clone()),
                _ => Err(Error::internal(failed()).detail(format!("no column '{}' of its type", field.name()))),
            })
            .collect::<Result<Vec<_>>>()?;
        // Nullability is the table's promise; the rows at hand are not yet checked against it.
        let fields = self.reads.fields().iter().zip(&columns);
        let fields: Vec<_> =
            fields.map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let rows = RecordBatch::try_new_with_options(Schema::new(fields).into(), columns, &options)
            .map_err(|e| Error::internal(failed()).caused_by(e))?;
        let outcome = self
            .compiled
            .evaluate(&rows)
            .and_then(|value| value.into_array(rows.num_rows()))
            .map_err(|e| Error::refused(failed()).detail(e.to_string()).caused_by(e))?;
        match outcome.data_type() {
            DataType::Boolean => Ok(outcome.as_boolean().clone()),
            other => Err(Error::internal(failed()).detail(format!("it gave {other}"))),
        }
    }

    /// The outcomes it may have on the rows of a file: exact where it reads only partition columns, else by bounds.
    pub(crate) fn outcomes(&self, bounds: &FileBounds<'_>) -> Truths {
        match self.constant_outcome(bounds) {
            Some(outcome) => Truths::only(outcome),
            None => truth::outcomes(&self.expr, bounds),
        }
    }

    /// The one outcome for all rows of a file, where partition values decide it.
    fn constant_outcome(&self, bounds: &FileBounds<'_>) -> Option<Option<bool>> {
        if !self.partition_only {
            return None;
        }
        let columns = self
            .reads
            .fields()
            .iter()
            .map(|field| bounds.constant(field.name())?.to_array().ok())
            .collect::<Option<Vec<_>>>()?;
        let fields: Vec<_> = self.reads.fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let row = RecordBatch::try_new_with_options(Schema::new(fields).into(), columns, &options).ok()?;
        let outcome = self.evaluate(&row).ok()?;
        Some(outcome.is_valid(0).then(|| outcome.value(0)))
    }
}

/// The rows for which an outcome is true; null is not.
pub(crate) fn is_true(outcome: &BooleanArray) -> BooleanArray {
    let values = match outcome.nulls() {
        Some(nulls) => outcome.values() & nulls.inner(),
        None => outcome.values().clone(),
    };
    BooleanArray::new(values, None)
}

fn within(text: &str, error: Error) -> Error {
    error.detail(format!("in the predicate: {}", cut(text.trim())))
}

/// The words of SQL that predicates are written in: names may be quoted with backticks, as in Spark, and only so.
#[derive(Debug)]
struct Words;

impl Dialect for Words {
    fn is_delimited_identifier_start(&self, character: char) -> bool {
        character == '`'
    }

    fn is_identifier_start(&self, character: char) -> bool {
        character.is_alphabetic() || character == '_'
    }

    fn is_identifier_part(&self, character: char) -> bool {
        character.is_alphanumeric() || character == '_'
    }

    /// Reads `NOT`. The parser by itself, where it fails on what follows, reads it once more as a name, which doubles its
    /// time with each NOT.
    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<SyntaxResult> {
        if !parser.parse_keyword(Keyword::NOT) {
            return None;
        }
        let expr = parser.parse_subexpr(self.prec_value(Precedence::UnaryNot));
        Some(expr.map(|expr| Syntax::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) }))
    }
}

type SyntaxResult = std::result::Result<Syntax, ParserError>;

/// The syntax tree of one whole expression, within the bounds that keep hostile text from exhausting stack or time.
fn syntax(text: &str) -> Result<Syntax> {
    if text.trim().is_empty() {
        return Err(Error::invalid("the predicate is empty")
            .hint("give a condition, or ask for the whole table in so many words"));
    }
    limits::check_text(text)?;
    let unreadable = |e: ParserError| match e {
        ParserError::RecursionLimitExceeded => limits::too_deep(text),
        e => Error::invalid(format!("the predicate '{}' is not a SQL expression: {e}", cut(text))),
    };
    let tokens = Tokenizer::new(&Words, text).tokenize_with_location().map_err(|e| unreadable(e.into()))?;
    limits::check_tokens(text, &tokens)?;
    let tokens = distinct_as_operators(tokens);
    let mut parser = Parser::new(&Words).with_recursion_limit(limits::NESTING).with_tokens_with_locations(tokens);
    let expr = parser.parse_expr().map_err(unreadable)?;
    match &parser.peek_token_ref().token {
        Token::EOF => Ok(expr),
        rest => Err(unreadable(ParserError::ParserError(format!("'{rest}' follows where it should end")))),
    }
}

/// `IS DISTINCT FROM` and `IS NOT DISTINCT FROM` as operators of one token, which bind as comparisons do. The parser by
/// itself takes all that follows such words for their right side, AND and OR included.
fn distinct_as_operators(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let operators: [(&[Keyword], &str); 2] = [
        (&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM], DISTINCT),
        (&[Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM], NOT_DISTINCT),
    ];
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !is_space(&tokens, *at)).collect();
    let keyword = |at: &usize| match tokens.get(*at).map(|token| &token.token) {
        Some(Token::Word(word)) => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let mut joined = Vec::with_capacity(tokens.len());
    let mut next = 0;
    while let Some(at) = words.get(next) {
        let found = operators.iter().find(|(keywords, _)| {
            let ahead = words.get(next..next + keywords.len()).unwrap_or_default();
            ahead.len() == keywords.len() && ahead.iter().map(keyword).eq(keywords.iter().copied())
        });
        let Some(token) = tokens.get(*at) else { break };
        joined.push(match found {
            Some((_, name)) => TokenWithSpan::new(Token::CustomBinaryOperator((*name).to_owned()), token.span),
            None => token.clone(),
        });
        next += found.map_or(1, |(keywords, _)| keywords.len());
    }
    joined
}

fn is_space(tokens: &[TokenWithSpan], at: usize) -> bool {
    tokens.get(at).is_some_and(|token| matches!(token.token, Token::Whitespace(_)))
}

#[cfg(test)]
mod tests;
