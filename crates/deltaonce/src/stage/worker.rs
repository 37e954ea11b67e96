//! A thread that turns pieces into data files.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::record_batch::RecordBatch;
use arrow::row::OwnedRow;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::file::{Closed, DataFile, Files};
use super::partition::{Part, Splitter, Values};
use super::{Piece, dictionary};
use crate::error::Result;
use crate::table::actions::AddFile;
use crate::table::encoded::EncodedGroup;

/// Bytes of memory that the open files of one worker may take; beyond it the largest is closed.
///
/// More than what a single file can hold of a row group and a part, so an unpartitioned file is never closed early.
const OPEN_BYTES: usize = 80 * 1024 * 1024;

/// Files that may be open at once, whatever they hold.
const OPEN_FILES: usize = 2048;

/// Closed files that may be on their way to the store at once, by count and by bytes in memory.
const CLOSING_FILES: usize = 16;
const CLOSING_BYTES: usize = 16 * 1024 * 1024;

/// Pieces on their way to the workers of one write, and what the workers and their feeder tell each other.
#[derive(Debug)]
pub(super) struct Queue {
    pieces: Mutex<mpsc::Receiver<Piece>>,
    /// All rows were queued. A queue that ends without it ends because its feeder went away.
    whole: AtomicBool,
    /// Bytes encoded by all workers, about.
    encoded: AtomicU64,
}

impl Queue {
    pub(super) fn new(pieces: mpsc::Receiver<Piece>) -> Self {
        Self { pieces: Mutex::new(pieces), whole: AtomicBool::new(false), encoded: AtomicU64::new(0) }
    }

    /// Says that all rows were queued.
    pub(super) fn set_whole(&self) {
        self.whole.store(true, Ordering::Release);
    }

    /// Bytes encoded by all workers, about.
    pub(super) fn encoded(&self) -> u64 {
        self.encoded.load(Ordering::Relaxed)
    }

    fn next(&self) -> Option<Piece> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv()
    }

    /// Makes every other worker and the feeder stop.
    fn stop(&self) {
        self.whole.store(false, Ordering::Release);
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        pieces.close();
        while pieces.try_recv().is_ok() {}
    }
}

/// Writes pieces of the queue until it ends, and waits until all files are in the store. Blocks.
///
/// # Errors
/// The first thing that failed; then, as where the feeder went away, files not yet closed leave nothing in the store.
pub(super) fn run(files: &Files, queue: &Arc<Queue>, runtime: &Handle) -> Result<Vec<AddFile>> {
    let mut worker = Worker {
        files,
        runtime,
        splitter: Splitter::new(files.partitioning.clone())?,
        plain: None,
        open: HashMap::new(),
        memory: 0,
        closing: VecDeque::new(),
        adds: Vec::new(),
    };
    let result = worker.drain(queue);
    if result.is_err() {
        queue.stop();
        worker.abandon();
    }
    result.map(|()| worker.adds)
}

struct Worker<'a> {
    files: &'a Files,
    runtime: &'a Handle,
    splitter: Splitter,
    /// Columns to write without a dictionary, once there were rows to judge by. All files of a worker share the judgement,
    /// because the first rows of a small partition are too few for one.
    plain: Option<Vec<String>>,
    /// By partition; the key is none where the table has no partitions.
    open: HashMap<Option<OwnedRow>, Open>,
    /// The sum over open files.
    memory: usize,
    closing: VecDeque<Closed>,
    adds: Vec<AddFile>,
}

struct Open {
    file: DataFile,
    memory: usize,
    size: u64,
}

