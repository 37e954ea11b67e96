use object_store::memory::InMemory;
use object_store::{Error, PutMode};

use super::*;
use crate::store::failure::io_kind;

struct Fixture {
    inner: Arc<InMemory>,
    plan: Plan,
    store: FailingStore,
}

fn fixture(rules: impl IntoIterator<Item = Rule>) -> Fixture {
    let (inner, plan) = (Arc::new(InMemory::new()), Plan::new());
    for rule in rules {
        plan.add(rule);
    }
    let store = FailingStore::new(inner.clone(), plan.clone());
    Fixture { inner, plan, store }
}

impl Fixture {
    async fn create(&self, path: &str) -> Result<PutResult> {
        self.store.put_opts(&path.into(), path.to_owned().into(), PutMode::Create.into()).await
    }

    async fn holds(&self, path: &str) -> bool {
        self.inner.head(&path.into()).await.is_ok()
    }
}

#[tokio::test]
async fn the_kth_call_fails_before_or_after_it_took_effect() {
    for (effect, there) in [(Effect::Lost, false), (Effect::Taken, true)] {
        for k in 1..=3 {
            let t = fixture([Rule::call(k).fails(effect, Answer::Timeout)]);
            for n in 1..=3 {
                let path = format!("t/{n}");
                let answer = t.create(&path).await;
                assert_eq!(answer.is_err(), n == k, "call {n} of {k}");
                assert_eq!(t.holds(&path).await, n != k || there, "call {n} of {k}");
            }
            let outcomes: Vec<Outcome> = t.plan.calls().iter().map(|call| call.outcome).collect();
            let faulted = outcomes.iter().position(|outcome| *outcome == Outcome::Faulted).unwrap();
            assert_eq!((outcomes.len(), faulted as u64), (3, k - 1));
        }
    }
}

#[tokio::test]
async fn answers_are_those_of_a_client() {
    for (answer, check) in [
        (Answer::Status(409), (|e| matches!(e, Error::AlreadyExists { .. })) as fn(&Error) -> bool),
        (Answer::Status(412), |e| matches!(e, Error::AlreadyExists { .. })),
        (Answer::Status(404), |e| matches!(e, Error::NotFound { .. })),
        (Answer::Status(403), |e| matches!(e, Error::PermissionDenied { .. })),
        (Answer::Status(503), |e| matches!(e, Error::Generic { .. }) && e.to_string().contains("503")),
        (Answer::Timeout, |e| io_kind(e) == Some(std::io::ErrorKind::TimedOut)),
        (Answer::Reset, |e| io_kind(e) == Some(std::io::ErrorKind::ConnectionReset)),
        (Answer::Io(std::io::ErrorKind::StorageFull), |e| io_kind(e) == Some(std::io::ErrorKind::StorageFull)),
    ] {
        let t = fixture([Rule::call(1).fails(Effect::Lost, answer)]);
        let error = t.create("t/a").await.unwrap_err();
        assert!(check(&error), "{answer:?}: {error:?}");
    }
    // Only a put-if-absent turns a failed condition into "exists".
    let t = fixture([Rule::call(1).fails(Effect::Lost, Answer::Status(412))]);
    let error = t.store.put(&"t/a".into(), "x".into()).await.unwrap_err();
    assert!(matches!(error, Error::Precondition { .. }), "{error:?}");
}

#[tokio::test]
async fn a_zombie_comes_later() {
    let t = fixture([Rule::on(Operation::Put).fails(Effect::Late(2), Answer::Timeout)]);
    t.create("t/zombie").await.unwrap_err();
    t.create("t/1").await.unwrap();
    assert!(!t.holds("t/zombie").await);
    let late = t.create("t/zombie").await.unwrap_err();
    assert!(matches!(late, Error::AlreadyExists { .. }), "it came right before the second call: {late:?}");

    t.plan.add(Rule::on(Operation::Put).fails(Effect::Late(u64::MAX), Answer::Timeout));
    t.create("t/second").await.unwrap_err();
    assert!(!t.holds("t/second").await);
    assert_eq!(t.plan.release_late().await, 1);
    assert!(t.holds("t/second").await);
    assert_eq!(t.plan.release_late().await, 0);
}

