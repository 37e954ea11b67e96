use std::sync::Arc;

use arrow::array::StringArray;

use super::*;
use crate::error::ErrorKind;
use crate::plan::testing::{every_type, letters, rows, table};

fn evaluated(predicate: &str, lines: &[&str]) -> String {
    let schema = every_type();
    let predicate = Predicate::parse(predicate, &schema).unwrap_or_else(|e| panic!("{predicate}: {e}"));
    let outcome = predicate.evaluate(&rows(&schema, lines));
    letters(&outcome.unwrap_or_else(|e| panic!("{}: {e} {:?}", predicate.text(), e.evidence())))
}

/// A13: literals of any writing meet columns of any type.
#[test]
fn rows_are_told_apart() {
    let lines = [
        r#"{"id":9007199254740993,"i":1,"t":-128,"b":true,"f":0.1,"dbl":0.5,"dec":1.9,"wide":0.000000000000000001,"s":"x","d":"2024-01-01","ts":"2023-12-31T23:59:59.999999Z","ntz":"2024-01-01T00:00:00","OrderId":5}"#,
        r#"{"id":9007199254740992,"i":2,"t":127,"b":false,"f":-0.0,"dbl":-0.0,"dec":-0.5,"wide":1,"s":"it's","d":"2024-01-02","ts":"2024-01-01T00:00:00Z","ntz":"2024-01-01T00:00:00.000001","OrderId":6}"#,
        "{}",
    ];
    let cases = [
        ("i = 1", "tfn"),
        ("1 = i", "tfn"),
        ("i = '1'", "tfn"),
        ("i <> 1", "ftn"),
        ("id = 9007199254740993", "tfn"),
        ("t < -127", "tfn"),
        ("s = 'x'", "tfn"),
        ("s = 'it''s'", "ftn"),
        ("ts < '2024-01-01'", "tfn"),
        ("ts < DATE '2024-01-01'", "tfn"),
        ("ts >= TIMESTAMP '2024-01-01 01:00:00+01:00'", "ftn"),
        ("ntz <= TIMESTAMP '2024-01-01 00:00:00'", "tfn"),
        ("d = '2024-01-01'", "tfn"),
        ("dec = 1.9", "tfn"),
        ("dec = -0.5", "ftn"),
        ("wide = 1e-18", "tfn"),
        ("f = 0.1", "tfn"),
        ("f = 0.0", "ftn"),
        ("dbl >= 0", "ttn"),
        ("b", "tfn"),
        ("b = false", "ftn"),
        ("NOT b", "ftn"),
        ("OrderId = 5", "tfn"),
        ("`OrderId` = 5", "tfn"),
        ("i IN (1, 3)", "tfn"),
        ("i NOT IN (1, 3)", "ftn"),
        ("i IN (2, NULL)", "ntn"),
        ("dec IN (1.9, -0.5)", "ttn"),
        ("f IN (0, 7)", "ftn"),
        ("d BETWEEN '2024-01-02' AND '2024-01-03'", "ftn"),
        ("d NOT BETWEEN '2024-01-02' AND '2024-01-03'", "tfn"),
        ("s LIKE 'it%'", "ftn"),
        ("s NOT LIKE '_'", "ftn"),
        ("s IS NULL", "fft"),
        ("s IS NOT NULL AND i = 2", "ftf"),
        ("s IS NULL OR s <> 'bad'", "ttt"),
        ("(i = 1) IS TRUE", "tff"),
        ("(i = 1) IS NOT TRUE", "ftt"),
        ("i <=> 1", "tff"),
        ("i IS DISTINCT FROM NULL", "ttf"),
        // It binds as other comparisons do: before AND, OR and NOT.
        ("b IS DISTINCT FROM TRUE AND i = 2", "ftn"),
        ("b IS NOT DISTINCT FROM TRUE OR i = 2", "ttn"),
        ("i IS NOT DISTINCT FROM 1 OR i IS NOT DISTINCT FROM 2 AND b", "tff"),
        ("NOT i IS DISTINCT FROM 1 + 1", "ftf"),
        ("id - i < 9007199254740991", "ftn"),
        ("i + t < 10.5", "tfn"),
        ("i * 2 = id - 9007199254740988", "ftn"),
        ("id % 2 = 1", "tfn"),
        ("-i = -2", "ftn"),
        ("i < id", "ttn"),
        ("dec < id", "ttn"),
        ("CAST(ts AS DATE) = '2023-12-31'", "tfn"),
        ("date(ntz) = d", "tfn"),
        ("CAST(i AS STRING) = '1'", "tfn"),
        ("CAST('2024-01-01' AS DATE) = d", "tfn"),
        ("year(ts) = 2023 AND month(ts) = 12 AND day(ts) = 31", "tfn"),
        ("extract(year FROM d) = 2024", "ttn"),
        ("length(s) = 1", "tfn"),
        ("upper(s) = 'X' OR startswith(s, 'it')", "ttn"),
        ("s || '!' = 'x!'", "tfn"),
        ("coalesce(i, 0) = 0", "fft"),
        ("1 = 1", "ttt"),
        ("1 = 2", "fff"),
        ("1.10 = 1.1", "ttt"),
        ("TRUE", "ttt"),
        ("NULL", "nnn"),
    ];
    for (predicate, expected) in cases {
        assert_eq!(evaluated(predicate, &lines), expected, "{predicate}");
    }
}

