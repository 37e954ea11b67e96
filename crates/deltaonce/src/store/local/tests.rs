//! The order of the steps, and what is left when one of them fails.

use std::fs::File;
use std::path::Path as FilePath;
use std::sync::Mutex;

use object_store::{Error, ObjectStoreExt, PutMode};
use tempfile::TempDir;

use super::*;
use crate::store::failure::{io_kind, is_final};

/// The machine's disk, with a log of the steps and one of them broken.
#[derive(Debug)]
struct WatchedDisk {
    root: PathBuf,
    steps: Mutex<Vec<String>>,
    /// The number of the step that fails, and how; it has no effect then.
    broken: Option<(usize, io::ErrorKind)>,
}

impl WatchedDisk {
    /// Logs a step, names relative to the root and temporary names as `NAME#`.
    fn step(&self, verb: &str, paths: &[&FilePath]) -> io::Result<()> {
        let mut words = vec![verb.to_owned()];
        for path in paths {
            // What lies above the root is as good as the machine.
            let Ok(relative) = path.strip_prefix(&self.root) else { return Ok(()) };
            let relative = relative.display().to_string();
            let shown = relative.split_once('#').map_or(relative.clone(), |(name, _)| format!("{name}#"));
            words.push(if shown.is_empty() { ".".to_owned() } else { shown });
        }
        let mut steps = self.steps.lock().unwrap();
        steps.push(words.join(" "));
        match self.broken {
            Some((number, kind)) if number == steps.len() => Err(kind.into()),
            _ => Ok(()),
        }
    }
}

impl Disk for WatchedDisk {
    fn create(&self, path: &FilePath) -> io::Result<File> {
        self.step("create", &[path])?;
        MachineDisk.create(path)
    }
    fn write(&self, file: &mut File, path: &FilePath, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.step("write", &[path])?;
        MachineDisk.write(file, path, at, bytes)
    }
    fn sync_file(&self, file: &File, path: &FilePath) -> io::Result<()> {
        self.step("sync", &[path])?;
        MachineDisk.sync_file(file, path)
    }
    fn link(&self, from: &FilePath, to: &FilePath) -> io::Result<()> {
        self.step("link", &[from, to])?;
        MachineDisk.link(from, to)
    }
    fn rename(&self, from: &FilePath, to: &FilePath) -> io::Result<()> {
        self.step("rename", &[from, to])?;
        MachineDisk.rename(from, to)
    }
    fn remove(&self, path: &FilePath) -> io::Result<()> {
        self.step("remove", &[path])?;
        MachineDisk.remove(path)
    }
    fn make_directory(&self, path: &FilePath) -> io::Result<()> {
        self.step("mkdir", &[path])?;
        MachineDisk.make_directory(path)
    }
    fn sync_directory(&self, path: &FilePath) -> io::Result<()> {
        self.step("sync", &[path])?;
        MachineDisk.sync_directory(path)
    }
}

struct Fixture {
    root: TempDir,
    disk: Arc<WatchedDisk>,
    store: DurableLocal,
}

fn fixture(broken: Option<(usize, io::ErrorKind)>) -> Fixture {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().canonicalize().unwrap();
    let disk = Arc::new(WatchedDisk { root: path.clone(), steps: Mutex::default(), broken });
    let inner = LocalFileSystem::new_with_prefix(&path).unwrap();
    let store = DurableLocal::over(inner, disk.clone());
    Fixture { root, disk, store }
}

impl Fixture {
    fn steps(&self) -> Vec<String> {
        std::mem::take(&mut self.disk.steps.lock().unwrap())
    }

    fn content(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.root.path().join(name)).ok()
    }

    /// File names below a directory, temporary ones too.
    fn files(&self, directory: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.root.path().join(directory)) else { return Vec::new() };
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn create() -> PutOptions {
    PutMode::Create.into()
}

