//! From bytes that a thread encodes to an object in the store: in parts while the file grows, or at once if it is small.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use crate::error::{Error, Result};
use crate::store::failure;

/// Bytes of a part at least: what every store takes, and what a small file may hold back in memory.
const LEAST_PART: u64 = 8 * 1024 * 1024;

/// Parts of a file at most; stores stop at 10,000, and a file may grow somewhat beyond its target.
const MOST_PARTS: u64 = 5_000;

/// Parts of one file under way at once.
const IN_FLIGHT: usize = 2;

/// Where the bytes of one file go. Writing blocks while the store is behind.
///
/// Dropping it before [`Sink::finish`] makes the store forget what it was given.
#[derive(Debug)]
pub(super) struct Sink {
    object: Arc<Object>,
    part_size: usize,
    buffer: Vec<u8>,
    written: u64,
    upload: Option<Upload>,
}

#[derive(Debug)]
struct Object {
    table: Arc<str>,
    store: Arc<dyn ObjectStore>,
    path: Path,
    runtime: Handle,
}

#[derive(Debug)]
struct Upload {
    pieces: mpsc::Sender<Piece>,
    task: JoinHandle<Result<()>>,
}

#[derive(Debug)]
enum Piece {
    Part(Bytes),
    Last(Bytes),
}

/// A file whose last bytes are on their way.
#[derive(Debug)]
pub(super) struct Finishing {
    runtime: Handle,
    task: JoinHandle<Result<()>>,
    /// Bytes that still were in memory when the file was finished.
    pub(super) held: usize,
}

impl Sink {
    /// A sink for the object at `path` of a table; `target` is the size that the file will have about.
    pub(super) fn new(table: Arc<str>, store: Arc<dyn ObjectStore>, path: Path, target: u64, runtime: Handle) -> Self {
        let part_size = usize::try_from(LEAST_PART.max(target / MOST_PARTS)).unwrap_or(usize::MAX);
        let object = Arc::new(Object { table, store, path, runtime });
        Self { object, part_size, buffer: Vec::new(), written: 0, upload: None }
    }

    /// Bytes written so far.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Bytes held in memory until they make a part.
    pub(super) fn held(&self) -> usize {
        self.buffer.len()
    }

    /// The object's path.
    pub(super) fn path(&self) -> &Path {
        &self.object.path
    }

    /// Says that all bytes are written. The object exists once [`Finishing::wait`] has said so.
    pub(super) fn finish(&mut self) -> Finishing {
        let last = Bytes::from(std::mem::take(&mut self.buffer));
        let runtime = self.object.runtime.clone();
        let held = last.len();
        let task = match self.upload.take() {
            Some(Upload { pieces, task }) => {
                // A task that no longer listens ends with the reason.
                let _ = pieces.blocking_send(Piece::Last(last));
                task
            }
            None => {
                let object = self.object.clone();
                runtime.spawn(async move {
                    let put = object.store.put(&object.path, PutPayload::from_bytes(last)).await;
                    put.map(drop).map_err(|e| failed(&object, e))
                })
            }
        };
        Finishing { runtime, task, held }
    }

    /// Gives the file up, and waits until the store has forgotten it. Says why the upload had failed, if it had.
    pub(super) fn abandon(&mut self) -> Result<()> {
        match self.upload.take() {
            None => Ok(()),
            Some(Upload { pieces, task }) => {
                drop(pieces);
                wait(&self.object.runtime, task)
            }
        }
    }

    fn send(&mut self) -> io::Result<()> {
        let full = std::mem::replace(&mut self.buffer, Vec::with_capacity(self.part_size));
        let object = &self.object;
        let upload = self.upload.get_or_insert_with(|| {
            // One part waits while others are under way.
            let (pieces, queue) = mpsc::channel(1);
            Upload { pieces, task: object.runtime.spawn(upload(object.clone(), queue)) }
        });
        upload.pieces.blocking_send(Piece::Part(full.into())).map_err(|_| io::Error::other("the upload has failed"))
    }
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() >= self.part_size {
            self.send()?;
        }
        // Parts of one file must have one size, save the last: some stores insist.
        let taken = bytes.len().min(self.part_size - self.buffer.len());
        let (taken, _) = bytes.split_at(taken);
        self.buffer.extend_from_slice(taken);
        self.written += taken.len() as u64;
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Finishing {
    /// Waits until the object is in the store, whole. Blocks; not for async code.
    ///
    /// # Errors
    /// Why it is not; nothing of it is left there then.
    pub(super) fn wait(self) -> Result<()> {
        wait(&self.runtime, self.task)
    }
}

fn wait(runtime: &Handle, task: JoinHandle<Result<()>>) -> Result<()> {
    match runtime.block_on(task) {
        Ok(result) => result,
        Err(e) => Err(Error::internal("the upload of a data file ended without a result").caused_by(e)),
    }
}

/// Uploads pieces as they come; ends with the object in place, or with nothing of it in the store.
async fn upload(object: Arc<Object>, mut pieces: mpsc::Receiver<Piece>) -> Result<()> {
    let mut upload = object.store.put_multipart(&object.path).await.map_err(|e| failed(&object, e))?;
    let mut parts = JoinSet::new();
    let error = match send_parts(upload.as_mut(), &mut parts, &mut pieces).await {
        Ok(true) => match upload.complete().await {
            Ok(_) => return Ok(()),
            Err(e) => Some(e),
        },
        Ok(false) => None,
        Err(e) => Some(e),
    };
    // Whoever still writes is told at once, not after the cleaning up.
    drop(pieces);
    parts.shutdown().await;
    let aborted = upload.abort().await;
    match (error, aborted) {
        (None, Ok(())) => Ok(()),
        (Some(e), Ok(())) => Err(failed(&object, e)),
        (Some(e), Err(left)) => Err(failed(&object, e).detail(format!("its parts may be left in the store: {left}"))),
        (None, Err(left)) => Err(failed(&object, left)),
    }
}

/// Whether the last piece came and all are in the store; false where the writer went away first.
async fn send_parts(
    upload: &mut dyn MultipartUpload,
    parts: &mut JoinSet<object_store::Result<()>>,
    pieces: &mut mpsc::Receiver<Piece>,
) -> object_store::Result<bool> {
    while let Some(piece) = pieces.recv().await {
        let (bytes, last) = match piece {
            Piece::Part(bytes) => (bytes, false),
            Piece::Last(bytes) => (bytes, true),
        };
        while parts.len() >= IN_FLIGHT {
            next(parts).await?;
        }
        if !bytes.is_empty() {
            parts.spawn(upload.put_part(PutPayload::from_bytes(bytes)));
        }
        if last {
            while !parts.is_empty() {
                next(parts).await?;
            }
            return Ok(true);
        }
    }
    Ok(false)
}

async fn next(parts: &mut JoinSet<object_store::Result<()>>) -> object_store::Result<()> {
    match parts.join_next().await {
        None => Ok(()),
        Some(Ok(result)) => result,
        Some(Err(source)) => Err(object_store::Error::JoinError { source }),
    }
}

fn failed(object: &Object, error: object_store::Error) -> Error {
    failure::storage(&object.table, "write a data file of", error).detail(format!("the file is {}", object.path))
}
