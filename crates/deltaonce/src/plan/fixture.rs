//! A small real table in a folder of its own, for tests of plans.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array};
use arrow::compute::{cast, concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::ArrowWriter;
use roaring::RoaringTreemap;
use serde_json::{Value, json};
use uuid::Uuid;

use super::probe::Probes;
use super::revision::Revision;
use super::source_keys::SourceKeys;
use super::target::{Stage, Target};
use super::{Change, insert, merge};
use crate::error::Result;
use crate::load::{NullKeys, Order, Update};
use crate::prepare::choose::{Chosen, choose};
use crate::prepare::constraints::Constraints;
use crate::prepare::keys::Keyed;
use crate::source::{Places, Unit};
use crate::stage::Piece;
use crate::table::actions::{AddFile, ChangeFile, DeletionVector};
use crate::table::deletion_vector;
use crate::table::scan::scan;
use crate::table::schema::TableSchema;

pub(super) struct Table {
    _folder: tempfile::TempDir,
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) schema: TableSchema,
    pub(super) files: Vec<AddFile>,
    pub(super) key: Vec<String>,
    pub(super) order: Option<Order>,
    pub(super) null_keys: NullKeys,
    pub(super) update: Update,
    masks: bool,
    feeds: bool,
    /// Rows given to the change data feed.
    changes: Mutex<Vec<RecordBatch>>,
    next: AtomicU64,
}

