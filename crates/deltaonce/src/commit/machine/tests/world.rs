//! A log, a store that fails, writers that are run again, and rivals. Only the writers' decisions are the product's own.

use super::*;

/// Whom a writer's change depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Writes {
    /// It looks at no row: whatever others commit, it holds.
    Appends,
    /// It looks at rows and takes files away: others' rows and removals touch it.
    Replaces,
}

/// The writers, each with its load's identity, and the bounds of what is explored.
#[derive(Debug)]
pub(super) struct Loads {
    pub(super) writers: &'static [(Writes, Option<u8>)],
    /// Entries of other tools.
    pub(super) rivals: u8,
    /// Answers that are not the truth, and crashes, over all writers.
    pub(super) faults: u8,
    /// How often one load is run.
    pub(super) runs: usize,
}

/// What another tool commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Rival {
    /// Rows that a replace may cover.
    Rows,
    /// A deletion or a compaction of files that a replace relies on.
    Removal,
    /// Something that touches nobody.
    Elsewhere,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Entry {
    /// By run `run` of `writer`, planned on the versions below `snapshot`.
    Ours {
        writer: usize,
        run: usize,
        snapshot: u64,
    },
    Rival(Rival),
}

/// One process that does a writer's load.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Run {
    state: State,
    files_deleted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum State {
    Committing {
        snapshot: u64,
        machine: Machine,
        action: Action,
    },
    /// A rival was first, and its entry was read.
    PlanningAgain,
    Crashed,
    Ended(Outcome),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Outcome {
    Committed(u64),
    Skipped,
    Denied,
    GaveUp,
    Unknown,
}

impl Outcome {
    fn says_nothing_changed(self) -> bool {
        matches!(self, Self::Denied | Self::GaveUp)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Committed(_) => "committed",
            Self::Skipped => "skipped",
            Self::Denied => "denied",
            Self::GaveUp => "gave up",
            Self::Unknown => "unknown",
        }
    }
}

/// What the store does with a put, and what it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Put {
    /// The truth.
    Answered,
    /// Stored, if the version is free; the answer is another one.
    StoredBut(PutAnswer),
    /// Not stored.
    LostBut(PutAnswer),
    /// Not stored yet, and no answer comes.
    Late,
}

/// What happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// Nothing has happened.
    Start,
    /// A process begins the writer's load, or begins it again.
    Runs { writer: usize },
    /// A put is carried out.
    Puts { writer: usize, how: Put },
    /// A read is answered with the truth.
    Reads { writer: usize },
    /// A read fails.
    ReadFails { writer: usize },
    /// A wait is over, or a plan is made again.
    GoesOn { writer: usize },
    /// The deadline comes.
    TimeIsUp { writer: usize },
    /// The process dies; where it was about to put, it had perhaps done so.
    Crashes { writer: usize, putting: Option<Put> },
    /// A put that nobody waits for any more is carried out.
    Lands { writer: usize },
    /// Another tool commits.
    Rival(Rival),
}

/// A put that was sent and may still be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Sent {
    version: u64,
    writer: usize,
    run: usize,
    snapshot: u64,
}

/// All that is.
#[derive(Debug, Clone)]
pub(super) struct World {
    loads: &'static Loads,
    rules: Rules,
    log: Vec<Option<Entry>>,
    sent: Vec<Sent>,
    /// By writer.
    runs: Vec<Vec<Run>>,
    rivals_left: u8,
    faults_left: u8,
}

impl std::hash::Hash for World {
    fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
        (&self.log, &self.sent, &self.runs, self.rivals_left, self.faults_left).hash(hasher);
    }
}

impl World {
    pub(super) fn start(loads: &'static Loads, rules: Rules) -> Self {
        Self {
            loads,
            rules,
            log: Vec::new(),
            sent: Vec::new(),
            runs: vec![Vec::new(); loads.writers.len()],
            rivals_left: loads.rivals,
            faults_left: loads.faults,
        }
    }

