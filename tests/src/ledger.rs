//! A table as its own log and files tell it, read by nothing of the product and nothing of deltalake.
//!
//! Quick enough to look after each of a thousand loads, and strict: what other readers pass over is a failure here.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use arrow::array::AsArray;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use roaring::RoaringTreemap;
use serde_json::Value;

use crate::vectors;

/// All that a table is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The actions of each log entry, from version 0 on.
    pub entries: Vec<Vec<Value>>,
    /// The live data files with their `add`.
    pub live: BTreeMap<String, Value>,
    /// The live rows as text, sorted.
    pub rows: Vec<String>,
    /// The data files that any entry has added, live or not.
    pub added: BTreeSet<String>,
    /// Every object in the table's folder, by its name there.
    pub objects: BTreeSet<String>,
}

impl Ledger {
    /// Reads the table in the folder `root` of `store`; where there is none, it is empty.
    ///
    /// # Panics
    /// Where a version is missing, an entry is torn or has not one `commitInfo`, a path is added twice or removed without
    /// being there, or a live file is missing or cannot be read.
    pub async fn read(store: &dyn ObjectStore, root: &Path) -> Self {
        let mut ledger = Self { objects: names(store, root).await, ..Self::default() };
        let is_entry = |name: &&String| {
            let name = name.strip_prefix("_delta_log/").and_then(|name| name.strip_suffix(".json"));
            name.is_some_and(|name| name.len() == 20 && name.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let names: Vec<String> = ledger.objects.iter().filter(is_entry).cloned().collect();
        for (version, name) in names.iter().enumerate() {
            assert_eq!(*name, entry_name(version as u64), "the log has no gap");
            let text = String::from_utf8(get(store, root, name).await.to_vec()).expect("an entry is UTF-8");
            let actions: Vec<Value> = text
                .lines()
                .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{name} has {line:?}: {e}")))
                .collect();
            ledger.enter(version, actions);
        }
        for (path, add) in &ledger.live {
            let vector = match vectors::object(add) {
                Some(name) => get(store, root, &name).await,
                None => Bytes::new(),
            };
            let rows = rows_of(get(store, root, path).await, &add["partitionValues"]);
            if let Some(stats) = add["stats"].as_str() {
                let stats: Value = serde_json::from_str(stats).expect("statistics are JSON");
                assert_eq!(stats["numRecords"], rows.len(), "{path} has as many rows as its statistics say");
            }
            ledger.rows.extend(unmasked(rows, &vectors::masked(add, |_| vector)));
        }
        ledger.rows.sort();
        ledger
    }

    fn enter(&mut self, version: usize, actions: Vec<Value>) {
        let infos = actions.iter().filter(|action| action.get("commitInfo").is_some()).count();
        assert_eq!(infos, 1, "entry {version} tells once how it came: {actions:?}");
        for remove in actions.iter().filter_map(|action| action.get("remove")) {
            let path = remove["path"].as_str().expect("a remove has a path");
            let had = self.live.remove(path);
            let had = had.unwrap_or_else(|| panic!("entry {version} removes {path}, which is not there"));
            let (one, other) = (&remove["deletionVector"], &had["deletionVector"]);
            assert_eq!(one, other, "entry {version} removes {path} as it is not");
        }
        for add in actions.iter().filter_map(|action| action.get("add")) {
            let path = add["path"].as_str().expect("an add has a path").to_owned();
            assert!(!path.contains('%'), "these tests use no partition value that needs encoding: {path}");
            let vector = vectors::object(add);
            let is_new = self.added.insert(path.clone());
            let comes_back = vector.is_some() && actions.iter().any(|action| action["remove"]["path"] == path);
            assert!(is_new || comes_back, "entry {version} adds {path}, which an earlier one added");
            assert!(self.live.insert(path, add.clone()).is_none(), "entry {version} adds a file twice: {actions:?}");
            self.added.extend(vector);
        }
        let changes = actions.iter().filter_map(|action| action["cdc"]["path"].as_str());
        self.added.extend(changes.map(str::to_owned));
        self.entries.push(actions);
    }

    /// The attempt token of each entry, where it has one.
    #[must_use]
    pub fn tokens(&self) -> Vec<Option<String>> {
        let token = |actions: &Vec<Value>| {
            let info = actions.iter().find_map(|action| action.get("commitInfo"))?;
            Some(info.get("txnId")?.as_str()?.to_owned())
        };
        self.entries.iter().map(token).collect()
    }

    /// The versions that record an app id.
    #[must_use]
    pub fn recording(&self, app_id: &str) -> Vec<usize> {
        let records = |actions: &Vec<Value>| {
            actions.iter().any(|action| action.get("txn").is_some_and(|txn| txn["appId"] == *app_id))
        };
        (0..self.entries.len()).filter(|version| records(&self.entries[*version])).collect()
    }

    /// Objects that hold what is live: data files and deletion vectors.
    #[must_use]
    pub fn live_objects(&self) -> BTreeSet<String> {
        self.live.keys().cloned().chain(self.live.values().filter_map(vectors::object)).collect()
    }

    /// Objects that belong to no entry: data files that none added, and what else lies about.
    #[must_use]
    pub fn strays(&self) -> BTreeSet<String> {
        let is_log = |name: &str| {
            name.strip_prefix("_delta_log/").is_some_and(|name| {
                name == "_last_checkpoint"
                    || name.starts_with(|first: char| first.is_ascii_digit()) && !name.contains('#')
            })
        };
        self.objects.iter().filter(|name| !self.added.contains(*name) && !is_log(name)).cloned().collect()
    }
}

/// An entry's name in the table's folder.
#[must_use]
pub fn entry_name(version: u64) -> String {
    format!("_delta_log/{version:020}.json")
}

async fn names(store: &dyn ObjectStore, root: &Path) -> BTreeSet<String> {
    let listed: Vec<_> = store.list(Some(root)).try_collect().await.expect("the table's folder can be listed");
    let below = |path: &Path| {
        let parts = path.prefix_match(root).expect("what is listed is below");
        parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/")
    };
    listed.iter().map(|meta| below(&meta.location)).collect()
}

async fn get(store: &dyn ObjectStore, root: &Path, name: &str) -> Bytes {
    let path = Path::parse(format!("{root}/{name}")).expect("a name is a path");
    let found = store.get(&path).await.unwrap_or_else(|error| panic!("{name} should be there: {error}"));
    found.bytes().await.expect("a file can be read to its end")
}

/// A data file's rows, masked ones included, as `column=value` in the columns' order by name; partition values come from the log.
///
/// # Panics
/// Where the file is no whole Parquet file.
#[must_use]
pub fn rows_of(file: Bytes, partition_values: &Value) -> Vec<String> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|builder| builder.build());
    let mut all = Vec::new();
    for batch in reader.expect("a data file is Parquet") {
        let batch = batch.expect("a data file is whole");
        all.extend((0..batch.num_rows()).map(|row| text(&batch, row, partition_values)));
    }
    all
}

/// The rows at places that are not masked.
#[must_use]
pub fn unmasked(rows: Vec<String>, masked: &RoaringTreemap) -> Vec<String> {
    (0..).zip(rows).filter(|(place, _)| !masked.contains(*place)).map(|(_, row)| row).collect()
}

fn text(batch: &RecordBatch, row: usize, partition_values: &Value) -> String {
    let options = FormatOptions::new().with_null("null");
    let mut columns = BTreeMap::new();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let value = if field.data_type() == &DataType::Binary {
            let mut hasher = DefaultHasher::new();
            column.as_binary::<i32>().value(row).hash(&mut hasher);
            format!("{:016x}", hasher.finish())
        } else {
            ArrayFormatter::try_new(column, &options).expect("a column can be shown").value(row).to_string()
        };
        columns.insert(field.name().clone(), value);
    }
    for (name, value) in partition_values.as_object().expect("an add has partition values") {
        columns.insert(name.clone(), value.as_str().unwrap_or("null").to_owned());
    }
    let columns: Vec<_> = columns.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    columns.join(" ")
}
