//! What a program reads: types of this program, not of the library, since programs depend on them.

use std::collections::BTreeMap;

use deltaonce::{Commit, Description, Error, Identity, Outcome, Receipt, RecordedIdentity};
use serde::Serialize;
use serde_json::Value;

use super::{Report, Subject, words};

/// A report as one line of JSON.
pub(crate) fn report(report: &Report) -> String {
    match report {
        Report::Load(receipt) => line(&LoadDocument::from(&**receipt)),
        Report::Table { table, description } => line(&TableDocument::new(table, description)),
        Report::History { table, commits } => {
            line(&HistoryDocument { table, commits: commits.iter().map(CommitItem::from).collect() })
        }
        Report::Txns { table, txns } => line(&TxnsDocument { table, txns: txns.iter().map(TxnItem::from).collect() }),
        Report::Held { table, commit } => {
            line(&HeldDocument { outcome: "held", table, entry: CommitItem::from(commit) })
        }
        Report::Script(script) => script.clone(),
    }
}

/// An error as one line of JSON.
pub(crate) fn error(error: &Error, subject: &Subject) -> String {
    line(&ErrorDocument {
        outcome: words::kind(error.kind()),
        table: subject.table.as_deref(),
        contract: subject.contract,
        error: ErrorItem {
            kind: words::kind(error.kind()),
            retryable: error.kind().is_retryable(),
            message: error.message(),
            details: error.evidence(),
            hint: error.advice(),
            cause: std::error::Error::source(error).map(ToString::to_string),
        },
    })
}

fn line(document: &impl Serialize) -> String {
    // These types hold nothing that JSON cannot say; should one ever, the reader still gets one document.
    let text = serde_json::to_string(document).unwrap_or_else(|e| {
        Value::from_iter([("outcome", "internal".to_owned()), ("error", e.to_string())]).to_string()
    });
    text + "\n"
}

#[derive(Serialize)]
struct LoadDocument<'a> {
    outcome: &'static str,
    table: &'a str,
    /// The version that holds the load, or that was compared; null where the log no longer says which.
    version: Option<u64>,
    contract: &'a str,
    identity: Vec<IdentityItem<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped_by: Option<SkippedBy<'a>>,
    token: Option<&'a str>,
    run_id: Option<&'a str>,
    attempts: u32,
    rows: Rows,
    files: Files,
    bytes: Bytes,
    took_ms: u64,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct IdentityItem<'a> {
    app_id: &'a str,
    version: i64,
}

#[derive(Serialize)]
struct SkippedBy<'a> {
    app_id: &'a str,
    version: i64,
    recorded_version: i64,
    superseded: bool,
    at_version: Option<u64>,
    at_time: Option<String>,
}

#[derive(Serialize)]
struct Rows {
    read: u64,
    duplicates: u64,
    superseded: u64,
    inserted: u64,
    updated: u64,
    deleted: u64,
    stale: u64,
    divergent: u64,
    unchanged: u64,
    /// A rejected row refuses the whole load, so a load that ended well has none.
    rejected: u64,
}

#[derive(Serialize)]
struct Files {
    added: u64,
    removed: u64,
    masked: u64,
    probed: u64,
    pruned: u64,
}

#[derive(Serialize)]
struct Bytes {
    read: u64,
    written: u64,
}

impl<'a> From<&'a Identity> for IdentityItem<'a> {
    fn from(identity: &'a Identity) -> Self {
        Self { app_id: &identity.app_id, version: identity.version }
    }
}

