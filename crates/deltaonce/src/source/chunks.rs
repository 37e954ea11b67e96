//! Cuts a text file's bytes into chunks of whole records, so that chunks can be read side by side.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use super::{Place, Places, SourceBatch, Unit};
use crate::error::{Error, Result};

/// Bytes in a chunk, give or take a record: enough rows to be worth a task, few enough for a core's cache.
const CHUNK: usize = 1 << 20;
/// The longest record. A quote that is never closed would otherwise draw the rest of the file into memory.
const LONGEST_RECORD: usize = 64 << 20;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Consecutive records of a text file. Only the last chunk of a file may end without a line feed.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    pub(super) data: Bytes,
    /// The line, from 1, that `data` starts with.
    pub(super) first_line: u64,
    /// `data` ends within a record that is longer than [`LONGEST_RECORD`]; nothing follows.
    pub(super) overlong: bool,
}

/// What the end of a chunk's text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The last record is whole.
    Whole,
    /// The last record goes on beyond what one record may hold.
    Overlong,
    /// The last record goes on with a byte that is not UTF-8.
    NotUtf8,
}

impl Chunk {
    /// The text up to the first byte that is not UTF-8, and what its end means.
    pub(super) fn text(&self) -> (&str, End) {
        match std::str::from_utf8(&self.data) {
            Ok(text) if self.overlong => (text, End::Overlong),
            Ok(text) => (text, End::Whole),
            Err(error) => {
                let valid = self.data.get(..error.valid_up_to()).unwrap_or_default();
                // A character cut off by the limit of a record is no sign of another encoding.
                let end = if self.overlong && error.error_len().is_none() { End::Overlong } else { End::NotUtf8 };
                (std::str::from_utf8(valid).unwrap_or_default(), end)
            }
        }
    }
}

/// Cuts `bytes`, in pieces of any size, at line feeds outside of quotes. A byte order mark at the start is dropped.
///
/// Quotes are told by their parity, which is right up to the first record with a stray quote; readers refuse that one.
pub(super) fn chunks(bytes: BoxStream<'static, Result<Bytes>>, quote: Option<u8>) -> BoxStream<'static, Result<Chunk>> {
    sized_chunks(bytes, quote, CHUNK, LONGEST_RECORD)
}

/// As [`chunks`], with other sizes.
pub(super) fn sized_chunks(
    bytes: BoxStream<'static, Result<Bytes>>,
    quote: Option<u8>,
    size: usize,
    longest: usize,
) -> BoxStream<'static, Result<Chunk>> {
    let cutter = Cutter {
        bytes,
        waiting: Bytes::new(),
        buffer: Vec::new(),
        within_quotes: false,
        quote,
        size,
        wanted: size,
        longest,
        line: 1,
        at_start: true,
        ended: false,
    };
    stream::try_unfold(cutter, |mut cutter| async move { Ok(cutter.next().await?.map(|chunk| (chunk, cutter))) })
        .boxed()
}

struct Cutter {
    bytes: BoxStream<'static, Result<Bytes>>,
    /// Bytes that came but are not in `buffer` yet.
    waiting: Bytes,
    /// Bytes from the start of a record on.
    buffer: Vec<u8>,
    /// Whether the end of `buffer` is within quotes.
    within_quotes: bool,
    quote: Option<u8>,
    size: usize,
    /// How many bytes `buffer` must hold before a cut is looked for.
    wanted: usize,
    longest: usize,
    /// The line that `buffer` starts with.
    line: u64,
    at_start: bool,
    ended: bool,
}

impl Cutter {
    async fn next(&mut self) -> Result<Option<Chunk>> {
        while !self.ended {
            if self.buffer.len() >= self.wanted {
                if let Some(end) = self.last_record_end() {
                    return Ok(Some(self.cut(end, false)));
                }
                if self.wanted >= self.longest {
                    self.ended = true;
                    return Ok(Some(self.cut(self.buffer.len(), true)));
                }
                self.wanted = self.wanted.saturating_mul(2).min(self.longest);
            } else if self.waiting.is_empty() {
                match self.bytes.try_next().await? {
                    Some(bytes) => self.waiting = bytes,
                    None => {
                        self.ended = true;
                        if !self.buffer.is_empty() {
                            return Ok(Some(self.cut(self.buffer.len(), false)));
                        }
                    }
                }
            } else {
                let room = (self.wanted - self.buffer.len()).min(self.waiting.len());
                let taken = self.waiting.split_to(room);
                if let Some(quote) = self.quote {
                    self.within_quotes ^= memchr::memchr_iter(quote, &taken).count() % 2 == 1;
                }
                self.buffer.reserve(self.wanted - self.buffer.len());
                self.buffer.extend_from_slice(&taken);
            }
        }
        Ok(None)
    }

    /// Where the last record that `buffer` holds whole ends, its line feed included.
    fn last_record_end(&self) -> Option<usize> {
        let mut within_quotes = self.within_quotes;
        let mut rest = self.buffer.as_slice();
        loop {
            let found = match self.quote {
                Some(quote) => memchr::memrchr2(quote, b'\n', rest)?,
                None => memchr::memrchr(b'\n', rest)?,
            };
            if rest.get(found) != Some(&b'\n') {
                within_quotes = !within_quotes;
            } else if !within_quotes {
                return Some(found + 1);
            }
            rest = rest.get(..found)?;
        }
    }

