//! The pipeline: one load from its source to its receipt.

mod alter;
mod prepare;
mod verify;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use object_store::ObjectStore;

use self::prepare::Rows;
use crate::commit::attempt::{self, Attempt, back_off};
use crate::commit::conflict::Assumptions;
use crate::commit::draft::{Facts, draft};
use crate::commit::entry::Entry;
use crate::commit::identity::{self, Seen};
use crate::commit::machine::End;
use crate::commit::replay;
use crate::commit::rules::CommitRule;
use crate::error::{Error, ErrorKind, Result};
use crate::load::{Contract, Load, TableSpec};
use crate::plan::replace::Replace;
use crate::plan::{self, Change, append, insert, merge, spilled};
use crate::prepare::digest::RowsDigest;
use crate::receipt::{ByteCounts, FileCounts, Outcome, Receipt};
use crate::source::Source;
use crate::stage::Stager;
use crate::store::failure;
use crate::store::staging::Staging;
use crate::table::actions::AddFile;
use crate::table::definition::Definition;
use crate::table::schema::TableSchema;
use crate::table::snapshot::Snapshot;
use crate::table::{Table, features, history};

/// How far back a skipped load looks for the entry that records it, to name its version and time.
const LOOK_BACK: usize = 64;

/// One load into one table.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    table: &'a Table,
    load: &'a Load,
    token: String,
    started: Duration,
    staging: Arc<Staging>,
    store: Arc<dyn ObjectStore>,
    parallelism: usize,
    warnings: Vec<String>,
    attempts: u32,
    /// Of the source's rows, once they are read, where the load has an identity.
    digest: Option<RowsDigest>,
    /// Whether the store itself said that it took the entry, which it does once the entry stays.
    taken: bool,
}

/// A table that is there, or one that this load makes.
#[derive(Debug)]
enum Target {
    There(Snapshot),
    New(Box<Definition>),
}

impl Target {
    fn schema(&self) -> &TableSchema {
        match self {
            Self::There(snapshot) => snapshot.schema(),
            Self::New(definition) => &definition.schema,
        }
    }

    fn snapshot(&self) -> Option<&Snapshot> {
        match self {
            Self::There(snapshot) => Some(snapshot),
            Self::New(_) => None,
        }
    }

    fn properties(&self) -> BTreeMap<String, String> {
        match self {
            Self::There(snapshot) => snapshot.properties(),
            Self::New(definition) => definition.metadata.configuration.clone(),
        }
    }
}

/// What follows after another writer was first.
enum Next {
    Plan(Target),
    Done(Box<Receipt>),
}

impl<'a> Run<'a> {
    pub(crate) fn new(table: &'a Table, load: &'a Load) -> Self {
        let host = table.host();
        let staging = Arc::new(Staging::new(table.store().clone()));
        Self {
            table,
            load,
            token: uuid::Uuid::from_u128(host.random()).to_string(),
            started: host.elapsed(),
            store: staging.clone(),
            staging,
            parallelism: host.parallelism().max(1),
            warnings: Vec::new(),
            attempts: 0,
            digest: None,
            taken: false,
        }
    }

    /// Does the load. What it staged is taken away again, unless the load landed or may have.
    pub(crate) async fn apply(mut self, source: Source) -> Result<Receipt> {
        identity::validate(&self.load.identities)?;
        replay::validate(self.load)?;
        let result = self.load_rows(source).await;
        let result = self.acknowledge(result).await;
        self.clean_up(result).await
    }

    /// Makes the table, empty.
    pub(crate) async fn create(mut self) -> Result<Receipt> {
        let result = self.make_table().await;
        let result = self.acknowledge(result).await;
        self.clean_up(result).await
    }

    /// Makes sure that the version which the answer rests on stays: whoever wrote it, this load included, may not have
    /// come to syncing it.
    async fn acknowledge(&self, result: Result<Receipt>) -> Result<Receipt> {
        let receipt = result?;
        let rests_on = match &receipt.outcome {
            Outcome::Committed { .. } if self.taken => None,
            Outcome::Committed { version } | Outcome::Unchanged { version } => Some(*version),
            Outcome::Skipped { at_version, .. } => *at_version,
        };
        // A skip whose entry is too old to be found rests on versions that came after it, which synced it.
        let Some(version) = rests_on else { return Ok(receipt) };
        match self.table.settle(version).await {
            Ok(()) => Ok(receipt),
            Err(error) => {
                let kind = match receipt.outcome {
                    Outcome::Committed { .. } => ErrorKind::Unknown,
                    _ => ErrorKind::Retryable,
                };
                let why = failure::diagnose(&error).reason;
                Err(Error::new(
                    kind,
                    format!(
                        "version {version} of {} can be read, but may not outlive a loss of power: {why}",
                        self.name()
                    ),
                )
                .hint("see to its disk, then run the load again with the same identity")
                .caused_by(error))
            }
        }
    }

