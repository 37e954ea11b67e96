//! The rules in force, the calls so far, and what is still to come late.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::Result;
use object_store::path::Path;

use super::rule::{Effect, Operation, Rule};

/// One call to a store, as the log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Which call it is, from 1, over all stores of the plan.
    pub number: u64,
    /// What was asked.
    pub operation: Operation,
    /// The object, or the prefix of a listing.
    pub path: Path,
    /// Whether it was a put-if-absent.
    pub creates: bool,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It has not, or its caller stopped waiting.
    Pending,
    /// The store's own answer was success.
    Succeeded,
    /// The store's own answer was an error.
    Failed,
    /// A rule answered.
    Faulted,
}

/// Rules and a log of calls, shared by all its clones.
#[derive(Clone, Default)]
pub struct Plan {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    rules: Vec<(Rule, u64)>,
    calls: Vec<Call>,
    late: Vec<(u64, BoxFuture<'static, ()>)>,
}

impl Plan {
    /// A plan without rules: calls are only logged.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a rule; it sees the calls from now on.
    pub fn add(&self, rule: Rule) {
        self.lock().rules.push((rule, 0));
    }

    /// Drops all rules. The log and what is still to come late stay.
    pub fn clear(&self) {
        self.lock().rules.clear();
    }

    /// All calls so far, in the order in which they began.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    /// Forgets the calls so far; numbers and the turns of what comes late start from 1 again.
    pub fn forget_calls(&self) {
        let mut state = self.lock();
        let passed = state.calls.len() as u64;
        state.calls.clear();
        for (due, _) in &mut state.late {
            *due = due.saturating_sub(passed);
        }
    }

    /// Carries out all that was to come late, and gives back how much that was.
    pub async fn release_late(&self) -> usize {
        let late = std::mem::take(&mut self.lock().late);
        let count = late.len();
        for (_, effect) in late {
            effect.await;
        }
        count
    }

    /// Makes one call; `effect` makes the store carry it out, ignoring the condition if told so.
    pub(super) async fn run<T, E, F>(&self, operation: Operation, path: &Path, creates: bool, effect: E) -> Result<T>
    where
        T: Send + 'static,
        E: FnOnce(bool) -> F + Send,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (call, rule, due) = self.begin(operation, path, creates);
        for late in due {
            late.await;
        }
        let Some(rule) = rule else {
            let answer = effect(false).await;
            self.finish(&call, if answer.is_ok() { Outcome::Succeeded } else { Outcome::Failed });
            return answer;
        };
        if let Some(hook) = &rule.before {
            hook(call.clone()).await;
        }
        let effect = effect(rule.ignores_condition);
        let answer = match rule.fault {
            None => Some(effect.await),
            Some((Effect::Lost, _)) => None,
            Some((Effect::Taken, _)) => {
                drop(effect.await);
                None
            }
            Some((Effect::Late(calls), _)) => {
                self.lock().late.push((call.number.saturating_add(calls), effect.map(drop).boxed()));
                None
            }
        };
        if let Some(hook) = &rule.meanwhile {
            hook(call.clone()).await;
        }
        match (answer, rule.fault) {
            (None, Some((_, fault))) => {
                self.finish(&call, Outcome::Faulted);
                Err(fault.error(path, creates))
            }
            (Some(answer), _) => {
                self.finish(&call, if answer.is_ok() { Outcome::Succeeded } else { Outcome::Failed });
                answer
            }
            (None, None) => unreachable!("only a fault leaves a call without the store's answer"),
        }
    }

    /// Logs a call, and finds the rule that strikes it and what was to come before it.
    fn begin(
        &self,
        operation: Operation,
        path: &Path,
        creates: bool,
    ) -> (Call, Option<Rule>, Vec<BoxFuture<'static, ()>>) {
        let mut state = self.lock();
        let number = state.calls.len() as u64 + 1;
        let call = Call { number, operation, path: path.clone(), creates, outcome: Outcome::Pending };
        state.calls.push(call.clone());
        let mut struck = None;
        for (rule, seen) in &mut state.rules {
            if rule.matches(operation, path) {
                *seen += 1;
                if struck.is_none() && rule.strikes(*seen) {
                    struck = Some(rule.clone());
                }
            }
        }
        let (due, later) = std::mem::take(&mut state.late).into_iter().partition(|(due, _)| *due <= number);
        state.late = later;
        (call, struck, due.into_iter().map(|(_, effect): (u64, _)| effect).collect())
    }

    fn finish(&self, call: &Call, outcome: Outcome) {
        if let Some(logged) = self.lock().calls.iter_mut().find(|logged| logged.number == call.number) {
            logged.outcome = outcome;
        }
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Plan")
            .field("rules", &state.rules)
            .field("calls", &state.calls.len())
            .field("late", &state.late.len())
            .finish()
    }
}
