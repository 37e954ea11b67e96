//! SQL predicates over a table's columns: typed when they are read, or refused.

mod computed;
mod functions;
mod limits;
mod program;
mod translate;
mod types;

use std::collections::BTreeSet;

use arrow::array::{Array, AsArray, BooleanArray};
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::Expr;
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
use program::Program;
use translate::Translator;

pub(crate) use computed::Computed;

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
    /// A value that a merge computes: as in a load, and each column is named with its side, `source` or `target`.
    Update,
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
    expr: Expr,
    program: Program,
    partition_only: bool,
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
        Ok(Self::of(Program::compile(text, &expr, translator.columns(), texts, schema)?, expr, schema))
    }

    /// A predicate from an expression whose types agree and that makes no texts; `text` is its SQL.
    ///
    /// # Errors
    /// `Internal` where DataFusion cannot carry it out.
    pub(super) fn compile(text: String, expr: Expr, columns: BTreeSet<String>, schema: &TableSchema) -> Result<Self> {
        Ok(Self::of(Program::compile(&text, &expr, columns, 0, schema)?, expr, schema))
    }

    fn of(program: Program, expr: Expr, schema: &TableSchema) -> Self {
        let partition_only = program.columns().iter().all(|column| schema.is_partition_column(column));
        Self { expr, program, partition_only }
    }

    /// Columns that it reads.
    pub(crate) fn columns(&self) -> &BTreeSet<String> {
        self.program.columns()
    }

    /// Its SQL, as it was given.
    pub(crate) fn text(&self) -> &str {
        self.program.text()
    }

    /// The outcome for each row of a batch that has (at least) the columns it reads, under the table's names.
    ///
    /// # Errors
    /// `Refused` where a row cannot be computed (a sum beyond 38 digits); `Internal` where a column is missing.
    pub(crate) fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let outcome = self.program.run(batch)?;
        match outcome.data_type() {
            DataType::Boolean => Ok(outcome.as_boolean().clone()),
            other => Err(Error::internal(format!("the predicate '{}' gave {other}", cut(self.text())))),
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
        let row = self.program.row(|column| bounds.constant(column)?.to_array().ok())?;
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
        return Err(Error::invalid("the expression is empty")
            .hint("give a condition, or ask for the whole table in so many words"));
    }
    limits::check_text(text)?;
    let unreadable = |e: ParserError| match e {
        ParserError::RecursionLimitExceeded => limits::too_deep(text),
        e => Error::invalid(format!("'{}' is not a SQL expression: {e}", cut(text))),
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
