//! Local files, written so that what has been acknowledged outlives a loss of power.

use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fmt, io};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use disk::{Disk, MachineDisk};
use folders::Folders;

mod disk;
mod folders;
#[cfg(test)]
mod tests;
mod upload;

/// An object store over local files that acknowledges a write only when it is on stable storage.
///
/// [`LocalFileSystem`] writes as atomically but never syncs, so after a loss of power an acknowledged log entry could be
/// empty or gone. Here the content is synced under a temporary name before it gets its final one, and the directory
/// after that: under a final name there is the whole object or nothing, and what was acknowledged stays. The directories
/// on the way to it are synced into their parents, each once by a store. What is read was not made durable by that: before
/// anything is acknowledged that rests on it, it has to be [settled](Self::settle).
///
/// Temporary files are called `NAME#DIGITS`, which listings of this store hide and which no Delta reader takes for a
/// file of a table. One is left behind only by a process that was killed.
///
/// `PutMode::Update` is not supported, attributes neither. Reads, listings and deletions are [`LocalFileSystem`]'s.
#[derive(Debug, Clone)]
pub(crate) struct DurableLocal {
    inner: LocalFileSystem,
    disk: Arc<dyn Disk>,
    folders: Arc<Folders>,
}

impl DurableLocal {
    /// The store of all files of this machine; a path in it is an absolute file path without its first `/`.
    pub(crate) fn new() -> Self {
        Self::over(LocalFileSystem::new(), Arc::new(MachineDisk))
    }

    fn over(inner: LocalFileSystem, disk: Arc<dyn Disk>) -> Self {
        Self { inner, folders: Arc::new(Folders::new(Arc::clone(&disk))), disk }
    }

    /// Returns once an object that was found here is on stable storage, and so is its name: its writer may have been
    /// killed, or have failed, on the way to that. What is gone meanwhile needs nothing.
    pub(crate) async fn settle(&self, location: &Path) -> Result<()> {
        let (directory, file) = self.locate(location)?;
        let (disk, folders) = (Arc::clone(&self.disk), Arc::clone(&self.folders));
        blocking(move || {
            if !directory.is_dir() {
                return Ok(());
            }
            match std::fs::File::open(&file) {
                Ok(content) => disk.sync_file(&content, &file).map_err(failure("sync", &file))?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failure("open", &file)(error)),
            }
            disk.sync_directory(&directory).map_err(failure("sync directory", &directory))?;
            folders.make(&directory)
        })
        .await
    }

    /// The directory and the file of an object.
    fn locate(&self, location: &Path) -> Result<(PathBuf, PathBuf)> {
        let file = self.inner.path_to_filesystem(location)?;
        match file.parent() {
            Some(directory) => Ok((directory.to_owned(), file)),
            None => Err(failure("write", &file)(io::ErrorKind::IsADirectory.into())),
        }
    }
}

