//! One data file while it is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::record_batch::RecordBatch;
use object_store::ObjectStore;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use tokio::runtime::Handle;
use uuid::Uuid;

use super::bounds::PARQUET_PREFIX;
use super::groups::{GROUP_ROWS, GroupWriter};
use super::partition::{Partitioning, Values};
use super::settings::Settings;
use super::stats::{Observed, StatsPlan};
use super::upload::{Finishing, Sink};
use super::{dictionary, path};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::table::actions::AddFile;
use crate::table::encoded::EncodedGroup;

/// Values that the Parquet writer takes at a time; fewer cost time. Wide values end a page before that.
const WRITE_BATCH: usize = 8192;

/// How often a Bloom filter may say that a value could be there which is not.
const BLOOM_FALSE_POSITIVES: f64 = 0.01;

/// Distinct values that a Bloom filter has room for. It is held with that room until its row group ends, when it shrinks to
/// what its values need; so with partitions, of which many are open, there is less of it.
const BLOOM_VALUES: usize = GROUP_ROWS;
const PARTITIONED_BLOOM_VALUES: usize = 64 * 1024;

/// Bytes at which a page ends. An open page is held as it is, not yet compressed, and with partitions there are many.
const PAGE_BYTES: usize = 1024 * 1024;
const PARTITIONED_PAGE_BYTES: usize = 64 * 1024;

/// What all files of a table share.
#[derive(Debug)]
pub(super) struct Files {
    /// As the user calls it.
    pub(super) table: Arc<str>,
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) settings: Settings,
    pub(super) partitioning: Arc<Partitioning>,
    pub(super) stats: StatsPlan,
    pub(super) host: Arc<dyn Host>,
    pub(super) kind: Kind,
    /// Files begun so far, for their names.
    pub(super) begun: AtomicU64,
}

/// What files are for, which says where they are and what they are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Rows of the table.
    Rows,
    /// Rows that changed, for readers of the change data feed (protocol, "Add CDC File").
    Changes,
}

impl Kind {
    fn folder(self) -> Option<&'static str> {
        match self {
            Self::Rows => None,
            Self::Changes => Some("_change_data"),
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Rows => "part",
            Self::Changes => "cdc",
        }
    }
}

/// An open data file of one partition.
pub(super) struct DataFile {
    writer: GroupWriter<Sink>,
    observed: Observed,
    partition: Values,
}

/// A file that is written to its end but perhaps not yet in the store.
#[derive(Debug)]
pub(super) struct Closed {
    add: AddFile,
    upload: Finishing,
}

impl Files {
    /// Begins a file. The columns named in `plain` are written without a dictionary.
    ///
    /// # Errors
    /// `Unsupported` for columns that Parquet cannot hold.
    pub(super) fn open(&self, partition: Values, plain: &[String], runtime: &Handle) -> Result<DataFile> {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        let (prefix, id) = (self.kind.prefix(), Uuid::from_u128(self.host.random()));
        let name = format!("{prefix}-{number:05}-{id}-c000{}", self.settings.suffix);
        let path = path::object(self.kind.folder(), &partition, &name)?;
        let sink = Sink::new(self.table.clone(), self.store.clone(), path, self.settings.target, runtime.clone());
        let schema = self.partitioning.file_schema().clone();
        let writer = GroupWriter::new(sink, schema, self.properties(plain)).map_err(|e| {
            Error::unsupported("the table has a column that is not written to Parquet")
                .detail(e.to_string())
                .caused_by(e)
        })?;
        Ok(DataFile { writer, observed: self.stats.observe(), partition })
    }

    fn page_bytes(&self) -> usize {
        if self.partitioning.is_partitioned() { PARTITIONED_PAGE_BYTES } else { PAGE_BYTES }
    }

    fn bloom_values(&self) -> u64 {
        (if self.partitioning.is_partitioned() { PARTITIONED_BLOOM_VALUES } else { BLOOM_VALUES }) as u64
    }

