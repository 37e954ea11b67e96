//! Which outcomes a predicate can have on the rows of a file, told from the file's bounds.
//!
//! DataFusion's `PruningPredicate` answers only whether a row may be true, and drops the difference between false and
//! null on which "every row is true" turns; so the three outcomes are followed here.

use std::borrow::Cow;
use std::cmp::Ordering;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{BinaryExpr, InList, Like};
use datafusion::logical_expr::{Cast, Expr, Operator};

use super::bounds::{FileBounds, after_prefix};

/// The outcomes that a row may give; more than the rows do give, never fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Truths {
    pub(crate) yes: bool,
    pub(crate) no: bool,
    pub(crate) null: bool,
}

impl Truths {
    pub(crate) const ANY: Self = Self { yes: true, no: true, null: true };

    /// Exactly this outcome.
    pub(crate) fn only(outcome: Option<bool>) -> Self {
        Self { yes: outcome == Some(true), no: outcome == Some(false), null: outcome.is_none() }
    }

    fn not(self) -> Self {
        Self { yes: self.no, no: self.yes, ..self }
    }

    fn and(self, other: Self) -> Self {
        Self {
            yes: self.yes && other.yes,
            no: self.no || other.no,
            null: self.null && (other.yes || other.null) || other.null && (self.yes || self.null),
        }
    }

    fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }

    /// The outcome of a test that is never null: true for rows with the outcomes of which `test` is true.
    fn test(self, test: fn(Option<bool>) -> bool) -> Self {
        let outcomes = [(self.yes, Some(true)), (self.no, Some(false)), (self.null, None)];
        let can = |wanted| outcomes.iter().any(|(possible, outcome)| *possible && test(*outcome) == wanted);
        Self { yes: can(true), no: can(false), null: false }
    }
}

/// The outcomes that a boolean expression may have on the rows of a file.
pub(crate) fn outcomes(expr: &Expr, bounds: &FileBounds<'_>) -> Truths {
    match expr {
        Expr::Literal(ScalarValue::Boolean(value), _) => Truths::only(*value),
        Expr::Column(_) => {
            let truth = Expr::Literal(ScalarValue::Boolean(Some(true)), None);
            compare(expr, Operator::Eq, &truth, bounds)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And => outcomes(left, bounds).and(outcomes(right, bounds)),
            Operator::Or => outcomes(left, bounds).or(outcomes(right, bounds)),
            _ => compare(left, *op, right, bounds),
        },
        Expr::Not(inner) => outcomes(inner, bounds).not(),
        Expr::IsTrue(inner) => outcomes(inner, bounds).test(|outcome| outcome == Some(true)),
        Expr::IsNotTrue(inner) => outcomes(inner, bounds).test(|outcome| outcome != Some(true)),
        Expr::IsFalse(inner) => outcomes(inner, bounds).test(|outcome| outcome == Some(false)),
        Expr::IsNotFalse(inner) => outcomes(inner, bounds).test(|outcome| outcome != Some(false)),
        Expr::IsNull(inner) => nullness(inner, bounds),
        Expr::IsNotNull(inner) => nullness(inner, bounds).not(),
        Expr::InList(InList { expr, list, negated }) => {
            let Some(searched) = operand(expr, bounds) else {
                return Truths::ANY;
            };
            let found = list
                .iter()
                .map(|value| {
                    operand(value, bounds).map_or(Truths::ANY, |value| compared(&searched, Operator::Eq, &value))
                })
                .fold(Truths::only(Some(false)), Truths::or);
            if *negated { found.not() } else { found }
        }
        Expr::Like(like) if !like.case_insensitive && like.escape_char.is_none() => {
            let found = matches_pattern(like, bounds);
            if like.negated { found.not() } else { found }
        }
        _ => Truths::ANY,
    }
}

fn nullness(expr: &Expr, bounds: &FileBounds<'_>) -> Truths {
    match expr {
        Expr::Column(column) => {
            Truths { yes: bounds.may_be_null(&column.name), no: bounds.may_be_value(&column.name), null: false }
        }
        _ => Truths { null: false, ..Truths::ANY },
    }
}

/// What is known of the values of an expression.
struct Operand<'a> {
    least: Option<Cow<'a, ScalarValue>>,
    greatest: Option<Cow<'a, ScalarValue>>,
    null: bool,
    value: bool,
}

