//! The functions that a predicate may call: those that give the same in Spark and DataFusion, on any day.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions::expr_fn::{btrim, character_length, date_part, ends_with, isnan, lower, starts_with, upper};
use datafusion::logical_expr::{Expr, when};
use datafusion::sql::sqlparser::ast::{
    DateTimeField, Expr as Sql, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
};

use super::translate::{Translator, shown};
use super::types::{Typed, TypedExpr, as_type, condition};
use crate::error::{Error, Result};
use crate::plan::value::{cut, type_name};

const TAKEN: &str =
    "lower, upper, trim, length, startswith, endswith, coalesce, year, month, day, date, isnull, isnotnull, isnan";

/// Names of functions whose answer is another one at another time, for another user, or by chance.
const DEPEND_ON_WHEN: &[&str] = &[
    "now",
    "today",
    "getdate",
    "sysdate",
    "curdate",
    "curtime",
    "current_date",
    "current_time",
    "current_timestamp",
    "current_timezone",
    "localtime",
    "localtimestamp",
    "unix_timestamp",
    "rand",
    "randn",
    "random",
    "randstr",
    "uniform",
    "shuffle",
    "uuid",
    "gen_random_uuid",
    "monotonically_increasing_id",
    "spark_partition_id",
    "input_file_name",
    "user",
    "current_user",
    "session_user",
    "current_catalog",
    "current_database",
    "current_schema",
    "version",
];

const AGGREGATES: &[&str] =
    &["count", "sum", "min", "max", "avg", "mean", "first", "last", "any_value", "collect_list"];

/// Whether the name is that of a function, or of a word that acts as one, whose answer may be another one next time.
pub(super) fn depends_on_when(name: &str) -> bool {
    DEPEND_ON_WHEN.contains(&name.to_ascii_lowercase().as_str())
}

/// The error for a name of which [`depends_on_when`] is true.
pub(super) fn refuse(name: &str) -> Error {
    Error::invalid(format!("an expression takes no {name}: the same load would mean other rows at another time"))
        .hint("write the value itself")
}

/// A call of a function.
pub(super) fn call(translator: &mut Translator<'_>, function: &Function) -> Result<Typed> {
    let name = function.name.to_string().to_ascii_lowercase();
    if depends_on_when(&name) {
        return Err(refuse(&format!("{name}()")));
    }
    if function.over.is_some() {
        return Err(Error::invalid(format!("an expression takes no window function such as {name}() OVER")));
    }
    if AGGREGATES.contains(&name.as_str()) {
        return Err(Error::invalid(format!("an expression takes no aggregate such as {name}()")));
    }
    let unknown = || {
        Error::invalid(format!("an expression takes no function {}()", cut(&name))).hint(format!("it takes {TAKEN}"))
    };
    let arguments = arguments(function).ok_or_else(unknown)?;
    let wrong =
        || Error::invalid(format!("'{}' does not have the arguments that {name} takes", cut(&function.to_string())));
    let what = format!("'{}'", cut(&function.to_string()));
    let of_type = |expr, data_type| Typed::Expr(TypedExpr { expr, data_type, what: what.clone(), computed: false });
    match (name.as_str(), arguments.as_slice()) {
        ("lower" | "lcase", [text]) => {
            translator.makes_text()?;
            Ok(of_type(lower(translator.string(text)?), DataType::Utf8))
        }
        ("upper" | "ucase", [text]) => {
            translator.makes_text()?;
            Ok(of_type(upper(translator.string(text)?), DataType::Utf8))
        }
        ("trim" | "btrim", [text]) => trim(translator, text),
        ("length" | "len" | "char_length" | "character_length", [text]) => {
            Ok(of_type(character_length(translator.string(text)?), DataType::Int32))
        }
        ("startswith" | "starts_with", [text, start]) => {
            Ok(condition(starts_with(translator.string(text)?, translator.string(start)?)))
        }
        ("endswith" | "ends_with", [text, end]) => {
            Ok(condition(ends_with(translator.string(text)?, translator.string(end)?)))
        }
        ("year", [moment]) => part(translator, "year", moment),
        ("month", [moment]) => part(translator, "month", moment),
        ("day" | "dayofmonth", [moment]) => part(translator, "day", moment),
        ("date" | "to_date", [moment]) => match translator.typed(moment)? {
            Typed::Expr(typed) if is_moment(&typed.data_type) => {
                Ok(of_type(as_type(&typed, &DataType::Date32), DataType::Date32))
            }
            Typed::Literal(literal) => {
                Ok(of_type(Expr::Literal(literal.typed(&DataType::Date32, &what)?, None), DataType::Date32))
            }
            Typed::Expr(_) => Err(wrong()),
        },
        ("isnull", [value]) => Ok(condition(typed(translator, value)?.expr.is_null())),
        ("isnotnull", [value]) => Ok(condition(typed(translator, value)?.expr.is_not_null())),
        ("isnan", [value]) => {
            let value = typed(translator, value)?;
            // Spark says false of null.
            let is = if value.data_type.is_floating() { isnan(value.expr).is_true() } else { return Err(wrong()) };
            Ok(condition(is))
        }
        ("coalesce" | "nvl" | "ifnull", [first, rest @ ..]) if !rest.is_empty() => {
            let first = typed(translator, first)?;
            let mut values = vec![first.expr.clone()];
            for value in rest {
                values.push(match translator.typed(value)? {
                    Typed::Literal(literal) => Expr::Literal(literal.typed(&first.data_type, &first.what)?, None),
                    Typed::Expr(other) if other.data_type == first.data_type => other.expr,
                    Typed::Expr(other) => {
                        return Err(Error::invalid(format!("{what} mixes the types of its arguments"))
                            .detail(format!("{} and {}", type_name(&first.data_type), type_name(&other.data_type))));
                    }
                });
            }
            Ok(of_type(first_value(values).ok_or_else(wrong)?, first.data_type))
        }
        (
            "lower" | "lcase" | "upper" | "ucase" | "trim" | "btrim" | "length" | "len" | "char_length"
            | "character_length" | "startswith" | "starts_with" | "endswith" | "ends_with" | "year" | "month" | "day"
            | "dayofmonth" | "date" | "to_date" | "isnull" | "isnotnull" | "isnan" | "coalesce" | "nvl" | "ifnull",
            _,
        ) => Err(wrong()),
        _ => Err(unknown()),
    }
}

