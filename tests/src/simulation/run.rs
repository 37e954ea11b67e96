//! One run: the schedule, which lets one process go on at a time, starts loads again that have to be, and lets other
//! tools in between.

use std::collections::VecDeque;
use std::sync::Arc;

use deltaonce::fault::CommitRule;
use deltaonce::{ErrorKind, Location, Outcome};
use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::path::Path;

use super::dice::Dice;
use super::jobs::{Job, Setup};
use super::process::{Ended, Next, Process};
use super::rivals::{self, Rival, TABLE};
use super::sea::{Sea, at_once};
use super::store::is_entry;

/// How often a load is started while things go wrong; after that it waits for better weather.
const STARTS: u32 = 4;

/// One process that has ended, or what is known of it.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) process: String,
    pub(super) job: Job,
    pub(super) token: Option<String>,
    /// Entries of the log when it started and when it ended.
    pub(super) started: usize,
    pub(super) ended: usize,
    pub(super) how: Ended,
}

/// All that happened.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) sea: Arc<Sea>,
    pub(super) records: Vec<Record>,
    pub(super) rivals: Vec<Rival>,
}

/// A writer: its jobs, and the one it is at.
struct Writer {
    jobs: VecDeque<Job>,
    starts: u32,
    process: Option<(Process, usize)>,
    /// The point at which others have had their turn already.
    passed: Option<String>,
}

struct Schedule<'a> {
    run: Run,
    location: &'a Location,
    broken: Option<CommitRule>,
    writers: Vec<Writer>,
    /// Loads that wait for better weather.
    postponed: Vec<Job>,
}

/// Does all that the dice's seed says, with one rule of the commit broken where that is asked.
pub(super) fn run(dice: Dice, location: &Location, broken: Option<CommitRule>) -> Run {
    let setup = Setup::of(&dice);
    let run = Run { sea: Arc::new(Sea::new(dice)), records: Vec::new(), rivals: Vec::new() };
    let writers =
        setup.writers.into_iter().map(|jobs| Writer { jobs: jobs.into(), starts: 0, process: None, passed: None });
    let writers = writers.collect();
    let mut schedule = Schedule { run, location, broken, writers, postponed: Vec::new() };
    if let Some(base) = setup.base {
        schedule.do_calmly(base, "base");
    }
    schedule.storm();
    while schedule.run.sea.land_one() {}
    for job in std::mem::take(&mut schedule.postponed) {
        let name = format!("{}#last", job.name);
        schedule.do_calmly(job, &name);
    }
    schedule.run
}

/// Entries of the log.
fn versions(sea: &Sea) -> usize {
    let listed: Vec<_> = at_once(sea.store.list(Some(&Path::from(TABLE))).try_collect()).expect("memory lists");
    listed.iter().filter(|meta| is_entry(&meta.location)).count()
}

