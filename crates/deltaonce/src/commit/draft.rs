//! A change as the log entry that makes it, under Delta's own operation names, parameters and metrics.

use serde_json::json;

use super::entry::{Draft, Info};
use super::replay;
use crate::load::{Contract, Load, Scope};
use crate::plan::Change;
use crate::prepare::digest::RowsDigest;
use crate::table::actions::AddFile;
use crate::table::definition::Definition;

/// What an entry says besides the change itself.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) load: &'a Load,
    pub(crate) token: &'a str,
    /// Milliseconds since the epoch.
    pub(crate) now: i64,
    /// Of the rows of the source; that of none where the load has no identity.
    pub(crate) rows: RowsDigest,
    /// The snapshot's version; none where the load makes the table.
    pub(crate) read_version: Option<u64>,
    pub(crate) partition_columns: &'a [String],
    /// The scope as a predicate, where a replace has one.
    pub(crate) predicate: Option<String>,
    /// Given where the load makes the table.
    pub(crate) creates: Option<&'a Definition>,
}

/// The entry that makes `change`.
pub(crate) fn draft(facts: &Facts<'_>, change: &Change) -> Draft {
    Draft {
        info: Info {
            timestamp: facts.now,
            operation: match facts.load.contract {
                _ if only_creates(facts, change) => "CREATE TABLE",
                Contract::Append | Contract::Replace(_) => "WRITE",
                Contract::Merge { .. } | Contract::Insert { .. } => "MERGE",
            },
            parameters: if only_creates(facts, change) { creation(facts) } else { parameters(facts) },
            metrics: metrics(facts, change),
            blind_append: facts.load.contract == Contract::Append,
            read_version: facts.read_version,
            token: facts.token.to_owned(),
            contract: facts.load.contract.name(),
            run_id: facts.load.run_id.clone(),
        },
        protocol: facts.creates.map(|definition| definition.protocol.clone()),
        metadata: facts.creates.map(|definition| definition.metadata.clone()),
        txns: replay::record(&facts.load.identities, facts.rows, facts.now),
        removes: change.replaced().map(|file| file.remove(facts.now)).collect(),
        adds: change.adds.iter().chain(change.masks.iter().map(|mask| &mask.masked)).cloned().collect(),
        changes: change.changes.clone(),
    }
}

/// Whether the entry makes a table and puts nothing into it.
fn only_creates(facts: &Facts<'_>, change: &Change) -> bool {
    facts.creates.is_some() && change.is_empty()
}

fn creation(facts: &Facts<'_>) -> Vec<(&'static str, String)> {
    let properties = facts.creates.map(|definition| json!(definition.metadata.configuration)).unwrap_or_default();
    vec![
        ("isManaged", "false".to_owned()),
        ("partitionBy", json!(facts.partition_columns).to_string()),
        ("properties", properties.to_string()),
    ]
}

fn parameters(facts: &Facts<'_>) -> Vec<(&'static str, String)> {
    let keys = |key: &[String]| {
        let equal: Vec<String> = key.iter().map(|column| format!("source.`{column}` = target.`{column}`")).collect();
        json!([equal.join(" AND ")]).to_string()
    };
    let write =
        |mode: &str| vec![("mode", mode.to_owned()), ("partitionBy", json!(facts.partition_columns).to_string())];
    match &facts.load.contract {
        Contract::Append => write("Append"),
        Contract::Replace(scope) => {
            let mut parameters = write("Overwrite");
            parameters.extend(facts.predicate.clone().map(|predicate| ("predicate", predicate)));
            if *scope == Scope::Partitions {
                parameters.push(("isDynamicPartitionOverwrite", "true".to_owned()));
            }
            parameters
        }
        Contract::Merge { key, order, .. } => {
            let update = match order {
                Some(order) => json!([{ "actionType": "update", "predicate": format!("source is newer by {order}") }]),
                None => json!([{ "actionType": "update", "predicate": "source differs" }]),
            };
            vec![
                ("predicate", keys(key)),
                ("matchedPredicates", update.to_string()),
                ("notMatchedPredicates", json!([{ "actionType": "insert" }]).to_string()),
                ("notMatchedBySourcePredicates", "[]".to_owned()),
            ]
        }
        Contract::Insert { key } => vec![
            ("predicate", keys(key)),
            ("matchedPredicates", "[]".to_owned()),
            ("notMatchedPredicates", json!([{ "actionType": "insert" }]).to_string()),
            ("notMatchedBySourcePredicates", "[]".to_owned()),
        ],
    }
}

fn metrics(facts: &Facts<'_>, change: &Change) -> Vec<(&'static str, u64)> {
    let count = |files: usize| files as u64;
    // The sizes of files that others added may be any numbers.
    let bytes = |files: &[AddFile]| files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.size.unsigned_abs()));
    let vectors =
        |files: &mut dyn Iterator<Item = &AddFile>| files.filter(|file| file.deletion_vector.is_some()).count() as u64;
    let rows = &change.rows;
    match facts.load.contract {
        Contract::Append | Contract::Replace(_) => vec![
            ("numFiles", count(change.adds.len())),
            ("numOutputBytes", bytes(&change.adds)),
            ("numOutputRows", rows.inserted + change.copied),
            ("numRemovedFiles", count(change.removes.len())),
            ("numRemovedBytes", bytes(&change.removes)),
            ("numAddedChangeFiles", count(change.changes.len())),
            ("numDeletedRows", rows.deleted),
            ("numCopiedRows", change.copied),
        ],
        Contract::Merge { .. } | Contract::Insert { .. } => vec![
            ("numSourceRows", rows.read),
            ("numTargetRowsInserted", rows.inserted),
            ("numTargetRowsUpdated", rows.updated),
            ("numTargetRowsMatchedUpdated", rows.updated),
            ("numTargetRowsDeleted", rows.deleted),
            ("numTargetRowsCopied", change.copied),
            ("numOutputRows", rows.inserted + rows.updated + change.copied),
            ("numTargetDeletionVectorsAdded", count(change.masks.len())),
            ("numTargetDeletionVectorsRemoved", vectors(&mut change.replaced())),
            ("numTargetDeletionVectorsUpdated", vectors(&mut change.masks.iter().map(|mask| &mask.file))),
            ("numTargetChangeFilesAdded", count(change.changes.len())),
            ("numTargetFilesAdded", count(change.adds.len())),
            ("numTargetFilesRemoved", count(change.removes.len())),
            ("numTargetBytesAdded", bytes(&change.adds)),
            ("numTargetBytesRemoved", bytes(&change.removes)),
        ],
    }
}