    async fn clean_up(&self, result: Result<Receipt>) -> Result<Receipt> {
        let may_have_landed = match &result {
            Ok(_) => false,
            Err(error) => error.kind() == ErrorKind::Unknown,
        };
        if may_have_landed && self.table.rules().keep(CommitRule::KeepAfterUnknown) {
            return result;
        }
        let left = self.staging.discard_all().await;
        match result {
            Ok(mut receipt) => {
                receipt.warnings.extend(left.into_iter().map(unused));
                Ok(receipt)
            }
            Err(error) => Err(error.details(left.into_iter().map(unused))),
        }
    }

    async fn load_rows(&mut self, source: Source) -> Result<Receipt> {
        let latest = self.table.latest().await?;
        if let Some(snapshot) = &latest {
            if let Some(skipped) = self.skipped(snapshot).await? {
                return if self.load.verify_replay {
                    self.verify(skipped, source, snapshot).await
                } else {
                    Ok(skipped)
                };
            }
            features::check(self.name(), snapshot, &self.load.contract)?;
        }
        self.table.check_store().await?;
        let source = source.open().await?;
        let target = match latest {
            Some(snapshot) => Target::There(snapshot),
            None => Target::New(Box::new(self.define(source.schema().map(AsRef::as_ref))?)),
        };
        let read = source.bytes_read();
        self.warnings
            .extend(source.skipped().iter().map(|file| format!("{file} was passed over: nothing says its format")));
        let rows = self.prepare(source, &target).await?;
        let mut receipt = self.land(target, &rows).await?;
        receipt.bytes.read = read.load(Ordering::Relaxed);
        Ok(receipt)
    }

    async fn make_table(&mut self) -> Result<Receipt> {
        let definition = self.define(None)?;
        if let Some(snapshot) = self.table.latest().await? {
            return self.found_table(&snapshot, &definition);
        }
        self.table.check_store().await?;
        let mut receipt = self.land(Target::New(Box::new(definition)), &Rows::None).await?;
        receipt.contract = "create".to_owned();
        Ok(receipt)
    }

    fn found_table(&mut self, snapshot: &Snapshot, wanted: &Definition) -> Result<Receipt> {
        let same = snapshot.schema() == &wanted.schema
            && wanted.metadata.configuration.iter().all(|(key, value)| snapshot.properties().get(key) == Some(value));
        if !same {
            return Err(Error::refused(format!(
                "{} exists already with other columns, partitions or properties; nothing was changed",
                self.name()
            )));
        }
        let mut receipt = self.receipt(Outcome::Unchanged { version: snapshot.version() }, &Change::none());
        receipt.contract = "create".to_owned();
        Ok(receipt)
    }

