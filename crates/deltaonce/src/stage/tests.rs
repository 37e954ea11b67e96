use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow::buffer::NullBuffer;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Fields, Int32Type, Int64Type, Schema};
use futures::stream::{self, BoxStream, StreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, UploadPart,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::bloom_filter::Sbbf;
use parquet::file::metadata::ParquetMetaData;
use serde_json::{Value as Json, json};

use super::*;
use crate::error::ErrorKind;
use crate::host::SystemHost;

struct Table {
    _folder: tempfile::TempDir,
    store: Arc<dyn ObjectStore>,
}

impl Table {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(LocalFileSystem::new_with_prefix(folder.path()).unwrap());
        Self { _folder: folder, store }
    }

    fn stager(&self, batch: &RecordBatch, partition_by: &[&str], properties: &[(&str, &str)]) -> Result<Stager> {
        stager(self.store.clone(), batch, partition_by, properties)
    }

    /// The footer and the rows of a file.
    async fn read(&self, add: &AddFile) -> (Arc<ParquetMetaData>, RecordBatch) {
        let bytes = self.store.get(&add.location().unwrap()).await.unwrap().bytes().await.unwrap();
        assert_eq!(bytes.len() as i64, add.size, "the size in the log is the file's");
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
        let (footer, schema) = (reader.metadata().clone(), reader.schema().clone());
        let batches: Vec<_> = reader.build().unwrap().map(|batch| batch.unwrap()).collect();
        (footer, concat_batches(&schema, &batches).unwrap())
    }

    /// Everything below the table's folder, what the store hides from listings included.
    fn files(&self) -> BTreeSet<String> {
        fn walk(folder: &std::path::Path, found: &mut BTreeSet<String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, found);
                } else {
                    found.insert(path.file_name().unwrap().to_string_lossy().into_owned());
                }
            }
        }
        let mut found = BTreeSet::new();
        walk(self._folder.path(), &mut found);
        found
    }
}

fn stager(
    store: Arc<dyn ObjectStore>,
    batch: &RecordBatch,
    partition_by: &[&str],
    properties: &[(&str, &str)],
) -> Result<Stager> {
    let schema = TableSchema::new(batch.schema(), partition_by.iter().map(|name| (*name).to_owned()).collect());
    let properties: BTreeMap<_, _> = properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Stager::new("t".into(), store, &schema, &properties, &[], Arc::new(SystemHost::default()), 2)
}

fn batches(batches: Vec<RecordBatch>) -> BoxStream<'static, Result<RecordBatch>> {
    stream::iter(batches.into_iter().map(Ok)).boxed()
}

fn stats(add: &AddFile) -> Json {
    serde_json::from_str(add.stats.as_deref().unwrap()).unwrap()
}

fn batch<'a>(columns: impl IntoIterator<Item = (&'a str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}

fn numbers(range: std::ops::Range<i64>) -> RecordBatch {
    batch([("n", Arc::new(Int64Array::from_iter_values(range)) as ArrayRef)])
}

