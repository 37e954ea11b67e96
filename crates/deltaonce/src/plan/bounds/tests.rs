use proptest::prelude::*;

use super::*;
use crate::plan::testing::{TIMESTAMP_NTZ, every_type, file, table, timestamp};
use crate::table::actions::DeletionVector;

/// What Spark wrote for the two files of the table with a column of each type.
#[test]
fn statistics_of_spark_are_read_exactly() {
    let schema = every_type();
    let file = file(
        &[],
        Some(
            r#"{"numRecords":2,"minValues":{"id":2,"t":-128,"f":0.0,"dbl":"-Infinity","wide":-1E-18,"d":"0001-01-01",
                "ts":"1969-12-31T23:59:59.999Z","s":"","st":{"b":{}}},"maxValues":{"id":9007199254740993,"t":-128,
                "f":"NaN","dbl":0.0,"wide":0.5,"d":"0001-01-01","ts":"2026-10-05T23:59:59.999Z","s":"é"},
                "nullCount":{"id":0,"b":2,"t":1,"d":1,"st":{"a":2,"b":{"c":2}}}}"#,
        ),
    );
    let bounds = FileBounds::of(&file, &schema);
    let micros = |value| ScalarValue::TimestampMicrosecond(Some(value), Some("UTC".into()));
    assert_eq!(bounds.rows(), Some(2));
    assert_eq!(bounds.range("id"), Some((2_i64.into(), 9_007_199_254_740_993_i64.into())));
    assert_eq!(bounds.range("ts"), Some((micros(-1999), micros(1_791_244_799_999_999))));
    assert_eq!(bounds.range("s"), Some(("".into(), "é".into())));
    assert_eq!(bounds.range("d").map(|range| range.0), Some(ScalarValue::Date32(Some(-719_162))));
    let (least, greatest) = bounds.range("wide").unwrap();
    let wide = |text: &str| {
        let unscaled = Decimal::parse(text).unwrap().at_scale(18, Round::Exact);
        ScalarValue::Decimal128(unscaled, 38, 18)
    };
    assert!(least <= wide("-1E-18") && least > wide("-1E-17"), "{least}");
    assert!(greatest >= wide("0.5") && greatest < wide("0.500001"), "{greatest}");
    assert_eq!((bounds.range("f"), bounds.range("dbl")), (None, None));
    assert_eq!((bounds.null_count("t"), bounds.null_count("s"), bounds.null_count("st")), (Some(1), None, None));
    assert!(bounds.may_be_null("b") && !bounds.may_be_value("b"));
    assert!(!bounds.may_be_null("id") && bounds.may_be_null("s"));
}

