//! Reads the rows of one data file in the table's types.
//!
//! Parquet is decoded on threads for blocking work, a row group at a time, so that the threads that wait for storage
//! and for other loads never stand still.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use datafusion::common::ScalarValue;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::ObjectStore;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader};
use parquet::arrow::async_reader::ParquetRecordBatchStream;
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use parquet::basic::Type as PhysicalType;
use parquet::schema::types::SchemaDescriptor;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::error::{Error, Result};
use crate::plan::value::partition_value;
use crate::table::actions::AddFile;
use crate::table::data_file::{DataFile, unreadable};
use crate::table::schema::TableSchema;
use crate::table::widen::widen;

/// Rows of a batch, at most.
const BATCH_ROWS: usize = 8192;
/// Batches that wait for their reader, at most, for each file being read.
const BATCHES_AHEAD: usize = 2;

/// Rows of a data file that stand one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Scanned {
    /// The asked columns in the asked order, under the table's names and types.
    pub(crate) rows: RecordBatch,
    /// The place of the first of them among the file's rows, from 0.
    pub(crate) first: u64,
}

/// All rows of `file`, in the file's order, as batches of `columns` (indices into the table's columns).
///
/// `store` is rooted at the table. Partition columns come from the log, columns that the file lacks are null, and types
/// that the table has widened since are widened.
///
/// # Errors
/// The stream ends with the first error: `Retryable` for storage and for a file that is gone, `Unsupported` for a file
/// that is no Parquet, whose types are not the table's, or that has a deletion vector.
pub(crate) fn scan(
    store: Arc<dyn ObjectStore>,
    schema: &TableSchema,
    file: &AddFile,
    columns: &[usize],
) -> BoxStream<'static, Result<Scanned>> {
    scan_with(store, schema, file, columns, Ok)
}

/// What `each` makes of every batch of [`scan`], called in order on the thread that decodes.
///
/// # Errors
/// As [`scan`], and what `each` returns.
pub(crate) fn scan_with<T, F>(
    store: Arc<dyn ObjectStore>,
    schema: &TableSchema,
    file: &AddFile,
    columns: &[usize],
    each: F,
) -> BoxStream<'static, Result<T>>
where
    T: Send + 'static,
    F: FnMut(Scanned) -> Result<T> + Send + 'static,
{
    let start = Start { store, file: file.clone(), wanted: Wanted::new(schema, file, columns) };
    stream::try_unfold(Scan::Unopened(start, each), |scan| scan.next()).boxed()
}

/// Where the values of one asked column come from.
#[derive(Debug, Clone)]
enum Origin {
    /// From the file, if it has a column of that name.
    File,
    /// From the log, if the file's entry says it.
    Partition(Option<Option<String>>),
}

#[derive(Debug)]
struct Wanted {
    path: String,
    schema: SchemaRef,
    origins: Vec<Origin>,
}

impl Wanted {
    fn new(schema: &TableSchema, file: &AddFile, columns: &[usize]) -> Self {
        let fields: Fields =
            columns.iter().filter_map(|&column| schema.columns().fields().get(column)).cloned().collect();
        let origins = fields
            .iter()
            .map(|field| {
                if schema.is_partition_column(field.name()) {
                    Origin::Partition(file.partition_values.get(field.name()).cloned())
                } else {
                    Origin::File
                }
            })
            .collect();
        Self { path: file.path.clone(), schema: Arc::new(Schema::new(fields)), origins }
    }
}

struct Start {
    store: Arc<dyn ObjectStore>,
    file: AddFile,
    wanted: Wanted,
}

/// A file being read.
enum Scan<T, F> {
    Unopened(Start, F),
    Between(Groups, Shape, F),
    Decoding(Groups, mpsc::Receiver<Result<T>>, JoinHandle<(Shape, F)>),
}

/// What is left of an opened file.
struct Groups {
    stream: ParquetRecordBatchStream<DataFile>,
    path: String,
    rows: u64,
}

