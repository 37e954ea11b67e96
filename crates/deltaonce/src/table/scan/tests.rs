use std::collections::BTreeMap;

use arrow::array::{ArrayRef, AsArray, Int32Array};
use arrow::datatypes::{Int64Type, TimestampMicrosecondType};
use futures::TryStreamExt;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use parquet::arrow::ArrowWriter;
use parquet::data_type::{Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::*;
use crate::error::ErrorKind;
use crate::table::actions::DeletionVector;

fn utc() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

fn schema(fields: &[(&str, DataType)], partition_by: &[&str]) -> TableSchema {
    let fields: Fields = fields.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true)).collect();
    TableSchema::new(Arc::new(Schema::new(fields)), partition_by.iter().map(|name| (*name).to_owned()).collect())
}

async fn stored(bytes: Vec<u8>, partition_values: &[(&str, Option<&str>)]) -> (Arc<dyn ObjectStore>, AddFile) {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let size = bytes.len() as i64;
    store.put(&Path::from("a b.parquet"), bytes.into()).await.unwrap();
    let values = partition_values.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned)));
    let file = AddFile {
        path: "a%20b.parquet".to_owned(),
        partition_values: values.collect::<BTreeMap<_, _>>(),
        size,
        modification_time: 0,
        data_change: true,
        stats: None,
        tags: None,
        deletion_vector: None,
        base_row_id: None,
        default_row_commit_version: None,
        clustering_provider: None,
    };
    (store, file)
}

fn parquet(rows: &RecordBatch, group_rows: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
    let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), Some(properties)).unwrap();
    writer.write(rows).unwrap();
    writer.close().unwrap();
    bytes
}

fn numbers(count: i32) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int32Array::from_iter_values(0..count));
    RecordBatch::try_from_iter([("b", column.clone()), ("a", column)]).unwrap()
}

#[tokio::test]
async fn rows_come_in_order_with_their_places_over_row_groups() {
    let (store, file) = stored(parquet(&numbers(20_000), 9_000), &[]).await;
    let schema = schema(&[("a", DataType::Int64), ("b", DataType::Int32)], &[]);
    let batches: Vec<Scanned> = scan(store, &schema, &file, &[0]).try_collect().await.unwrap();
    let mut next = 0;
    for batch in &batches {
        assert_eq!(batch.places.of(0), next as u64);
        assert_eq!(batch.rows.num_columns(), 1);
        for value in batch.rows.column(0).as_primitive::<Int64Type>().values() {
            assert_eq!(*value, next);
            next += 1;
        }
    }
    assert_eq!(next, 20_000);
}

#[tokio::test]
async fn partition_values_and_missing_columns_are_filled_in() {
    let values =
        [("day", Some("2026-10-05")), ("at", Some("2026-10-05 01:02:03.5")), ("none", Some("")), ("nil", None)];
    let (store, file) = stored(parquet(&numbers(3), 100), &values).await;
    let columns = [
        ("day", DataType::Date32),
        ("at", utc()),
        ("later", DataType::Utf8),
        ("b", DataType::Int32),
        ("none", DataType::Utf8),
        ("nil", DataType::Int64),
    ];
    let schema = schema(&columns, &["day", "at", "none", "nil"]);
    let scanned = scan(store.clone(), &schema, &file, &[1, 2, 0, 3, 4, 5]).try_next().await.unwrap().unwrap();
    let rows = scanned.rows;
    assert_eq!(rows.column(0).as_primitive::<TimestampMicrosecondType>().value(2), 1_791_162_123_500_000);
    assert_eq!(rows.column(0).data_type(), &utc());
    assert_eq!(rows.column(1).null_count(), 3);
    assert_eq!(rows.column(2).as_primitive::<arrow::datatypes::Date32Type>().value(0), 20_731);
    assert_eq!(rows.column(3).as_primitive::<arrow::datatypes::Int32Type>().values(), &[0, 1, 2]);
    assert_eq!((rows.column(4).null_count(), rows.column(5).null_count()), (3, 3));
    // No column of the file is needed, and still there are its rows.
    let scanned = scan(store, &schema, &file, &[0]).try_next().await.unwrap().unwrap();
    assert_eq!(scanned.rows.num_rows(), 3);
}

