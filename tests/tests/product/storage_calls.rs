//! Every storage call of every contract fails, before and after it took effect; the load is run again, and the table is
//! as if nothing had failed.
//!
//! The loads run in this process, over a store that fails on purpose and with a clock that steps, and the table is read
//! by nothing of the product, so that the thousand ways to fail take seconds.

mod loads;
mod place;
mod rivals;
mod several;
mod upload;

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;

use deltaonce::fault::{Answer, Call, Effect, Operation, Outcome as Ended, Rule};
use deltaonce::{ErrorKind, Outcome, Receipt, Result};
use deltaonce_tests::ledger::{Ledger, entry_name};
use futures::FutureExt;

use loads::{APP, Again, Case, cases};
use place::{Medium, Place};

/// The ways in which one call can fail.
fn faults(medium: Medium, call: &Call) -> Vec<(Effect, Answer)> {
    use Answer::{Io, Reset, Status, Timeout};
    use Effect::{Late, Lost, Taken};
    if is_entry(call) {
        let mut faults = vec![(Lost, Io(std::io::ErrorKind::StorageFull))];
        for effect in [Lost, Taken] {
            faults.extend([403, 409, 412, 500, 503].map(|status| (effect, Status(status))));
            faults.extend([(effect, Timeout), (effect, Reset)]);
        }
        // It lands before the read-back, before the next put, at that put, and long after all is over.
        faults.extend([(Late(1), Timeout), (Late(2), Reset), (Late(3), Status(503)), (Late(u64::MAX), Timeout)]);
        return faults;
    }
    let is_read = matches!(call.operation, Operation::Get | Operation::List);
    let mut faults = vec![(Lost, Timeout), (Lost, Status(403))];
    match (medium, call.operation) {
        (_, Operation::List) => {}
        (_, Operation::Get) => faults.push((Lost, Status(404))),
        (Medium::Disk, _) => faults.push((Lost, Io(std::io::ErrorKind::StorageFull))),
        (Medium::Memory, _) => faults.extend([(Lost, Status(409)), (Lost, Status(412)), (Taken, Status(412))]),
    }
    if medium == Medium::Memory {
        faults.push((Lost, Status(503)));
    }
    if !is_read {
        faults.extend([(Taken, Timeout), (Taken, Status(500))]);
    }
    faults
}

fn is_entry(call: &Call) -> bool {
    call.operation == Operation::Put && call.creates && call.path.as_ref().contains("/_delta_log/0")
}

/// Whether it is the object by which a store is asked how it puts.
fn is_probe(name: &str) -> bool {
    name.contains("/.deltaonce-probe-")
}

/// The puts of this version's log entry.
fn entry_put(version: usize) -> Rule {
    Rule::on(Operation::Put).path_containing(entry_name(version as u64))
}

/// The reads of this version's log entry.
fn entry_read(version: usize) -> Rule {
    Rule::on(Operation::Get).path_containing(entry_name(version as u64))
}

/// A case with what it does where nothing fails.
struct Clean {
    case: Case,
    before: Ledger,
    /// After it ran once.
    once: Ledger,
    /// After it ran twice.
    twice: Ledger,
    calls: Vec<Call>,
}

impl Clean {
    async fn run(medium: Medium, case: Case) -> Self {
        let place = Place::holding(medium, &case.base).await;
        let before = place.ledger().await;
        let receipt = place.load(&case.work).await.unwrap();
        assert_eq!(receipt.outcome, Outcome::Committed { version: before.entries.len() as u64 });
        assert_eq!(receipt.warnings, [""; 0]);
        let (calls, once) = (place.plan.calls(), place.ledger().await);
        let again = place.load(&case.work).await.unwrap();
        assert!(case.again.is(&again), "{again:?}");
        let twice = place.ledger().await;
        assert_ne!(once.rows, before.rows);
        assert_eq!(twice.rows == once.rows, case.again != Again::Doubles);
        assert!(twice.strays().is_empty(), "{:?}", twice.strays());
        Self { case, before, once, twice, calls }
    }

    /// The version that it lands as.
    fn version(&self) -> usize {
        self.before.entries.len()
    }
}

async fn clean(medium: Medium) -> Vec<Clean> {
    let mut all = Vec::new();
    for case in cases().await {
        all.push(Clean::run(medium, case).await);
    }
    all
}

/// Files that a receipt or an error says it had to leave behind.
fn told(ended: &Result<Receipt>, objects: &BTreeSet<String>) -> BTreeSet<String> {
    let lines = match ended {
        Ok(receipt) => &receipt.warnings[..],
        Err(error) => error.evidence(),
    };
    let is_told = |name: &&String| {
        lines.iter().any(|line| line.contains("could not remove the unused file") && line.contains(name.as_str()))
    };
    objects.iter().filter(is_told).cloned().collect()
}

/// Sees that nothing lies about that no entry knows.
fn check_strays(now: &Ledger, how: &str) {
    assert!(now.strays().is_empty(), "{how}: {:?}", now.strays());
}

