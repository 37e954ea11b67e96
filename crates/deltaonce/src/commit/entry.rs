//! One log entry: written as lines of JSON, and read back to learn whose it is and what it did.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::table::actions::{AddFile, ChangeFile, RemoveFile, Txn};
use crate::table::definition::{MetaData, Protocol};

/// The name and version that entries carry as `engineInfo`.
pub(crate) const ENGINE: &str = concat!("deltaonce/", env!("CARGO_PKG_VERSION"));

/// A log entry to be written, but for what an attempt decides: its version and, where the table keeps them, its
/// in-commit timestamp.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) info: Info,
    /// Only in an entry that creates a table or changes what it is.
    pub(crate) protocol: Option<Protocol>,
    pub(crate) metadata: Option<MetaData>,
    pub(crate) txns: Vec<Txn>,
    pub(crate) removes: Vec<RemoveFile>,
    pub(crate) adds: Vec<AddFile>,
    pub(crate) changes: Vec<ChangeFile>,
}

/// What `commitInfo` says (protocol, "Commit Provenance Information"), in Delta's own names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Info {
    /// Milliseconds since the epoch.
    pub(crate) timestamp: i64,
    pub(crate) operation: &'static str,
    /// Values are text, those that are lists or booleans as JSON text, as Delta's writers give them.
    pub(crate) parameters: Vec<(&'static str, String)>,
    pub(crate) metrics: Vec<(&'static str, u64)>,
    pub(crate) blind_append: bool,
    pub(crate) read_version: Option<u64>,
    /// The attempt token.
    pub(crate) token: String,
    pub(crate) contract: &'static str,
    pub(crate) run_id: Option<String>,
}

impl Draft {
    /// The entry's bytes. `in_commit_timestamp` is given for tables that keep them; `commitInfo` is the first line, as
    /// they ask (protocol, "In-Commit Timestamps").
    pub(crate) fn encode(&self, in_commit_timestamp: Option<i64>) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        write_action(&mut out, "commitInfo", &self.info.to_json(in_commit_timestamp))?;
        if let Some(protocol) = &self.protocol {
            write_action(&mut out, "protocol", protocol)?;
        }
        if let Some(metadata) = &self.metadata {
            write_action(&mut out, "metaData", metadata)?;
        }
        for txn in &self.txns {
            write_action(&mut out, "txn", txn)?;
        }
        for remove in &self.removes {
            write_action(&mut out, "remove", remove)?;
        }
        for add in &self.adds {
            write_action(&mut out, "add", add)?;
        }
        for change in &self.changes {
            write_action(&mut out, "cdc", change)?;
        }
        Ok(out)
    }
}

fn write_action(out: &mut Vec<u8>, name: &str, action: &impl Serialize) -> Result<()> {
    let mut line = Map::new();
    let value =
        serde_json::to_value(action).map_err(|e| Error::internal(format!("cannot write a {name}")).caused_by(e))?;
    line.insert(name.to_owned(), value);
    serde_json::to_writer(&mut *out, &line)
        .map_err(|e| Error::internal(format!("cannot write a {name}")).caused_by(e))?;
    out.push(b'\n');
    Ok(())
}

impl Info {
    fn to_json(&self, in_commit_timestamp: Option<i64>) -> Value {
        let text_map = |pairs: &mut dyn Iterator<Item = (&'static str, String)>| -> Value {
            pairs.map(|(key, value)| (key.to_owned(), Value::String(value))).collect::<Map<_, _>>().into()
        };
        let mut info = json!({
            "timestamp": self.timestamp,
            "operation": self.operation,
            "operationParameters": text_map(&mut self.parameters.iter().cloned()),
            "isolationLevel": "Serializable",
            "isBlindAppend": self.blind_append,
            "operationMetrics": text_map(&mut self.metrics.iter().map(|(key, count)| (*key, count.to_string()))),
            "engineInfo": ENGINE,
            "txnId": self.token,
            "deltaonce": { "contract": self.contract },
        });
        if let Some(version) = self.read_version {
            info["readVersion"] = version.into();
        }
        if let Some(run_id) = &self.run_id {
            info["deltaonce"]["runId"] = run_id.as_str().into();
        }
        if let Some(timestamp) = in_commit_timestamp {
            info["inCommitTimestamp"] = timestamp.into();
        }
        info
    }
}

