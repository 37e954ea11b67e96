//! Predicates of `--where`.

use deltaonce::Scope;

use super::lake::{harmless, sensible};
use super::sample::{empty, ids, sample};
use super::{Case, mutate, predicate};

/// What predicates are spoilt with.
const WORDS: [&str; 62] = [
    "AND",
    "OR",
    "NOT",
    "IN",
    "LIKE",
    "ILIKE",
    "RLIKE",
    "SIMILAR TO",
    "BETWEEN",
    "IS",
    "NULL",
    "TRUE",
    "CASE",
    "WHEN",
    "END",
    "ANY",
    "ALL",
    "EXISTS",
    "SELECT",
    "FROM",
    "(SELECT 1)",
    "(SELECT id FROM t)",
    "read_csv('/etc/passwd')",
    "read_parquet('x')",
    "input_file_name()",
    "now()",
    "rand()",
    "uuid()",
    "repeat(s, 1000000000)",
    "regexp_like(s, '(a*)*b')",
    "sequence(1, 10)",
    "generate_series(1, 1000000000)",
    "pg_sleep(100)",
    "'%%%%%%%%a%%%%%%%%'",
    "X'zz'",
    "$1",
    "?",
    ":x",
    "@v",
    "\"s\"",
    "`",
    "'",
    "--",
    "/*",
    "*",
    "1e999",
    "1e-400",
    "99999999999999999999999999999999999999999",
    "NaN",
    "INTERVAL '1' DAY",
    "DATE '2024-02-30'",
    "TIMESTAMP '9999-12-31T23:59:59.999999-18:00'",
    "id",
    "s",
    "f",
    "t",
    "||",
    "%",
    "/",
    "=",
    "<=>",
    "\u{0}",
];

pub(super) async fn run(case: &mut Case) -> Result<(), String> {
    let sample = sample().await;
    let condition = predicate::condition(&mut case.random, 3);
    let mut sql = condition.sql.clone();
    let is_spoilt = case.random.once_in(2);
    if is_spoilt {
        for _ in 0..=case.random.length(4) {
            mutate::text(&mut case.random, &mut sql, &WORDS);
        }
    }
    case.note(format!("predicate of {} bytes: {sql}", sql.len()));
    let (lake, before) = sample.lake(case.random.once_in(2)).await;
    let result = empty(&lake, Scope::Where(sql)).await;
    sensible(&result)?;
    let committed = matches!(&result, Ok(receipt) if receipt.attempts > 0);
    harmless(before, &lake.objects().await, committed)?;
    match result {
        Err(error) if !is_spoilt => Err(format!("refused: {} {:?}", error.message(), error.evidence())),
        Ok(_) if !is_spoilt => {
            let expected: Vec<i64> =
                sample.rows.iter().filter(|row| (condition.truth)(row) != Some(true)).map(|row| row.id).collect();
            let left = ids(&lake).await;
            if left == expected {
                Ok(())
            } else {
                Err(format!("the rows {left:?} are left where {expected:?} should be"))
            }
        }
        _ => Ok(()),
    }
}
