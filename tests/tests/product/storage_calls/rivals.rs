//! Another writer commits while our commit is in doubt: the table is as if one had come after the other.

use std::time::Duration;

use deltaonce::fault::{Answer, Effect};
use deltaonce::{ErrorKind, Outcome, Receipt};

use super::loads::{Again, Case, Work, cases, rivals_append, rivals_merge};
use super::place::{Medium, Place};
use super::{check_strays, entry_put};

/// What the other writer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rival {
    /// The very same load, from another process.
    Twin,
    /// Rows, some of which have our keys or are of what we replace.
    Append,
    /// deltalake makes one file of all.
    Compaction,
    /// deltalake deletes rows, of ours too.
    Deletion,
}

impl Rival {
    /// Does it on a thread of its own, as if by another process.
    async fn work(self, place: Place, ours: Work) {
        let runtime = tokio::runtime::Handle::current();
        tokio::task::spawn_blocking(move || runtime.block_on(self.work_here(&place, &ours))).await.unwrap();
    }

    async fn work_here(self, place: &Place, ours: &Work) {
        match self {
            Self::Twin => drop(place.load_beside(ours).await.unwrap()),
            Self::Append => drop(place.load_beside(&rivals_append()).await.unwrap()),
            Self::Compaction => drop(place.opened_by_deltalake().await.optimize().await.unwrap()),
            Self::Deletion => {
                let table = place.opened_by_deltalake().await;
                drop(table.delete().with_predicate("id in (1, 2, 8)").await.unwrap());
            }
        }
    }
}

/// How the two come in each other's way.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// Our entry is there, and its answer is lost; the rival comes before we look.
    AfterOurs(Answer),
    /// Our entry is not there, and nobody tells us; the rival takes its version.
    InOurPlace(Answer),
    /// The rival is faster.
    BeforeOurs,
}

impl Way {
    fn rival_is_first(self) -> bool {
        !matches!(self, Self::AfterOurs(_))
    }
}

/// One after the other, with nothing failing: what the table then is, and how our load ends.
async fn in_turn(case: &Case, rival: Rival, rival_is_first: bool) -> (Vec<String>, Receipt) {
    let place = Place::holding(Medium::Disk, &case.base).await;
    if rival_is_first {
        rival.work(place.clone(), case.work.clone()).await;
    }
    let receipt = place.load(&case.work).await.unwrap();
    if !rival_is_first {
        rival.work(place.clone(), case.work.clone()).await;
    }
    (place.ledger().await.rows, receipt)
}

fn outcome(receipt: &Receipt) -> &'static str {
    match receipt.outcome {
        Outcome::Committed { .. } => "committed",
        Outcome::Skipped { .. } => "skipped",
        Outcome::Unchanged { .. } => "unchanged",
    }
}

async fn meet(rival: Rival) {
    for case in cases().await {
        let creates = case.name == "create";
        for first in [false, true] {
            // deltalake has nothing to work on where there is no table.
            if creates && first && matches!(rival, Rival::Compaction | Rival::Deletion) {
                continue;
            }
            let (rows, expected) = in_turn(&case, rival, first).await;
            let ways = if first {
                vec![Way::BeforeOurs, Way::InOurPlace(Answer::Status(503)), Way::InOurPlace(Answer::Status(409))]
            } else {
                vec![Way::AfterOurs(Answer::Timeout), Way::AfterOurs(Answer::Status(412))]
            };
            for way in ways {
                assert_eq!(way.rival_is_first(), first);
                one_meeting(&case, rival, way, &rows, &expected).await;
            }
        }
    }
}

async fn one_meeting(case: &Case, rival: Rival, way: Way, rows: &[String], expected: &Receipt) {
    let how = format!("{} and {rival:?}, {way:?}", case.name);
    let place = Place::holding(Medium::Disk, &case.base).await;
    let before = place.ledger().await;
    let (other, ours) = (place.clone(), case.work.clone());
    let work = move |_| rival.work(other.clone(), ours.clone());
    let put = entry_put(before.entries.len());
    place.plan.add(match way {
        Way::AfterOurs(answer) => put.meanwhile(work).fails(Effect::Taken, answer),
        Way::InOurPlace(answer) => put.meanwhile(work).fails(Effect::Lost, answer),
        Way::BeforeOurs => put.before(work),
    });
    let receipt = match place.load(&case.work).await {
        Ok(receipt) => receipt,
        // A table that another one made as we were about to may differ from what was prepared; nothing is changed then.
        Err(error) if case.name == "create" && way.rival_is_first() && error.kind() == ErrorKind::Retryable => {
            place.load(&case.work).await.unwrap_or_else(|error| panic!("{how}: {error:?}"))
        }
        Err(error) => panic!("{how}: {error:?}"),
    };
    let now = place.ledger().await;
    assert_eq!(now.rows, rows, "{how}: {receipt:?}");
    assert_eq!(outcome(&receipt), outcome(expected), "{how}: {receipt:?}");
    assert_eq!(receipt.rows, expected.rows, "{how}");
    if let Outcome::Committed { version } = receipt.outcome {
        assert_eq!(now.tokens()[version as usize], receipt.token, "{how}");
        assert_eq!(now.tokens().iter().filter(|token| **token == receipt.token).count(), 1, "{how}");
    }
    check_strays(&now, &how);
    if case.again == Again::Skipped {
        let again = place.load(&case.work).await.unwrap();
        assert_eq!(outcome(&again), "skipped", "{how}");
        assert_eq!(place.ledger().await.rows, rows, "{how}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_load_runs_beside() {
    meet(Rival::Twin).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_writer_appends() {
    meet(Rival::Append).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_writer_compacts() {
    meet(Rival::Compaction).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_writer_deletes() {
    meet(Rival::Deletion).await;
}

/// Others are faster twelve times in a row, each time with a row that ours must be planned on again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_that_loses_often_does_not_wait_ever_longer() {
    let case = cases().await.into_iter().find(|case| case.name == "merge").unwrap();
    let place = Place::holding(Medium::Memory, &case.base).await;
    let first = place.ledger().await.entries.len();
    for version in first..first + 12 {
        let other = place.clone();
        place.plan.add(entry_put(version).before(move |_| {
            let (other, runtime) = (other.clone(), tokio::runtime::Handle::current());
            let load = move || runtime.block_on(other.load_beside(&rivals_merge(version)));
            async move { drop(tokio::task::spawn_blocking(load).await.unwrap().unwrap()) }
        }));
    }
    let receipt = place.load(&case.work.within(Duration::from_secs(1))).await.unwrap();
    assert_eq!(receipt.outcome, Outcome::Committed { version: first as u64 + 12 });
    assert_eq!((receipt.attempts, receipt.rows.updated, receipt.rows.stale), (13, 1, 1), "{receipt:?}");
}
