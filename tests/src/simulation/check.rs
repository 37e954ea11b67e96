//! Whether a run kept every promise: the log's order is an order of the loads, one after the other, and each is told the
//! truth.

use std::collections::BTreeMap;

use bytes::Bytes;
use deltaonce::{ErrorKind, Outcome};
use object_store::ObjectStoreExt;
use object_store::path::Path;
use serde_json::Value;

use super::content::Row;
use super::process::Ended;
use super::rivals::TABLE;
use super::run::{Record, Run};
use super::sea::at_once;
use crate::ledger::{Ledger, rows_of, unmasked};
use crate::vectors;

/// Checks all; the error is one sentence.
///
/// # Panics
/// Where the log itself is ill-formed, as [`Ledger::read`] does.
pub(super) fn check(run: &Run) -> Result<(), String> {
    let ledger = at_once(Ledger::read(run.sea.store.as_ref(), &Path::from(TABLE)));
    let states = states(run, &ledger)?;
    for record in &run.records {
        told_the_truth(record, &ledger, &states).map_err(|broken| format!("{}: {broken}", record.process))?;
    }
    settled(run)
}

/// The run whose token an entry carries.
fn author<'a>(run: &'a Run, token: Option<&String>) -> Option<&'a Record> {
    run.records.iter().find(|record| record.token.is_some() && record.token.as_ref() == token)
}

/// Follows the log: after each entry the table holds what the oracle makes of the load that wrote it.
fn states(run: &Run, ledger: &Ledger) -> Result<Vec<Vec<Row>>, String> {
    let mut states: Vec<Vec<Row>> = Vec::new();
    let mut applied: BTreeMap<&str, i64> = BTreeMap::new();
    let mut live: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let tokens = ledger.tokens();
    for (version, actions) in ledger.entries.iter().enumerate() {
        let (write, rows) = match author(run, tokens[version].as_ref()) {
            Some(record) => {
                if tokens[..version].contains(&tokens[version]) {
                    return Err(format!("{} landed again as version {version}", record.process));
                }
                records_its_identity(record, actions, version, &mut applied)?;
                (&record.job.write, &record.job.rows)
            }
            None => match run.rivals.iter().find(|rival| rival.version == version) {
                Some(rival) => (&rival.write, &rival.rows),
                None => return Err(format!("nobody wrote version {version}")),
            },
        };
        let before = states.last().map_or(&[][..], Vec::as_slice);
        let Some(expected) = write.on(before, rows).or_else(|| write.if_taken(before, rows)) else {
            return Err(format!("version {version} holds a load that has to be refused"));
        };
        follow(run, actions, &mut live)?;
        let mut found: Vec<&String> = live.values().flatten().collect();
        found.sort();
        let mut wanted: Vec<String> = expected.iter().map(ToString::to_string).collect();
        wanted.sort();
        if !found.iter().copied().eq(&wanted) {
            return Err(format!(
                "after version {version} ({write:?}) the table holds\n{found:#?}\ninstead of\n{wanted:#?}"
            ));
        }
        states.push(expected);
    }
    Ok(states)
}

fn records_its_identity<'a>(
    record: &'a Record,
    actions: &[Value],
    version: usize,
    applied: &mut BTreeMap<&'a str, i64>,
) -> Result<(), String> {
    let recorded: Vec<&Value> = actions.iter().filter_map(|action| action.get("txn")).collect();
    let Some(identity) = &record.job.identity else {
        return if recorded.is_empty() {
            Ok(())
        } else {
            Err(format!("version {version} records an identity of nobody"))
        };
    };
    let matches = |txn: &Value| txn["appId"] == *identity.app_id && txn["version"] == identity.version;
    let digests = |txn: &Value| txn["appId"] == format!("deltaonce.rows.1:{}", identity.app_id);
    if !matches!(recorded.as_slice(), [identity, digest] if matches(identity) && digests(digest)) {
        return Err(format!("version {version} should record {identity} and has {recorded:?}"));
    }
    match applied.insert(&identity.app_id, identity.version) {
        Some(earlier) if earlier >= identity.version => {
            Err(format!("version {version} applies {identity} although {earlier} is applied"))
        }
        _ => Ok(()),
    }
}

