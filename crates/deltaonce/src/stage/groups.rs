//! Row groups of one Parquet file on their way into it: encoded from rows, or copied as another file has them.
//!
//! Parquet's own writer of Arrow batches takes rows only.

use std::io::Write;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use crate::table::encoded::EncodedColumn;

/// Rows of a row group at most, save one that is copied.
pub(super) const GROUP_ROWS: usize = 1024 * 1024;

/// Encoded bytes at which a row group ends: it is held in memory until it is whole.
const GROUP_BYTES: usize = 64 * 1024 * 1024;

/// Writes the row groups of one file into `W`.
pub(super) struct GroupWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    schema: SchemaRef,
    columns: ArrowRowGroupWriterFactory,
    open: Option<OpenGroup>,
}

/// A row group that may get more rows.
struct OpenGroup {
    columns: Vec<ArrowColumnWriter>,
    rows: usize,
}

impl<W: Write + Send> GroupWriter<W> {
    /// # Errors
    /// Why Parquet cannot hold columns of `schema`.
    pub(super) fn new(sink: W, schema: SchemaRef, properties: WriterProperties) -> Result<Self> {
        // The Arrow schema that the writer would put into the footer says nothing that Parquet's own types do not say here.
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(sink, schema.clone(), options)?;
        let (file, columns) = writer.into_serialized_writer()?;
        Ok(Self { file, schema, columns, open: None })
    }

    /// Encodes rows.
    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let mut start = 0;
        while start < rows.num_rows() {
            let open = match &mut self.open {
                Some(open) => open,
                closed => closed.insert(OpenGroup {
                    columns: self.columns.create_column_writers(self.file.flushed_row_groups().len())?,
                    rows: 0,
                }),
            };
            let count = (rows.num_rows() - start).min(GROUP_ROWS.saturating_sub(open.rows).max(1));
            open.write(&self.schema, &rows.slice(start, count))?;
            start += count;
            if open.rows >= GROUP_ROWS || open.encoded() >= GROUP_BYTES {
                self.end_group()?;
            }
        }
        Ok(())
    }

    /// Writes a row group of columns that another file has, in the order of this one's.
    pub(super) fn copy(&mut self, columns: Vec<EncodedColumn>) -> Result<()> {
        self.end_group()?;
        let mut group = self.file.next_row_group()?;
        for EncodedColumn { bytes, close } in columns {
            group.append_column(&bytes, close)?;
        }
        group.close()?;
        Ok(())
    }

    fn end_group(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let mut group = self.file.next_row_group()?;
        for column in open.columns {
            column.close()?.append_to_row_group(&mut group)?;
        }
        group.close()?;
        Ok(())
    }

    /// Bytes that the file would have without its footer if it ended now, about.
    pub(super) fn encoded(&self) -> usize {
        self.file.bytes_written() + self.open.as_ref().map_or(0, OpenGroup::encoded)
    }

    /// Bytes of memory that rows take which are not yet in `W`.
    pub(super) fn memory(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.columns.iter().map(ArrowColumnWriter::memory_size).sum())
    }

    /// Writes what is left and the footer.
    pub(super) fn finish(&mut self) -> Result<ParquetMetaData> {
        self.end_group()?;
        self.file.finish()
    }

    pub(super) fn sink(&self) -> &W {
        self.file.inner()
    }

    /// Where the bytes go; whoever writes there himself spoils the file.
    pub(super) fn sink_mut(&mut self) -> &mut W {
        self.file.inner_mut()
    }
}

impl OpenGroup {
    fn write(&mut self, schema: &SchemaRef, rows: &RecordBatch) -> Result<()> {
        let mut columns = self.columns.iter_mut();
        for (field, values) in schema.fields().iter().zip(rows.columns()) {
            for leaf in compute_leaves(field, values)? {
                let column = columns.next();
                column
                    .ok_or_else(|| ParquetError::General("rows have more columns than the file".to_owned()))?
                    .write(&leaf)?;
            }
        }
        self.rows += rows.num_rows();
        Ok(())
    }

    fn encoded(&self) -> usize {
        self.columns.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum()
    }
}

#[cfg(test)]
mod tests;
