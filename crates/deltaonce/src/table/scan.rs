//! Reads the rows of one data file in the table's types.
//!
//! Parquet is decoded on threads for blocking work, a row group at a time, so that the threads that wait for storage
//! and for other loads never stand still.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::ObjectStore;
use parquet::arrow::ParquetRecordBatchStreamBuilder;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader};
use parquet::arrow::async_reader::ParquetRecordBatchStream;
use parquet::basic::Type as PhysicalType;
use parquet::bloom_filter::Sbbf;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use parquet::schema::types::SchemaDescriptor;
use roaring::RoaringTreemap;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

use super::actions::AddFile;
use super::data_file::{DataFile, unreadable};
use super::deletion_vector;
use super::encoded::EncodedGroup;
use super::row_ranges::{Cursor, Places, RowRanges};
use super::schema::TableSchema;
use super::shape::Shape;
use crate::error::{Error, Result};

/// Rows of a batch, at most.
const BATCH_ROWS: usize = 8192;
/// Batches that wait for their reader, at most, for each file being read.
const BATCHES_AHEAD: usize = 2;

/// Rows of a data file, in its order.
#[derive(Debug, Clone)]
pub(crate) struct Scanned {
    /// The asked columns in the asked order, under the table's names and types.
    pub(crate) rows: RecordBatch,
    /// Where in the file they stand.
    pub(crate) places: Places,
}

/// All rows of `file` that are there, in the file's order, as batches of `columns` (indices into the table's columns).
///
/// `store` is rooted at the table. Partition columns come from the log, columns that the file lacks are null, types
/// that the table has widened since are widened, and rows that a deletion vector masks are left out.
///
/// # Errors
/// The stream ends with the first error: `Retryable` for storage and for a file that is gone, `Unsupported` for a file
/// that is no Parquet, whose types are not the table's, or whose deletion vector cannot be followed.
pub(crate) fn scan(
    store: Arc<dyn ObjectStore>,
    schema: &TableSchema,
    file: &AddFile,
    columns: &[usize],
) -> BoxStream<'static, Result<Scanned>> {
    let (schema, file, columns) = (schema.clone(), file.clone(), columns.to_vec());
    async move { Ok(OpenFile::open(store, &schema, &file).await?.scan(&columns, None, Ok)) }
        .into_stream()
        .try_flatten()
        .boxed()
}

/// A data file whose footer and deletion vector are read.
#[derive(Debug)]
pub(crate) struct OpenFile {
    input: DataFile,
    schema: TableSchema,
    file: AddFile,
    metadata: ArrowReaderMetadata,
    masked: RoaringTreemap,
    /// Places of the rows of each row group.
    groups: Vec<Range<u64>>,
}

impl OpenFile {
    /// Opens `file`; `store` is rooted at the table.
    ///
    /// # Errors
    /// As [`scan`].
    pub(crate) async fn open(store: Arc<dyn ObjectStore>, schema: &TableSchema, file: &AddFile) -> Result<Self> {
        let masked = deletion_vector::read(&store, file).await?;
        let mut input = DataFile::new(store, file)?;
        let metadata = footer(&mut input).await.map_err(|e| unreadable(&file.path, e))?;
        let mut next = 0_u64;
        let groups = metadata.metadata().row_groups().iter().map(|group| {
            let first = next;
            next = next.saturating_add(u64::try_from(group.num_rows()).unwrap_or_default());
            first..next
        });
        let groups: Vec<_> = groups.collect();
        let announced = metadata.metadata().file_metadata().num_rows();
        if u64::try_from(announced) != Ok(next) {
            return Err(Error::unsupported(format!(
                "data file '{}' announces {announced} rows and its row groups hold {next}",
                file.path
            )));
        }
        if let Some(beyond) = masked.max().filter(|last| *last >= next) {
            return Err(Error::unsupported(format!(
                "the deletion vector of data file '{}' masks row {beyond}, and the file has {next} rows",
                file.path
            )));
        }
        Ok(Self { input, schema: schema.clone(), file: file.clone(), metadata, masked, groups })
    }

    /// The file as the log has it.
    pub(crate) fn file(&self) -> &AddFile {
        &self.file
    }

    pub(crate) fn schema(&self) -> &TableSchema {
        &self.schema
    }