    fn cut(&mut self, end: usize, overlong: bool) -> Chunk {
        let tail = self.buffer.get(end..).unwrap_or_default();
        let mut next = Vec::with_capacity(if self.ended { 0 } else { self.size.max(tail.len()) });
        next.extend_from_slice(tail);
        self.buffer.truncate(end);
        let mut data = Bytes::from(std::mem::replace(&mut self.buffer, next));
        self.wanted = self.size;
        let first_line = self.line;
        self.line += memchr::memchr_iter(b'\n', &data).count() as u64;
        if self.at_start && data.starts_with(BYTE_ORDER_MARK) {
            data = data.slice(BYTE_ORDER_MARK.len()..);
        }
        self.at_start = false;
        Chunk { data, first_line, overlong }
    }
}

/// Reads `parallelism` chunks at once with `read`, on threads for blocking work; batches keep the order of the file.
/// The first error ends the stream.
pub(super) fn read_chunks<R>(
    chunks: BoxStream<'static, Result<Chunk>>,
    parallelism: usize,
    read: R,
) -> BoxStream<'static, Result<SourceBatch>>
where
    R: Fn(Chunk) -> Result<Vec<SourceBatch>> + Send + Sync + 'static,
{
    let read = Arc::new(read);
    let batches = chunks
        .map_ok(move |chunk| {
            let read = read.clone();
            let task = tokio::task::spawn_blocking(move || read(chunk));
            async move {
                match task.await {
                    Ok(batches) => batches.map(|batches| stream::iter(batches.into_iter().map(Ok))),
                    Err(error) => Err(Error::internal("a task that reads text ended early").caused_by(error)),
                }
            }
        })
        .try_buffered(parallelism.max(1))
        .try_flatten();
    stream::try_unfold(
        batches,
        |mut batches| async move { Ok(batches.try_next().await?.map(|batch| (batch, batches))) },
    )
    .boxed()
}

/// Where records stood that start with `lines`, in order.
pub(super) fn places(name: &Arc<str>, lines: &[u64]) -> Places {
    let first = lines.first().copied().unwrap_or_default();
    if lines.last().is_none_or(|last| *last == first + lines.len() as u64 - 1) {
        Places::consecutive(name.clone(), Unit::Line, first)
    } else {
        Places::each(name.clone(), Unit::Line, lines.into())
    }
}

/// The refusal of a record that is longer than [`LONGEST_RECORD`].
pub(super) fn refuse_overlong(place: &Place) -> Error {
    Error::refused(format!("{place}: the record is longer than {} MiB", LONGEST_RECORD >> 20))
}

/// The refusal of byte `byte`, from 1, of a line, in a column if that is known.
pub(super) fn refuse_not_utf8(place: &Place, column: Option<&str>, byte: usize) -> Error {
    let column = column.map(|column| format!("{column}, ")).unwrap_or_default();
    Error::refused(format!("{place}: {column}byte {byte} of the line is not UTF-8")).hint("convert the file to UTF-8")
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use proptest::prelude::*;

    use super::*;

    fn cut(pieces: Vec<Vec<u8>>, quote: Option<u8>, size: usize, longest: usize) -> Vec<Chunk> {
        let bytes = stream::iter(pieces.into_iter().map(|piece| Ok(Bytes::from(piece)))).boxed();
        block_on(sized_chunks(bytes, quote, size, longest).try_collect()).unwrap()
    }

    #[test]
    fn cuts_at_line_feeds_outside_of_quotes_only() {
        let chunks = cut(vec![b"a,\"x\ny\nz\"\nb,c\nlast".to_vec()], Some(b'"'), 8, 1000);
        let texts: Vec<_> = chunks.iter().map(|chunk| (chunk.text().0, chunk.first_line)).collect();
        assert_eq!(texts, [("a,\"x\ny\nz\"\nb,c\n", 1), ("last", 5)]);
    }

    #[test]
    fn drops_the_byte_order_mark_even_when_it_comes_in_pieces() {
        let chunks = cut(vec![b"\xEF".to_vec(), b"\xBB".to_vec(), b"\xBFid\n1\n".to_vec()], Some(b'"'), 100, 1000);
        assert_eq!(chunks[0].text(), ("id\n1\n", End::Whole));
    }

    #[test]
    fn ends_with_a_record_that_is_too_long() {
        let chunks = cut(vec![b"a\n\"open\n".to_vec(), vec![b'x'; 100]], Some(b'"'), 4, 32);
        let last = chunks.last().unwrap();
        assert_eq!((last.first_line, last.data.len(), last.text().1), (2, 32, End::Overlong));
    }

    proptest! {
        #[test]
        fn holds_every_byte_once_and_counts_lines(
            pieces in proptest::collection::vec("[ab,\"\n\r]{0,9}", 0..12),
            size in 1_usize..20,
        ) {
            let whole = pieces.concat();
            let chunks = cut(pieces.into_iter().map(String::into_bytes).collect(), Some(b'"'), size, 1 << 20);
            let mut before = String::new();
            for chunk in &chunks {
                prop_assert_eq!(chunk.first_line as usize, 1 + before.matches('\n').count());
                prop_assert_eq!(before.matches('"').count() % 2, 0);
                before.push_str(chunk.text().0);
            }
            prop_assert_eq!(before, whole);
        }
    }
}
