//! The table as a plan sees it, and where a plan's new rows go.

use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::stream::BoxStream;
use object_store::ObjectStore;
use roaring::RoaringTreemap;

use crate::error::Result;
use crate::stage::{Piece, Stager};
use crate::table::actions::{AddFile, ChangeFile, DeletionVector};
use crate::table::scan::OpenFile;
use crate::table::schema::TableSchema;

/// One snapshot of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    /// How errors call the table.
    pub(crate) name: &'a str,
    /// Rooted at the table.
    pub(crate) store: &'a Arc<dyn ObjectStore>,
    pub(crate) schema: &'a TableSchema,
    /// The snapshot's data files.
    pub(crate) files: &'a [AddFile],
    /// Whether rows may be masked by deletion vectors instead of writing their files again.
    pub(crate) masks: bool,
    /// Whether the table has a change data feed.
    pub(crate) feeds: bool,
    /// How many files may be read at a time.
    pub(crate) parallelism: usize,
    /// Bytes that may be held for rows that are compared, about.
    pub(crate) memory: u64,
}

impl Target<'_> {
    /// Opens one of its files, or one that is staged for it.
    ///
    /// # Errors
    /// Those of [`OpenFile::open`].
    pub(crate) async fn open(&self, file: &AddFile) -> Result<OpenFile> {
        OpenFile::open(self.store.clone(), self.schema, file).await
    }
}

/// Writes files that no reader sees until a log entry names them.
#[async_trait::async_trait]
pub(crate) trait Stage: Send + Sync {
    /// Writes all pieces of a stream into new files. No rows, no file.
    async fn write(&self, pieces: BoxStream<'static, Result<Piece>>) -> Result<Vec<AddFile>>;

    /// Writes all rows of a stream (the table's columns, with [`CHANGE_TYPE`](crate::stage::CHANGE_TYPE) after them) into new files of change data. No rows, no file.
    async fn write_changes(&self, rows: BoxStream<'static, Result<RecordBatch>>) -> Result<Vec<ChangeFile>>;

    /// Writes sets of places of rows as deletion vectors, one each, in that order.
    async fn mask(&self, masked: Vec<RoaringTreemap>) -> Result<Vec<DeletionVector>>;
}

#[async_trait::async_trait]
impl Stage for Stager {
    async fn write(&self, pieces: BoxStream<'static, Result<Piece>>) -> Result<Vec<AddFile>> {
        Self::write(self, pieces).await
    }

    async fn write_changes(&self, rows: BoxStream<'static, Result<RecordBatch>>) -> Result<Vec<ChangeFile>> {
        Self::write_changes(self, rows).await
    }

    async fn mask(&self, masked: Vec<RoaringTreemap>) -> Result<Vec<DeletionVector>> {
        Self::mask(self, masked).await
    }
}