    /// How loads have ended.
    pub(super) fn ends(&self) -> impl Iterator<Item = &'static str> {
        self.runs.iter().flatten().filter_map(|run| match run.state {
            State::Ended(outcome) => Some(outcome.name()),
            _ => None,
        })
    }

    /// The versions that a reader sees: up to the first that is missing.
    fn latest(&self) -> u64 {
        self.log.iter().take_while(|entry| entry.is_some()).count() as u64
    }

    fn entry(&self, version: u64) -> Option<Entry> {
        self.log.get(version as usize).copied().flatten()
    }

    fn store(&mut self, version: u64, entry: Entry) -> bool {
        let at = version as usize;
        if self.log.len() <= at {
            self.log.resize(at + 1, None);
        }
        let free = self.log[at].is_none();
        if free {
            self.log[at] = Some(entry);
        }
        free
    }

    fn identity(&self, writer: usize) -> Option<u8> {
        self.loads.writers[writer].1
    }

    fn same_identity(&self, writer: usize, entry: Entry) -> bool {
        match entry {
            Entry::Ours { writer: other, .. } => {
                self.identity(writer).is_some() && self.identity(writer) == self.identity(other)
            }
            Entry::Rival(_) => false,
        }
    }

    /// Whether an entry holds rows or takes files that a change of `writer` looked at.
    fn touches(&self, entry: Entry, writer: usize) -> bool {
        self.loads.writers[writer].0 == Writes::Replaces && entry != Entry::Rival(Rival::Elsewhere)
    }

    fn read(&self, version: u64, writer: usize) -> ReadAnswer {
        let run = self.runs[writer].len() - 1;
        match self.entry(version) {
            None => ReadAnswer::Absent,
            Some(Entry::Ours { writer: by, run: of, .. }) if (by, of) == (writer, run) => ReadAnswer::Ours,
            Some(entry) => {
                let twin = self.rules.keep(CommitRule::IdentityInEachAttempt) && self.same_identity(writer, entry);
                let touched = self.rules.keep(CommitRule::ReadSet) && self.touches(entry, writer);
                if twin || touched { ReadAnswer::Touching } else { ReadAnswer::Disjoint }
            }
        }
    }

    fn is_applied(&self, writer: usize) -> bool {
        (0..self.latest()).filter_map(|version| self.entry(version)).any(|entry| self.same_identity(writer, entry))
    }

    /// Plans on the log as it is.
    fn plan(&self) -> State {
        let (machine, action) = Machine::start(self.latest(), self.rules);
        State::Committing { snapshot: self.latest(), machine, action }
    }

    /// Sets the last run's state, and does to its files what the product does when a load ends like this.
    fn becomes(mut self, writer: usize, state: State) -> Self {
        let deletes = match state {
            State::Ended(Outcome::Unknown) => !self.rules.keep(CommitRule::KeepAfterUnknown),
            State::Ended(outcome) => !matches!(outcome, Outcome::Committed(_)),
            _ => false,
        };
        if let Some(run) = self.runs[writer].last_mut() {
            *run = Run { state, files_deleted: deletes };
        }
        self
    }

    fn on(&self, writer: usize, event: Event) -> Self {
        let Some(Run { state: State::Committing { snapshot, machine, .. }, .. }) = self.runs[writer].last() else {
            unreachable!("only a commit is answered");
        };
        let mut machine = machine.clone();
        let action = machine.on(event);
        // It only makes waits longer, and there is no time here.
        machine.round = 0;
        let state = match action {
            Action::End(End::Landed(version)) => State::Ended(Outcome::Committed(version)),
            Action::End(End::PlanAgain(_)) => State::PlanningAgain,
            Action::End(End::Denied) => State::Ended(Outcome::Denied),
            Action::End(End::GaveUp) => State::Ended(Outcome::GaveUp),
            Action::End(End::Unknown(_)) => State::Ended(Outcome::Unknown),
            _ => State::Committing { snapshot: *snapshot, machine, action },
        };
        self.clone().becomes(writer, state)
    }

    fn fault(&self) -> Option<Self> {
        let faults_left = self.faults_left.checked_sub(1)?;
        Some(Self { faults_left, ..self.clone() })
    }

    pub(super) fn next(&self) -> Vec<(Step, Self)> {
        let mut next = Vec::new();
        if let Some(rivals_left) = self.rivals_left.checked_sub(1) {
            for rival in [Rival::Rows, Rival::Removal, Rival::Elsewhere] {
                let mut world = Self { rivals_left, ..self.clone() };
                world.store(self.latest(), Entry::Rival(rival));
                next.push((Step::Rival(rival), world));
            }
        }
        for (i, &Sent { version, writer, run, snapshot }) in self.sent.iter().enumerate() {
            let mut world = self.clone();
            world.sent.remove(i);
            world.store(version, Entry::Ours { writer, run, snapshot });
            next.push((Step::Lands { writer }, world));
        }
        for writer in 0..self.runs.len() {
            self.next_of(writer, &mut next);
        }
        next
    }

    fn next_of(&self, writer: usize, next: &mut Vec<(Step, Self)>) {
        match self.runs[writer].last().map(|run| &run.state) {
            None | Some(State::Crashed | State::Ended(_)) => {
                if self.may_run(writer) {
                    let mut world = self.clone();
                    let state = if self.is_applied(writer) { State::Ended(Outcome::Skipped) } else { self.plan() };
                    world.runs[writer].push(Run { state: State::Crashed, files_deleted: false });
                    next.push((Step::Runs { writer }, world.becomes(writer, state)));
                }
            }
            Some(State::PlanningAgain) => {
                let looks = self.rules.keep(CommitRule::IdentityInEachAttempt);
                let state = if looks && self.is_applied(writer) { State::Ended(Outcome::Skipped) } else { self.plan() };
                next.push((Step::GoesOn { writer }, self.clone().becomes(writer, state)));
                let late = self.clone().becomes(writer, State::Ended(Outcome::GaveUp));
                next.push((Step::TimeIsUp { writer }, late));
                next.extend(self.crash(writer, None));
            }
            Some(&State::Committing { action, .. }) => match action {
                Action::Put(version) => self.puts(writer, version, next),
                Action::Read(version) => {
                    let truth = Event::Read(self.read(version, writer));
                    next.push((Step::Reads { writer }, self.on(writer, truth)));
                    let fails = self.fault().map(|world| world.on(writer, Event::Read(ReadAnswer::Failed)));
                    next.extend(fails.map(|world| (Step::ReadFails { writer }, world)));
                    next.extend(self.crash(writer, None));
                }
                Action::Wait { .. } => {
                    next.push((Step::GoesOn { writer }, self.on(writer, Event::Waited)));
                    next.push((Step::TimeIsUp { writer }, self.on(writer, Event::TimeUp)));
                    next.extend(self.crash(writer, None));
                }
                Action::End(_) => unreachable!("an end is an outcome"),
            },
        }
    }

    /// Whether the load is to be run: for the first time, or again because that is safe and not done with.
    fn may_run(&self, writer: usize) -> bool {
        let again = match self.runs[writer].last().map(|run| &run.state) {
            None => true,
            Some(State::Ended(outcome)) if outcome.says_nothing_changed() => true,
            Some(State::Crashed | State::Ended(Outcome::Unknown)) => self.identity(writer).is_some(),
            _ => false,
        };
        again && self.runs[writer].len() < self.loads.runs
    }

    fn crash(&self, writer: usize, putting: Option<Put>) -> Option<(Step, Self)> {
        Some((Step::Crashes { writer, putting }, self.fault()?.becomes(writer, State::Crashed)))
    }

    fn puts(&self, writer: usize, version: u64, next: &mut Vec<(Step, Self)>) {
        use PutAnswer::{Denied, Done, Exists, Failed};
        let Some(Run { state: State::Committing { snapshot, .. }, .. }) = self.runs[writer].last() else { return };
        let (run, snapshot) = (self.runs[writer].len() - 1, *snapshot);
        let mut stored = self.clone();
        let done = stored.store(version, Entry::Ours { writer, run, snapshot });
        let truth = stored.on(writer, Event::Put(if done { Done } else { Exists }));
        next.push((Step::Puts { writer, how: Put::Answered }, truth));
        let mut late = self.clone();
        late.sent.push(Sent { version, writer, run, snapshot });
        late.sent.sort_by_key(|sent| (sent.writer, sent.run, sent.version));
        for (how, world, answer) in [
            (Put::StoredBut(Failed), &stored, Failed),
            (Put::StoredBut(Exists), &stored, Exists),
            (Put::LostBut(Failed), self, Failed),
            (Put::LostBut(Exists), self, Exists),
            (Put::LostBut(Denied), self, Denied),
            (Put::Late, &late, Failed),
        ] {
            let faulty = world.fault().map(|world| world.on(writer, Event::Put(answer)));
            next.extend(faulty.map(|world| (Step::Puts { writer, how }, world)));
        }
        for (how, world) in [(Put::LostBut(Failed), self), (Put::StoredBut(Failed), &stored), (Put::Late, &late)] {
            next.extend(world.crash(writer, Some(how)));
        }
    }

    /// What must hold in every state.
    pub(super) fn check(&self) -> Result<(), String> {
        let entries = || (0..).zip(&self.log).filter_map(|(version, entry)| Some((version, (*entry)?)));
        if self.log.iter().any(Option::is_none) {
            return Err("a version was tried while an earlier one was unresolved".to_owned());
        }
        for (version, entry) in entries() {
            let Entry::Ours { writer, run, snapshot } = entry else { continue };
            let same_load = |other: Entry| match other {
                Entry::Ours { writer: by, .. } => by == writer || self.same_identity(writer, other),
                Entry::Rival(_) => false,
            };
            if entries().filter(|(_, other)| same_load(*other)).count() > 1 {
                return Err("a load is applied twice".to_owned());
            }
            if (snapshot..version).filter_map(|between| self.entry(between)).any(|other| self.touches(other, writer)) {
                return Err("a change landed on rows that it had not seen".to_owned());
            }
            let run = &self.runs[writer][run];
            if run.files_deleted {
                return Err("an entry names files that were deleted".to_owned());
            }
            match run.state {
                State::Ended(Outcome::Committed(at)) if at != version => {
                    return Err("a load is acknowledged at another version than its own".to_owned());
                }
                State::Ended(outcome) if outcome.says_nothing_changed() => {
                    return Err("a load that landed was said to have changed nothing".to_owned());
                }
                State::Ended(Outcome::Skipped) => {
                    return Err("a load that landed was said to be skipped".to_owned());
                }
                _ => {}
            }
        }
        for (writer, runs) in self.runs.iter().enumerate() {
            for (number, run) in runs.iter().enumerate() {
                match run.state {
                    State::Ended(Outcome::Committed(version)) => {
                        let Some(Entry::Ours { writer: by, run: of, .. }) = self.entry(version) else {
                            return Err("a load is acknowledged and absent".to_owned());
                        };
                        if (by, of) != (writer, number) {
                            return Err("a load is acknowledged by another's entry".to_owned());
                        }
                    }
                    State::Ended(Outcome::Skipped) if !self.is_applied(writer) => {
                        return Err("a load was skipped that nobody applied".to_owned());
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
