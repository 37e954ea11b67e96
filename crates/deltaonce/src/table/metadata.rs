//! The `metaData` action that stands, as its writer put it.
//!
//! Not from deltalake's kernel, which leaves out what it does not use of it: an entry that changes one property has to
//! repeat the rest.

use arrow::array::{Array, AsArray, RecordBatch, StructArray};
use arrow::compute::filter_record_batch;
use arrow::json::LineDelimitedWriter;
use bytes::Bytes;
use memchr::memmem;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use serde_json::{Map, Value};

use super::definition::MetaData;
use super::recorded::checkpoint_part;
use super::snapshot::Snapshot;
use crate::error::{Error, Result};
use crate::store::failure;

/// The `metaData` of a version: the newest of the entries after its checkpoint, or else the checkpoint's.
///
/// # Errors
/// As storage fails; `Retryable` where the log was cleaned up meanwhile; `Unsupported` for an action in a form that is not
/// Delta's.
pub(crate) async fn read(table: &str, snapshot: &Snapshot) -> Result<MetaData> {
    let found = match in_entries(table, snapshot).await? {
        Some(found) => Some(found),
        None => in_checkpoint(table, snapshot).await?,
    };
    let gone = || Error::retryable(format!("the log of {table} changed while it was read"));
    let metadata: MetaData = serde_json::from_value(found.ok_or_else(gone)?).map_err(|e| {
        Error::unsupported(format!("the metaData in the log of {table} is not in a form this library knows: {e}"))
            .caused_by(e)
    })?;
    // What the snapshot was checked by is what the next entry must repeat.
    if metadata.id != snapshot.metadata().id() || metadata.schema_string != *snapshot.metadata().schema_string() {
        return Err(gone());
    }
    Ok(metadata)
}

async fn in_entries(table: &str, snapshot: &Snapshot) -> Result<Option<Value>> {
    for version in snapshot.log_files()?.entries.into_iter().rev() {
        let bytes = snapshot.log().read_commit_entry(version).await;
        let bytes = bytes.map_err(|e| failure::delta(table, "read the log of", e))?;
        let found = bytes.map(|bytes| in_lines(&bytes)).transpose().map_err(|e| {
            Error::retryable(format!("log entry {version} of {table} cannot be read: {e}")).caused_by(e)
        })?;
        if let Some(found) = found.flatten() {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

async fn in_checkpoint(table: &str, snapshot: &Snapshot) -> Result<Option<Value>> {
    for url in snapshot.log_files()?.checkpoint {
        let bytes = checkpoint_part(table, snapshot.log(), &url).await?;
        let unreadable =
            |why: String| Error::unsupported(format!("the checkpoint {url} of {table} cannot be read: {why}"));
        let found = if url.ends_with(".json") {
            in_lines(&bytes).map_err(|e| unreadable(e.to_string()).caused_by(e))?
        } else {
            let read = tokio::task::spawn_blocking(move || in_parquet(bytes)).await;
            let read = read.map_err(|panic| {
                Error::internal(format!("reading the checkpoint of {table} broke off")).caused_by(panic)
            })?;
            read.map_err(|e| unreadable(e.to_string()).caused_by(e))?
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The last `metaData` among lines of actions.
fn in_lines(bytes: &[u8]) -> serde_json::Result<Option<Value>> {
    let mut found = None;
    let finder = memmem::Finder::new(b"\"metaData\"");
    // Files are most of a log; their lines need not be parsed.
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| finder.find(line).is_some()) {
        let mut action: Map<String, Value> = serde_json::from_slice(line)?;
        found = action.remove("metaData").or(found);
    }
    Ok(found)
}

fn in_parquet(bytes: Bytes) -> parquet::errors::Result<Option<Value>> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes)?;
    let columns = ProjectionMask::columns(builder.parquet_schema(), ["metaData"]);
    for batch in builder.with_projection(columns).build()? {
        let batch = batch?;
        let Some(column) = batch.column_by_name("metaData") else { continue };
        let odd = || ParquetError::General("its metaData is in a form that is not Delta's".to_owned());
        let column = column.as_struct_opt().ok_or_else(odd)?;
        if column.null_count() < column.len() {
            return as_json(column).map(Some);
        }
    }
    Ok(None)
}

/// The first struct that is not null, as an entry would say it.
fn as_json(column: &StructArray) -> parquet::errors::Result<Value> {
    let given = arrow::compute::is_not_null(column)?;
    // The rows that are null are taken out with their fields.
    let fields =
        RecordBatch::try_new(arrow::datatypes::Schema::new(column.fields().clone()).into(), column.columns().to_vec())?;
    let mut writer = LineDelimitedWriter::new(Vec::new());
    writer.write(&filter_record_batch(&fields, &given)?.slice(0, 1))?;
    writer.finish()?;
    serde_json::from_slice(&writer.into_inner()).map_err(|e| ParquetError::External(Box::new(e)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, MapBuilder, StringArray, StringBuilder};
    use arrow::buffer::NullBuffer;
    use parquet::arrow::ArrowWriter;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_metadata_of_an_entry_is_found_among_its_files() {
        let lines = [
            json!({"commitInfo": {"operation": "sets \"metaData\""}}),
            json!({"metaData": {"id": "a"}}),
            json!({"add": {"path": "metaData"}}),
            json!({"metaData": {"id": "b"}}),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        assert_eq!(in_lines(text.as_bytes()).unwrap(), Some(json!({"id": "b"})));
        assert_eq!(in_lines(b"{\"add\":{\"path\":\"x\"}}\n\n").unwrap(), None);
        assert!(in_lines(b"{\"metaData\":{\"id\":").is_err());
    }

    #[test]
    fn a_checkpoint_says_what_an_entry_would() {
        let mut options = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
        for (key, value) in [(None, None), (Some("k"), Some("v")), (None, None)] {
            if let (Some(key), Some(value)) = (key, value) {
                options.keys().append_value(key);
                options.values().append_value(value);
            }
            options.append(true).unwrap();
        }
        let options = Arc::new(options.finish()) as ArrayRef;
        let id = Arc::new(StringArray::from(vec!["", "a", ""])) as ArrayRef;
        let name = Arc::new(StringArray::from(vec![None::<&str>; 3])) as ArrayRef;
        let fields = StructArray::try_from(vec![("id", id), ("name", name), ("configuration", options)]).unwrap();
        let (fields, columns, _) = fields.into_parts();
        let column = StructArray::new(fields, columns, Some(NullBuffer::from(vec![false, true, false])));
        let batch = RecordBatch::try_from_iter([("metaData", Arc::new(column) as ArrayRef)]).unwrap();
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        assert_eq!(in_parquet(file.into()).unwrap(), Some(json!({"id": "a", "configuration": {"k": "v"}})));
    }

    #[test]
    fn what_other_writers_say_beside_it_is_kept() {
        let said = json!({
            "id": "a", "name": "orders", "description": "all", "createdTime": 5, "partitionColumns": ["day"],
            "format": {"provider": "parquet", "options": {"k": "v"}}, "schemaString": "{ }",
            "configuration": {"owner": "me"}, "tags": {"x": [1]},
        });
        let metadata: MetaData = serde_json::from_value(said.clone()).unwrap();
        assert_eq!(serde_json::to_value(&metadata).unwrap(), said);
    }
}
