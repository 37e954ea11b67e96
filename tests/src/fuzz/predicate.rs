//! Predicates together with their truth for a row, which shares nothing with the product: SQL's three values, numbers
//! as integers of hundredths, floats in the order that Spark gives them.

use std::cmp::Ordering;
use std::sync::Arc;

use super::random::Random;
use super::sample::{BIGINTS, DATES, DOUBLES, HUNDREDTHS, INTS, PLAIN_TEXTS, Row, TEXTS, TIMESTAMPS, hundredths};

/// What an expression is for a row; none is null.
type Of<T> = Arc<dyn Fn(&Row) -> Option<T> + Send + Sync>;

/// A condition that stands for itself within any other.
#[derive(Clone)]
pub(super) struct Condition {
    pub(super) sql: String,
    pub(super) truth: Of<bool>,
}

/// An expression that can be compared with another of the same kind, and literals it can be compared with.
#[derive(Clone)]
struct Side<T> {
    sql: String,
    value: Of<T>,
    literals: Arc<Vec<(String, T)>>,
}

fn side<T: 'static>(
    sql: impl Into<String>,
    literals: Vec<(String, T)>,
    value: impl Fn(&Row) -> Option<T> + Send + Sync + 'static,
) -> Side<T> {
    Side { sql: sql.into(), value: Arc::new(value), literals: Arc::new(literals) }
}

fn new(sql: String, truth: impl Fn(&Row) -> Option<bool> + Send + Sync + 'static) -> Condition {
    Condition { sql, truth: Arc::new(truth) }
}

/// A condition whose operators are `depth` deep at most.
pub(super) fn condition(random: &mut Random, depth: usize) -> Condition {
    if depth == 0 || random.once_in(3) {
        return simple(random);
    }
    match random.below(8) {
        0 => {
            let inner = condition(random, depth - 1);
            let sql = format!("{} ({})", random.pick(&["NOT", "not", "NOT\n"]), inner.sql);
            new(sql, move |row| (inner.truth)(row).map(|truth| !truth))
        }
        1 => {
            let inner = condition(random, depth - 1);
            let (words, test) = *random.pick(&[
                ("IS TRUE", (|truth| truth == Some(true)) as fn(Option<bool>) -> bool),
                ("IS NOT TRUE", |truth| truth != Some(true)),
                ("IS FALSE", |truth| truth == Some(false)),
                ("IS NOT FALSE", |truth| truth != Some(false)),
                ("IS NULL", |truth| truth.is_none()),
                ("IS NOT NULL", |truth| truth.is_some()),
            ]);
            new(format!("(({}) {words})", inner.sql), move |row| Some(test((inner.truth)(row))))
        }
        2 => {
            let inner = condition(random, depth - 1);
            new(format!("({})", inner.sql), move |row| (inner.truth)(row))
        }
        _ => chain(random, depth),
    }
}

/// Conditions with AND and OR between them and no parentheses: AND binds first.
fn chain(random: &mut Random, depth: usize) -> Condition {
    let mut sql = String::new();
    let mut groups: Vec<Vec<Condition>> = vec![Vec::new()];
    for at in 0..2 + random.below(3) {
        let mut part = condition(random, depth - 1);
        // What may be a chain itself is told apart.
        part.sql = format!("({})", part.sql);
        if random.once_in(2) {
            part = simple(random);
        }
        if at > 0 {
            let is_or = random.once_in(2);
            let words = if is_or { [" OR ", " or "] } else { [" AND ", "\tand\n"] };
            sql.push_str(random.pick::<&str>(&words));
            if is_or {
                groups.push(Vec::new());
            }
        }
        sql.push_str(&part.sql);
        groups.last_mut().expect("there is a group").push(part);
    }
    new(sql, move |row| {
        let and = |group: &Vec<Condition>| decided_by(false, group.iter().map(|part| (part.truth)(row)));
        decided_by(true, groups.iter().map(and))
    })
}

