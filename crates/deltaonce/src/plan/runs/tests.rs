use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array};
use arrow::datatypes::Schema;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use serde_json::json;

use super::*;
use crate::table::actions::AddFile;

const GROUP: usize = 10;

/// The runs of a file of `columns` in row groups of [`GROUP`] rows, for a table of the columns of `schema`.
async fn runs_of(
    columns: Vec<(&str, ArrayRef)>,
    schema: Option<Schema>,
    properties: impl Fn(WriterPropertiesBuilder) -> WriterPropertiesBuilder,
    changed: &[u64],
) -> Vec<Run> {
    runs_of_at_least(0, columns, schema, properties, changed).await
}

async fn runs_of_at_least(
    least: i64,
    columns: Vec<(&str, ArrayRef)>,
    schema: Option<Schema>,
    properties: impl Fn(WriterPropertiesBuilder) -> WriterPropertiesBuilder,
    changed: &[u64],
) -> Vec<Run> {
    let rows = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true))).unwrap();
    let builder = WriterProperties::builder().set_max_row_group_row_count(Some(GROUP));
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), Some(properties(builder).build())).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    let add =
        json!({"path": "f", "partitionValues": {}, "size": bytes.len(), "modificationTime": 0, "dataChange": true});
    let add: AddFile = serde_json::from_value(add).unwrap();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    store.put(&Path::from("f"), bytes.into()).await.unwrap();
    let schema = TableSchema::new(schema.map_or_else(|| rows.schema(), Arc::new), Vec::new());
    let file = OpenFile::open(store, &schema, &add).await.unwrap();
    runs_from(&file, &changed.iter().copied().collect(), least).await.unwrap()
}

fn ids(count: i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(0..count))
}

fn floats(count: usize, nan: usize) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values((0..count).map(|row| if row == nan { f64::NAN } else { 1.0 })))
}

#[tokio::test]
async fn groups_without_a_change_are_copied_and_others_read_together() {
    let changed = |changed: &'static [u64]| runs_of(vec![("id", ids(40))], None, |p| p, changed);
    let group = |number| Run::Group(number);
    assert_eq!(changed(&[]).await, [group(0), group(1), group(2), group(3)]);
    assert_eq!(changed(&[10, 20, 29]).await, [group(0), Run::Rows(10..30), group(3)]);
    assert_eq!(changed(&[9, 30]).await, [Run::Rows(0..10), group(1), group(2), Run::Rows(30..40)]);
    let small = runs_of_at_least(LEAST_COPIED, vec![("id", ids(40))], None, |p| p, &[9]).await;
    assert_eq!(small, [Run::Rows(0..40)], "small row groups are put together");
}

#[tokio::test]
async fn a_group_is_read_where_its_statistics_do_not_tell_all() {
    let none = |p: WriterPropertiesBuilder| p.set_statistics_enabled(EnabledStatistics::None);
    assert_eq!(runs_of(vec![("id", ids(20))], None, none, &[]).await, [Run::Rows(0..20)]);
    let no_pages =
        |p: WriterPropertiesBuilder| p.set_statistics_enabled(EnabledStatistics::Chunk).set_offset_index_disabled(true);
    assert_eq!(runs_of(vec![("id", ids(20))], None, no_pages, &[]).await, [Run::Rows(0..20)]);
    let nulls: ArrayRef = Arc::new(Int64Array::new_null(20));
    let columns = vec![("id", ids(20)), ("n", nulls)];
    assert_eq!(runs_of(columns, None, |p| p, &[]).await, [Run::Group(0), Run::Group(1)]);
    let lists = arrow::array::ListArray::from_iter_primitive::<arrow::datatypes::Int64Type, _, _>(
        (0..20).map(|_| Some(Vec::<Option<i64>>::new())),
    );
    assert_eq!(runs_of(vec![("l", Arc::new(lists) as ArrayRef)], None, |p| p, &[]).await, [Run::Rows(0..20)]);
    let columns = vec![("id", ids(30)), ("x", floats(30, 15))];
    assert_eq!(runs_of(columns, None, |p| p, &[]).await, [Run::Group(0), Run::Rows(10..20), Run::Group(2)]);
}

#[tokio::test]
async fn a_file_of_other_columns_is_read() {
    let field = |name: &str, data_type| Field::new(name, data_type, true);
    for fields in [
        vec![field("id", DataType::Int32)],
        vec![field("other", DataType::Int64)],
        vec![field("id", DataType::Int64), field("more", DataType::Int64)],
        vec![Field::new("id", DataType::Int64, false)],
    ] {
        let schema = Some(Schema::new(fields));
        assert_eq!(runs_of(vec![("id", ids(20))], schema, |p| p, &[]).await, [Run::Rows(0..20)]);
    }
}
