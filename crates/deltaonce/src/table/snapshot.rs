//! The table at one version: its definition at once, its files and identities when asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray, MapArray, RecordBatch, StructArray};
use arrow::datatypes::{Int32Type, Int64Type, Schema};
use delta_kernel::engine::arrow_conversion::TryIntoArrow;
use delta_kernel::engine::arrow_data::ArrowEngineData;
use delta_kernel::table_features::TableFeature;
use delta_kernel::{DeltaResult as KernelResult, Engine, SnapshotRef};
use deltalake::DeltaTableError;
use deltalake::kernel::{Metadata, Protocol, Snapshot as DeltaSnapshot, StructType};
use deltalake::logstore::LogStoreRef;

use super::actions::{AddFile, DeletionVector};
use super::schema::TableSchema;
use crate::error::{Error, ErrorKind, Result};
use crate::load::Identity;
use crate::store::failure;

/// The table as one version of its log says it.
///
/// Opening reads the definition only; the list of files is replayed when [`Snapshot::files`] is called, so that a load
/// which is skipped, or only appends, never pays for it.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    name: Arc<str>,
    log: LogStoreRef,
    inner: Arc<DeltaSnapshot>,
    schema: TableSchema,
}

impl Snapshot {
    /// The table's latest version, or none where there is no table. `name` is how the user named the table.
    pub(crate) async fn latest(name: Arc<str>, log: LogStoreRef) -> Result<Option<Self>> {
        match DeltaSnapshot::try_new(log.as_ref(), None).await {
            Ok(inner) => Self::of(name, log, Arc::new(inner)).map(Some),
            Err(DeltaTableError::NotATable(_)) => Ok(None),
            // A local folder that does not exist is an error to the kernel, and one of no kind of its own.
            Err(error) => match log.is_delta_table_location().await {
                Ok(false) => Ok(None),
                // It is there by now: another writer may have made it in between.
                Ok(true) => match DeltaSnapshot::try_new(log.as_ref(), None).await {
                    Ok(inner) => Self::of(name, log, Arc::new(inner)).map(Some),
                    Err(error) => Err(failure::delta(&name, "open", error)),
                },
                Err(listing) => {
                    // Of the two the one that says what to do: a client tells of a refused listing in general words only.
                    let error = failure::delta(&name, "open", error);
                    let is_told = error.kind() == ErrorKind::Invalid;
                    Err(if is_told { error } else { failure::delta(&name, "open", listing) })
                }
            },
        }
    }

    /// A later version, at least `version`, of the same table.
    pub(crate) async fn newer(&self, version: u64) -> Result<Self> {
        let update = || self.inner.clone().update(self.log.engine(None), None);
        let updated = match update().await {
            Ok(inner) => Ok(inner),
            // A listing of a folder may leave out an entry that came while it ran, and name the one after it.
            Err(_) => update().await,
        };
        let newer = match updated {
            Ok(inner) => Self::of(self.name.clone(), self.log.clone(), inner)?,
            Err(error) => {
                let error = failure::delta(&self.name, "read the new version of", error);
                // Its log could be read when the load began. Now its store lists late, for which the kernel has no error
                // of its own; or an entry since then is bad, which the next run is told when it opens the table.
                let passes = error.kind() == ErrorKind::Unsupported;
                return Err(if passes { Error::retryable(error.to_string()).caused_by(error) } else { error });
            }
        };
        if newer.version() < version {
            return Err(Error::retryable(format!(
                "{} lists version {} as its latest although version {version} was read: its store lists late",
                self.name,
                newer.version()
            )));
        }
        Ok(newer)
    }

    fn of(name: Arc<str>, log: LogStoreRef, inner: Arc<DeltaSnapshot>) -> Result<Self> {
        // Delta's versions are of 63 bits; ours would come after this one.
        if inner.version() >= i64::MAX.unsigned_abs() {
            return Err(Error::unsupported(format!(
                "the log of {name} ends at version {}, the last there is",
                inner.version()
            )));
        }
        let columns: Schema = inner.schema().as_ref().try_into_arrow().map_err(|e| {
            Error::unsupported(format!("the log of {name} has columns that this library has no types for: {e}"))
                .caused_by(e)
        })?;
        let partition_columns = inner.metadata().partition_columns().to_vec();
        if let Some(missing) = partition_columns.iter().find(|column| columns.column_with_name(column).is_none()) {
            return Err(Error::unsupported(format!(
                "the log of {name} says that it is partitioned by '{missing}', which is not one of its columns"
            )));
        }
        let schema = TableSchema::new(columns.into(), partition_columns);
        Ok(Self { name, log, inner, schema })
    }

