use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::*;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use futures::TryStreamExt;
use parquet::arrow::ArrowWriter;
use parquet::data_type::{Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::*;
use crate::source::input::InputPlace;
use crate::source::object::Object;

fn input(path: &Path, count: Arc<AtomicU64>) -> Arc<Input> {
    Arc::new(Input::new("in.parquet".into(), InputPlace::Local(path.into()), count))
}

fn write(path: &Path, batch: &RecordBatch, rows_per_group: usize) {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(rows_per_group)).build();
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn many(rows: i64) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|i| format!("order {}", i * 7919))));
    let tags = ListArray::from_iter_primitive::<arrow::datatypes::Int32Type, _, _>(
        (0..rows).map(|i| (i % 3 != 0).then(|| vec![Some(i as i32); i as usize % 4])),
    );
    let views: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..rows).map(|i| format!("{i}"))));
    let kinds: DictionaryArray<arrow::datatypes::Int32Type> =
        (0..rows).map(|i| ["a", "b"].get(i as usize % 2).copied()).collect();
    RecordBatch::try_from_iter([
        ("id", ids),
        ("text", text),
        ("tags", Arc::new(tags) as ArrayRef),
        ("view", views),
        ("kind", Arc::new(kinds) as ArrayRef),
    ])
    .unwrap()
}

fn whole(batches: &[SourceBatch]) -> RecordBatch {
    let schema = batches[0].rows.schema();
    arrow::compute::concat_batches(&schema, batches.iter().map(|batch| &batch.rows)).unwrap()
}

#[tokio::test]
async fn rows_come_in_order_whatever_the_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.parquet");
    let rows = many(50_000);
    write(&path, &rows, 7_000);
    for parallelism in [1, 3, 16] {
        let count = Arc::new(AtomicU64::new(0));
        let input = input(&path, count.clone());
        let batches: Vec<_> = read(&input, parallelism).try_collect().await.unwrap();
        assert_eq!(whole(&batches).columns(), rows.columns());
        assert_eq!(batches[1].places.of(0).number, batches[0].rows.num_rows() as u64 + 1);
        let size = std::fs::metadata(&path).unwrap().len();
        let read = count.load(Ordering::Relaxed);
        assert!(read <= size && read > size / 2, "{read} of {size}");
    }
    let input = input(&path, Arc::default());
    assert_eq!(schema(&input).await.unwrap().fields(), rows.schema().fields());
}

#[tokio::test]
async fn objects_are_read_as_files_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.parquet");
    let rows = many(5_000);
    write(&path, &rows, 1_000);
    let store = Arc::new(object_store::local::LocalFileSystem::new_with_prefix(folder.path()).unwrap());
    let size = std::fs::metadata(&path).unwrap().len();
    let name: Arc<str> = "s3://lake/in.parquet".into();
    let object = Arc::new(Object::new(name.clone(), store, "in.parquet".into(), size));
    let input = Arc::new(Input::new(name, InputPlace::Object(object), Arc::default()));
    let batches: Vec<_> = read(&input, 2).try_collect().await.unwrap();
    assert_eq!(whole(&batches).columns(), rows.columns());
}

#[tokio::test]
async fn a_file_cut_or_damaged_anywhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.parquet");
    write(&path, &many(2_000), 500);
    let stored = std::fs::read(&path).unwrap();
    for cut in [0, 3, 8, stored.len() / 2, stored.len() - 1] {
        std::fs::write(&path, &stored[..cut]).unwrap();
        let error = schema(&input(&path, Arc::default())).await.unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Refused);
        assert!(error.message().starts_with("in.parquet is not a whole Parquet file"), "{}", error.message());
    }
    std::fs::write(&path, "id,name\n1,a\n2,b\n").unwrap();
    assert_eq!(schema(&input(&path, Arc::default())).await.unwrap_err().kind(), crate::ErrorKind::Refused);
    let mut damaged = stored.clone();
    let middle = stored.len() / 3;
    damaged[middle..middle + 200].fill(0xff);
    std::fs::write(&path, &damaged).unwrap();
    let read = read(&input(&path, Arc::default()), 2).try_collect::<Vec<_>>().await;
    let error = read.unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Refused);
    assert!(error.message().starts_with("in.parquet is damaged"), "{}", error.message());
}

fn write_int96(path: &Path, values: &[(i32, u64)]) {
    let schema = Arc::new(parse_message_type("message m { required int96 at; optional int32 n; }").unwrap());
    let mut writer = SerializedFileWriter::new(std::fs::File::create(path).unwrap(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let stamps: Vec<Int96> =
        values.iter().map(|(day, nanos)| Int96::from(vec![*nanos as u32, (nanos >> 32) as u32, *day as u32])).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int96Type>().write_batch(&stamps, None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let levels = vec![0; values.len()];
    column.typed::<parquet::data_type::Int32Type>().write_batch(&[], Some(&levels), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

/// The Julian day of 1970-01-01.
const EPOCH: i32 = 2_440_588;

#[tokio::test]
async fn timestamps_of_96_bits_are_instants_of_any_year() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spark.parquet");
    // The second is 9999-12-31, beyond 64 bits of nanoseconds.
    write_int96(&path, &[(EPOCH, 1_000), (EPOCH + 2_932_896, 86_399_999_999_000)]);
    let batches: Vec<_> = read(&input(&path, Arc::default()), 2).try_collect().await.unwrap();
    let rows = whole(&batches);
    assert_eq!(rows.schema().field(0).data_type(), &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
    let expected = TimestampMicrosecondArray::from(vec![1, 253_402_300_799_999_999]).with_timezone("UTC");
    assert_eq!(rows.column(0).as_ref(), &expected);

    write_int96(&path, &[(EPOCH, 0), (EPOCH + 2_932_896, 86_399_999_999_999)]);
    let error = read(&input(&path, Arc::default()), 2).try_collect::<Vec<_>>().await.unwrap_err();
    assert_eq!(
        error.message(),
        "in.parquet row 2: column at: a timestamp with digits below the microsecond does not fit timestamp"
    );
}

#[tokio::test]
async fn an_empty_table_has_a_schema_and_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.parquet");
    let batch = RecordBatch::new_empty(Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)])));
    write(&path, &batch, 100);
    let input = input(&path, Arc::default());
    assert_eq!(schema(&input).await.unwrap().field(0).name(), "id");
    assert!(read(&input, 2).try_collect::<Vec<_>>().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_pipe_is_refused_with_advice() {
    let bytes = futures::stream::empty().boxed();
    let place = InputPlace::Given(crate::source::input::Given::new(bytes));
    let input = Arc::new(Input::new("standard input".into(), place, Arc::default()));
    let error = schema(&input).await.unwrap_err();
    assert_eq!(error.message(), "standard input cannot be read as Parquet, which must be read from its end");
}
