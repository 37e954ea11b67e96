use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use arrow::util::display::array_value_to_string;
use proptest::prelude::*;

use super::*;

fn read(data_type: &DataType, text: &str) -> Result<String, Why> {
    let array = column(data_type, [Some(text)].into_iter()).map_err(|misfit| misfit.why)?;
    assert_eq!(array.data_type(), data_type);
    Ok(array_value_to_string(&array, 0).unwrap())
}

#[track_caller]
fn check(data_type: &DataType, cases: &[(&str, Result<&str, Why>)]) {
    for (text, expected) in cases {
        let expected = expected.map(str::to_owned);
        assert_eq!(read(data_type, text), expected, "'{text}' as {}", sql_name(data_type));
    }
}

fn utc() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

#[test]
fn integers_are_exact_or_refused() {
    check(
        &DataType::Int64,
        &[
            ("0", Ok("0")),
            ("-0", Ok("0")),
            ("007", Ok("7")),
            ("9007199254740993", Ok("9007199254740993")),
            ("9223372036854775807", Ok("9223372036854775807")),
            ("-9223372036854775808", Ok("-9223372036854775808")),
            ("00000000000000000000000000000001", Ok("1")),
            ("9223372036854775808", Err(Why::OutOfRange)),
            ("-9223372036854775809", Err(Why::OutOfRange)),
            ("18446744073709551615", Err(Why::OutOfRange)),
            ("1.0", Err(Why::NotWhole)),
            ("1e2", Err(Why::NotWhole)),
            ("1_000", Err(Why::NotWhole)),
            ("1,000", Err(Why::NotWhole)),
            ("+1", Err(Why::NotWhole)),
            ("-", Err(Why::NotWhole)),
            ("--1", Err(Why::NotWhole)),
            (" 1", Err(Why::NotWhole)),
            ("1 ", Err(Why::NotWhole)),
            ("0x10", Err(Why::NotWhole)),
            ("١", Err(Why::NotWhole)),
            ("1234567890123456789x", Err(Why::NotWhole)),
            ("", Err(Why::Empty)),
        ],
    );
    check(&DataType::Int8, &[("127", Ok("127")), ("-128", Ok("-128")), ("128", Err(Why::OutOfRange))]);
    check(&DataType::Int16, &[("-32768", Ok("-32768")), ("32768", Err(Why::OutOfRange))]);
    check(&DataType::Int32, &[("2147483647", Ok("2147483647")), ("2147483648", Err(Why::OutOfRange))]);
}

#[test]
fn decimals_keep_every_digit_or_are_refused() {
    check(
        &DataType::Decimal128(10, 1),
        &[
            ("1.9", Ok("1.9")),
            ("1.99", Err(Why::PastScale)),
            ("1.90000000000000000000000000000000000000000000000000", Ok("1.9")),
            ("1e2", Ok("100.0")),
            ("1.5E+1", Ok("15.0")),
            ("25e-1", Ok("2.5")),
            ("250e-2", Ok("2.5")),
            ("25e-2", Err(Why::PastScale)),
            ("-0.1", Ok("-0.1")),
            (".5", Ok("0.5")),
            ("5.", Ok("5.0")),
            ("0e999999999999", Ok("0.0")),
            ("999999999.9", Ok("999999999.9")),
            ("1000000000", Err(Why::TooManyDigits)),
            ("1e99999999999", Err(Why::TooManyDigits)),
            ("1e-99999999999", Err(Why::PastScale)),
            ("1234567890123456789012345678901234567890", Err(Why::TooManyDigits)),
            ("0.1234567890123456789012345678901234567891", Err(Why::PastScale)),
            ("1.2.3", Err(Why::NotNumber)),
            (".", Err(Why::NotNumber)),
            ("e1", Err(Why::NotNumber)),
            ("1e", Err(Why::NotNumber)),
            ("1e1.5", Err(Why::NotNumber)),
            ("+1", Err(Why::NotNumber)),
            ("12,5", Err(Why::NotNumber)),
            (" 1", Err(Why::NotNumber)),
            ("NaN", Err(Why::NotNumber)),
            ("", Err(Why::Empty)),
        ],
    );
    let widest = "99999999999999999999999999999999999999";
    check(
        &DataType::Decimal128(38, 0),
        &[(widest, Ok(widest)), ("100000000000000000000000000000000000000", Err(Why::TooManyDigits))],
    );
    check(
        &DataType::Decimal128(38, 38),
        &[("0.00000000000000000000000000000000000001", Ok("0.00000000000000000000000000000000000001"))],
    );
}

