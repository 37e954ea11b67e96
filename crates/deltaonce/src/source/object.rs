//! One object of an object store, read in ranges.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore};

use super::fault;
use crate::error::{Error, Result};

/// Bytes of one request where an object is read from front to back.
const RANGE: u64 = 8 << 20;

/// An object, read in ranges: each is tried again by the store on its own, and none stays open while the reader waits.
pub(crate) struct Object {
    name: Arc<str>,
    store: Arc<dyn ObjectStore>,
    path: Path,
    size: u64,
    e_tag: OnceLock<String>,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object").field("name", &self.name).field("size", &self.size).finish_non_exhaustive()
    }
}

impl Object {
    /// The object at `path`, `size` bytes long, called `name` by the user.
    pub(crate) fn new(name: Arc<str>, store: Arc<dyn ObjectStore>, path: Path, size: u64) -> Self {
        Self { name, store, path, size, e_tag: OnceLock::new() }
    }

    /// Bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The bytes at `range`, exactly.
    ///
    /// # Errors
    /// `Refused` where the object is not the one that earlier ranges came from: two versions must not be mixed.
    pub(crate) async fn range(&self, range: Range<u64>) -> Result<Bytes> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let options = GetOptions { range: Some(range.clone().into()), ..GetOptions::default() };
        let answer = self.store.get_opts(&self.path, options).await.map_err(|e| fault::store(&self.name, e))?;
        let changed = || Error::refused(format!("{} was overwritten while it was read", self.name));
        if answer.meta.size != self.size {
            return Err(changed());
        }
        if let Some(e_tag) = &answer.meta.e_tag
            && self.e_tag.get_or_init(|| e_tag.clone()) != e_tag
        {
            return Err(changed());
        }
        let bytes = answer.bytes().await.map_err(|e| fault::store(&self.name, e))?;
        if bytes.len() as u64 != range.end - range.start {
            return Err(Error::retryable(format!("{} gave fewer bytes than it was asked for", self.name)));
        }
        Ok(bytes)
    }

    /// All bytes, front to back, the next range on its way while one is used.
    pub(crate) fn bytes(self: Arc<Self>) -> BoxStream<'static, Result<Bytes>> {
        let ranges = (0..self.size.div_ceil(RANGE)).map(|i| i * RANGE);
        stream::iter(ranges)
            .map(move |start| {
                let object = self.clone();
                async move { object.range(start..object.size.min(start + RANGE)).await }
            })
            .buffered(2)
            .into_stream()
            .boxed()
    }
}

#[cfg(test)]
mod tests {
    use object_store::ObjectStoreExt;
    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn two_versions_are_not_mixed() {
        let store = Arc::new(InMemory::new());
        let path = Path::from("a.csv");
        store.put(&path, "id\n1\n".into()).await.unwrap();
        let object = Object::new("s3://lake/a.csv".into(), store.clone(), path.clone(), 5);
        assert_eq!(object.range(0..2).await.unwrap(), "id");
        store.put(&path, "id\n2\n".into()).await.unwrap();
        let error = object.range(3..5).await.unwrap_err();
        assert_eq!(error.message(), "s3://lake/a.csv was overwritten while it was read");
    }
}
