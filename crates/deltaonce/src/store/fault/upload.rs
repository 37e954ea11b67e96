//! An upload in parts that obeys a plan.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use object_store::path::Path;
use object_store::{Error, MultipartUpload, PutPayload, PutResult, Result, UploadPart};

use super::plan::Plan;
use super::rule::Operation;

/// The upload below, absent while a call on it is under way or to come late.
type Slot = Arc<Mutex<Option<Box<dyn MultipartUpload>>>>;

pub(super) struct FailingUpload {
    inner: Slot,
    path: Path,
    plan: Plan,
}

impl FailingUpload {
    pub(super) fn new(inner: Box<dyn MultipartUpload>, path: Path, plan: Plan) -> Self {
        Self { inner: Arc::new(Mutex::new(Some(inner))), path, plan }
    }
}

fn with<T>(slot: &Slot, work: impl FnOnce(&mut Option<Box<dyn MultipartUpload>>) -> T) -> T {
    work(&mut slot.lock().unwrap_or_else(PoisonError::into_inner))
}

fn busy() -> Error {
    Error::Generic { store: "fault", source: "the upload is under way elsewhere".into() }
}

impl fmt::Debug for FailingUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailingUpload").field("path", &self.path).finish()
    }
}

#[async_trait]
impl MultipartUpload for FailingUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        // The upload numbers its parts in the order of these calls, also those that are lost.
        let part = with(&self.inner, |inner| inner.as_mut().map(|upload| upload.put_part(data)));
        let (plan, path) = (self.plan.clone(), self.path.clone());
        Box::pin(async move {
            let part = part.ok_or_else(busy)?;
            plan.run(Operation::PutPart, &path, false, |_| part).await
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let slot = Arc::clone(&self.inner);
        self.plan
            .run(Operation::CompleteUpload, &self.path, false, |_| async move {
                let mut upload = with(&slot, Option::take).ok_or_else(busy)?;
                let answer = upload.complete().await;
                with(&slot, |inner| *inner = Some(upload));
                answer
            })
            .await
    }

    async fn abort(&mut self) -> Result<()> {
        let slot = Arc::clone(&self.inner);
        self.plan
            .run(Operation::AbortUpload, &self.path, false, |_| async move {
                let mut upload = with(&slot, Option::take).ok_or_else(busy)?;
                let answer = upload.abort().await;
                with(&slot, |inner| *inner = Some(upload));
                answer
            })
            .await
    }
}
