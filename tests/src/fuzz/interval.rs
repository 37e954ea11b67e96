//! Intervals of `--interval`.

use deltaonce::Scope;

use super::lake::{harmless, sensible, tells};
use super::sample::{BIGINTS, DATES, HUNDREDTHS, INTS, PLAIN_TEXTS, Row, TIMESTAMPS, empty, hundredths, ids, sample};
use super::{Case, mutate};

const WORDS: [&str; 22] = [
    "=",
    "/",
    "//",
    "==",
    "id",
    "f",
    "k",
    "id ",
    "\u{0}",
    "1970-01-01",
    "1970-01-01T00:00:00",
    "1970-01-01T00:00:00+25:00",
    "+5",
    "1e3",
    "0.1",
    "9223372036854775808",
    "NaN",
    "Infinity",
    "-",
    "2024-02-30",
    "é",
    "`id`",
];

pub(super) async fn run(case: &mut Case) -> Result<(), String> {
    let sample = sample().await;
    let random = &mut case.random;
    // A column, its values in their order and as text, and where a row stands among them.
    type Place = fn(&Row, &[String]) -> Option<usize>;
    fn place(value: Option<impl ToString>, texts: &[String]) -> Option<usize> {
        let text = value?.to_string();
        texts.iter().position(|other| *other == text)
    }
    let sorted = |values: &[i64], show: fn(i64) -> String| {
        let mut values = values.to_vec();
        values.sort_unstable();
        values.into_iter().map(show).collect::<Vec<_>>()
    };
    let texts = |values: &[&str]| values.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let whole = |value: i64| value.to_string();
    let (column, values, at): (&str, Vec<String>, Place) = match random.below(7) {
        0 => ("b", sorted(&INTS, whole), |row, texts| place(row.b, texts)),
        1 => ("n", sorted(&BIGINTS, whole), |row, texts| place(row.n, texts)),
        2 => ("p", sorted(&INTS, whole), |row, texts| place(row.p, texts)),
        3 => ("m", sorted(&HUNDREDTHS, hundredths), |row, texts| place(row.m.map(hundredths), texts)),
        4 => ("q", texts(&PLAIN_TEXTS), |row, texts| place(row.q, texts)),
        5 => ("d", texts(&DATES), |row, texts| place(row.d, texts)),
        _ => ("t", texts(&TIMESTAMPS), |row, texts| place(row.t, texts)),
    };
    let (start, end) = (random.below(values.len()), random.below(values.len()));
    let mut interval = format!("{column}={}/{}", values[start], values[end]);
    let is_spoilt = random.once_in(2);
    if is_spoilt {
        for _ in 0..=random.length(3) {
            mutate::text(random, &mut interval, &WORDS);
        }
    }
    case.note(format!("interval: {interval}"));
    let scope = match Scope::interval(&interval) {
        Ok(scope) => scope,
        Err(error) if is_spoilt => return tells(&error),
        Err(error) => return Err(format!("refused: {}", error.message())),
    };
    let (lake, before) = sample.lake(case.random.once_in(2)).await;
    let result = empty(&lake, scope).await;
    sensible(&result)?;
    harmless(before, &lake.objects().await, matches!(&result, Ok(receipt) if receipt.attempts > 0))?;
    match result {
        _ if is_spoilt => Ok(()),
        Err(_) if start >= end => Ok(()),
        Ok(_) if start >= end => Err("an interval that holds nothing was taken".to_owned()),
        Err(error) => Err(format!("refused: {} {:?}", error.message(), error.evidence())),
        Ok(_) => {
            let inside = |row: &Row| at(row, &values).is_some_and(|place| (start..end).contains(&place));
            let expected: Vec<i64> = sample.rows.iter().filter(|row| !inside(row)).map(|row| row.id).collect();
            let left = ids(&lake).await;
            if left == expected {
                Ok(())
            } else {
                Err(format!("the rows {left:?} are left where {expected:?} should be"))
            }
        }
    }
}
