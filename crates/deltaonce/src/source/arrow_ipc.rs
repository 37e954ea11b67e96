//! Apache Arrow IPC, as file or stream, read front to back: a file is a stream between two marks.
//!
//! The Arrow crate's own stream reader takes a stream that breaks off between two messages for a whole one, so the
//! messages are told apart here and only decoded by it.

mod messages;

use std::io::Read;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::FileDecoder;
use arrow::ipc::{Endianness, MessageHeader, convert, root_as_footer};
use futures::stream::BoxStream;
use tokio::runtime::Handle;

use self::messages::Messages;
use super::input::Input;
use super::{Places, SourceBatch, Unit, worker};
use crate::error::{Error, Result};

/// Rows that are handed on together; larger batches are passed on in slices.
const BATCH_ROWS: usize = 16 * 1024;
/// Slices that are decoded ahead.
const AHEAD: usize = 4;

/// The Arrow schema of an input, from its first message.
///
/// # Errors
/// `Refused` where it is not Arrow IPC, or cut short.
pub(super) async fn schema(input: &Arc<Input>) -> Result<SchemaRef> {
    let looked = input.clone();
    input.peek(move |reader| Ok(Stream::open(&looked, reader)?.schema)).await
}

/// All rows of an input in its order.
pub(super) fn read(input: &Arc<Input>) -> BoxStream<'static, Result<SourceBatch>> {
    let runtime = Handle::current();
    let input = input.clone();
    worker::run(input.name().clone(), AHEAD, move |out| {
        let mut reader = input.reader(&runtime)?;
        let mut stream = Stream::open(&input, &mut reader)?;
        let mut row = 1;
        while let Some(batch) = stream.next()? {
            for offset in (0..batch.num_rows()).step_by(BATCH_ROWS) {
                let rows = batch.slice(offset, BATCH_ROWS.min(batch.num_rows() - offset));
                let places = Places::consecutive(input.name().clone(), Unit::Row, row);
                row += rows.num_rows() as u64;
                if !out.send(SourceBatch { rows, places }) {
                    return Ok(());
                }
            }
        }
        Ok(())
    })
}

/// The messages of an input, decoded.
struct Stream<'a, R> {
    input: &'a Input,
    messages: Messages<'a, R>,
    schema: SchemaRef,
    decoder: FileDecoder,
    batches: usize,
}

impl<'a, R: Read> Stream<'a, R> {
    fn open(input: &'a Input, reader: R) -> Result<Self> {
        let mut messages = Messages::open(input, reader)?;
        let message = messages.next()?.ok_or_else(|| damaged(input, "it has no schema"))?;
        let root = message.root(input)?;
        let version = root.version();
        let header = root.header_as_schema().ok_or_else(|| damaged(input, "it does not start with a schema"))?;
        if header.endianness() != Endianness::Little {
            return Err(Error::refused(format!("{} is written in big-endian order, which is not read", input.name())));
        }
        let schema: SchemaRef =
            if header.fields().is_some() { Arc::new(convert::fb_to_schema(header)) } else { Arc::new(Schema::empty()) };
        let decoder = FileDecoder::new(schema.clone(), version);
        Ok(Self { input, messages, schema, decoder, batches: 0 })
    }

    fn next(&mut self) -> Result<Option<arrow::record_batch::RecordBatch>> {
        while let Some(message) = self.messages.next()? {
            let fault = |e: ArrowError| damaged(self.input, &e.to_string()).caused_by(e);
            let (block, buffer) = (message.block(), message.buffer());
            match message.root(self.input)?.header_type() {
                MessageHeader::DictionaryBatch => self.decoder.read_dictionary(&block, buffer).map_err(fault)?,
                MessageHeader::RecordBatch => {
                    self.batches += 1;
                    if let Some(batch) = self.decoder.read_record_batch(&block, buffer).map_err(fault)? {
                        return Ok(Some(batch));
                    }
                }
                MessageHeader::NONE => {}
                other => return Err(damaged(self.input, &format!("it holds a message of kind {other:?}"))),
            }
        }
        self.check_end()?;
        Ok(None)
    }

    /// What follows the end of the stream: a file's footer, which must count the batches that were read, or nothing.
    fn check_end(&mut self) -> Result<()> {
        let rest = self.messages.rest()?;
        if !self.messages.in_file() {
            return if rest.is_empty() {
                Ok(())
            } else {
                Err(damaged(self.input, "it goes on after its end; several streams must be several inputs"))
            };
        }
        let short = || Error::refused(format!("{} is cut short: its footer is missing", self.input.name()));
        let (footer, mark) = rest.split_last_chunk::<{ messages::MARK.len() }>().ok_or_else(short)?;
        let (footer, length) = footer.split_last_chunk::<4>().ok_or_else(short)?;
        if mark != messages::MARK || i64::from(i32::from_le_bytes(*length)) != footer.len() as i64 {
            return Err(short());
        }
        let footer = root_as_footer(footer).map_err(|e| damaged(self.input, &e.to_string()))?;
        let listed = footer.recordBatches().map_or(0, |blocks| blocks.len());
        if listed != self.batches {
            let found = self.batches;
            return Err(damaged(self.input, &format!("its footer lists {listed} batches, but {found} are there")));
        }
        Ok(())
    }
}

fn damaged(input: &Input, why: &str) -> Error {
    Error::refused(format!("{} is not readable as Arrow IPC: {why}", input.name()))
}

#[cfg(test)]
mod tests;
