//! From SQL syntax to a typed expression, by a list of what is allowed.
//!
//! DataFusion's own planner is not used here: it reads a number such as 0.1 as a double before it meets the column's
//! type, casts either side of a comparison to make it fit, and folds now() into the plan.

use std::collections::BTreeSet;

use arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::logical_expr::{Expr, ExprSchemable, Like, Operator, binary_expr, in_list, lit, not};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType as SqlType, Expr as Sql, Ident, TimezoneInfo, TypedString, UnaryOperator, Value,
};

use super::functions;
use super::limits;
use super::types::{
    Typed, TypedExpr, as_type, by_itself, column_type, compare, condition, exact_type, is_comparable, loses_nothing,
};
use super::{DISTINCT, NOT_DISTINCT, Origin};
use crate::error::{Error, Result};
use crate::plan::value::{Literal, cut, is_number, type_name};
use crate::table::schema::TableSchema;

/// How an update names columns.
const SIDES: &str = "name columns with their side: source.amount, target.amount";

pub(super) struct Translator<'a> {
    schema: &'a TableSchema,
    origin: Origin,
    columns: BTreeSet<String>,
    depth: usize,
    expressions: usize,
    texts: usize,
}

impl<'a> Translator<'a> {
    pub(super) fn new(schema: &'a TableSchema, origin: Origin) -> Self {
        Self { schema, origin, columns: BTreeSet::new(), depth: 0, expressions: 0, texts: 0 }
    }

    /// How many operations that make texts were met so far.
    pub(super) fn texts(&self) -> usize {
        self.texts
    }

