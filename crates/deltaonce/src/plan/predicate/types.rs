//! How typed expressions meet: in a type that holds the values of both, or not at all.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::functions::expr_fn::isnan;
use datafusion::logical_expr::{Expr, Operator, binary_expr, cast, lit, when};
use datafusion::sql::sqlparser::ast::{DataType as SqlType, ExactNumberInfo, TimezoneInfo};

use crate::error::{Error, Result};
use crate::plan::value::{Decimal, Form, Literal, cut, is_number, moment, type_name};

/// An expression with its type, or a literal that still takes the type of what it meets.
pub(super) enum Typed {
    Literal(Literal),
    Expr(TypedExpr),
}

pub(super) struct TypedExpr {
    pub(super) expr: Expr,
    pub(super) data_type: DataType,
    /// What it is, for messages.
    pub(super) what: String,
    /// Whether its type came out of arithmetic; a literal it meets then need not fit that very type.
    pub(super) computed: bool,
}

/// A boolean expression.
pub(super) fn condition(expr: Expr) -> Typed {
    Typed::Expr(TypedExpr { expr, data_type: DataType::Boolean, what: "the condition".to_owned(), computed: false })
}

/// A literal that meets no column, with the type it has of its own.
pub(super) fn by_itself(literal: &Literal) -> Result<TypedExpr> {
    let data_type = match literal {
        Literal::Number(text) => match Decimal::parse(text).and_then(Decimal::decimal_type) {
            Some((precision, 0)) if precision <= 18 => DataType::Int64,
            Some((precision, scale)) => DataType::Decimal128(precision, scale),
            None => return Err(Error::invalid(format!("the number {} has too many digits", cut(text)))),
        },
        Literal::Text(_) => DataType::Utf8,
        Literal::Boolean(_) | Literal::Null => DataType::Boolean,
        Literal::Date(_) => DataType::Date32,
        Literal::Timestamp(text) => {
            let zone = moment(text).is_some_and(|moment| moment.form == Form::Offset);
            DataType::Timestamp(TimeUnit::Microsecond, zone.then(|| "UTC".into()))
        }
        Literal::Binary(_) => DataType::Binary,
    };
    let value = literal.typed(&data_type, "the literal")?;
    Ok(TypedExpr { expr: Expr::Literal(value, None), data_type, what: cut(&literal.to_string()), computed: true })
}

/// A comparison, its sides brought to one type.
///
/// # Errors
/// `Invalid` where there is no such type.
pub(super) fn compare(left: Typed, op: Operator, right: Typed) -> Result<Expr> {
    let meets = |literal: &Literal, other: &TypedExpr| {
        // A number may lie beyond what a computed type can hold; the two are then brought to one type.
        if other.computed && is_number(&other.data_type) && !other.data_type.is_floating() && *literal != Literal::Null
        {
            return by_itself(literal);
        }
        let value = literal.typed(&other.data_type, &other.what)?;
        Ok(TypedExpr {
            expr: Expr::Literal(value, None),
            data_type: other.data_type.clone(),
            what: cut(&literal.to_string()),
            computed: false,
        })
    };
    let (left, right) = match (left, right) {
        (Typed::Expr(left), Typed::Expr(right)) => (left, right),
        (Typed::Expr(left), Typed::Literal(literal)) => {
            let right = meets(&literal, &left)?;
            (left, right)
        }
        (Typed::Literal(literal), Typed::Expr(right)) => (meets(&literal, &right)?, right),
        (Typed::Literal(left), Typed::Literal(right)) => (by_itself(&left)?, by_itself(&right)?),
    };
    let Some(data_type) = common_type(&left.data_type, &right.data_type).filter(is_comparable) else {
        return Err(Error::invalid(format!(
            "{} is of type {} and cannot be compared with {}, which is of type {}",
            left.what,
            type_name(&left.data_type),
            right.what,
            type_name(&right.data_type)
        )));
    };
    let (left, right) = (as_type(&left, &data_type), as_type(&right, &data_type));
    if data_type.is_floating() {
        return Ok(binary_expr(normal_float(left, &data_type)?, op, normal_float(right, &data_type)?));
    }
    Ok(binary_expr(left, op, right))
}

/// Whether values of the type have an order here.
pub(super) fn is_comparable(data_type: &DataType) -> bool {
    is_number(data_type)
        || matches!(
            data_type,
            DataType::Boolean | DataType::Utf8 | DataType::Binary | DataType::Date32 | DataType::Timestamp(_, _)
        )
}