    pub(crate) fn version(&self) -> u64 {
        self.inner.version()
    }

    pub(crate) fn schema(&self) -> &TableSchema {
        &self.schema
    }

    /// The columns in Delta's own types.
    pub(crate) fn declared(&self) -> Arc<StructType> {
        self.inner.schema()
    }

    pub(crate) fn protocol(&self) -> &Protocol {
        self.inner.protocol()
    }

    pub(crate) fn metadata(&self) -> &Metadata {
        self.inner.metadata()
    }

    /// The table's properties, `delta.*` and others.
    pub(crate) fn properties(&self) -> BTreeMap<String, String> {
        let configuration = self.metadata().configuration();
        configuration.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// A property that is `true` or `false`; absent is false.
    pub(crate) fn is_set(&self, property: &str) -> bool {
        self.metadata().configuration().get(property).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Whether the protocol lets readers expect deletion vectors.
    pub(crate) fn has_vectors(&self) -> bool {
        let features = self.protocol().reader_features();
        features.is_some_and(|features| features.contains(&TableFeature::DeletionVectors))
    }

    /// Every data file of this version, as its `add` says it.
    ///
    /// # Errors
    /// As storage fails; `Unsupported` for a file of which the log does not say all that it must, since a value that is
    /// made up (no deletion vector, no partition value) would be another table's.
    pub(crate) async fn files(&self) -> Result<Vec<AddFile>> {
        // Not by deltalake, which parses all statistics first: one odd text among them, and there is no list.
        let listed = self.with_kernel(|kernel, engine| {
            let scan = kernel.clone().scan_builder().build()?;
            let batches = scan.scan_metadata(engine)?.map(|metadata| {
                let files = metadata?.scan_files.apply_selection_vector()?;
                Ok(RecordBatch::from(ArrowEngineData::try_from_engine_data(files)?))
            });
            batches.collect::<KernelResult<Vec<_>>>()
        });
        let batches = listed.await?;
        let mut files = Vec::new();
        for batch in &batches {
            let columns = FileColumns::of(batch).ok_or_else(|| {
                Error::internal(format!("the file list of {} has not the columns that it should", self.name))
            })?;
            for row in 0..batch.num_rows() {
                files.push(columns.file(row).map_err(|odd| {
                    let path = text(columns.path, row).unwrap_or_default();
                    Error::unsupported(format!("the log of {} gives the data file '{path}' {odd}", self.name))
                })?);
            }
        }
        Ok(files)
    }

    /// The version recorded for each identity's app id, as far as the table's retention keeps it.
    pub(crate) async fn recorded(&self, identities: &[Identity]) -> Result<Vec<(Identity, Option<i64>)>> {
        let mut recorded = Vec::with_capacity(identities.len());
        for identity in identities {
            let app_id = identity.app_id.clone();
            let found = self.with_kernel(move |kernel, engine| kernel.get_app_id_version(&app_id, engine)).await?;
            recorded.push((identity.clone(), found));
        }
        Ok(recorded)
    }

    /// Writes a checkpoint of this version.
    pub(crate) async fn checkpoint(&self) -> Result<()> {
        self.with_kernel(|kernel, engine| kernel.clone().checkpoint(engine, None).map(|_| ())).await
    }

    /// The log that it was read from.
    pub(crate) fn log(&self) -> &LogStoreRef {
        &self.log
    }

    /// What of the log this version is read from.
    pub(crate) fn log_files(&self) -> Result<LogFiles> {
        let scan = self.inner.scan_builder().build().map_err(|e| failure::delta(&self.name, "read the log of", e))?;
        let listed = &scan.snapshot().log_segment().listed;
        Ok(LogFiles {
            checkpoint: listed.checkpoint_parts.iter().map(|part| part.location.location.to_string()).collect(),
            entries: listed.ascending_commit_files.iter().map(|entry| entry.version).collect(),
        })
    }

    /// Runs `read` on the kernel's snapshot off the async threads: its reads block.
    ///
    /// deltalake hands the kernel's snapshot out through a scan only.
    async fn with_kernel<T: Send + 'static>(
        &self,
        read: impl FnOnce(&SnapshotRef, &dyn Engine) -> KernelResult<T> + Send + 'static,
    ) -> Result<T> {
        let scan = self.inner.scan_builder().build().map_err(|e| failure::delta(&self.name, "read the log of", e))?;
        let (kernel, engine) = (scan.snapshot().clone(), self.log.engine(None));
        let done = tokio::task::spawn_blocking(move || read(&kernel, engine.as_ref())).await;
        match done {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(failure::delta(&self.name, "read the log of", error.into())),
            Err(panic) => Err(Error::internal(format!("reading the log of {} broke off", self.name)).caused_by(panic)),
        }
    }
}

/// What of the log a version is read from.
#[derive(Debug, Clone)]
pub(crate) struct LogFiles {
    /// URLs of the checkpoint's parts; empty where there is none.
    pub(crate) checkpoint: Vec<String>,
    /// Versions of the entries after it, ascending.
    pub(crate) entries: Vec<u64>,
}

/// The columns of the kernel's file list that an `add` is made of.
struct FileColumns<'a> {
    path: &'a dyn Array,
    size: &'a dyn Array,
    modification_time: &'a dyn Array,
    stats: Option<&'a dyn Array>,
    deletion_vector: Option<&'a StructArray>,
    constants: &'a StructArray,
}

