//! The messages of an Arrow IPC stream, told apart.

use std::io::{self, Read};

use arrow::buffer::{Buffer, MutableBuffer};
use arrow::ipc::{self, Block, root_as_message};

use super::damaged;
use crate::error::{Error, Result};
use crate::source::input::Input;

/// At both ends of an Arrow IPC file.
pub(super) const MARK: &[u8; 6] = b"ARROW1";
/// Before the length of a message, in all but the oldest streams.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// A footer longer than this is none.
const FOOTER: u64 = 256 << 20;
/// Room is made for this much at a time, so that a damaged length does not ask for all memory.
const STEP: usize = 16 << 20;

/// The messages of a stream, or of the stream within a file.
pub(super) struct Messages<'a, R> {
    input: &'a Input,
    reader: R,
    in_file: bool,
    /// The first four bytes, where they were needed to see what the input is.
    start: Option<[u8; 4]>,
}

/// One message: its length, its metadata and its body, as they were.
pub(super) struct Message {
    buffer: Buffer,
    metadata: usize,
    body: usize,
}

impl Message {
    pub(super) fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    pub(super) fn block(&self) -> Block {
        Block::new(0, i32::try_from(self.metadata).unwrap_or(i32::MAX), self.body as i64)
    }

    pub(super) fn root(&self, input: &Input) -> Result<ipc::Message<'_>> {
        root(input, self.buffer.get(8..self.metadata).unwrap_or_default())
    }
}

fn root<'b>(input: &Input, metadata: &'b [u8]) -> Result<ipc::Message<'b>> {
    root_as_message(metadata).map_err(|e| damaged(input, &e.to_string()))
}

impl<'a, R: Read> Messages<'a, R> {
    pub(super) fn open(input: &'a Input, reader: R) -> Result<Self> {
        let mut messages = Self { input, reader, in_file: false, start: None };
        let mut start = [0; 4];
        messages.fill(&mut start)?;
        if start == MARK[..4] {
            let mut rest = [0; 4];
            messages.fill(&mut rest)?;
            if rest[..2] != MARK[4..] {
                return Err(damaged(input, "it does not start as one"));
            }
            messages.in_file = true;
            messages.start = Some(messages.after_padding()?);
        } else if &start == b"FEA1" {
            return Err(damaged(input, "it is a Feather file of version 1").hint("write it as version 2"));
        } else {
            messages.start = Some(start);
        }
        Ok(messages)
    }

    /// Whether the stream stands within a file, and a footer follows it.
    pub(super) fn in_file(&self) -> bool {
        self.in_file
    }

    /// The next message; `None` at the end that the writer marked.
    ///
    /// # Errors
    /// `Refused` where the bytes end without that mark.
    pub(super) fn next(&mut self) -> Result<Option<Message>> {
        let mut word = match self.start.take() {
            Some(start) => start,
            None => self.word()?,
        };
        if word == CONTINUATION {
            word = self.word()?;
        }
        let length = u32::from_le_bytes(word) as usize;
        if length == 0 {
            return Ok(None);
        }
        if length > i32::MAX as usize - 8 {
            return Err(damaged(self.input, "the length of a message makes no sense"));
        }
        let mut buffer = MutableBuffer::new(0);
        buffer.extend_from_slice(&CONTINUATION);
        buffer.extend_from_slice(&word);
        self.append(&mut buffer, length)?;
        let metadata = buffer.len();
        let body = root(self.input, buffer.get(8..).unwrap_or_default())?.bodyLength();
        let body = usize::try_from(body).map_err(|e| damaged(self.input, &e.to_string()))?;
        self.append(&mut buffer, body)?;
        Ok(Some(Message { buffer: buffer.into(), metadata, body }))
    }

    /// What follows the end of the stream.
    pub(super) fn rest(&mut self) -> Result<Vec<u8>> {
        let mut rest = Vec::new();
        self.reader.by_ref().take(FOOTER).read_to_end(&mut rest).map_err(|e| self.input.fault(e))?;
        Ok(rest)
    }

    /// The first four bytes after the zeros that fill up to 8 or, as some writers do, up to 64 bytes.
    fn after_padding(&mut self) -> Result<[u8; 4]> {
        for _ in 0..64 / 4 {
            let word = self.word()?;
            if word != [0; 4] {
                return Ok(word);
            }
        }
        Err(damaged(self.input, "it does not start as one"))
    }

    fn word(&mut self) -> Result<[u8; 4]> {
        let mut word = [0; 4];
        self.fill(&mut word)?;
        Ok(word)
    }

    fn append(&mut self, buffer: &mut MutableBuffer, length: usize) -> Result<()> {
        let mut left = length;
        while left > 0 {
            let start = buffer.len();
            let step = left.min(STEP);
            buffer.resize(start + step, 0);
            let room = buffer.as_slice_mut().get_mut(start..).unwrap_or_default();
            self.reader.read_exact(room).map_err(|e| fault(self.input, e))?;
            left -= step;
        }
        Ok(())
    }

    fn fill(&mut self, room: &mut [u8]) -> Result<()> {
        self.reader.read_exact(room).map_err(|e| fault(self.input, e))
    }
}

fn fault(input: &Input, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::UnexpectedEof && error.get_ref().is_none_or(|inner| !inner.is::<Error>()) {
        return Error::refused(format!("{} is cut short: its Arrow stream has no end mark", input.name()))
            .caused_by(error);
    }
    input.fault(error)
}
