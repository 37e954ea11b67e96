//! Apache Parquet files: decoded on blocking threads, each with some of the columns, so that rows stay in order and
//! little is held whatever the size of a row group.

mod int96;
mod windows;

use std::sync::Arc;

use arrow::array::RecordBatchOptions;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt, TryFutureExt};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::ParquetMetaData;
use tokio::runtime::Handle;

use self::windows::{Ranges, Windows};
use super::input::Input;
use super::{Places, SourceBatch, Unit, worker};
use crate::error::{Error, Result};

/// Rows of a batch, unless rows are wide.
const BATCH_ROWS: usize = 16 * 1024;
/// Bytes that a batch may hold about, decoded.
const BATCH_BYTES: usize = 32 << 20;
/// Batches that each thread decodes ahead.
const AHEAD: usize = 2;

/// A file's footer: its schema and where its columns are.
#[derive(Clone)]
struct Footer {
    /// As rows are read: timestamps of the old 96-bit kind in microseconds.
    rows: ArrowReaderMetadata,
    /// The same file with those timestamps in nanoseconds, where it has any.
    nanoseconds: Option<ArrowReaderMetadata>,
}

/// The Arrow schema of a file, read from its footer.
///
/// # Errors
/// `Refused` where it is not a Parquet file or cut short; `Invalid` for bytes that cannot be read from their end.
pub(super) async fn schema(input: &Arc<Input>) -> Result<SchemaRef> {
    let runtime = Handle::current();
    let input = input.clone();
    worker::once(input.name().clone(), move || {
        let ranges = Arc::new(Ranges::open(&input, &runtime)?);
        Ok(footer(&input, &ranges)?.rows.schema().clone())
    })
    .await
}

/// All rows of a file in its order, decoded by up to `parallelism` threads.
pub(super) fn read(input: &Arc<Input>, parallelism: usize) -> BoxStream<'static, Result<SourceBatch>> {
    let runtime = Handle::current();
    let name = input.name().clone();
    let opened = input.clone();
    let open = worker::once(name.clone(), move || {
        let ranges = Arc::new(Ranges::open(&opened, &runtime)?);
        let footer = footer(&opened, &ranges)?;
        Ok((opened, ranges, footer))
    });
    // Spawned, so that a file is opened while the one before it is still read.
    let open = tokio::spawn(open).map(move |opened| {
        opened.unwrap_or_else(|died| Err(Error::internal(format!("reading {name} broke off")).caused_by(died)))
    });
    open.map_ok(move |(input, ranges, footer)| decode(&input, &ranges, &footer, parallelism))
        .try_flatten_stream()
        .boxed()
}

fn footer(input: &Input, ranges: &Arc<Ranges>) -> Result<Footer> {
    let windows = Windows::of_footer(ranges.clone());
    let refused =
        |e: &dyn std::fmt::Display| Error::refused(format!("{} is not a whole Parquet file: {e}", input.name()));
    let load = |options| {
        ArrowReaderMetadata::load(&windows, options)
            .map_err(|e| windows.fault().unwrap_or_else(|| refused(&e).caused_by(e)))
    };
    let plain = load(ArrowReaderOptions::new())?;
    let Some((micros, nanos)) = int96::schemas(&plain) else {
        return Ok(Footer { rows: plain, nanoseconds: None });
    };
    let with = |schema| {
        ArrowReaderMetadata::try_new(plain.metadata().clone(), ArrowReaderOptions::new().with_schema(schema))
            .map_err(|e| refused(&e).caused_by(e))
    };
    Ok(Footer { rows: with(micros)?, nanoseconds: Some(with(nanos)?) })
}

fn decode(
    input: &Arc<Input>,
    ranges: &Arc<Ranges>,
    footer: &Footer,
    parallelism: usize,
) -> BoxStream<'static, Result<SourceBatch>> {
    let schema = footer.rows.schema().clone();
    let metadata = footer.rows.metadata();
    let batch_rows = batch_rows(metadata);
    let shares = shares(metadata, schema.fields().len(), parallelism);
    let threads: Vec<_> = shares
        .iter()
        .map(|columns| {
            let (input, ranges, footer, columns) = (input.clone(), ranges.clone(), footer.clone(), columns.clone());
            worker::run(input.name().clone(), AHEAD, move |out| {
                let mut columns = Columns::open(&input, &ranges, &footer, &columns, batch_rows)?;
                while let Some(batch) = columns.next()? {
                    if !out.send(batch) {
                        break;
                    }
                }
                Ok(())
            })
        })
        .collect();
    let rows = u64::try_from(metadata.file_metadata().num_rows()).unwrap_or_default();
    let state = Assembly { name: input.name().clone(), schema, shares, threads, read: 0, rows };
    stream::try_unfold(state, |mut state| async move { Ok(state.next().await?.map(|batch| (batch, state))) }).boxed()
}

/// Rows of a batch such that wide rows do not make it large.
fn batch_rows(metadata: &ParquetMetaData) -> usize {
    let rows = usize::try_from(metadata.file_metadata().num_rows()).unwrap_or_default().max(1);
    // A footer may say any numbers.
    let sizes = metadata.row_groups().iter().map(|group| group.total_byte_size().max(0));
    let bytes = sizes.fold(0_i64, i64::saturating_add);
    let row = usize::try_from(bytes).unwrap_or_default() / rows;
    (BATCH_BYTES / row.max(1)).clamp(1, BATCH_ROWS)
}