/// Holds what the table is after a load that met faults against how that load ended. Gives back the strays it left.
async fn check_first(clean: &Clean, place: &Place, first: &Result<Receipt>, how: &str) -> BTreeSet<String> {
    let now = place.ledger().await;
    let mut strays = now.strays();
    match first {
        Ok(receipt) => {
            assert!(matches!(receipt.outcome, Outcome::Committed { .. }), "{how}: {receipt:?}");
            assert_eq!(now.rows, clean.once.rows, "{how}");
            assert_eq!(now.entries.len(), clean.once.entries.len(), "{how}");
            let carrying = now.tokens().iter().filter(|token| token.is_some() && **token == receipt.token).count();
            assert_eq!(carrying, 1, "{how}: one entry carries the load");
        }
        Err(error) if error.kind() == ErrorKind::Unknown => {
            let landed = now.entries.len() == clean.once.entries.len();
            let expected = if landed { &clean.once } else { &clean.before };
            assert_eq!((&now.rows, now.entries.len()), (&expected.rows, expected.entries.len()), "{how}");
            // They may be part of an entry that is still to come.
            return strays;
        }
        Err(error) => {
            assert_eq!(now.entries, clean.before.entries, "{how}: {error:?}");
            assert_eq!(now.live, clean.before.live, "{how}: {error:?}");
        }
    }
    let told = told(first, &strays);
    strays.retain(|name| !told.contains(name) && !is_probe(name));
    assert!(strays.is_empty(), "{how}: left behind without a word: {strays:?} {first:?}");
    now.strays()
}

/// Lets come what is late, runs the load once more without faults, and sees that the table is as without any.
async fn check_again(clean: &Clean, place: &Place, first: &Result<Receipt>, left: &BTreeSet<String>, how: &str) {
    place.plan.clear();
    let second = place.load(&clean.case.work).await.unwrap_or_else(|error| panic!("{how}: then {error:?}"));
    let (is_late, now) = (place.plan.release_late().await > 0, place.ledger().await);
    let expected = match first {
        Ok(_) => {
            assert!(clean.case.again.is(&second), "{how}: {second:?}");
            &clean.twice
        }
        Err(error) if error.kind() == ErrorKind::Unknown => {
            assert_ne!(clean.case.again, Again::Doubles, "{how}: nobody can say what is right then");
            &clean.once
        }
        Err(_) => {
            assert!(matches!(second.outcome, Outcome::Committed { .. }), "{how}: {second:?}");
            &clean.once
        }
    };
    assert_eq!(now.rows, expected.rows, "{how} late: {is_late}");
    assert_eq!(now.entries.len(), expected.entries.len(), "{how}");
    assert_eq!(now.recording(APP), expected.recording(APP), "{how}");
    let more: Vec<_> = now.strays().difference(left).cloned().collect();
    assert!(more.is_empty(), "{how}: {more:?} {second:?}");
}

/// Loads while one call fails, and once more. Gives back the call that was struck and whether the load ended well; none
/// where the call did not come, since calls under way side by side may change places.
async fn one_call_fails(
    medium: Medium,
    clean: &Clean,
    number: u64,
    (effect, answer): (Effect, Answer),
) -> Option<(Call, bool)> {
    let place = Place::holding(medium, &clean.case.base).await;
    place.plan.add(Rule::call(number).fails(effect, answer));
    let first = place.load(&clean.case.work).await;
    let struck = place.plan.calls().into_iter().find(|call| call.outcome == Ended::Faulted)?;
    let how = format!("{} on {medium:?}: {effect:?} {answer:?} strikes {struck:?}", clean.case.name);
    if let Err(error) = &first {
        let expected = match answer {
            Answer::Status(403) => ErrorKind::Invalid,
            _ => ErrorKind::Retryable,
        };
        assert_eq!(error.kind(), expected, "{how}: {error:?}");
        let denied = matches!(answer, Answer::Status(403) | Answer::Io(_));
        assert!(!is_entry(&struck) || denied, "{how}: a commit goes on after one fault: {error:?}");
    }
    let left = check_first(clean, &place, &first, &how).await;
    check_again(clean, &place, &first, &left, &how).await;
    Some((struck, first.is_ok()))
}

/// Every call of every contract, one at a time, in every way.
async fn each_call_fails(medium: Medium) {
    let (mut kinds, mut runs, mut failed) = (BTreeSet::new(), 0, 0);
    for clean in clean(medium).await {
        for call in &clean.calls {
            // How the store is probed is the same for all, so one of them stands for it.
            if is_probe(call.path.as_ref()) && clean.case.work.load.identities.is_empty() {
                continue;
            }
            for fault in faults(medium, call) {
                runs += 1;
                // All that fails is told, not the first only.
                match AssertUnwindSafe(one_call_fails(medium, &clean, call.number, fault)).catch_unwind().await {
                    Ok(Some((struck, ended_well))) => {
                        kinds.insert((struck.operation as u8, is_entry(&struck), ended_well));
                    }
                    Ok(None) => {}
                    Err(_) => failed += 1,
                }
            }
        }
    }
    assert_eq!(failed, 0, "of {runs} failures of one call");
    // A commit that is answered with a fault lands; a data file that cannot be written fails the load; a table that could
    // not be listed is looked for once more; and so on.
    for expected in [
        (Operation::Put, true, true),
        (Operation::Put, true, false),
        (Operation::Put, false, true),
        (Operation::Put, false, false),
        (Operation::Get, false, false),
        (Operation::List, false, true),
    ] {
        assert!(kinds.contains(&(expected.0 as u8, expected.1, expected.2)), "{expected:?} of {kinds:?}");
    }
    assert!(runs > 200, "{runs}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_call_fails_on_disk() {
    each_call_fails(Medium::Disk).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_call_fails_in_an_object_store() {
    each_call_fails(Medium::Memory).await;
}