    /// Counts an operation that makes texts.
    pub(super) fn makes_text(&mut self) -> Result<()> {
        self.texts += 1;
        if self.texts <= limits::TEXTS {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "it makes texts (by ||, upper, lower, trim or CAST) more than {} times",
            limits::TEXTS
        )))
    }

    /// Columns met so far.
    pub(super) fn columns(self) -> BTreeSet<String> {
        self.columns
    }

    /// A boolean expression.
    pub(super) fn predicate(&mut self, sql: &Sql) -> Result<Expr> {
        match self.typed(sql)? {
            Typed::Literal(Literal::Boolean(value)) => Ok(lit(value)),
            Typed::Literal(Literal::Null) => Ok(Expr::Literal(ScalarValue::Boolean(None), None)),
            Typed::Expr(TypedExpr { expr, data_type: DataType::Boolean, .. }) => Ok(expr),
            Typed::Literal(literal) => Err(Error::invalid(format!("{} is not a condition", cut(&literal.to_string())))),
            Typed::Expr(typed) => Err(Error::invalid(format!(
                "{} is of type {} and not a condition",
                typed.what,
                type_name(&typed.data_type)
            ))),
        }
    }

    pub(super) fn typed(&mut self, sql: &Sql) -> Result<Typed> {
        self.depth += 1;
        if self.depth > limits::DEPTH {
            return Err(Error::invalid(format!("operators are nested more than {} deep", limits::DEPTH)));
        }
        self.expressions += usize::from(!matches!(sql, Sql::Value(_)));
        if self.expressions > limits::EXPRESSIONS {
            return Err(Error::invalid(format!("it comes to more than {} expressions", limits::EXPRESSIONS)));
        }
        let typed = self.typed_here(sql);
        self.depth -= 1;
        typed
    }

    fn typed_here(&mut self, sql: &Sql) -> Result<Typed> {
        match sql {
            Sql::Nested(inner) => self.typed(inner),
            Sql::Identifier(name) if self.origin == Origin::Update && !functions::depends_on_when(&name.value) => {
                Err(Error::invalid(format!("'{}' does not say whose column it is", shown(sql))).hint(SIDES))
            }
            Sql::Identifier(name) => self.column(name),
            Sql::CompoundIdentifier(names) if self.origin == Origin::Update => self.column_of_side(names, sql),
            Sql::Value(value) => self.literal(&value.value),
            Sql::TypedString(typed) => typed_string(typed),
            Sql::BinaryOp { left, op, right } => self.binary(sql, left, op, right),
            Sql::UnaryOp { op: UnaryOperator::Not | UnaryOperator::BangNot, expr } => {
                let inner = self.predicate(expr)?;
                Ok(condition(not(inner)))
            }
            Sql::UnaryOp { op: sign @ (UnaryOperator::Minus | UnaryOperator::Plus), expr } => self.signed(*sign, expr),
            Sql::IsNull(inner) => Ok(condition(self.any(inner)?.is_null())),
            Sql::IsNotNull(inner) => Ok(condition(self.any(inner)?.is_not_null())),
            Sql::IsTrue(inner) => Ok(condition(self.predicate(inner)?.is_true())),
            Sql::IsNotTrue(inner) => Ok(condition(self.predicate(inner)?.is_not_true())),
            Sql::IsFalse(inner) => Ok(condition(self.predicate(inner)?.is_false())),
            Sql::IsNotFalse(inner) => Ok(condition(self.predicate(inner)?.is_not_false())),
            Sql::IsUnknown(inner) => Ok(condition(self.predicate(inner)?.is_null())),
            Sql::IsNotUnknown(inner) => Ok(condition(self.predicate(inner)?.is_not_null())),
            Sql::Between { expr, negated, low, high } => {
                let above = self.comparison(expr, Operator::GtEq, low)?;
                let below = self.comparison(expr, Operator::LtEq, high)?;
                Ok(condition(negate(above.and(below), *negated)))
            }
            Sql::InList { expr, list, negated } => self.in_list(expr, list, *negated),
            Sql::Like { negated, any: false, expr, pattern, escape_char: None } => self.like(expr, pattern, *negated),
            Sql::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, array: false, format: None } => {
                self.cast(sql, expr, data_type)
            }
            Sql::Function(function) => functions::call(self, function),
            Sql::Extract { field, expr, .. } => functions::extract(self, field, expr),
            Sql::Trim { trim_where: None, trim_what: None, expr, trim_characters: None } => functions::trim(self, expr),
            Sql::Subquery(_) | Sql::Exists { .. } | Sql::InSubquery { .. } => {
                Err(Error::invalid("an expression takes no subquery: another run could see other rows")
                    .hint("write the values out, as in IN (…)"))
            }
            Sql::CompoundIdentifier(_) | Sql::CompoundFieldAccess { .. } => {
                Err(Error::invalid(format!("'{}' names a nested field; only whole columns are taken", shown(sql)))
                    .hint("quote a column's name that has a dot: `a.b`"))
            }
            Sql::Interval(_) => {
                Err(Error::invalid(format!("'{}' is an interval; only fixed values are taken", shown(sql)))
                    .hint("write the date or time out"))
            }
            _ => Err(not_taken(sql)),
        }
    }

    /// An expression of any type, where only its being null matters.
    fn any(&mut self, sql: &Sql) -> Result<Expr> {
        match self.typed(sql)? {
            Typed::Literal(literal) => Ok(by_itself(&literal)?.expr),
            Typed::Expr(typed) => Ok(typed.expr),
        }
    }

    /// A column that is named with its side.
    fn column_of_side(&mut self, names: &[Ident], sql: &Sql) -> Result<Typed> {
        match names {
            [side, name] if matches!(side.value.as_str(), "source" | "target") => {
                self.column(&Ident::new(format!("{}.{}", side.value, name.value)))
            }
            _ => Err(Error::invalid(format!("'{}' is not a column of source or target", shown(sql))).hint(SIDES)),
        }
    }

    fn column(&mut self, name: &Ident) -> Result<Typed> {
        let columns = self.schema.columns();
        let exact = self.schema.column(&name.value);
        let mut others = columns.fields().iter().filter(|field| same_but_case(field.name(), &name.value));
        let near = others.next();
        let field = match (exact, near, others.next()) {
            (Some(field), _, _) => field,
            (None, Some(only), None) if self.origin == Origin::Table => only,
            (None, near, _) => {
                if name.quote_style.is_none() && functions::depends_on_when(&name.value) {
                    return Err(functions::refuse(&name.value));
                }
                let names: Vec<_> = columns.fields().iter().map(|field| field.name().as_str()).collect();
                let error = Error::invalid(format!("the table has no column '{}'", cut(&name.value)));
                return Err(match near {
                    Some(near) => error.hint(format!("names are exact: did you mean '{}'?", near.name())),
                    None => error.hint(format!("its columns are {}", cut(&names.join(", ")))),
                });
            }
        };
        self.columns.insert(field.name().clone());
        Ok(Typed::Expr(TypedExpr {
            expr: Expr::Column(Column::new_unqualified(field.name())),
            data_type: field.data_type().clone(),
            what: format!("column '{}'", field.name()),
            computed: false,
        }))
    }

    fn literal(&self, value: &Value) -> Result<Typed> {
        let literal = match value {
            Value::Number(text, false) => Literal::Number(text.clone()),
            Value::SingleQuotedString(text) => self.text(text)?,
            Value::DoubleQuotedString(text) if self.origin == Origin::Table && self.schema.column(text).is_none() => {
                self.text(text)?
            }
            Value::DoubleQuotedString(text) => {
                return Err(Error::invalid(format!("\"{}\" may be a text or a column", cut(text)))
                    .hint("write it in single quotes for the text, in backticks for the column"));
            }
            Value::Boolean(value) => Literal::Boolean(*value),
            Value::Null => Literal::Null,
            Value::HexStringLiteral(digits) => match bytes(digits) {
                Some(bytes) => Literal::Binary(bytes),
                None => return Err(Error::invalid(format!("X'{}' is not hexadecimal", cut(digits)))),
            },
            Value::Placeholder(name) => {
                return Err(Error::invalid(format!("'{}' stands for a value that is not given", cut(name)))
                    .hint("write the value itself"));
            }
            other => return Err(Error::invalid(format!("the literal {} is not taken", cut(&other.to_string())))),
        };
        Ok(Typed::Literal(literal))
    }

    fn text(&self, text: &str) -> Result<Literal> {
        if self.origin == Origin::Table && text.contains('\\') {
            return Err(Error::invalid(format!("the text '{}' holds an escape", cut(text))));
        }
        Ok(Literal::Text(text.to_owned()))
    }

    fn signed(&mut self, sign: UnaryOperator, inner: &Sql) -> Result<Typed> {
        let minus = sign == UnaryOperator::Minus;
        match self.typed(inner)? {
            Typed::Literal(Literal::Number(text)) => {
                Ok(Typed::Literal(Literal::Number(match text.strip_prefix('-') {
                    Some(positive) if minus => positive.to_owned(),
                    None if minus => format!("-{text}"),
                    _ => text,
                })))
            }
            Typed::Expr(typed) if is_number(&typed.data_type) && !minus => Ok(Typed::Expr(typed)),
            Typed::Expr(typed) if is_number(&typed.data_type) => {
                let zero = by_itself(&Literal::Number("0".to_owned()))?;
                self.arithmetic(zero, Operator::Minus, typed)
            }
            _ => Err(Error::invalid(format!("'{}' has a sign but is not a number", shown(inner)))),
        }
    }

    fn binary(&mut self, sql: &Sql, left: &Sql, op: &BinaryOperator, right: &Sql) -> Result<Typed> {
        let operator = match op {
            BinaryOperator::And | BinaryOperator::Or => return self.chain(sql, op),
            BinaryOperator::Eq => Operator::Eq,
            BinaryOperator::NotEq => Operator::NotEq,
            BinaryOperator::Lt => Operator::Lt,
            BinaryOperator::LtEq => Operator::LtEq,
            BinaryOperator::Gt => Operator::Gt,
            BinaryOperator::GtEq => Operator::GtEq,
            BinaryOperator::Spaceship => Operator::IsNotDistinctFrom,
            BinaryOperator::Custom(words) if words == NOT_DISTINCT => Operator::IsNotDistinctFrom,
            BinaryOperator::Custom(words) if words == DISTINCT => Operator::IsDistinctFrom,
            BinaryOperator::Plus => return self.sum(left, Operator::Plus, right),
            BinaryOperator::Minus => return self.sum(left, Operator::Minus, right),
            BinaryOperator::Multiply => return self.sum(left, Operator::Multiply, right),
            BinaryOperator::Modulo => return self.sum(left, Operator::Modulo, right),
            BinaryOperator::StringConcat => {
                self.makes_text()?;
                let [left, right] = [self.string(left)?, self.string(right)?];
                return Ok(Typed::Expr(TypedExpr {
                    expr: binary_expr(left, Operator::StringConcat, right),
                    data_type: DataType::Utf8,
                    what: format!("'{}'", shown(sql)),
                    computed: false,
                }));
            }
            BinaryOperator::Divide => {
                return Err(Error::invalid("an expression takes no division: engines differ on its digits")
                    .hint("multiply the other side instead"));
            }
            _ => return Err(not_taken(sql)),
        };
        self.compare(left, operator, right)
    }

    /// A chain of one of AND and OR, however long, as a tree whose depth is the logarithm of that.
    fn chain(&mut self, sql: &Sql, op: &BinaryOperator) -> Result<Typed> {
        let mut parts = Vec::new();
        let mut rest = sql;
        while let Sql::BinaryOp { left, op: this, right } = rest
            && this == op
        {
            parts.push(right.as_ref());
            rest = left;
        }
        parts.push(rest);
        let parts = parts.into_iter().rev().map(|part| self.predicate(part)).collect::<Result<Vec<_>>>()?;
        let operator = if *op == BinaryOperator::And { Operator::And } else { Operator::Or };
        Ok(condition(balanced(parts, operator)))
    }

    fn compare(&mut self, left: &Sql, op: Operator, right: &Sql) -> Result<Typed> {
        Ok(condition(self.comparison(left, op, right)?))
    }

    fn comparison(&mut self, left: &Sql, op: Operator, right: &Sql) -> Result<Expr> {
        let (left, right) = (self.typed(left)?, self.typed(right)?);
        let null_safe = matches!(op, Operator::IsNotDistinctFrom | Operator::IsDistinctFrom);
        if !null_safe && [&left, &right].iter().any(|side| matches!(side, Typed::Literal(Literal::Null))) {
            return Err(Error::invalid("a comparison with NULL is never true").hint("use IS NULL or IS NOT NULL"));
        }
        compare(left, op, right)
    }

    fn in_list(&mut self, expr: &Sql, list: &[Sql], negated: bool) -> Result<Typed> {
        let values = list.iter().map(|value| self.typed(value)).collect::<Result<Vec<_>>>()?;
        let searched = self.typed(expr)?;
        if let Typed::Expr(TypedExpr { expr, data_type, what, computed: false }) = &searched
            && !data_type.is_floating()
            && is_comparable(data_type)
        {
            let literals = values
                .iter()
                .map(|value| match value {
                    Typed::Literal(literal) => Some(literal.typed(data_type, what).map(|v| Expr::Literal(v, None))),
                    Typed::Expr(_) => None,
                })
                .collect::<Option<Result<Vec<_>>>>();
            if let Some(literals) = literals {
                return Ok(condition(in_list(expr.clone(), literals?, negated)));
            }
        }
        let mut parts = Vec::with_capacity(values.len());
        for value in values {
            let searched = self.typed(expr)?;
            parts.push(compare(searched, Operator::Eq, value)?);
        }
        Ok(condition(negate(balanced(parts, Operator::Or), negated)))
    }

    fn like(&mut self, expr: &Sql, pattern: &Sql, negated: bool) -> Result<Typed> {
        let text = self.string(expr)?;
        let Typed::Literal(Literal::Text(pattern)) = self.typed(pattern)? else {
            return Err(Error::invalid("LIKE takes a pattern in quotes"));
        };
        if pattern.contains('\\') {
            return Err(Error::invalid(format!("the pattern '{}' holds an escape, which is not taken", cut(&pattern))));
        }
        limits::check_pattern(&pattern)?;
        let pattern = Expr::Literal(ScalarValue::Utf8(Some(pattern)), None);
        Ok(condition(Expr::Like(Like::new(negated, Box::new(text), Box::new(pattern), None, false))))
    }

    /// An expression of type string.
    pub(super) fn string(&mut self, sql: &Sql) -> Result<Expr> {
        match self.typed(sql)? {
            Typed::Literal(Literal::Text(text)) => Ok(Expr::Literal(ScalarValue::Utf8(Some(text)), None)),
            Typed::Expr(TypedExpr { expr, data_type: DataType::Utf8, .. }) => Ok(expr),
            Typed::Literal(literal) => Err(Error::invalid(format!("{} is not a text", cut(&literal.to_string())))),
            Typed::Expr(typed) => {
                Err(Error::invalid(format!("{} is of type {} and not a text", typed.what, type_name(&typed.data_type))))
            }
        }
    }

    fn sum(&mut self, left: &Sql, op: Operator, right: &Sql) -> Result<Typed> {
        let settle = |side| match side {
            Typed::Literal(literal) => by_itself(&literal),
            Typed::Expr(typed) => Ok(typed),
        };
        let left = settle(self.typed(left)?)?;
        let right = settle(self.typed(right)?)?;
        self.arithmetic(left, op, right)
    }

    fn arithmetic(&mut self, left: TypedExpr, op: Operator, right: TypedExpr) -> Result<Typed> {
        let what = cut(&format!("{} {op} {}", left.what, right.what));
        let refused = || {
            Error::invalid(format!(
                "{what} computes with {} and {}",
                type_name(&left.data_type),
                type_name(&right.data_type)
            ))
        };
        let both = |test: fn(&DataType) -> bool| test(&left.data_type) && test(&right.data_type);
        if !both(is_number) {
            return Err(refused().hint("only numbers are computed with"));
        }
        let (left_expr, right_expr) = if both(DataType::is_floating) {
            (as_type(&left, &DataType::Float64), as_type(&right, &DataType::Float64))
        } else if both(|data_type| !data_type.is_floating()) {
            // Integers wrap where decimals overflow with an error.
            (as_type(&left, &exact_type(&left.data_type)), as_type(&right, &exact_type(&right.data_type)))
        } else {
            return Err(refused().hint("cast one side: a double does not hold every bigint or decimal"));
        };
        let expr = binary_expr(left_expr, op, right_expr);
        let names = DFSchema::try_from(self.schema.columns().clone()).map_err(|e| refused().caused_by(e))?;
        let data_type = expr.get_type(&names).map_err(|e| refused().caused_by(e))?;
        Ok(Typed::Expr(TypedExpr { expr, data_type, what, computed: true }))
    }

    fn cast(&mut self, sql: &Sql, inner: &Sql, to: &SqlType) -> Result<Typed> {
        let Some(to) = column_type(to) else {
            return Err(not_taken(sql));
        };
        let what = format!("'{}'", shown(sql));
        let typed = match self.typed(inner)? {
            Typed::Literal(literal) => {
                let value = literal.typed(&to, &what)?;
                TypedExpr { expr: Expr::Literal(value, None), data_type: to, what, computed: false }
            }
            Typed::Expr(typed) if loses_nothing(&typed.data_type, &to) => {
                if to == DataType::Utf8 {
                    self.makes_text()?;
                }
                TypedExpr { expr: as_type(&typed, &to), data_type: to, what, computed: false }
            }
            Typed::Expr(typed) => {
                return Err(Error::invalid(format!(
                    "{what} casts {} to {}, which may lose something or differ between engines",
                    type_name(&typed.data_type),
                    type_name(&to)
                )));
            }
        };
        Ok(Typed::Expr(typed))
    }
}