impl Worker<'_> {
    fn drain(&mut self, queue: &Queue) -> Result<()> {
        while let Some(piece) = queue.next() {
            let encoded = match piece {
                Piece::Rows(rows) => self.write(&rows)?,
                Piece::Group(group) => self.copy(&group)?,
            };
            queue.encoded.fetch_add(encoded, Ordering::Relaxed);
            while self.memory > OPEN_BYTES || self.open.len() > OPEN_FILES {
                self.close_largest()?;
            }
        }
        if !queue.whole.load(Ordering::Acquire) {
            self.abandon();
            return Ok(());
        }
        // In a fixed order, so that equal runs make equal calls to the store.
        let mut rest: Vec<_> = self.open.drain().collect();
        rest.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut rest = rest.into_iter();
        while let Some((_, open)) = rest.next() {
            if let Err(error) = self.close(open) {
                rest.for_each(|(_, open)| open.file.abandon());
                return Err(error);
            }
        }
        while let Some(closed) = self.closing.pop_front() {
            self.adds.push(closed.wait()?);
        }
        Ok(())
    }

    /// Encodes rows; gives the bytes by which files grew.
    fn write(&mut self, batch: &RecordBatch) -> Result<u64> {
        self.plain = self.plain.take().or_else(|| dictionary::futile(batch));
        let mut grown = 0;
        for (partition, Part { first, rows }) in self.splitter.split(batch)? {
            let values = || self.files.partitioning.values(batch, first);
            let mut open = self.open(&partition, values)?;
            open.file.write(self.files, &rows)?;
            grown += self.keep(partition, open)?;
        }
        Ok(grown)
    }

    /// Copies a row group; gives the bytes by which its file grew.
    fn copy(&mut self, group: &EncodedGroup) -> Result<u64> {
        let partition = self.splitter.partition(group.partition())?;
        let values = || self.files.partitioning.values_alone(group.partition());
        let mut open = self.open(&partition, values)?;
        open.file.copy(self.files, group, self.runtime)?;
        self.keep(partition, open)
    }

    /// The open file of a partition, which is taken out, or a new one.
    fn open(&mut self, partition: &Option<OwnedRow>, values: impl FnOnce() -> Result<Values>) -> Result<Open> {
        match self.open.remove(partition) {
            Some(open) => {
                self.memory = self.memory.saturating_sub(open.memory);
                Ok(open)
            }
            None => {
                let plain = self.plain.as_deref().unwrap_or_default();
                Ok(Open { file: self.files.open(values()?, plain, self.runtime)?, memory: 0, size: 0 })
            }
        }
    }

    /// Puts a file back that got more rows, or closes it where it is large enough; gives the bytes by which it grew.
    fn keep(&mut self, partition: Option<OwnedRow>, mut open: Open) -> Result<u64> {
        let before = open.size;
        (open.memory, open.size) = (open.file.memory(), open.file.size());
        let grown = open.size.saturating_sub(before);
        if open.size >= self.files.settings.target {
            self.close(open)?;
        } else {
            self.memory += open.memory;
            self.open.insert(partition, open);
        }
        Ok(grown)
    }

    fn close_largest(&mut self) -> Result<()> {
        let largest = self.open.iter().max_by(|(a, x), (b, y)| (x.memory, a).cmp(&(y.memory, b)));
        let Some(partition) = largest.map(|(partition, _)| partition.clone()) else {
            self.memory = 0;
            return Ok(());
        };
        match self.open.remove(&partition) {
            None => Ok(()),
            Some(open) => {
                self.memory = self.memory.saturating_sub(open.memory);
                self.close(open)
            }
        }
    }

    fn close(&mut self, open: Open) -> Result<()> {
        let closed = open.file.close(self.files)?;
        self.closing.push_back(closed);
        while self.closing.len() > CLOSING_FILES || self.closing.iter().map(Closed::held).sum::<usize>() > CLOSING_BYTES
        {
            let Some(oldest) = self.closing.pop_front() else { break };
            self.adds.push(oldest.wait()?);
        }
        Ok(())
    }

    fn abandon(&mut self) {
        for (_, open) in self.open.drain() {
            open.file.abandon();
        }
        for closed in self.closing.drain(..) {
            // They are whole or not there; either is fine for a write that has failed.
            let _ = closed.wait();
        }
    }
}
