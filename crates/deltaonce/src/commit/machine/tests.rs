//! The machine among other writers, over every path within stated bounds.

#![allow(clippy::disallowed_macros, reason = "how many states there are, and how a rule breaks, is part of the answer")]

mod explore;
mod world;

use std::collections::BTreeSet;

use super::*;
use explore::{Path, explore};
use world::{Loads, World, Writes};

/// Two writers of one load: an append that looks at no row.
const TWINS_APPEND: Loads =
    Loads { writers: &[(Writes::Appends, Some(0)), (Writes::Appends, Some(0))], rivals: 1, faults: 3, runs: 3 };

/// Two writers of one load: a replace, which every rival's rows and files may touch.
const TWINS_REPLACE: Loads =
    Loads { writers: &[(Writes::Replaces, Some(0)), (Writes::Replaces, Some(0))], rivals: 1, faults: 3, runs: 3 };

/// A load without an identity beside one with: it is run again only when it was told that nothing changed.
const STRANGERS: Loads =
    Loads { writers: &[(Writes::Appends, None), (Writes::Replaces, Some(0))], rivals: 1, faults: 3, runs: 3 };

/// Two writers of one load, and a third that replaces what they append.
const THREE: Loads = Loads {
    writers: &[(Writes::Appends, Some(0)), (Writes::Appends, Some(0)), (Writes::Replaces, None)],
    rivals: 1,
    faults: 2,
    runs: 2,
};

fn every_path_keeps_the_rules(loads: &'static Loads) {
    let mut ends = BTreeSet::new();
    let explored = explore(World::start(loads, Rules::default()), |world| ends.extend(world.ends()));
    let states = explored.unwrap_or_else(|path| panic!("{path}"));
    println!("{states} states of {loads:?}");
    assert!(states > 1_000_000, "only {states} states were visited");
    let all = ["committed", "denied", "gave up", "skipped", "unknown"];
    assert_eq!(ends, BTreeSet::from(all), "an end is never reached");
}

#[test]
fn every_path_of_two_processes_with_one_append_keeps_the_rules() {
    every_path_keeps_the_rules(&TWINS_APPEND);
}

#[test]
fn every_path_of_two_processes_with_one_replace_keeps_the_rules() {
    every_path_keeps_the_rules(&TWINS_REPLACE);
}

#[test]
fn every_path_of_two_loads_keeps_the_rules() {
    every_path_keeps_the_rules(&STRANGERS);
}

#[test]
fn every_path_of_three_writers_keeps_the_rules() {
    every_path_keeps_the_rules(&THREE);
}

/// The shortest way of these loads that shows a rule to be broken.
fn counterexample(rule: CommitRule, loads: &'static Loads) -> Path {
    let explored = explore(World::start(loads, Rules::without(rule)), |_| {});
    explored.err().unwrap_or_else(|| panic!("nobody notices that {rule:?} is broken"))
}

#[test]
fn each_broken_rule_has_a_path_that_shows_it() {
    let broken = [
        (CommitRule::ReadBack, &TWINS_APPEND, "an entry names files that were deleted"),
        (CommitRule::ConflictIsNoLoss, &TWINS_APPEND, "a version was tried while an earlier one was unresolved"),
        (CommitRule::IdentityInEachAttempt, &TWINS_APPEND, "a load is applied twice"),
        (CommitRule::ReadSet, &TWINS_REPLACE, "a change landed on rows that it had not seen"),
        (CommitRule::KeepAfterUnknown, &TWINS_APPEND, "an entry names files that were deleted"),
        (CommitRule::ResolveFirst, &TWINS_APPEND, "a version was tried while an earlier one was unresolved"),
    ];
    assert_eq!(broken.map(|(rule, ..)| rule), CommitRule::ALL);
    for (rule, loads, expected) in broken {
        let path = counterexample(rule, loads);
        println!("without {rule:?}: {path}");
        assert_eq!(path.broken, expected);
    }
}

#[test]
fn one_that_is_far_behind_reads_until_it_has_caught_up() {
    let (mut machine, mut action) = Machine::start(0, Rules::default());
    let (mut puts, mut waits) = (0, 0);
    while action != Action::End(End::Landed(60)) {
        action = machine.on(match action {
            Action::Put(version) => {
                puts += 1;
                Event::Put(if version < 60 { PutAnswer::Exists } else { PutAnswer::Done })
            }
            Action::Read(version) => Event::Read(if version < 60 { ReadAnswer::Disjoint } else { ReadAnswer::Absent }),
            Action::Wait { round } => {
                assert_eq!(round, 0, "others got on, so no wait is longer than the first");
                waits += 1;
                Event::Waited
            }
            Action::End(_) => unreachable!("{action:?}"),
        });
    }
    assert_eq!(puts, 3, "two lost, and its own");
    assert_eq!(waits, 20);
}

#[test]
fn losing_for_ever_ends_with_the_deadline() {
    let (mut machine, mut action) = Machine::start(0, Rules::default());
    for _ in 0..1_000 {
        action = machine.on(match action {
            Action::Put(_) => Event::Put(PutAnswer::Exists),
            Action::Read(_) => Event::Read(ReadAnswer::Disjoint),
            Action::Wait { .. } => Event::TimeUp,
            Action::End(end) => {
                assert_eq!(end, End::GaveUp);
                return;
            }
        });
    }
    panic!("it goes on: {action:?}");
}
