use arrow::array::{Array, AsArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;

fn schema() -> TableSchema {
    let fields = vec![
        arrow::datatypes::Field::new("id", DataType::Int64, false),
        arrow::datatypes::Field::new("name", DataType::Utf8, true),
        arrow::datatypes::Field::new("amount", DataType::Decimal128(12, 2), true),
        arrow::datatypes::Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
        arrow::datatypes::Field::new("payload", DataType::Binary, true),
    ];
    TableSchema::new(Arc::new(arrow::datatypes::Schema::new(fields)), vec![])
}

fn pieces(bytes: &[u8], size: usize) -> BoxStream<'static, Result<Bytes>> {
    let pieces: Vec<_> = bytes.chunks(size.max(1)).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    stream::iter(pieces).boxed()
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap().block_on(future)
}

/// All rows as one batch, with the lines they stood at.
fn gather(batches: Result<Vec<SourceBatch>>) -> Result<Option<(RecordBatch, Vec<u64>)>> {
    let batches = batches?;
    let Some(first) = batches.first() else { return Ok(None) };
    let rows = concat_batches(&first.rows.schema(), batches.iter().map(|batch| &batch.rows)).unwrap();
    let places = batches.iter().flat_map(|batch| (0..batch.rows.num_rows()).map(|row| batch.places.of(row)));
    Ok(Some((rows, places.map(|place| place.number).collect())))
}

fn load_with(text: impl AsRef<[u8]>, options: &CsvOptions) -> Result<Option<(RecordBatch, Vec<u64>)>> {
    let batches = read("t.csv".into(), pieces(text.as_ref(), 1 << 20), &schema(), options, 2);
    gather(run(batches.try_collect()))
}

fn load(text: impl AsRef<[u8]>) -> Result<Option<(RecordBatch, Vec<u64>)>> {
    load_with(text, &CsvOptions::default())
}

/// Rows as text, fields with a bar between, null as `∅`.
fn rows(loaded: Result<Option<(RecordBatch, Vec<u64>)>>) -> Vec<String> {
    let Some((batch, _)) = loaded.unwrap() else { return Vec::new() };
    let cell = |column: &Arc<dyn Array>, row| match column.is_null(row) {
        true => "∅".to_owned(),
        false => arrow::util::display::array_value_to_string(column, row).unwrap(),
    };
    let row = |row| batch.columns().iter().map(|column| cell(column, row)).collect::<Vec<_>>().join("|");
    (0..batch.num_rows()).map(row).collect()
}

#[track_caller]
fn refused(text: impl AsRef<[u8]>, message: &str) {
    let error = load(text).unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Refused, message));
}

#[test]
fn columns_are_matched_by_name_and_come_in_the_tables_order() {
    assert_eq!(rows(load("name,id\nx,1\ny,2\n")), ["1|x", "2|y"]);
}

#[test]
fn byte_order_mark_line_ends_and_a_missing_last_line_end_change_nothing() {
    let expected = ["1|x", "2|y"];
    for text in [
        "id,name\n1,x\n2,y\n",
        "id,name\n1,x\n2,y",
        "id,name\r\n1,x\r\n2,y\r\n",
        "id,name\r\n1,x\n2,y\r",
        "\u{FEFF}id,name\n1,x\n2,y\n",
        "\u{FEFF}\"id\",\"name\"\r\n\"1\",\"x\"\r\n\"2\",\"y\"\r\n",
        "\"id\",name\n1,\"x\"\n\"2\",y",
        "id,name\n\n1,x\n\r\n2,y\n\n",
        "id,name\n\n\"1\",x\n\r\n2,y\n\n",
    ] {
        assert_eq!(rows(load(text)), expected, "{text:?}");
    }
}

#[test]
fn lines_are_counted_through_quotes_and_blank_lines() {
    let (_, lines) = load("id,name\n1,\"a\nb\r\nc\"\n\n2,x\n").unwrap().unwrap();
    assert_eq!(lines, [2, 6]);
    let (_, lines) = load(
        "\"i\
                           d\",name\n1,x\n\n2,y\n",
    )
    .unwrap()
    .unwrap();
    assert_eq!(lines, [2, 4]);
}

#[test]
fn quotes_hold_delimiters_line_ends_and_doubled_quotes() {
    let text = "id,name\n1,\"a,b\"\n2,\"a\r\nb\"\n3,\"say \"\"hi\"\"\"\n4,\"\"\"\"\n5,\"\"\"x\"\"\"\n";
    assert_eq!(rows(load(text)), ["1|a,b", "2|a\r\nb", "3|say \"hi\"", "4|\"", "5|\"x\""]);
}

#[test]
fn an_empty_string_is_told_from_null() {
    assert_eq!(rows(load("id,name,amount\n1,,\n2,\"\",1\n3, ,2\n")), ["1|∅|∅", "2||1.00", "3| |2.00"]);
    refused("id,name\n\"\",x\n", "t.csv line 2: column id is bigint, but '' is empty");
}