/// A field that may be null.
pub(super) fn field(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

pub(super) fn utc() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// A column of `data_type` from text; an empty text is null.
pub(super) fn texts(data_type: &DataType, values: &[&str]) -> ArrayRef {
    let values: StringArray = values.iter().map(|value| (!value.is_empty()).then_some(*value)).collect();
    cast(&values, data_type).unwrap()
}

impl Table {
    pub(super) fn new(fields: Vec<Field>, partition_by: &[&str], key: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(LocalFileSystem::new_with_prefix(folder.path()).unwrap());
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            _folder: folder,
            store,
            schema: TableSchema::new(Arc::new(Schema::new(fields)), owned(partition_by)),
            files: Vec::new(),
            key: owned(key),
            order: None,
            null_keys: NullKeys::Refuse,
            update: Update::default(),
            masks: false,
            feeds: false,
            changes: Mutex::default(),
            next: AtomicU64::new(0),
        }
    }

    /// `id, value, version`, all bigint but `value`; the key is `id`, and the order `version desc`.
    pub(super) fn of_versions() -> Self {
        let fields =
            vec![field("id", DataType::Int64), field("value", DataType::Utf8), field("version", DataType::Int64)];
        Self::new(fields, &[], &["id"]).newest_by("version desc")
    }

    pub(super) fn newest_by(mut self, order: &str) -> Self {
        self.order = Some(Order::parse(order).unwrap());
        self
    }

    /// The same table, whose rows may be masked.
    pub(super) fn masking(mut self) -> Self {
        self.masks = true;
        self
    }

    /// The same table, whose files are written again.
    pub(super) fn rewriting(mut self) -> Self {
        self.masks = false;
        self
    }

    /// The same table, with a change data feed.
    pub(super) fn feeding(mut self) -> Self {
        self.feeds = true;
        self
    }

    /// What went to the change data feed since it was last asked, as text and sorted; the last value is the kind of change.
    pub(super) fn changes(&self) -> Vec<String> {
        let batches = std::mem::take(&mut *self.changes.lock().unwrap());
        let mut changes: Vec<String> = batches.iter().flat_map(texts_of).collect();
        changes.sort();
        changes
    }

    pub(super) fn without_order(mut self) -> Self {
        self.order = None;
        self
    }

    /// Rows from text, a column at a time.
    pub(super) fn rows(&self, columns: &[&[&str]]) -> RecordBatch {
        let fields = self.schema.columns().fields().iter();
        let columns = fields.zip(columns).map(|(field, values)| texts(field.data_type(), values)).collect();
        RecordBatch::try_new(self.schema.columns().clone(), columns).unwrap()
    }

    /// Rows of [`Self::of_versions`].
    pub(super) fn versions(&self, rows: &[(i64, &str, i64)]) -> RecordBatch {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0))),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.1))),
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.2))),
        ];
        RecordBatch::try_new(self.schema.columns().clone(), columns).unwrap()
    }

    /// Adds a file (one a partition) with these rows.
    pub(super) async fn holding(mut self, rows: RecordBatch) -> Self {
        let adds = self.write(stream::iter([Ok(Piece::Rows(rows))]).boxed()).await.unwrap();
        self.files.extend(adds);
        self
    }

    pub(super) async fn source(&self, batches: &[RecordBatch]) -> Result<SourceKeys> {
        let keyed = Keyed::new("t", &self.schema, &self.key, self.order.as_ref(), self.null_keys)?;
        let mut first = 1;
        let placed: Vec<_> = batches
            .iter()
            .map(|rows| {
                let places = Places::consecutive("source".into(), Unit::Row, first);
                first += rows.num_rows() as u64;
                Ok((rows.clone(), places))
            })
            .collect();
        match choose(keyed, stream::iter(placed).boxed(), None).await? {
            Chosen::Held(winners) => SourceKeys::new(Arc::new(winners)),
            Chosen::Spilled(_) => panic!("nothing bounds the memory"),
        }
    }

    pub(super) fn target(&self) -> Target<'_> {
        Target {
            name: "t",
            store: &self.store,
            schema: &self.schema,
            files: &self.files,
            masks: self.masks,
            feeds: self.feeds,
            parallelism: 2,
            memory: u64::MAX,
        }
    }

    pub(super) fn revision(&self, source: &SourceKeys) -> Result<Arc<Revision>> {
        Ok(Arc::new(Revision::new(source.winners().keyed(), &self.update, Constraints::none())?))
    }

    /// Merges rows into the table.
    pub(super) async fn merge(&mut self, rows: RecordBatch) -> Result<Change> {
        let source = self.source(&[rows]).await?;
        let change = merge::plan(&self.target(), &source, &self.revision(&source)?, &Probes::default(), &*self).await?;
        Ok(self.commit(change).await)
    }

    pub(super) async fn insert(&mut self, rows: RecordBatch) -> Result<Change> {
        let source = self.source(&[rows]).await?;
        let change = insert::plan(&self.target(), &source, &Probes::default(), &*self).await?;
        Ok(self.commit(change).await)
    }

    /// Makes a planned change, checking that every row has one fate.
    pub(super) async fn commit(&mut self, change: Change) -> Change {
        let before = self.all().await.len() as u64;
        let gone: BTreeSet<&str> = change.replaced().map(|file| file.path.as_str()).collect();
        assert!(gone.iter().all(|path| change.reads.files.contains(*path)), "what is removed was read");
        self.files.retain(|file| !gone.contains(file.path.as_str()));
        self.files.extend(change.adds.iter().cloned());
        self.files.extend(change.masks.iter().map(|mask| mask.masked.clone()));
        let rows = change.rows;
        let fates =
            [rows.duplicates, rows.superseded, rows.inserted, rows.updated, rows.stale, rows.divergent, rows.unchanged];
        assert_eq!(rows.read, fates.iter().sum::<u64>(), "{rows:?}");
        assert_eq!(self.all().await.len() as u64, before + rows.inserted, "{rows:?}");
        change
    }

    /// All rows as text, sorted; values of a row are parted by `|`, nulls are `-`.
    pub(super) async fn all(&self) -> Vec<String> {
        let mut all = Vec::new();
        for file in &self.files {
            all.extend(self.rows_of(file).await);
        }
        all.sort();
        all
    }

    pub(super) async fn rows_of(&self, file: &AddFile) -> Vec<String> {
        let columns: Vec<usize> = (0..self.schema.columns().fields().len()).collect();
        let batches: Vec<_> = scan(self.store.clone(), &self.schema, file, &columns).try_collect().await.unwrap();
        batches.iter().flat_map(|scanned| texts_of(&scanned.rows)).collect()
    }

    async fn write_file(&self, rows: &RecordBatch, partition_values: BTreeMap<String, Option<String>>) -> AddFile {
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), None).unwrap();
        writer.write(rows).unwrap();
        writer.close().unwrap();
        let path = format!("part-{}.parquet", self.next.fetch_add(1, Ordering::Relaxed));
        let size = bytes.len() as i64;
        self.store.put(&Path::from(path.as_str()), bytes.into()).await.unwrap();
        AddFile {
            path,
            partition_values,
            size,
            modification_time: 0,
            data_change: true,
            stats: Some(stats(rows).to_string()),
            tags: None,
            deletion_vector: None,
            base_row_id: None,
            default_row_commit_version: None,
            clustering_provider: None,
        }
    }
}