impl<'a> From<&'a Receipt> for LoadDocument<'a> {
    fn from(receipt: &'a Receipt) -> Self {
        let (outcome, version, skipped_by) = match &receipt.outcome {
            Outcome::Committed { version } => ("committed", Some(*version), None),
            Outcome::Unchanged { version } => ("unchanged", Some(*version), None),
            Outcome::Skipped { by, recorded, at_version, at_time } => {
                let skipped_by = SkippedBy {
                    app_id: &by.app_id,
                    version: by.version,
                    recorded_version: *recorded,
                    superseded: *recorded > by.version,
                    at_version: *at_version,
                    at_time: at_time.and_then(words::timestamp),
                };
                ("skipped", *at_version, Some(skipped_by))
            }
        };
        let (rows, files, bytes) = (&receipt.rows, &receipt.files, &receipt.bytes);
        Self {
            outcome,
            table: &receipt.table,
            version,
            contract: &receipt.contract,
            identity: receipt.identities.iter().map(IdentityItem::from).collect(),
            skipped_by,
            token: receipt.token.as_deref(),
            run_id: receipt.run_id.as_deref(),
            attempts: receipt.attempts,
            rows: Rows {
                read: rows.read,
                duplicates: rows.duplicates,
                superseded: rows.superseded,
                inserted: rows.inserted,
                updated: rows.updated,
                deleted: rows.deleted,
                stale: rows.stale,
                divergent: rows.divergent,
                unchanged: rows.unchanged,
                rejected: 0,
            },
            files: Files {
                added: files.added,
                removed: files.removed,
                masked: files.masked,
                probed: files.probed,
                pruned: files.pruned,
            },
            bytes: Bytes { read: bytes.read, written: bytes.written },
            took_ms: u64::try_from(receipt.took.as_millis()).unwrap_or(u64::MAX),
            warnings: &receipt.warnings,
        }
    }
}

#[derive(Serialize)]
struct ErrorDocument<'a> {
    outcome: &'static str,
    table: Option<&'a str>,
    contract: Option<&'static str>,
    error: ErrorItem<'a>,
}

#[derive(Serialize)]
struct ErrorItem<'a> {
    kind: &'static str,
    retryable: bool,
    message: &'a str,
    details: &'a [String],
    hint: Option<&'a str>,
    cause: Option<String>,
}

#[derive(Serialize)]
struct TableDocument<'a> {
    table: &'a str,
    version: u64,
    schema: &'a [String],
    partition_columns: &'a [String],
    properties: BTreeMap<&'a str, &'a str>,
    features: &'a [String],
    files: u64,
    rows: Option<u64>,
    bytes: u64,
}

impl<'a> TableDocument<'a> {
    fn new(table: &'a str, description: &'a Description) -> Self {
        Self {
            table,
            version: description.version,
            schema: &description.schema,
            partition_columns: &description.partition_columns,
            properties: description.properties.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect(),
            features: &description.features,
            files: description.files,
            rows: description.rows,
            bytes: description.bytes,
        }
    }
}

#[derive(Serialize)]
struct HistoryDocument<'a> {
    table: &'a str,
    commits: Vec<CommitItem<'a>>,
}

#[derive(Serialize)]
struct CommitItem<'a> {
    version: u64,
    timestamp: Option<String>,
    operation: Option<&'a str>,
    operation_parameters: &'a BTreeMap<String, String>,
    metrics: &'a BTreeMap<String, String>,
    identity: Vec<IdentityItem<'a>>,
    engine: Option<&'a str>,
    run_id: Option<&'a str>,
    token: Option<&'a str>,
}

impl<'a> From<&'a Commit> for CommitItem<'a> {
    fn from(commit: &'a Commit) -> Self {
        Self {
            version: commit.version,
            timestamp: commit.timestamp.and_then(words::timestamp),
            operation: commit.operation.as_deref(),
            operation_parameters: &commit.parameters,
            metrics: &commit.metrics,
            identity: commit.identities.iter().map(IdentityItem::from).collect(),
            engine: commit.engine.as_deref(),
            run_id: commit.run_id.as_deref(),
            token: commit.token.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct HeldDocument<'a> {
    outcome: &'static str,
    table: &'a str,
    entry: CommitItem<'a>,
}

#[derive(Serialize)]
struct TxnsDocument<'a> {
    table: &'a str,
    txns: Vec<TxnItem<'a>>,
}

#[derive(Serialize)]
struct TxnItem<'a> {
    app_id: &'a str,
    version: i64,
    last_updated: Option<String>,
}

impl<'a> From<&'a RecordedIdentity> for TxnItem<'a> {
    fn from(txn: &'a RecordedIdentity) -> Self {
        Self { app_id: &txn.app_id, version: txn.version, last_updated: txn.last_updated.and_then(words::timestamp) }
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
