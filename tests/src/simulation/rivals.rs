//! Other tools at the same table: each commits at once, between two steps of our processes, by a code of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Date32Array, Int64Array, RecordBatch, StringArray};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::{DataType, Field, Schema};
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use super::content::{Row, Write};
use super::sea::{Sea, at_once};
use crate::ledger::{Ledger, entry_name};
use crate::vectors;

/// A commit of another tool.
#[derive(Debug)]
pub(super) struct Rival {
    pub(super) version: usize,
    pub(super) write: Write,
    pub(super) rows: Vec<Row>,
}

/// The folder of the table.
pub(super) const TABLE: &str = "t";

/// What another tool does at `point`, where it can do anything.
pub(super) fn act(sea: &Sea, point: &str) -> Option<Rival> {
    let table = Others::look(sea, point);
    if table.ledger.entries.is_empty() {
        return None;
    }
    let (kind, (write, rows, actions)) = match sea.dice.below(&format!("{point} rival"), 6) {
        0 | 1 => ("appends", table.append()),
        2 => ("deletes", table.delete()?),
        3 => ("compacts", table.compact()?),
        4 => ("sets a property", table.set_property()),
        _ => {
            table.vacuum();
            return None;
        }
    };
    let version = table.ledger.entries.len();
    let info = json!({"commitInfo": {"timestamp": 0, "operation": kind, "engineInfo": "rival"}});
    let lines: Vec<String> = std::iter::once(info).chain(actions).map(|action| action.to_string()).collect();
    let path = table.path(&entry_name(version as u64));
    let put = sea.store.put_opts(&path, lines.join("\n").into(), PutMode::Create.into());
    at_once(put).expect("nobody else runs");
    sea.say(format!("another tool {kind} as version {version}"));
    Some(Rival { version, write, rows })
}

type Commit = (Write, Vec<Row>, Vec<Value>);

struct Others<'a> {
    sea: &'a Sea,
    point: &'a str,
    ledger: Ledger,
    partitioned: bool,
}

impl<'a> Others<'a> {
    fn look(sea: &'a Sea, point: &'a str) -> Self {
        let ledger = at_once(Ledger::read(sea.store.as_ref(), &Path::from(TABLE)));
        let metadata = ledger.entries.iter().flatten().filter_map(|action| action.get("metaData")).next_back();
        let partitioned = metadata.is_some_and(|metadata| metadata["partitionColumns"] != json!([]));
        Self { sea, point, ledger, partitioned }
    }

    fn path(&self, name: &str) -> Path {
        Path::parse(format!("{TABLE}/{name}")).expect("a name is a path")
    }

    fn below(&self, what: &str, bound: u64) -> u64 {
        self.sea.dice.below(&format!("{} {what}", self.point), bound)
    }

    fn append(&self) -> Commit {
        let day = 5 + self.below("day", 3);
        let rows: Vec<Row> = (0..1 + self.below("rows", 2))
            .map(|place| {
                let id = 1 + self.below(&format!("id {place}"), 40);
                let version = 1 + self.below(&format!("version {place}"), 9);
                Row { id, day, value: format!("rival-{}", self.ledger.entries.len()), version }
            })
            .collect();
        let add = self.write(&batch(&rows, self.partitioned), &self.partition(&rows[0].date()), true, "0");
        (Write::Append, rows, vec![add])
    }

    fn partition(&self, date: &str) -> Value {
        if self.partitioned { json!({ "day": date }) } else { json!({}) }
    }

    /// Rows of one or two ids, from every file that holds them.
    fn delete(&self) -> Option<Commit> {
        let ids = vec![1 + self.below("first id", 9), 1 + self.below("second id", 40)];
        let mut actions = Vec::new();
        for (number, (path, add)) in self.ledger.live.iter().enumerate() {
            let before = self.read(path, add);
            let column = before.column_by_name("id").expect("every file has it");
            let column = column.as_any().downcast_ref::<Int64Array>().expect("it is a bigint");
            let keeps: BooleanArray = column.iter().map(|id| id.map(|id| !ids.contains(&id.unsigned_abs()))).collect();
            if keeps.true_count() == before.num_rows() {
                continue;
            }
            actions.push(remove(path, add, true));
            if keeps.true_count() > 0 {
                let after = filter_record_batch(&before, &keeps).expect("a mask fits");
                actions.push(self.write(&after, &add["partitionValues"], true, &number.to_string()));
            }
        }
        (!actions.is_empty()).then_some((Write::Delete(ids), Vec::new(), actions))
    }

    /// The files of each partition become one.
    fn compact(&self) -> Option<Commit> {
        let mut groups: BTreeMap<String, Vec<(&String, &Value)>> = BTreeMap::new();
        for (path, add) in &self.ledger.live {
            groups.entry(add["partitionValues"].to_string()).or_default().push((path, add));
        }
        let mut actions = Vec::new();
        for (number, files) in groups.values().filter(|files| files.len() > 1).enumerate() {
            let batches: Vec<RecordBatch> = files.iter().map(|(path, add)| self.read(path, add)).collect();
            let all = concat_batches(&batches[0].schema(), &batches).expect("files of one table");
            actions.extend(files.iter().map(|(path, add)| remove(path, add, false)));
            actions.push(self.write(&all, &files[0].1["partitionValues"], false, &number.to_string()));
        }
        (!actions.is_empty()).then_some((Write::Nothing, Vec::new(), actions))
    }

