//! Carries out what the [machine](super::machine) decides, through deltalake's log store.

use std::time::Duration;

use deltalake::kernel::transaction::TransactionError;
use deltalake::logstore::{CommitOrBytes, LogStore};
use uuid::Uuid;

use super::conflict::Assumptions;
use super::entry::{Draft, Entry};
use super::machine::{Action, End, Event, Machine, PutAnswer, ReadAnswer};
use crate::error::Result;
use crate::host::Host;
use crate::store::failure;

/// How the attempt to land one entry ended.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) end: End,
    /// Puts that were sent.
    pub(crate) puts: u32,
    /// Whether the entry was found by reading, and not by the answer to its put.
    pub(crate) read_back: bool,
    /// Why the change must be planned again.
    pub(crate) why: Option<&'static str>,
    /// The last failure of a put or of reading an entry, which says why the version is not resolved.
    pub(crate) complaint: Option<Complaint>,
}

/// A failure that an attempt met on its way.
pub(crate) type Complaint = Box<dyn std::error::Error + Send + Sync>;

/// Lands `draft` at the first free version from `first` on.
///
/// `log` must send each put once: a client that repeats a put by itself turns its own lost answer into "exists", which
/// costs a read here, and a definite no after it into a false "nothing was stored".
///
/// `deadline` is on the host's [`Host::elapsed`]; `previous_timestamp` is the last entry's in-commit timestamp on tables
/// that keep them.
///
/// # Errors
/// `Internal` where the draft cannot be written as JSON. How storage behaves is never an error: see [`Attempt::end`].
pub(crate) async fn land(
    log: &dyn LogStore,
    host: &dyn Host,
    draft: &Draft,
    assumptions: &Assumptions<'_>,
    first: u64,
    mut previous_timestamp: Option<i64>,
    deadline: Duration,
) -> Result<Attempt> {
    let token = draft.info.token.as_str();
    let (mut machine, mut action) = Machine::start(first, assumptions.rules());
    let (mut puts, mut why, mut read_back) = (0, None, false);
    let mut complaint: Option<Complaint> = None;
    loop {
        let event = match action {
            Action::Put(version) => {
                puts += 1;
                let timestamp = previous_timestamp.map(|previous| draft.info.timestamp.max(previous.saturating_add(1)));
                let bytes = CommitOrBytes::LogBytes(draft.encode(timestamp)?.into());
                Event::Put(match log.write_commit_entry(version, bytes, Uuid::nil()).await {
                    Ok(()) => PutAnswer::Done,
                    Err(TransactionError::VersionAlreadyExists(_)) => PutAnswer::Exists,
                    Err(TransactionError::ObjectStore { source }) => {
                        let denied = failure::is_final(&source);
                        complaint = Some(Box::new(source));
                        if denied { PutAnswer::Denied } else { PutAnswer::Failed }
                    }
                    Err(error) => {
                        complaint = Some(Box::new(error));
                        PutAnswer::Failed
                    }
                })
            }
            Action::Read(version) => Event::Read(match log.read_commit_entry(version).await {
                Ok(None) => ReadAnswer::Absent,
                // An entry is never empty: this is a torn read, or an entry whose bytes are still to come.
                Ok(Some(bytes)) if bytes.is_empty() => ReadAnswer::Failed,
                Ok(Some(bytes)) => match Entry::parse(version, &bytes) {
                    Err(error) => {
                        complaint = Some(Box::new(error));
                        ReadAnswer::Failed
                    }
                    Ok(entry) if entry.token() == Some(token) => ReadAnswer::Ours,
                    Ok(entry) => {
                        previous_timestamp = previous_timestamp.and(entry.in_commit_timestamp()).or(previous_timestamp);
                        why = assumptions.broken_by(&entry);
                        if why.is_some() { ReadAnswer::Touching } else { ReadAnswer::Disjoint }
                    }
                },
                Err(error) => {
                    complaint = Some(Box::new(error));
                    ReadAnswer::Failed
                }
            }),
            Action::Wait { round } => {
                let pause = back_off(round, host.random());
                if host.elapsed().saturating_add(pause) > deadline {
                    Event::TimeUp
                } else {
                    host.sleep(pause).await;
                    Event::Waited
                }
            }
            Action::End(end) => return Ok(Attempt { end, puts, read_back, why, complaint }),
        };
        read_back = matches!(event, Event::Read(_));
        action = machine.on(event);
        tracing::debug!(version = machine.version(), ?event, ?action, "commit");
    }
}

/// Doubles each round from 20 ms to 2 s, of which between a half and all is waited, so that writers who lost together
/// do not come back together.
pub(crate) fn back_off(round: u32, chance: u128) -> Duration {
    let full = 20_u64.saturating_mul(1 << round.min(7)).min(2_000);
    let share = (chance % 1_000) as u64;
    Duration::from_millis(full / 2 + full * share / 2_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_grows_and_stays_between_a_half_and_all() {
        for (round, full) in [(0, 20), (1, 40), (6, 1_280), (7, 2_000), (60, 2_000)] {
            assert_eq!(back_off(round, 0), Duration::from_millis(full / 2));
            assert!(back_off(round, 999) <= Duration::from_millis(full));
            assert!(back_off(round, 999) > back_off(round, 0));
        }
    }
}