    fn properties(&self, plain: &[String]) -> WriterProperties {
        let mut properties = WriterProperties::builder()
            .set_created_by(format!("deltaonce version {}", env!("CARGO_PKG_VERSION")))
            .set_compression(self.settings.compression)
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_statistics_truncate_length(Some(PARQUET_PREFIX))
            .set_dictionary_page_size_limit(dictionary::LIMIT)
            .set_write_batch_size(WRITE_BATCH)
            .set_data_page_size_limit(self.page_bytes());
        for column in plain {
            properties = properties.set_column_dictionary_enabled(ColumnPath::new(vec![column.clone()]), false);
        }
        for column in &self.settings.bloom {
            let path = ColumnPath::new(vec![column.clone()]);
            properties = properties
                .set_column_bloom_filter_fpp(path.clone(), BLOOM_FALSE_POSITIVES)
                .set_column_bloom_filter_max_ndv(path, self.bloom_values());
        }
        properties.build()
    }
}

impl DataFile {
    /// Appends rows with the columns of data files. Blocks while the store is behind.
    ///
    /// # Errors
    /// Why the rows are not in the file; it must be abandoned then.
    pub(super) fn write(&mut self, files: &Files, rows: &RecordBatch) -> Result<()> {
        self.observed.batch(&files.stats, rows);
        self.writer.write(rows).map_err(|e| self.failed(e))
    }

    /// Appends a row group with the columns of data files. Blocks while it is read, and while the store is behind.
    ///
    /// # Errors
    /// Why it is not in the file, as reading one fails among others; the file must be abandoned then.
    pub(super) fn copy(&mut self, files: &Files, group: &EncodedGroup, runtime: &Handle) -> Result<()> {
        self.observed.copied(&files.stats, group);
        match runtime.block_on(group.read()) {
            Ok(columns) => self.writer.copy(columns).map_err(|e| self.failed(e)),
            Err(error) => self.writer.sink_mut().abandon().and(Err(error)),
        }
    }

    /// Bytes that the file would have if it were closed now, about.
    pub(super) fn size(&self) -> u64 {
        self.writer.encoded() as u64
    }

    /// Bytes of memory that the file takes.
    pub(super) fn memory(&self) -> usize {
        self.writer.memory() + self.writer.sink().held()
    }

    /// Writes the footer.
    ///
    /// # Errors
    /// Why that failed; nothing of the file is left then.
    pub(super) fn close(mut self, files: &Files) -> Result<Closed> {
        let footer = self.writer.finish().map_err(|e| self.failed(e))?;
        let sink = self.writer.sink_mut();
        let upload = sink.finish();
        let size = i64::try_from(sink.written())
            .map_err(|e| Error::internal(format!("the data file '{}' is too large", sink.path())).caused_by(e))?;
        let add = AddFile {
            path: path::in_log(sink.path()),
            partition_values: self.partition.into_iter().map(|(column, value)| (column, value.log)).collect(),
            size,
            modification_time: files.host.now().timestamp_millis(),
            data_change: true,
            stats: Some(files.stats.json(&self.observed, &footer)),
            tags: None,
            deletion_vector: None,
            base_row_id: None,
            default_row_commit_version: None,
            clustering_provider: None,
        };
        Ok(Closed { add, upload })
    }

    /// Gives the file up, and waits until nothing of it is left in the store.
    pub(super) fn abandon(mut self) {
        // Whoever abandons a file already has the reason to report.
        let _ = self.writer.sink_mut().abandon();
    }

    /// What made writing fail: the store's reason where it has one.
    fn failed(&mut self, error: ParquetError) -> Error {
        let sink = self.writer.sink_mut();
        match sink.abandon() {
            Err(reason) => reason,
            Ok(()) => Error::internal(format!("the data file '{}' could not be encoded", sink.path()))
                .detail(error.to_string())
                .caused_by(error),
        }
    }
}

impl Closed {
    /// Bytes still in memory.
    pub(super) fn held(&self) -> usize {
        self.upload.held
    }

    /// Waits until the file is in the store. Blocks.
    ///
    /// # Errors
    /// Why it is not; nothing of it is left then.
    pub(super) fn wait(self) -> Result<AddFile> {
        self.upload.wait()?;
        Ok(self.add)
    }
}
