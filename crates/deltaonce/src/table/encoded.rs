//! Row groups as their data file has them, for files that are written again with some of their rows as they were.

use std::io::Read;
use std::sync::Arc;

use arrow::array::RecordBatch;
use bytes::{Buf, Bytes};
use parquet::arrow::ParquetRecordBatchStreamBuilder;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::bloom_filter::Sbbf;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::reader::{ChunkReader, Length};

use super::data_file::{DataFile, unreadable};
use crate::error::{Error, Result};

/// A row group that is not decoded.
#[derive(Debug)]
pub(crate) struct EncodedGroup {
    pub(super) path: Arc<str>,
    pub(super) input: DataFile,
    pub(super) metadata: ArrowReaderMetadata,
    pub(super) number: usize,
    /// The table's partition columns with the values of its file: one row.
    pub(super) partition: RecordBatch,
}

/// A column chunk that is not decoded, and what its file says of it.
#[derive(Debug)]
pub(crate) struct EncodedColumn {
    pub(crate) bytes: Placed,
    pub(crate) close: ColumnCloseResult,
}

/// Bytes of a file from some place on.
#[derive(Debug)]
pub(crate) struct Placed {
    bytes: Bytes,
    start: u64,
}

impl EncodedGroup {
    /// The table's partition columns with the values of its file: one row.
    pub(crate) fn partition(&self) -> &RecordBatch {
        &self.partition
    }

    pub(crate) fn rows(&self) -> u64 {
        self.group().map_or(0, |group| group.num_rows().unsigned_abs())
    }

    /// What its file says of its columns.
    pub(crate) fn columns(&self) -> &[ColumnChunkMetaData] {
        self.group().map_or(&[], RowGroupMetaData::columns)
    }

    fn group(&self) -> Option<&RowGroupMetaData> {
        self.metadata.metadata().row_groups().get(self.number)
    }

    /// Reads its columns, as Parquet numbers them.
    ///
    /// # Errors
    /// As reading a file fails; `Internal` where a column has no [`place`].
    pub(crate) async fn read(&self) -> Result<Vec<EncodedColumn>> {
        let failed = |e| unreadable(&self.path, e);
        let places: Option<Vec<(u64, u64)>> = self.columns().iter().map(place).collect();
        let places = places.ok_or_else(|| {
            Error::internal(format!("a row group of data file '{}' has a column without a place", self.path))
        })?;
        let ranges = places.iter().map(|(start, length)| *start..start.saturating_add(*length)).collect();
        let chunks = self.input.clone().get_byte_ranges(ranges).await.map_err(failed)?;
        let mut columns = Vec::with_capacity(chunks.len());
        for (number, (chunk, (bytes, (start, length)))) in
            self.columns().iter().zip(chunks.into_iter().zip(places)).enumerate()
        {
            let close = ColumnCloseResult {
                bytes_written: length,
                rows_written: self.rows(),
                metadata: chunk.clone(),
                bloom_filter: self.bloom_filter(chunk, number).await.map_err(failed)?,
                column_index: self.column_index(number),
                offset_index: self.offset_index(number),
            };
            columns.push(EncodedColumn { bytes: Placed { bytes, start }, close });
        }
        Ok(columns)
    }

    async fn bloom_filter(&self, chunk: &ColumnChunkMetaData, column: usize) -> parquet::errors::Result<Option<Sbbf>> {
        if chunk.bloom_filter_offset().is_none() {
            return Ok(None);
        }
        let mut builder = ParquetRecordBatchStreamBuilder::new_with_metadata(self.input.clone(), self.metadata.clone());
        builder.get_row_group_column_bloom_filter(self.number, column).await
    }

    fn column_index(&self, column: usize) -> Option<ColumnIndexMetaData> {
        let index = self.metadata.metadata().column_index()?.get(self.number)?.get(column)?;
        (!matches!(index, ColumnIndexMetaData::NONE)).then(|| index.clone())
    }

    fn offset_index(&self, column: usize) -> Option<OffsetIndexMetaData> {
        self.metadata.metadata().offset_index()?.get(self.number)?.get(column).cloned()
    }
}

/// What a Parquet file begins with, before its first page.
const MAGIC_BYTES: u64 = 4;

/// Where in its file a column chunk begins, and how many bytes it has; none where the footer says what cannot be.
pub(crate) fn place(chunk: &ColumnChunkMetaData) -> Option<(u64, u64)> {
    let (dictionary, data) = (chunk.dictionary_page_offset(), chunk.data_page_offset());
    let ordered = dictionary.is_none_or(|dictionary| dictionary < data);
    let start = u64::try_from(dictionary.unwrap_or(data)).ok().filter(|start| ordered && *start >= MAGIC_BYTES)?;
    let length = u64::try_from(chunk.compressed_size()).ok()?;
    (length > 0).then_some((start, length))
}

impl Placed {
    fn from(&self, start: u64) -> parquet::errors::Result<Bytes> {
        let skipped = start.checked_sub(self.start).and_then(|skipped| usize::try_from(skipped).ok());
        match skipped.filter(|skipped| *skipped <= self.bytes.len()) {
            Some(skipped) => Ok(self.bytes.slice(skipped..)),
            None => Err(ParquetError::EOF(format!("byte {start} is not in the column"))),
        }
    }
}

impl Length for Placed {
    fn len(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }
}

impl ChunkReader for Placed {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let mut bytes = vec![0; length];
        self.get_read(start)?.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}
