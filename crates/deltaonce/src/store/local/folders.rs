//! Directories that are on stable storage.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use object_store::Result;

use super::disk::Disk;
use super::failure;

/// Makes directories, and knows those whose names are on stable storage.
#[derive(Debug)]
pub(super) struct Folders {
    disk: Arc<dyn Disk>,
    durable: Mutex<BTreeSet<PathBuf>>,
}

impl Folders {
    pub(super) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, durable: Mutex::default() }
    }

    /// Makes `directory` and those above it that are missing, and syncs each into its parent. Blocks.
    ///
    /// One that is found in place is synced, too, the first time: its maker may have been killed on the way to that.
    pub(super) fn make(&self, directory: &FilePath) -> Result<()> {
        let doubtful: Vec<&FilePath> = directory.ancestors().take_while(|path| !self.is_durable(path)).collect();
        for path in doubtful.into_iter().rev() {
            let made = self.make_one(path)?;
            if let Some(parent) = path.parent() {
                self.sync_into(parent, made)?;
            }
            self.durable.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
        }
        Ok(())
    }

    /// Whether it is there, and known to stay.
    fn is_durable(&self, path: &FilePath) -> bool {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner).contains(path) && path.is_dir()
    }

    /// Makes sure that there is a directory; whether this made it.
    fn make_one(&self, path: &FilePath) -> Result<bool> {
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => return Ok(false),
            Ok(_) => return Err(failure("make directory", path)(io::ErrorKind::NotADirectory.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failure("make directory", path)(error)),
        }
        match self.disk.make_directory(path) {
            Ok(()) => Ok(true),
            // Another writer was faster; it may not have come to syncing it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(true),
            Err(error) => Err(failure("make directory", path)(error)),
        }
    }

    fn sync_into(&self, parent: &FilePath, made: bool) -> Result<()> {
        match self.disk.sync_directory(parent) {
            // Who may not look into it has made nothing there.
            Err(error) if !made && error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            other => other.map_err(failure("sync directory", parent)),
        }
    }
}