/// `EXTRACT(field FROM moment)`.
pub(super) fn extract(translator: &mut Translator<'_>, field: &DateTimeField, moment: &Sql) -> Result<Typed> {
    match field {
        DateTimeField::Year => part(translator, "year", moment),
        DateTimeField::Month => part(translator, "month", moment),
        DateTimeField::Day => part(translator, "day", moment),
        other => Err(Error::invalid(format!("a predicate extracts no {other}")).hint("year, month and day are taken")),
    }
}

/// `TRIM(text)`: spaces alone, at both ends.
pub(super) fn trim(translator: &mut Translator<'_>, text: &Sql) -> Result<Typed> {
    translator.makes_text()?;
    Ok(Typed::Expr(TypedExpr {
        expr: btrim(vec![translator.string(text)?]),
        data_type: DataType::Utf8,
        what: format!("'trim({})'", shown(text)),
        computed: false,
    }))
}

fn part(translator: &mut Translator<'_>, name: &str, moment: &Sql) -> Result<Typed> {
    let typed = typed(translator, moment)?;
    if !is_moment(&typed.data_type) {
        return Err(Error::invalid(format!(
            "{} is of type {} and has no {name}",
            typed.what,
            type_name(&typed.data_type)
        )));
    }
    let name_value = Expr::Literal(ScalarValue::Utf8(Some(name.to_owned())), None);
    Ok(Typed::Expr(TypedExpr {
        expr: date_part(name_value, typed.expr),
        data_type: DataType::Int32,
        what: format!("'{name}({})'", shown(moment)),
        computed: false,
    }))
}

fn is_moment(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Timestamp(_, _))
}

fn typed(translator: &mut Translator<'_>, sql: &Sql) -> Result<TypedExpr> {
    match translator.typed(sql)? {
        Typed::Expr(typed) => Ok(typed),
        Typed::Literal(literal) => {
            Err(Error::invalid(format!("a function of the literal {} is not taken", cut(&literal.to_string()))))
        }
    }
}

/// The first of the values that is not null; none where one but the last is more than a column.
///
/// DataFusion's own coalesce cannot be carried out unless its optimizer has turned it into a CASE. That repeats each
/// value, so what is repeated must not be able to grow.
fn first_value(mut values: Vec<Expr>) -> Option<Expr> {
    let last = values.pop()?;
    values.into_iter().rev().try_fold(last, |otherwise, value| match value {
        Expr::Column(_) | Expr::Literal(_, _) => when(value.clone().is_not_null(), value).otherwise(otherwise).ok(),
        _ => None,
    })
}

/// The plain arguments of a call; none where it has any of SQL's adornments.
fn arguments(function: &Function) -> Option<Vec<&Sql>> {
    if !matches!(function.parameters, FunctionArguments::None)
        || function.filter.is_some()
        || function.null_treatment.is_some()
        || !function.within_group.is_empty()
    {
        return None;
    }
    match &function.args {
        FunctionArguments::None => Some(Vec::new()),
        FunctionArguments::Subquery(_) => None,
        FunctionArguments::List(list) => {
            if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
                return None;
            }
            list.args
                .iter()
                .map(|argument| match argument {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
                    _ => None,
                })
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{Volatility, lit};

    use super::*;

    #[test]
    fn every_function_taken_is_immutable() {
        let text = || lit("x");
        let calls = [
            lower(text()),
            upper(text()),
            btrim(vec![text()]),
            character_length(text()),
            starts_with(text(), text()),
            ends_with(text(), text()),
            date_part(text(), text()),
            isnan(lit(1.0)),
        ];
        for call in calls {
            let Expr::ScalarFunction(function) = call else { panic!("not a call: {call}") };
            assert_eq!(function.func.signature().volatility, Volatility::Immutable, "{}", function.name());
        }
    }

    #[test]
    fn every_function_of_datafusion_that_is_not_immutable_is_named() {
        for function in datafusion::functions::all_default_functions() {
            if function.signature().volatility != Volatility::Immutable {
                let taken = TAKEN.split(", ").any(|name| name == function.name());
                assert!(!taken, "{}", function.name());
            }
        }
        assert!(depends_on_when("NOW") && depends_on_when("Current_Date"));
    }
}
