//! What every store here does alike, whatever is below or around it.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode};

use super::fault::{FailingStore, Plan};
use super::local::DurableLocal;
use super::staging::Staging;

async fn read(store: &dyn ObjectStore, path: &Path) -> String {
    String::from_utf8(store.get(path).await.unwrap().bytes().await.unwrap().to_vec()).unwrap()
}

async fn names(store: &dyn ObjectStore, below: &Path) -> Vec<Path> {
    let mut names: Vec<Path> = store.list(Some(below)).map_ok(|meta| meta.location).try_collect().await.unwrap();
    names.sort();
    names
}

/// Goes through all that the rest of the library asks of a store, below `root`, which must be empty.
async fn behaves(store: &dyn ObjectStore, root: &Path) {
    let at = |name: &str| Path::parse(format!("{root}/{name}")).unwrap();
    let create = || PutMode::Create.into();

    let entry = at("log/00.json");
    store.put_opts(&entry, "first".into(), create()).await.unwrap();
    let taken = store.put_opts(&entry, "second".into(), create()).await.unwrap_err();
    assert!(matches!(taken, Error::AlreadyExists { .. }), "{taken:?}");
    assert_eq!(read(store, &entry).await, "first");

    store.put(&entry, "replaced".into()).await.unwrap();
    assert_eq!(read(store, &entry).await, "replaced");
    assert_eq!(store.head(&entry).await.unwrap().size, 8);
    assert_eq!(store.get_range(&entry, 2..5).await.unwrap(), "pla");
    assert_eq!(store.get_ranges(&entry, &[0..2, 6..8]).await.unwrap(), ["re", "ed"]);

    let absent = at("log/01.json");
    assert!(matches!(store.get(&absent).await, Err(Error::NotFound { .. })));
    assert!(matches!(store.head(&absent).await, Err(Error::NotFound { .. })));

    // Awkward names, an empty object, and one of many chunks.
    let odd = at("ländle/order date=2026-10-05 %20/a+b.parquet");
    store.put_opts(&odd, "".into(), create()).await.unwrap();
    assert_eq!(read(store, &odd).await, "");
    let chunks: object_store::PutPayload = ["ab", "", "cde"].into_iter().map(bytes::Bytes::from).collect();
    store.put(&at("log/chunks"), chunks).await.unwrap();
    assert_eq!(read(store, &at("log/chunks")).await, "abcde");

    let big = at("data/part-0.parquet");
    let mut upload = store.put_multipart(&big).await.unwrap();
    // S3 takes no smaller parts than this, but for the last.
    let long = "x".repeat(5 << 20);
    let parts = [upload.put_part(long.clone().into()), upload.put_part("end".into())];
    futures::future::try_join_all(parts).await.unwrap();
    assert!(matches!(store.head(&big).await, Err(Error::NotFound { .. })), "visible before it is complete");
    assert_eq!(names(store, &at("data")).await, []);
    upload.complete().await.unwrap();
    assert!(read(store, &big).await == format!("{long}end"), "the parts are not in order");

    let given_up = at("data/part-1.parquet");
    let mut upload = store.put_multipart(&given_up).await.unwrap();
    upload.put_part("x".into()).await.unwrap();
    upload.abort().await.unwrap();
    assert!(matches!(store.head(&given_up).await, Err(Error::NotFound { .. })));

    store.copy(&big, &at("data/copies/part-0.parquet")).await.unwrap();
    assert_eq!(store.head(&at("data/copies/part-0.parquet")).await.unwrap().size, (5 << 20) + 3);

    let mut all = ["data/copies/part-0.parquet", "data/part-0.parquet", "log/00.json", "log/chunks"].map(at).to_vec();
    all.push(odd);
    all.sort();
    assert_eq!(names(store, root).await, all);
    let after: Vec<Path> =
        store.list_with_offset(Some(&at("log")), &entry).map_ok(|meta| meta.location).try_collect().await.unwrap();
    assert_eq!(after, [at("log/chunks")]);
    let listed = store.list_with_delimiter(Some(&at("data"))).await.unwrap();
    assert_eq!(listed.common_prefixes, [at("data/copies")]);
    assert_eq!(listed.objects.iter().map(|meta| &meta.location).collect::<Vec<_>>(), [&big]);

    let gone: Vec<_> = all.iter().cloned().map(Ok).collect();
    let deleted: Vec<Path> = store.delete_stream(futures::stream::iter(gone).boxed()).try_collect().await.unwrap();
    assert_eq!(deleted.len(), 5);
    assert_eq!(names(store, root).await, []);
}

#[tokio::test]
async fn in_memory() {
    behaves(&InMemory::new(), &"t".into()).await;
}

#[tokio::test]
async fn local() {
    let dir = tempfile::tempdir().unwrap();
    let root = Path::from_filesystem_path(dir.path()).unwrap();
    behaves(&DurableLocal::new(), &root).await;
}

#[tokio::test]
async fn staging() {
    let staging = Staging::new(Arc::new(InMemory::new()));
    behaves(&staging, &"t".into()).await;
    assert_eq!(staging.created(), [] as [Path; 0], "all was deleted through it");
}

#[tokio::test]
async fn failing_without_rules() {
    behaves(&FailingStore::new(Arc::new(InMemory::new()), Plan::new()), &"t".into()).await;
}
