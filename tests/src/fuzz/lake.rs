//! A table in memory or on disk, with things beside it that no load may touch.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use deltaonce::{Error, ErrorKind, Location, Receipt, Table};
use futures::TryStreamExt;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tempfile::TempDir;

use crate::host::SteppingHost;
use crate::ledger::Ledger;
use crate::memory::s3_address;

/// Objects of a bucket by their path. The table is `t`.
pub(super) type Objects = BTreeMap<String, Bytes>;

/// A bucket.
#[derive(Debug, Clone)]
pub(super) struct Lake {
    store: Arc<dyn ObjectStore>,
    location: Location,
    folder: Option<Arc<TempDir>>,
}

impl Lake {
    /// A bucket of these objects.
    ///
    /// # Panics
    /// Where a path is none.
    pub(super) async fn holding(objects: &Objects) -> Self {
        let store = Arc::new(InMemory::new());
        for (path, content) in objects {
            store.put(&Path::parse(path).expect("a path"), content.clone().into()).await.expect("memory takes it");
        }
        Self { store, location: s3_address(), folder: None }
    }

    /// A folder of these objects, reached by the product's own store for folders.
    ///
    /// # Panics
    /// Where the disk does not take them.
    #[must_use]
    pub(super) fn on_disk(objects: &Objects) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (path, content) in objects {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("a folder");
            std::fs::write(path, content).expect("a file");
        }
        let store = LocalFileSystem::new_with_prefix(folder.path()).expect("the folder is there");
        let table = folder.path().join("t");
        let location = Location::parse(table.to_str().expect("UTF-8"), []).expect("a folder is a location");
        Self { store: Arc::new(store), location, folder: Some(Arc::new(folder)) }
    }

    /// The table `t`.
    ///
    /// # Panics
    /// Where it cannot be opened, which takes no look at it.
    pub(super) async fn table(&self) -> Table {
        let location = match self.folder {
            Some(_) => self.location.clone(),
            None => self.location.wrapped(|_| Arc::clone(&self.store)).expect("the store is there already"),
        };
        Table::open(location, Arc::new(SteppingHost::default())).await.expect("opening asks for nothing")
    }

    /// All objects as they are.
    ///
    /// # Panics
    /// Never, since memory answers.
    pub(super) async fn objects(&self) -> Objects {
        let mut objects = Objects::new();
        for meta in self.store.list(None).try_collect::<Vec<_>>().await.expect("memory lists") {
            let content = self.store.get(&meta.location).await.expect("memory gives").bytes().await;
            objects.insert(meta.location.to_string(), content.expect("memory gives all"));
        }
        objects
    }

    /// The table's rows as text, sorted, read by nothing of the product.
    pub(super) async fn rows(&self) -> Vec<String> {
        Ledger::read(&self.store, &Path::from("t")).await.rows
    }
}

/// Whether a load's answer is one that bad input may get: done, or told in a sentence that nothing was done.
///
/// # Errors
/// What is wrong with it.
pub(super) fn sensible(result: &Result<Receipt, Error>) -> Result<(), String> {
    match result {
        Ok(_) => Ok(()),
        Err(error) => tells(error),
    }
}

/// Whether an error tells in a sentence what is wrong with the input.
///
/// # Errors
/// What is wrong with it.
pub(super) fn tells(error: &Error) -> Result<(), String> {
    let message = error.message();
    if matches!(error.kind(), ErrorKind::Internal | ErrorKind::Unknown | ErrorKind::Interrupted) {
        return Err(format!("bad input was called {:?}: {message} {:?}", error.kind(), error.evidence()));
    }
    let length = message.chars().count();
    if length == 0 || length > 2_000 {
        return Err(format!("a message of {length} characters: {}", message.chars().take(300).collect::<String>()));
    }
    if message.contains(['\n', '\r', '\0', '\u{1b}']) {
        return Err(format!("a message that is more than a line of text: {message:?}"));
    }
    Ok(())
}

/// Whether a load that ended with `result` left everything in place that was there `before`, and nothing but its own
/// in the table's folder.
///
/// # Errors
/// The object that it should not have touched.
pub(super) fn harmless(before: &Objects, after: &Objects, committed: bool) -> Result<(), String> {
    for (path, content) in before {
        match after.get(path) {
            None => return Err(format!("{path} is gone")),
            Some(now) if now != content && !path.ends_with("/_last_checkpoint") => {
                return Err(format!("{path} is another one now"));
            }
            Some(_) => {}
        }
    }
    match after.keys().find(|path| !(before.contains_key(*path) || committed && path.starts_with("t/"))) {
        Some(stray) => Err(format!("{stray} was left behind")),
        None => Ok(()),
    }
}