/// Rows as text; values are parted by `|`, nulls are `-`.
fn texts_of(rows: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::new().with_null("-");
    let columns: Vec<_> = rows.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
    let text = |row| columns.iter().map(|c| c.value(row).to_string()).collect::<Vec<_>>().join("|");
    (0..rows.num_rows()).map(text).collect()
}

fn stats(rows: &RecordBatch) -> Value {
    let mut stats = json!({"numRecords": rows.num_rows(), "minValues": {}, "maxValues": {}, "nullCount": {}});
    for (field, column) in rows.schema().fields().iter().zip(rows.columns()) {
        stats["nullCount"][field.name()] = column.null_count().into();
        let sorted =
            arrow::compute::sort(column, Some(arrow::compute::SortOptions { descending: false, nulls_first: true }));
        let Ok(sorted) = sorted else { continue };
        if column.null_count() == column.len() || matches!(field.data_type(), DataType::Binary | DataType::Float64) {
            continue;
        }
        let format = ArrayFormatter::try_new(&sorted, &FormatOptions::new()).unwrap();
        for (end, row) in [("minValues", column.null_count()), ("maxValues", column.len() - 1)] {
            let text = format.value(row).to_string();
            let numeric = field.data_type().is_integer()
                || matches!(field.data_type(), DataType::Decimal128(..) | DataType::Boolean);
            stats[end][field.name()] = if numeric { serde_json::from_str(&text).unwrap() } else { text.into() };
        }
    }
    stats
}

#[async_trait::async_trait]
impl Stage for Table {
    async fn write(&self, mut pieces: BoxStream<'static, Result<Piece>>) -> Result<Vec<AddFile>> {
        let mut batches = Vec::new();
        while let Some(piece) = pieces.try_next().await? {
            match piece {
                Piece::Rows(rows) => batches.push(rows),
                Piece::Group(group) => panic!("a row group of {} rows is copied", group.rows()),
            }
        }
        let rows = concat_batches(self.schema.columns(), &batches).unwrap();
        let mut partitions: BTreeMap<Vec<Option<String>>, Vec<u32>> = BTreeMap::new();
        for row in 0..rows.num_rows() {
            let values = self.schema.partition_columns().iter().map(|name| {
                let column = cast(rows.column_by_name(name).unwrap(), &DataType::Utf8).unwrap();
                let format = ArrayFormatter::try_new(&column, &FormatOptions::new()).unwrap();
                column.is_valid(row).then(|| format.value(row).to_string())
            });
            partitions.entry(values.collect()).or_default().push(row as u32);
        }
        let mut adds = Vec::new();
        for (values, picks) in partitions {
            let part = take_record_batch(&rows, &UInt32Array::from(picks)).unwrap();
            let file_schema = self.schema.file_columns();
            let columns = file_schema.fields().iter().map(|field| part.column_by_name(field.name()).unwrap().clone());
            let part = RecordBatch::try_new(file_schema.clone(), columns.collect()).unwrap();
            let values = self.schema.partition_columns().iter().cloned().zip(values).collect();
            adds.push(self.write_file(&part, values).await);
        }
        Ok(adds)
    }

    async fn write_changes(&self, rows: BoxStream<'static, Result<RecordBatch>>) -> Result<Vec<ChangeFile>> {
        let batches: Vec<RecordBatch> = rows.try_collect().await?;
        self.changes.lock().unwrap().extend(batches);
        Ok(Vec::new())
    }

    async fn mask(&self, masked: Vec<RoaringTreemap>) -> Result<Vec<DeletionVector>> {
        let uuid = || Uuid::from_u128(self.next.fetch_add(1, Ordering::Relaxed).into());
        let mut vectors = Vec::new();
        for file in deletion_vector::encode(&masked, uuid)? {
            self.store.put(&file.path, file.bytes.into()).await.unwrap();
            vectors.extend(file.vectors);
        }
        Ok(vectors)
    }
}
