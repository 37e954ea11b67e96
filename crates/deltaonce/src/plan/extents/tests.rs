use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, StringArray};
use arrow::datatypes::DataType;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

use super::*;
use crate::plan::fixture::{Table, field};
use crate::table::actions::AddFile;

/// A file of even ids from 0 on in row groups of 1,000 and pages of 100, with a text of each.
async fn file(table: &Table, filters: bool) -> AddFile {
    let ids = (0..3_000).map(|n| n * 2);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(ids.clone())),
        Arc::new(StringArray::from_iter_values(ids.map(|id| format!("text {}", (id * 7_919) % 6_000)))),
    ];
    let rows = RecordBatch::try_new(table.schema.columns().clone(), columns).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(1_000))
        .set_data_page_row_count_limit(100)
        .set_write_batch_size(100)
        .set_bloom_filter_enabled(filters)
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), Some(properties)).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    let size = bytes.len() as i64;
    table.store.put(&Path::from("f.parquet"), bytes.into()).await.unwrap();
    crate::plan::testing::file(&[], None).at("f.parquet", size)
}

impl AddFile {
    fn at(self, path: &str, size: i64) -> Self {
        Self { path: path.to_owned(), size, ..self }
    }
}

/// The rows that may have one of the keys, as (first, end).
async fn found(key: &[&str], filters: bool, keys: &[(i64, &str)]) -> Vec<(u64, u64)> {
    let table = Table::new(vec![field("id", DataType::Int64), field("text", DataType::Utf8)], &[], key);
    let file = file(&table, filters).await;
    let rows = RecordBatch::try_new(
        table.schema.columns().clone(),
        vec![
            Arc::new(Int64Array::from_iter_values(keys.iter().map(|key| key.0))),
            Arc::new(StringArray::from_iter_values(keys.iter().map(|key| key.1))),
        ],
    );
    let source = table.source(&[rows.unwrap()]).await.unwrap();
    let open = OpenFile::open(table.store.clone(), &table.schema, &file).await.unwrap();
    let rows = candidates(&open, &source).await.unwrap();
    rows.ranges().iter().map(|range| (range.start, range.end)).collect()
}

#[tokio::test]
async fn only_row_groups_and_pages_that_can_hold_a_key_are_left() {
    assert_eq!(found(&["id"], false, &[(10, "x"), (4_410, "x")]).await, [(0, 100), (2_200, 2_300)]);
    assert_eq!(found(&["id"], false, &[(199, "x"), (6_000, "x"), (-1, "x")]).await, [], "between pages, and beyond");
    // All texts are on every page by their range; of the two columns the first decides.
    assert_eq!(found(&["id", "text"], false, &[(10, "text 1")]).await, [(0, 100)]);
    assert_eq!(found(&["text"], false, &[(0, "text 2")]).await, [(0, 3_000)]);
    assert_eq!(found(&["text"], false, &[(0, "zebra")]).await, []);
}

#[tokio::test]
async fn a_bloom_filter_tells_row_groups_apart_that_ranges_do_not() {
    // The text of each even number below 6,000 is there once: this one in one row group.
    let id = (0..6_000).step_by(2).find(|id| (id * 7_919) % 6_000 == 4_444).unwrap();
    let group = u64::try_from(id / 2_000).unwrap();
    assert_eq!(found(&["text"], true, &[(0, "text 4444")]).await, [(group * 1_000, (group + 1) * 1_000)]);
    assert_eq!(found(&["text"], true, &[(0, "text 4445")]).await, [], "odd numbers are nowhere");
    assert_eq!(found(&["id"], true, &[(11, "x")]).await, []);
}
