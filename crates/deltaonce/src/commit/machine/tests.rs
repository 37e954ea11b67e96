//! Every path of the machine against a log that is a plain vector, within stated bounds.

use std::collections::{HashSet, VecDeque};

use super::*;

/// Whose entry a version holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Us,
    Disjoint,
    Touching,
}

/// A store that may lose answers and store late, one writer of ours, and rivals.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    machine: Machine,
    action: Action,
    log: Vec<Holder>,
    /// Puts that were sent, not stored, and may still be.
    in_flight: Vec<u64>,
    steps: u32,
}

const VERSIONS: usize = 3;
const STEPS: u32 = 12;

impl World {
    fn start() -> Self {
        let (machine, action) = Machine::start(0);
        Self { machine, action, log: Vec::new(), in_flight: Vec::new(), steps: 0 }
    }

    fn holder(&self, version: u64) -> Option<Holder> {
        self.log.get(version as usize).copied()
    }

    fn store(&mut self, version: u64, holder: Holder) -> bool {
        let free = self.log.len() as u64 == version;
        if free {
            self.log.push(holder);
        }
        free
    }

    fn answer(&self, event: Event) -> Self {
        let mut next = self.clone();
        next.steps += 1;
        next.action = next.machine.on(event);
        next
    }

    fn next(&self) -> Vec<Self> {
        let mut worlds = Vec::new();
        for rival in [Holder::Disjoint, Holder::Touching] {
            if self.log.len() < VERSIONS {
                let mut next = self.clone();
                next.log.push(rival);
                worlds.push(next);
            }
        }
        for (i, &version) in self.in_flight.iter().enumerate() {
            let mut next = self.clone();
            next.in_flight.remove(i);
            next.store(version, Holder::Us);
            worlds.push(next);
        }
        if self.steps >= STEPS {
            return worlds;
        }
        match self.action {
            Action::Put(version) => {
                let mut stored = self.clone();
                let done = stored.store(version, Holder::Us);
                worlds.push(stored.answer(Event::Put(if done { PutAnswer::Done } else { PutAnswer::Exists })));
                worlds.push(stored.answer(Event::Put(PutAnswer::Failed)));
                worlds.push(stored.answer(Event::Put(PutAnswer::Exists)));
                worlds.push(self.answer(Event::Put(PutAnswer::Failed)));
                worlds.push(self.answer(Event::Put(PutAnswer::Exists)));
                worlds.push(self.answer(Event::Put(PutAnswer::Denied)));
                let mut late = self.answer(Event::Put(PutAnswer::Failed));
                late.in_flight.push(version);
                worlds.push(late);
            }
            Action::Read(version) => {
                worlds.push(self.answer(Event::Read(match self.holder(version) {
                    Some(Holder::Us) => ReadAnswer::Ours,
                    Some(Holder::Disjoint) => ReadAnswer::Disjoint,
                    Some(Holder::Touching) => ReadAnswer::Touching,
                    None => ReadAnswer::Absent,
                })));
                worlds.push(self.answer(Event::Read(ReadAnswer::Failed)));
            }
            Action::Wait { .. } => {
                worlds.push(self.answer(Event::Waited));
                worlds.push(self.answer(Event::TimeUp));
            }
            Action::End(_) => {}
        }
        worlds
    }

    fn check(&self) {
        let ours: Vec<u64> =
            (0..).zip(&self.log).filter(|(_, holder)| **holder == Holder::Us).map(|(version, _)| version).collect();
        assert!(ours.len() <= 1, "the load landed twice: {self:?}");
        if let Action::Put(version) = self.action {
            assert!(
                (0..version).all(|earlier| matches!(self.holder(earlier), Some(Holder::Disjoint))),
                "version {version} was tried while an earlier one was unresolved: {self:?}"
            );
        }
        if let Action::End(end) = self.action {
            match end {
                End::Landed(version) => assert_eq!(ours, [version], "acknowledged and absent: {self:?}"),
                End::PlanAgain(_) | End::Denied | End::GaveUp => {
                    assert!(ours.is_empty(), "said to have changed nothing, and landed: {self:?}");
                    let can_land = |version: &u64| *version >= self.log.len() as u64;
                    assert!(!self.in_flight.iter().any(can_land), "may still land after giving up: {self:?}");
                }
                End::Unknown(_) => {}
            }
        }
    }
}

#[test]
fn every_path_keeps_the_rules_and_every_end_is_reached() {
    let mut seen = HashSet::new();
    let mut queue = VecDeque::from([World::start()]);
    let mut ends = HashSet::new();
    while let Some(world) = queue.pop_front() {
        if !seen.insert(world.clone()) {
            continue;
        }
        world.check();
        if let Action::End(end) = world.action {
            ends.insert(std::mem::discriminant(&end));
        }
        queue.extend(world.next());
    }
    assert_eq!(ends.len(), 5, "an end is never reached");
    assert!(seen.len() > 10_000, "only {} states were visited", seen.len());
}

#[test]
fn one_that_is_far_behind_reads_until_it_has_caught_up() {
    let (mut machine, mut action) = Machine::start(0);
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
    let (mut machine, mut action) = Machine::start(0);
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
