use std::sync::Arc;

use arrow::array::types::Int32Type;
use arrow::array::*;
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Fields, Int8Type, i256};
use deltalake::kernel::engine::arrow_conversion::TryIntoArrow;

use super::*;
use crate::source::Unit;
use crate::table::columns;

fn table(sql: &str) -> TableSchema {
    let schema: Schema = (&columns::parse(sql).unwrap()).try_into_arrow().unwrap();
    TableSchema::new(schema.into(), Vec::new())
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn conform(sql: &str, columns: Vec<(&str, ArrayRef)>) -> Result<RecordBatch> {
    let (table, rows) = (table(sql), batch(columns));
    let conform = Conform::new(&table, rows.schema_ref(), "in.parquet")?;
    let places = Places::consecutive("in.parquet".into(), Unit::Row, 11);
    let (rows, _) = conform.apply(SourceBatch { rows, places })?;
    assert_eq!(rows.schema_ref(), table.columns());
    Ok(rows)
}

fn message(sql: &str, columns: Vec<(&str, ArrayRef)>) -> String {
    let error = conform(sql, columns).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Refused);
    error.message().to_owned()
}

#[test]
fn columns_match_by_name() {
    let rows = conform(
        "id bigint not null, note string, amount decimal(5,2)",
        vec![("amount", Arc::new(Int8Array::from(vec![1, 2]))), ("id", Arc::new(UInt32Array::from(vec![7, 8])))],
    )
    .unwrap();
    assert_eq!(rows.column(0).as_ref(), &Int64Array::from(vec![7, 8]));
    assert_eq!(rows.column(1).null_count(), 2);
    let amounts = Decimal128Array::from(vec![100, 200]).with_precision_and_scale(5, 2).unwrap();
    assert_eq!(rows.column(2).as_ref(), &amounts);

    let source = Schema::new(vec![Field::new("id", DataType::Int64, true)]);
    let conform = Conform::new(&table("id bigint, note string, s struct<a: int>"), &source, "x").unwrap();
    assert_eq!(conform.missing(), ["note", "s"]);
}

#[test]
fn columns_that_do_not_match_are_named() {
    let one: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let many = vec![("id", one.clone()), ("x", one.clone()), ("y", one.clone())];
    assert_eq!(message("id int", many), "in.parquet has the columns x, y, which the table has not");
    assert_eq!(message("id int", vec![("ID", one.clone())]), "in.parquet has the column ID, which the table spells id");
    assert_eq!(
        message("id int, k int not null", vec![("id", one.clone())]),
        "in.parquet has no column k, which the table says is not null"
    );
    assert_eq!(
        message("id string", vec![("id", one.clone())]),
        "in.parquet has the column id as int, but the table's is string"
    );
    for sql in ["id boolean", "id date", "id timestamp", "id binary", "id array<int>"] {
        assert!(message(sql, vec![("id", one.clone())]).contains("has the column id as int"), "{sql}");
    }
    let text: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
    for sql in ["id int", "id double", "id date", "id timestamp", "id binary", "id boolean", "id decimal(3,1)"] {
        assert!(message(sql, vec![("id", text.clone())]).contains("has the column id as string"), "{sql}");
    }
    let double: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
    for sql in ["id float", "id bigint", "id decimal(3,1)"] {
        assert!(message(sql, vec![("id", double.clone())]).contains("has the column id as double"), "{sql}");
    }
}

#[test]
fn integers_that_fit_are_kept_and_others_refused() {
    let wide: ArrayRef = Arc::new(Int64Array::from(vec![Some(-128), None, Some(127)]));
    let rows = conform("c tinyint", vec![("c", wide)]).unwrap();
    assert_eq!(rows.column(0).as_primitive::<Int8Type>(), &Int8Array::from(vec![Some(-128), None, Some(127)]));
    let over: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(128)]));
    assert_eq!(message("c tinyint", vec![("c", over)]), "in.parquet row 12: column c: 128 does not fit tinyint");
    let unsigned: ArrayRef = Arc::new(UInt64Array::from(vec![1, u64::MAX]));
    assert_eq!(
        message("c bigint", vec![("c", unsigned.clone())]),
        "in.parquet row 12: column c: 18446744073709551615 does not fit bigint"
    );
    let rows = conform("c decimal(20,0)", vec![("c", unsigned)]).unwrap();
    assert_eq!(rows.column(0).as_primitive::<arrow::datatypes::Decimal128Type>().value(1), i128::from(u64::MAX));
    let big: ArrayRef = Arc::new(Int64Array::from(vec![1 << 53, (1 << 53) + 1]));
    assert_eq!(
        message("c double", vec![("c", big)]),
        "in.parquet row 12: column c: 9007199254740993 does not fit double"
    );
}

