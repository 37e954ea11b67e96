use std::fs;

use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use tempfile::TempDir;

use super::*;
use crate::ErrorKind;

fn nowhere(address: &str) -> Result<(Arc<dyn ObjectStore>, Path)> {
    Err(Error::invalid(format!("no store for {address}")))
}

fn folder(files: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
    folder
}

async fn listed(root: &TempDir, arguments: &[&str], forced: Option<Format>) -> Result<Listing> {
    let arguments: Vec<_> = arguments.iter().map(|a| format!("{}/{a}", root.path().display())).collect();
    list(&arguments, forced, &nowhere).await
}

fn names(root: &TempDir, listing: &Listing) -> Vec<String> {
    let root = format!("{}/", root.path().display());
    listing.files.iter().map(|file| file.name.replace(&root, "")).collect()
}

#[tokio::test]
async fn expands_folders_and_globs() {
    let files =
        ["in/b.csv", "in/a.csv.gz", "in/day=2/c.csv", "in/_SUCCESS", "in/.a.csv.crc", "in/_tmp/d.csv", "in/notes.txt"];
    let root = folder(&files);
    let whole = listed(&root, &["in"], None).await.unwrap();
    assert_eq!(names(&root, &whole), ["in/a.csv.gz", "in/b.csv", "in/day=2/c.csv"]);
    assert_eq!((whole.format, whole.skipped.len()), (Format::Csv, 1));

    let flat = listed(&root, &["in/*.csv"], None).await.unwrap();
    assert_eq!(names(&root, &flat), ["in/b.csv"]);
    let deep = listed(&root, &["in/**/*.csv"], None).await.unwrap();
    assert_eq!(names(&root, &deep), ["in/b.csv", "in/day=2/c.csv"]);
    let forced = listed(&root, &["in/[a-n]*"], Some(Format::Csv)).await.unwrap();
    assert_eq!(names(&root, &forced), ["in/a.csv.gz", "in/b.csv", "in/day=2/c.csv", "in/notes.txt"]);
}

#[tokio::test]
async fn a_name_with_glob_signs_is_a_name_first() {
    let root = folder(&["a[1].csv", "a1.csv"]);
    assert_eq!(names(&root, &listed(&root, &["a[1].csv"], None).await.unwrap()), ["a[1].csv"]);
}

#[tokio::test]
async fn refuses_what_would_load_wrong_rows() {
    let root =
        folder(&["a.csv", "b.parquet", "odd", "lake/t/_delta_log/0.json", "lake/t/p=1/x.parquet", "empty/_x.csv"]);
    let message = async |arguments: &[&str]| {
        let error = listed(&root, arguments, None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        error.message().replace(&format!("{}/", root.path().display()), "")
    };
    assert_eq!(
        message(&["a.csv", "./a.csv"]).await,
        "./a.csv is given twice, also as a.csv; its rows would be doubled"
    );
    assert_eq!(
        message(&["a.csv", "b.parquet"]).await,
        "a.csv is csv and b.parquet is parquet; one load reads one format"
    );
    assert_eq!(message(&["odd"]).await, "odd has no extension that says its format");
    assert_eq!(message(&["none.csv"]).await, "none.csv does not exist");
    assert_eq!(message(&["*.json"]).await, "*.json matches no file");
    assert_eq!(message(&["empty"]).await, "empty matches no file");
    assert!(message(&["lake/t"]).await.starts_with("lake/t is a Delta table; "));
    assert!(message(&["lake"]).await.starts_with("lake reaches into the Delta table lake/t; "));
    assert!(message(&["lake/t/p=1"]).await.starts_with("lake/t/p=1 reaches into the Delta table "));
    assert!(message(&["lake/t/*/*.parquet"]).await.starts_with("lake/t/*/*.parquet reaches into the Delta table "));
    assert_eq!(names(&root, &listed(&root, &["lake/t/p=1/x.parquet"], None).await.unwrap()), ["lake/t/p=1/x.parquet"]);
}

#[tokio::test]
async fn expands_objects() {
    let store = Arc::new(InMemory::new());
    for key in ["in/a.csv", "in/b/c.csv", "in/_SUCCESS", "other/a.csv", "t/_delta_log/0.json", "t/x.parquet"] {
        store.put(&Path::from(key), "x".into()).await.unwrap();
    }
    store.put(&Path::from("in/b"), "".into()).await.unwrap();
    let locate = move |address: &str| {
        let key = address.strip_prefix("s3://lake/").unwrap_or_default();
        Ok((store.clone() as Arc<dyn ObjectStore>, Path::from(key)))
    };
    let names = async |arguments: &[&str]| {
        let arguments: Vec<_> = arguments.iter().map(|a| (*a).to_owned()).collect();
        let listing = list(&arguments, None, &locate).await?;
        Ok::<_, Error>(listing.files.iter().map(|file| file.name.to_string()).collect::<Vec<_>>())
    };
    assert_eq!(names(&["s3://lake/in/a.csv"]).await.unwrap(), ["s3://lake/in/a.csv"]);
    assert_eq!(names(&["s3://lake/in"]).await.unwrap(), ["s3://lake/in/a.csv", "s3://lake/in/b/c.csv"]);
    assert_eq!(names(&["s3://lake/*/a.csv"]).await.unwrap(), ["s3://lake/in/a.csv", "s3://lake/other/a.csv"]);
    assert_eq!(names(&["s3://lake/in/**/c.csv"]).await.unwrap(), ["s3://lake/in/b/c.csv"]);
    let forced = list(&["s3://lake/in".to_owned()], Some(Format::Csv), &locate).await.unwrap();
    assert_eq!(forced.files.len(), 2, "the empty object of a folder is no file");
    let message = async |arguments: &[&str]| names(arguments).await.unwrap_err().message().to_owned();
    assert_eq!(message(&["s3://lake/nothing"]).await, "s3://lake/nothing matches no file");
    assert!(message(&["s3://lake/t"]).await.starts_with("s3://lake/t is a Delta table"));
    assert!(message(&["s3://lake/t/*.parquet"]).await.contains("reaches into the Delta table s3://lake/t"));
    assert!(message(&["s3://lake/in", "s3://lake/in/a.csv"]).await.contains("is given twice"));
}
