//! The bytes of one data file, for the Parquet reader.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, TryFutureExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use crate::error::{Error, Result};
use crate::store::failure;
use crate::table::actions::AddFile;

/// Bytes read from the end of a file at once: the footer of most files, so that one request gets it.
const FOOTER_GUESS: usize = 64 * 1024;

/// A data file in the table's store. Its size is the log's, so that no request is spent on asking for it.
#[derive(Debug, Clone)]
pub(crate) struct DataFile {
    store: Arc<dyn ObjectStore>,
    location: Path,
    size: u64,
}

impl DataFile {
    /// The file that `file` names; `store` is rooted at the table.
    ///
    /// # Errors
    /// `Unsupported` for a path or a size that cannot be followed.
    pub(crate) fn new(store: Arc<dyn ObjectStore>, file: &AddFile) -> Result<Self> {
        let size = u64::try_from(file.size).map_err(|e| {
            Error::unsupported(format!("the log gives the data file '{}' a size of {} bytes", file.path, file.size))
                .caused_by(e)
        })?;
        Ok(Self { store, location: file.location()?, size })
    }
}

fn external(error: object_store::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

impl AsyncFileReader for DataFile {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.store.get_range(&self.location, range).map_err(external).boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        async move {
            // A store may panic where one of several ranges lies beyond the object's end, as a footer may have it.
            if ranges.iter().any(|range| range.start > range.end || range.end > self.size) {
                return Err(ParquetError::EOF(format!(
                    "the file ends at byte {}, before a part that it names",
                    self.size
                )));
            }
            self.store.get_ranges(&self.location, &ranges).await.map_err(external)
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        let size = self.size;
        async move {
            let reader =
                ParquetMetaDataReader::new().with_arrow_reader_options(options).with_prefetch_hint(Some(FOOTER_GUESS));
            Ok(Arc::new(reader.load_and_finish(self, size).await?))
        }
        .boxed()
    }
}

/// Where `what` belongs to a snapshot and is not there any more.
pub(crate) fn missing(what: &str) -> Error {
    Error::retryable(format!("{what} is in the table's log but not in its storage")).hint(
        "it may have been vacuumed while this load ran: run the load again; if that does not help, the table has lost data",
    )
}

/// What a failure to read the data file at `path` (as the log says it) means to the load.
pub(crate) fn unreadable(path: &str, error: ParquetError) -> Error {
    match stored(&error) {
        Some(object_store::Error::NotFound { .. }) => missing(&format!("data file '{path}'")),
        Some(store) => failure::explain(failure::diagnose(store), &format!("the data file '{path}'"), "read"),
        None => Error::unsupported(format!("data file '{path}' could not be read as Parquet")),
    }
    .caused_by(error)
}

fn stored(error: &ParquetError) -> Option<&object_store::Error> {
    match error {
        ParquetError::External(cause) => cause.downcast_ref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn parts_beyond_the_file_are_an_error_also_among_others() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        store.put(&Path::from("f"), vec![1_u8; 100].into()).await.unwrap();
        let mut file = DataFile { store, location: Path::from("f"), size: 100 };
        assert_eq!(file.get_byte_ranges(vec![0..3, 97..100]).await.unwrap().len(), 2);
        #[allow(clippy::reversed_empty_ranges, reason = "a footer may say it")]
        for odd in [vec![0..3, 99..101], vec![4_000_000..4_000_001, 0..3], vec![9..12, 5..3]] {
            assert!(matches!(file.get_byte_ranges(odd).await, Err(ParquetError::EOF(_))));
        }
    }
}
