//! The first half of a load: its source becomes rows that a plan can be made of, as often as it takes.

use std::sync::Arc;

use futures::StreamExt;

use super::{Run, Target};
use crate::error::{Error, Result};
use crate::load::{Contract, Scope, Update};
use crate::plan::probe::Probes;
use crate::plan::revision::{Revision, relaxed};
use crate::plan::scope::ResolvedScope;
use crate::plan::source_keys::SourceKeys;
use crate::prepare::choose::{Chosen, Overflow, choose};
use crate::prepare::constraints::Constraints;
use crate::prepare::keys::Keyed;
use crate::prepare::spill::Sorted;
use crate::prepare::stream::{Gate, prepared};
use crate::source::OpenSource;
use crate::table::actions::AddFile;
use crate::table::schema::TableSchema;

/// A source's rows, read once, in the form that its contract plans with.
#[derive(Debug)]
pub(super) enum Rows {
    /// Create: there are none.
    None,
    /// Append: staged already.
    Added { staged: Vec<AddFile>, rows: u64 },
    /// Replace: staged already, and what they replace.
    Replacing { staged: Vec<AddFile>, rows: u64, scope: Arc<ResolvedScope> },
    /// Merge and insert: one row a key, held until the table's rows are known.
    Keyed { keys: SourceKeys, revision: Arc<Revision>, probes: Probes },
    /// Merge and insert: more rows than are to be held, sorted by key on disk.
    Spilled { source: Box<Sorted>, revision: Arc<Revision> },
}

/// A source's rows, read to the end.
enum Prepared {
    Staged(Vec<AddFile>),
    Chosen(Box<Chosen>),
}

impl Run<'_> {
    /// Reads a source to its end.
    ///
    /// # Errors
    /// `Refused` for rows that the table or the contract does not take; those of reading and of staging.
    pub(super) async fn prepare(&mut self, source: OpenSource, target: &Target) -> Result<Rows> {
        let schema = target.schema();
        let keyed = self.keyed(schema)?;
        let constraints = Constraints::of(schema, &target.properties()).map_err(|error| error.about(self.name()))?;
        let revision = keyed.as_ref().map(|keyed| self.revision(keyed, constraints.clone())).transpose()?;
        let gate = self.gate(schema, constraints, revision.as_ref())?;
        // Made before the source is read, so that properties it cannot obey are told at once.
        let stager = self.stager(target)?;
        let batches = source.read(schema, self.parallelism);
        let (rows, tally) = prepared(batches, gate, self.parallelism, self.table.stopper());
        let rows = rows.boxed();
        let (prepared, passed) = match keyed {
            None => {
                let staged = stager.write(rows.map(|pair| pair.map(|(rows, _)| rows))).await?;
                let passed = tally.finish(&self.scope_in_words())?;
                (Prepared::Staged(staged), passed)
            }
            Some(keyed) => {
                let overflow = self
                    .table
                    .host()
                    .scratch()
                    .map(|scratch| Overflow { scratch, name: format!("deltaonce-{}", self.token) });
                (Prepared::Chosen(Box::new(choose(keyed, rows, overflow).await?)), tally.finish("")?)
            }
        };
        self.digest = passed.digest;
        if !passed.missing.is_empty() && revision.as_ref().is_none_or(Revision::is_whole) {
            let missing: Vec<_> = passed.missing.iter().map(String::as_str).collect();
            self.warnings.push(format!("the source has no column {}; it is null in its rows", missing.join(", ")));
        }
        match (prepared, passed.scope, revision) {
            (Prepared::Chosen(chosen), _, Some(revision)) => {
                let revision = Arc::new(revision);
                Ok(match *chosen {
                    Chosen::Held(winners) => {
                        let keys = SourceKeys::new(Arc::new(winners))?;
                        Rows::Keyed { keys, revision, probes: Probes::default() }
                    }
                    Chosen::Spilled(source) => Rows::Spilled { source: Box::new(source), revision },
                })
            }
            (Prepared::Chosen(_), _, None) => Err(Error::internal("rows were chosen without a key")),
            (Prepared::Staged(staged), None, _) => Ok(Rows::Added { staged, rows: passed.rows }),
            (Prepared::Staged(staged), Some(scope), _) => {
                self.refuse_empty(passed.rows)?;
                Ok(Rows::Replacing { staged, rows: passed.rows, scope: Arc::new(scope) })
            }
        }
    }

    /// The key and order of the contract; none for one without a key.
    fn keyed(&self, schema: &TableSchema) -> Result<Option<Keyed>> {
        let (key, order) = match &self.load.contract {
            Contract::Append | Contract::Replace(_) => return Ok(None),
            Contract::Merge { key, order, .. } => (key, order.as_ref()),
            Contract::Insert { key } => (key, None),
        };
        Keyed::new(self.name(), schema, key, order, self.load.null_keys).map(Some)
    }

    fn revision(&self, keyed: &Keyed, constraints: Constraints) -> Result<Revision> {
        let whole = Update::default();
        let update = match &self.load.contract {
            Contract::Merge { update, .. } => update,
            _ => &whole,
        };
        let revision = Revision::new(keyed, update, constraints).map_err(|error| error.about(self.name()))?;
        if revision.builds_on_target() && keyed.order.is_none() && self.load.identities.is_empty() {
            return Err(Error::invalid(format!(
                "--set computes from rows of {}, so doing this merge twice would change them twice",
                self.name()
            ))
            .hint("give it an order (--newest-by) or an identity (--write-id)"));
        }
        Ok(revision)
    }

    fn gate(&self, schema: &TableSchema, constraints: Constraints, revision: Option<&Revision>) -> Result<Gate> {
        let scope = match &self.load.contract {
            Contract::Replace(scope) => {
                Some(ResolvedScope::resolve(scope, schema).map_err(|error| error.about(self.name()))?)
            }
            _ => None,
        };
        let is_merge = matches!(self.load.contract, Contract::Merge { .. });
        let needed = revision.filter(|_| is_merge).map(|revision| revision.needed(schema)).unwrap_or_default();
        let digest = !self.load.identities.is_empty();
        // Rows that are only a part of what is written are checked once they are whole.
        if revision.is_some_and(|revision| !revision.is_whole()) {
            let schema = relaxed(schema, &needed);
            return Ok(Gate { schema, constraints: Constraints::none(), needed, scope, digest });
        }
        Ok(Gate { schema: schema.clone(), constraints, needed, scope, digest })
    }

    fn scope_in_words(&self) -> String {
        let scope = match &self.load.contract {
            Contract::Replace(Scope::Where(predicate)) => predicate.clone(),
            Contract::Replace(Scope::Interval { column, start, end }) => format!("{column}={start}/{end}"),
            _ => String::new(),
        };
        format!("{scope} of {}", self.name())
    }

    fn refuse_empty(&self, rows: u64) -> Result<()> {
        if rows > 0 || self.load.allow_empty {
            return Ok(());
        }
        Err(Error::refused(format!(
            "the source has no rows, so replacing would only delete rows of {}; nothing was changed",
            self.name()
        ))
        .hint("if that is what you want, say --allow-empty"))
    }
}
