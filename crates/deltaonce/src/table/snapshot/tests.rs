use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, future};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result as StoreResult,
};

use super::*;
use crate::host::SystemHost;
use crate::load::{Load, TableSpec};
use crate::source::{Format, Source};
use crate::store::location::Location;
use crate::table::Table;

/// A store of which some listings leave out version 2 of a log.
#[derive(Debug)]
struct Torn {
    inner: Arc<dyn ObjectStore>,
    /// How many listings still do.
    left: Arc<AtomicUsize>,
}

impl Torn {
    fn without_one(
        &self,
        listed: BoxStream<'static, StoreResult<ObjectMeta>>,
    ) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        let torn = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        let stays = move |meta: &ObjectMeta| !torn || !meta.location.as_ref().ends_with("/00000000000000000002.json");
        listed.try_filter(move |meta| future::ready(stays(meta))).boxed()
    }
}

impl fmt::Display for Torn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Torn {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> StoreResult<PutResult> {
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.without_one(self.inner.list(prefix))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.without_one(self.inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[tokio::test]
async fn a_listing_that_leaves_out_an_entry_is_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let left = Arc::new(AtomicUsize::new(0));
    let location = Location::parse(folder.path().join("t").to_str().unwrap(), []).unwrap();
    let location = location.wrapped(|inner| Arc::new(Torn { inner, left: left.clone() })).unwrap();
    let table = Table::open(location, Arc::new(SystemHost::default())).await.unwrap();
    table.create(&TableSpec { schema: Some("id bigint".to_owned()), ..TableSpec::default() }).await.unwrap();
    let first = table.existing().await.unwrap();
    for version in 1..=3 {
        let rows = std::io::Cursor::new(format!("id\n{version}\n"));
        table.apply(&Load::append(), Source::reader(rows, Format::Csv)).await.unwrap();
    }
    let newer = async |torn: usize| {
        left.store(torn, Ordering::SeqCst);
        first.newer(3).await.map(|newer| newer.version())
    };
    assert_eq!(newer(0).await.unwrap(), 3);
    assert_eq!(newer(1).await.unwrap(), 3);
    assert_eq!(newer(100).await.unwrap_err().kind(), ErrorKind::Retryable);
    left.store(1, Ordering::SeqCst);
    assert_eq!(table.existing().await.unwrap().version(), 3);
}
