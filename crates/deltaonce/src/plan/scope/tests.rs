use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;
use crate::plan::strays::Strays;
use crate::plan::testing::{every_type, file, letters, places, rows, table, timestamp};
use crate::source::Places;

fn resolve(scope: &Scope, schema: &TableSchema) -> ResolvedScope {
    ResolvedScope::resolve(scope, schema).unwrap_or_else(|e| panic!("{scope:?}: {e}"))
}

fn matching(text: &str) -> Scope {
    Scope::Where(text.to_owned())
}

fn by_day_and_place() -> TableSchema {
    table(&[("id", DataType::Int64), ("p", DataType::Utf8), ("q", DataType::Date32)], &["p", "q"])
}

/// A09: a predicate over partition columns is decided from the log, for files without rows or statistics too.
#[test]
fn partition_predicates_are_decided_from_the_log() {
    use Coverage::{Inside, Outside};
    let schema = by_day_and_place();
    let day = Some("2026-10-05");
    let cases = [
        ("p = 'a b'", Some("a b"), day, Inside),
        ("p = 'a b'", Some("a+b"), day, Outside),
        ("p = 'a b'", None, day, Outside),
        ("p <> 'a b'", None, day, Outside),
        ("p IS NULL", None, day, Inside),
        ("p IS NULL", Some(""), day, Inside),
        ("p IS NULL", Some("x"), day, Outside),
        ("p IS NULL AND q = '2026-10-05'", None, day, Inside),
        ("p = 'x' OR q IS NOT NULL", None, day, Inside),
        ("upper(p) = 'X'", Some("x"), None, Inside),
        ("year(q) = 2026", None, day, Inside),
        ("q > '2026-10-05'", None, day, Outside),
        ("p IN ('a', 'b')", Some("b"), day, Inside),
        ("1 = 1", None, None, Inside),
        ("1 = 2", None, None, Outside),
        ("NULL", None, None, Outside),
    ];
    for (text, p, q, expected) in cases {
        let scope = resolve(&matching(text), &schema);
        for stats in [None, Some(r#"{"numRecords":0}"#), Some("junk")] {
            let file = file(&[("p", p), ("q", q)], stats);
            assert_eq!(scope.coverage(&file), expected, "{text} on p={p:?} q={q:?} {stats:?}");
        }
    }
    let odd = file(&[("p", Some("x")), ("q", Some("yesterday"))], None);
    assert_eq!(resolve(&matching("q = '2026-10-05'"), &schema).coverage(&odd), Coverage::Straddles);
    assert_eq!(resolve(&matching("p = 'y' AND q = '2026-10-05'"), &schema).coverage(&odd), Outside);
}

#[test]
fn data_predicates_are_decided_from_statistics() {
    use Coverage::{Inside, Outside, Straddles};
    let schema = every_type();
    let stats = r#"{"numRecords":9,"minValues":{"id":10,"s":"abc","d":"2026-10-05","ts":"2026-10-05T00:00:00.000Z","dec":1.5,"f":1.0},
        "maxValues":{"id":20,"s":"abz","d":"2026-10-05","ts":"2026-10-05T23:59:59.999Z","dec":2.5,"f":2.0},
        "nullCount":{"id":0,"s":1,"d":0,"ts":0,"dec":0,"f":0,"i":9}}"#;
    let cases = [
        ("id >= 10", Inside),
        ("id > 10", Straddles),
        ("id > 20", Outside),
        ("id BETWEEN 0 AND 100", Inside),
        ("id NOT BETWEEN 0 AND 100", Outside),
        ("id IN (1, 21)", Outside),
        ("id NOT IN (1, 21)", Inside),
        ("id IN (1, 15)", Straddles),
        ("NOT (id < 10)", Inside),
        ("id IS NOT NULL", Inside),
        ("s >= 'a'", Straddles),
        ("s >= 'a' OR s IS NULL", Straddles),
        ("s LIKE 'x%'", Outside),
        ("s LIKE 'ab%'", Straddles),
        ("d = '2026-10-05'", Inside),
        ("d = '2026-10-05' AND id < 30", Inside),
        ("d = '2026-10-05' AND id < 15", Straddles),
        ("d = '2026-10-06' OR id < 5", Outside),
        ("date(ts) = '2026-10-05'", Inside),
        ("CAST(ts AS DATE) > '2026-10-05'", Outside),
        ("dec > 3", Outside),
        ("dec <= 2.5", Inside),
        ("f > 100", Straddles),
        ("f <= 2", Straddles),
        ("i = 1", Outside),
        ("i IS NULL", Inside),
        ("i <=> NULL", Inside),
        ("wide > 0", Straddles),
        ("id > OrderId", Straddles),
        ("id + 1 > 0", Straddles),
    ];
    let known = file(&[], Some(stats));
    let unknown = file(&[], None);
    for (text, expected) in cases {
        let scope = resolve(&matching(text), &schema);
        assert_eq!(scope.coverage(&known), expected, "{text}");
        assert_eq!(scope.coverage(&unknown), Straddles, "{text} of a file without statistics");
        assert_eq!(scope.may_be_in(&known), expected != Outside, "{text}");
    }
}