#[test]
fn days_before_the_epoch_are_their_own() {
    let lines = [
        r#"{"ts":"1969-12-31T23:59:59.999999Z","ntz":"1969-12-31T23:59:59.999999"}"#,
        r#"{"ts":"0001-01-01T00:00:00Z","ntz":"0001-01-01T00:00:00"}"#,
    ];
    assert_eq!(evaluated("CAST(ts AS DATE) = '1969-12-31'", &lines), "tf");
    assert_eq!(evaluated("CAST(ntz AS DATE) = '1969-12-31'", &lines), "tf");
    assert_eq!(evaluated("year(ts) = 1969 AND day(ntz) = 31", &lines), "tf");
    assert_eq!(evaluated("CAST(ntz AS DATE) = '0001-01-01' AND year(ts) = 1", &lines), "ft");
}

#[test]
fn text_functions_do_what_they_do_in_spark() {
    let lines = ["{\"s\":\" Ünï \"}", "{\"s\":\"\\tx\\ny\"}"];
    assert_eq!(evaluated("length(trim(s)) = 3", &lines), "tf");
    assert_eq!(evaluated("trim(s) LIKE '_x%y'", &lines), "ft");
    assert_eq!(evaluated("upper(trim(s)) = 'ÜNÏ'", &lines), "tf");
}

/// As Spark has it: NaN equals itself and is the greatest, -0.0 equals 0.0.
#[test]
fn floats_compare_as_in_spark() {
    use arrow::array::Float64Array;
    let schema = table(&[("x", DataType::Float64)], &[]);
    let negative_nan = f64::from_bits(f64::NAN.to_bits() | 1 << 63);
    let values = Float64Array::from(vec![f64::NAN, negative_nan, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY]);
    let batch = RecordBatch::try_new(schema.columns().clone(), vec![Arc::new(values)]).unwrap();
    let cases = [
        ("x = 0", "ffttff"),
        ("x > 1e308", "ttfftf"),
        ("x = 'NaN'", "ttffff"),
        ("x < 0", "ffffft"),
        ("x = x", "tttttt"),
        ("x = -0.0", "ffttff"),
    ];
    for (text, expected) in cases {
        let predicate = Predicate::parse(text, &schema).unwrap();
        assert_eq!(letters(&predicate.evaluate(&batch).unwrap()), expected, "{text}");
    }
}