impl fmt::Display for DurableLocal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DurableLocal({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for DurableLocal {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        if !options.attributes.is_empty() {
            return Err(not_implemented("put with attributes"));
        }
        let exclusive = match options.mode {
            PutMode::Create => true,
            PutMode::Overwrite => false,
            PutMode::Update(_) => return Err(not_implemented("put with PutMode::Update")),
        };
        let (directory, file) = self.locate(location)?;
        let (disk, folders) = (Arc::clone(&self.disk), Arc::clone(&self.folders));
        blocking(move || {
            folders.make(&directory)?;
            put(&disk, &directory, &file, &payload, exclusive)
        })
        .await?;
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        if !options.attributes.is_empty() {
            return Err(not_implemented("upload with attributes"));
        }
        let (directory, file) = self.locate(location)?;
        let (disk, folders) = (Arc::clone(&self.disk), Arc::clone(&self.folders));
        let upload = blocking(move || {
            folders.make(&directory)?;
            upload::DurableUpload::start(&disk, directory, file)
        })
        .await?;
        Ok(Box::new(upload))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let (directory, file) = self.locate(to)?;
        let (folders, target) = (Arc::clone(&self.folders), directory.clone());
        blocking(move || folders.make(&target)).await?;
        self.inner.copy_opts(from, to, options).await?;
        let disk = Arc::clone(&self.disk);
        blocking(move || {
            let content = std::fs::File::open(&file).map_err(failure("open", &file))?;
            disk.sync_file(&content, &file).map_err(failure("sync", &file))?;
            disk.sync_directory(&directory).map_err(failure("sync directory", &directory))
        })
        .await
    }
}

/// Writes a whole object; `exclusive` refuses to replace one.
fn put(
    disk: &Arc<dyn Disk>,
    directory: &FilePath,
    file: &FilePath,
    payload: &PutPayload,
    exclusive: bool,
) -> Result<()> {
    // Spares a loser the writing; the link below is what decides.
    if exclusive && file.symlink_metadata().is_ok() {
        return Err(already_exists(&**disk, directory, file, io::ErrorKind::AlreadyExists.into()));
    }
    let mut temporary = Temporary::create(disk, file)?;
    let mut at = 0;
    for bytes in payload {
        temporary.write(at, bytes)?;
        at += bytes.len() as u64;
    }
    if !exclusive {
        return temporary.replace(directory, file);
    }
    temporary.sync()?;
    match disk.link(&temporary.path, file) {
        Ok(()) => disk.sync_directory(directory).map_err(|source| not_durable(file, source)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(already_exists(&**disk, directory, file, error))
        }
        Err(error) => Err(failure("create", file)(error)),
    }
}

/// A file that has no name yet under which it counts; dropped, it is removed.
#[derive(Debug)]
struct Temporary {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: std::fs::File,
    named: bool,
}

impl Temporary {
    fn create(disk: &Arc<dyn Disk>, target: &FilePath) -> Result<Self> {
        // Unlike a count from 1, this meets a leftover of a killed process next to never.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let mut path = target.as_os_str().to_owned();
            path.push(format!("#{}{number:06}", std::process::id()));
            let path = PathBuf::from(path);
            match disk.create(&path) {
                Ok(file) => return Ok(Self { disk: Arc::clone(disk), path, file, named: false }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failure("create", &path)(error)),
            }
        }
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.disk.write(&mut self.file, &self.path, at, bytes).map_err(failure("write", &self.path))
    }

    fn sync(&self) -> Result<()> {
        self.disk.sync_file(&self.file, &self.path).map_err(failure("sync", &self.path))
    }

    /// Takes the place of `file`, durably.
    fn replace(mut self, directory: &FilePath, file: &FilePath) -> Result<()> {
        self.sync()?;
        self.disk.rename(&self.path, file).map_err(failure("replace", file))?;
        self.named = true;
        self.disk.sync_directory(directory).map_err(failure("sync directory", directory))
    }

    /// Removes the file, and says so if that fails.
    fn discard(mut self) -> Result<()> {
        self.named = true;
        self.disk.remove(&self.path).map_err(failure("remove", &self.path))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.named {
            // Nobody waits for an answer here, and a leftover does no harm.
            let _ = self.disk.remove(&self.path);
        }
    }
}

/// The answer to a write that found its name taken: durable like any other, since the writer acts on it.
fn already_exists(disk: &dyn Disk, directory: &FilePath, file: &FilePath, error: io::Error) -> object_store::Error {
    match disk.sync_directory(directory) {
        Ok(()) => object_store::Error::AlreadyExists { path: file.display().to_string(), source: error.into() },
        Err(error) => failure("sync directory", directory)(error),
    }
}

/// A step that failed. The [`io::Error`] is its source, so that a full disk can be told from a missing right.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
struct StepError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// The answer to a write whose object everybody can see by now, while a loss of power may take it away again.
///
/// The system's error is told in words only: by its kind it would look like one of a write that changed nothing.
fn not_durable(file: &FilePath, source: io::Error) -> object_store::Error {
    let source = format!("{} was created, and its directory cannot be synced: {source}", file.display()).into();
    object_store::Error::Generic { store: "DurableLocal", source }
}

fn failure<'a>(action: &'static str, path: &'a FilePath) -> impl FnOnce(io::Error) -> object_store::Error + 'a {
    move |source| {
        let denied = source.kind() == io::ErrorKind::PermissionDenied;
        let source = Box::new(StepError { action, path: path.to_owned(), source });
        if denied {
            object_store::Error::PermissionDenied { path: path.display().to_string(), source }
        } else {
            object_store::Error::Generic { store: "DurableLocal", source }
        }
    }
}

fn not_implemented(operation: &str) -> object_store::Error {
    object_store::Error::NotImplemented { operation: operation.to_owned(), implementer: "DurableLocal".to_owned() }
}

/// Runs blocking work off the async threads, or right here where there is no runtime.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(work).await?,
        Err(_) => work(),
    }
}
