use std::fs::File;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use arrow::array::{
    ArrayRef, AsArray, Float64Array, Int32Array, Int64Array, ListArray, NullArray, StringArray, StringViewArray,
    StructArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use futures::TryStreamExt;
use tempfile::TempDir;

use super::*;

fn batch<const N: usize>(columns: [(&str, ArrayRef); N]) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

fn write(folder: &TempDir, name: &str, batch: &RecordBatch) -> String {
    let path = folder.path().join(name);
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn files_of_other_column_order_and_string_kinds_are_one_source() {
    let folder = tempfile::tempdir().unwrap();
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let texts: [ArrayRef; 3] = [
        Arc::new(NullArray::new(1)),
        Arc::new(StringArray::from(vec!["x"])),
        Arc::new(StringViewArray::from(vec!["y"])),
    ];
    let [a, b, c] = texts.map(|text| text);
    let files = [
        write(&folder, "a.parquet", &RecordBatch::try_from_iter([("id", ids.clone()), ("text", a)]).unwrap()),
        write(&folder, "b.parquet", &RecordBatch::try_from_iter([("text", b), ("id", ids.clone())]).unwrap()),
        write(&folder, "c.parquet", &RecordBatch::try_from_iter([("id", ids), ("text", c)]).unwrap()),
    ];
    let source = Source::files(files).open().await.unwrap();
    let schema = source.schema().unwrap().clone();
    assert_eq!(schema.field(1).data_type(), &DataType::Utf8);
    assert!(schema.field(1).is_nullable());
    let table = TableSchema::new(schema, Vec::new());
    let batches: Vec<_> = source.read(&table, 2).try_collect().await.unwrap();
    let places: Vec<_> = batches.iter().map(|batch| batch.places.of(0).to_string()).collect();
    assert!(places[2].ends_with("c.parquet row 1"), "{places:?}");
}

#[tokio::test]
async fn files_that_differ_are_named_with_the_column() {
    let folder = tempfile::tempdir().unwrap();
    let one: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let a = write(&folder, "a.parquet", &batch([("id", one.clone()), ("n", Arc::new(Int32Array::from(vec![1])))]));
    let b = write(&folder, "b.parquet", &batch([("id", one.clone()), ("n", Arc::new(Float64Array::from(vec![1.0])))]));
    let c = write(&folder, "c.parquet", &batch([("id", one)]));
    let message = async |files: [&String; 2]| {
        let error = Source::files(files).open().await.unwrap_err();
        error.message().replace(&format!("{}/", folder.path().display()), "")
    };
    assert_eq!(message([&a, &b]).await, "column n is int in a.parquet and double in b.parquet");
    assert_eq!(message([&a, &c]).await, "a.parquet has the column n, which c.parquet has not");
    assert_eq!(message([&c, &a]).await, "a.parquet has the column n, which c.parquet has not");
}

#[tokio::test]
async fn batches_and_bytes_are_sources() {
    let batch = batch([("id", Arc::new(Int64Array::from(vec![1, 2])))]);
    let table = TableSchema::new(batch.schema(), Vec::new());
    let given = futures::stream::iter([Ok(batch.clone())]);
    let source = Source::batches(batch.schema(), given).name("queue").open().await.unwrap();
    let read: Vec<_> = source.read(&table, 1).try_collect().await.unwrap();
    assert_eq!(read[0].places.of(1).to_string(), "queue row 2");

    let mut writer = arrow::ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    let bytes = std::io::Cursor::new(writer.into_inner().unwrap());
    let source = Source::reader(bytes, Format::Arrow).open().await.unwrap();
    assert_eq!(source.schema().unwrap(), &batch.schema());
    let read: Vec<_> = source.read(&table, 1).try_collect().await.unwrap();
    assert_eq!(read[0].rows.column(0).as_primitive::<Int64Type>().values(), &[1, 2]);
    assert_eq!(read[0].places.of(0).to_string(), "standard input row 1");
}

#[tokio::test]
async fn a_pipe_is_read_once_though_its_schema_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.arrows");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let rows = batch([("id", Arc::new(Int64Array::from_iter_values(0..100_000)))]);
    let (written, pipe) = (rows.clone(), path.clone());
    let writer = std::thread::spawn(move || {
        let file = File::create(pipe).unwrap();
        let mut writer = arrow::ipc::writer::StreamWriter::try_new(file, &written.schema()).unwrap();
        writer.write(&written).unwrap();
        writer.finish().unwrap();
    });
    let source = Source::files([&path]).open().await.unwrap();
    let table = TableSchema::new(rows.schema(), Vec::new());
    let batches: Vec<_> = source.read(&table, 1).try_collect().await.unwrap();
    assert_eq!(batches.iter().map(|batch| batch.rows.num_rows()).sum::<usize>(), 100_000);
    writer.join().unwrap();
}

#[tokio::test]
async fn tabs_and_skipped_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.tsv"), "id\n").unwrap();
    std::fs::write(folder.path().join("notes.txt"), "x").unwrap();
    let source = Source::files([folder.path()]).open().await.unwrap();
    assert_eq!(source.skipped().len(), 1);
    assert!(source.schema().is_none());
    let OpenRows::Files { format: Format::Csv, files } = &source.rows else { panic!("not csv") };
    assert_eq!(files[0].csv.delimiter, b'\t');
}

#[tokio::test]
async fn a_nested_field_is_nullable_where_it_is_in_any_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, nullable: bool| {
        let item = Arc::new(Field::new("a", DataType::Int64, nullable));
        let values = Int64Array::from(vec![(!nullable).then_some(1)]);
        let entry: ArrayRef = Arc::new(StructArray::from(vec![(item.clone(), Arc::new(values) as ArrayRef)]));
        let element = Arc::new(Field::new("element", entry.data_type().clone(), nullable));
        let list: ArrayRef = Arc::new(ListArray::new(element, OffsetBuffer::from_lengths([1]), entry.clone(), None));
        let schema = Schema::new(vec![
            Field::new("s", entry.data_type().clone(), nullable),
            Field::new("l", list.data_type().clone(), nullable),
        ]);
        write(&folder, name, &RecordBatch::try_new(Arc::new(schema), vec![entry, list]).unwrap())
    };
    let files = [file("a.parquet", false), file("b.parquet", true)];
    for files in [[&files[0], &files[1]], [&files[1], &files[0]]] {
        let source = Source::files(files).open().await.unwrap();
        let schema = source.schema().unwrap();
        let DataType::List(element) = schema.field(1).data_type() else { panic!("{schema}") };
        for nested in [schema.field(0).data_type(), element.data_type()] {
            let DataType::Struct(fields) = nested else { panic!("{schema}") };
            assert!(fields[0].is_nullable(), "{schema}");
        }
        assert!(element.is_nullable(), "{schema}");
    }
}