#[tokio::test]
async fn a_new_object_is_synced_before_it_is_named_and_its_name_before_it_is_acknowledged() {
    let t = fixture(None);
    t.store.put_opts(&"t/_delta_log/0.json".into(), "entry".into(), create()).await.unwrap();
    assert_eq!(
        t.steps(),
        [
            "mkdir t",
            "sync .",
            "mkdir t/_delta_log",
            "sync t",
            "create t/_delta_log/0.json#",
            "write t/_delta_log/0.json#",
            "sync t/_delta_log/0.json#",
            "link t/_delta_log/0.json# t/_delta_log/0.json",
            "sync t/_delta_log",
            "remove t/_delta_log/0.json#",
        ]
    );
    // Who finds the name taken acts on it, so that it is taken must be durable.
    t.store.put_opts(&"t/_delta_log/0.json".into(), "other".into(), create()).await.unwrap_err();
    assert_eq!(t.steps(), ["sync t/_delta_log"]);
    assert_eq!(t.content("t/_delta_log/0.json").unwrap(), "entry");
    assert_eq!(t.files("t/_delta_log"), ["0.json"]);
}

#[tokio::test]
async fn a_replaced_object_is_synced_before_it_is_named() {
    let t = fixture(None);
    t.store.put(&"a".into(), "entry".into()).await.unwrap();
    assert_eq!(t.steps(), ["create a#", "write a#", "sync a#", "rename a# a", "sync ."]);
}

#[tokio::test]
async fn an_upload_is_synced_before_it_is_named() {
    let t = fixture(None);
    let mut upload = t.store.put_multipart(&"d/a".into()).await.unwrap();
    upload.put_part("one".into()).await.unwrap();
    upload.put_part("two".into()).await.unwrap();
    assert_eq!(t.steps(), ["mkdir d", "sync .", "create d/a#", "write d/a#", "write d/a#"]);
    upload.complete().await.unwrap();
    assert_eq!(t.steps(), ["sync d/a#", "rename d/a# d/a", "sync d"]);
    assert_eq!(t.content("d/a").unwrap(), "onetwo");
}