#[test]
fn floats_are_numbers_or_three_words() {
    check(
        &DataType::Float64,
        &[
            ("0.1", Ok("0.1")),
            ("-1e-3", Ok("-0.001")),
            ("5", Ok("5.0")),
            ("-0", Ok("-0.0")),
            ("1.7976931348623157e308", Ok("1.7976931348623157e308")),
            ("NaN", Ok("NaN")),
            ("Infinity", Ok("inf")),
            ("-Infinity", Ok("-inf")),
            ("1e400", Err(Why::OutOfRange)),
            ("nan", Err(Why::NotNumber)),
            ("inf", Err(Why::NotNumber)),
            ("-inf", Err(Why::NotNumber)),
            ("-.", Err(Why::NotNumber)),
            ("+1", Err(Why::NotNumber)),
            ("1_0", Err(Why::NotNumber)),
            ("1f", Err(Why::NotNumber)),
            (" 1", Err(Why::NotNumber)),
            ("1 ", Err(Why::NotNumber)),
            ("", Err(Why::Empty)),
        ],
    );
    check(&DataType::Float32, &[("0.1", Ok("0.1")), ("1e39", Err(Why::OutOfRange)), ("x", Err(Why::NotNumber))]);
}

#[test]
fn booleans_are_two_words() {
    check(
        &DataType::Boolean,
        &[
            ("true", Ok("true")),
            ("FALSE", Ok("false")),
            ("1", Err(Why::NotBoolean)),
            ("t", Err(Why::NotBoolean)),
            ("yes", Err(Why::NotBoolean)),
            (" true", Err(Why::NotBoolean)),
            ("", Err(Why::Empty)),
        ],
    );
}

#[test]
fn dates_are_iso_and_on_the_calendar() {
    check(
        &DataType::Date32,
        &[
            ("1970-01-01", Ok("1970-01-01")),
            ("2024-02-29", Ok("2024-02-29")),
            ("0001-01-01", Ok("0001-01-01")),
            ("9999-12-31", Ok("9999-12-31")),
            ("2023-02-29", Err(Why::NoSuchDay)),
            ("1900-02-29", Err(Why::NoSuchDay)),
            ("2026-13-01", Err(Why::NoSuchDay)),
            ("2026-00-10", Err(Why::NoSuchDay)),
            ("2026-04-31", Err(Why::NoSuchDay)),
            ("2026-04-00", Err(Why::NoSuchDay)),
            ("0000-01-01", Err(Why::NoSuchDay)),
            ("2026-1-1", Err(Why::NotDate)),
            ("2026/01/01", Err(Why::NotDate)),
            ("20260101", Err(Why::NotDate)),
            ("01.02.2026", Err(Why::NotDate)),
            ("2026-01-01T00:00:00Z", Err(Why::NotDate)),
            ("", Err(Why::Empty)),
        ],
    );
}

#[test]
fn timestamps_are_instants_with_an_offset() {
    check(
        &utc(),
        &[
            ("2026-10-05T04:12:00Z", Ok("2026-10-05T04:12:00Z")),
            ("2026-10-05 04:12:00.5Z", Ok("2026-10-05T04:12:00.500Z")),
            ("2026-10-05T04:12:00.123456+05:30", Ok("2026-10-04T22:42:00.123456Z")),
            ("2026-10-05T04:12:00-0800", Ok("2026-10-05T12:12:00Z")),
            ("2026-10-05T04:12:00+02", Ok("2026-10-05T02:12:00Z")),
            ("1969-12-31T23:59:59.999999Z", Ok("1969-12-31T23:59:59.999999Z")),
            ("2026-10-05T04:12:00.123456000Z", Ok("2026-10-05T04:12:00.123456Z")),
            ("2026-10-05T04:12:00.1234567Z", Err(Why::FinerThanMicros)),
            ("2026-10-05T04:12:00", Err(Why::NoOffset)),
            ("2026-10-05", Err(Why::NotTimestamp)),
            ("2026-10-05T04:12Z", Err(Why::NotTimestamp)),
            ("2026-10-05T04:12:00.Z", Err(Why::NotTimestamp)),
            ("2026-10-05T04:12:00 UTC", Err(Why::NotTimestamp)),
            ("2026-10-05T04:12:00+2", Err(Why::NotTimestamp)),
            ("2026-10-05T04:12:00+19:00", Err(Why::NotTimestamp)),
            ("2026-10-05T04:12:00+01:60", Err(Why::NotTimestamp)),
            ("2026-10-05T24:00:00Z", Err(Why::NoSuchTime)),
            ("2026-10-05T04:60:00Z", Err(Why::NoSuchTime)),
            ("2026-10-05T04:12:60Z", Err(Why::NoSuchTime)),
            ("2026-02-30T04:12:00Z", Err(Why::NoSuchDay)),
            ("1791173520", Err(Why::NotTimestamp)),
            ("2026-10-05T04:12:00Zé", Err(Why::NotTimestamp)),
            ("", Err(Why::Empty)),
        ],
    );
    check(
        &DataType::Timestamp(TimeUnit::Microsecond, None),
        &[
            ("2026-10-05T04:12:00.25", Ok("2026-10-05T04:12:00.250")),
            ("2026-10-05 04:12:00", Ok("2026-10-05T04:12:00")),
            ("2026-10-05T04:12:00Z", Err(Why::HasOffset)),
            ("2026-10-05T04:12:00+02:00", Err(Why::HasOffset)),
            ("2026-10-05T04:12:00x", Err(Why::NotTimestamp)),
            ("2026-10-05", Err(Why::NotTimestamp)),
        ],
    );
}

