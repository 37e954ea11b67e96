//! One process of a simulation: a load on threads of its own, which stand still at every storage call that others could
//! come between, until the schedule lets them go on. At any time at most one process runs.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use deltaonce::fault::CommitRule;
use deltaonce::{ErrorKind, Location, Receipt, Table};
use futures::FutureExt;
use tokio::sync::oneshot;

use super::host::SimulatedHost;
use super::jobs::Job;
use super::sea::Sea;
use super::store::SimulatedStore;
use crate::panics::words_of;

/// Real time after which a process that neither calls nor ends is taken for hung.
const HUNG: Duration = Duration::from_secs(120);

/// Where a process stands still.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) name: String,
    /// The time to which it sleeps, where it does.
    pub(super) until: Option<Duration>,
}

/// How a process ended.
#[derive(Debug, Clone)]
pub(super) enum Ended {
    Done(Box<Receipt>),
    Failed { kind: ErrorKind, text: String },
    Killed,
    Panicked(String),
}

/// What a process does next.
#[derive(Debug)]
pub(super) enum Next {
    Stands(Point),
    Ended(Ended),
}

#[derive(Debug, Default)]
struct State {
    dead: bool,
    standing: VecDeque<(Point, oneshot::Sender<()>)>,
    ended: Option<Ended>,
    calls: HashMap<String, u64>,
    draws: u64,
}

/// What the threads of a process share with the schedule.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) name: String,
    pub(super) sea: Arc<Sea>,
    /// Whether everything goes well for it.
    pub(super) calm: bool,
    pub(super) token: OnceLock<u128>,
    state: Mutex<State>,
    changed: Condvar,
}

impl Life {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names a call by what it asks and by how often this process has asked it.
    pub(super) fn name_call(&self, what: &str) -> String {
        let mut state = self.lock();
        let count = state.calls.entry(what.to_owned()).or_default();
        *count += 1;
        format!("{} {what} ({count})", self.name)
    }

    pub(super) fn draw(&self) -> u64 {
        let mut state = self.lock();
        state.draws += 1;
        state.draws
    }

    pub(super) fn is_dead(&self) -> bool {
        self.lock().dead
    }

    pub(super) fn kill(&self) {
        self.lock().dead = true;
    }

    /// Stands still until the schedule says otherwise. False: the process is dead, and nothing it asks is done.
    pub(super) async fn stand(&self, point: Point) -> bool {
        let (go, gone) = oneshot::channel();
        {
            let mut state = self.lock();
            if state.dead {
                return false;
            }
            state.standing.push_back((point, go));
        }
        self.changed.notify_all();
        let _ = gone.await;
        !self.is_dead()
    }

    /// Waits until the process stands or has ended.
    pub(super) fn next(&self) -> Next {
        let state = self.lock();
        let waiting = |state: &mut State| state.standing.is_empty() && state.ended.is_none();
        let (state, time) =
            self.changed.wait_timeout_while(state, HUNG, waiting).unwrap_or_else(PoisonError::into_inner);
        assert!(!time.timed_out(), "{} hangs", self.name);
        match (state.standing.front(), &state.ended) {
            (Some((point, _)), _) => Next::Stands(point.clone()),
            (None, Some(ended)) => Next::Ended(ended.clone()),
            (None, None) => unreachable!("it was waited for"),
        }
    }

    /// Lets it go on from where it stands.
    pub(super) fn go_on(&self) {
        let standing = self.lock().standing.pop_front();
        if let Some((_, go)) = standing {
            // The one who stood there may have given up waiting, as the rest of a failed read does.
            let _ = go.send(());
        }
    }

    fn end(&self, ended: Ended) {
        let mut state = self.lock();
        state.ended = Some(if state.dead { Ended::Killed } else { ended });
        state.standing.clear();
        drop(state);
        self.changed.notify_all();
    }
}

/// A running process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) life: Arc<Life>,
    thread: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts a process that does `job` on the table at `location`.
    pub(super) fn start(
        name: String,
        sea: Arc<Sea>,
        location: &Location,
        job: &Job,
        calm: bool,
        broken: Option<CommitRule>,
    ) -> Self {
        let life = Arc::new(Life {
            name,
            sea,
            calm,
            token: OnceLock::new(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let (job, own) = (job.clone(), life.clone());
        let location = location.wrapped(|_| Arc::new(SimulatedStore::new(own))).expect("the store is one");
        let own = life.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let load = async {
                let table = Table::open(location, Arc::new(SimulatedHost::new(own.clone()))).await?;
                let table = match broken {
                    Some(rule) => table.breaking(rule),
                    None => table,
                };
                table.apply(&job.load, job.source()).await
            };
            let ended = match runtime.block_on(AssertUnwindSafe(load).catch_unwind()) {
                Ok(Ok(receipt)) => Ended::Done(Box::new(receipt)),
                Ok(Err(error)) => Ended::Failed { kind: error.kind(), text: error.to_string() },
                Err(panic) => Ended::Panicked(words_of(panic.as_ref())),
            };
            drop(runtime);
            own.end(ended);
        });
        Self { life, thread: Some(thread) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.life.kill();
        while !matches!(self.life.next(), Next::Ended(_)) {
            self.life.go_on();
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
