//! Every application transaction that the log records.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, StructArray};
use arrow::datatypes::Int64Type;
use bytes::Bytes;
use deltalake::logstore::LogStoreRef;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use url::Url;

use super::actions::Txn;
use super::snapshot::Snapshot;
use crate::commit::entry::Entry;
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

/// Reads the checkpoint and the entries after it; the newest record of an app id stands. deltalake and its kernel look
/// up one app id at a time, and only if it is known.
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
    Ok(newest.into_values().map(identity).collect())
}

async fn checkpointed(table: &str, log: &LogStoreRef, url: &str) -> Result<Vec<Txn>> {
    let broken = |what: &str| Error::unsupported(format!("the checkpoint {url} of {table} {what}"));
    let path = Url::parse(url)
        .ok()
        .and_then(|url| Path::from_url_path(url.path()).ok())
        .ok_or_else(|| broken("is not a path this library can follow"))?;
    let store = log.root_object_store(None);
    let bytes = match store.get(&path).await {
        Ok(found) => found.bytes().await,
        Err(error) => Err(error),
    }
    .map_err(|e| failure::storage(table, "read the checkpoint of", e))?;
    if url.ends_with(".json") {
        return Ok(Entry::parse(0, &bytes)?.txns);
    }
    let table_name = table.to_owned();
    let read = tokio::task::spawn_blocking(move || from_parquet(bytes)).await;
    match read {
        Ok(txns) => txns.map_err(|e| broken("cannot be read").caused_by(e)),
        Err(panic) => {
            Err(Error::internal(format!("reading the checkpoint of {table_name} broke off")).caused_by(panic))
        }
    }
}

fn from_parquet(bytes: Bytes) -> parquet::errors::Result<Vec<Txn>> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes)?;
    let columns = ProjectionMask::columns(builder.parquet_schema(), ["txn"]);
    let mut txns = Vec::new();
    for batch in builder.with_projection(columns).build()? {
        let batch = batch?;
        if let Some(column) = batch.column_by_name("txn").and_then(|column| column.as_struct_opt()) {
            txns.extend((0..column.len()).filter(|row| column.is_valid(*row)).filter_map(|row| txn(column, row)));
        }
    }
    Ok(txns)
}

fn txn(column: &StructArray, row: usize) -> Option<Txn> {
    let long = |name: &str| {
        let longs = column.column_by_name(name)?.as_primitive_opt::<Int64Type>()?;
        longs.is_valid(row).then(|| longs.value(row))
    };
    Some(Txn {
        app_id: column.column_by_name("appId")?.as_string_opt::<i32>()?.value(row).to_owned(),
        version: long("version")?,
        last_updated: long("lastUpdated"),
    })
}