    fn name(&self) -> &'a str {
        self.table.name()
    }

    fn define(&self, source: Option<&arrow::datatypes::Schema>) -> Result<Definition> {
        let host = self.table.host();
        let default = TableSpec::default();
        let spec = self.load.create.as_ref().unwrap_or(&default);
        let id = uuid::Uuid::from_u128(host.random()).to_string();
        Definition::of(self.name(), spec, source, id, host.now().timestamp_millis())
    }

    /// The receipt of a load that the log already holds.
    async fn skipped(&mut self, snapshot: &Snapshot) -> Result<Option<Receipt>> {
        let recorded = snapshot.recorded(&self.load.identities).await?;
        let Seen::Already { by, recorded } = identity::check(self.name(), &recorded)? else {
            return Ok(None);
        };
        if recorded > by.version {
            self.warnings.push(format!(
                "{} was superseded: version {recorded} of '{}' is recorded, so these rows were not loaded",
                by, by.app_id
            ));
        }
        let log = self.table.reader().as_ref();
        // The skip is decided; an old entry that cannot be read only costs its version and time.
        let found = history::recording(self.name(), log, snapshot.version(), &by.app_id, LOOK_BACK).await;
        let found = found.unwrap_or_default();
        let outcome = Outcome::Skipped {
            by,
            recorded,
            at_version: found.as_ref().map(|(version, _)| *version),
            at_time: found.as_ref().and_then(|(_, entry)| entry.timestamp()),
        };
        Ok(Some(self.receipt(outcome, &Change::none())))
    }

    fn stager(&self, target: &Target) -> Result<Stager> {
        let host = self.table.host().clone();
        let name = self.table.name().clone();
        let keys = match &self.load.contract {
            Contract::Merge { key, .. } | Contract::Insert { key } => key.as_slice(),
            Contract::Append | Contract::Replace(_) => &[],
        };
        Stager::new(name, self.store.clone(), target.schema(), &target.properties(), keys, host, self.parallelism)
            .map_err(|error| error.about(self.name()))
    }

    /// Plans and commits until the log says how it ended.
    async fn land(&mut self, mut target: Target, rows: &Rows) -> Result<Receipt> {
        let deadline = self.table.host().elapsed().saturating_add(self.load.deadline);
        let mut round = 0;
        loop {
            self.table.stopper().check()?;
            let (version, why) = match self.plan(&target, rows).await {
                Ok(change) => {
                    self.table.stopper().check()?;
                    if let Some(snapshot) = target.snapshot()
                        && change.is_empty()
                        && self.load.identities.is_empty()
                    {
                        return Ok(self.receipt(Outcome::Unchanged { version: snapshot.version() }, &change));
                    }
                    self.check_append_only(&target, &change)?;
                    let attempt = self.attempt(&target, rows, &change, deadline).await?;
                    self.attempts += attempt.puts;
                    self.taken = !attempt.read_back;
                    match attempt.end {
                        End::Landed(version) => return self.landed(version, &change, &target).await,
                        End::PlanAgain(version) => {
                            self.discard_rewrites(&change, rows).await;
                            (version, attempt.why.unwrap_or("another writer was first"))
                        }
                        end => return Err(self.not_landed(end, attempt)),
                    }
                }
                // Another writer may have taken a file of the snapshot away; the newest version says where its rows are.
                Err(error) if error.kind() == ErrorKind::Retryable => match self.moved_on(&target).await? {
                    Some(version) => (version, "another writer took away a file that this load reads"),
                    None => return Err(error),
                },
                Err(error) => return Err(error),
            };
            tracing::info!(version, why, "planning again");
            self.pause(round, why, deadline).await?;
            round += 1;
            target = match self.go_on(target, version, rows).await? {
                Next::Plan(target) => target,
                Next::Done(receipt) => return Ok(*receipt),
            };
        }
    }

    /// Waits a little, so that loads that lost to each other do not plan in step.
    ///
    /// Unlike after a failure of the store, waiting ever longer would not help: others write meanwhile, and a load that
    /// takes long to plan, and so loses often, would come to its turn last of all.
    async fn pause(&self, round: u32, why: &str, deadline: Duration) -> Result<()> {
        let host = self.table.host();
        let pause = back_off(round.min(LONGEST_PAUSE), host.random());
        if host.elapsed().saturating_add(pause) > deadline {
            return Err(self.out_of_time(why));
        }
        host.sleep(pause).await;
        Ok(())
    }

    /// The table's newest version, where it is newer than the one that was planned on.
    async fn moved_on(&self, target: &Target) -> Result<Option<u64>> {
        let Some(snapshot) = target.snapshot() else { return Ok(None) };
        let newest = snapshot.newer(snapshot.version()).await?.version();
        Ok((newest > snapshot.version()).then_some(newest))
    }

    /// Looks at the table as it is after another writer's entry `version`: whether the log holds this load by now, and
    /// else whether what was prepared still fits.
    async fn go_on(&mut self, target: Target, version: u64, rows: &Rows) -> Result<Next> {
        let newer = match &target {
            Target::There(snapshot) => snapshot.newer(version).await?,
            Target::New(_) => self.table.latest().await?.ok_or_else(|| {
                Error::retryable(format!("{} lists no table although its version {version} was read", self.name()))
            })?,
        };
        if self.table.rules().keep(CommitRule::IdentityInEachAttempt)
            && let Some(skipped) = self.skipped(&newer).await?
        {
            if self.load.verify_replay {
                self.verify_prepared(&newer).await?;
            }
            return Ok(Next::Done(Box::new(skipped)));
        }
        if let (Rows::None, Target::New(definition)) = (rows, &target) {
            return self.found_table(&newer, definition).map(|receipt| Next::Done(Box::new(receipt)));
        }
        features::check(self.name(), &newer, &self.load.contract)?;
        let constraints = |properties: BTreeMap<String, String>| -> Vec<(String, String)> {
            properties.into_iter().filter(|(key, _)| key.starts_with("delta.constraints.")).collect()
        };
        if newer.schema() != target.schema() || constraints(newer.properties()) != constraints(target.properties()) {
            return Err(Error::retryable(format!(
                "another writer changed the columns or constraints of {} while this load ran; nothing was changed",
                self.name()
            ))
            .hint("run it again: its rows will be checked against the table as it is now"));
        }
        Ok(Next::Plan(Target::There(newer)))
    }

    async fn plan(&self, target: &Target, rows: &Rows) -> Result<Change> {
        let files = match (target, rows) {
            (Target::New(_), _) | (_, Rows::None | Rows::Added { .. }) => Vec::new(),
            (Target::There(snapshot), _) => snapshot.files().await?,
        };
        let stager = self.stager(target)?;
        let is_set = |property| target.snapshot().is_some_and(|snapshot| snapshot.is_set(property));
        let table = plan::target::Target {
            name: self.name(),
            store: &self.store,
            schema: target.schema(),
            files: &files,
            masks: is_set("delta.enableDeletionVectors") && target.snapshot().is_some_and(Snapshot::has_vectors),
            feeds: is_set("delta.enableChangeDataFeed"),
            parallelism: self.parallelism,
            memory: self.table.host().scratch().map_or(u64::MAX, |scratch| scratch.memory),
        };
        match rows {
            Rows::None => Ok(Change::none()),
            Rows::Added { staged, rows } => Ok(append::plan(staged, *rows)),
            Rows::Replacing { staged, rows, scope } => {
                Replace { target: table, stage: &stager, scope, staged, rows: *rows }.plan().await
            }
            Rows::Spilled { source, revision } => {
                let held = match &self.load.contract {
                    Contract::Insert { .. } => spilled::Held::Kept,
                    _ => spilled::Held::Updated,
                };
                spilled::plan(&table, source, held, revision, &stager).await
            }
            Rows::Keyed { keys, revision, probes } => match &self.load.contract {
                Contract::Insert { .. } => insert::plan(&table, keys, probes, &stager).await,
                _ => merge::plan(&table, keys, revision, probes, &stager).await,
            },
        }
    }

    async fn attempt(&self, target: &Target, rows: &Rows, change: &Change, deadline: Duration) -> Result<Attempt> {
        let (log, host) = (self.table.log().as_ref(), self.table.host().as_ref());
        let snapshot = target.snapshot();
        let facts = Facts {
            load: self.load,
            token: &self.token,
            now: host.now().timestamp_millis(),
            rows: self.digest.unwrap_or_default(),
            read_version: snapshot.map(Snapshot::version),
            partition_columns: target.schema().partition_columns(),
            predicate: match rows {
                Rows::Replacing { scope, .. } => scope.operation_predicate(),
                _ => None,
            },
            creates: match target {
                Target::New(definition) => Some(definition),
                Target::There(_) => None,
            },
        };
        let assumptions = Assumptions::new(
            &change.reads,
            change.replaced(),
            &self.load.identities,
            facts.creates.is_some(),
            self.table.rules(),
        );
        let first = snapshot.map_or(0, |snapshot| snapshot.version() + 1);
        let previous = match snapshot {
            Some(snapshot) => self.in_commit_timestamp(snapshot).await?,
            None => None,
        };
        attempt::land(log, host, &draft(&facts, change), &assumptions, first, previous, deadline).await
    }

    /// The in-commit timestamp of the entry that ours comes after, where the table keeps them.
    async fn in_commit_timestamp(&self, snapshot: &Snapshot) -> Result<Option<i64>> {
        if !snapshot.is_set("delta.enableInCommitTimestamps") {
            return Ok(None);
        }
        let version = snapshot.version();
        let bytes = self.table.reader().read_commit_entry(version).await;
        let bytes = bytes.map_err(|e| failure::delta(self.name(), "read the log of", e))?;
        let entry = bytes.map(|bytes| Entry::parse(version, &bytes)).transpose()?;
        entry.and_then(|entry| entry.in_commit_timestamp()).map(Some).ok_or_else(|| {
            Error::unsupported(format!(
                "{} keeps in-commit timestamps, and its entry {version} has none; nothing was changed",
                self.name()
            ))
        })
    }

    fn check_append_only(&self, target: &Target, change: &Change) -> Result<()> {
        if change.replaced().next().is_none()
            || !target.snapshot().is_some_and(|snapshot| snapshot.is_set("delta.appendOnly"))
        {
            return Ok(());
        }
        Err(Error::refused(format!(
            "{} is append-only (delta.appendOnly), and this load would change {} of its rows; nothing was changed",
            self.name(),
            change.rows.updated + change.rows.deleted
        )))
    }

    /// Takes away the files of a plan that did not land, but for those that hold the source's rows.
    async fn discard_rewrites(&self, change: &Change, rows: &Rows) {
        let staged: &[AddFile] = match rows {
            Rows::Added { staged, .. } | Rows::Replacing { staged, .. } => staged,
            Rows::None | Rows::Keyed { .. } | Rows::Spilled { .. } => &[],
        };
        let kept: Vec<_> = staged.iter().filter_map(|add| add.location().ok()).collect();
        let paths: Vec<_> = change.staged().into_iter().filter(|path| !kept.contains(path)).collect();
        // What cannot be deleted now still counts as created, and is tried again when the load ends.
        let _ = self.staging.discard(&paths).await;
    }

    async fn landed(&mut self, version: u64, change: &Change, target: &Target) -> Result<Receipt> {
        self.staging.forget(&change.staged());
        let interval = target.properties().get("delta.checkpointInterval").and_then(|text| text.parse().ok());
        if version > 0 && version.is_multiple_of(interval.unwrap_or(CHECKPOINT_INTERVAL).max(1)) {
            let written = match self.table.latest().await {
                Ok(Some(snapshot)) => snapshot.checkpoint().await,
                Ok(None) => Err(Error::retryable("the table is not listed")),
                Err(error) => Err(error),
            };
            if let Err(error) = written {
                self.warnings.push(format!("the load landed, but no checkpoint was written: {error}"));
            }
        }
        Ok(self.receipt(Outcome::Committed { version }, change))
    }

    fn not_landed(&self, end: End, attempt: Attempt) -> Error {
        let name = self.name();
        let mut diagnosis = attempt.complaint.as_ref().map(|complaint| failure::diagnose(complaint.as_ref()));
        let error = match end {
            End::Unknown(version) => Error::unknown(format!(
                "it could not be learned in time whether version {version} of {name} holds this load"
            ))
            .hint("run the load again with the same identity; without one, look at the table first"),
            End::Denied => match diagnosis.take() {
                Some(diagnosis) => failure::explain(diagnosis, name, "commit to"),
                None => Error::invalid(format!("the store refuses to take a log entry of {name}; nothing was changed")),
            },
            _ if diagnosis.is_none() => self.out_of_time("other writers took every version that it tried"),
            _ => self.out_of_time("its store did not take the log entry"),
        };
        let error = error.details(diagnosis.map(|diagnosis| format!("the last failure: {}", diagnosis.reason)));
        match attempt.complaint {
            Some(complaint) => error.caused_by(complaint),
            None => error,
        }
    }

    fn out_of_time(&self, why: &str) -> Error {
        Error::retryable(format!(
            "no version of {} could be committed within {:?}: {why}; nothing was changed",
            self.name(),
            self.load.deadline
        ))
    }

    fn receipt(&mut self, outcome: Outcome, change: &Change) -> Receipt {
        let committed = matches!(outcome, Outcome::Committed { .. });
        let count = |files: usize| if committed { files as u64 } else { 0 };
        Receipt {
            table: self.name().to_owned(),
            contract: self.load.contract.name().to_owned(),
            identities: self.load.identities.clone(),
            token: committed.then(|| self.token.clone()),
            run_id: self.load.run_id.clone(),
            attempts: self.attempts,
            rows: change.rows,
            files: FileCounts {
                added: count(change.adds.len()),
                removed: count(change.removes.len()),
                masked: count(change.masks.len()),
                probed: change.probed,
                pruned: change.pruned,
            },
            bytes: ByteCounts {
                read: 0,
                written: if committed { change.adds.iter().map(|add| add.size.unsigned_abs()).sum() } else { 0 },
            },
            took: self.table.host().elapsed().saturating_sub(self.started),
            warnings: std::mem::take(&mut self.warnings),
            outcome,
        }
    }
}

fn unused((path, error): (object_store::path::Path, object_store::Error)) -> String {
    format!("could not remove the unused file {path}: {error}")
}

/// The round of [`back_off`] after which pauses before planning again grow no more: 80 ms.
const LONGEST_PAUSE: u32 = 2;

/// Versions between checkpoints where the table does not say (Delta's own default).
const CHECKPOINT_INTERVAL: u64 = 10;
