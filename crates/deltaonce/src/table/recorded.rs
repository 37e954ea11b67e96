//! Every application transaction that the log records.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, StructArray};
use bytes::Bytes;
use deltalake::logstore::LogStoreRef;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use url::Url;

use super::actions::Txn;
use super::snapshot::{Snapshot, long, text};
use crate::commit::entry::Entry;
use crate::commit::replay;
use crate::error::{Error, Result};
use crate::store::failure;

/// An application transaction as the log records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedIdentity {
    /// txnAppId.
    pub app_id: String,
    /// txnVersion.
    pub version: i64,
    /// Milliseconds since the epoch.
    pub last_updated: Option<i64>,
}

/// Reads the checkpoint and the entries after it; the newest record of an app id stands, and digests of rows are left out.
/// deltalake and its kernel look up one app id at a time, and only if it is known.
pub(crate) async fn read(table: &str, log: &LogStoreRef, snapshot: &Snapshot) -> Result<Vec<RecordedIdentity>> {
    let files = snapshot.log_files()?;
    let mut newest: BTreeMap<String, Txn> = BTreeMap::new();
    let mut take = |txns: Vec<Txn>| newest.extend(txns.into_iter().map(|txn| (txn.app_id.clone(), txn)));
    for part in &files.checkpoint {
        take(checkpointed(table, log, part).await?);
    }
    for version in files.entries {
        let bytes = log.read_commit_entry(version).await.map_err(|e| failure::delta(table, "read the log of", e))?;
        take(bytes.map(|bytes| Entry::parse(version, &bytes)).transpose()?.unwrap_or_default().txns);
    }
    let identity =
        |txn: Txn| RecordedIdentity { app_id: txn.app_id, version: txn.version, last_updated: txn.last_updated };
    Ok(newest.into_values().filter(|txn| !replay::keeps_digests(&txn.app_id)).map(identity).collect())
}

async fn checkpointed(table: &str, log: &LogStoreRef, url: &str) -> Result<Vec<Txn>> {
    let bytes = checkpoint_part(table, log, url).await?;
    if url.ends_with(".json") {
        return Ok(Entry::parse(0, &bytes)?.txns);
    }
    let table_name = table.to_owned();
    let read = tokio::task::spawn_blocking(move || from_parquet(bytes)).await;
    match read {
        Ok(txns) => txns.map_err(|e| {
            Error::unsupported(format!("the checkpoint {url} of {table} cannot be read: {e}")).caused_by(e)
        }),
        Err(panic) => {
            Err(Error::internal(format!("reading the checkpoint of {table_name} broke off")).caused_by(panic))
        }
    }
}

/// The bytes of a checkpoint's part, which [`Snapshot::log_files`] names.
pub(super) async fn checkpoint_part(table: &str, log: &LogStoreRef, url: &str) -> Result<Bytes> {
    let path = Url::parse(url).ok().and_then(|url| Path::from_url_path(url.path()).ok()).ok_or_else(|| {
        Error::unsupported(format!("the checkpoint {url} of {table} is not a path this library can follow"))
    })?;
    let store = log.root_object_store(None);
    let read = match store.get(&path).await {
        Ok(found) => found.bytes().await,
        Err(error) => Err(error),
    };
    read.map_err(|e| failure::storage(table, "read the checkpoint of", e))
}

fn from_parquet(bytes: Bytes) -> parquet::errors::Result<Vec<Txn>> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes)?;
    let columns = ProjectionMask::columns(builder.parquet_schema(), ["txn"]);
    let mut txns = Vec::new();
    for batch in builder.with_projection(columns).build()? {
        let batch = batch?;
        let Some(column) = batch.column_by_name("txn") else { continue };
        let odd = || ParquetError::General("it records a transaction in a form that is not Delta's".to_owned());
        let column = column.as_struct_opt().ok_or_else(odd)?;
        for row in (0..column.len()).filter(|row| column.is_valid(*row)) {
            txns.push(txn(column, row).ok_or_else(odd)?);
        }
    }
    Ok(txns)
}

/// The transaction at a row; none where its app id or version is missing or of another type.
fn txn(column: &StructArray, row: usize) -> Option<Txn> {
    Some(Txn {
        app_id: text(column.column_by_name("appId")?, row)?,
        version: long(column.column_by_name("version")?, row)?,
        last_updated: column.column_by_name("lastUpdated").and_then(|times| long(times, row)),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int32Array, Int64Array, LargeStringArray, RecordBatch, StringArray, StringViewArray};
    use parquet::arrow::ArrowWriter;

    use super::*;

    fn checkpoint(fields: Vec<(&str, ArrayRef)>) -> parquet::errors::Result<Vec<Txn>> {
        let txn = StructArray::try_from(fields).unwrap();
        let batch = RecordBatch::try_from_iter([("txn", Arc::new(txn) as ArrayRef)]).unwrap();
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        from_parquet(file.into())
    }

    #[test]
    fn app_ids_are_read_from_any_array_of_texts() {
        let ids: [ArrayRef; 3] = [
            Arc::new(StringArray::from(vec!["orders"])),
            Arc::new(LargeStringArray::from(vec!["orders"])),
            Arc::new(StringViewArray::from(vec!["orders"])),
        ];
        for id in ids {
            let version: ArrayRef = Arc::new(Int64Array::from(vec![7]));
            let txns = checkpoint(vec![("appId", id), ("version", version)]).unwrap();
            assert_eq!(txns, [Txn { app_id: "orders".to_owned(), version: 7, last_updated: None }]);
        }
    }

    #[test]
    fn a_transaction_of_other_types_is_an_error_and_not_left_out() {
        let id = || -> ArrayRef { Arc::new(StringArray::from(vec!["orders"])) };
        let version = || -> ArrayRef { Arc::new(Int64Array::from(vec![7])) };
        let odd: [Vec<(&str, ArrayRef)>; 4] = [
            vec![("appId", id()), ("version", Arc::new(Int32Array::from(vec![7])))],
            vec![("appId", version()), ("version", version())],
            vec![("appId", id())],
            vec![("appId", id()), ("version", Arc::new(Int64Array::from(vec![None])))],
        ];
        for fields in odd {
            let error = checkpoint(fields).unwrap_err();
            assert!(error.to_string().contains("a form that is not Delta's"), "{error}");
        }
    }
}