/// AND is decided by one that is false, OR by one that is true; else one that is not known leaves it unknown.
fn decided_by(truth: bool, truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let truths: Vec<_> = truths.collect();
    if truths.contains(&Some(truth)) {
        Some(truth)
    } else if truths.contains(&None) {
        None
    } else {
        Some(!truth)
    }
}

/// A condition that needs no parentheses beside AND and OR.
fn simple(random: &mut Random) -> Condition {
    match random.below(14) {
        0..=3 => {
            let number = number(random);
            let other = self::number(random);
            compared(random, &number, &other, Ord::cmp)
        }
        4..=6 => {
            let text = text(random);
            let other = self::text(random);
            if random.once_in(3) { like(random, &text) } else { compared(random, &text, &other, Ord::cmp) }
        }
        7 => {
            let [one, other] = [float(random), float(random)];
            compared(random, &one, &other, as_spark)
        }
        8 | 9 => {
            let [one, other] = [date(random), date(random)];
            compared(random, &one, &other, Ord::cmp)
        }
        10 => {
            let moment = moment();
            compared(random, &moment, &moment.clone(), Ord::cmp)
        }
        11 => {
            let literals = [true, false].map(|value| (value.to_string(), value)).to_vec();
            let boolean = side("k", literals, |row| row.k);
            compared(random, &boolean, &boolean.clone(), Ord::cmp)
        }
        12 => match random.below(4) {
            0 => new("k".into(), |row| row.k),
            1 => new("isnan(f)".into(), |row| Some(row.f.is_some_and(f64::is_nan))),
            2 => new("isnull(s)".into(), |row| Some(row.s.is_none())),
            _ => new("startswith(s, 'a')".into(), |row| row.s.map(|s| s.starts_with('a'))),
        },
        _ => {
            let (sql, truth) =
                *random.pick(&[("TRUE", Some(true)), ("false", Some(false)), ("NULL", None), ("1 = 1", Some(true))]);
            new(sql.into(), move |_| truth)
        }
    }
}

/// A comparison of `one` with literals of its own, or with `other`.
fn compared<T: Clone + Send + Sync + 'static>(
    random: &mut Random,
    one: &Side<T>,
    other: &Side<T>,
    order: fn(&T, &T) -> Ordering,
) -> Condition {
    let value = one.value.clone();
    let literal = |random: &mut Random| random.pick(&one.literals).clone();
    match random.below(9) {
        0 => {
            let not = random.once_in(2);
            let sql = format!("{} IS {}NULL", one.sql, if not { "NOT " } else { "" });
            new(sql, move |row| Some(value(row).is_none() != not))
        }
        1 => {
            let [low, high] = [literal(random), literal(random)];
            let not = random.once_in(3);
            let sql = format!("{} {}BETWEEN {} AND {}", one.sql, if not { "NOT " } else { "" }, low.0, high.0);
            new(sql, move |row| {
                let value = value(row)?;
                Some((order(&value, &low.1).is_ge() && order(&value, &high.1).is_le()) != not)
            })
        }
        2 | 3 => {
            let list: Vec<_> = (0..1 + random.below(4)).map(|_| literal(random)).collect();
            let (not, null) = (random.once_in(3), random.once_in(4));
            let mut texts: Vec<_> = list.iter().map(|(text, _)| text.as_str()).collect();
            if null {
                texts.insert(random.below(texts.len() + 1), "NULL");
            }
            let sql = format!("{} {}IN ({})", one.sql, if not { "NOT " } else { "" }, texts.join(", "));
            new(sql, move |row| {
                let value = value(row)?;
                let found = list.iter().any(|(_, other)| order(&value, other).is_eq());
                if found {
                    Some(!not)
                } else if null {
                    None
                } else {
                    Some(not)
                }
            })
        }
        4 => {
            let (words, same) =
                *random.pick(&[("<=>", true), ("IS DISTINCT FROM", false), ("IS NOT DISTINCT FROM", true)]);
            let (text, right): (String, Of<T>) = match random.below(3) {
                0 => ("NULL".into(), Arc::new(|_| None)),
                1 => {
                    let (text, literal) = literal(random);
                    (text, Arc::new(move |_| Some(literal.clone())))
                }
                _ => (other.sql.clone(), other.value.clone()),
            };
            new(format!("{} {words} {text}", one.sql), move |row| {
                let equal = match (value(row), right(row)) {
                    (Some(left), Some(right)) => order(&left, &right).is_eq(),
                    (left, right) => left.is_none() && right.is_none(),
                };
                Some(equal == same)
            })
        }
        _ => {
            let (sign, test) = *random.pick(&[
                ("=", Ordering::is_eq as fn(Ordering) -> bool),
                ("<>", Ordering::is_ne),
                ("!=", Ordering::is_ne),
                ("<", Ordering::is_lt),
                ("<=", Ordering::is_le),
                (">", Ordering::is_gt),
                (">=", Ordering::is_ge),
            ]);
            if random.once_in(3) {
                let right = other.value.clone();
                return new(format!("{} {sign} {}", one.sql, other.sql), move |row| {
                    Some(test(order(&value(row)?, &right(row)?)))
                });
            }
            let (text, literal) = literal(random);
            if random.once_in(4) {
                return new(format!("{text} {sign} {}", one.sql), move |row| Some(test(order(&literal, &value(row)?))));
            }
            new(format!("{}{sign}{text}", one.sql), move |row| Some(test(order(&value(row)?, &literal))))
        }
    }
}

