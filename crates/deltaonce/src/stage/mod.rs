//! Writes data files that no reader sees until a log entry names them.
//!
//! The writer is our own and not deltalake's, for four things that its writer does not let a caller have: decimals in
//! statistics go through f64 there and come out rounded; names and times of files are its own, so a run cannot be
//! repeated exactly; paths of unusual partition values are encoded anew, and then a `remove` no longer matches its
//! `add`; and neither threads nor memory can be bounded.

mod bounds;
mod dictionary;
mod file;
mod groups;
mod partition;
mod path;
pub(crate) mod settings;
mod stats;
mod text;
mod upload;
mod vectors;
mod worker;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arrow::array::Array;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use futures::{Stream, StreamExt, TryStreamExt};
use object_store::ObjectStore;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinSet;

use self::file::{Files, Kind};
use self::partition::Partitioning;
use self::settings::{Indexed, Settings};
use self::stats::StatsPlan;
use self::worker::Queue;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::table::actions::{AddFile, ChangeFile};
use crate::table::encoded::EncodedGroup;
use crate::table::schema::TableSchema;

/// Pieces that wait for a worker.
const QUEUED: usize = 3;

/// Rows of a queued batch at most, and bytes about: larger ones are cut, so that a file ends near its target and
/// workers share even a single batch.
const SLICE_ROWS: usize = 64 * 1024;
const SLICE_BYTES: usize = 8 * 1024 * 1024;

/// Encoded bytes from which on another worker, and so another file, is worth it.
const SHARED_FROM: u64 = 8 * 1024 * 1024;

/// Writes the data files of one table. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Stager {
    rows: Output,
    changes: Output,
    parallelism: usize,
}

/// Files of one kind.
#[derive(Debug, Clone)]
struct Output {
    schema: SchemaRef,
    files: Arc<Files>,
}

/// What goes into a file.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Rows with exactly the table's columns, partition columns included, in the table's order and types.
    Rows(RecordBatch),
    /// A row group of one of the table's files that has the columns of new ones, and no NaN.
    Group(EncodedGroup),
}

impl From<RecordBatch> for Piece {
    fn from(rows: RecordBatch) -> Self {
        Self::Rows(rows)
    }
}

impl Piece {
    pub(crate) fn rows(&self) -> u64 {
        match self {
            Self::Rows(rows) => rows.num_rows() as u64,
            Self::Group(group) => group.rows(),
        }
    }
}

/// The column of change data that says what became of a row (protocol, "Add CDC File").
pub(crate) const CHANGE_TYPE: &str = "_change_type";

impl Stager {
    /// A stager for the table that the user calls `table`, at the root of `store`, whose `delta.*` configuration is `properties`. At most
    /// `parallelism` threads encode at once. Columns named in `keys` have statistics whatever the properties say, since
    /// merges and inserts find rows by them. File names are made of `host`'s random numbers, `modificationTime` of
    /// its clock.
    ///
    /// # Errors
    /// `Invalid` for a property that cannot be read, `Unsupported` for a codec or a partition column that is not written.
    pub(crate) fn new(
        table: Arc<str>,
        store: Arc<dyn ObjectStore>,
        schema: &TableSchema,
        properties: &BTreeMap<String, String>,
        keys: &[String],
        host: Arc<dyn Host>,
        parallelism: usize,
    ) -> Result<Self> {
        let settings = Settings::new(schema, properties)?;
        // Nobody looks for rows in change data, and the log has no statistics of it.
        let plain = Settings { indexed: Indexed::First(0), bloom: Vec::new(), ..settings.clone() };
        let output = |kind, schema: &TableSchema, settings: Settings, keys: &[String]| -> Result<Output> {
            let partitioning = Arc::new(Partitioning::new(schema)?);
            let stats = StatsPlan::new(partitioning.file_schema(), &settings.indexed, keys);
            let (table, store, host) = (table.clone(), store.clone(), host.clone());
            let files = Files { table, store, settings, partitioning, stats, host, kind, begun: AtomicU64::new(0) };
            Ok(Output { schema: schema.columns().clone(), files: Arc::new(files) })
        };
        let fields = schema.columns().fields().iter().cloned();
        let fields = fields.chain([Arc::new(Field::new(CHANGE_TYPE, DataType::Utf8, false))]);
        let changed = Schema::new(fields.collect::<Fields>()).into();
        let changed = TableSchema::new(changed, schema.partition_columns().to_vec());
        Ok(Self {
            rows: output(Kind::Rows, schema, settings, keys)?,
            changes: output(Kind::Changes, &changed, plain, &[])?,
            parallelism: parallelism.max(1),
        })
    }

    /// Writes pieces, and gives the `add` actions of the files, all of which are in the store then. No rows give no file;
    /// few rows of one partition give one.
    ///
    /// Must run on a Tokio runtime. Memory is bounded whatever the stream's length. When the future is dropped, files
    /// under way are given up in the background; to be sure that they are gone, end the stream with an error instead
    /// and wait.
    ///
    /// # Errors
    /// The stream's error, `Refused` for a partition value that readers would not give back, or why storage failed.
    /// No upload is left half done then; files that were whole stay, unseen.
    pub(crate) async fn write<P: Into<Piece>>(
        &self,
        pieces: impl Stream<Item = Result<P>> + Send,
    ) -> Result<Vec<AddFile>> {
        self.rows.write(pieces.map_ok(Into::into), self.parallelism).await
    }