fn operand<'a>(expr: &'a Expr, bounds: &FileBounds<'_>) -> Option<Operand<'a>> {
    match expr {
        Expr::Literal(value, _) => {
            let known = (!value.is_null()).then_some(Cow::Borrowed(value));
            Some(Operand { null: known.is_none(), value: known.is_some(), least: known.clone(), greatest: known })
        }
        Expr::Column(column) => {
            let (least, greatest) = bounds.ends(&column.name);
            let (null, value) = (bounds.may_be_null(&column.name), bounds.may_be_value(&column.name));
            Some(Operand { least: least.map(Cow::Owned), greatest: greatest.map(Cow::Owned), null, value })
        }
        // The day of a moment rises with it, so bounds stay bounds.
        Expr::Cast(Cast { expr, field }) if *field.data_type() == DataType::Date32 => {
            let inner = operand(expr, bounds)?;
            let day = |value: Option<Cow<'_, ScalarValue>>| match value?.as_ref() {
                value @ ScalarValue::TimestampMicrosecond(_, _) => {
                    value.cast_to(&DataType::Date32).ok().map(Cow::Owned)
                }
                _ => None,
            };
            Some(Operand { least: day(inner.least), greatest: day(inner.greatest), ..inner })
        }
        _ => None,
    }
}

fn compare(left: &Expr, op: Operator, right: &Expr, bounds: &FileBounds<'_>) -> Truths {
    match (operand(left, bounds), operand(right, bounds)) {
        (Some(left), Some(right)) => compared(&left, op, &right),
        _ => Truths::ANY,
    }
}

fn compared(left: &Operand<'_>, op: Operator, right: &Operand<'_>) -> Truths {
    let above = order(left.least.as_deref(), right.greatest.as_deref());
    let below = order(left.greatest.as_deref(), right.least.as_deref());
    let values = left.value && right.value;
    let less = values && above.is_none_or(Ordering::is_lt);
    let greater = values && below.is_none_or(Ordering::is_gt);
    let equal = values && above.is_none_or(Ordering::is_le) && below.is_none_or(Ordering::is_ge);
    let null = left.null || right.null;
    match op {
        Operator::Eq => Truths { yes: equal, no: less || greater, null },
        Operator::NotEq => Truths { yes: less || greater, no: equal, null },
        Operator::Lt => Truths { yes: less, no: equal || greater, null },
        Operator::LtEq => Truths { yes: less || equal, no: greater, null },
        Operator::Gt => Truths { yes: greater, no: less || equal, null },
        Operator::GtEq => Truths { yes: greater || equal, no: less, null },
        Operator::IsNotDistinctFrom | Operator::IsDistinctFrom => {
            let same = Truths {
                yes: equal || left.null && right.null,
                no: less || greater || left.null && right.value || right.null && left.value,
                null: false,
            };
            if op == Operator::IsDistinctFrom { same.not() } else { same }
        }
        _ => Truths::ANY,
    }
}

/// How two values compare; none where one is not known, or they are of different types.
fn order(left: Option<&ScalarValue>, right: Option<&ScalarValue>) -> Option<Ordering> {
    let (left, right) = (left?, right?);
    (left.data_type() == right.data_type()).then(|| left.partial_cmp(right))?
}

/// `LIKE` by the text before the pattern's first wildcard.
fn matches_pattern(like: &Like, bounds: &FileBounds<'_>) -> Truths {
    let (Some(text), Expr::Literal(ScalarValue::Utf8(Some(pattern)), _)) =
        (operand(&like.expr, bounds), &*like.pattern)
    else {
        return Truths::ANY;
    };
    let (prefix, rest) = pattern.split_at(pattern.find(['%', '_', '\\']).unwrap_or(pattern.len()));
    let end = |value: &Option<Cow<'_, ScalarValue>>| match value.as_deref() {
        Some(ScalarValue::Utf8(Some(text))) => Some(text.clone()),
        _ => None,
    };
    let (least, greatest) = (end(&text.least), end(&text.greatest));
    let past = after_prefix(prefix);
    let yes = text.value
        && greatest.as_deref().is_none_or(|greatest| greatest >= prefix)
        && least.as_ref().zip(past.as_ref()).is_none_or(|(least, past)| least < past);
    // Text between two texts with a prefix has that prefix too.
    let all = rest == "%"
        && [&least, &greatest].into_iter().all(|end| end.as_deref().is_some_and(|end| end.starts_with(prefix)));
    Truths { yes, no: text.value && !all, null: text.null }
}

#[cfg(test)]
mod tests;