/// Numbers that do not compress: each differs in all of its bytes.
fn noise(rows: i64, seed: i64) -> RecordBatch {
    let mix = |n: i64| {
        (n ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64).rotate_left(29).wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    batch([("n", Arc::new(Int64Array::from_iter_values((0..rows).map(mix))) as ArrayRef)])
}

#[tokio::test]
async fn statistics_bound_every_type_exactly_or_outwards() {
    let table = Table::new();
    let leaf_fields = Fields::from(vec![Field::new("c", DataType::Utf8, true)]);
    let leaf = StructArray::new(
        leaf_fields.clone(),
        vec![Arc::new(StringArray::from(vec![Some("x"), Some("hidden"), None])) as ArrayRef],
        Some(NullBuffer::from(vec![true, false, true])),
    );
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)]), None, None]);
    let rows = batch([
        ("flag", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])) as ArrayRef),
        ("tiny", Arc::new(Int8Array::from(vec![Some(-128), None, Some(127)])) as ArrayRef),
        ("small", Arc::new(Int16Array::from(vec![-32768, 0, 32767])) as ArrayRef),
        ("int", Arc::new(Int32Array::from(vec![i32::MIN, 0, i32::MAX])) as ArrayRef),
        ("long", Arc::new(Int64Array::from(vec![i64::MIN, 0, i64::MAX])) as ArrayRef),
        ("real", Arc::new(Float32Array::from(vec![0.1_f32, 1.5, 16_777_216.0])) as ArrayRef),
        ("double", Arc::new(Float64Array::from(vec![0.0, -0.0, 0.0])) as ArrayRef),
        ("nan", Arc::new(Float64Array::from(vec![1.0, f64::NAN, 2.0])) as ArrayRef),
        ("endless", Arc::new(Float64Array::from(vec![1.0, f64::INFINITY, 2.0])) as ArrayRef),
        ("money", decimals(&[-1, 99_999, 1], 5, 2)),
        ("wide", decimals(&[12_345_678_901_234_567_890_123_456_789_012_345_678, -1, 0], 38, 18)),
        ("middle", decimals(&[999_999_999_999_999_999, -5, 0], 18, 0)),
        ("bytes", Arc::new(BinaryArray::from_vec(vec![b"a", b"b", b"c"])) as ArrayRef),
        ("day", Arc::new(Date32Array::from(vec![Some(-719_162), Some(20_731), None])) as ArrayRef),
        (
            "at",
            Arc::new(TimestampMicrosecondArray::from(vec![1, 1_791_194_400_123_456, 5]).with_timezone("UTC"))
                as ArrayRef,
        ),
        ("local", Arc::new(TimestampMicrosecondArray::from(vec![-1, 5_000, 0])) as ArrayRef),
        ("text", Arc::new(StringArray::from(vec!["\"é\"\n", &"ü".repeat(40), "m"])) as ArrayRef),
        ("empty", Arc::new(StringArray::from(vec![None::<&str>, None, None])) as ArrayRef),
        ("outer", Arc::new(leaf) as ArrayRef),
        ("list", Arc::new(lists) as ArrayRef),
        ("last", Arc::new(Int32Array::from(vec![1, 2, 3])) as ArrayRef),
    ]);
    let adds = table.stager(&rows, &[], &[]).unwrap().write(batches(vec![rows.clone()])).await.unwrap();
    let [add] = adds.as_slice() else { panic!("{adds:?}") };
    let text = add.stats.as_deref().unwrap();
    let stats = stats(add);

    assert_eq!(stats["numRecords"], 3);
    assert_eq!(stats["tightBounds"], true);
    let ends = |column: &str| (stats["minValues"][column].clone(), stats["maxValues"][column].clone());
    assert_eq!(ends("tiny"), (json!(-128), json!(127)));
    assert_eq!(ends("small"), (json!(-32768), json!(32767)));
    assert_eq!(ends("int"), (json!(i32::MIN), json!(i32::MAX)));
    assert_eq!(ends("long"), (json!(i64::MIN), json!(i64::MAX)));
    assert!(text.contains(r#""real":0.1,"#) && text.contains(r#""real":16777216.0"#), "{text}");
    assert!(text.contains(r#""double":-0.0"#) && text.contains(r#""double":0.0"#), "{text}");
    assert!(text.contains(r#""money":-0.01"#) && text.contains(r#""money":999.99"#), "{text}");
    assert!(text.contains(r#""wide":-0.000000000000000001"#), "{text}");
    assert!(text.contains(r#""wide":12345678901234567890.123456789012345678"#), "{text}");
    assert!(text.contains(r#""middle":-5"#) && text.contains(r#""middle":999999999999999999"#), "{text}");
    assert_eq!(ends("day"), (json!("0001-01-01"), json!("2026-10-05")));
    assert_eq!(ends("at"), (json!("1970-01-01T00:00:00.000Z"), json!("2026-10-05T10:00:00.124Z")));
    assert_eq!(ends("local"), (json!("1969-12-31T23:59:59.999"), json!("1970-01-01T00:00:00.005")));
    assert_eq!(ends("text"), (json!("\"é\"\n"), json!(format!("{}ý", "ü".repeat(31)))));
    assert_eq!(ends("outer"), (json!({"c": "x"}), json!({"c": "x"})));
    assert_eq!(ends("last"), (json!(1), json!(3)));
    assert_eq!(ends("endless"), (json!(1.0), Json::Null));
    for unbounded in ["flag", "nan", "bytes", "empty", "list"] {
        assert_eq!(ends(unbounded), (Json::Null, Json::Null), "{unbounded}");
    }
    let nulls = &stats["nullCount"];
    for (column, count) in [("flag", 1), ("tiny", 1), ("long", 0), ("day", 1), ("empty", 3), ("list", 2), ("bytes", 0)]
    {
        assert_eq!(nulls[column], count, "{column}");
    }
    assert_eq!(nulls["outer"], json!({"c": 2}), "a field of a null struct is null");

    let (_, read) = table.read(add).await;
    for (name, column) in
        rows.schema().fields().iter().zip(rows.columns()).map(|(field, column)| (field.name(), column))
    {
        if name != "list" && name != "outer" {
            assert_eq!(read.column_by_name(name).unwrap().to_data(), column.to_data(), "{name}");
        }
    }
    assert_eq!(read.num_rows(), 3);
}

fn decimals(unscaled: &[i128], precision: u8, scale: i8) -> ArrayRef {
    Arc::new(Decimal128Array::from(unscaled.to_vec()).with_precision_and_scale(precision, scale).unwrap())
}

#[tokio::test]
async fn statistics_cover_all_row_groups_of_a_file() {
    let table = Table::new();
    let parts: Vec<_> = (0..20)
        .map(|i| {
            let n = Int64Array::from_iter_values((0..60_000).map(|k| (k + i * 60_000 + 500_000) % 1_200_000));
            let s = StringArray::from_iter_values(n.values().iter().map(|n| format!("s{n:07}")));
            batch([("n", Arc::new(n) as ArrayRef), ("s", Arc::new(s) as ArrayRef)])
        })
        .collect();
    let single = Stager { parallelism: 1, ..table.stager(&parts[0], &[], &[]).unwrap() };
    let adds = single.write(batches(parts)).await.unwrap();
    let [add] = adds.as_slice() else { panic!("{adds:?}") };
    let (footer, _) = table.read(add).await;
    assert_eq!(footer.num_row_groups(), 2);
    assert!(footer.file_metadata().created_by().unwrap().starts_with("deltaonce version "));
    assert_eq!(stats(add)["minValues"], json!({"n": 0, "s": "s0000000"}));
    assert_eq!(stats(add)["maxValues"], json!({"n": 1_199_999, "s": "s1199999"}));
}

#[tokio::test]
async fn properties_choose_columns_with_statistics_and_the_codec() {
    let table = Table::new();
    let struct_ = StructArray::from(vec![
        (Arc::new(Field::new("x", DataType::Int32, true)), Arc::new(Int32Array::from(vec![1])) as ArrayRef),
        (Arc::new(Field::new("y", DataType::Int32, true)), Arc::new(Int32Array::from(vec![2])) as ArrayRef),
    ]);
    let rows = batch([
        ("p", Arc::new(Int32Array::from(vec![9])) as ArrayRef),
        ("s", Arc::new(struct_) as ArrayRef),
        ("z", Arc::new(Int32Array::from(vec![3])) as ArrayRef),
    ]);
    for (property, value, expected) in [
        ("delta.dataSkippingNumIndexedCols", "1", json!({"s": {"x": 1}})),
        ("delta.dataSkippingNumIndexedCols", "0", json!({})),
        ("delta.dataSkippingNumIndexedCols", "-1", json!({"s": {"x": 1, "y": 2}, "z": 3})),
        ("delta.dataSkippingStatsColumns", "s.y,z", json!({"s": {"y": 2}, "z": 3})),
    ] {
        let stager = table.stager(&rows, &["p"], &[(property, value), ("delta.parquet.compression.codec", "zstd")]);
        let adds = stager.unwrap().write(batches(vec![rows.clone()])).await.unwrap();
        assert_eq!(stats(&adds[0])["minValues"], expected, "{property}={value}");
        assert!(adds[0].path.ends_with(".zstd.parquet"), "{}", adds[0].path);
    }
}

#[tokio::test]
async fn unusual_partition_values_lead_back_to_their_file() {
    let table = Table::new();
    let long = "ä".repeat(200);
    let values = [
        Some("/x/"),
        Some("a%b"),
        Some("é"),
        Some("a=b"),
        Some(".."),
        Some("."),
        Some("~"),
        Some(" a b "),
        Some("q\"u'o`te"),
        Some("a:b#c?d&e+f"),
        Some("{[^|\\]}*"),
        Some("tab\tnul\0line\n"),
        Some("%2F"),
        Some("東京"),
        Some(&long),
        Some("__HIVE_DEFAULT_PARTITION__"),
        None,
    ];
    let rows = batch([
        ("id", Arc::new(Int64Array::from_iter_values(0..values.len() as i64)) as ArrayRef),
        ("p q", Arc::new(StringArray::from(values.to_vec())) as ArrayRef),
    ]);
    let adds = table.stager(&rows, &["p q"], &[]).unwrap().write(batches(vec![rows.clone(), rows])).await.unwrap();
    assert_eq!(adds.len(), values.len(), "rows of one value share a file");
    for add in &adds {
        let (_, rows) = table.read(add).await;
        assert_eq!(rows.num_columns(), 1, "partition columns are not in the file");
        let ids = rows.column(0).as_primitive::<Int64Type>().values();
        assert_eq!((ids.len(), ids[0]), (2, ids[1]));
        assert_eq!(add.partition_values["p q"].as_deref(), values[ids[0] as usize]);
        assert!(add.path.is_ascii() && !add.path.contains(' '), "{}", add.path);
    }
    let path =
        |value: &str| &adds.iter().find(|add| add.partition_values["p q"].as_deref() == Some(value)).unwrap().path;
    assert!(path("/x/").starts_with("p%20q=%252Fx%252F/part-"), "{}", path("/x/"));
    assert!(path("..").starts_with("p%20q=../part-"), "{}", path(".."));
}

#[tokio::test]
async fn partition_values_are_written_as_spark_writes_them() {
    let table = Table::new();
    let timestamps = |zone: Option<&str>| {
        let array =
            TimestampMicrosecondArray::from(vec![Some(1_792_888_200_123_456), Some(1_792_891_800_000_000), None]);
        Arc::new(array.with_timezone_opt(zone)) as ArrayRef
    };
    let columns: Vec<(&str, ArrayRef, [Option<&str>; 3], &str)> = vec![
        (
            "b",
            Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])),
            [Some("true"), Some("false"), None],
            "true",
        ),
        ("i", Arc::new(Int16Array::from(vec![Some(-7), Some(0), None])), [Some("-7"), Some("0"), None], "-7"),
        ("d", decimals(&[-1, 1200, 0], 10, 2), [Some("-0.01"), Some("12.00"), Some("0.00")], "-0.01"),
        (
            "f",
            Arc::new(Float64Array::from(vec![1e300, f64::NEG_INFINITY, 0.5])),
            [Some("1e300"), Some("-Infinity"), Some("0.5")],
            "1e300",
        ),
        (
            "day",
            Arc::new(Date32Array::from(vec![Some(-719_162), Some(0), None])),
            [Some("0001-01-01"), Some("1970-01-01"), None],
            "0001-01-01",
        ),
        (
            "at",
            timestamps(Some("UTC")),
            [Some("2026-10-25T00:30:00.123456Z"), Some("2026-10-25T01:30:00.000000Z"), None],
            "2026-10-25%2000%253A30%253A00.123456",
        ),
        (
            "local",
            timestamps(None),
            [Some("2026-10-25 00:30:00.123456"), Some("2026-10-25 01:30:00"), None],
            "2026-10-25%2000%253A30%253A00.123456",
        ),
    ];
    for (name, column, values, directory) in columns {
        let rows = batch([("id", Arc::new(Int64Array::from(vec![0, 1, 2])) as ArrayRef), (name, column)]);
        let mut adds = table.stager(&rows, &[name], &[]).unwrap().write(batches(vec![rows])).await.unwrap();
        adds.sort_by_key(|add| stats(add)["minValues"]["id"].as_i64());
        let written: Vec<_> = adds.iter().map(|add| add.partition_values[name].as_deref()).collect();
        assert_eq!(written, values, "{name}");
        assert!(adds[0].path.starts_with(&format!("{name}={directory}/")), "{}", adds[0].path);
        if values[2].is_none() {
            assert!(adds[2].path.starts_with(&format!("{name}=__HIVE_DEFAULT_PARTITION__/")), "{}", adds[2].path);
        }
    }
}

#[tokio::test]
async fn partition_values_that_would_change_are_refused() {
    let table = Table::new();
    let rows = |column: ArrayRef| batch([("id", Arc::new(Int64Array::from(vec![0])) as ArrayRef), ("region", column)]);
    for column in
        [Arc::new(StringArray::from(vec![""])) as ArrayRef, Arc::new(Date32Array::from(vec![3_000_000])) as ArrayRef]
    {
        let rows = rows(column);
        let error = table.stager(&rows, &["region"], &[]).unwrap().write(batches(vec![rows])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.message().contains("'region'"), "{error}");
    }
    let rows = rows(Arc::new(BinaryArray::from_vec(vec![b"x"])));
    assert_eq!(table.stager(&rows, &["region"], &[]).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(table.files(), BTreeSet::new());
}

#[tokio::test]
async fn few_rows_make_one_file_and_no_rows_make_none() {
    let table = Table::new();
    let stager = table.stager(&numbers(0..1), &[], &[]).unwrap();
    let adds = stager.write(batches((0..90).map(|i| numbers(i * 1000..(i + 1) * 1000)).collect())).await.unwrap();
    assert_eq!(adds.len(), 1);
    assert_eq!(stats(&adds[0])["numRecords"], 90_000);
    assert!(adds[0].data_change && adds[0].modification_time > 1_700_000_000_000);
    assert_eq!(stager.write(batches(vec![])).await.unwrap(), vec![]);
    assert_eq!(stager.write(batches(vec![numbers(0..0)])).await.unwrap(), vec![]);
    assert_eq!(table.files().len(), 1);
}

#[tokio::test]
async fn files_end_at_the_target_size_and_hold_all_rows() {
    let table = Table::new();
    let stager = table.stager(&noise(1, 0), &[], &[("delta.targetFileSize", "1mb")]).unwrap();
    let adds = stager.write(batches(vec![noise(2_000_000, 7)])).await.unwrap();
    assert!(adds.len() >= 12, "{}", adds.len());
    let full = adds.iter().filter(|add| add.size > 1 << 20).count();
    assert!(full + 2 >= adds.len(), "only the last file of each worker may be smaller");
    let mut seen = BTreeSet::new();
    for add in &adds {
        assert!(add.size < 2 << 20, "{}", add.size);
        let (_, rows) = table.read(add).await;
        seen.extend(rows.column(0).as_primitive::<Int64Type>().values().iter().copied());
    }
    let expected: BTreeSet<i64> =
        noise(2_000_000, 7).column(0).as_primitive::<Int64Type>().values().iter().copied().collect();
    assert!(seen == expected);
    assert_eq!(adds.iter().map(|add| &add.path).collect::<BTreeSet<_>>().len(), adds.len());
}

#[tokio::test]
async fn large_files_go_up_in_parts() {
    let table = Table::new();
    let single = Stager { parallelism: 1, ..table.stager(&noise(1, 0), &[], &[]).unwrap() };
    let adds = single.write(batches(vec![noise(3_000_000, 1)])).await.unwrap();
    let [add] = adds.as_slice() else { panic!("{adds:?}") };
    assert!(add.size > 2 * 8 * 1024 * 1024);
    let (_, rows) = table.read(add).await;
    assert_eq!(rows.column(0).to_data(), noise(3_000_000, 1).column(0).to_data());
}

#[tokio::test]
async fn more_partitions_than_may_be_open_lose_no_row() {
    let table = Table::new();
    let rows = batch([
        ("id", Arc::new(Int64Array::from_iter_values(0..2_100)) as ArrayRef),
        ("p", Arc::new(Int64Array::from_iter_values(0..2_100)) as ArrayRef),
    ]);
    let adds = table.stager(&rows, &["p"], &[]).unwrap().write(batches(vec![rows])).await.unwrap();
    let ids: BTreeSet<_> = adds.iter().map(|add| stats(add)["minValues"]["id"].as_i64().unwrap()).collect();
    assert_eq!((ids.len(), adds.len()), (2_100, 2_100));
}

#[tokio::test]
async fn an_error_in_the_stream_leaves_nothing_half_written() {
    let table = Table::new();
    let stager = table.stager(&noise(1, 0), &[], &[]).unwrap();
    // More than a row group, so that an upload is under way when the error comes.
    let rows =
        stream::iter(0..6).map(|i| Ok(noise(400_000, i))).chain(stream::iter([Err(Error::refused("row 9 is bad"))]));
    let error = stager.write(rows).await.unwrap_err();
    assert_eq!(error.message(), "row 9 is bad");
    assert_eq!(table.files(), BTreeSet::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_write_is_given_up() {
    let table = Table::new();
    let stager = table.stager(&noise(1, 0), &[], &[]).unwrap();
    let endless = stream::iter(0..).map(|i| Ok(noise(400_000, i)));
    let write = tokio::spawn(async move { stager.write(endless).await });
    while table.files().is_empty() {
        tokio::task::yield_now().await;
    }
    write.abort();
    assert!(write.await.unwrap_err().is_cancelled());
    let mut waits = 0;
    while table.files().iter().any(|name| name.contains('#')) {
        waits += 1;
        assert!(waits < 60_000_000, "{:?}", table.files());
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_failed_part_ends_the_write_and_is_cleaned_up() {
    let table = Table::new();
    for fail_at in [0, 1, usize::MAX] {
        let store = Arc::new(Failing { inner: table.store.clone(), fail_at, aborted: Arc::default() });
        let stager = stager(store.clone(), &noise(1, 0), &[], &[]).unwrap();
        let rows = stream::iter(0..40).map(|i| Ok(noise(400_000, i)));
        let error = stager.write(rows).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Retryable);
        assert!(error.message().starts_with("cannot write a data file of t: "), "{error}");
        assert!(error.message().ends_with("the disk is on fire"), "{error}");
        assert!(store.aborted.load(Ordering::SeqCst) > 0);
        assert!(!table.files().iter().any(|name| name.contains('#')), "{:?}", table.files());
    }
}

#[tokio::test]
async fn rows_of_another_shape_are_not_written() {
    let table = Table::new();
    let stager = table.stager(&numbers(0..1), &[], &[]).unwrap();
    let other = batch([("n", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]);
    assert_eq!(stager.write(batches(vec![other])).await.unwrap_err().kind(), ErrorKind::Internal);
}

#[test]
fn a_batch_of_wide_rows_is_cut_by_bytes() {
    let text = "x".repeat(1 << 20);
    let schema = Arc::new(Schema::new(vec![Field::new("t", DataType::Utf8, false)]));
    let rows = RecordBatch::try_new(schema, vec![Arc::new(StringArray::from(vec![text.as_str(); 20]))]).unwrap();
    let cut: Vec<usize> = slices(&rows).map(|slice| slice.num_rows()).collect();
    assert_eq!(cut.iter().sum::<usize>(), 20);
    assert!(cut.iter().all(|rows| *rows <= 8), "{cut:?}");
}

/// A store whose uploads fail at a part, or at their end.
#[derive(Debug)]
struct Failing {
    inner: Arc<dyn ObjectStore>,
    fail_at: usize,
    aborted: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct FailingUpload {
    inner: Box<dyn MultipartUpload>,
    parts: usize,
    fail_at: usize,
    aborted: Arc<AtomicUsize>,
}

fn on_fire() -> object_store::Error {
    object_store::Error::Generic { store: "test", source: "the disk is on fire".into() }
}

#[async_trait::async_trait]
impl MultipartUpload for FailingUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.parts += 1;
        if self.parts > self.fail_at {
            return Box::pin(async { Err(on_fire()) });
        }
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> object_store::Result<PutResult> {
        Err(on_fire())
    }

    async fn abort(&mut self) -> object_store::Result<()> {
        self.aborted.fetch_add(1, Ordering::SeqCst);
        self.inner.abort().await
    }
}

impl std::fmt::Display for Failing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("failing")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Failing {
    async fn put_opts(&self, path: &Path, data: PutPayload, options: PutOptions) -> object_store::Result<PutResult> {
        self.inner.put_opts(path, data, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        let inner = self.inner.put_multipart_opts(path, options).await?;
        Ok(Box::new(FailingUpload { inner, parts: 0, fail_at: self.fail_at, aborted: self.aborted.clone() }))
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// The Bloom filter of a column of a file's first row group.
async fn bloom(table: &Table, add: &AddFile, column: usize) -> Option<Sbbf> {
    let bytes = table.store.get(&add.location().unwrap()).await.unwrap().bytes().await.unwrap();
    let footer = table.read(add).await.0;
    Sbbf::read_from_column_chunk(footer.row_group(0).column(column), &bytes).unwrap()
}

#[tokio::test]
async fn a_bloom_filter_tells_what_is_not_in_a_file() {
    let table = Table::new();
    let rows = batch([
        ("n", Arc::new(Int64Array::from_iter_values((0..20_000).map(|n| n * 2))) as ArrayRef),
        (
            "a.b",
            Arc::new(StringArray::from_iter((0..20_000).map(|n| (n % 3 > 0).then(|| format!("k{n}"))))) as ArrayRef,
        ),
        ("flag", Arc::new(BooleanArray::from_iter((0..20_000).map(|_| Some(true)))) as ArrayRef),
        ("rest", Arc::new(Int64Array::from_iter_values(0..20_000)) as ArrayRef),
    ]);
    let stager = table.stager(&rows, &[], &[("deltaonce.bloomFilterColumns", "n, `a.b`, flag")]).unwrap();
    let adds = stager.write(batches(vec![rows])).await.unwrap();
    let numbers = bloom(&table, &adds[0], 0).await.unwrap();
    assert!((0..20_000_i64).all(|n| numbers.check(&(n * 2))), "what is there is never ruled out");
    let wrong = (0..20_000_i64).filter(|n| numbers.check(&(n * 2 + 1))).count();
    assert!(wrong < 400, "{wrong} of 20000 are not ruled out");
    let texts = bloom(&table, &adds[0], 1).await.unwrap();
    assert!(texts.check("k1") && !texts.check("k20001"));
    assert!(bloom(&table, &adds[0], 2).await.unwrap().check(&true));
    assert!(bloom(&table, &adds[0], 3).await.is_none());
}

#[tokio::test]
async fn a_bloom_filter_is_no_larger_than_its_values_need() {
    for (partition_by, rows) in [(&[][..], 12), (&["p"], 12), (&[], 50_000)] {
        let table = Table::new();
        let rows = batch([
            ("n", noise(rows, 7).column(0).clone()),
            ("p", Arc::new(StringArray::from_iter_values((0..rows).map(|_| "x"))) as ArrayRef),
        ]);
        let stager = table.stager(&rows, partition_by, &[("deltaonce.bloomFilterColumns", "n")]).unwrap();
        let adds = stager.write(batches(vec![rows.clone()])).await.unwrap();
        let footer = table.read(&adds[0]).await.0;
        let bytes = footer.row_group(0).column(0).bloom_filter_length().unwrap();
        let fits = 64 + 4 * i32::try_from(rows.num_rows()).unwrap();
        assert!(bytes <= fits, "{bytes} bytes for {} values", rows.num_rows());
    }
}

#[tokio::test]
async fn key_columns_have_statistics_whatever_the_properties_say_and_change_data_has_none() {
    let table = Table::new();
    let rows = batch([
        ("v", Arc::new(Int64Array::from(vec![7, 8])) as ArrayRef),
        ("id", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef),
    ]);
    let schema = TableSchema::new(rows.schema(), Vec::new());
    let properties = [("delta.dataSkippingNumIndexedCols", "0"), ("deltaonce.bloomFilterColumns", "v")];
    let properties: BTreeMap<_, _> = properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let host = Arc::new(SystemHost::default());
    let stager =
        Stager::new("t".into(), table.store.clone(), &schema, &properties, &["id".to_owned()], host, 2).unwrap();
    let adds = stager.write(batches(vec![rows.clone()])).await.unwrap();
    assert_eq!(stats(&adds[0])["minValues"], json!({"id": 1}));
    assert_eq!(stats(&adds[0])["maxValues"], json!({"id": 2}));

    let kinds = Arc::new(StringArray::from(vec!["insert", "delete"])) as ArrayRef;
    let changed = batch([("v", rows.column(0).clone()), ("id", rows.column(1).clone()), (CHANGE_TYPE, kinds)]);
    let changes = stager.write_changes(batches(vec![changed])).await.unwrap();
    assert!(changes[0].path.starts_with("_change_data/cdc-"), "{}", changes[0].path);
    let file = AddFile { path: changes[0].path.clone(), size: changes[0].size, ..adds[0].clone() };
    let (footer, read) = table.read(&file).await;
    assert_eq!((read.num_rows(), read.num_columns()), (2, 3));
    assert!(footer.row_group(0).column(0).bloom_filter_offset().is_none());
}
