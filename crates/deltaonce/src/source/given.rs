//! What a caller gives as the source of a load; nothing is touched before the load needs it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;

use arrow::array::RecordBatchReader;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use tokio::io::AsyncRead;

use super::csv::CsvOptions;
use super::format::Format;
use super::input;

/// The rows of a load: files, record batches, or bytes of a known format.
///
/// A source does no reading by itself; a load that is skipped never touches it.
///
/// ```
/// use deltaonce::{Format, Source};
/// let files = Source::files(["in/day1.csv", "s3://lake/in/*.csv.gz"]);
/// let text = Source::reader(std::io::Cursor::new(b"id\n1\n"), Format::Csv).name("the request's body");
/// # let _ = (files, text);
/// ```
pub struct Source {
    pub(super) given: Rows,
    pub(super) format: Option<Format>,
    pub(super) csv: CsvOptions,
    pub(super) storage: StorageOptions,
    pub(super) name: Option<String>,
}

/// How the object stores that files are on are reached.
#[derive(Clone, Default)]
pub(crate) struct StorageOptions {
    /// What holds where an option does not say otherwise: the environment, say.
    pub(crate) defaults: Vec<(String, String)>,
    pub(crate) options: Vec<(String, String)>,
}

/// Where a [`Source`] has its rows from.
pub(super) enum Rows {
    Files(Vec<OsString>),
    Batches(SchemaRef, BoxStream<'static, Result<RecordBatch, ArrowError>>),
    Reader(Box<dyn RecordBatchReader + Send>),
    Bytes(BoxStream<'static, io::Result<Bytes>>),
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = match &self.given {
            Rows::Files(files) => format!("{files:?}"),
            Rows::Batches(..) | Rows::Reader(_) => "batches".into(),
            Rows::Bytes(_) => "bytes".into(),
        };
        // Storage options may hold credentials.
        f.debug_struct("Source").field("given", &given).field("format", &self.format).finish_non_exhaustive()
    }
}

impl Source {
    fn new(given: Rows) -> Self {
        Self { given, format: None, csv: CsvOptions::default(), storage: StorageOptions::default(), name: None }
    }

    /// Files: paths, globs (`*`, `?`, `[a-z]`, `**`), folders, and `s3://` addresses of objects, prefixes or globs.
    ///
    /// All are of one format, which their extensions say: `.csv`, `.tsv`, `.ndjson`, `.jsonl`, `.json` (each also with
    /// `.gz` or `.zst`), `.parquet`, `.arrow`, `.arrows`, `.ipc`, `.feather`.
    pub fn files<I>(paths: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        Self::new(Rows::Files(paths.into_iter().map(|path| path.as_ref().to_owned()).collect()))
    }

    /// A stream of record batches, each with the columns of `schema`.
    pub fn batches(
        schema: SchemaRef,
        stream: impl Stream<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
    ) -> Self {
        Self::new(Rows::Batches(schema, stream.boxed()))
    }

    /// An iterator of record batches that knows its schema; it runs on a blocking thread.
    pub fn batch_reader(reader: impl RecordBatchReader + Send + 'static) -> Self {
        Self::new(Rows::Reader(Box::new(reader)))
    }

    /// Bytes of a format, such as standard input. Parquet cannot be read this way: it must be read from its end.
    pub fn reader(reader: impl AsyncRead + Send + Unpin + 'static, format: Format) -> Self {
        Self::bytes(input::given_reader(reader), format)
    }

    /// Bytes of a format, piece by piece.
    pub fn bytes(stream: impl Stream<Item = io::Result<Bytes>> + Send + 'static, format: Format) -> Self {
        Self::new(Rows::Bytes(stream.boxed())).format(format)
    }

    /// The format of the files, whatever their extensions say.
    #[must_use]
    pub fn format(self, format: Format) -> Self {
        Self { format: Some(format), ..self }
    }

    /// How delimited text is written. Files called `.tsv` are delimited by tabs where this says nothing but a comma.
    #[must_use]
    pub fn csv(self, options: CsvOptions) -> Self {
        Self { csv: options, ..self }
    }

    /// Options of the object stores that files are on, named as for the table's.
    #[must_use]
    pub fn storage_options(mut self, options: impl IntoIterator<Item = (String, String)>) -> Self {
        self.storage.options.extend(options);
        self
    }

    /// Options that hold where [`Self::storage_options`] says nothing else, such as the environment's variables; names
    /// that mean nothing are ignored.
    #[must_use]
    pub fn storage_defaults(mut self, defaults: impl IntoIterator<Item = (String, String)>) -> Self {
        self.storage.defaults.extend(defaults);
        self
    }

    /// What messages call batches or bytes.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }
}