    fn set_property(&self) -> Commit {
        let mut metadata = self.ledger.entries.iter().flatten().filter_map(|action| action.get("metaData").cloned());
        let mut metadata = metadata.next_back().expect("a table has it");
        metadata["configuration"]["owner"] = json!(self.ledger.entries.len().to_string());
        (Write::Nothing, Vec::new(), vec![json!({ "metaData": metadata })])
    }

    /// Files that some entry has removed go away; what nobody has committed yet stays, as a vacuum's retention has it.
    fn vacuum(&self) {
        let live = self.ledger.live_objects();
        let gone: Vec<&String> = self.ledger.added.iter().filter(|name| !live.contains(*name)).collect();
        let mut count = 0;
        for name in gone.iter().filter(|name| self.ledger.objects.contains(**name)) {
            let path = self.path(name);
            let bytes = at_once(async { self.sea.store.get(&path).await?.bytes().await }).expect("it is there");
            self.sea.vacuumed.lock().expect("nobody panicked").insert((*name).clone(), bytes);
            at_once(self.sea.store.delete(&path)).expect("it is there");
            count += 1;
        }
        if count > 0 {
            self.sea.say(format!("another tool vacuums {count} files"));
        }
    }

    fn get(&self, name: &str) -> Bytes {
        at_once(async { self.sea.store.get(&self.path(name)).await?.bytes().await }).expect("it is live")
    }

    /// The rows of a file that are not masked.
    fn read(&self, name: &str, add: &Value) -> RecordBatch {
        let bytes = self.get(name);
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).and_then(|builder| builder.build());
        let batches: Vec<RecordBatch> =
            reader.expect("it is Parquet").map(|batch| batch.expect("it is whole")).collect();
        let first = batches.first().expect("no file is empty");
        let all = concat_batches(&first.schema(), &batches).expect("one file has one schema");
        let masked = vectors::masked(add, |name| self.get(name));
        let keeps: BooleanArray = (0..all.num_rows()).map(|row| Some(!masked.contains(row as u64))).collect();
        filter_record_batch(&all, &keeps).expect("a mask fits")
    }

    /// Writes a file and gives back its `add`, with statistics or without.
    fn write(&self, rows: &RecordBatch, partition: &Value, changes: bool, suffix: &str) -> Value {
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), None).expect("the schema is plain");
        writer.write(rows).expect("memory takes it");
        writer.close().expect("memory takes it");
        let size = bytes.len();
        let folder = partition["day"].as_str().map(|day| format!("day={day}/")).unwrap_or_default();
        let name = format!("{folder}rival-{}-{suffix}.parquet", self.ledger.entries.len());
        at_once(self.sea.store.put(&self.path(&name), bytes.into())).expect("memory takes it");
        let mut add = json!({
            "path": name, "partitionValues": partition, "size": size, "modificationTime": 0, "dataChange": changes,
        });
        if self.below("has statistics", 2) == 1 {
            add["stats"] = json!(statistics(rows).to_string());
        }
        json!({ "add": add })
    }
}

fn statistics(rows: &RecordBatch) -> Value {
    let (mut least, mut greatest, mut nulls) = (json!({}), json!({}), json!({}));
    for name in ["id", "version"] {
        let column = rows.column_by_name(name).expect("every file has it");
        let column = column.as_any().downcast_ref::<Int64Array>().expect("it is a bigint");
        least[name] = json!(arrow::compute::min(column));
        greatest[name] = json!(arrow::compute::max(column));
        nulls[name] = json!(column.null_count());
    }
    json!({"numRecords": rows.num_rows(), "minValues": least, "maxValues": greatest, "nullCount": nulls})
}

fn remove(path: &str, add: &Value, changes: bool) -> Value {
    let mut remove = json!({
        "path": path, "deletionTimestamp": 0, "dataChange": changes, "extendedFileMetadata": true,
        "partitionValues": add["partitionValues"], "size": add["size"],
    });
    if let Some(vector) = add.get("deletionVector") {
        remove["deletionVector"] = vector.clone();
    }
    json!({ "remove": remove })
}

fn batch(rows: &[Row], partitioned: bool) -> RecordBatch {
    let number = |value: u64| i64::try_from(value).expect("small");
    // Days since the epoch of the last day before October 2026.
    let day = |row: &Row| 20_726 + i32::try_from(row.day).expect("small");
    let mut columns: Vec<(Field, ArrayRef)> = vec![(
        Field::new("id", DataType::Int64, false),
        Arc::new(rows.iter().map(|row| Some(number(row.id))).collect::<Int64Array>()),
    )];
    if !partitioned {
        let days: Date32Array = rows.iter().map(|row| Some(day(row))).collect();
        columns.push((Field::new("day", DataType::Date32, true), Arc::new(days)));
    }
    let values: StringArray = rows.iter().map(|row| Some(row.value.as_str())).collect();
    columns.push((Field::new("value", DataType::Utf8, true), Arc::new(values)));
    let versions: Int64Array = rows.iter().map(|row| Some(number(row.version))).collect();
    columns.push((Field::new("version", DataType::Int64, true), Arc::new(versions)));
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("the columns fit")
}
