use arrow::array::Array;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Fields, TimeUnit};
use arrow::util::display::array_value_to_string;
use futures::stream::{self, StreamExt, TryStreamExt};
use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;

fn schema() -> TableSchema {
    let address = Fields::from(vec![Field::new("zip", DataType::Utf8, false), Field::new("no", DataType::Int32, true)]);
    let pair = Fields::from(vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Int64, true)]);
    let element = Field::new("element", DataType::Struct(address.clone()), true);
    let fields = vec![
        Field::new("id", DataType::Int64, false),
        Field::new("name", DataType::Utf8, true),
        Field::new("amount", DataType::Decimal128(38, 10), true),
        Field::new("ratio", DataType::Float64, true),
        Field::new("ok", DataType::Boolean, true),
        Field::new("day", DataType::Date32, true),
        Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
        Field::new("address", DataType::Struct(address), true),
        Field::new("places", DataType::List(Arc::new(element)), true),
        Field::new(
            "counts",
            DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(pair), false)), false),
            true,
        ),
        Field::new("payload", DataType::Binary, true),
    ];
    TableSchema::new(Arc::new(Schema::new(fields)), vec![])
}

fn pieces(bytes: &[u8], size: usize) -> BoxStream<'static, Result<Bytes>> {
    let pieces: Vec<_> = bytes.chunks(size.max(1)).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    stream::iter(pieces).boxed()
}

/// All rows as one batch, with the lines they stood at.
fn gather(batches: BoxStream<'static, Result<SourceBatch>>) -> Result<Option<(RecordBatch, Vec<u64>)>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let batches: Vec<SourceBatch> = runtime.block_on(batches.try_collect())?;
    let Some(first) = batches.first() else { return Ok(None) };
    let rows = concat_batches(&first.rows.schema(), batches.iter().map(|batch| &batch.rows)).unwrap();
    let places = batches.iter().flat_map(|batch| (0..batch.rows.num_rows()).map(|row| batch.places.of(row)));
    Ok(Some((rows, places.map(|place| place.number).collect())))
}

fn load(text: impl AsRef<[u8]>) -> Result<Option<(RecordBatch, Vec<u64>)>> {
    // Reading starts tasks only once a runtime polls the stream.
    gather(read("t.ndjson".into(), pieces(text.as_ref(), 1 << 20), &schema(), 2))
}

/// The cells of one column.
fn cells(text: &str, column: &str) -> Vec<String> {
    let Some((batch, _)) = load(text).unwrap() else { return Vec::new() };
    let column = batch.column_by_name(column).unwrap();
    let cell = |row| if column.is_null(row) { "∅".into() } else { array_value_to_string(column, row).unwrap() };
    (0..column.len()).map(cell).collect()
}

/// The cell that a JSON text makes in a column, or why not.
fn cell(column: &str, json: &str) -> Result<String, String> {
    match load(format!("{{\"{column}\": {json}}}")) {
        Ok(_) => Ok(cells(&format!("{{\"{column}\": {json}}}"), column).remove(0)),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Refused);
            Err(error.message().rsplit_once("' ").map_or(error.message(), |(_, why)| why).to_owned())
        }
    }
}

#[track_caller]
fn check(column: &str, cases: &[(&str, Result<&str, &str>)]) {
    for (json, expected) in cases {
        assert_eq!(cell(column, json), expected.map(str::to_owned).map_err(str::to_owned), "{column}: {json}");
    }
}

#[track_caller]
fn refused(text: impl AsRef<[u8]>, message: &str) {
    let error = load(text).unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Refused, message));
}

#[test]
fn keys_are_matched_by_name_and_missing_ones_are_null() {
    let text = "\u{FEFF}{\"name\":\"x\",\"id\":1}\r\n\n   \n{\"id\":2}\n{}\n{\"\\u0069d\":4, \"name\":null}";
    assert_eq!(cells(text, "id"), ["1", "2", "∅", "4"]);
    assert_eq!(cells(text, "name"), ["x", "∅", "∅", "∅"]);
    assert_eq!(load(text).unwrap().unwrap().1, [1, 4, 5, 6]);
    assert!(load("").unwrap().is_none());
}

