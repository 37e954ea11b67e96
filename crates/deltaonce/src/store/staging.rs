//! Remembers what a load writes, so that a load that fails takes back exactly that.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};

/// How many deletions are under way at a time.
const DELETIONS: usize = 16;

/// A store that remembers each path it was asked to create, whether or not the answer was success.
///
/// A path counts as created from the moment of asking, since an answer may be lost; it stops counting when the store
/// says that somebody else's object is there, when its upload was aborted before anybody asked to complete it, when it
/// is deleted or when it is [forgotten](Self::forget). Names are expected to be new: what is written over an existing object
/// counts as created, too.
///
/// Only files of a table's data go through here. Writing anything below `_delta_log` is refused, and so is deleting
/// what was not created here. Clones share one memory.
#[derive(Clone)]
pub(crate) struct Staging {
    inner: Arc<dyn ObjectStore>,
    created: Created,
}

type Created = Arc<Mutex<BTreeSet<Path>>>;

fn lock(created: &Created) -> MutexGuard<'_, BTreeSet<Path>> {
    created.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Staging {
    /// A store over `inner` that has created nothing yet.
    pub(crate) fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self { inner, created: Created::default() }
    }

    /// The paths that were asked for and still count, sorted.
    pub(crate) fn created(&self) -> Vec<Path> {
        lock(&self.created).iter().cloned().collect()
    }

    /// Stops counting `paths`; they will not be deleted.
    pub(crate) fn forget<'a>(&self, paths: impl IntoIterator<Item = &'a Path>) {
        let mut created = lock(&self.created);
        for path in paths {
            created.remove(path);
        }
    }

    /// Deletes everything that still counts, and gives back what could not be deleted (it goes on counting).
    pub(crate) async fn discard_all(&self) -> Vec<(Path, Error)> {
        self.discard(&self.created()).await
    }

    /// Deletes those of `paths` that still count, and gives back what could not be deleted (it goes on counting).
    ///
    /// An object that is not there is no failure.
    pub(crate) async fn discard(&self, paths: &[Path]) -> Vec<(Path, Error)> {
        let ours: Vec<Path> = {
            let created = lock(&self.created);
            paths.iter().filter(|path| created.contains(*path)).cloned().collect()
        };
        // One by one, not in bulk: the answer to a bulk deletion does not say which path failed.
        stream::iter(ours)
            .map(|path| async move {
                match self.inner.delete(&path).await {
                    Ok(()) | Err(Error::NotFound { .. }) => {
                        lock(&self.created).remove(&path);
                        None
                    }
                    // A store may refuse before it looks whether there is anything to delete.
                    Err(error) => match self.inner.head(&path).await {
                        Err(Error::NotFound { .. }) => {
                            lock(&self.created).remove(&path);
                            None
                        }
                        _ => Some((path, error)),
                    },
                }
            })
            .buffer_unordered(DELETIONS)
            .filter_map(futures::future::ready)
            .collect()
            .await
    }

    /// Counts `path` as created; gives back whether it did before.
    fn remember(&self, path: &Path) -> Result<bool> {
        if path.parts().any(|part| part.as_ref() == "_delta_log") {
            return Err(refused(format!("{path} belongs to the log, which only a commit writes")));
        }
        Ok(!lock(&self.created).insert(path.clone()))
    }

    /// Stops counting a path that turned out to be another's, unless it counted before the call.
    fn settle<T>(&self, path: &Path, counted: bool, answer: Result<T>) -> Result<T> {
        if !counted && matches!(answer, Err(Error::AlreadyExists { .. })) {
            lock(&self.created).remove(path);
        }
        answer
    }
}

fn refused(why: String) -> Error {
    Error::NotSupported { source: why.into() }
}

impl fmt::Debug for Staging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staging").field("inner", &self.inner).field("created", &lock(&self.created).len()).finish()
    }
}