#[tokio::test]
async fn int96_timestamps_are_utc_of_any_year() {
    let message = Arc::new(parse_message_type("message m { OPTIONAL INT96 at; }").unwrap());
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, message, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    // Julian days of 1970-01-02 and 9999-12-31, with the nanoseconds of 1.5 µs into the day.
    let at = |julian: u32| Int96::from(vec![1_500, 0, julian]);
    column.typed::<Int96Type>().write_batch(&[at(2_440_589), at(5_373_484)], Some(&[1, 1]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let (store, file) = stored(bytes, &[]).await;
    let scanned = scan(store, &schema(&[("at", utc())], &[]), &file, &[0]).try_next().await.unwrap().unwrap();
    assert_eq!(scanned.rows.column(0).data_type(), &utc());
    let micros = scanned.rows.column(0).as_primitive::<TimestampMicrosecondType>().values().to_vec();
    assert_eq!(micros, [86_400_000_001, 253_402_214_400_000_001]);
}

#[tokio::test]
async fn what_cannot_be_read_rightly_is_an_error_that_names_the_file() {
    let fields = [("a", DataType::Int64)];
    let (store, good) = stored(parquet(&numbers(3), 100), &[]).await;
    let vector = DeletionVector {
        storage_type: "u".to_owned(),
        path_or_inline_dv: String::new(),
        offset: None,
        size_in_bytes: 1,
        cardinality: 1,
    };
    let masked = AddFile { deletion_vector: Some(vector), ..good.clone() };
    let gone = AddFile { path: "gone.parquet".to_owned(), ..good.clone() };
    let outside = AddFile { path: "s3://other/x.parquet".to_owned(), ..good.clone() };
    let (broken_store, broken) =
        stored(b"PAR1 this is no Parquet at all, only its mark at both ends PAR1".to_vec(), &[]).await;
    let odd = schema(&[("a", DataType::Date32)], &[]);
    let partitioned = schema(&[("a", DataType::Date32)], &["a"]);
    let no_date = AddFile { partition_values: [("a".to_owned(), Some("5".to_owned()))].into(), ..good.clone() };
    let table = schema(&fields, &[]);
    for (store, schema, file, kind) in [
        (&store, &table, &masked, ErrorKind::Unsupported),
        (&store, &table, &gone, ErrorKind::Retryable),
        (&store, &table, &outside, ErrorKind::Unsupported),
        (&broken_store, &table, &broken, ErrorKind::Unsupported),
        (&store, &odd, &good, ErrorKind::Unsupported),
        (&store, &partitioned, &good, ErrorKind::Unsupported),
        (&store, &partitioned, &no_date, ErrorKind::Unsupported),
    ] {
        let error = scan(store.clone(), schema, file, &[0]).try_collect::<Vec<_>>().await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(&file.path), "{error}");
    }
}

#[tokio::test]
async fn rows_are_picked_by_their_places_and_masked_ones_left_out() {
    let (store, mut file) = stored(parquet(&numbers(20_000), 9_000), &[]).await;
    let masked: RoaringTreemap = (0..20_000).filter(|place| place % 3 == 0).collect();
    let vector = deletion_vector::encode(&[masked], || uuid::Uuid::from_u128(7)).unwrap().remove(0);
    store.put(&vector.path, vector.bytes.into()).await.unwrap();
    file.deletion_vector = vector.vectors.first().cloned();
    let schema = schema(&[("a", DataType::Int64), ("b", DataType::Int32)], &[]);
    let values = |batches: Vec<Scanned>| -> Vec<i64> {
        let rows = batches.iter().flat_map(|batch| {
            let values = batch.rows.column(0).as_primitive::<Int64Type>().values();
            (0..values.len()).for_each(|row| assert_eq!(batch.places.of(row), values[row] as u64));
            values.iter().copied()
        });
        rows.collect()
    };
    let all: Vec<Scanned> = scan(store.clone(), &schema, &file, &[0]).try_collect().await.unwrap();
    assert_eq!(values(all), (0..20_000).filter(|place| place % 3 != 0).collect::<Vec<_>>());
    let open = OpenFile::open(store, &schema, &file).await.unwrap();
    let some = RowRanges::of([5..12, 8_998..9_003, 17_999..18_001]);
    let picked: Vec<Scanned> = open.scan(&[0], Some(&some), Ok).try_collect().await.unwrap();
    assert_eq!(
        values(picked),
        [5, 7, 8, 10, 11, 8_998, 8_999, 9_001, 9_002, 17_999, 18_000]
            .map(|n| n)
            .into_iter()
            .filter(|n| n % 3 != 0)
            .collect::<Vec<_>>()
    );
    let none = RowRanges::at([3]);
    assert!(open.scan(&[0], Some(&none), Ok).try_collect::<Vec<_>>().await.unwrap().is_empty());
}