/// A log entry that somebody wrote, as far as a commit needs to know it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entry {
    /// The whole `commitInfo`, where there is one.
    pub(crate) info: Option<Map<String, Value>>,
    pub(crate) txns: Vec<Txn>,
    pub(crate) adds: Vec<AddFile>,
    pub(crate) removes: Vec<RemoveFile>,
    /// Whether it changes the table's schema, partitioning, properties or protocol.
    pub(crate) changes_definition: bool,
}

impl Entry {
    /// Reads an entry.
    ///
    /// # Errors
    /// `Retryable` where a line is not an action: a torn read, or an entry that no reader could read.
    pub(crate) fn parse(version: u64, bytes: &[u8]) -> Result<Self> {
        let mut entry = Self::default();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            entry.take(line).map_err(|e| {
                Error::retryable(format!("log entry {version} cannot be read: a line of it is not a Delta action"))
                    .caused_by(e)
            })?;
        }
        Ok(entry)
    }

    fn take(&mut self, line: &[u8]) -> serde_json::Result<()> {
        let action: Map<String, Value> = serde_json::from_slice(line)?;
        for (name, value) in action {
            match name.as_str() {
                "commitInfo" => self.info = serde_json::from_value(value)?,
                "txn" => self.txns.push(serde_json::from_value(value)?),
                "add" => self.adds.push(serde_json::from_value(value)?),
                "remove" => self.removes.push(serde_json::from_value(value)?),
                "metaData" | "protocol" => self.changes_definition = true,
                _ => {}
            }
        }
        Ok(())
    }

    fn info(&self, key: &str) -> Option<&Value> {
        self.info.as_ref()?.get(key)
    }

    /// The writer's token for this entry, if it gave one.
    pub(crate) fn token(&self) -> Option<&str> {
        self.info("txnId")?.as_str()
    }

    /// When it was committed, milliseconds since the epoch.
    pub(crate) fn timestamp(&self) -> Option<i64> {
        self.in_commit_timestamp().or_else(|| self.info("timestamp")?.as_i64())
    }

    /// The in-commit timestamp, where the table keeps them.
    pub(crate) fn in_commit_timestamp(&self) -> Option<i64> {
        self.info("inCommitTimestamp")?.as_i64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> Draft {
        Draft {
            info: Info { operation: "WRITE", token: "t-1".into(), contract: "append", ..Info::default() },
            protocol: None,
            metadata: None,
            txns: vec![Txn { app_id: "orders".into(), version: 42, last_updated: Some(5) }],
            removes: Vec::new(),
            adds: Vec::new(),
            changes: Vec::new(),
        }
    }

    #[test]
    fn an_entry_reads_back_as_it_was_written() {
        let bytes = draft().encode(Some(17)).unwrap();
        let entry = Entry::parse(3, &bytes).unwrap();
        assert_eq!(entry.token(), Some("t-1"));
        assert_eq!(entry.timestamp(), Some(17));
        assert_eq!(entry.txns, draft().txns);
        assert!(!entry.changes_definition);
    }

    #[test]
    fn commit_info_is_the_first_line() {
        let bytes = draft().encode(None).unwrap();
        assert!(bytes.starts_with(br#"{"commitInfo":"#));
    }

    #[test]
    fn a_torn_entry_is_not_taken_for_a_rival() {
        let bytes = draft().encode(None).unwrap();
        assert!(Entry::parse(3, &bytes[..bytes.len() / 2]).is_err());
    }

    #[test]
    fn an_unknown_action_is_passed_over() {
        let entry = Entry::parse(3, b"{\"cdc\":{\"path\":\"x\"}}\n{\"sidecar\":1}\n\n").unwrap();
        assert!(entry.adds.is_empty());
    }
}