impl fmt::Display for Staging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Staging({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Staging {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let exclusive = options.mode == PutMode::Create;
        let counted = self.remember(location)?;
        let answer = self.inner.put_opts(location, payload, options).await;
        self.settle(location, counted || !exclusive, answer)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.remember(location)?;
        let inner = self.inner.put_multipart_opts(location, options).await?;
        Ok(Box::new(StagedUpload {
            inner,
            location: location.clone(),
            created: Arc::clone(&self.created),
            completing: false,
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let created = Arc::clone(&self.created);
        let checked = locations.map(move |location| {
            let location = location?;
            if lock(&created).contains(&location) {
                Ok(location)
            } else {
                Err(refused(format!("{location} was not written by this load")))
            }
        });
        let created = Arc::clone(&self.created);
        self.inner
            .delete_stream(checked.boxed())
            .inspect(move |answer| {
                if let Ok(location) = answer {
                    lock(&created).remove(location);
                }
            })
            .boxed()
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
        let exclusive = options.mode == CopyMode::Create;
        let counted = self.remember(to)?;
        let answer = self.inner.copy_opts(from, to, options).await;
        self.settle(to, counted || !exclusive, answer)
    }
}

#[derive(Debug)]
struct StagedUpload {
    inner: Box<dyn MultipartUpload>,
    location: Path,
    created: Created,
    /// Completion was asked for: whatever was answered, the object may be there, and an abort may succeed all the same.
    completing: bool,
}

#[async_trait]
impl MultipartUpload for StagedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.completing = true;
        self.inner.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await?;
        if !self.completing {
            lock(&self.created).remove(&self.location);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;
    use crate::store::fault::{Answer, Effect, FailingStore, Operation, Plan, Rule};

    async fn names(store: &dyn ObjectStore) -> Vec<String> {
        let mut names: Vec<String> = store.list(None).map(|meta| meta.unwrap().location.to_string()).collect().await;
        names.sort();
        names
    }

    fn create() -> PutOptions {
        PutMode::Create.into()
    }

    #[tokio::test]
    async fn discarding_takes_back_exactly_what_was_written() {
        let inner = Arc::new(InMemory::new());
        inner.put(&"t/theirs".into(), "x".into()).await.unwrap();
        let staging = Staging::new(inner.clone());
        staging.put(&"t/a".into(), "x".into()).await.unwrap();
        let mut upload = staging.put_multipart(&"t/b".into()).await.unwrap();
        upload.put_part("x".into()).await.unwrap();
        upload.complete().await.unwrap();
        let mut aborted = staging.put_multipart(&"t/c".into()).await.unwrap();
        aborted.abort().await.unwrap();
        // A name that is taken is another's.
        staging.put_opts(&"t/theirs".into(), "y".into(), create()).await.unwrap_err();
        staging.put(&"t/kept".into(), "x".into()).await.unwrap();
        staging.forget([&Path::from("t/kept")]);

        assert_eq!(staging.created(), ["t/a", "t/b"].map(Path::from));
        assert!(staging.discard(&["t/theirs", "t/kept", "t/a"].map(Path::from)).await.is_empty());
        assert_eq!(names(&*inner).await, ["t/b", "t/kept", "t/theirs"]);
        assert!(staging.discard_all().await.is_empty());
        assert_eq!(names(&*inner).await, ["t/kept", "t/theirs"]);
        assert!(staging.created().is_empty());
    }

    #[tokio::test]
    async fn a_lost_answer_still_counts_and_a_failed_deletion_is_told() {
        let inner = Arc::new(InMemory::new());
        let plan = Plan::new();
        plan.add(Rule::on(Operation::Put).fails(Effect::Taken, Answer::Timeout));
        plan.add(Rule::on(Operation::Delete).path_containing("t/a").fails(Effect::Lost, Answer::Status(503)));
        let staging = Staging::new(Arc::new(FailingStore::new(inner.clone(), plan)));
        staging.put_opts(&"t/a".into(), "x".into(), create()).await.unwrap_err();
        staging.put_opts(&"t/b".into(), "x".into(), create()).await.unwrap();

        let left = staging.discard_all().await;
        assert_eq!(left.iter().map(|(path, _)| path.as_ref()).collect::<Vec<_>>(), ["t/a"]);
        assert_eq!(names(&*inner).await, ["t/a"]);
        assert!(staging.discard_all().await.is_empty(), "the second try reaches it");
        assert!(names(&*inner).await.is_empty());
    }

    #[tokio::test]
    async fn what_never_came_to_be_is_not_said_to_be_left() {
        let inner = Arc::new(InMemory::new());
        let plan = Plan::new();
        plan.add(Rule::on(Operation::Put).fails(Effect::Lost, Answer::Io(std::io::ErrorKind::ReadOnlyFilesystem)));
        plan.add(Rule::on(Operation::Delete).fails(Effect::Lost, Answer::Io(std::io::ErrorKind::ReadOnlyFilesystem)));
        let staging = Staging::new(Arc::new(FailingStore::new(inner, plan)));
        staging.put_opts(&"t/a".into(), "x".into(), create()).await.unwrap_err();
        assert!(staging.discard_all().await.is_empty());
    }

    #[tokio::test]
    async fn an_upload_that_was_completed_without_an_answer_counts_after_its_abort() {
        let inner = Arc::new(InMemory::new());
        let plan = Plan::new();
        plan.add(Rule::on(Operation::CompleteUpload).fails(Effect::Taken, Answer::Timeout));
        let staging = Staging::new(Arc::new(FailingStore::new(inner.clone(), plan)));
        let mut upload = staging.put_multipart(&"t/a".into()).await.unwrap();
        upload.put_part("x".into()).await.unwrap();
        upload.complete().await.unwrap_err();
        upload.abort().await.unwrap();
        assert_eq!(names(&*inner).await, ["t/a"]);
        assert!(staging.discard_all().await.is_empty());
        assert!(names(&*inner).await.is_empty());
    }

    #[tokio::test]
    async fn the_log_and_the_files_of_others_are_out_of_reach() {
        let inner = Arc::new(InMemory::new());
        inner.put(&"t/theirs".into(), "x".into()).await.unwrap();
        let staging = Staging::new(inner.clone());
        let entry = Path::from("t/_delta_log/00000000000000000000.json");
        assert!(matches!(staging.put(&entry, "x".into()).await, Err(Error::NotSupported { .. })));
        assert!(matches!(staging.put_multipart(&entry).await, Err(Error::NotSupported { .. })));
        assert!(matches!(staging.copy(&"t/theirs".into(), &entry).await, Err(Error::NotSupported { .. })));
        assert!(matches!(staging.delete(&"t/theirs".into()).await, Err(Error::NotSupported { .. })));
        assert_eq!(names(&*inner).await, ["t/theirs"]);
    }
}
