//! The steps on a file system that durability is made of, one function each.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

/// A file system, step by step, so that a test can watch the order of the steps and break any of them.
pub(super) trait Disk: fmt::Debug + Send + Sync + 'static {
    /// Creates an empty file where there must be none.
    fn create(&self, path: &Path) -> io::Result<File>;
    /// Writes all of `bytes` into `file` from byte `at` on.
    fn write(&self, file: &mut File, path: &Path, at: u64, bytes: &[u8]) -> io::Result<()>;
    /// Returns once the content of `file` is on stable storage.
    fn sync_file(&self, file: &File, path: &Path) -> io::Result<()>;
    /// Gives the file at `from` the further name `to`, where there must be none.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives the file at `from` the name `to`, which may be taken.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a name of a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Creates a directory in one that exists.
    fn make_directory(&self, path: &Path) -> io::Result<()>;
    /// Returns once the names in the directory are on stable storage.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
}

/// The file system of this machine.
#[derive(Debug)]
pub(super) struct MachineDisk;

impl Disk for MachineDisk {
    fn create(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(path)
    }

    fn write(&self, file: &mut File, _path: &Path, at: u64, bytes: &[u8]) -> io::Result<()> {
        file.seek(SeekFrom::Start(at))?;
        file.write_all(bytes)
    }

    fn sync_file(&self, file: &File, _path: &Path) -> io::Result<()> {
        file.sync_all()
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir(path)
    }

    #[cfg(unix)]
    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        match File::open(path)?.sync_all() {
            // Some network and user-space file systems have no such call for directories; they keep names by themselves.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
            other => other,
        }
    }

    #[cfg(not(unix))]
    fn sync_directory(&self, _path: &Path) -> io::Result<()> {
        // There is no call for it here: a directory cannot be opened as a file.
        Ok(())
    }
}