#[test]
fn strings_are_taken_as_they_are() {
    check(&DataType::Utf8, &[(" x ", Ok(" x ")), ("007", Ok("007")), ("", Ok("")), ("é\n\"", Ok("é\n\""))]);
}

#[test]
fn other_types_hold_nulls_only() {
    let list = DataType::List(Arc::new(Field::new("element", DataType::Int32, true)));
    check(&list, &[("1", Err(Why::NotReadable))]);
    check(&DataType::Binary, &[("AQID", Err(Why::NotReadable))]);
    assert!(!is_readable(&DataType::Binary));
    assert_eq!(column(&DataType::Binary, [None, None].into_iter()).unwrap().null_count(), 2);
}

#[test]
fn a_misfit_names_place_column_type_and_value() {
    let misfit = column(&DataType::Int64, [Some("1"), None, Some("7\n8")].into_iter()).unwrap_err();
    assert_eq!(misfit.row, 2);
    let place = crate::source::Place { source: "day.csv".into(), unit: crate::source::Unit::Line, number: 4 };
    let error = misfit.refuse(&place, "n", &DataType::Int64);
    assert_eq!(error.to_string(), "day.csv line 4: column n is bigint, but '7\\n8' is not a whole number");
    assert_eq!(shown(&"é".repeat(61)), format!("{}…", "é".repeat(60)));
}

proptest! {
    #[test]
    fn integers_agree_with_rust(value: i64) {
        prop_assert_eq!(integer::<i64>(&value.to_string()), Ok(value));
    }

    #[test]
    fn doubles_agree_with_rust(text in "-?([0-9]{1,9}\\.?[0-9]{0,9}|\\.[0-9]{1,17})") {
        prop_assert_eq!(float64(&text).map(f64::to_bits), Ok(text.parse::<f64>().unwrap().to_bits()));
    }

    #[test]
    fn days_agree_with_chrono(days in -719_162_i32..2_932_897) {
        let date = chrono::NaiveDate::default() + chrono::TimeDelta::days(i64::from(days));
        prop_assert_eq!(date32(&date.format("%Y-%m-%d").to_string()), Ok(days));
    }

    #[test]
    fn timestamps_agree_with_chrono(micros in -62_135_500_000_000_000_i64..253_402_200_000_000_000, minutes in -1080_i32..1080) {
        let zone = chrono::FixedOffset::east_opt(minutes * 60).unwrap();
        let instant = chrono::DateTime::from_timestamp_micros(micros).unwrap().with_timezone(&zone);
        prop_assert_eq!(timestamp_micros(&instant.to_rfc3339(), Zone::Required), Ok(micros));
    }

    #[test]
    fn decimals_agree_with_their_digits(unscaled in -999_999_999_999_i128..1_000_000_000_000, scale in 0_i8..12) {
        let digits = format!("{:013}", unscaled.abs());
        let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
        let sign = if unscaled < 0 { "-" } else { "" };
        prop_assert_eq!(decimal128(&format!("{sign}{whole}.{fraction}"), 20, scale), Ok(unscaled));
        prop_assert_eq!(decimal128(&format!("{unscaled}e-{scale}"), 20, scale), Ok(unscaled));
    }
}