impl<'a> FileColumns<'a> {
    fn of(batch: &'a RecordBatch) -> Option<Self> {
        let column = |name: &str| batch.column_by_name(name).map(AsRef::as_ref);
        Some(Self {
            path: column("path")?,
            size: column("size")?,
            modification_time: column("modificationTime")?,
            stats: column("stats"),
            deletion_vector: column("deletionVector").and_then(AsArray::as_struct_opt),
            constants: column("fileConstantValues")?.as_struct_opt()?,
        })
    }

    /// The file of a row; an error says what of it is missing or odd.
    fn file(&self, row: usize) -> Result<AddFile, &'static str> {
        let constant = |name: &str| self.constants.column_by_name(name).filter(|_| self.constants.is_valid(row));
        let map = |name: &str, odd| match constant(name) {
            Some(maps) => text_map(maps.as_map_opt().ok_or(odd)?, row).ok_or(odd),
            None => Ok(None),
        };
        let deletion_vector = match self.deletion_vector {
            Some(vectors) if vectors.is_valid(row) => {
                Some(deletion_vector(vectors, row).ok_or("half a deletion vector")?)
            }
            _ => None,
        };
        Ok(AddFile {
            path: text(self.path, row).filter(|path| !path.is_empty()).ok_or("no path")?,
            partition_values: map("partitionValues", "odd partition values")?.unwrap_or_default(),
            size: long(self.size, row).ok_or("no size")?,
            modification_time: long(self.modification_time, row).ok_or("no modification time")?,
            data_change: true,
            stats: self.stats.and_then(|stats| text(stats, row)).filter(|stats| !stats.is_empty()),
            tags: map("tags", "odd tags")?,
            deletion_vector,
            base_row_id: constant("baseRowId").and_then(|ids| long(ids, row)),
            default_row_commit_version: constant("defaultRowCommitVersion").and_then(|versions| long(versions, row)),
            clustering_provider: constant("clusteringProvider").and_then(|names| text(names, row)),
        })
    }
}

/// The text at a row; none for null and for an array of other than texts.
pub(super) fn text(array: &dyn Array, row: usize) -> Option<String> {
    if array.is_null(row) {
        return None;
    }
    let value = match array.as_string_opt::<i32>() {
        Some(texts) => texts.value(row),
        None => match array.as_string_opt::<i64>() {
            Some(texts) => texts.value(row),
            None => array.as_string_view_opt()?.value(row),
        },
    };
    Some(value.to_owned())
}

/// The number at a row; none for null and for an array of other than longs.
pub(super) fn long(array: &dyn Array, row: usize) -> Option<i64> {
    array.as_primitive_opt::<Int64Type>().filter(|longs| longs.is_valid(row)).map(|longs| longs.value(row))
}

/// The map at a row, or null; none where a key is no text.
fn text_map(maps: &MapArray, row: usize) -> Option<Option<BTreeMap<String, Option<String>>>> {
    if maps.is_null(row) {
        return Some(None);
    }
    let entries = maps.value(row);
    let (keys, values) = (entries.columns().first()?, entries.columns().get(1)?);
    (0..entries.len()).map(|i| Some((text(keys, i)?, text(values, i)))).collect::<Option<_>>().map(Some)
}

fn deletion_vector(vectors: &StructArray, row: usize) -> Option<DeletionVector> {
    let integer = |name: &str| {
        let integers = vectors.column_by_name(name)?.as_primitive_opt::<Int32Type>()?;
        integers.is_valid(row).then(|| integers.value(row))
    };
    Some(DeletionVector {
        storage_type: text(vectors.column_by_name("storageType")?, row)?,
        path_or_inline_dv: text(vectors.column_by_name("pathOrInlineDv")?, row)?,
        offset: integer("offset"),
        size_in_bytes: integer("sizeInBytes")?,
        cardinality: long(vectors.column_by_name("cardinality")?, row)?,
    })
}

#[cfg(test)]
mod tests;
