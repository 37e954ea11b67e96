//! More than one fault in a load: answers that stay away, and a commit that lands after its client gave up.

use std::time::Duration;

use deltaonce::fault::{Answer, Effect, Operation, Rule};
use deltaonce::{ErrorKind, Outcome};

use super::loads::Again;
use super::place::{Medium, Place};
use super::{Clean, check_again, check_first, clean, entry_put, entry_read, told};

/// Cases that may be run again after it was not learned how they ended.
async fn repeatable(medium: Medium) -> Vec<Clean> {
    let mut clean = clean(medium).await;
    clean.retain(|clean| clean.case.again != Again::Doubles);
    clean
}

/// The put is answered after the client gave up, at any moment of the next run, which knows nothing of it.
async fn a_commit_comes_late(medium: Medium) {
    for clean in repeatable(medium).await {
        let at_once = clean.case.work.within(Duration::ZERO);
        let mut number = 1;
        loop {
            let place = Place::holding(medium, &clean.case.base).await;
            place.plan.add(entry_put(clean.version()).fails(Effect::Late(u64::MAX), Answer::Timeout));
            let first = place.load(&at_once).await;
            let how = format!("{} on {medium:?}, late at call {number} of the second run", clean.case.name);
            assert_eq!(first.as_ref().unwrap_err().kind(), ErrorKind::Unknown, "{how}: {first:?}");
            let left = check_first(&clean, &place, &first, &how).await;
            assert!(!left.is_empty(), "{how}: files of an entry that may come are kept");
            place.plan.clear();
            place.plan.forget_calls();
            // The hook holds the call back until the zombie is there.
            let plan = place.plan.clone();
            place.plan.add(Rule::call(number).before(move |_| {
                let plan = plan.clone();
                async move {
                    plan.release_late().await;
                }
            }));
            let second = place.load(&clean.case.work).await.unwrap_or_else(|error| panic!("{how}: {error:?}"));
            let calls = place.plan.calls().len() as u64;
            let zombies = place.plan.release_late().await;
            let now = place.ledger().await;
            assert_eq!(now.rows, clean.once.rows, "{how}: {second:?}");
            assert_eq!(now.entries.len(), clean.once.entries.len(), "{how}: {second:?}");
            let committed = matches!(second.outcome, Outcome::Committed { .. });
            assert_eq!(committed, now.tokens().contains(&second.token) && second.token.is_some(), "{how}");
            let third = place.load_beside(&clean.case.work).await.unwrap();
            assert!(clean.case.again.is(&third), "{how}: {third:?}");
            assert_eq!(place.ledger().await.rows, clean.once.rows, "{how}");
            if number > calls {
                assert_eq!((zombies, committed), (1, true), "{how}: it came after all, and to no effect");
                break;
            }
            number += 1;
        }
        assert!(number > 3, "{number}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_comes_late_on_disk() {
    a_commit_comes_late(Medium::Disk).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_comes_late_in_an_object_store() {
    a_commit_comes_late(Medium::Memory).await;
}

/// The store answers neither puts nor reads of the entry for a while: the load waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_is_away_for_a_while() {
    for clean in clean(Medium::Memory).await {
        for effect in [Effect::Taken, Effect::Lost, Effect::Late(u64::MAX)] {
            for times in 2..=4 {
                let place = Place::holding(Medium::Memory, &clean.case.base).await;
                place.plan.add(entry_put(clean.version()).times(times).fails(effect, Answer::Reset));
                place.plan.add(entry_read(clean.version()).times(times).fails(Effect::Lost, Answer::Status(503)));
                let first = place.load(&clean.case.work).await;
                let how = format!("{}: {effect:?} {times} times", clean.case.name);
                assert!(first.is_ok(), "{how}: {first:?}");
                let left = check_first(&clean, &place, &first, &how).await;
                check_again(&clean, &place, &first, &left, &how).await;
            }
        }
    }
}

/// It stays away: then it is not known how the load ended, its files are kept, and the next run makes it right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_stays_away() {
    for clean in repeatable(Medium::Memory).await {
        for (effect, answer) in [
            (Effect::Taken, Answer::Timeout),
            (Effect::Taken, Answer::Status(412)),
            (Effect::Lost, Answer::Status(503)),
            (Effect::Lost, Answer::Status(409)),
        ] {
            let place = Place::holding(Medium::Memory, &clean.case.base).await;
            place.plan.add(entry_put(clean.version()).always().fails(effect, answer));
            place.plan.add(entry_read(clean.version()).always().fails(Effect::Lost, Answer::Timeout));
            let first = place.load(&clean.case.work.within(Duration::from_secs(9))).await;
            let how = format!("{}: {effect:?} {answer:?} for ever", clean.case.name);
            assert_eq!(first.as_ref().unwrap_err().kind(), ErrorKind::Unknown, "{how}: {first:?}");
            let left = check_first(&clean, &place, &first, &how).await;
            check_again(&clean, &place, &first, &left, &how).await;
        }
    }
}

/// A put that may still land, and then rights that are taken away: that is no certain no.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_are_taken_away_between_two_puts() {
    for clean in repeatable(Medium::Disk).await {
        let place = Place::holding(Medium::Disk, &clean.case.base).await;
        place.plan.add(entry_put(clean.version()).fails(Effect::Late(u64::MAX), Answer::Timeout));
        place.plan.add(entry_put(clean.version()).nth(2).always().fails(Effect::Lost, Answer::Status(403)));
        let first = place.load(&clean.case.work).await;
        let how = clean.case.name;
        assert_eq!(first.as_ref().unwrap_err().kind(), ErrorKind::Unknown, "{how}: {first:?}");
        let left = check_first(&clean, &place, &first, how).await;
        assert_eq!(place.plan.release_late().await, 1);
        assert_eq!(place.ledger().await.rows, clean.once.rows, "{how}: it landed, with all its files");
        check_again(&clean, &place, &first, &left, how).await;
    }
}

/// What cannot be cleaned up is told by name, and does not change how the load ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_cannot_be_removed_are_told() {
    for clean in clean(Medium::Disk).await {
        let place = Place::holding(Medium::Disk, &clean.case.base).await;
        place.plan.add(entry_put(clean.version()).fails(Effect::Lost, Answer::Status(403)));
        place.plan.add(Rule::on(Operation::Delete).always().fails(Effect::Lost, Answer::Status(503)));
        let first = place.load(&clean.case.work).await;
        let how = clean.case.name;
        assert_eq!(first.as_ref().unwrap_err().kind(), ErrorKind::Invalid, "{how}: {first:?}");
        let left = check_first(&clean, &place, &first, how).await;
        assert!(!left.is_empty() && left == told(&first, &left), "{how}: {left:?}");
        check_again(&clean, &place, &first, &left, how).await;
    }
}