#[test]
fn a_declared_null_text_is_the_only_null_and_only_unquoted() {
    let options = CsvOptions { null: Some("NULL".into()), ..CsvOptions::default() };
    assert_eq!(
        rows(load_with("id,name\nNULL,NULL\n2,\"NULL\"\n3,\n4,null\n", &options)),
        ["∅|∅", "2|NULL", "3|", "4|null"]
    );
    let error = load_with("id,name\n,x\n", &options).unwrap_err();
    assert_eq!(error.message(), "t.csv line 2: column id is bigint, but '' is empty");
}

#[test]
fn delimiter_and_quote_are_as_declared() {
    let options = CsvOptions { delimiter: b';', quote: Some(b'\''), null: None };
    assert_eq!(rows(load_with("id;name\n1;'a;''b\"'\n", &options)), ["1|a;'b\""]);
    let options = CsvOptions { delimiter: b'\t', quote: None, null: None };
    assert_eq!(rows(load_with("id\tname\n1\t\"a\n2\tb\"c\n", &options)), ["1|\"a", "2|b\"c"]);
    for (delimiter, quote) in [(b'\n', None), (b'"', Some(b'"')), (0xE9, None), (b',', Some(b'\r'))] {
        let error = load_with("id\n1\n", &CsvOptions { delimiter, quote, null: None }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}

#[test]
fn a_single_column_has_a_record_on_a_blank_line() {
    assert_eq!(rows(load("name\nx\n\ny\n")), ["x", "∅", "y"]);
    assert_eq!(rows(load("name\n\"x\"\n\n\"\"\n")), ["x", "∅", ""]);
}

#[test]
fn a_header_alone_has_no_rows() {
    for text in ["id,name", "id,name\n", "id,name\r\n\r\n"] {
        assert!(load(text).unwrap().is_none(), "{text:?}");
    }
}

#[test]
fn headers_are_refused_that_do_not_name_each_column_once() {
    refused("", "t.csv is empty; a CSV file starts with a header");
    refused("\u{FEFF}", "t.csv is empty; a CSV file starts with a header");
    refused("id,\n", "t.csv line 1: the header has no name for field 2");
    refused("id,id,name\n", "t.csv line 1: the header names column 'id' twice (as field 'id' too)");
    refused("ID,id\n", "t.csv line 1: the header names 'ID', which is no column of the table");
    refused("id,ID\n", "t.csv line 1: the header names column 'ID' twice (as field 'id' too)");
    refused("id, name\n", "t.csv line 1: the header names ' name', which is no column of the table");
    refused("id,payload\n", "t.csv: column payload is binary, which CSV cannot hold");
    refused("\"id\"x,name\n", "t.csv line 1: field 1 goes on after its closing quote");
    let error = load("id,nmae\n1,x\n").unwrap_err();
    assert_eq!(error.evidence(), ["columns of the table: id, name, amount, at, payload"]);
}

#[test]
fn records_of_another_width_are_refused() {
    refused("id,name\n1,x\n2\n3,y\n", "t.csv line 3: the record has 1 fields, the header has 2");
    refused("id,name\n1,x,\n", "t.csv line 2: the record has 3 fields, the header has 2");
    refused("id,name\n1,\"x\",2,3\n", "t.csv line 2: the record has 4 fields, the header has 2");
    refused("id,name\n1,\"a\nb\"\n2,x\n3", "t.csv line 5: the record has 1 fields, the header has 2");
    refused("c0\nv0\na;b\n", "t.csv line 1: the header names 'c0', which is no column of the table");
}

#[test]
fn quotes_that_do_not_fit_are_refused() {
    refused("id,name\n1,a\"b\n", "t.csv line 2: column name has a quote but does not start with it");
    refused("id,name\n1,\"a\"b\n", "t.csv line 2: column name goes on after its closing quote");
    refused("id,name\n1,\"a\" \n", "t.csv line 2: column name goes on after its closing quote");
    refused("id,name\n1,x\n2,\"a\n3,y\n", "t.csv line 3: column name starts with a quote that is never closed");
    refused("id,name\n1,\"a\\\"b\"\n", "t.csv line 2: column name goes on after its closing quote");
}

#[test]
fn bytes_that_are_not_utf8_are_refused_with_line_and_column() {
    let mut text = b"id,name\n".to_vec();
    (0..26).for_each(|_| text.extend_from_slice(b"1,x\n"));
    text.extend_from_slice(b"2,caf\xE9\n3,y\n");
    refused(&text, "t.csv line 28: column name, byte 6 of the line is not UTF-8");
    refused(b"id,name\n1,\"a\nb\xE9\"\n", "t.csv line 3: column name, byte 2 of the line is not UTF-8");
    refused(b"id,name\n\xFF,x\n", "t.csv line 2: column id, byte 1 of the line is not UTF-8");
    refused(b"\xFF\xFEi\0d\0\n", "t.csv line 1: field 1, byte 1 of the line is not UTF-8");
    refused(b"id,name\nx,y\n2,\xE9\n", "t.csv line 2: column id is bigint, but 'x' is not a whole number");
}

#[test]
fn the_first_line_with_a_misfit_is_named_whatever_its_column() {
    refused(
        "name,amount,id\nx,1.00,1\ny,12.345,2\nz,3.00,1.5\n",
        "t.csv line 3: column amount is decimal(12,2), but '12.345' has digits past its scale",
    );
    refused("id,amount\n1,1\nx,1\n2,y\n3\n", "t.csv line 3: column id is bigint, but 'x' is not a whole number");
    let error =
        load("id,at\n1,2026-10-05T12:00:00Z\n2,2026-10-05T12:00:00+05:30\n3,2026-10-05 12:00:00\n").unwrap_err();
    assert_eq!(
        error.message(),
        "t.csv line 4: column at is timestamp, but '2026-10-05 12:00:00' has no offset from UTC"
    );
    assert!(error.advice().unwrap().contains("2026-10-05T04:12:00Z"));
}

#[test]
fn a_misfit_late_in_the_file_is_found() {
    let mut text = String::from("id\n");
    (0..25_000).for_each(|i| text.push_str(&format!("{i}\n")));
    text.push_str("1.5\n");
    refused(text, "t.csv line 25002: column id is bigint, but '1.5' is not a whole number");
}

#[test]
fn many_quoted_line_ends_split_no_record() {
    let mut text = String::from("id,name\n");
    (0..60_000).for_each(|i| text.push_str(&format!("{i},\"line\nand\r\nline of \"\"{i}\"\", done\"\n")));
    let (batch, lines) = load(&text).unwrap().unwrap();
    assert_eq!(batch.num_rows(), 60_000);
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().value(59_999), 59_999);
    assert_eq!(batch.column(1).as_string::<i32>().value(7), "line\nand\r\nline of \"7\", done");
    assert_eq!(lines[59_999], 2 + 3 * 59_999);
}

#[test]
fn a_field_larger_than_a_chunk_is_whole() {
    let long = "x\n".repeat(2 << 20);
    let (batch, lines) = load(format!("id,name\n1,\"{long}\"\n2,y\n")).unwrap().unwrap();
    assert_eq!(batch.column(1).as_string::<i32>().value(0), long);
    assert_eq!(lines, [2, 3 + (2 << 20)]);
}

#[test]
fn a_record_longer_than_allowed_is_refused() {
    let run = |text: &[u8]| {
        let chunks = chunks::sized_chunks(pieces(text, 7), Some(b'"'), 16, 64);
        let options = CsvOptions::default();
        let dialect = options.dialect().unwrap();
        run(async { read_chunks("t.csv".into(), chunks, &schema(), options, dialect, 2).await?.try_collect().await })
    };
    let open = [b"id,name\n1,x\n2,\"".to_vec(), b"y\n".repeat(100)].concat();
    let error = gather(run(&open)).unwrap_err();
    assert_eq!(error.message(), "t.csv line 3: the record is longer than 64 MiB");
    let stray = [b"id,name\n1,x\n2,y\"".to_vec(), b"y\n".repeat(100)].concat();
    let error = gather(run(&stray)).unwrap_err();
    assert_eq!(error.message(), "t.csv line 3: column name has a quote but does not start with it");
}

#[test]
fn an_error_of_the_bytes_is_passed_on_and_ends_the_stream() {
    let bytes = stream::iter([Ok(Bytes::from_static(b"id\n1\n")), Err(Error::retryable("gone"))]).boxed();
    let results = run(read("t.csv".into(), bytes, &schema(), &CsvOptions::default(), 2).collect::<Vec<_>>());
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].as_ref().unwrap_err().message(), "gone");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Fields, quotes and mistakes of all kinds: what is read, and what is refused, does not hang on how bytes come.
    #[test]
    fn chunks_never_show(
        header in prop_oneof![Just("id,name\n"), Just("\u{FEFF}name,id\r\n"), Just("name\n")],
        records in proptest::collection::vec(
            prop_oneof![
                8 => "[0-9]{1,3},[a-zé ]{0,5}\r?\n",
                8 => "\"?[0-9]\"?,\"([a-zé,\r\n]|\"\"){0,8}\"\r?\n",
                3 => "\r?\n",
                1 => "[a-z0-9,\"\r\n]{0,8}",
            ],
            0..30,
        ),
        broken in proptest::option::of(0_usize..400),
        piece in 1_usize..50,
        size in 1_usize..100,
        parallelism in 1_usize..4,
    ) {
        let mut text = [header.as_bytes(), records.concat().as_bytes()].concat();
        if let Some(byte) = broken.and_then(|at| text.get_mut(at)) {
            *byte = 0xE9;
        }
        let options = CsvOptions::default();
        let dialect = options.dialect().unwrap();
        let chunked = gather(run(async {
            let chunks = chunks::sized_chunks(pieces(&text, piece), dialect.quote, size, 1 << 20);
            read_chunks("t.csv".into(), chunks, &schema(), options, dialect, parallelism).await?.try_collect().await
        }));
        match (load(&text), chunked) {
            (Ok(whole), Ok(chunked)) => prop_assert_eq!(whole, chunked),
            (whole, chunked) => {
                let text = |result: Result<_>| result.err().map(|error| error.to_string());
                prop_assert_eq!(text(whole.map(drop)), text(chunked.map(drop)));
            }
        }
    }
}