fn like(random: &mut Random, text: &Side<String>) -> Condition {
    let pieces = ["%", "%", "_", "a", "b", "A", "é", "x", " ", "'"];
    let pattern: String = (0..random.length(7)).map(|_| *random.pick(&pieces)).collect();
    let not = random.once_in(3);
    let sql = format!("{} {}LIKE {}", text.sql, if not { "NOT " } else { "" }, quoted(&pattern));
    let value = text.value.clone();
    let pattern: Vec<char> = pattern.chars().collect();
    new(sql, move |row| {
        let text: Vec<char> = value(row)?.chars().collect();
        Some(matches(&pattern, &text) != not)
    })
}

fn matches(pattern: &[char], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('%', rest)) => (0..=text.len()).any(|taken| matches(rest, &text[taken..])),
        Some(('_', rest)) => !text.is_empty() && matches(rest, &text[1..]),
        Some((letter, rest)) => text.first() == Some(letter) && matches(rest, &text[1..]),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn whole(values: &[i64]) -> Vec<(String, i128)> {
    values.iter().map(|value| (value.to_string(), i128::from(*value) * 100)).collect()
}

/// A number in hundredths. Beside a column stand only literals that its type holds; beside a sum, any.
fn number(random: &mut Random) -> Side<i128> {
    let cents = |value: i64| i128::from(value) * 100;
    let column = |random: &mut Random| match random.below(4) {
        0 => side("b", whole(&INTS), move |row| row.b.map(cents)),
        1 => side("n", whole(&BIGINTS), move |row| row.n.map(cents)),
        2 => side("`p`", whole(&INTS), move |row| row.p.map(cents)),
        _ => {
            let literals = HUNDREDTHS.iter().map(|value| (hundredths(*value), i128::from(*value))).collect();
            side("m", literals, move |row| row.m.map(i128::from))
        }
    };
    let any = || {
        HUNDREDTHS
            .iter()
            .map(|value| (hundredths(*value), i128::from(*value)))
            .chain(whole(&BIGINTS))
            .collect::<Vec<_>>()
    };
    match random.below(9) {
        0 => {
            let one = column(random);
            // Not a bigint: 19 digits times the literal's come to more than a decimal with a fraction has room for.
            let (name, other) = random
                .pick(&[
                    ("b", Arc::new(move |row: &Row| row.b.map(cents)) as Of<i128>),
                    ("p", Arc::new(move |row: &Row| row.p.map(cents))),
                    ("m", Arc::new(|row: &Row| row.m.map(i128::from))),
                ])
                .clone();
            let (text, literal) = random.pick(&whole(&INTS)).clone();
            let factor = literal / 100;
            // The product is of the literal and the second column alone.
            let sql = format!("({} + {name} * {text})", one.sql);
            side(sql, any(), move |row| Some((one.value)(row)? + other(row)? * factor))
        }
        1 => {
            let (one, other) = (column(random), column(random));
            side(format!("({} - {})", one.sql, other.sql), any(), move |row| {
                Some((one.value)(row)? - (other.value)(row)?)
            })
        }
        2 => {
            let by = random.within(2, 7);
            side(format!("n % {by}"), any(), move |row| row.n.map(|n| cents(n % by)))
        }
        3 => side("length(s)", whole(&INTS[..6]), move |row| row.s.map(|s| cents(s.chars().count() as i64))),
        4 => side("coalesce(b, 0)", whole(&INTS), move |row| Some(cents(row.b.unwrap_or(0)))),
        5 => {
            let year = |text: &str| text.get(..4).and_then(|year| year.parse().ok());
            side("year(d)", whole(&[1, 1969, 1970, 2024, 9999]), move |row| row.d.and_then(year).map(cents))
        }
        6 => side("-n", any(), move |row| row.n.map(|n| -cents(n))),
        _ => column(random),
    }
}

