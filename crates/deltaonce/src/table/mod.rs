//! A table: opening, creating, its snapshot, its schema and the features its log asks for.

pub(crate) mod actions;
pub(crate) mod columns;
pub(crate) mod create;
pub(crate) mod data_file;
pub(crate) mod definition;
pub(crate) mod deletion_vector;
pub(crate) mod encoded;
pub(crate) mod features;
pub(crate) mod history;
pub(crate) mod metadata;
pub(crate) mod properties;
pub(crate) mod protocol;
pub(crate) mod recorded;
pub(crate) mod row_ranges;
pub(crate) mod scan;
pub(crate) mod schema;
mod shape;
pub(crate) mod snapshot;
mod sql_columns;
pub(crate) mod widen;

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::Field;
use deltalake::logstore::{LogStoreRef, StorageConfig, default_logstore};
use object_store::ObjectStore;
use object_store::prefix::PrefixStore;

use crate::apply::Run;
use crate::commit;
#[cfg(any(test, feature = "fault"))]
use crate::commit::rules::CommitRule;
use crate::commit::rules::Rules;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::load::{Load, Properties, TableSpec};
use crate::receipt::Receipt;
use crate::source::Source;
use crate::stop::Stop;
use crate::store::location::Location;
use crate::store::nesting::Shallow;
use snapshot::Snapshot;

pub use history::{Commit, Standing};
pub use recorded::RecordedIdentity;

/// A Delta table, or the place where one will be.
///
/// Cheap to clone; clones share the connection and the [`Stop`].
#[derive(Debug, Clone)]
pub struct Table {
    location: Location,
    name: Arc<str>,
    /// Rooted at the table.
    store: Arc<dyn ObjectStore>,
    /// Sends each request once, as a commit needs it.
    log: LogStoreRef,
    /// The same log, for reading.
    reader: LogStoreRef,
    host: Arc<dyn Host>,
    stop: Stop,
    rules: Rules,
}

/// What [`Table::describe`] says.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// The latest version.
    pub version: u64,
    /// The columns in SQL, one each: `order_id bigint not null`.
    pub schema: Vec<String>,
    /// Partition columns, in order.
    pub partition_columns: Vec<String>,
    /// Table properties, by name.
    pub properties: Vec<(String, String)>,
    /// What the protocol asks of readers and writers: `reader 1`, `writer 2`, and the table features that it lists.
    pub features: Vec<String>,
    /// Data files.
    pub files: u64,
    /// Rows, where every file says how many it has.
    pub rows: Option<u64>,
    /// Bytes of the data files.
    pub bytes: u64,
}