    /// Writes batches as for [`Stager::write`], with [`CHANGE_TYPE`] after the table's columns, into files of change data.
    ///
    /// # Errors
    /// As [`Stager::write`].
    pub(crate) async fn write_changes(
        &self,
        rows: impl Stream<Item = Result<RecordBatch>> + Send,
    ) -> Result<Vec<ChangeFile>> {
        let adds = self.changes.write(rows.map_ok(Piece::Rows), self.parallelism).await?;
        Ok(adds.into_iter().map(ChangeFile::from).collect())
    }
}

impl Output {
    async fn write(
        &self,
        pieces: impl Stream<Item = Result<Piece>> + Send,
        parallelism: usize,
    ) -> Result<Vec<AddFile>> {
        let runtime = Handle::try_current()
            .map_err(|e| Error::internal("data files are written only on a tokio runtime").caused_by(e))?;
        let (sender, receiver) = mpsc::channel(QUEUED);
        let queue = Arc::new(Queue::new(receiver));
        let mut pool = Pool { files: &self.files, queue, runtime, workers: JoinSet::new(), limit: parallelism };

        let fed = self.feed(pieces, &sender, &mut pool).await;
        if fed.is_ok() {
            pool.queue.set_whole();
        }
        // Only now may the queue end, since a worker that finds it ended looks whether it is whole.
        drop(sender);
        let written = pool.join().await;
        fed.and(written)
    }

    async fn feed(
        &self,
        pieces: impl Stream<Item = Result<Piece>> + Send,
        sender: &mpsc::Sender<Piece>,
        pool: &mut Pool<'_>,
    ) -> Result<()> {
        let mut pieces = pin!(pieces);
        loop {
            let piece = tokio::select! {
                biased;
                error = pool.failed() => return Err(error),
                next = pieces.next() => match next {
                    Some(piece) => piece?,
                    None => return Ok(()),
                },
            };
            match piece {
                Piece::Rows(batch) => {
                    self.check(&batch)?;
                    for slice in slices(&batch) {
                        pool.put(sender, Piece::Rows(slice)).await?;
                    }
                }
                group @ Piece::Group(_) => pool.put(sender, group).await?,
            }
        }
    }

    fn check(&self, batch: &RecordBatch) -> Result<()> {
        let wanted = self.schema.fields();
        let given = batch.schema_ref().fields();
        let same = wanted.len() == given.len()
            && wanted.iter().zip(given).all(|(wanted, given)| wanted.data_type().equals_datatype(given.data_type()));
        if same {
            return Ok(());
        }
        Err(Error::internal("rows to write do not have the table's columns")
            .detail(format!("the table has {wanted:?}"))
            .detail(format!("the rows have {given:?}")))
    }
}

/// The threads of one write.
struct Pool<'a> {
    files: &'a Arc<Files>,
    queue: Arc<Queue>,
    runtime: Handle,
    workers: JoinSet<Result<Vec<AddFile>>>,
    limit: usize,
}

impl Pool<'_> {
    /// Queues a piece, and sets another worker on the queue where that is worth another file.
    async fn put(&mut self, sender: &mpsc::Sender<Piece>, piece: Piece) -> Result<()> {
        if self.workers.is_empty() {
            self.start();
        }
        let piece = match sender.try_send(piece) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Full(piece) | TrySendError::Closed(piece)) => piece,
        };
        if self.workers.len() < self.limit && self.queue.encoded() >= SHARED_FROM {
            self.start();
        }
        tokio::select! {
            biased;
            error = self.failed() => Err(error),
            sent = sender.send(piece) => match sent {
                Ok(()) => Ok(()),
                Err(_) => Err(self.failed().await),
            },
        }
    }

    fn start(&mut self) {
        let (files, queue, runtime) = (self.files.clone(), self.queue.clone(), self.runtime.clone());
        self.workers.spawn_blocking_on(move || worker::run(&files, &queue, &runtime), &self.runtime);
    }

    /// Ends when a worker has failed, with its reason. To be asked only while the queue goes on, when none ends otherwise.
    async fn failed(&mut self) -> Error {
        loop {
            match self.workers.join_next().await {
                None => std::future::pending().await,
                Some(Ok(Err(error))) => return error,
                Some(Err(error)) => return panicked(error),
                // It stopped because another one failed.
                Some(Ok(Ok(_))) => {}
            }
        }
    }

    async fn join(mut self) -> Result<Vec<AddFile>> {
        let mut written = Ok(Vec::new());
        while let Some(ended) = self.workers.join_next().await {
            let ended = ended.unwrap_or_else(|e| Err(panicked(e)));
            written = match (written, ended) {
                (Ok(mut adds), Ok(more)) => {
                    adds.extend(more);
                    Ok(adds)
                }
                (Err(error), _) | (Ok(_), Err(error)) => Err(error),
            };
        }
        written
    }
}

fn panicked(error: tokio::task::JoinError) -> Error {
    Error::internal("the writing of data files broke down").detail(error.to_string()).caused_by(error)
}

/// Cuts a batch into pieces that are not copied.
fn slices(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> {
    let rows = batch.num_rows();
    let bytes: usize = batch.columns().iter().map(|column| column.to_data().get_slice_memory_size().unwrap_or(0)).sum();
    let fit = (rows * SLICE_BYTES).checked_div(bytes).unwrap_or(rows).clamp(1, SLICE_ROWS);
    (0..rows).step_by(fit).map(move |start| batch.slice(start, fit.min(rows - start)))
}
