//! What an answer means and what to do next: the commit's decisions, without IO, clock or chance.
//!
//! A version is *resolved* once the log says whose entry it holds. The rules, which the tests hold on every path:
//!
//! - an answer other than "done" never decides anything; the entry itself does, read back and compared by token;
//! - the same version is put again until it is resolved, which put-if-absent makes safe however late an earlier put lands;
//! - a version is tried only when the one before it is resolved;
//! - giving up is "nothing changed" only when no put of ours can still land.

use super::rules::{CommitRule, Rules};

/// How the store answered a put-if-absent of the log entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PutAnswer {
    /// Stored.
    Done,
    /// Something is there, or a conditional request raced another (S3 answers 409, and nothing may be stored).
    Exists,
    /// The store said no for a reason that trying again does not cure: credentials, a full disk, a missing bucket.
    Denied,
    /// No answer, or one that does not say whether the entry was stored.
    Failed,
}

/// What reading the entry back showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ReadAnswer {
    /// The entry carries our token.
    Ours,
    /// Another writer's entry, which leaves our change right.
    Disjoint,
    /// Another writer's entry, after which our change must be planned again.
    Touching,
    /// No entry.
    Absent,
    /// It could not be read.
    Failed,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    /// The put that was asked for was answered.
    Put(PutAnswer),
    /// The read that was asked for was answered.
    Read(ReadAnswer),
    /// The wait that was asked for is over.
    Waited,
    /// The wait that was asked for would pass the deadline.
    TimeUp,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// Put our entry as this version, if absent.
    Put(u64),
    /// Read this version's entry.
    Read(u64),
    /// Wait, longer each `round` (from 0), with jitter; answer [`Event::TimeUp`] when the deadline would pass.
    Wait {
        /// Waits in a row for this version.
        round: u32,
    },
    /// It is over.
    End(End),
}

/// How an attempt ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum End {
    /// Our entry is this version.
    Landed(u64),
    /// This version is another writer's, and our change must be planned again on it or a later one.
    PlanAgain(u64),
    /// The store said no; nothing of ours is in the log or can still land.
    Denied,
    /// Time is up; nothing of ours is in the log or can still land.
    GaveUp,
    /// Time is up, and a put of this version may have landed or may still land.
    Unknown(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    Putting,
    Reading {
        /// The last put's answer.
        after: PutAnswer,
    },
    /// Reading a version before it is put.
    Looking,
    WaitingToPut,
    WaitingToRead {
        after: PutAnswer,
    },
    WaitingToLook,
    Ended(End),
}

/// Lands one entry at the first free version from a given one on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Machine {
    version: u64,
    phase: Phase,
    /// Whether an unanswered put of `version` may have landed or may still land.
    doubt: bool,
    round: u32,
    /// Versions lost in a row.
    lost: u32,
    rules: Rules,
}

/// Losing this often in a row means that others are ahead: the entries that are there are read before the next put, which
/// catches up faster than a put and a read for each.
const LOST_BEFORE_LOOK: u32 = 2;

/// After so many versions lost in a row a wait lets others past, and sees to the deadline.
const LOST_BEFORE_WAIT: u32 = 3;

impl Machine {
    /// Starts at `version`, the one after the snapshot that the change was planned on.
    pub(crate) fn start(version: u64, rules: Rules) -> (Self, Action) {
        (Self { version, phase: Phase::Putting, doubt: false, round: 0, lost: 0, rules }, Action::Put(version))
    }

    /// The version that is not yet resolved.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Takes the answer to the last action and says the next one. An event that does not answer it repeats the action.
    pub(crate) fn on(&mut self, event: Event) -> Action {
        match (self.phase, event) {
            (Phase::Putting, Event::Put(answer)) => self.put_answered(answer),
            (Phase::Reading { after }, Event::Read(answer)) => self.read_answered(answer, after),
            (Phase::Looking, Event::Read(answer)) => self.looked(answer),
            (Phase::WaitingToPut, Event::Waited) => self.put(),
            (Phase::WaitingToRead { after }, Event::Waited) => self.read(after),
            (Phase::WaitingToLook, Event::Waited) => self.look(),
            (Phase::WaitingToPut | Phase::WaitingToRead { .. } | Phase::WaitingToLook, Event::TimeUp) => {
                self.end(if self.doubt { End::Unknown(self.version) } else { End::GaveUp })
            }
            (phase, _) => self.action_of(phase),
        }
    }