fn negate(expr: Expr, negated: bool) -> Expr {
    if negated { not(expr) } else { expr }
}

/// What a message shows of a piece of SQL.
pub(super) fn shown(sql: &Sql) -> String {
    cut(&sql.to_string())
}

pub(super) fn not_taken(sql: &Sql) -> Error {
    Error::invalid(format!("an expression takes no '{}'", shown(sql)))
        .hint("comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL, + - * %, CAST and a few functions are taken")
}

fn same_but_case(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return None;
    }
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()).collect()
}

fn typed_string(typed: &TypedString) -> Result<Typed> {
    let Some(text) = typed.value.clone().into_string() else {
        return Err(Error::invalid(format!("{} is not a literal", cut(&typed.to_string()))));
    };
    match &typed.data_type {
        SqlType::Date => Ok(Typed::Literal(Literal::Date(text))),
        SqlType::Timestamp(None, TimezoneInfo::None) => Ok(Typed::Literal(Literal::Timestamp(text))),
        other => Err(Error::invalid(format!("the literal {} of type {other} is not taken", cut(&typed.to_string())))),
    }
}

/// The expressions under one operator, as a balanced tree.
fn balanced(mut parts: Vec<Expr>, op: Operator) -> Expr {
    while parts.len() > 1 {
        let mut pairs = Vec::with_capacity(parts.len().div_ceil(2));
        let mut rest = parts.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => binary_expr(left, op, right),
                None => left,
            });
        }
        parts = pairs;
    }
    parts.pop().unwrap_or_else(|| lit(op == Operator::And))
}