/// Splits the top-level columns into up to `parallelism` shares of about equal weight.
fn shares(metadata: &ParquetMetaData, columns: usize, parallelism: usize) -> Vec<Vec<usize>> {
    let mut weights: Vec<(u64, usize)> = (0..columns).map(|column| (1, column)).collect();
    let descriptor = metadata.file_metadata().schema_descr();
    for group in metadata.row_groups() {
        for (leaf, chunk) in group.columns().iter().enumerate() {
            if let Some((weight, _)) = weights.get_mut(descriptor.get_column_root_idx(leaf)) {
                let (packed, plain) = (chunk.compressed_size().max(0), chunk.uncompressed_size().max(0));
                // Packed bytes cost unpacking, plain ones and values cost decoding.
                *weight += packed.unsigned_abs() + plain.unsigned_abs() + 4 * chunk.num_values().unsigned_abs();
            }
        }
    }
    weights.sort_unstable_by(|a, b| b.cmp(a));
    let mut shares: Vec<(u64, Vec<usize>)> = vec![(0, Vec::new()); parallelism.clamp(1, columns.max(1))];
    for (weight, column) in weights {
        if let Some((total, share)) = shares.iter_mut().min_by_key(|(total, _)| *total) {
            *total += weight;
            share.push(column);
        }
    }
    shares
        .into_iter()
        .map(|(_, mut share)| {
            share.sort_unstable();
            share
        })
        .collect()
}

/// Some of the columns of a file, decoded on one thread.
struct Columns {
    name: Arc<str>,
    windows: Windows,
    rows: ParquetRecordBatchReader,
    /// The share's 96-bit timestamps again, in nanoseconds, to see digits that microseconds cannot hold.
    nanoseconds: Option<(Windows, ParquetRecordBatchReader)>,
    read: u64,
}

impl Columns {
    fn open(
        input: &Arc<Input>,
        ranges: &Arc<Ranges>,
        footer: &Footer,
        columns: &[usize],
        batch_rows: usize,
    ) -> Result<Self> {
        let reader = |metadata: &ArrowReaderMetadata, columns: &[usize], windows: &Windows| {
            let mask = ProjectionMask::roots(metadata.parquet_schema(), columns.iter().copied());
            ParquetRecordBatchReaderBuilder::new_with_metadata(windows.clone(), metadata.clone())
                .with_projection(mask)
                .with_batch_size(batch_rows)
                .build()
                .map_err(|e| windows.fault().unwrap_or_else(|| damaged(input.name(), 0, &e).caused_by(e)))
        };
        let windows = Windows::of_columns(ranges.clone(), footer.rows.metadata(), Some(input.clone()));
        let rows = reader(&footer.rows, columns, &windows)?;
        let nanoseconds = match &footer.nanoseconds {
            Some(metadata) => match int96::columns(metadata, columns) {
                columns if columns.is_empty() => None,
                columns => {
                    let windows = Windows::of_columns(ranges.clone(), metadata.metadata(), None);
                    let reader = reader(metadata, &columns, &windows)?;
                    Some((windows, reader))
                }
            },
            None => None,
        };
        Ok(Self { name: input.name().clone(), windows, rows, nanoseconds, read: 0 })
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(batch) = step(&self.name, self.read, &mut self.rows, &self.windows)? else { return Ok(None) };
        if let Some((windows, reader)) = &mut self.nanoseconds
            && let Some(nanoseconds) = step(&self.name, self.read, reader, windows)?
        {
            int96::refuse_lost_digits(&self.name, self.read, &batch, &nanoseconds)?;
        }
        self.read += batch.num_rows() as u64;
        Ok(Some(batch))
    }
}

fn step(
    name: &str,
    read: u64,
    reader: &mut ParquetRecordBatchReader,
    windows: &Windows,
) -> Result<Option<RecordBatch>> {
    let batch: Option<Result<RecordBatch, ArrowError>> = reader.next();
    batch.transpose().map_err(|e| windows.fault().unwrap_or_else(|| damaged(name, read, &e).caused_by(e)))
}

fn damaged(name: &str, read: u64, error: &dyn std::fmt::Display) -> Error {
    Error::refused(format!("{name} is damaged or cut short after row {read}: {error}"))
}

/// Puts the columns that several threads decode together again.
struct Assembly {
    name: Arc<str>,
    schema: SchemaRef,
    shares: Vec<Vec<usize>>,
    threads: Vec<BoxStream<'static, Result<RecordBatch>>>,
    read: u64,
    rows: u64,
}

impl Assembly {
    async fn next(&mut self) -> Result<Option<SourceBatch>> {
        let mut columns = vec![None; self.schema.fields().len()];
        let mut rows: Option<usize> = None;
        let mut ended = 0;
        for (thread, share) in self.threads.iter_mut().zip(&self.shares) {
            let Some(part) = thread.next().await.transpose()? else {
                ended += 1;
                continue;
            };
            if rows.is_some_and(|rows| rows != part.num_rows()) {
                return Err(self.uneven());
            }
            rows = Some(part.num_rows());
            for (column, array) in share.iter().zip(part.columns()) {
                if let Some(place) = columns.get_mut(*column) {
                    *place = Some(array.clone());
                }
            }
        }
        let Some(rows) = rows else {
            return if self.read == self.rows { Ok(None) } else { Err(self.uneven()) };
        };
        let columns: Option<Vec<_>> = columns.into_iter().collect();
        let (Some(columns), 0) = (columns, ended) else { return Err(self.uneven()) };
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .map_err(|e| damaged(&self.name, self.read, &e).caused_by(e))?;
        let places = Places::consecutive(self.name.clone(), Unit::Row, self.read + 1);
        self.read += rows as u64;
        Ok(Some(SourceBatch { rows: batch, places }))
    }

    fn uneven(&self) -> Error {
        let footer = self.rows;
        Error::refused(format!("{} is damaged: not every column has the {footer} rows of its footer", self.name))
    }
}

#[cfg(test)]
mod tests;