#[test]
fn odd_statistics_say_nothing_and_break_nothing() {
    let schema = every_type();
    let deep = format!(r#"{{"minValues":{{"id":{}1{}}}}}"#, "[".repeat(5000), "]".repeat(5000));
    let odd = [
        "",
        "null",
        "[]",
        "7",
        "{",
        "not json",
        deep.as_str(),
        r#"{"minValues":7,"maxValues":[],"nullCount":"x","numRecords":-1}"#,
        r#"{"numRecords":1e400}"#,
        r#"{"minValues":{"id":"1"},"maxValues":{"id":"2"},"nullCount":{"id":1.5}}"#,
        r#"{"minValues":{"id":{}},"maxValues":{"id":[]},"nullCount":{"id":{}}}"#,
        r#"{"minValues":{"id":99999999999999999999},"maxValues":{"id":1e400}}"#,
        r#"{"minValues":{"id":1.5},"maxValues":{"id":2.5}}"#,
        r#"{"minValues":{"id":5},"maxValues":{"id":4}}"#,
        r#"{"minValues":{"d":"05/10/2026","ts":"2026-10-05T00:00:00","ntz":"2026-10-05T00:00:00Z","i":3000000000,"t":200}}"#,
        r#"{"minValues":{"s":"\ud800"},"maxValues":{"s":"\ud800"}}"#,
        r#"{"numRecords":1,"nullCount":{"id":2}}"#,
        r#"{"minValues":{"wide":1e39,"dec":"1.0","b":1,"OrderId":null}}"#,
    ];
    for stats in odd {
        let file = file(&[], Some(stats));
        let bounds = FileBounds::of(&file, &schema);
        for field in schema.columns().fields() {
            let name = field.name();
            assert_eq!(bounds.ends(name), (None, None), "{name} of {stats}");
            assert_eq!(bounds.null_count(name), None, "{name} of {stats}");
            assert!(bounds.may_be_null(name) && bounds.may_be_value(name), "{name} of {stats}");
        }
    }
}

#[test]
fn deleted_rows_leave_bounds_but_no_counts() {
    let schema = every_type();
    let stats = r#"{"numRecords":3,"minValues":{"id":1},"maxValues":{"id":3},"nullCount":{"id":0}}"#;
    let mut masked = file(&[], Some(stats));
    masked.deletion_vector = Some(DeletionVector {
        storage_type: "i".to_owned(),
        path_or_inline_dv: String::new(),
        offset: None,
        size_in_bytes: 1,
        cardinality: 1,
    });
    let loose = file(&[], Some(&stats.replace("\"nullCount\"", "\"tightBounds\":false,\"nullCount\"")));
    for file in [masked, loose] {
        let bounds = FileBounds::of(&file, &schema);
        assert_eq!(bounds.range("id"), Some((1_i64.into(), 3_i64.into())));
        assert_eq!((bounds.rows(), bounds.null_count("id")), (Some(3), None));
        assert!(bounds.may_be_null("id"));
    }
}

#[test]
fn partition_values_bind_all_rows() {
    let schema = table(&[("p", DataType::Utf8), ("q", DataType::Date32), ("v", DataType::Int64)], &["p", "q"]);
    let file = file(&[("p", Some("a b")), ("q", None)], Some(r#"{"numRecords":7}"#));
    let bounds = FileBounds::of(&file, &schema);
    assert_eq!(bounds.constant("p"), Some("a b".into()));
    assert_eq!(bounds.constant("q"), Some(ScalarValue::Date32(None)));
    assert_eq!(bounds.constant("v"), None);
    assert_eq!((bounds.null_count("p"), bounds.null_count("q")), (Some(0), Some(7)));
    assert_eq!(bounds.range("p"), Some(("a b".into(), "a b".into())));
    assert!(bounds.may_be_null("q") && !bounds.may_be_value("q"));

    // A value that is not there, or not of the type, binds nothing: it is not null.
    let unreadable = crate::plan::testing::file(&[("q", Some("yesterday"))], None);
    let bounds = FileBounds::of(&unreadable, &schema);
    for column in ["p", "q"] {
        assert_eq!(bounds.constant(column), None);
        assert!(bounds.may_be_null(column) && bounds.may_be_value(column));
    }
}

#[test]
fn a_cut_maximum_is_not_taken_at_its_word() {
    assert_eq!(greatest_text("abc").as_deref(), Some("abc"));
    // Cut without rounding up, and rounded up with a tie-breaker that sorts below an emoji.
    let prefix = "x".repeat(31);
    for max in [format!("{prefix}y"), format!("{prefix}y\u{FFFD}"), format!("{prefix}y\u{10FFFF}")] {
        assert!(greatest_text(&max).unwrap() > format!("{prefix}y\u{1F600}"), "{max}");
    }
    assert!(greatest_text("ab\u{FFFD}").unwrap().as_str() > "ab\u{1F600}");
    assert_eq!(greatest_text(&"\u{10FFFF}".repeat(40)), None);
    assert_eq!(after_prefix("a\u{D7FF}").as_deref(), Some("a\u{E000}"));
}

#[test]
fn a_decimal_that_ended_at_a_64_bit_limit_is_no_bound() {
    let schema = table(&[("n", DataType::Decimal128(38, 0))], &[]);
    let file = file(&[], Some(r#"{"minValues":{"n":-9223372036854775808},"maxValues":{"n":9223372036854775807}}"#));
    assert_eq!(FileBounds::of(&file, &schema).ends("n"), (None, None));
}

/// A value as one of the writers puts it into statistics.
fn decimal_text(unscaled: i128, scale: i8, through_double: bool) -> String {
    if through_double {
        // As deltalake does it.
        let value = unscaled as f64 / 10_f64.powi(i32::from(scale));
        return if scale == 0 {
            (value.round() as i64).to_string()
        } else {
            serde_json::Value::from(value).to_string()
        };
    }
    ScalarValue::Decimal128(Some(unscaled), 38, scale)
        .to_array()
        .map(|array| {
            let options = arrow::util::display::FormatOptions::default();
            arrow::util::display::ArrayFormatter::try_new(&array, &options).unwrap().value(0).to_string()
        })
        .unwrap()
}

fn moment_text(micros: i64, zone: &str) -> String {
    let time = chrono::DateTime::from_timestamp_micros(micros).unwrap();
    format!("{}{zone}", time.format("%Y-%m-%dT%H:%M:%S%.3f"))
}

fn cut_text(text: &str, rounded: bool) -> String {
    let cut: String = text.chars().take(32).collect();
    if rounded && cut.len() < text.len() { format!("{cut}\u{10FFFF}") } else { cut }
}

proptest! {
    #[test]
    fn decimals_lie_within_their_bounds(
        digits in 1_u32..38,
        value in any::<i128>(),
        precision in prop_oneof![Just(5_u8), Just(15), Just(18), Just(38)],
        scale in 0_i8..6,
        through_double in any::<bool>(),
    ) {
        let limit = 10_i128.pow(digits.min(u32::from(precision)));
        let value = value % limit;
        let schema = table(&[("n", DataType::Decimal128(precision, scale))], &[]);
        let text = decimal_text(value, scale, through_double);
        let stats = format!(r#"{{"minValues":{{"n":{text}}},"maxValues":{{"n":{text}}}}}"#);
        let file = file(&[], Some(&stats));
        let (least, greatest) = FileBounds::of(&file, &schema).ends("n");
        let value = ScalarValue::Decimal128(Some(value), precision, scale);
        prop_assert!(least.as_ref().is_none_or(|least| *least <= value), "{least:?} {value} {text}");
        prop_assert!(greatest.as_ref().is_none_or(|greatest| *greatest >= value), "{greatest:?} {value} {text}");
        prop_assert!(least.is_some() || scale == 0 && precision > 18);
    }

    #[test]
    fn moments_lie_within_their_bounds(micros in -62_135_596_800_000_000_i64..253_402_300_799_000_000, up in any::<bool>()) {
        // Cut to milliseconds, downwards or towards the epoch.
        let cut = if up { micros / 1000 * 1000 } else { micros.div_euclid(1000) * 1000 };
        for (data_type, zone) in [(timestamp(), "Z"), (TIMESTAMP_NTZ, "")] {
            let schema = table(&[("t", data_type)], &[]);
            let text = moment_text(cut, zone);
            let stats = format!(r#"{{"minValues":{{"t":"{text}"}},"maxValues":{{"t":"{text}"}}}}"#);
            let file = file(&[], Some(&stats));
            let (least, greatest) = FileBounds::of(&file, &schema).range("t").unwrap();
            let inner = |value| match value { ScalarValue::TimestampMicrosecond(Some(micros), _) => micros, _ => panic!() };
            prop_assert!(inner(least) <= micros && inner(greatest) >= micros, "{text}");
        }
    }

    #[test]
    fn texts_lie_within_their_bounds(text in "[a-bé\u{FFFD}\u{1F600}]{0,40}", rounded in any::<bool>()) {
        let schema = table(&[("s", DataType::Utf8)], &[]);
        let min = serde_json::Value::from(cut_text(&text, false));
        let max = serde_json::Value::from(cut_text(&text, rounded));
        let stats = format!(r#"{{"minValues":{{"s":{min}}},"maxValues":{{"s":{max}}}}}"#);
        let file = file(&[], Some(&stats));
        let (least, greatest) = FileBounds::of(&file, &schema).ends("s");
        let value = ScalarValue::from(text.as_str());
        prop_assert!(least.is_some_and(|least| least <= value));
        prop_assert!(greatest.is_none_or(|greatest| greatest >= value));
    }

    #[test]
    fn no_text_in_place_of_statistics_panics(stats in ".{0,200}") {
        let schema = every_type();
        let file = file(&[], Some(&stats));
        let bounds = FileBounds::of(&file, &schema);
        for field in schema.columns().fields() {
            let _ = (bounds.ends(field.name()), bounds.null_count(field.name()));
        }
    }
}