/// The rows of each live file after an entry.
fn follow(run: &Run, actions: &[Value], live: &mut BTreeMap<String, Vec<String>>) -> Result<(), String> {
    for remove in actions.iter().filter_map(|action| action.get("remove")) {
        live.remove(remove["path"].as_str().unwrap_or_default());
    }
    for add in actions.iter().filter_map(|action| action.get("add")) {
        let name = add["path"].as_str().unwrap_or_default();
        let rows = rows_of(once_there(run, name)?, &add["partitionValues"]);
        let vector = vectors::object(add).map(|name| once_there(run, &name)).transpose()?.unwrap_or_default();
        live.insert(name.to_owned(), unmasked(rows, &vectors::masked(add, |_| vector)));
    }
    Ok(())
}

/// The bytes of an object of the table, also of one that was vacuumed since.
fn once_there(run: &Run, name: &str) -> Result<Bytes, String> {
    let path = Path::parse(format!("{TABLE}/{name}")).map_err(|e| e.to_string())?;
    let there = at_once(async { run.sea.store.get(&path).await?.bytes().await }).ok();
    let vacuumed = || run.sea.vacuumed.lock().expect("nobody panicked").get(name).cloned();
    there.or_else(vacuumed).ok_or_else(|| format!("{name} was added and is gone"))
}

/// Holds what a process was told against the log.
fn told_the_truth(record: &Record, ledger: &Ledger, states: &[Vec<Row>]) -> Result<(), String> {
    let tokens = ledger.tokens();
    let landed = tokens.iter().position(|token| token.is_some() && *token == record.token);
    // The versions that it can have looked at.
    let seen = record.started.saturating_sub(2)..record.ended;
    let on = |version: usize| record.job.write.on(&states[version], &record.job.rows);
    match &record.how {
        Ended::Killed => Ok(()),
        Ended::Panicked(words) => Err(format!("panicked: {words}")),
        Ended::Failed { kind: ErrorKind::Unknown, .. } => Ok(()),
        Ended::Failed { kind, text } => {
            if let Some(version) = landed {
                return Err(format!("is told {kind:?}, and is version {version}: {text}"));
            }
            match kind {
                ErrorKind::Retryable | ErrorKind::Invalid => Ok(()),
                ErrorKind::Refused if seen.clone().any(|version| on(version).is_none()) => Ok(()),
                _ => Err(format!("ended as {kind:?} without a reason: {text}")),
            }
        }
        Ended::Done(receipt) => match &receipt.outcome {
            Outcome::Committed { version } if landed == usize::try_from(*version).ok() => Ok(()),
            Outcome::Committed { version } => Err(format!("is told version {version}, and is {landed:?}")),
            _ if landed.is_some() => Err(format!("is told {:?}, and is version {landed:?}", receipt.outcome)),
            Outcome::Unchanged { version } => {
                let version = usize::try_from(*version).map_err(|e| e.to_string())?;
                let mut before = states.get(version).cloned().ok_or("is told of a version that is not there")?;
                before.sort();
                if record.job.identity.is_some() {
                    return Err("has an identity, and recorded none".to_owned());
                }
                let taken = || record.job.write.if_taken(&states[version], &record.job.rows);
                if seen.contains(&version) && on(version).or_else(taken) == Some(before) {
                    Ok(())
                } else {
                    Err(format!("is told that version {version} says the same"))
                }
            }
            Outcome::Skipped { at_version, recorded, .. } => {
                let Some(identity) = &record.job.identity else { return Err("has no identity to skip by".to_owned()) };
                let is_it = |actions: &Vec<Value>| {
                    actions.iter().filter_map(|action| action.get("txn")).any(|txn| {
                        txn["appId"] == *identity.app_id && txn["version"] == *recorded && *recorded >= identity.version
                    })
                };
                let versions: Vec<usize> =
                    (0..record.ended).filter(|version| is_it(&ledger.entries[*version])).collect();
                let named = at_version.is_none_or(|at| versions.iter().any(|version| *version as u64 == at));
                if versions.is_empty() || !named {
                    return Err(format!("is told that {identity} is applied by {at_version:?}"));
                }
                Ok(())
            }
        },
    }
}

/// Every load that was run until it succeeded has succeeded.
fn settled(run: &Run) -> Result<(), String> {
    let mut last: BTreeMap<&str, &Record> = BTreeMap::new();
    for record in &run.records {
        last.insert(&record.job.name, record);
    }
    for record in last.values() {
        let settled = match &record.how {
            Ended::Done(_) => true,
            Ended::Failed { kind, .. } => {
                *kind == ErrorKind::Refused || *kind == ErrorKind::Unknown && !record.job.is_repeatable()
            }
            Ended::Killed => !record.job.is_repeatable(),
            Ended::Panicked(_) => false,
        };
        if !settled {
            return Err(format!("{} was run in fine weather, and {:?}", record.process, record.how));
        }
    }
    Ok(())
}