#[test]
fn what_depends_on_the_day_or_is_no_condition_is_refused() {
    let cases = [
        ("", "empty"),
        ("   ", "empty"),
        ("ts < now()", "now"),
        ("ts < NOW()", "now"),
        ("d = current_date", "current_date"),
        ("d = current_date()", "current_date"),
        ("ts < current_timestamp", "current_timestamp"),
        ("ts < localtimestamp", "localtimestamp"),
        ("d = today()", "today"),
        ("id = 1 OR ts < current_timestamp()", "current_timestamp"),
        ("coalesce(d, current_date()) = '2026-10-05'", "current_date"),
        ("rand() < 0.5", "rand"),
        ("random() < 0.5", "random"),
        ("s = uuid()", "uuid"),
        ("s = current_user", "current_user"),
        ("input_file_name() = 'x'", "input_file_name"),
        ("id IN (SELECT 1)", "subquery"),
        ("EXISTS (SELECT 1)", "subquery"),
        ("id = (SELECT max(id) FROM t)", "subquery"),
        ("count(*) > 1", "aggregate"),
        ("max(id) = 1", "aggregate"),
        ("row_number() OVER (ORDER BY id) = 1", "window"),
        ("id = $1", "not given"),
        ("id = ?", "not given"),
        ("id = :x", ""),
        ("frobnicate(id) = 1", "frobnicate"),
        ("read_parquet('/etc/passwd') = 1", "read_parquet"),
        ("nope = 1", "no column 'nope'"),
        ("orderid = 1", "no column 'orderid'"),
        ("ID = 1", "no column 'ID'"),
        ("\"id\" = 1", "text or a column"),
        ("id", "not a condition"),
        ("'x'", "not a condition"),
        ("id + 1", "not a condition"),
        ("id = 'x'", "cannot be compared"),
        ("d = '05/10/2026'", "cannot be compared"),
        ("i = 3000000000", "cannot hold exactly"),
        ("dec = 1.99", "cannot hold exactly"),
        ("dec > 1.99", "cannot hold exactly"),
        ("i IN (1, 3000000000)", "cannot hold exactly"),
        ("i BETWEEN 1 AND 3000000000", "cannot hold exactly"),
        ("ts < '2026-10-05 00:00:00'", "no offset"),
        ("ts < TIMESTAMP '2026-10-05 00:00:00'", "no offset"),
        ("s = 5", "cannot be compared"),
        ("s = i", "cannot be compared"),
        ("d = ts", "cannot be compared"),
        ("id = dbl", "cannot be compared"),
        ("id = NULL", "never true"),
        ("id / 2 = 1", "division"),
        ("d + 1 = '2026-10-05'", "computes"),
        ("d > ts - INTERVAL '1' DAY", "interval"),
        ("CAST(dbl AS INT) = 1", "may lose"),
        ("CAST(s AS INT) = 1", "may lose"),
        ("CASE WHEN id = 1 THEN TRUE END", "takes no"),
        ("s RLIKE 'x'", ""),
        ("s LIKE 'x!%' ESCAPE '!'", "takes no"),
        ("s.a = 1", "nested"),
        ("id = 1; DROP TABLE t", "follows"),
        ("id = 1 id", "follows"),
        ("id = 1)", "follows"),
        ("id =", "not a SQL expression"),
        ("s = 'open", "not a SQL expression"),
    ];
    let schema = every_type();
    for (text, part) in cases {
        let error = Predicate::parse(text, &schema).expect_err(text);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{text}: {error}");
        assert!(error.message().contains(part), "{text}: {error}");
    }
}

#[test]
fn an_unknown_column_is_refused_with_the_columns_there_are() {
    let schema = every_type();
    let error = Predicate::parse("orderid = 1", &schema).unwrap_err();
    assert_eq!(error.advice(), Some("names are exact: did you mean 'OrderId'?"));
    let error = Predicate::parse("nope = 1", &schema).unwrap_err();
    assert!(error.advice().unwrap().starts_with("its columns are id, i, t,"), "{error:?}");
}

