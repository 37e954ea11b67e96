//! The public API that the command line is written against, without anything behind it.

#![allow(missing_docs, clippy::unused_async, dead_code)]

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::io::AsyncRead;

use crate::error::{Error, Result};
use crate::host::Host;
use crate::load::{Identity, Load, TableSpec};
use crate::receipt::Receipt;

#[derive(Debug, Clone)]
pub struct Location {
    text: String,
}

impl Location {
    pub fn parse_with_defaults(
        text: &str,
        _defaults: Vec<(String, String)>,
        _options: Vec<(String, String)>,
    ) -> Result<Self> {
        Ok(Self { text: text.to_owned() })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Csv,
    Ndjson,
    Parquet,
    Arrow,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvOptions {
    pub delimiter: u8,
    pub quote: Option<u8>,
    pub null: Option<String>,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self { delimiter: b',', quote: Some(b'"'), null: None }
    }
}

#[derive(Debug)]
pub struct Source;

impl Source {
    pub fn files(_paths: Vec<String>) -> Self {
        Self
    }

    pub fn reader(_reader: impl AsyncRead + Send + Unpin + 'static, _format: Format) -> Self {
        Self
    }

    #[must_use]
    pub fn name(self, _name: impl Into<String>) -> Self {
        self
    }

    #[must_use]
    pub fn format(self, _format: Format) -> Self {
        self
    }

    #[must_use]
    pub fn csv(self, _options: CsvOptions) -> Self {
        self
    }

    #[must_use]
    pub fn storage_options(self, _defaults: Vec<(String, String)>, _options: Vec<(String, String)>) -> Self {
        self
    }
}

#[derive(Debug)]
pub struct Table {
    location: Location,
    _host: Arc<dyn Host>,
}

/// Asks a running [`Table::apply`] or [`Table::create`] to end as interrupted, with its files removed.
#[derive(Debug, Clone)]
pub struct StopHandle;

impl StopHandle {
    pub fn stop(&self) {}
}

/// What a table is now.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    pub version: u64,
    /// A column each, as in a SQL column list.
    pub schema: Vec<String>,
    pub partition_columns: Vec<String>,
    pub properties: Vec<(String, String)>,
    pub features: Vec<String>,
    pub files: u64,
    /// None where a file has no count in the log.
    pub rows: Option<u64>,
    pub bytes: u64,
}

/// One entry of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    pub version: u64,
    /// Milliseconds since the epoch.
    pub timestamp: Option<i64>,
    pub operation: Option<String>,
    pub parameters: BTreeMap<String, String>,
    pub metrics: BTreeMap<String, String>,
    pub identities: Vec<Identity>,
    pub engine: Option<String>,
    pub run_id: Option<String>,
    pub token: Option<String>,
}

/// An identity that the log records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedIdentity {
    pub app_id: String,
    pub version: i64,
    /// Milliseconds since the epoch.
    pub last_updated: Option<i64>,
}

impl Table {
    pub async fn open(location: Location, host: Arc<dyn Host>) -> Result<Self> {
        Ok(Self { location, _host: host })
    }

    fn missing<T>(&self) -> Result<T> {
        Err(Error::internal(format!("nothing is behind {} yet", self.location.text)))
    }

    pub async fn apply(&self, _load: &Load, _source: Source) -> Result<Receipt> {
        self.missing()
    }

    pub async fn create(&self, _spec: &TableSpec) -> Result<Receipt> {
        self.missing()
    }

    pub async fn describe(&self) -> Result<Description> {
        self.missing()
    }

    pub async fn history(&self, _limit: usize) -> Result<Vec<Commit>> {
        self.missing()
    }

    pub async fn txns(&self) -> Result<Vec<RecordedIdentity>> {
        self.missing()
    }

    pub fn stopper(&self) -> StopHandle {
        StopHandle
    }
}
