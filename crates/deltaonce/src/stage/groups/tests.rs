use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::compute::concat_batches;
use futures::stream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::reader::ChunkReader;
use parquet::schema::types::ColumnPath;

use super::*;
use crate::error::Result;
use crate::host::SystemHost;
use crate::stage::{Piece, Stager};
use crate::table::actions::AddFile;
use crate::table::encoded::place;
use crate::table::scan::OpenFile;
use crate::table::schema::TableSchema;

fn rows(ids: std::ops::Range<i64>) -> RecordBatch {
    let name = |id: i64| (id % 7 != 0).then(|| format!("name {id} {}", "x".repeat((id % 50) as usize)));
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(Int64Array::from_iter_values(ids.clone()))),
        ("name", Arc::new(StringArray::from_iter(ids.clone().map(name)))),
        ("amount", Arc::new(Float64Array::from_iter_values(ids.clone().map(|id| id as f64 / 4.0)))),
        ("part", Arc::new(StringArray::from_iter_values(ids.map(|_| "a/b")))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

struct Table {
    store: Arc<dyn ObjectStore>,
    schema: TableSchema,
    stager: Stager,
}

impl Table {
    fn new() -> Self {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let schema = TableSchema::new(rows(0..0).schema(), vec!["part".to_owned()]);
        let host = Arc::new(SystemHost::default());
        let stager = Stager::new("t".into(), store.clone(), &schema, &BTreeMap::new(), &[], host, 2).unwrap();
        Self { store, schema, stager }
    }

    /// A file that another writer made, of row groups of so many rows, with a Bloom filter of the ids.
    async fn foreign(&self, all: &RecordBatch, group_rows: usize) -> AddFile {
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(group_rows))
            .set_column_bloom_filter_enabled(ColumnPath::from("id"), true)
            .build();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, self.schema.file_columns(), Some(properties)).unwrap();
        writer.write(&all.project(&[0, 1, 2]).unwrap()).unwrap();
        writer.close().unwrap();
        let written = self.stager.write(stream::iter([Ok(rows(0..1))])).await.unwrap().remove(0);
        let add = AddFile { path: "foreign.parquet".into(), size: bytes.len() as i64, stats: None, ..written };
        self.store.put(&Path::from("foreign.parquet"), bytes.into()).await.unwrap();
        add
    }

    async fn open(&self, add: &AddFile) -> OpenFile {
        OpenFile::open(self.store.clone(), &self.schema, add).await.unwrap()
    }

    async fn read(&self, add: &AddFile) -> (Arc<ParquetMetaData>, RecordBatch) {
        let bytes = self.store.get(&add.location().unwrap()).await.unwrap().bytes().await.unwrap();
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
        let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes, options).unwrap();
        let (footer, schema) = (reader.metadata().clone(), reader.schema().clone());
        let batches: Vec<_> = reader.build().unwrap().map(|batch| batch.unwrap()).collect();
        (footer, concat_batches(&schema, &batches).unwrap())
    }
}

fn bytes(column: &EncodedColumn) -> bytes::Bytes {
    let (start, length) = place(&column.close.metadata).unwrap();
    column.bytes.get_bytes(start, length as usize).unwrap()
}

#[tokio::test]
async fn copied_row_groups_are_as_they_were_among_encoded_ones() {
    let table = Table::new();
    let all = rows(0..500);
    let foreign = table.foreign(&all, 100).await;
    let file = table.open(&foreign).await;
    let newer = rows(900..1000);
    let pieces: Vec<Result<Piece>> = vec![
        Ok(Piece::Group(file.encoded(0).unwrap())),
        Ok(Piece::Rows(newer.slice(0, 60))),
        Ok(Piece::Rows(newer.slice(60, 40))),
        Ok(Piece::Group(file.encoded(2).unwrap())),
        Ok(Piece::Group(file.encoded(3).unwrap())),
        Ok(Piece::Rows(all.slice(400, 100))),
    ];
    let adds = table.stager.write(stream::iter(pieces)).await.unwrap();
    let [add] = adds.as_slice() else { panic!("{adds:?}") };

    let schema = all.schema();
    let expected = concat_batches(&schema, [&all.slice(0, 100), &newer, &all.slice(200, 300)]).unwrap();
    let (footer, found) = table.read(add).await;
    assert_eq!(found.columns(), &expected.columns()[..3]);
    let counts: Vec<i64> = footer.row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(counts, [100, 100, 100, 100, 100]);
    for (copy, original) in [(0, 0), (2, 2), (3, 3)] {
        let here = table.open(add).await.encoded(copy).unwrap().read().await.unwrap();
        let there = file.encoded(original).unwrap().read().await.unwrap();
        assert_eq!((here.len(), there.len()), (3, 3));
        for (column, (here, there)) in here.into_iter().zip(there).enumerate() {
            assert_eq!(bytes(&here), bytes(&there), "column {column} of row group {copy}");
            assert_eq!(here.close.column_index, there.close.column_index);
            assert_eq!(here.close.bloom_filter.is_some(), column == 0);
        }
    }

    // Statistics and places say the same as if all rows had been encoded.
    let plain = table.stager.write(stream::iter([Ok(expected)])).await.unwrap().remove(0);
    assert_eq!(add.stats, plain.stats);
    assert_eq!(add.partition_values, plain.partition_values);
    assert!(add.path.starts_with("part=a%252Fb/") && plain.path.starts_with("part=a%252Fb/"), "{}", add.path);
}

#[tokio::test]
async fn a_file_that_went_away_is_told_as_such() {
    let table = Table::new();
    let foreign = table.foreign(&rows(0..20), 10).await;
    let file = table.open(&foreign).await;
    table.store.delete(&Path::from("foreign.parquet")).await.unwrap();
    let pieces = [Ok(Piece::Rows(rows(0..5))), Ok(Piece::Group(file.encoded(1).unwrap()))];
    let error = table.stager.write(stream::iter(pieces)).await.unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Retryable, "{error}");
    assert!(error.message().contains("foreign.parquet"), "{error}");
}

#[tokio::test]
async fn a_row_group_ends_where_it_is_full() {
    let table = Table::new();
    let adds = table.stager.write(stream::iter((0..17).map(|n| Ok(rows(n * 65_536..(n + 1) * 65_536))))).await.unwrap();
    let mut counts: Vec<Vec<i64>> = Vec::new();
    for add in &adds {
        let (footer, _) = table.read(add).await;
        counts.push(footer.row_groups().iter().map(|group| group.num_rows()).collect());
    }
    assert_eq!(counts.concat().iter().sum::<i64>(), 17 * 65_536);
    assert!(counts.concat().iter().all(|count| *count <= GROUP_ROWS as i64), "{counts:?}");
}