/// The type that holds all values of both, if there is one.
fn common_type(left: &DataType, right: &DataType) -> Option<DataType> {
    if left == right {
        return Some(left.clone());
    }
    if left.is_integer() && right.is_integer() {
        return Some(if loses_nothing(left, right) { right.clone() } else { left.clone() });
    }
    let double = DataType::Float64;
    if left.is_floating() || right.is_floating() {
        return (loses_nothing(left, &double) && loses_nothing(right, &double)).then_some(double);
    }
    match (exact_type(left), exact_type(right)) {
        (DataType::Decimal128(p1, s1), DataType::Decimal128(p2, s2)) => {
            let scale = s1.max(s2);
            let whole = (i16::from(p1) - i16::from(s1)).max(i16::from(p2) - i16::from(s2));
            let precision = u8::try_from(whole + i16::from(scale)).ok()?;
            (precision <= 38).then_some(DataType::Decimal128(precision, scale))
        }
        _ => None,
    }
}

/// The decimal type that holds all values of an integer type; other types as they are.
pub(super) fn exact_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Int8 => DataType::Decimal128(3, 0),
        DataType::Int16 => DataType::Decimal128(5, 0),
        DataType::Int32 => DataType::Decimal128(10, 0),
        DataType::Int64 => DataType::Decimal128(19, 0),
        other => other.clone(),
    }
}

/// Whether every value of `from` has its own value of `to`, written alike by Spark and DataFusion, or is a day of a
/// moment, which both take in UTC.
pub(super) fn loses_nothing(from: &DataType, to: &DataType) -> bool {
    use DataType::{Boolean, Date32, Decimal128, Float32, Float64, Int8, Int16, Int32, Int64, Timestamp, Utf8};
    match (from, to) {
        _ if from == to => true,
        (Int8, Int16 | Int32 | Int64) | (Int16, Int32 | Int64) | (Int32, Int64) => true,
        (Int8 | Int16 | Int32 | Float32, Float64) => true,
        (Int8 | Int16 | Int32 | Int64 | Date32 | Boolean, Utf8) => true,
        (Date32, Timestamp(_, _)) | (Timestamp(_, _), Date32) => true,
        (Int8 | Int16 | Int32 | Int64 | Decimal128(_, _), Decimal128(precision, scale)) => match exact_type(from) {
            Decimal128(p, s) => s <= *scale && i16::from(p) - i16::from(s) <= i16::from(*precision) - i16::from(*scale),
            _ => false,
        },
        _ => false,
    }
}

/// The expression as one of a type that holds all its values.
pub(super) fn as_type(typed: &TypedExpr, data_type: &DataType) -> Expr {
    if typed.data_type == *data_type { typed.expr.clone() } else { cast(typed.expr.clone(), data_type.clone()) }
}

/// A float as Spark compares it: every NaN the same one, and -0.0 as 0.0.
fn normal_float(expr: Expr, data_type: &DataType) -> Result<Expr> {
    let (nan, zero) = match data_type {
        DataType::Float32 => (lit(f32::NAN), lit(0.0_f32)),
        _ => (lit(f64::NAN), lit(0.0_f64)),
    };
    when(isnan(expr.clone()), nan)
        .otherwise(expr + zero)
        .map_err(|e| Error::internal("floats cannot be compared").caused_by(e))
}

/// The table's type of a SQL type's name.
pub(super) fn column_type(sql: &SqlType) -> Option<DataType> {
    Some(match sql {
        SqlType::TinyInt(None) => DataType::Int8,
        SqlType::SmallInt(None) => DataType::Int16,
        SqlType::Int(None) | SqlType::Integer(None) => DataType::Int32,
        SqlType::BigInt(None) => DataType::Int64,
        SqlType::Float(ExactNumberInfo::None) | SqlType::Real => DataType::Float32,
        SqlType::Double(ExactNumberInfo::None) => DataType::Float64,
        SqlType::Decimal(ExactNumberInfo::PrecisionAndScale(precision, scale))
        | SqlType::Numeric(ExactNumberInfo::PrecisionAndScale(precision, scale)) => {
            let (precision, scale) = (u8::try_from(*precision).ok()?, i8::try_from(*scale).ok()?);
            ((1..=38).contains(&precision) && scale >= 0 && i16::from(scale) <= i16::from(precision))
                .then_some(DataType::Decimal128(precision, scale))?
        }
        SqlType::Boolean | SqlType::Bool => DataType::Boolean,
        SqlType::String(None) => DataType::Utf8,
        SqlType::Date => DataType::Date32,
        SqlType::Timestamp(None, TimezoneInfo::None) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        SqlType::TimestampNtz(None) => DataType::Timestamp(TimeUnit::Microsecond, None),
        _ => return None,
    })
}