#[tokio::test]
async fn a_long_upload_is_synced_on_the_way_too_and_a_failure_of_that_is_told() {
    let part = || PutPayload::from(vec![7; 33 << 20]);
    let t = fixture(None);
    let mut upload = t.store.put_multipart(&"a".into()).await.unwrap();
    upload.put_part(part()).await.unwrap();
    upload.complete().await.unwrap();
    assert_eq!(t.steps(), ["create a#", "write a#", "sync a#", "sync a#", "rename a# a", "sync ."]);

    let t = fixture(Some((3, io::ErrorKind::StorageFull)));
    let mut upload = t.store.put_multipart(&"a".into()).await.unwrap();
    upload.put_part(part()).await.unwrap();
    let error = upload.complete().await.unwrap_err();
    assert_eq!(io_kind(&error), Some(io::ErrorKind::StorageFull), "{error:?}");
    // Not synced again, which could succeed.
    assert_eq!(t.steps(), ["create a#", "write a#", "sync a#", "remove a#"]);
    assert_eq!(t.content("a"), None);

    // Found by the next part where there is one.
    let t = fixture(Some((3, io::ErrorKind::StorageFull)));
    let mut upload = t.store.put_multipart(&"a".into()).await.unwrap();
    upload.put_part(part()).await.unwrap();
    while t.disk.steps.lock().unwrap().len() < 3 {
        tokio::task::yield_now().await;
    }
    let answer = loop {
        // The sync has begun, but may not have ended.
        match upload.put_part(part()).await {
            Ok(()) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert_eq!(io_kind(&answer), Some(io::ErrorKind::StorageFull));
    upload.complete().await.unwrap_err();
    assert_eq!(t.content("a"), None);
}

#[tokio::test]
async fn an_upload_that_lacks_a_part_cannot_be_completed() {
    let t = fixture(None);
    let mut upload = t.store.put_multipart(&"a".into()).await.unwrap();
    drop(upload.put_part("never awaited".into()));
    upload.complete().await.unwrap_err();
    assert!(upload.put_part("late".into()).await.is_err());
    assert_eq!(t.files(""), [] as [&str; 0]);
}

#[tokio::test]
async fn an_upload_that_is_dropped_leaves_nothing() {
    let t = fixture(None);
    let mut upload = t.store.put_multipart(&"a".into()).await.unwrap();
    upload.put_part("x".into()).await.unwrap();
    assert_eq!(t.files("").len(), 1);
    drop(upload);
    for _ in 0..1000 {
        if t.files("").is_empty() {
            return;
        }
        tokio::task::yield_now().await;
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("left {:?}", t.files(""));
}

/// Breaks each step of a put in turn: there is the whole object or none, an error if it is not durable, nothing
/// temporary beside it, and the same put again settles it.
async fn break_each_step(mode: PutMode, put_steps: usize) {
    for number in 1..=put_steps {
        let t = fixture(Some((number, io::ErrorKind::StorageFull)));
        let path = Path::from("t/a");
        let answer = t.store.put_opts(&path, "entry".into(), mode.clone().into()).await;
        let broken = t.steps()[number - 1].clone();
        let content = t.content("t/a");
        if broken.starts_with("remove") {
            answer.unwrap();
            continue;
        }
        let error = answer.expect_err(&broken);
        // Once everybody can see it, the answer must not be one of a put that changed nothing.
        let told = (content.is_none() || mode != PutMode::Create).then_some(io::ErrorKind::StorageFull);
        assert_eq!(io_kind(&error), told, "{broken}: {error:?}");
        assert_eq!(is_final(&error), told.is_some(), "{broken}: {error:?}");
        assert!(error.to_string().contains(t.disk.root.to_str().unwrap()), "{broken}: {error}");
        assert!(content.is_none() || content.as_deref() == Some("entry"), "{broken} left {content:?}");
        assert!(t.files("t").iter().all(|name| name == "a"), "{broken} left {:?}", t.files("t"));

        t.disk.steps.lock().unwrap().resize(100, String::new());
        match t.store.put_opts(&path, "entry".into(), mode.clone().into()).await {
            Ok(_) => assert!(content.is_none() || mode == PutMode::Overwrite, "{broken}"),
            Err(Error::AlreadyExists { .. }) => assert!(content.is_some() && mode == PutMode::Create, "{broken}"),
            Err(other) => panic!("{broken}: {other}"),
        }
        assert_eq!(t.content("t/a").unwrap(), "entry");
    }
}

#[tokio::test]
async fn no_step_of_creating_can_fail_unnoticed_or_leave_a_torn_object() {
    break_each_step(PutMode::Create, 8).await;
}

#[tokio::test]
async fn no_step_of_replacing_can_fail_unnoticed_or_leave_a_torn_object() {
    break_each_step(PutMode::Overwrite, 7).await;
}

#[tokio::test]
async fn a_directory_that_is_found_is_synced_into_its_parent_once() {
    let t = fixture(None);
    std::fs::create_dir_all(t.root.path().join("t/_delta_log")).unwrap();
    let (first, second) = (Path::from("t/_delta_log/0.json"), Path::from("t/_delta_log/1.json"));
    t.store.put_opts(&first, "entry".into(), create()).await.unwrap();
    assert_eq!(t.steps()[..3], ["sync .", "sync t", "create t/_delta_log/0.json#"]);
    t.store.put_opts(&second, "entry".into(), create()).await.unwrap();
    assert_eq!(t.steps()[0], "create t/_delta_log/1.json#");
    // Another process may take it away.
    std::fs::remove_dir_all(t.root.path().join("t/_delta_log")).unwrap();
    t.store.put_opts(&first, "entry".into(), create()).await.unwrap();
    assert_eq!(t.steps()[..3], ["mkdir t/_delta_log", "sync t", "create t/_delta_log/0.json#"]);
}

#[tokio::test]
async fn what_was_found_is_durable_once_it_is_settled() {
    let t = fixture(None);
    std::fs::create_dir_all(t.root.path().join("t")).unwrap();
    std::fs::write(t.root.path().join("t/a"), "by another").unwrap();
    t.store.settle(&"t/a".into()).await.unwrap();
    assert_eq!(t.steps(), ["sync t/a", "sync t", "sync ."]);
    t.store.settle(&"t/gone".into()).await.unwrap();
    assert_eq!(t.steps(), ["sync t"]);
    t.store.settle(&"gone/a".into()).await.unwrap();
    assert_eq!(t.steps(), [""; 0]);

    let t = fixture(Some((2, io::ErrorKind::StorageFull)));
    std::fs::create_dir_all(t.root.path().join("t")).unwrap();
    std::fs::write(t.root.path().join("t/a"), "by another").unwrap();
    t.store.settle(&"t/a".into()).await.unwrap_err();
}

#[tokio::test]
async fn a_missing_right_is_told_as_such() {
    let t = fixture(Some((1, io::ErrorKind::PermissionDenied)));
    let error = t.store.put_opts(&"a".into(), "x".into(), create()).await.unwrap_err();
    assert!(matches!(error, Error::PermissionDenied { .. }), "{error:?}");
    assert_eq!(io_kind(&error), Some(io::ErrorKind::PermissionDenied));
}

#[tokio::test]
async fn a_file_in_the_way_of_a_directory_is_told() {
    let t = fixture(None);
    t.store.put(&"a".into(), "x".into()).await.unwrap();
    let error = t.store.put(&"a/b".into(), "x".into()).await.unwrap_err();
    assert_eq!(io_kind(&error), Some(io::ErrorKind::NotADirectory), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_writers_of_one_name_one_wins() {
    let t = fixture(None);
    let path = Path::from("t/_delta_log/0.json");
    let writers = (0..16).map(|writer| {
        let (store, path) = (t.store.clone(), path.clone());
        tokio::spawn(async move { store.put_opts(&path, format!("{writer}").into(), create()).await })
    });
    let mut winners = Vec::new();
    for (writer, answer) in futures::future::join_all(writers).await.into_iter().enumerate() {
        match answer.unwrap() {
            Ok(_) => winners.push(writer.to_string()),
            Err(error) => assert!(matches!(error, Error::AlreadyExists { .. }), "{error:?}"),
        }
    }
    assert_eq!(winners, [t.content("t/_delta_log/0.json").unwrap()]);
    assert_eq!(t.files("t/_delta_log"), ["0.json"]);
}

#[tokio::test]
async fn leftovers_of_a_killed_writer_are_not_listed() {
    use futures::TryStreamExt;
    let t = fixture(None);
    t.store.put(&"t/a".into(), "x".into()).await.unwrap();
    let killed = Temporary::create(&t.store.disk, &t.root.path().canonicalize().unwrap().join("t/b")).unwrap();
    assert_eq!(t.files("t").len(), 2);
    let listed: Vec<ObjectMeta> = t.store.list(None).try_collect().await.unwrap();
    assert_eq!(listed.into_iter().map(|meta| meta.location).collect::<Vec<_>>(), [Path::from("t/a")]);
    drop(killed);
}

#[tokio::test]
async fn a_condition_on_a_version_is_refused() {
    let t = fixture(None);
    let version = object_store::UpdateVersion { e_tag: None, version: None };
    let error = t.store.put_opts(&"a".into(), "x".into(), PutMode::Update(version).into()).await.unwrap_err();
    assert!(matches!(error, Error::NotImplemented { .. }), "{error:?}");
}

#[test]
fn it_works_without_a_runtime() {
    let t = fixture(None);
    futures::executor::block_on(t.store.put(&"a".into(), "x".into())).unwrap();
    assert_eq!(t.content("a").unwrap(), "x");
}
