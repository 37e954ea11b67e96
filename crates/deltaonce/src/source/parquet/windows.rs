//! The bytes of a Parquet file, fetched in windows that move along each column.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, Bytes};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader, Length};
use tokio::runtime::Handle;

use crate::error::{Error, Result};
use crate::source::fault;
use crate::source::input::{Input, InputPlace};
use crate::source::object::Object;

/// A file that is read at any place: opened once, so that all reads are of one version.
#[derive(Debug)]
pub(super) struct Ranges {
    name: Arc<str>,
    size: u64,
    file: RangeFile,
}

#[derive(Debug)]
enum RangeFile {
    Local(File),
    Object(Arc<Object>, Handle),
}

impl Ranges {
    /// Opens an input for blocking threads; requests to a store run on `runtime`.
    pub(super) fn open(input: &Input, runtime: &Handle) -> Result<Self> {
        let name = input.name().clone();
        let (file, size) = match input.place() {
            InputPlace::Local(path) => {
                let file = File::open(path).map_err(|e| fault::io(&name, e))?;
                let meta = file.metadata().map_err(|e| fault::io(&name, e))?;
                if !meta.is_file() {
                    return Err(backwards(&name));
                }
                (RangeFile::Local(file), meta.len())
            }
            InputPlace::Object(object) => (RangeFile::Object(object.clone(), runtime.clone()), object.size()),
            InputPlace::Given(_) => return Err(backwards(&name)),
        };
        Ok(Self { name, size, file })
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        match &self.file {
            RangeFile::Local(file) => {
                let mut bytes = vec![0; usize::try_from(range.end - range.start).unwrap_or_default()];
                file.read_exact_at(&mut bytes, range.start).map_err(|e| fault::io(&self.name, e))?;
                Ok(bytes.into())
            }
            RangeFile::Object(object, runtime) => runtime.block_on(object.range(range)),
        }
    }

    /// Bytes worth fetching at once, of each of `columns` columns: requests to a store are slow to answer, but the
    /// windows of all columns are held together.
    fn window(&self, columns: usize) -> u64 {
        let (all, least, most) = match self.file {
            RangeFile::Local(_) => (16 << 20, 64 << 10, 1 << 20),
            RangeFile::Object(..) => (64 << 20, 256 << 10, 8 << 20),
        };
        (all / columns.max(1) as u64).clamp(least, most)
    }
}

fn backwards(name: &str) -> Error {
    Error::invalid(format!("{name} cannot be read as Parquet, which must be read from its end"))
        .hint("save it to a file and name that")
}

/// A file as the Parquet crate reads it. Clones share their windows.
#[derive(Clone)]
pub(super) struct Windows(Arc<Inner>);

struct Inner {
    ranges: Arc<Ranges>,
    /// Where each column chunk is, by its start, and which column it belongs to.
    chunks: Vec<(Range<u64>, usize)>,
    window: u64,
    held: Mutex<HashMap<usize, (u64, Bytes)>>,
    fault: Mutex<Option<Error>>,
    count: Option<Arc<Input>>,
}

impl Windows {
    /// For reading a footer: nothing is fetched that is not asked for.
    pub(super) fn of_footer(ranges: Arc<Ranges>) -> Self {
        Self::new(ranges, Vec::new(), 0, None)
    }

    /// For reading columns; what is fetched counts as read of `count`.
    pub(super) fn of_columns(ranges: Arc<Ranges>, metadata: &ParquetMetaData, count: Option<Arc<Input>>) -> Self {
        let mut chunks = Vec::new();
        for group in metadata.row_groups() {
            for (column, chunk) in group.columns().iter().enumerate() {
                // `byte_range` asserts what a damaged footer may violate; such a chunk is read without a window.
                let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
                if let (Ok(start), Ok(length)) = (u64::try_from(start), u64::try_from(chunk.compressed_size())) {
                    chunks.push((start..start.saturating_add(length), column));
                }
            }
        }
        chunks.sort_unstable_by_key(|(range, _)| range.start);
        let columns = metadata.file_metadata().schema_descr().num_columns();
        let window = ranges.window(columns);
        Self::new(ranges, chunks, window, count)
    }

    fn new(ranges: Arc<Ranges>, chunks: Vec<(Range<u64>, usize)>, window: u64, count: Option<Arc<Input>>) -> Self {
        Self(Arc::new(Inner { ranges, chunks, window, held: Mutex::default(), fault: Mutex::default(), count }))
    }

    /// What went wrong in reading, if that is why the Parquet crate failed: it passes on only words.
    pub(super) fn fault(&self) -> Option<Error> {
        self.0.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// At least `least` bytes from `start` on.
    fn at(&self, start: u64, least: u64) -> ParquetResult<Bytes> {
        let inner = &self.0;
        let size = inner.ranges.size;
        let end = start.checked_add(least).filter(|end| *end <= size);
        let Some(end) = end else {
            return Err(ParquetError::EOF(format!("bytes {start} and on are beyond the file's {size}")));
        };
        let next = inner.chunks.partition_point(|(range, _)| range.start <= start);
        let chunk = next.checked_sub(1).and_then(|at| inner.chunks.get(at)).filter(|(range, _)| start < range.end);
        let Some((range, column)) = chunk else { return self.fetch(start..end) };
        let mut held = inner.held.lock().unwrap_or_else(PoisonError::into_inner);
        let here = held.get(column).and_then(|(from, bytes)| {
            let skip = usize::try_from(start.checked_sub(*from)?).ok()?;
            (skip < bytes.len()).then(|| bytes.slice(skip..))
        });
        let here = here.unwrap_or_default();
        if least <= here.len() as u64 {
            return Ok(here);
        }
        let end = end.max((start + inner.window).min(range.end)).min(size);
        let more = self.fetch(start + here.len() as u64..end)?;
        let bytes = if here.is_empty() { more } else { [here, more].concat().into() };
        held.insert(*column, (start, bytes.clone()));
        Ok(bytes)
    }

    fn fetch(&self, range: Range<u64>) -> ParquetResult<Bytes> {
        match self.0.ranges.read(range) {
            Ok(bytes) => {
                if let Some(input) = &self.0.count {
                    input.count(bytes.len());
                }
                Ok(bytes)
            }
            Err(error) => {
                let words = error.message().to_owned();
                *self.0.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                Err(ParquetError::General(words))
            }
        }
    }
}

impl Length for Windows {
    fn len(&self) -> u64 {
        self.0.ranges.size
    }
}

impl ChunkReader for Windows {
    type T = WindowReader;

    fn get_read(&self, start: u64) -> ParquetResult<WindowReader> {
        Ok(WindowReader { windows: self.clone(), at: start, current: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let mut bytes = self.at(start, length as u64)?;
        bytes.truncate(length);
        Ok(bytes)
    }
}

/// Reads on from a place in the file.
pub(super) struct WindowReader {
    windows: Windows,
    at: u64,
    current: Bytes,
}

impl Read for WindowReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.current.is_empty() && self.at < self.windows.len() && !buffer.is_empty() {
            // A footer is read without windows: take what is asked for at once, not byte by byte.
            let least =
                (self.windows.len() - self.at).min(if self.windows.0.window == 0 { buffer.len() as u64 } else { 1 });
            self.current = self.windows.at(self.at, least).map_err(io::Error::other)?;
            self.at += self.current.len() as u64;
        }
        let read = buffer.len().min(self.current.len());
        self.current.copy_to_slice(buffer.get_mut(..read).unwrap_or_default());
        Ok(read)
    }
}