    fn put_answered(&mut self, answer: PutAnswer) -> Action {
        match answer {
            PutAnswer::Done => self.end(End::Landed(self.version)),
            PutAnswer::Denied => self.read(answer),
            PutAnswer::Exists if !self.rules.keep(CommitRule::ReadBack) => self.end(End::PlanAgain(self.version)),
            PutAnswer::Exists | PutAnswer::Failed => {
                self.doubt = true;
                self.read(answer)
            }
        }
    }

    fn read_answered(&mut self, answer: ReadAnswer, after: PutAnswer) -> Action {
        let denied = after == PutAnswer::Denied && !self.doubt;
        match answer {
            ReadAnswer::Ours => self.end(End::Landed(self.version)),
            ReadAnswer::Touching => self.end(End::PlanAgain(self.version)),
            ReadAnswer::Disjoint => self.lost(),
            ReadAnswer::Absent | ReadAnswer::Failed if denied => self.end(End::Denied),
            ReadAnswer::Absent if self.takes_for_lost(after) => self.lost(),
            ReadAnswer::Absent => self.wait(Phase::WaitingToPut),
            ReadAnswer::Failed => self.wait(Phase::WaitingToRead { after }),
        }
    }

    /// An absent entry is lost only where a rule is broken.
    fn takes_for_lost(&self, after: PutAnswer) -> bool {
        !self.rules.keep(match after {
            PutAnswer::Exists => CommitRule::ConflictIsNoLoss,
            _ => CommitRule::ResolveFirst,
        })
    }

    /// No put of this version was sent, so what is there is another writer's.
    fn looked(&mut self, answer: ReadAnswer) -> Action {
        match answer {
            ReadAnswer::Ours => self.end(End::Landed(self.version)),
            ReadAnswer::Touching => self.end(End::PlanAgain(self.version)),
            ReadAnswer::Disjoint => self.lost(),
            ReadAnswer::Absent | ReadAnswer::Failed => self.put(),
        }
    }

    /// Another writer's entry is this version: ours goes to the next one.
    fn lost(&mut self) -> Action {
        self.version += 1;
        self.doubt = false;
        self.round = 0;
        self.lost += 1;
        if self.lost < LOST_BEFORE_LOOK {
            self.put()
        } else if self.lost.is_multiple_of(LOST_BEFORE_WAIT) {
            self.wait(Phase::WaitingToLook)
        } else {
            self.look()
        }
    }

    fn look(&mut self) -> Action {
        self.become_phase(Phase::Looking)
    }

    fn put(&mut self) -> Action {
        self.become_phase(Phase::Putting)
    }

    fn read(&mut self, after: PutAnswer) -> Action {
        self.become_phase(Phase::Reading { after })
    }

    fn wait(&mut self, phase: Phase) -> Action {
        let action = self.become_phase(phase);
        self.round += 1;
        action
    }

    fn end(&mut self, end: End) -> Action {
        self.become_phase(Phase::Ended(end))
    }

    fn become_phase(&mut self, phase: Phase) -> Action {
        self.phase = phase;
        self.action_of(phase)
    }

    fn action_of(&self, phase: Phase) -> Action {
        match phase {
            Phase::Putting => Action::Put(self.version),
            Phase::Reading { .. } | Phase::Looking => Action::Read(self.version),
            Phase::WaitingToPut | Phase::WaitingToRead { .. } | Phase::WaitingToLook => {
                Action::Wait { round: self.round }
            }
            Phase::Ended(end) => Action::End(end),
        }
    }
}

#[cfg(test)]
mod tests;