#[test]
fn integers_are_exact_and_numbers_only() {
    check(
        "id",
        &[
            ("9007199254740993", Ok("9007199254740993")),
            ("-9223372036854775808", Ok("-9223372036854775808")),
            ("9223372036854775808", Err("is out of its range")),
            ("18446744073709551615", Err("is out of its range")),
            ("1.0", Err("is not a whole number")),
            ("1e3", Err("is not a whole number")),
            ("\"007\"", Err("is a string")),
            ("true", Err("is a boolean")),
            ("[1]", Err("is an array")),
            ("{}", Err("is an object")),
        ],
    );
}

#[test]
fn decimals_come_from_their_digits() {
    let digits = "1234567890123456789012345678.0123456789";
    check(
        "amount",
        &[
            (digits, Ok(digits)),
            (&format!("\"{digits}\""), Ok(digits)),
            ("1e2", Ok("100.0000000000")),
            ("0.00000000001", Err("has digits past its scale")),
            ("\"x\"", Err("is not a number")),
            ("\"\"", Err("is empty")),
            ("false", Err("is a boolean")),
        ],
    );
}

#[test]
fn quotes_are_type_information() {
    check(
        "name",
        &[
            ("\"007\"", Ok("007")),
            (r#""é\u00e9\n\"\ud83d\ude00""#, Ok("éé\n\"😀")),
            ("\"\"", Ok("")),
            ("7", Err("is a number")),
            ("true", Err("is a boolean")),
            ("{\"a\":1}", Err("is an object")),
            (r#""\ud800""#, Err("has an escape that stands for no character")),
        ],
    );
    check(
        "ratio",
        &[
            ("0.1", Ok("0.1")),
            ("\"NaN\"", Ok("NaN")),
            ("\"-Infinity\"", Ok("-inf")),
            ("\"0.1\"", Err("is a string")),
            ("\"inf\"", Err("is a string")),
            ("1e999", Err("is out of its range")),
        ],
    );
    check("ok", &[("true", Ok("true")), ("\"true\"", Err("is a string")), ("1", Err("is a number"))]);
    check("day", &[("\"2026-10-05\"", Ok("2026-10-05")), ("20731", Err("is a number"))]);
    check(
        "at",
        &[
            ("\"2026-10-05T12:00:00+05:30\"", Ok("2026-10-05T06:30:00Z")),
            ("\"2026-10-05T12:00:00\"", Err("has no offset from UTC")),
            ("1791173520", Err("is a number")),
        ],
    );
    check("payload", &[("null", Ok("∅")), ("\"AQID\"", Err("is text, which it cannot be read from"))]);
}

#[test]
fn nested_values_follow_the_tables_types() {
    check(
        "address",
        &[
            (r#"{"no":7,"zip":"01234"}"#, Ok("{zip: 01234, no: 7}")),
            (r#"{"zip":"x"}"#, Ok("{zip: x, no: }")),
            ("null", Ok("∅")),
            (r#"{"zip":1}"#, Err("is a number")),
            (r#"{"no":1}"#, Err("is null, which it may not be")),
            (r#"{"zip":"x","city":"y"}"#, Err("has a field that it lacks")),
            (r#"{"zip":"x","zip":"y"}"#, Err("has a key twice")),
            (r#"{"zip":"x",}"#, Err("is not JSON")),
            ("[]", Err("is an array")),
        ],
    );
    check(
        "places",
        &[
            ("[]", Ok("[]")),
            (r#"[{"zip":"a"}, null, {"zip":"b","no":2}]"#, Ok("[{zip: a, no: }, , {zip: b, no: 2}]")),
            (r#"{"zip":"a"}"#, Err("is an object")),
            ("4", Err("is a number")),
        ],
    );
    check(
        "counts",
        &[
            (r#"{"a":1,"b":null}"#, Ok("{a: 1, b: }")),
            ("{}", Ok("{}")),
            (r#"{"a":1,"a":2}"#, Err("has a key twice")),
            (r#"{"a":"1"}"#, Err("is a string")),
        ],
    );
}

#[test]
fn a_misfit_within_names_its_line_and_path() {
    let good = r#"{"id":1,"places":[{"zip":"a","no":1},{"zip":"b","no":2}]}"#;
    let bad = r#"{"id":2,"places":[{"zip":"a"},{"zip":"b","no":2.5}]}"#;
    let expected = "t.ndjson line 3: column places[].no is int, but '2.5' is not a whole number";
    refused(format!("{good}\n{good}\n{bad}\n{good}"), expected);
    // The same line is named when a later one has a misfit of a kind that is seen before.
    refused(format!("{good}\n{good}\n{bad}\n{{\"places\":7}}\n{{\"id\":1.5}}\n{{\n"), expected);
}

#[test]
fn lines_that_are_not_one_object_are_refused() {
    refused("{\"id\":1}\n{\"id\":2", "t.ndjson line 2: this is not one JSON object, from byte 8 on");
    refused("{\"id\":1} {\"id\":2}\n", "t.ndjson line 1: this is not one JSON object, from byte 10 on");
    refused(" {\"id\":01}\n", "t.ndjson line 1: this is not one JSON object, from byte 9 on");
    refused("\n[{\"id\":1}]\n", "t.ndjson line 2: this is not one JSON object, from byte 1 on");
    refused("7\n", "t.ndjson line 1: this is not one JSON object, from byte 1 on");
    refused(
        "{\"id\":1}\n{\"nmae\":2}\n",
        "t.ndjson line 2: the object has key 'nmae', which is no column of the table",
    );
    refused("{\"id\":1,\"name\":\"x\",\"id\":1}\n", "t.ndjson line 1: key 'id' is there twice");
    refused(b"{\"id\":1}\n{\"name\":\"caf\xE9\"}\n", "t.ndjson line 2: byte 13 of the line is not UTF-8");
    refused(b"{\"id\":1.5}\n\xFF\n", "t.ndjson line 1: column id is bigint, but '1.5' is not a whole number");
}

#[test]
fn a_key_first_seen_late_is_not_dropped() {
    let text = format!("{}{}", "{\"id\":1}\n".repeat(10_000), "{\"id\":1,\"name\":\"x\"}\n".repeat(900));
    assert_eq!(cells(&text, "name").iter().filter(|name| *name == "x").count(), 900);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn chunks_never_show(
        records in proptest::collection::vec(
            prop_oneof![
                8 => r#"\{"id":[1-9]{1,3},"name":"([a-zé ]|\\n){0,5}"\}"#,
                8 => r#"\{"places":\[(\{"zip":"a","no":[1-9]\},)?null\],"counts":\{"a":1(,"b":2)?\}\}"#,
                3 => "[ \r]{0,2}",
                1 => r#"\{"(id|name|address|places)":([1-9.]{0,3}|"x"|\{"no":1\}|\[1\])\}"#,
            ],
            0..30,
        ),
        broken in proptest::option::of(0_usize..400),
        piece in 1_usize..50,
        size in 1_usize..200,
        parallelism in 1_usize..4,
    ) {
        let mut text = records.join("\n").into_bytes();
        if let Some(byte) = broken.and_then(|at| text.get_mut(at)) {
            *byte = 0xE9;
        }
        let chunks = chunks::sized_chunks(pieces(&text, piece), None, size, 1 << 20);
        let chunked = gather(read_chunks("t.ndjson".into(), chunks, &schema(), parallelism));
        match (load(&text), chunked) {
            (Ok(whole), Ok(chunked)) => prop_assert_eq!(whole, chunked),
            (whole, chunked) => {
                let text = |result: Result<_>| result.err().map(|error| error.to_string());
                prop_assert_eq!(text(whole.map(drop)), text(chunked.map(drop)));
            }
        }
    }
}
