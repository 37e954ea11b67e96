//! Finds out whether a store keeps its word on put-if-absent.

use object_store::path::Path;
use object_store::{Error as Store, ObjectStore, ObjectStoreExt, PutMode};

use crate::error::{Error, Result};
use crate::store::failure::{self, Diagnosis};

/// How a put-if-absent was answered.
enum Answer {
    Created,
    Exists,
    /// The store says that it has no such operation.
    Unknown,
}

/// Whether `store` refuses to replace an object that is put with [`PutMode::Create`].
///
/// A store that ignores the condition would let two writers replace each other's log entry. A small object
/// `dir/probe_name` is put twice, with different contents, read, and deleted again; it may stay behind if the deletion
/// fails. `probe_name` must be one that nobody else uses, and one that readers of the table ignore.
///
/// # Errors
/// [`ErrorKind::Retryable`](crate::ErrorKind::Retryable) where the answers do not settle it, also for a lost answer;
/// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for missing rights or a missing bucket.
pub(crate) async fn honours_put_if_absent(
    table: &str,
    store: &dyn ObjectStore,
    dir: &Path,
    probe_name: &str,
) -> Result<bool> {
    let probe = dir.clone().join(probe_name);
    let honours = try_twice(store, &probe, probe_name).await.map_err(|doubt| doubt.about(table));
    // What is left of a probe does no harm, and the answer stands whatever becomes of it.
    let _ = store.delete(&probe).await;
    honours
}

/// Why the answers do not settle it.
enum Doubt {
    Failed(Store),
    Strange(&'static str),
}

impl Doubt {
    fn about(self, table: &str) -> Error {
        match self {
            // A put finds nothing missing but the bucket.
            Self::Failed(error @ Store::NotFound { .. }) => {
                failure::explain(Diagnosis::no_such_bucket(), table, "write to").caused_by(error)
            }
            Self::Failed(error) => failure::storage(table, "write to", error),
            Self::Strange(what) => Error::retryable(format!(
                "whether the store of {table} keeps two writers apart (put-if-absent) could not be settled: {what}"
            )),
        }
    }
}

async fn try_twice(store: &dyn ObjectStore, probe: &Path, probe_name: &str) -> Result<bool, Doubt> {
    let first = format!("{probe_name} first");
    let second = format!("{probe_name} second");
    match put(store, probe, &first).await? {
        // The client repeats a put whose answer was lost, and then finds its own object; the reading below tells.
        Answer::Created | Answer::Exists => {}
        Answer::Unknown => return Ok(false),
    }
    if content(store, probe).await? != first {
        return Err(Doubt::Strange("what was put first is not what is read"));
    }
    match put(store, probe, &second).await? {
        Answer::Created | Answer::Unknown => return Ok(false),
        Answer::Exists => {}
    }
    // The name is nobody else's, so other content can only be the second: refused in word, but not in deed.
    match content(store, probe).await? {
        found if found == first => Ok(true),
        found if found == second => Ok(false),
        _ => Err(Doubt::Strange("what was put is not what is read")),
    }
}

async fn put(store: &dyn ObjectStore, probe: &Path, content: &str) -> Result<Answer, Doubt> {
    match store.put_opts(probe, content.to_owned().into(), PutMode::Create.into()).await {
        Ok(_) => Ok(Answer::Created),
        Err(Store::AlreadyExists { .. } | Store::Precondition { .. }) => Ok(Answer::Exists),
        Err(Store::NotImplemented { .. }) => Ok(Answer::Unknown),
        // S3's own code for a header that the server does not support, which the client has no error for.
        Err(error) if error.to_string().contains("<Code>NotImplemented</Code>") => Ok(Answer::Unknown),
        Err(error) => Err(Doubt::Failed(error)),
    }
}

async fn content(store: &dyn ObjectStore, probe: &Path) -> Result<String, Doubt> {
    let bytes = match store.get(probe).await {
        Ok(found) => found.bytes().await,
        Err(Store::NotFound { .. }) => return Err(Doubt::Strange("what was put is not there")),
        Err(error) => Err(error),
    };
    Ok(String::from_utf8_lossy(&bytes.map_err(Doubt::Failed)?).into_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;
    use crate::error::ErrorKind;
    use crate::store::fault::{self, Effect, FailingStore, Operation, Plan, Rule};

    async fn probe(rules: impl IntoIterator<Item = Rule>) -> (Result<bool>, bool) {
        let plan = Plan::new();
        for rule in rules {
            plan.add(rule);
        }
        let inner = Arc::new(InMemory::new());
        let store = FailingStore::new(inner.clone(), plan);
        let answer = honours_put_if_absent("t", &store, &"t/_delta_log".into(), "_probe_1").await;
        let left = inner.head(&"t/_delta_log/_probe_1".into()).await.is_ok();
        (answer, left)
    }

    fn put(nth: u64) -> Rule {
        Rule::on(Operation::Put).nth(nth)
    }

    #[tokio::test]
    async fn a_store_that_keeps_its_word() {
        let (answer, left) = probe([]).await;
        assert!(answer.unwrap());
        assert!(!left, "the probe is deleted");
        // The client's own repetition of the first put meets its own object.
        assert!(probe([put(1).fails(Effect::Taken, fault::Answer::Status(412))]).await.0.unwrap());
        assert!(probe([Rule::on(Operation::Delete).fails(Effect::Lost, fault::Answer::Timeout)]).await.0.unwrap());
    }

    #[tokio::test]
    async fn a_store_that_ignores_the_condition() {
        let (answer, left) = probe([Rule::on(Operation::Put).always().ignores_condition()]).await;
        assert!(!answer.unwrap());
        assert!(!left);
    }

    #[tokio::test]
    async fn a_store_that_refuses_in_word_but_not_in_deed() {
        let liar = put(2).ignores_condition().fails(Effect::Taken, fault::Answer::Status(412));
        assert!(!probe([liar]).await.0.unwrap());
    }

    #[tokio::test]
    async fn an_unclear_answer_is_not_a_yes() {
        let unclear = [
            put(1).fails(Effect::Taken, fault::Answer::Timeout),
            put(1).fails(Effect::Lost, fault::Answer::Status(409)),
            put(2).fails(Effect::Lost, fault::Answer::Timeout),
            put(2).fails(Effect::Taken, fault::Answer::Status(500)),
            Rule::on(Operation::Get).nth(1).fails(Effect::Lost, fault::Answer::Status(503)),
            Rule::on(Operation::Get).nth(2).fails(Effect::Lost, fault::Answer::Status(503)),
            Rule::on(Operation::Get).nth(2).fails(Effect::Lost, fault::Answer::Status(404)),
        ];
        for rule in unclear {
            let shown = format!("{rule:?}");
            let (answer, left) = probe([rule]).await;
            assert_eq!(answer.expect_err(&shown).kind(), ErrorKind::Retryable, "{shown}");
            assert!(!left, "{shown}");
        }
    }

    #[tokio::test]
    async fn missing_rights_do_not_mend_themselves() {
        let (answer, _) = probe([put(1).fails(Effect::Lost, fault::Answer::Status(403))]).await;
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::Invalid);
    }
}