    pub(crate) fn footer(&self) -> &Arc<ParquetMetaData> {
        self.metadata.metadata()
    }

    /// The file's columns in Arrow's types.
    pub(crate) fn columns(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// The file's columns in Parquet's types.
    pub(crate) fn parquet_schema(&self) -> &SchemaDescriptor {
        self.metadata.parquet_schema()
    }

    /// The Bloom filter of a column (by its place among Parquet's) in a row group, if it has one.
    ///
    /// # Errors
    /// As reading it fails.
    pub(crate) async fn bloom_filter(&self, group: usize, column: usize) -> Result<Option<Sbbf>> {
        let mut builder = ParquetRecordBatchStreamBuilder::new_with_metadata(self.input.clone(), self.metadata.clone());
        let filter = builder.get_row_group_column_bloom_filter(group, column).await;
        filter.map_err(|e| unreadable(&self.file.path, e))
    }

    /// The row group of a number, not decoded.
    ///
    /// # Errors
    /// `Unsupported` where the log gives no value of its type for a partition column.
    pub(crate) fn encoded(&self, number: usize) -> Result<EncodedGroup> {
        let columns = self.schema.columns();
        let partition = self.schema.partition_columns().iter().filter_map(|name| columns.index_of(name).ok());
        let (shape, _) = Shape::new(&self.schema, &self.file, &partition.collect::<Vec<_>>(), &self.metadata)?;
        let row = RecordBatchOptions::new().with_row_count(Some(1));
        let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &row);
        let row = row.map_err(|e| Error::internal("a row of no columns cannot be made").caused_by(e))?;
        Ok(EncodedGroup {
            path: self.file.path.as_str().into(),
            input: self.input.clone(),
            metadata: self.metadata.clone(),
            number,
            partition: shape.fit(&row)?,
        })
    }

    /// Every column of the table, for [`scan`](Self::scan).
    pub(crate) fn all_columns(&self) -> Vec<usize> {
        (0..self.schema.columns().fields().len()).collect()
    }

    /// Rows in the file, masked ones included.
    pub(crate) fn physical_rows(&self) -> u64 {
        self.groups.last().map_or(0, |last| last.end)
    }

    /// Places of the rows that its deletion vector masks.
    pub(crate) fn masked(&self) -> &RoaringTreemap {
        &self.masked
    }

    /// Places of the rows of each row group, masked ones included.
    pub(crate) fn groups(&self) -> &[Range<u64>] {
        &self.groups
    }

    /// What `each` makes of every batch of `columns` (indices into the table's columns), called in order on the thread
    /// that decodes. Only of `rows`, where they are given; rows that are masked are left out in any case.
    ///
    /// # Errors
    /// As [`scan`], and what `each` returns.
    pub(crate) fn scan<T, F>(
        &self,
        columns: &[usize],
        rows: Option<&RowRanges>,
        each: F,
    ) -> BoxStream<'static, Result<T>>
    where
        T: Send + 'static,
        F: FnMut(Scanned) -> Result<T> + Send + 'static,
    {
        let all = RowRanges::all(self.physical_rows());
        let rows = rows.unwrap_or(&all).without(&self.masked);
        if rows.is_empty() {
            return stream::empty().boxed();
        }
        match self.read(columns, rows) {
            Ok((groups, batches)) => {
                stream::try_unfold(Scan::Between(groups, batches, each), |scan| scan.next()).boxed()
            }
            Err(error) => stream::once(std::future::ready(Err(error))).boxed(),
        }
    }

    fn read(&self, columns: &[usize], rows: RowRanges) -> Result<(Groups, Batches)> {
        let (shape, mask) = Shape::new(&self.schema, &self.file, columns, &self.metadata)?;
        let touched = |group: &Range<u64>| !rows.and(&RowRanges::of([group.clone()])).is_empty();
        let (numbers, groups): (Vec<usize>, Vec<Range<u64>>) =
            self.groups.iter().cloned().enumerate().filter(|(_, group)| touched(group)).unzip();
        let mut builder = ParquetRecordBatchStreamBuilder::new_with_metadata(self.input.clone(), self.metadata.clone())
            .with_projection(mask)
            .with_batch_size(BATCH_ROWS)
            .with_row_groups(numbers);
        if rows.count() < groups.iter().map(|group| group.end - group.start).sum() {
            builder = builder.with_row_selection(rows.selection(&groups));
        }
        let path = self.file.path.clone();
        let stream = builder.build().map_err(|e| unreadable(&path, e))?;
        let asked = rows.count();
        let batches = Batches { path: path.clone(), shape, cursor: Cursor::new(rows), read: 0 };
        Ok((Groups { stream, path, asked }, batches))
    }
}