impl Table {
    /// Opens the table at `location`; there need not be one yet. No request is sent.
    ///
    /// # Errors
    /// `Invalid` where the location's options cannot be used.
    #[allow(
        clippy::unused_async,
        reason = "opening may come to ask the store, and callers should not have to change then"
    )]
    pub async fn open(location: Location, host: Arc<dyn Host>) -> Result<Self> {
        let root = location.store()?;
        let store: Arc<dyn ObjectStore> = Arc::new(PrefixStore::new(root.clone(), location.path().clone()));
        let entries: Arc<dyn ObjectStore> =
            Arc::new(PrefixStore::new(location.store_sending_once()?, location.path().clone()));
        let log = default_logstore(entries, root.clone(), location.url(), &StorageConfig::default());
        let shallow = |store: Arc<dyn ObjectStore>| -> Arc<dyn ObjectStore> { Arc::new(Shallow::new(store)) };
        let reader = default_logstore(shallow(store.clone()), shallow(root), location.url(), &StorageConfig::default());
        Ok(Self {
            name: location.to_string().into(),
            location,
            store,
            log,
            reader,
            host,
            stop: Stop::default(),
            rules: Rules::default(),
        })
    }

    /// The same table, whose loads break one rule of the commit, for tests that must notice.
    #[cfg(any(test, feature = "fault"))]
    #[must_use]
    pub fn breaking(self, rule: CommitRule) -> Self {
        Self { rules: Rules::without(rule), ..self }
    }

    /// Does a load. See [`Receipt`] for what it tells.
    ///
    /// # Errors
    /// By [`ErrorKind`](crate::ErrorKind). Only after `Unknown` may the table have changed.
    pub async fn apply(&self, load: &Load, source: Source) -> Result<Receipt> {
        Run::new(self, load).apply(source).await
    }

    /// Makes the table, empty; an equal one that exists is left as it is.
    ///
    /// # Errors
    /// `Refused` where another table exists there; otherwise as [`Table::apply`].
    pub async fn create(&self, spec: &TableSpec) -> Result<Receipt> {
        let load = Load::append().create(spec.clone());
        Run::new(self, &load).create().await
    }

    /// Sets table properties, in one log entry; what they say already is left as it is.
    ///
    /// The entry repeats what it does not change. Where a property needs a feature that the table does not have, the entry
    /// adds it, and with the first that a protocol version does not stand for, those that the versions so far stood for.
    ///
    /// # Errors
    /// `Invalid` where there is no table, nothing to set, or a value is wrong; `Unsupported` for a property of Delta's that
    /// this library does not set, and for a table that it does not write; `Refused` for a property that the table's rows or
    /// columns may contradict; otherwise as [`Table::apply`].
    pub async fn set_properties(&self, properties: &Properties) -> Result<Receipt> {
        let load = properties.carrier();
        Run::new(self, &load).set(properties).await
    }

    /// A handle that ends this table's running loads.
    #[must_use]
    pub fn stopper(&self) -> Stop {
        self.stop.clone()
    }

    /// What the table is now.
    ///
    /// # Errors
    /// `Invalid` where there is no table.
    pub async fn describe(&self) -> Result<Description> {
        let snapshot = self.existing().await?;
        let files = snapshot.files().await?;
        let protocol = snapshot.protocol();
        let fields = snapshot.schema().columns().fields();
        let listed: BTreeSet<String> = [protocol.reader_features(), protocol.writer_features()]
            .into_iter()
            .flatten()
            .flatten()
            .map(ToString::to_string)
            .collect();
        let versions =
            [format!("reader {}", protocol.min_reader_version()), format!("writer {}", protocol.min_writer_version())];
        let column = |field: &Field| {
            let not_null = if field.is_nullable() { "" } else { " not null" };
            format!("{} {}{not_null}", field.name(), columns::sql_type(field.data_type()))
        };
        Ok(Description {
            version: snapshot.version(),
            schema: fields.iter().map(|field| column(field)).collect(),
            partition_columns: snapshot.schema().partition_columns().to_vec(),
            properties: snapshot.properties().into_iter().collect(),
            features: versions.into_iter().chain(listed).collect(),
            files: files.len() as u64,
            rows: files.iter().map(actions::AddFile::num_records).try_fold(0_u64, |sum, rows| sum.checked_add(rows?)),
            bytes: files.iter().fold(0, |sum, file| sum.saturating_add(file.size.unsigned_abs())),
        })
    }

    /// The latest `limit` log entries, newest first, as far as the log still holds them.
    ///
    /// # Errors
    /// `Invalid` where there is no table.
    pub async fn history(&self, limit: usize) -> Result<Vec<Commit>> {
        history::read(&self.name, self.reader.as_ref(), self.existing().await?.version(), limit).await
    }

    /// Every application transaction that the log records, by app id.
    ///
    /// # Errors
    /// `Invalid` where there is no table.
    pub async fn txns(&self) -> Result<Vec<RecordedIdentity>> {
        recorded::read(&self.name, &self.reader, &self.existing().await?).await
    }

    /// Whether the log still holds the entry of a receipt: the version that it committed, and its token.
    ///
    /// A writer that puts its entry without a condition (Spark on S3 with its default log store) can overwrite one that
    /// was acknowledged; nobody but the log can tell.
    ///
    /// # Errors
    /// `Invalid` where there is no table.
    pub async fn standing(&self, version: u64, token: &str) -> Result<Standing> {
        let latest = self.existing().await?.version();
        history::standing(&self.name, self.reader.as_ref(), latest, version, token).await
    }

    /// The latest version; none where there is no table.
    pub(crate) async fn latest(&self) -> Result<Option<Snapshot>> {
        Snapshot::latest(self.name.clone(), self.reader.clone()).await
    }

    /// The latest version.
    ///
    /// # Errors
    /// `Invalid` where there is no table.
    pub(crate) async fn existing(&self) -> Result<Snapshot> {
        let missing = || Error::invalid(format!("there is no Delta table at {}", self.name));
        self.latest().await?.ok_or_else(missing)
    }

    /// Makes sure that the store refuses to overwrite a log entry, where that depends on the store.
    ///
    /// # Errors
    /// `Unsupported` where it does not.
    pub(crate) async fn check_store(&self) -> Result<()> {
        commit::precondition::check(&self.name, &self.location, &self.store, self.host.as_ref()).await
    }

    /// Returns once a version that was read is one that stays, also after a loss of power.
    pub(crate) async fn settle(&self, version: u64) -> object_store::Result<()> {
        self.location.settle(&format!("_delta_log/{version:020}.json")).await
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// The log to commit to: each request is sent once.
    pub(crate) fn log(&self) -> &LogStoreRef {
        &self.log
    }

    /// The log to read.
    pub(crate) fn reader(&self) -> &LogStoreRef {
        &self.reader
    }

    pub(crate) fn rules(&self) -> Rules {
        self.rules
    }

    pub(crate) fn host(&self) -> &Arc<dyn Host> {
        &self.host
    }
}