impl<T, F> Scan<T, F>
where
    T: Send + 'static,
    F: FnMut(Scanned) -> Result<T> + Send + 'static,
{
    async fn next(mut self) -> Result<Option<(T, Self)>> {
        loop {
            self = match self {
                Self::Unopened(start, each) => {
                    let (groups, shape) = Groups::open(start).await?;
                    Self::Between(groups, shape, each)
                }
                Self::Between(mut groups, shape, each) => {
                    let next = groups.stream.next_row_group().await.map_err(|e| unreadable(&groups.path, e))?;
                    let Some(reader) = next else { return shape.finish(groups.rows).map(|()| None) };
                    let (send, receive) = mpsc::channel(BATCHES_AHEAD);
                    let decoding = spawn_blocking(move || decode(reader, shape, each, &send));
                    Self::Decoding(groups, receive, decoding)
                }
                Self::Decoding(groups, mut receive, decoding) => match receive.recv().await {
                    Some(item) => return item.map(|item| Some((item, Self::Decoding(groups, receive, decoding)))),
                    // The channel closes at the end of the row group, and also where the thread died.
                    None => {
                        let (shape, each) = decoding.await.map_err(|e| {
                            Error::internal(format!("reading the data file '{}' broke off", groups.path)).caused_by(e)
                        })?;
                        Self::Between(groups, shape, each)
                    }
                },
            };
        }
    }
}

/// Decodes one row group into the channel until it ends or nobody listens.
fn decode<T, F>(
    reader: ParquetRecordBatchReader,
    mut shape: Shape,
    mut each: F,
    send: &mpsc::Sender<Result<T>>,
) -> (Shape, F)
where
    F: FnMut(Scanned) -> Result<T>,
{
    for batch in reader {
        let item = batch
            .map_err(|e| unreadable(&shape.wanted.path, e.into()))
            .and_then(|batch| shape.fit(&batch))
            .and_then(&mut each);
        let failed = item.is_err();
        if send.blocking_send(item).is_err() || failed {
            break;
        }
    }
    (shape, each)
}

impl Groups {
    async fn open(start: Start) -> Result<(Self, Shape)> {
        let Start { store, file, wanted } = start;
        if file.deletion_vector.is_some() {
            return Err(Error::unsupported(format!(
                "data file '{}' has a deletion vector, whose rows this version does not leave out",
                file.path
            )));
        }
        let mut input = DataFile::new(store, &file)?;
        let metadata = open(&mut input).await.map_err(|e| unreadable(&file.path, e))?;
        let (shape, mask) = Shape::new(wanted, &metadata)?;
        let rows = u64::try_from(metadata.metadata().file_metadata().num_rows()).unwrap_or_default();
        let stream = ParquetRecordBatchStreamBuilder::new_with_metadata(input, metadata)
            .with_projection(mask)
            .with_batch_size(BATCH_ROWS)
            .build()
            .map_err(|e| unreadable(&file.path, e))?;
        Ok((Self { stream, path: file.path, rows }, shape))
    }
}

/// The file's footer, with the types that Parquet itself declares: an Arrow schema that the writer embedded would only
/// say how that writer held the values in memory.
async fn open(input: &mut DataFile) -> parquet::errors::Result<ArrowReaderMetadata> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::load_async(input, options).await?;
    match micros_for_int96(metadata.schema(), metadata.parquet_schema()) {
        Some(schema) => {
            ArrowReaderMetadata::try_new(metadata.metadata().clone(), ArrowReaderOptions::new().with_schema(schema))
        }
        None => Ok(metadata),
    }
}

/// The schema to read INT96 timestamps with, if there are any: in microseconds and UTC, since nanoseconds in 64 bits end
/// in the year 2262 and Spark writes timestamps of any year so.
fn micros_for_int96(schema: &SchemaRef, file: &SchemaDescriptor) -> Option<SchemaRef> {
    let mut has_int96 = vec![false; schema.fields().len()];
    for leaf in 0..file.num_columns() {
        if file.column(leaf).physical_type() == PhysicalType::INT96 {
            *has_int96.get_mut(file.get_column_root_idx(leaf))? = true;
        }
    }
    if !has_int96.contains(&true) {
        return None;
    }
    let fields = schema
        .fields()
        .iter()
        .zip(has_int96)
        .map(|(field, int96)| if int96 { Arc::new(in_micros(field)) } else { field.clone() });
    Some(Arc::new(Schema::new(fields.collect::<Fields>())))
}