impl Schedule<'_> {
    fn start(&self, name: String, job: &Job, calm: bool) -> (Process, usize) {
        self.run.sea.say(format!("{name} starts: {:?} {:?}", job.write, job.identity));
        let process = Process::start(name, self.run.sea.clone(), self.location, job, calm, self.broken);
        (process, versions(&self.run.sea))
    }

    fn do_calmly(&mut self, job: Job, name: &str) {
        let (process, started) = self.start(name.to_owned(), &job, true);
        loop {
            match process.life.next() {
                Next::Stands(point) => {
                    point.until.into_iter().for_each(|until| self.run.sea.passes_to(until));
                    process.life.go_on();
                }
                Next::Ended(how) => return self.record(&process, job, started, how),
            }
        }
    }

    /// All writers, until each has done its jobs or put them off.
    fn storm(&mut self) {
        let mut at = 0;
        let mut step = 0_u32;
        while let Some(next) = self.next_writer(at) {
            at = next;
            step += 1;
            assert!(step < 100_000, "the schedule does not come to an end");
            if self.writers[at].process.is_none() {
                let job = self.writers[at].jobs[0].clone();
                self.writers[at].starts += 1;
                let name = format!("{}#{}", job.name, self.writers[at].starts);
                self.writers[at].process = Some(self.start(name, &job, false));
            }
            let Some((process, _)) = &self.writers[at].process else { continue };
            match process.life.next() {
                Next::Stands(point) if self.writers[at].passed.as_ref() != Some(&point.name) => {
                    self.writers[at].passed = Some(point.name.clone());
                    self.others_act(&point.name);
                    // Who sleeps lets others run.
                    let switch = if point.until.is_some() { 800 } else { self.run.sea.weather.switch };
                    if self.run.sea.dice.happens(&format!("{} and others run", point.name), switch) {
                        at = self.other_writer(at, &point.name);
                    }
                }
                Next::Stands(point) => {
                    point.until.into_iter().for_each(|until| self.run.sea.passes_to(until));
                    process.life.go_on();
                }
                Next::Ended(how) => self.ended(at, how),
            }
        }
    }

    fn others_act(&mut self, point: &str) {
        let sea = self.run.sea.clone();
        if sea.dice.happens(&format!("{point} and what is late comes"), 150) {
            sea.land_one();
        }
        if sea.dice.happens(&format!("{point} and another tool acts"), sea.weather.rival) {
            self.run.rivals.extend(rivals::act(&sea, point));
        }
    }

    /// `at`, while it has something to do, and else the next one.
    fn next_writer(&self, at: usize) -> Option<usize> {
        (0..self.writers.len()).map(|i| (at + i) % self.writers.len()).find(|i| !self.writers[*i].jobs.is_empty())
    }

    fn other_writer(&self, at: usize, point: &str) -> usize {
        let others: Vec<usize> =
            (0..self.writers.len()).filter(|i| *i != at && !self.writers[*i].jobs.is_empty()).collect();
        if others.is_empty() { at } else { *self.run.sea.dice.pick(&format!("{point}, who?"), &others) }
    }

    fn ended(&mut self, at: usize, how: Ended) {
        let Some((process, started)) = self.writers[at].process.take() else { return };
        let job = self.writers[at].jobs[0].clone();
        let again = is_to_be_repeated(&job, &how);
        self.record(&process, job, started, how);
        if again && self.writers[at].starts < STARTS {
            return;
        }
        self.writers[at].starts = 0;
        let job = self.writers[at].jobs.pop_front();
        self.postponed.extend(job.filter(|_| again));
    }

    fn record(&mut self, process: &Process, job: Job, started: usize, how: Ended) {
        let sea = &self.run.sea;
        let name = process.life.name.clone();
        sea.say(match &how {
            Ended::Done(receipt) => match &receipt.outcome {
                Outcome::Skipped { by, recorded, at_version, .. } => {
                    format!("{name} skipped: {by} (recorded: {recorded} by version {at_version:?})")
                }
                outcome => format!("{name} {outcome:?}"),
            },
            Ended::Failed { kind, text } => format!("{name} {kind:?}: {text}"),
            Ended::Killed => format!("{name} is dead"),
            Ended::Panicked(words) => format!("{name} panicked: {words}"),
        });
        let token = process.life.token.get().map(|token| uuid(*token));
        let ended = versions(sea);
        self.run.records.push(Record { process: name, job, token, started, ended, how });
    }
}

/// Whether whoever schedules loads would run this one again.
fn is_to_be_repeated(job: &Job, how: &Ended) -> bool {
    match how {
        Ended::Done(_) | Ended::Panicked(_) => false,
        Ended::Killed => job.is_repeatable(),
        Ended::Failed { kind, .. } => match kind {
            ErrorKind::Retryable => true,
            // Rights that come and go.
            ErrorKind::Invalid => true,
            ErrorKind::Unknown => job.is_repeatable(),
            _ => false,
        },
    }
}

/// A number as the text of a UUID.
fn uuid(number: u128) -> String {
    let hex = format!("{number:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}