/// A file being read.
enum Scan<T, F> {
    Between(Groups, Batches, F),
    Decoding(Groups, mpsc::Receiver<Result<T>>, JoinHandle<(Batches, F)>),
}

/// What is left of an opened file.
struct Groups {
    stream: ParquetRecordBatchStream<DataFile>,
    path: String,
    asked: u64,
}

/// What becomes of the batches that are decoded.
struct Batches {
    path: String,
    shape: Shape,
    cursor: Cursor,
    read: u64,
}

impl<T, F> Scan<T, F>
where
    T: Send + 'static,
    F: FnMut(Scanned) -> Result<T> + Send + 'static,
{
    async fn next(mut self) -> Result<Option<(T, Self)>> {
        loop {
            self = match self {
                Self::Between(mut groups, batches, each) => {
                    let next = groups.stream.next_row_group().await.map_err(|e| unreadable(&groups.path, e))?;
                    let Some(reader) = next else { return batches.finish(groups.asked).map(|()| None) };
                    let (send, receive) = mpsc::channel(BATCHES_AHEAD);
                    let decoding = spawn_blocking(move || decode(reader, batches, each, &send));
                    Self::Decoding(groups, receive, decoding)
                }
                Self::Decoding(groups, mut receive, decoding) => match receive.recv().await {
                    Some(item) => return item.map(|item| Some((item, Self::Decoding(groups, receive, decoding)))),
                    // The channel closes at the end of the row group, and also where the thread died.
                    None => {
                        let (batches, each) = decoding.await.map_err(|e| {
                            Error::internal(format!("reading the data file '{}' broke off", groups.path)).caused_by(e)
                        })?;
                        Self::Between(groups, batches, each)
                    }
                },
            };
        }
    }
}

/// Decodes one row group into the channel until it ends or nobody listens.
fn decode<T, F>(
    reader: ParquetRecordBatchReader,
    mut batches: Batches,
    mut each: F,
    send: &mpsc::Sender<Result<T>>,
) -> (Batches, F)
where
    F: FnMut(Scanned) -> Result<T>,
{
    for batch in reader {
        let item = batch
            .map_err(|e| unreadable(&batches.path, e.into()))
            .and_then(|batch| batches.scanned(&batch))
            .and_then(&mut each);
        let failed = item.is_err();
        if send.blocking_send(item).is_err() || failed {
            break;
        }
    }
    (batches, each)
}

impl Batches {
    fn scanned(&mut self, batch: &RecordBatch) -> Result<Scanned> {
        let rows = self.shape.fit(batch)?;
        let count = rows.num_rows() as u64;
        self.read += count;
        let places = self.cursor.next(count);
        let places = places.ok_or_else(|| self.miscounted("more rows than were asked for"))?;
        Ok(Scanned { rows, places })
    }

    /// Checks that all rows came that were asked for.
    fn finish(&self, asked: u64) -> Result<()> {
        if self.read == asked { Ok(()) } else { Err(self.miscounted(&format!("{} of {asked} rows", self.read))) }
    }

    fn miscounted(&self, gave: &str) -> Error {
        Error::unsupported(format!("data file '{}' does not hold the rows that its footer announces", self.path))
            .detail(format!("it gave {gave}"))
    }
}

/// The file's footer, with the types that Parquet itself declares: an Arrow schema that the writer embedded would only
/// say how that writer held the values in memory.
async fn footer(input: &mut DataFile) -> parquet::errors::Result<ArrowReaderMetadata> {
    // The page index lets rows be read without those around them; some writers leave it out.
    let options =
        ArrowReaderOptions::new().with_skip_arrow_metadata(true).with_page_index_policy(PageIndexPolicy::Optional);
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

#[cfg(test)]
mod tests;