#[test]
fn columns_with_the_names_of_functions_and_keywords_can_be_quoted() {
    let schema =
        table(&[("current_date", DataType::Int64), ("select", DataType::Int64), ("a.b", DataType::Int64)], &[]);
    let predicate = Predicate::parse("`current_date` = 1 AND `select` = 2 AND `a.b` = 3", &schema).unwrap();
    assert_eq!(predicate.columns().len(), 3);
    let batch = rows(&schema, &[r#"{"current_date":1,"select":2,"a.b":3}"#]);
    assert_eq!(letters(&predicate.evaluate(&batch).unwrap()), "t");
}

/// Each ends at once, without exhausting a stack of the size that a worker thread has.
#[test]
fn hostile_sizes_end_in_an_error() {
    let many = 100_000;
    let texts = [
        format!("{}id = 1{}", "(".repeat(many), ")".repeat(many)),
        format!("{}b", "NOT ".repeat(many / 4)),
        format!("id = {}1", "-".repeat(many / 4)),
        format!("id = 1{}", " OR id = 1".repeat(many)),
        format!("id {} = 1", "+ 1 ".repeat(900)),
        format!("b{}", " IS NULL".repeat(900)),
        format!("id{} = 1", "::bigint".repeat(900)),
        format!("s = '{}'", "x".repeat(limits::TEXT)),
        format!("{}id{} = 1", "coalesce(".repeat(200), ", 1)".repeat(200)),
        "CASE WHEN ".repeat(many / 10),
        format!("{}b{}", "(".repeat(20), " BETWEEN FALSE AND TRUE)".repeat(20)),
        format!("id = {}", "1".repeat(many)),
        format!("id = 1e{}", "9".repeat(1000)),
    ];
    let check = move || {
        let schema = every_type();
        for text in texts {
            let error = Predicate::parse(&text, &schema).expect_err(&text[..40]);
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            assert!(error.message().len() < 1000, "{}", &error.message()[..600]);
        }
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(check).unwrap().join().unwrap();
}

/// Whatever the parser takes for the start of something nested ends at once, on the stack of a worker thread.
#[test]
fn hostile_nesting_ends_in_an_error_at_once() {
    let openings = [
        "(",
        "NOT ",
        "NOT (",
        "id = (",
        "- (",
        "(id = 1 AND (",
        "- ",
        "+ ",
        "~ ",
        "! ",
        "@ ",
        "CASE WHEN ",
        "CASE ",
        "CAST(",
        "TRY_CAST(",
        "CONVERT(",
        "CAST(s AS ARRAY<",
        "ARRAY<",
        "CAST(s AS STRUCT<a ",
        "STRUCT<a ",
        "STRUCT<",
        "CAST(s AS MAP(",
        "MAP<",
        "MAP(",
        "s::ARRAY<",
        "INTERVAL ",
        "INTERVAL (",
        "ARRAY[",
        "ARRAY(",
        "[",
        "{",
        "{fn f(",
        "{ 'a': ",
        "MAP {",
        "MAP [",
        "STRUCT(",
        "ROW(",
        "lower(",
        "f(a => ",
        "f(x -> ",
        "x -> ",
        "(x) -> ",
        "(x, y) -> ",
        "LAMBDA x : ",
        "EXTRACT(YEAR FROM ",
        "SUBSTRING(",
        "TRIM(",
        "TRIM(BOTH ",
        "TRIM(BOTH 'x' FROM ",
        "POSITION(",
        "POSITION('x' IN ",
        "OVERLAY(",
        "CEIL(",
        "FLOOR(",
        "id IN (",
        "id IN (SELECT ",
        "(SELECT ",
        "(VALUES (",
        "EXISTS (",
        "EXISTS (SELECT ",
        "NOT EXISTS (",
        "b BETWEEN ",
        "b BETWEEN (",
        "id = ANY(",
        "id = ALL (",
        "PRIOR ",
        "CONNECT_BY_ROOT ",
        "GROUPING SETS (",
        "MATCH (",
        "(1, (",
        "DATE ",
        "TIMESTAMP ",
        "DATE (",
        "id.",
        "id[",
        "id[1][",
        "id:a[",
        "id COLLATE ",
        "id AT TIME ZONE ",
        "b IS NOT ",
        "b IS DISTINCT FROM ",
        "s LIKE ",
        "s LIKE (",
        "s || ",
        "id + ",
        "id + (",
        "id OR ",
        "if(",
        "current_date(",
        "/* ",
        "-- ",
        "b IN UNNEST(",
        "f(DISTINCT ",
        "f(ORDER BY ",
        "f() OVER (ORDER BY ",
        "f() FILTER (WHERE ",
        "LISTAGG(",
        "JSON_OBJECT(",
        "s AS ARRAY<",
        "id::",
        "NESTED(",
        "TABLE(",
        "? ",
        "WITH x AS (",
        "s MEMBER OF (",
        "SELECT ",
    ];
    let check = move || {
        let schema = every_type();
        let long = "id = 1 AND ".repeat(700);
        for opening in openings {
            for depth in [6, 20, 46, 740, 2_990] {
                for end in ["", "id = 1", &long] {
                    let text = opening.repeat(depth) + end;
                    #[allow(
                        clippy::disallowed_methods,
                        reason = "what doubles with each level takes years, not seconds"
                    )]
                    let began = std::time::Instant::now();
                    let taken = Predicate::parse(&text, &schema);
                    let took = began.elapsed();
                    assert!(took.as_secs() < 30, "{depth} times {opening:?} and {} bytes took {took:?}", end.len());
                    if let Err(error) = taken {
                        assert_eq!(error.kind(), ErrorKind::Invalid, "{opening}: {error}");
                    }
                }
            }
        }
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(check).unwrap().join().unwrap();
}

#[test]
fn what_could_take_long_or_grow_is_refused_in_a_sentence() {
    let cases = [
        (format!("{}id = 1{}", "(".repeat(100), ")".repeat(100)), "has parentheses or operators more than 48 deep"),
        (format!("{}s{} = 'x'", "lower(".repeat(9), ")".repeat(9)), "has calls or IN (…) more than 6 deep"),
        (format!("{}'1' DAY", "INTERVAL ".repeat(9)), "is made of what no expression takes: INTERVAL"),
        (format!("s LIKE '{}'", "a%".repeat(17)), "has more than 1000 characters or 16 wildcards %"),
        (format!("s LIKE '{}%'", "a".repeat(1000)), "has more than 1000 characters or 16 wildcards %"),
        (
            format!("s{} = 'x'", " || s".repeat(33)),
            "makes texts (by ||, upper, lower, trim or CAST) more than 32 times",
        ),
        (format!("id = 1{}", " OR b".repeat(2_000)), "has more than 3000 words"),
        (format!("s = '{}'", "x".repeat(limits::TEXT)), "at most 262144 are taken"),
    ];
    for (text, part) in cases {
        let error = Predicate::parse(&text, &every_type()).expect_err(part);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{part}: {error}");
        assert!(error.message().contains(part), "{part}: {error}");
    }
}

#[test]
fn texts_are_made_of_a_few_rows_at_a_time() {
    let schema = table(&[("s", DataType::Utf8)], &[]);
    let doubled = Predicate::parse(&format!("s{} = 'x' OR s = 'y'", " || s".repeat(31)), &schema).unwrap();
    let rows = |texts: Vec<Option<String>>| {
        RecordBatch::try_new(schema.columns().clone(), vec![Arc::new(StringArray::from(texts))]).unwrap()
    };
    // 33 times as much, or 66 with their copies, is more than is made at once.
    let long = "z".repeat(1 << 19);
    let mut texts = vec![Some(long); 6];
    texts.extend([Some("y".to_owned()), None, Some(String::new())]);
    let outcome = letters(&doubled.evaluate(&rows(texts)).unwrap());
    assert_eq!(outcome, "f".repeat(6) + "tnf");
    let error = doubled.evaluate(&rows(vec![Some("z".repeat(4 << 20))])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.message().contains("makes texts"), "{error}");
}

#[test]
fn long_lists_and_chains_are_taken() {
    let schema = every_type();
    let list = (0..20_000).map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
    let predicate = Predicate::parse(&format!("id IN ({list})"), &schema).unwrap();
    let batch = rows(&schema, &[r#"{"id":19999}"#, r#"{"id":20000}"#]);
    assert_eq!(letters(&predicate.evaluate(&batch).unwrap()), "tf");
    let chain = (0..500).map(|i| format!("id = {}", i + 19_500)).collect::<Vec<_>>().join(" OR ");
    let predicate = Predicate::parse(&chain, &schema).unwrap();
    assert_eq!(letters(&predicate.evaluate(&batch).unwrap()), "tf");
}

#[test]
fn sums_do_not_wrap() {
    let lines = [r#"{"id":9223372036854775807}"#];
    assert_eq!(evaluated("id + 1 > id", &lines), "t");
    assert_eq!(evaluated("id * id > 0", &lines), "t");
    let schema = every_type();
    let predicate = Predicate::parse("id * id * id > 0", &schema);
    let refused = predicate.and_then(|predicate| predicate.evaluate(&rows(&schema, &lines)));
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn tables_words_are_read_as_spark_reads_them() {
    let schema = every_type();
    let read = |text: &str| Predicate::read(text, &schema, Origin::Table);
    let batch = rows(&schema, &[r#"{"s":"bad","OrderId":1}"#]);
    let is = |text: &str| letters(&read(text).unwrap().evaluate(&batch).unwrap());
    assert_eq!(is("S <> \"bad\""), "f");
    assert_eq!(is("orderid > 0"), "t");
    // A text that is also a column's name, and an escape, may be meant either way.
    assert!(read("s <> \"id\"").is_err());
    assert!(read(r"s <> 'a\nb'").is_err());
}

#[test]
fn a_batch_may_have_other_columns_and_another_order() {
    let schema = every_type();
    let predicate = Predicate::parse("i = 1 AND s = 'x'", &schema).unwrap();
    let other = table(&[("s", DataType::Utf8), ("more", DataType::Int64), ("i", DataType::Int32)], &[]);
    let batch = rows(&other, &[r#"{"s":"x","i":1}"#, r#"{"s":"x","i":2}"#]);
    assert_eq!(letters(&predicate.evaluate(&batch).unwrap()), "tf");
    let without = rows(&table(&[("s", DataType::Utf8)], &[]), &[r#"{"s":"x"}"#]);
    assert_eq!(predicate.evaluate(&without).unwrap_err().kind(), ErrorKind::Internal);
}