fn in_micros(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, None) => {
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
        }
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|field| in_micros(field)).collect()),
        DataType::List(item) => DataType::List(Arc::new(in_micros(item))),
        DataType::Map(entries, sorted) => DataType::Map(Arc::new(in_micros(entries)), *sorted),
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}

/// How batches of the file become batches of the asked columns.
struct Shape {
    wanted: Wanted,
    fills: Vec<Fill>,
    read: u64,
}

enum Fill {
    /// The batch's column at this index.
    Column(usize),
    Value(ScalarValue),
    Null,
}

impl Shape {
    fn new(wanted: Wanted, metadata: &ArrowReaderMetadata) -> Result<(Self, ProjectionMask)> {
        let had = metadata.schema().fields();
        // Exactly, else as readers do that do not care about case.
        let find = |name: &str| {
            let same = had.iter().position(|field| field.name() == name);
            same.or_else(|| had.iter().position(|field| field.name().eq_ignore_ascii_case(name)))
        };
        let places: Vec<Option<usize>> = wanted
            .schema
            .fields()
            .iter()
            .zip(&wanted.origins)
            .map(|(field, origin)| if matches!(origin, Origin::File) { find(field.name()) } else { None })
            .collect();
        let mut roots: Vec<usize> = places.iter().copied().flatten().collect();
        roots.sort_unstable();
        roots.dedup();
        let fills = places
            .iter()
            .zip(&wanted.origins)
            .zip(wanted.schema.fields())
            .map(|((place, origin), field)| match (place, origin) {
                (_, Origin::Partition(text)) => {
                    let value = text.as_ref().and_then(|text| partition_value(text.as_deref(), field.data_type()));
                    value.map(Fill::Value).ok_or_else(|| {
                        let (column, file, data_type) = (field.name(), &wanted.path, field.data_type());
                        let text = text.as_ref().map_or("nothing".to_owned(), |text| format!("{text:?}"));
                        Error::unsupported(format!(
                            "data file '{file}' has no value of the type {data_type} in partition column '{column}' but {text}"
                        ))
                    })
                }
                // A batch holds the asked roots in the file's order.
                (Some(root), Origin::File) => Ok(Fill::Column(roots.partition_point(|other| other < root))),
                (None, Origin::File) => Ok(Fill::Null),
            })
            .collect::<Result<_>>()?;
        let mask = ProjectionMask::roots(metadata.parquet_schema(), roots);
        Ok((Self { wanted, fills, read: 0 }, mask))
    }

    fn fit(&mut self, batch: &RecordBatch) -> Result<Scanned> {
        let count = batch.num_rows();
        let strange = |field: &str| {
            Error::unsupported(format!(
                "column '{field}' of data file '{}' does not fit the table's schema",
                self.wanted.path
            ))
        };
        let columns = self
            .fills
            .iter()
            .zip(self.wanted.schema.fields())
            .map(|(fill, field)| -> Result<ArrayRef> {
                match fill {
                    Fill::Column(index) => {
                        widen(batch.column(*index), field.data_type()).map_err(|e| strange(field.name()).caused_by(e))
                    }
                    Fill::Value(value) => value.to_array_of_size(count).map_err(|e| strange(field.name()).caused_by(e)),
                    Fill::Null => Ok(new_null_array(field.data_type(), count)),
                }
            })
            .collect::<Result<Vec<_>>>()?;
        if let Some((field, _)) = self
            .wanted
            .schema
            .fields()
            .iter()
            .zip(&columns)
            .find(|(field, column)| !field.is_nullable() && column.null_count() > 0)
        {
            return Err(strange(field.name()).detail("it holds nulls, and the table's column does not"));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let rows = RecordBatch::try_new_with_options(self.wanted.schema.clone(), columns, &options).map_err(|e| {
            Error::unsupported(format!("data file '{}' does not fit the table's schema", self.wanted.path)).caused_by(e)
        })?;
        let first = self.read;
        self.read += count as u64;
        Ok(Scanned { rows, first })
    }

    /// Checks that all rows came that the footer announces.
    fn finish(&self, announced: u64) -> Result<()> {
        if self.read == announced {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "data file '{}' announces {announced} rows and holds {}",
            self.wanted.path, self.read
        )))
    }
}

#[cfg(test)]
mod tests;