/// A11: what another writer adds after the scope's moment is no conflict, although statistics are cut to milliseconds.
#[test]
fn a_concurrent_file_conflicts_only_where_moments_overlap() {
    let schema = every_type();
    let scope = resolve(&matching("ts < '2026-10-05T00:00:00.000500Z'"), &schema);
    let added = |min: &str| {
        let stats = format!(
            r#"{{"numRecords":1,"minValues":{{"ts":"{min}"}},"maxValues":{{"ts":"2026-10-06T00:00:00Z"}},"nullCount":{{"ts":0}}}}"#
        );
        file(&[], Some(&stats))
    };
    assert!(!scope.may_be_in(&added("2026-10-05T00:00:00.001Z")));
    assert!(scope.may_be_in(&added("2026-10-05T00:00:00.000Z")));
    let later = resolve(&matching("ts > '2026-10-06T00:00:00.000500Z'"), &schema);
    assert!(later.may_be_in(&added("2026-10-05T00:00:00.001Z")), "the true maximum may be .000999");
}

#[test]
fn an_interval_has_its_start_and_not_its_end() {
    let schema = every_type();
    let scope = resolve(&Scope::interval("ts=2026-10-05T00:00:00Z/2026-10-06T00:00:00Z").unwrap(), &schema);
    let batch = rows(
        &schema,
        &[
            r#"{"ts":"2026-10-04T23:59:59.999999Z"}"#,
            r#"{"ts":"2026-10-05T00:00:00Z"}"#,
            r#"{"ts":"2026-10-05T23:59:59.999999Z"}"#,
            r#"{"ts":"2026-10-06T00:00:00Z"}"#,
            "{}",
        ],
    );
    assert_eq!(letters(&scope.admits(&batch).unwrap().unwrap()), "fttff");
    assert_eq!(letters(&scope.keeps(&batch).unwrap()), "tfftt");
    assert_eq!(
        scope.operation_predicate().as_deref(),
        Some("`ts` >= '2026-10-05T00:00:00Z' AND `ts` < '2026-10-06T00:00:00Z'")
    );
    let day = r#"{"numRecords":2,"minValues":{"ts":"2026-10-05T00:00:00.000Z"},"maxValues":{"ts":"2026-10-05T23:59:59.999Z"},"nullCount":{"ts":0}}"#;
    assert_eq!(scope.coverage(&file(&[], Some(day))), Coverage::Inside);
    // The SQL of an interval is the interval.
    let again = resolve(&matching(&scope.operation_predicate().unwrap()), &schema);
    assert_eq!(letters(&again.admits(&batch).unwrap().unwrap()), "fttff");
}

/// C08: what cannot be meant is refused, and never becomes another scope.
#[test]
fn a_scope_that_cannot_be_meant_is_refused() {
    let schema = every_type();
    let interval = |text: &str| Scope::interval(text).unwrap();
    let cases = [
        (interval("id=5/5"), "not before"),
        (interval("id=6/5"), "not before"),
        (interval("id=1/x"), "cannot be compared"),
        (interval("id=2026-10-05/2026-10-06"), "cannot be compared"),
        (interval("d=2026-10-05T00:00:00Z/2026-10-06T00:00:00Z"), "cannot be compared"),
        (interval("ts=2026-10-05T00:00:00/2026-10-06T00:00:00"), "no offset"),
        (interval("i=0/3000000000"), "cannot hold exactly"),
        (interval("f=0/1"), "no interval"),
        (interval("b=false/true"), "no interval"),
        (interval("nope=0/1"), "does not have"),
        (interval("orderid=0/1"), "does not have"),
        (Scope::Partitions, "not partitioned"),
        (matching(""), "empty"),
    ];
    for (scope, part) in cases {
        let error = ResolvedScope::resolve(&scope, &schema).expect_err(&format!("{scope:?}"));
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains(part), "{scope:?}: {error}");
    }
    for text in
        ["id=0/10", "dec=0.5/1", "s=2026-10-05/2026-10-06", "d=2026-10-05/2026-10-06", "ts=2026-10-05/2026-10-06"]
    {
        resolve(&interval(text), &schema);
    }
    assert_eq!(
        resolve(&interval("dec=0.50/01"), &schema).operation_predicate().unwrap(),
        "`dec` >= 0.5 AND `dec` < 1.0"
    );
}