#[test]
fn decimals_are_exact() {
    let cents: ArrayRef =
        Arc::new(Decimal128Array::from(vec![Some(1990), None, Some(1995)]).with_precision_and_scale(10, 2).unwrap());
    assert_eq!(
        message("c decimal(10,1)", vec![("c", cents.clone())]),
        "in.parquet row 13: column c: 19.95 does not fit decimal(10,1)"
    );
    assert_eq!(
        message("c decimal(4,3)", vec![("c", cents.clone())]),
        "in.parquet row 11: column c: 19.90 does not fit decimal(4,3)"
    );
    let rows = conform("c decimal(38,20)", vec![("c", cents)]).unwrap();
    assert_eq!(
        rows.column(0).as_primitive::<arrow::datatypes::Decimal128Type>().value_as_string(2),
        "19.95000000000000000000"
    );
    let huge: ArrayRef =
        Arc::new(Decimal256Array::from(vec![i256::from_i128(5), i256::MAX]).with_precision_and_scale(76, 1).unwrap());
    assert!(message("c decimal(38,1)", vec![("c", huge)]).starts_with("in.parquet row 12: column c: 5789"));
    let narrow: ArrayRef = Arc::new(Decimal32Array::from(vec![15]).with_precision_and_scale(4, 1).unwrap());
    assert_eq!(conform("c decimal(4,1)", vec![("c", narrow)]).unwrap().num_rows(), 1);
}

#[test]
fn times_keep_every_digit_and_their_kind() {
    let nanos = TimestampNanosecondArray::from(vec![Some(-1_000), None, Some(1_001)]).with_timezone("Europe/Berlin");
    let nanos: ArrayRef = Arc::new(nanos);
    assert_eq!(
        message("t timestamp", vec![("t", nanos.clone())]),
        "in.parquet row 13: column t: 1970-01-01T01:00:00.000001001+01:00 does not fit timestamp"
    );
    let rows = conform("t timestamp", vec![("t", nanos.slice(0, 2))]).unwrap();
    let expected = TimestampMicrosecondArray::from(vec![Some(-1), None]).with_timezone("UTC");
    assert_eq!(rows.column(0).as_ref(), &expected);

    let naive: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1]));
    assert_eq!(
        message("t timestamp", vec![("t", naive.clone())]),
        "in.parquet has the column t as timestamp_ntz, but the table's is timestamp"
    );
    let rows = conform("t timestamp_ntz", vec![("t", naive)]).unwrap();
    assert_eq!(rows.column(0).as_ref(), &TimestampMicrosecondArray::from(vec![1_000_000]));
    assert!(message("t timestamp_ntz", vec![("t", nanos)]).contains("as timestamp, but the table's is timestamp_ntz"));
    let far: ArrayRef = Arc::new(TimestampSecondArray::from(vec![i64::MAX / 1000]));
    assert!(message("t timestamp_ntz", vec![("t", far)]).ends_with("does not fit timestamp_ntz"));

    let days: ArrayRef = Arc::new(Date64Array::from(vec![86_400_000, 86_400_001]));
    assert!(
        message("d date", vec![("d", days.clone())])
            .starts_with("in.parquet row 12: column d: 1970-01-02T00:00:00.001")
    );
    assert_eq!(
        conform("d date", vec![("d", days.slice(0, 1))]).unwrap().column(0).as_ref(),
        &Date32Array::from(vec![1])
    );
}

#[test]
fn strings_and_binaries_of_every_kind() {
    let dictionary: DictionaryArray<Int32Type> = vec![Some("a"), None, Some("a")].into_iter().collect();
    let texts: [ArrayRef; 3] = [
        Arc::new(dictionary),
        Arc::new(StringViewArray::from(vec![Some("a"), None, Some("a")])),
        Arc::new(LargeStringArray::from(vec![Some("a"), None, Some("a")])),
    ];
    for text in texts {
        let rows = conform("c string", vec![("c", text)]).unwrap();
        assert_eq!(rows.column(0).as_ref(), &StringArray::from(vec![Some("a"), None, Some("a")]));
    }
    let fixed: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([vec![1_u8, 2]].into_iter()).unwrap());
    let rows = conform("c binary", vec![("c", fixed)]).unwrap();
    assert_eq!(rows.column(0).as_ref(), &BinaryArray::from(vec![&[1_u8, 2][..]]));
    let nulls: ArrayRef = Arc::new(NullArray::new(2));
    assert_eq!(conform("c map<string,int>", vec![("c", nulls.clone())]).unwrap().column(0).null_count(), 2);
    assert_eq!(
        message("c int not null", vec![("c", nulls)]),
        "in.parquet row 11: column c: null does not fit int not null"
    );
}

