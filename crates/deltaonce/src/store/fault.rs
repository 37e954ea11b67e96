//! A store that fails on purpose, for tests: which call, whether it takes effect, and what the caller is told.
//!
//! A [`Plan`] holds rules and the log of all calls; a [`FailingStore`] obeys it. Several stores may share one plan, from
//! several threads. So a test can fail the k-th storage call of a load, for every k, before and after it took effect:
//!
//! ```ignore
//! let plan = Plan::new();
//! plan.add(Rule::call(k).fails(Effect::Taken, Answer::Timeout));
//! let table = table.wrapped(|inner| Arc::new(FailingStore::new(inner, plan.clone())))?;
//! // … load, look at plan.calls(), load again, compare the table
//! ```
//!
//! Nothing here depends on time: what comes late comes after a number of further calls, or when it is
//! [let go](Plan::release_late); what has to happen in between is a [hook](Rule::meanwhile).

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

pub use crate::commit::rules::CommitRule;
pub use plan::{Call, Outcome, Plan};
pub use rule::{Answer, Effect, Operation, Rule};

mod plan;
mod rule;
#[cfg(test)]
mod tests;
mod upload;

/// An [`ObjectStore`] that passes calls on to another one, unless its [`Plan`] says otherwise.
#[derive(Debug, Clone)]
pub struct FailingStore {
    inner: Arc<dyn ObjectStore>,
    plan: Plan,
}

impl FailingStore {
    /// A store over `inner` that obeys `plan`.
    #[must_use]
    pub fn new(inner: Arc<dyn ObjectStore>, plan: Plan) -> Self {
        Self { inner, plan }
    }

    /// The plan, to add rules to and to read the calls from.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// A listing counts as one call when its first entry is asked for.
    fn listing(
        &self,
        prefix: Option<&Path>,
        list: impl FnOnce(Arc<dyn ObjectStore>, Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> + Send + 'static,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let (inner, plan) = (Arc::clone(&self.inner), self.plan.clone());
        let prefix = prefix.cloned();
        let called = async move {
            let path = prefix.clone().unwrap_or_default();
            plan.run(Operation::List, &path, false, |_| async move { Ok(list(inner, prefix.as_ref())) }).await
        };
        stream::once(called).try_flatten().boxed()
    }
}

impl fmt::Display for FailingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FailingStore({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for FailingStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, mut options: PutOptions) -> Result<PutResult> {
        let (inner, to) = (Arc::clone(&self.inner), location.clone());
        let creates = options.mode == PutMode::Create;
        self.plan
            .run(Operation::Put, location, creates, move |ignores_condition| async move {
                if ignores_condition {
                    options.mode = PutMode::Overwrite;
                }
                inner.put_opts(&to, payload, options).await
            })
            .await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let (inner, to) = (Arc::clone(&self.inner), location.clone());
        let upload =
            self.plan
                .run(Operation::StartUpload, location, false, |_| async move {
                    inner.put_multipart_opts(&to, options).await
                })
                .await?;
        Ok(Box::new(upload::FailingUpload::new(upload, location.clone(), self.plan.clone())))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let (inner, from) = (Arc::clone(&self.inner), location.clone());
        self.plan.run(Operation::Get, location, false, |_| async move { inner.get_opts(&from, options).await }).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let (inner, from, ranges) = (Arc::clone(&self.inner), location.clone(), ranges.to_vec());
        self.plan.run(Operation::Get, location, false, |_| async move { inner.get_ranges(&from, &ranges).await }).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let (inner, plan) = (Arc::clone(&self.inner), self.plan.clone());
        locations
            .then(move |location| {
                let (inner, plan) = (Arc::clone(&inner), plan.clone());
                async move {
                    let location = location?;
                    let target = location.clone();
                    plan.run(Operation::Delete, &location, false, |_| async move { inner.delete(&target).await })
                        .await?;
                    Ok(location)
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listing(prefix, |inner, prefix| inner.list(prefix))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        let offset = offset.clone();
        self.listing(prefix, move |inner, prefix| inner.list_with_offset(prefix, &offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let (inner, within) = (Arc::clone(&self.inner), prefix.cloned());
        let path = prefix.cloned().unwrap_or_default();
        self.plan
            .run(Operation::List, &path, false, |_| async move { inner.list_with_delimiter(within.as_ref()).await })
            .await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let (inner, source, target) = (Arc::clone(&self.inner), from.clone(), to.clone());
        self.plan
            .run(Operation::Copy, to, false, |_| async move { inner.copy_opts(&source, &target, options).await })
            .await
    }
}