/// The partition values of a table by Spark, and the partitions of a source that has some of them.
#[test]
fn the_partitions_of_the_source_are_the_scope() {
    let schema = by_day_and_place();
    let mut scope = resolve(&Scope::Partitions, &schema);
    let batch = rows(
        &schema,
        &[
            r#"{"id":1,"p":"50%"}"#,
            r#"{"id":2,"p":"Zürich/東京","q":"1582-10-04"}"#,
            r#"{"id":3,"q":"9999-12-31"}"#,
            r#"{"id":4,"q":"9999-12-31"}"#,
        ],
    );
    let (first, rest) = (batch.slice(0, 2), batch.slice(2, 2));
    scope.observe(&first).unwrap();
    scope.observe(&rest).unwrap();
    let cases = [
        (Some("50%"), None, Coverage::Inside),
        (Some("50%25"), None, Coverage::Outside),
        (Some("50%"), Some("2026-10-05"), Coverage::Outside),
        (Some("Zürich/東京"), Some("1582-10-04"), Coverage::Inside),
        (None, Some("9999-12-31"), Coverage::Inside),
        (Some(""), Some("9999-12-31"), Coverage::Inside),
        (None, None, Coverage::Outside),
        (Some("50%"), Some("soon"), Coverage::Straddles),
    ];
    for (p, q, expected) in cases {
        assert_eq!(scope.coverage(&file(&[("p", p), ("q", q)], None)), expected, "{p:?} {q:?}");
    }
    assert!(scope.admits(&batch).unwrap().is_none());
    let table_rows = rows(&schema, &[r#"{"id":9,"p":"50%"}"#, r#"{"id":9,"p":"51%"}"#, r#"{"q":"9999-12-31"}"#]);
    assert_eq!(letters(&scope.keeps(&table_rows).unwrap()), "ftf");
}

#[test]
fn partitions_are_compared_typed_not_as_text() {
    let schema = table(&[("ts", timestamp()), ("dec", DataType::Decimal128(6, 1))], &["ts", "dec"]);
    let mut scope = resolve(&Scope::Partitions, &schema);
    scope.observe(&rows(&schema, &[r#"{"ts":"2026-10-25T00:30:00Z","dec":12.5}"#])).unwrap();
    for text in ["2026-10-25 00:30:00", "2026-10-25T00:30:00.000000Z", "2026-10-25T02:30:00+02:00"] {
        let file = file(&[("ts", Some(text)), ("dec", Some("12.50"))], None);
        assert_eq!(scope.coverage(&file), Coverage::Inside, "{text}");
    }
}

/// B09: the log cannot tell an empty text from null, so rows with one are not written.
#[test]
fn an_empty_text_is_no_partition() {
    let schema = by_day_and_place();
    let mut scope = resolve(&Scope::Partitions, &schema);
    let error = scope.observe(&rows(&schema, &[r#"{"p":"abc"}"#, r#"{"p":""}"#])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    let slice = resolve(&matching("p = ''"), &schema);
    assert_eq!(slice.coverage(&file(&[("p", Some("")), ("q", None)], None)), Coverage::Outside);
}

#[test]
fn the_whole_table_is_inside() {
    let schema = every_type();
    let scope = resolve(&Scope::All, &schema);
    let batch = rows(&schema, &["{}", "{}"]);
    assert_eq!(scope.coverage(&file(&[], Some("junk"))), Coverage::Inside);
    assert!(scope.admits(&batch).unwrap().is_none());
    assert_eq!(letters(&scope.keeps(&batch).unwrap()), "ff");
}

/// B04: a row of another day and a row of no day are both shown.
#[test]
fn strays_are_counted_and_shown() {
    let schema = every_type();
    let scope = resolve(&matching("d = '2026-10-18'"), &schema);
    let good = r#"{"d":"2026-10-18","id":1}"#;
    let mut strays = Strays::default();
    let mut take = |lines: &[&str], places: &Places| {
        let batch = rows(&schema, lines);
        let admitted = scope.admits(&batch).unwrap().unwrap();
        strays.observe(&batch, &admitted, places, &scope.columns());
    };
    take(&[good; 5], &places("a.csv", 2));
    take(&[good, r#"{"d":"2026-10-19"}"#, good, "{}", good, good], &places("b.csv", 2));
    let error = strays.refuse("d = '2026-10-18'").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(error.message(), "2 of 11 rows lie outside the scope d = '2026-10-18'; a null counts as outside");
    assert_eq!(error.evidence(), ["b.csv line 3: d=2026-10-19", "b.csv line 5: d=null"]);
    assert!(Strays::default().refuse("x").is_ok());

    let mut many = Strays::default();
    let batch = rows(&schema, &["{}"; 20]);
    let admitted = scope.admits(&batch).unwrap().unwrap();
    many.observe(&batch, &admitted, &places("c.csv", 2), &scope.columns());
    many.observe(&batch, &admitted, &places("c.csv", 22), &scope.columns());
    assert_eq!(many.refuse("x").unwrap_err().evidence().last().map(String::as_str), Some("and 35 more"));
}

/// A row of a table with a column of each kind that has statistics.
#[derive(Debug, Clone)]
struct Row {
    p: Option<String>,
    n: Option<i64>,
    s: Option<String>,
    day: Option<i64>,
    micros: Option<i64>,
    dec: Option<i64>,
}

const BASE: i64 = 1_791_158_400_000_000;

fn any_row(p: Option<String>) -> impl Strategy<Value = Row> {
    (
        proptest::option::weighted(0.8, -3_i64..3),
        proptest::option::weighted(0.8, "[ab]{0,3}"),
        proptest::option::weighted(0.9, 0_i64..3),
        proptest::option::weighted(0.9, -2000_i64..2000),
        proptest::option::weighted(0.9, -30_i64..30),
    )
        .prop_map(move |(n, s, day, micros, dec)| Row { p: p.clone(), n, s, day, micros, dec })
}

fn leaf() -> impl Strategy<Value = String> {
    let op = || prop_oneof![Just("="), Just("<>"), Just("<"), Just("<="), Just(">"), Just(">="), Just("<=>")];
    prop_oneof![
        (op(), -3_i64..3).prop_map(|(op, n)| format!("n {op} {n}")),
        (op(), "[ab]{0,2}").prop_map(|(op, s)| format!("s {op} '{s}'")),
        (op(), 0_i64..3).prop_map(|(op, day)| format!("d {op} '2026-10-0{}'", day + 5)),
        (op(), -2000_i64..2000).prop_map(|(op, micros)| format!("ts {op} '{}Z'", moment(micros))),
        (op(), 4_i64..6).prop_map(|(op, day)| format!("date(ts) {op} '2026-10-0{day}'")),
        (op(), -30_i64..30).prop_map(|(op, dec)| format!("dec {op} {}.{}", dec / 10, dec.abs() % 10)),
        (op(), "[ab]{1}").prop_map(|(op, p)| format!("p {op} '{p}'")),
        (proptest::collection::vec(-3_i64..3, 1..3), any::<bool>()).prop_map(|(list, not)| {
            let list: Vec<_> = list.iter().map(i64::to_string).collect();
            format!("n {} ({})", if not { "NOT IN" } else { "IN" }, list.join(", "))
        }),
        ("[ab]{0,2}", any::<bool>()).prop_map(|(s, not)| format!("s {} '{s}%'", if not { "NOT LIKE" } else { "LIKE" })),
        prop_oneof![Just("p"), Just("n"), Just("s"), Just("d"), Just("ts")].prop_map(|name| format!("{name} IS NULL")),
        Just("n + 1 > 1".to_owned()),
        Just("n < dec".to_owned()),
    ]
}

fn condition() -> impl Strategy<Value = String> {
    leaf().prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) AND ({b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) OR ({b})")),
            inner.clone().prop_map(|a| format!("NOT ({a})")),
            inner.prop_map(|a| format!("({a}) IS NOT TRUE")),
        ]
    })
}

fn moment(micros: i64) -> String {
    chrono::DateTime::from_timestamp_micros(BASE + micros).unwrap().format("%Y-%m-%dT%H:%M:%S%.6f").to_string()
}

fn json(row: &Row) -> String {
    let mut object = serde_json::Map::new();
    let mut put = |name: &str, value: Option<serde_json::Value>| {
        value.map(|value| object.insert(name.to_owned(), value));
    };
    put("p", row.p.clone().map(Into::into));
    put("n", row.n.map(Into::into));
    put("s", row.s.clone().map(Into::into));
    put("d", row.day.map(|day| format!("2026-10-0{}", day + 5).into()));
    put("ts", row.micros.map(|micros| format!("{}Z", moment(micros)).into()));
    put("dec", row.dec.map(|dec| (dec as f64 / 10.0).into()));
    serde_json::Value::Object(object).to_string()
}

/// Statistics as Spark and deltalake write them.
fn stats(all: &[Row]) -> String {
    use serde_json::{Map, Value};
    let (mut min, mut max, mut nulls) = (Map::new(), Map::new(), Map::new());
    let mut put = |name: &str, values: Vec<Option<Value>>| {
        nulls.insert(name.to_owned(), values.iter().filter(|value| value.is_none()).count().into());
        let known: Vec<_> = values.into_iter().flatten().collect();
        if let (Some(first), Some(last)) = (known.first(), known.last()) {
            min.insert(name.to_owned(), first.clone());
            max.insert(name.to_owned(), last.clone());
        }
    };
    let mut sorted = all.to_vec();
    sorted.sort_by_key(|row| row.n);
    put("n", sorted.iter().map(|row| row.n.map(Into::into)).collect());
    sorted.sort_by_key(|row| row.s.clone());
    put("s", sorted.iter().map(|row| row.s.clone().map(Into::into)).collect());
    sorted.sort_by_key(|row| row.day);
    put("d", sorted.iter().map(|row| row.day.map(|day| format!("2026-10-0{}", day + 5).into())).collect());
    sorted.sort_by_key(|row| row.micros);
    let cut = |micros: i64| format!("{}Z", moment(micros.div_euclid(1000) * 1000).trim_end_matches("000"));
    put("ts", sorted.iter().map(|row| row.micros.map(|micros| cut(micros).into())).collect());
    sorted.sort_by_key(|row| row.dec);
    put("dec", sorted.iter().map(|row| row.dec.map(|dec| (dec as f64 / 10.0).into())).collect());
    serde_json::json!({"numRecords": all.len(), "minValues": min, "maxValues": max, "nullCount": nulls}).to_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// What is told of a file without reading it agrees with each of its rows.
    #[test]
    fn coverage_agrees_with_every_row(
        text in condition(),
        file_rows in proptest::option::of("[ab]").prop_flat_map(|p| proptest::collection::vec(any_row(p), 1..5)),
        with_stats in proptest::bool::weighted(0.9),
    ) {
        let schema = table(
            &[
                ("p", DataType::Utf8),
                ("n", DataType::Int64),
                ("s", DataType::Utf8),
                ("d", DataType::Date32),
                ("ts", timestamp()),
                ("dec", DataType::Decimal128(6, 1)),
            ],
            &["p"],
        );
        let scope = resolve(&matching(&text), &schema);
        let lines: Vec<_> = file_rows.iter().map(json).collect();
        let batch = rows(&schema, &lines.iter().map(String::as_str).collect::<Vec<_>>());
        let stats = stats(&file_rows);
        let file = file(&[("p", file_rows[0].p.as_deref())], with_stats.then_some(stats.as_str()));
        let admitted = scope.admits(&batch).unwrap().unwrap();
        let kept = scope.keeps(&batch).unwrap();
        prop_assert_eq!(admitted.true_count() + kept.true_count(), batch.num_rows());
        match scope.coverage(&file) {
            Coverage::Outside => prop_assert_eq!(admitted.true_count(), 0, "{}", stats),
            Coverage::Inside => prop_assert_eq!(admitted.true_count(), batch.num_rows(), "{}", stats),
            Coverage::Straddles => {}
        }
    }
}
