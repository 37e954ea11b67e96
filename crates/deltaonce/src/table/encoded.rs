//! Row groups as their data file has them, for files that are written again with some of their rows as they were.

use std::io::Read;
use std::sync::Arc;

use arrow::array::RecordBatch;
use bytes::{Buf, Bytes};
use parquet::arrow::ParquetRecordBatchStreamBuilder;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
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

    /// Reads the column that is number `column` among Parquet's.
    ///
    /// # Errors
    /// As reading a file fails.
    pub(crate) async fn column(&self, column: usize) -> Result<EncodedColumn> {
        let failed = |e| unreadable(&self.path, e);
        let (footer, mut input) = (self.metadata.metadata(), self.input.clone());
        let chunk = self.columns().get(column);
        let (chunk, (start, length)) = chunk.and_then(|chunk| Some((chunk, place(chunk)?))).ok_or_else(|| {
            Error::internal(format!("column {column} of a row group of data file '{}' has no place", self.path))
        })?;
        let bytes = input.get_bytes(start..start.saturating_add(length)).await.map_err(failed)?;
        let bloom_filter = match chunk.bloom_filter_offset() {
            None => None,
            Some(_) => {
                let mut builder = ParquetRecordBatchStreamBuilder::new_with_metadata(input, self.metadata.clone());
                let filter = builder.get_row_group_column_bloom_filter(self.number, column).await;
                filter.map_err(failed)?
            }
        };
        let column_index = footer.column_index().and_then(|groups| groups.get(self.number)?.get(column));
        let offset_index = footer.offset_index().and_then(|groups| groups.get(self.number)?.get(column));
        let close = ColumnCloseResult {
            bytes_written: length,
            rows_written: self.rows(),
            metadata: chunk.clone(),
            bloom_filter,
            column_index: column_index.filter(|index| !matches!(index, ColumnIndexMetaData::NONE)).cloned(),
            offset_index: offset_index.cloned(),
        };
        Ok(EncodedColumn { bytes: Placed { bytes, start }, close })
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
