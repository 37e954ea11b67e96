//! An object written in parts.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::FutureExt;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart};
use tokio::task::{JoinError, JoinHandle};

use super::disk::Disk;
use super::{Temporary, blocking, failure};

/// After how many bytes what is written so far is synced in the background.
const EARLY_SYNC: u64 = 32 << 20;

/// Parts go into a temporary file; completing it syncs the file, renames it and syncs its directory.
///
/// Written here rather than over the upload of `LocalFileSystem`, which renames before anybody can sync.
#[derive(Debug)]
pub(super) struct DurableUpload {
    directory: PathBuf,
    file: PathBuf,
    /// None once completed or aborted.
    parts: Option<Arc<Mutex<Parts>>>,
    length: u64,
}

#[derive(Debug)]
struct Parts {
    temporary: Option<Temporary>,
    written: u64,
    /// How much of that was there when the last early sync began.
    synced: u64,
    /// The last early sync. What it failed with is told to nobody else, so it has to be asked.
    syncing: Option<JoinHandle<Result<()>>>,
}

impl Parts {
    /// Has the disk start on what is written, one round at a time, so that completing waits for the rest only.
    fn sync_early(&mut self) -> Result<()> {
        let Some(temporary) = &self.temporary else { return Ok(()) };
        if self.written - self.synced < EARLY_SYNC || self.syncing.as_ref().is_some_and(|last| !last.is_finished()) {
            return Ok(());
        }
        if let Some(Err(error)) = self.syncing.take().and_then(FutureExt::now_or_never).map(flatten) {
            // What could not be written is forgotten by the system after it said so: another sync would succeed.
            self.temporary = None;
            return Err(error);
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return Ok(()) };
        let (disk, path) = (Arc::clone(&temporary.disk), temporary.path.clone());
        let file = temporary.file.try_clone().map_err(failure("open", &path))?;
        self.syncing =
            Some(runtime.spawn_blocking(move || disk.sync_file(&file, &path).map_err(failure("sync", &path))));
        self.synced = self.written;
        Ok(())
    }
}

fn flatten(answer: Result<Result<()>, JoinError>) -> Result<()> {
    answer?
}

impl DurableUpload {
    /// Creates the temporary file in a directory that is there. Blocks.
    pub(super) fn start(disk: &Arc<dyn Disk>, directory: PathBuf, file: PathBuf) -> Result<Self> {
        let temporary = Temporary::create(disk, &file)?;
        let parts = Parts { temporary: Some(temporary), written: 0, synced: 0, syncing: None };
        Ok(Self { directory, file, parts: Some(Arc::new(Mutex::new(parts))), length: 0 })
    }

    fn error(&self, what: &'static str) -> object_store::Error {
        let source = format!("upload of {} {what}", self.file.display()).into();
        object_store::Error::Generic { store: "DurableLocal", source }
    }
}

fn lock(parts: &Mutex<Parts>) -> MutexGuard<'_, Parts> {
    parts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl MultipartUpload for DurableUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let ended = self.error("has ended");
        let Some(parts) = self.parts.clone() else {
            return Box::pin(async { Err(ended) });
        };
        let mut at = self.length;
        self.length += data.content_length() as u64;
        Box::pin(blocking(move || {
            let mut parts = lock(&parts);
            let Some(temporary) = parts.temporary.as_mut() else { return Err(ended) };
            for bytes in &data {
                temporary.write(at, bytes)?;
                at += bytes.len() as u64;
            }
            parts.written += data.content_length() as u64;
            parts.sync_early()
        }))
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let parts = self.parts.take().ok_or_else(|| self.error("has ended"))?;
        let early = lock(&parts).syncing.take();
        if let Some(early) = early {
            flatten(early.await)?;
        }
        let length = self.length;
        let (directory, file) = (self.directory.clone(), self.file.clone());
        let (ended, short) = (self.error("has ended"), self.error("lacks parts that failed or were not awaited"));
        blocking(move || {
            let (temporary, written) = {
                let mut parts = lock(&parts);
                (parts.temporary.take().ok_or(ended)?, parts.written)
            };
            if written != length {
                return Err(short);
            }
            temporary.replace(&directory, &file)
        })
        .await?;
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn abort(&mut self) -> Result<()> {
        let parts = self.parts.take().ok_or_else(|| self.error("has ended"))?;
        let ended = self.error("has ended");
        blocking(move || {
            let temporary = lock(&parts).temporary.take();
            temporary.ok_or(ended)?.discard()
        })
        .await
    }
}

impl Drop for DurableUpload {
    fn drop(&mut self) {
        let Some(parts) = self.parts.take() else { return };
        // Removing a large file takes a while, and this may be an async thread.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || drop(lock(&parts).temporary.take()))),
            Err(_) => drop(lock(&parts).temporary.take()),
        }
    }
}