#[tokio::test]
async fn another_writer_can_come_in_between() {
    let inner = Arc::new(InMemory::new());
    let rival = inner.clone();
    let plan = Plan::new();
    let before = move |call: Call| {
        let rival = rival.clone();
        async move { drop(rival.put(&call.path, "rival".into()).await.unwrap()) }
    };
    plan.add(Rule::on(Operation::Put).path_containing("_delta_log").before(before));
    let store = FailingStore::new(inner.clone(), plan);
    store.put_opts(&"t/data".into(), "x".into(), PutMode::Create.into()).await.unwrap();
    let lost = store.put_opts(&"t/_delta_log/1".into(), "x".into(), PutMode::Create.into()).await.unwrap_err();
    assert!(matches!(lost, Error::AlreadyExists { .. }), "{lost:?}");
}

#[tokio::test]
async fn a_hook_runs_between_effect_and_answer() {
    let (inner, plan) = (Arc::new(InMemory::new()), Plan::new());
    let seen = inner.clone();
    let meanwhile = move |call: Call| {
        let seen = seen.clone();
        async move { seen.delete(&call.path).await.unwrap() }
    };
    plan.add(Rule::on(Operation::Put).meanwhile(meanwhile).fails(Effect::Taken, Answer::Status(503)));
    let store = FailingStore::new(inner.clone(), plan);
    store.put(&"t/a".into(), "x".into()).await.unwrap_err();
    assert!(inner.head(&"t/a".into()).await.is_err(), "put, and deleted after that");
}

#[tokio::test]
async fn rules_pick_their_calls() {
    let t = fixture([
        Rule::on(Operation::Put).path_containing("log").nth(2).times(2).fails(Effect::Lost, Answer::Reset),
        Rule::on(Operation::Get).always().fails(Effect::Lost, Answer::Reset),
    ]);
    for (path, fails) in [("log/1", false), ("data/1", false), ("log/2", true), ("log/3", true), ("log/4", false)] {
        assert_eq!(t.create(path).await.is_err(), fails, "{path}");
    }
    for _ in 0..3 {
        t.store.get(&"log/1".into()).await.unwrap_err();
    }
    t.plan.clear();
    t.store.get(&"log/1".into()).await.unwrap();
    assert_eq!(Rule::on_any().times(3).nth(2).strikes(4), Rule::on_any().nth(2).times(3).strikes(4));
}

#[tokio::test]
async fn every_kind_of_call_is_logged_and_can_fail() {
    async fn all_calls(store: &FailingStore) -> Vec<bool> {
        let path = Path::from("t/a");
        let mut failed = vec![store.put(&path, "x".into()).await.is_err()];
        match store.put_multipart(&"t/b".into()).await {
            Err(_) => failed.extend([true, true, true]),
            Ok(mut upload) => {
                failed.push(false);
                failed.push(upload.put_part("x".into()).await.is_err());
                failed.push(upload.complete().await.is_err());
            }
        }
        match store.put_multipart(&"t/c".into()).await {
            Err(_) => failed.push(true),
            Ok(mut upload) => failed.push(upload.abort().await.is_err()),
        }
        failed.push(store.get(&path).await.is_err());
        failed.push(store.get_ranges(&path, &[0..1, 0..1]).await.is_err());
        failed.push(store.list(None).try_collect::<Vec<_>>().await.is_err());
        failed.push(store.list_with_offset(None, &path).try_collect::<Vec<_>>().await.is_err());
        failed.push(store.list_with_delimiter(None).await.is_err());
        failed.push(store.copy(&path, &"t/d".into()).await.is_err());
        failed.push(store.delete(&path).await.is_err());
        failed
    }
    use Operation::{AbortUpload, CompleteUpload, Copy, Delete, Get, List, Put, PutPart, StartUpload};
    let operations =
        [Put, StartUpload, PutPart, CompleteUpload, StartUpload, AbortUpload, Get, Get, List, List, List, Copy, Delete];
    let t = fixture([]);
    assert!(all_calls(&t.store).await.iter().all(|failed| !failed));
    assert_eq!(t.plan.calls().iter().map(|call| call.operation).collect::<Vec<_>>(), operations);
    assert!(t.plan.calls().iter().all(|call| call.outcome == Outcome::Succeeded));
    for operation in operations {
        let t = fixture([Rule::on(operation).always().fails(Effect::Lost, Answer::Status(500))]);
        assert!(all_calls(&t.store).await.contains(&true), "{operation:?}");
    }
}

#[tokio::test]
async fn an_upload_can_complete_without_its_caller_knowing() {
    let t = fixture([Rule::on(Operation::CompleteUpload).fails(Effect::Taken, Answer::Timeout)]);
    let mut upload = t.store.put_multipart(&"t/a".into()).await.unwrap();
    upload.put_part("x".into()).await.unwrap();
    upload.complete().await.unwrap_err();
    assert!(t.holds("t/a").await);
}
