//! What the log tells of its entries.

use std::collections::BTreeMap;

use deltalake::logstore::LogStore;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use crate::commit::entry::Entry;
use crate::commit::replay;
use crate::error::Result;
use crate::load::Identity;
use crate::store::failure;

/// Entries read at once.
const AT_ONCE: usize = 16;

/// One log entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// The version that it made.
    pub version: u64,
    /// Milliseconds since the epoch.
    pub timestamp: Option<i64>,
    /// `WRITE`, `MERGE`, …
    pub operation: Option<String>,
    /// As the writer gave them.
    pub parameters: BTreeMap<String, String>,
    /// As the writer gave them.
    pub metrics: BTreeMap<String, String>,
    /// Identities that it records.
    pub identities: Vec<Identity>,
    /// The program that wrote it.
    pub engine: Option<String>,
    /// The caller's name for the run, where we wrote it.
    pub run_id: Option<String>,
    /// The attempt token (`txnId`).
    pub token: Option<String>,
}

/// What has become of the log entry that a receipt names.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// The log holds it.
    Held(Box<Commit>),
    /// The log holds another entry in its place: its writer put it without a condition, over ours.
    Overwritten(Box<Commit>),
    /// The log ends before it.
    Missing {
        /// The log's latest version.
        latest: u64,
    },
    /// The log begins after it, so that there is no telling.
    CleanedUp,
}

/// What has become of entry `version`, which carried `token`.
pub(crate) async fn standing(
    table: &str,
    log: &dyn LogStore,
    latest: u64,
    version: u64,
    token: &str,
) -> Result<Standing> {
    if version > latest {
        return Ok(Standing::Missing { latest });
    }
    let bytes = log.read_commit_entry(version).await.map_err(|e| failure::delta(table, "read the log of", e))?;
    let Some(bytes) = bytes else { return Ok(Standing::CleanedUp) };
    let entry = Entry::parse(version, &bytes).map_err(|error| error.about(table))?;
    let found = Box::new(commit(version, &entry));
    Ok(if entry.token() == Some(token) { Standing::Held(found) } else { Standing::Overwritten(found) })
}

/// The newest `limit` entries up to `latest`, newest first, ending where the log was cleaned up.
pub(crate) async fn read(table: &str, log: &dyn LogStore, latest: u64, limit: usize) -> Result<Vec<Commit>> {
    let mut entries = newest_first(table, log, latest);
    let mut commits = Vec::new();
    while commits.len() < limit
        && let Some((version, entry)) = entries.try_next().await?
    {
        commits.push(commit(version, &entry));
    }
    Ok(commits)
}

/// The newest entry that records `app_id`, among the last `within` of the log.
pub(crate) async fn recording(
    table: &str,
    log: &dyn LogStore,
    latest: u64,
    app_id: &str,
    within: usize,
) -> Result<Option<(u64, Entry)>> {
    let mut entries = newest_first(table, log, latest).take(within);
    while let Some((version, entry)) = entries.try_next().await? {
        if entry.txns.iter().any(|txn| txn.app_id == app_id) {
            return Ok(Some((version, entry)));
        }
    }
    Ok(None)
}

fn newest_first<'a>(
    table: &'a str,
    log: &'a dyn LogStore,
    latest: u64,
) -> futures::stream::BoxStream<'a, Result<(u64, Entry)>> {
    stream::iter((0..=latest).rev())
        .map(move |version| async move {
            let bytes =
                log.read_commit_entry(version).await.map_err(|e| failure::delta(table, "read the log of", e))?;
            bytes
                .map(|bytes| Ok((version, Entry::parse(version, &bytes).map_err(|error| error.about(table))?)))
                .transpose()
        })
        .buffered(AT_ONCE)
        .try_take_while(|entry| futures::future::ready(Ok(entry.is_some())))
        .try_filter_map(|entry| futures::future::ready(Ok(entry)))
        .boxed()
}

fn commit(version: u64, entry: &Entry) -> Commit {
    let info = |key: &str| entry.info.as_ref().and_then(|info| info.get(key));
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let texts = |key: &str| {
        let map = info(key).and_then(Value::as_object);
        let as_text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        map.map(|map| map.iter().map(|(key, value)| (key.clone(), as_text(value))).collect()).unwrap_or_default()
    };
    Commit {
        version,
        timestamp: entry.timestamp(),
        operation: text(info("operation")),
        parameters: texts("operationParameters"),
        metrics: texts("operationMetrics"),
        identities: entry
            .txns
            .iter()
            .filter(|txn| !replay::keeps_digests(&txn.app_id))
            .map(|txn| Identity { app_id: txn.app_id.clone(), version: txn.version })
            .collect(),
        engine: text(info("engineInfo")),
        run_id: text(info("deltaonce").and_then(|ours| ours.get("runId"))),
        token: text(info("txnId")),
    }
}