fn fields(fields: Vec<(&str, DataType)>) -> Fields {
    fields.into_iter().map(|(name, data_type)| Field::new(name, data_type, true)).collect()
}

#[test]
fn structs_match_by_name_and_stay_null() {
    let source = fields(vec![("b", DataType::Int64), ("a", DataType::Utf8View)]);
    // The null struct's memory holds a value that would not fit.
    let rows = StructArray::new(
        source.clone(),
        vec![
            Arc::new(Int64Array::from(vec![Some(1), Some(1 << 40), Some(3)])),
            Arc::new(StringViewArray::from(vec!["x", "y", "z"])),
        ],
        Some(NullBuffer::from(vec![true, false, true])),
    );
    let sql = "s struct<a: string not null, b: int, c: date>";
    let cast = conform(sql, vec![("s", Arc::new(rows))]).unwrap();
    let cast = cast.column(0).as_struct();
    assert!(cast.is_null(1));
    assert_eq!(cast.column(1).as_primitive::<Int32Type>().value(2), 3);
    assert_eq!(cast.column(2).null_count(), 3);

    let hole = StructArray::new(
        source,
        vec![Arc::new(Int64Array::from(vec![1, 1 << 40])), Arc::new(StringViewArray::from(vec![Some("x"), None]))],
        None,
    );
    let hole: ArrayRef = Arc::new(hole);
    assert_eq!(
        message(sql, vec![("s", hole.clone())]),
        "in.parquet row 12: column s.a: null does not fit string not null"
    );
    assert_eq!(
        message("s struct<a: string, b: int>", vec![("s", hole.clone())]),
        "in.parquet row 12: column s.b: 1099511627776 does not fit int"
    );
    assert_eq!(
        message("s struct<a: string>", vec![("s", hole)]),
        "in.parquet has the column s.b, which the table has not"
    );
}

#[test]
fn lists_name_the_row_that_holds_a_misfit() {
    let element = Arc::new(Field::new("item", DataType::Int64, true));
    let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 1 << 40, 2, 1 << 40]));
    let offsets = OffsetBuffer::new(vec![0_i64, 1, 2, 2, 4].into());
    // Row 1 is null but spans a value that would not fit; row 2 is empty.
    let nulls = Some(NullBuffer::from(vec![true, false, true, true]));
    let list: ArrayRef = Arc::new(LargeListArray::new(element, offsets, values, nulls));
    assert_eq!(
        message("l array<int>", vec![("l", list.clone())]),
        "in.parquet row 14: column l.element: 1099511627776 does not fit int"
    );
    let rows = conform("l array<int>", vec![("l", list.slice(0, 3))]).unwrap();
    let cast = rows.column(0).as_list::<i32>();
    assert_eq!(cast.value(0).as_primitive::<Int32Type>().values(), &[1]);
    assert!(cast.is_null(1));
    assert!(cast.is_valid(2) && cast.value(2).is_empty());

    let fixed = FixedSizeListArray::from_iter_primitive::<arrow::datatypes::Int16Type, _, _>(
        [None, Some(vec![Some(1), None])],
        2,
    );
    let rows = conform("l array<bigint>", vec![("l", Arc::new(fixed))]).unwrap();
    let cast = rows.column(0).as_list::<i32>();
    assert!(cast.is_null(0));
    assert_eq!(cast.value(1).as_ref(), &Int64Array::from(vec![Some(1), None]));
}

#[test]
fn maps_are_cast_by_side() {
    let mut builder = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    builder.keys().append_value("a");
    builder.values().append_value(1);
    builder.append(true).unwrap();
    builder.append(false).unwrap();
    builder.keys().append_value("b");
    builder.values().append_value(1 << 40);
    builder.append(true).unwrap();
    let map: ArrayRef = Arc::new(builder.finish());
    let rows = conform("m map<string,int>", vec![("m", map.slice(0, 2))]).unwrap();
    let cast = rows.column(0).as_map();
    assert_eq!(cast.values().as_primitive::<Int32Type>().values(), &[1]);
    assert!(cast.is_null(1));
    assert_eq!(
        message("m map<string,int>", vec![("m", map)]),
        "in.parquet row 13: column m.value: 1099511627776 does not fit int"
    );
}
