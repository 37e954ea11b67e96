use super::*;
use crate::plan::testing::{TIMESTAMP_NTZ, timestamp};

fn text(text: &str) -> Literal {
    Literal::Text(text.to_owned())
}

fn num(text: &str) -> Literal {
    Literal::Number(text.to_owned())
}

/// A13: literals take the column's type.
#[test]
fn literals_take_the_columns_type_or_are_refused() {
    use DataType::{Boolean, Date32, Decimal128, Float32, Int8, Int32, Int64, Utf8};
    let dec = Decimal128(6, 1);
    let huge = "12345678901234567890.123456789012345678";
    let cases = [
        (Int64, num("9007199254740993"), Some("9007199254740993")),
        (Int64, num("9223372036854775808"), None),
        (Int64, text("8"), Some("8")),
        (Int64, text("x"), None),
        (Int64, text(" 8"), None),
        (Int64, text(""), None),
        (Int32, num("3000000000"), None),
        (Int32, num("1e3"), Some("1000")),
        (Int32, num("1.0"), Some("1")),
        (Int32, num("1.5"), None),
        (Int8, num("-128"), Some("-128")),
        (Int8, num("128"), None),
        (dec.clone(), num("1.9"), Some("1.9")),
        (dec.clone(), num("1.90"), Some("1.9")),
        (dec.clone(), num("1.99"), None),
        (dec.clone(), num("99999.9"), Some("99999.9")),
        (dec.clone(), num("100000"), None),
        (dec, text("-0.5"), Some("-0.5")),
        (Decimal128(38, 18), num(huge), Some("12345678901234567890.123456789012345678")),
        (Float32, num("0.1"), Some("0.1")),
        (Float32, num("1e39"), None),
        (Float32, text("inf"), None),
        (Float32, text("NaN"), Some("NaN")),
        (Boolean, text("TRUE"), Some("true")),
        (Boolean, num("1"), None),
        (Utf8, text("it's"), Some("it's")),
        (Utf8, num("5"), None),
        (Date32, text("2026-10-05"), Some("2026-10-05")),
        (Date32, text("05/10/2026"), None),
        (Date32, text("2026-10-05T00:00:00"), None),
        (Date32, text("2026-02-29"), None),
        (Date32, num("20731"), None),
        (timestamp(), text("2026-10-05T02:00:00+02:00"), Some("1791158400000000")),
        (timestamp(), text("2026-10-05 00:00:00Z"), Some("1791158400000000")),
        (timestamp(), text("2026-10-05"), Some("1791158400000000")),
        (timestamp(), Literal::Timestamp("2026-10-05T00:00:00.000001Z".to_owned()), Some("1791158400000001")),
        (timestamp(), text("2026-10-05T00:00:00"), None),
        (timestamp(), text("2026-10-05T00:00:00.0000001Z"), None),
        (TIMESTAMP_NTZ, text("2026-10-05T00:00:00"), Some("1791158400000000")),
        (TIMESTAMP_NTZ, text("2026-10-05T00:00:00Z"), None),
        (Date32, Literal::Timestamp("2026-10-05T00:00:00Z".to_owned()), None),
    ];
    for (data_type, literal, expected) in cases {
        let got = literal.typed(&data_type, "column 'c'");
        let shown = match &got {
            Ok(ScalarValue::TimestampMicrosecond(Some(micros), _)) => Some(micros.to_string()),
            Ok(value) => Some(value.to_string()),
            Err(_) => None,
        };
        assert_eq!(shown.as_deref(), expected, "{literal} as {data_type}");
        if let Ok(value) = got {
            assert_eq!(value.data_type(), data_type);
        }
    }
}

#[test]
fn a_refused_literal_says_what_and_how() {
    let error = num("1.99").typed(&DataType::Decimal128(6, 1), "column 'dec'").unwrap_err();
    assert_eq!(
        error.message(),
        "column 'dec' is of type decimal(6,1) and cannot be compared with 1.99, which the type cannot hold exactly"
    );
    let error = text("2026-10-05 10:00").typed(&timestamp(), "column 'ts'").unwrap_err();
    assert!(error.message().ends_with("which has no offset from UTC"), "{error}");
    assert_eq!(
        error.advice(),
        Some("write '2026-10-05 10:00Z' for UTC, or an offset such as '2026-10-05 10:00+02:00'")
    );
}

#[test]
fn partition_values_are_read_as_the_log_writes_them() {
    use DataType::{Binary, Boolean, Date32, Decimal128, Float64, Int32, Utf8};
    let null = "NULL";
    let cases = [
        (Utf8, Some("a b/%é"), Some("a b/%é")),
        (Utf8, Some(""), Some(null)),
        (Utf8, None, Some(null)),
        (Int32, Some(""), Some(null)),
        (Int32, Some("-7"), Some("-7")),
        (Int32, Some("x"), None),
        (Boolean, Some("true"), Some("true")),
        (Boolean, Some("1"), None),
        (Date32, Some("1582-10-04"), Some("1582-10-04")),
        (Date32, Some("9999-12-31"), Some("9999-12-31")),
        (Decimal128(6, 1), Some("12.30"), Some("12.3")),
        (Decimal128(6, 1), Some("12.34"), None),
        (Float64, Some("1.5E10"), Some("15000000000")),
        (timestamp(), Some("2026-10-25T00:30:00.123456Z"), Some("1792888200123456")),
        (timestamp(), Some("2026-10-25 00:30:00.123456"), Some("1792888200123456")),
        (timestamp(), Some("2026-10-25 00:30:00"), Some("1792888200000000")),
        (TIMESTAMP_NTZ, Some("0001-01-01 00:00:00"), Some("-62135596800000000")),
        (TIMESTAMP_NTZ, Some("2026-10-25T00:30:00Z"), None),
        (Binary, Some("x"), None),
    ];
    for (data_type, text, expected) in cases {
        let shown = partition_value(text, &data_type).map(|value| match value {
            ScalarValue::TimestampMicrosecond(Some(micros), _) => micros.to_string(),
            value if value.is_null() => null.to_owned(),
            value => value.to_string(),
        });
        assert_eq!(shown.as_deref(), expected, "{text:?} as {data_type}");
    }
}

#[test]
fn decimals_keep_their_digits() {
    let at = |text, scale, round| Decimal::parse(text)?.at_scale(scale, round);
    assert_eq!(at("-1E-18", 18, Round::Exact), Some(-1));
    assert_eq!(at("-1E-18", 2, Round::Down), Some(-1));
    assert_eq!(at("-1E-18", 2, Round::Up), Some(0));
    assert_eq!(at("1E-300", 0, Round::Up), Some(1));
    assert_eq!(at("1E-300", 0, Round::Exact), None);
    assert_eq!(at("1E300", 0, Round::Up), None);
    assert_eq!(at("0E300", 0, Round::Exact), Some(0));
    assert_eq!(at("00012.500", 1, Round::Exact), Some(125));
    for odd in ["", "-", ".", "1e", "1e99999", "0x10", "1_000", "１", "--1", "1.2.3", "NaN"] {
        assert_eq!(Decimal::parse(odd), None, "{odd}");
    }
    assert_eq!(Decimal::parse(&"9".repeat(39)), None);
}