fn text(random: &mut Random) -> Side<String> {
    let literals = |of: &[&str]| of.iter().map(|text| (quoted(text), (*text).to_owned())).collect::<Vec<_>>();
    let all = literals(&TEXTS);
    match random.below(8) {
        0 => side("upper(s)", all, |row| row.s.map(str::to_uppercase)),
        1 => side("lower(s)", all, |row| row.s.map(str::to_lowercase)),
        2 => side("trim(s)", all, |row| row.s.map(|s| s.trim_matches(' ').to_owned())),
        3 => side("q || s", literals(&["aa", "aab", "b", "zz"]), |row| Some(row.q?.to_owned() + row.s?)),
        4 => side("coalesce(s, 'a')", all, |row| Some(row.s.unwrap_or("a").to_owned())),
        5 => side("q", literals(&PLAIN_TEXTS), |row| row.q.map(str::to_owned)),
        _ => side("s", all, |row| row.s.map(str::to_owned)),
    }
}

/// NaN is one value above all others, and -0.0 is 0.0.
fn as_spark(one: &f64, other: &f64) -> Ordering {
    one.partial_cmp(other).unwrap_or_else(|| one.is_nan().cmp(&other.is_nan()))
}

fn float(_: &mut Random) -> Side<f64> {
    let literal = |value: &f64| match *value {
        value if value.is_finite() => format!("{value:?}"),
        value if value.is_nan() => "'NaN'".to_owned(),
        value => format!("'{}Infinity'", if value < 0.0 { "-" } else { "" }),
    };
    side("f", DOUBLES.iter().map(|value| (literal(value), *value)).collect(), |row| row.f)
}

fn date(random: &mut Random) -> Side<String> {
    let spelling = *random.pick(&["", "DATE "]);
    let literals = DATES.iter().map(|date| (format!("{spelling}'{date}'"), (*date).to_owned())).collect();
    let day = |text: &str| text.get(..10).map(str::to_owned);
    match random.below(4) {
        0 => side("CAST(t AS DATE)", literals, move |row| row.t.and_then(day)),
        1 => side("date(t)", literals, move |row| row.t.and_then(day)),
        _ => side("d", literals, |row| row.d.map(str::to_owned)),
    }
}

fn moment() -> Side<String> {
    let literals = TIMESTAMPS.iter().map(|moment| (format!("'{moment}'"), (*moment).to_owned())).collect();
    side("t", literals, |row| row.t.map(str::to_owned))
}
