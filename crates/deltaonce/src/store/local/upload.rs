//! An object written in parts.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart};

use super::disk::Disk;
use super::{Temporary, blocking, make_directories};

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
}

impl DurableUpload {
    /// Creates the temporary file. Blocks.
    pub(super) fn start(disk: Arc<dyn Disk>, directory: PathBuf, file: PathBuf) -> Result<Self> {
        make_directories(&*disk, &directory)?;
        let temporary = Temporary::create(&disk, &file)?;
        let parts = Parts { temporary: Some(temporary), written: 0 };
        Ok(Self { directory, file, parts: Some(Arc::new(Mutex::new(parts))), length: 0 })
    }

    fn error(&self, what: &'static str) -> object_store::Error {
        let source = format!("upload of {} {what}", self.file.display()).into();
        object_store::Error::Generic { store: "DurableLocal", source }
    }
}

/// Takes the file out of an upload, with the number of bytes in it.
fn take(parts: &Mutex<Parts>) -> (Option<Temporary>, u64) {
    let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
    (parts.temporary.take(), parts.written)
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
            let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(temporary) = parts.temporary.as_mut() else { return Err(ended) };
            for bytes in &data {
                temporary.write(at, bytes)?;
                at += bytes.len() as u64;
            }
            parts.written += data.content_length() as u64;
            Ok(())
        }))
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let parts = self.parts.take().ok_or_else(|| self.error("has ended"))?;
        let length = self.length;
        let (directory, file) = (self.directory.clone(), self.file.clone());
        let (ended, short) = (self.error("has ended"), self.error("lacks parts that failed or were not awaited"));
        blocking(move || {
            let (temporary, written) = take(&parts);
            let temporary = temporary.ok_or(ended)?;
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
        blocking(move || take(&parts).0.ok_or(ended)?.discard()).await
    }
}

impl Drop for DurableUpload {
    fn drop(&mut self) {
        let Some(parts) = self.parts.take() else { return };
        // Removing a large file takes a while, and this may be an async thread.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || drop(take(&parts)))),
            Err(_) => drop(take(&parts)),
        }
    }
}
