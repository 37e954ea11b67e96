//! Setting table properties: one entry that repeats what the table is, but for them.

use std::collections::BTreeMap;
use std::time::Duration;

use delta_kernel::table_features::TableFeature;
use serde_json::json;

use super::{Run, Target};
use crate::commit::attempt::{self, Attempt};
use crate::commit::conflict::Assumptions;
use crate::commit::entry::{Draft, Info};
use crate::commit::machine::End;
use crate::error::{Error, ErrorKind, Result};
use crate::load::{Contract, Properties};
use crate::plan::Change;
use crate::receipt::{Outcome, Receipt};
use crate::table::definition::{MetaData, Protocol};
use crate::table::snapshot::Snapshot;
use crate::table::{features, metadata, properties};

/// What receipts and entries call it.
const CONTRACT: &str = "set";

/// Properties that say which columns have statistics.
const STATISTICS: [&str; 2] = ["delta.dataSkippingNumIndexedCols", "delta.dataSkippingStatsColumns"];

/// What a table is to be instead.
#[derive(Debug)]
struct Alteration {
    metadata: MetaData,
    /// Given where it changes.
    protocol: Option<Protocol>,
}

impl Run<'_> {
    /// Sets properties of the table.
    pub(crate) async fn set(mut self, asked: &Properties) -> Result<Receipt> {
        let result = self.set_properties(&asked.set).await.map_err(|error| match error.kind() {
            ErrorKind::Unknown => error.hint("run it again: what is set already stays as it is"),
            _ => error,
        });
        let mut receipt = self.acknowledge(result).await?;
        CONTRACT.clone_into(&mut receipt.contract);
        Ok(receipt)
    }

    async fn set_properties(&mut self, asked: &[(String, String)]) -> Result<Receipt> {
        let asked = properties::collected(asked)?;
        if asked.is_empty() {
            return Err(Error::invalid(format!("no property of {} is given to set", self.name())));
        }
        properties::check(&asked)?;
        let mut snapshot = self.table.existing().await?;
        let deadline = self.table.host().elapsed().saturating_add(self.load.deadline);
        let mut round = 0;
        loop {
            self.table.stopper().check()?;
            let Some(alteration) = self.alteration(&snapshot, &asked).await? else {
                return Ok(self.receipt(Outcome::Unchanged { version: snapshot.version() }, &Change::none()));
            };
            if round == 0 {
                self.table.check_store().await?;
            }
            self.table.stopper().check()?;
            let attempt = self.attempt_to_set(&snapshot, &asked, alteration, deadline).await?;
            self.attempts += attempt.puts;
            self.taken = !attempt.read_back;
            let version = match attempt.end {
                End::Landed(version) => return self.landed(version, &Change::none(), &Target::There(snapshot)).await,
                End::PlanAgain(version) => version,
                end => return Err(self.not_landed(end, attempt)),
            };
            let why = attempt.why.unwrap_or("another writer was first");
            tracing::info!(version, why, "setting again");
            self.pause(round, why, deadline).await?;
            round += 1;
            snapshot = snapshot.newer(version).await?;
        }
    }

    /// What the table is to be; none where it is so already.
    async fn alteration(&self, snapshot: &Snapshot, asked: &BTreeMap<String, String>) -> Result<Option<Alteration>> {
        let name = self.name();
        features::check(name, snapshot, &Contract::Append)?;
        let current = snapshot.properties();
        let changes: BTreeMap<String, String> =
            asked.iter().filter(|(key, value)| current.get(*key) != Some(value)).map(own).collect();
        check_changes(name, snapshot, &changes)?;
        properties::check_columns(name, snapshot.schema(), asked)?;
        let protocol = protocol(name, snapshot)?;
        let supporting = protocol.supporting(&properties::needed(asked));
        if changes.is_empty() && supporting == protocol {
            return Ok(None);
        }
        let mut metadata = metadata::read(name, snapshot).await?;
        metadata.configuration.extend(changes);
        Ok(Some(Alteration { metadata, protocol: (supporting != protocol).then_some(supporting) }))
    }

    async fn attempt_to_set(
        &self,
        snapshot: &Snapshot,
        asked: &BTreeMap<String, String>,
        alteration: Alteration,
        deadline: Duration,
    ) -> Result<Attempt> {
        let (log, host) = (self.table.log().as_ref(), self.table.host().as_ref());
        let draft = Draft {
            info: Info {
                timestamp: host.now().timestamp_millis(),
                operation: "SET TBLPROPERTIES",
                parameters: vec![("properties", json!(asked).to_string())],
                read_version: Some(snapshot.version()),
                token: self.token.clone(),
                contract: CONTRACT,
                run_id: self.load.run_id.clone(),
                ..Info::default()
            },
            protocol: alteration.protocol,
            metadata: Some(alteration.metadata),
            txns: Vec::new(),
            removes: Vec::new(),
            adds: Vec::new(),
            changes: Vec::new(),
        };
        let nothing = Change::none();
        let assumptions = Assumptions::new(&nothing.reads, &[], &[], false, self.table.rules());
        let previous = self.in_commit_timestamp(snapshot).await?;
        attempt::land(log, host, &draft, &assumptions, snapshot.version() + 1, previous, deadline).await
    }
}

fn own((key, value): (&String, &String)) -> (String, String) {
    (key.clone(), value.clone())
}

/// Refuses what the table's files would have to be checked for.
fn check_changes(table: &str, snapshot: &Snapshot, changes: &BTreeMap<String, String>) -> Result<()> {
    if let Some(key) = changes.keys().find(|key| key.starts_with(properties::CONSTRAINTS)) {
        return Err(Error::refused(format!(
            "'{key}' is a condition on all rows, and those that are in {table} would have to be checked first, which this \
             version does not do; nothing was changed"
        ))
        .hint("constraints can be given when a table is created"));
    }
    let listed = snapshot.protocol().writer_features().unwrap_or_default();
    if let Some(key) = STATISTICS.iter().find(|key| changes.contains_key(**key))
        && listed.contains(&TableFeature::ClusteredTable)
    {
        return Err(Error::refused(format!(
            "'{key}' could take the statistics from columns by which {table} is clustered; nothing was changed"
        )));
    }
    Ok(())
}

/// The table's protocol as the log has it.
fn protocol(table: &str, snapshot: &Snapshot) -> Result<Protocol> {
    serde_json::to_value(snapshot.protocol())
        .and_then(serde_json::from_value)
        .map_err(|e| Error::internal(format!("the protocol of {table} cannot be written")).caused_by(e))
}

#[cfg(test)]
mod tests;
