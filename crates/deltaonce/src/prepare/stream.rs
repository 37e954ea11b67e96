//! A source's rows on their way to data files: conformed, checked, admitted by the scope, and counted.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::datatypes::{Field, Fields, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};

use super::conform::Conform;
use super::constraints::Constraints;
use super::digest::RowsDigest;
use crate::error::{Error, Result};
use crate::plan::scope::ResolvedScope;
use crate::plan::strays::Strays;
use crate::source::{Places, SourceBatch};
use crate::stop::Stop;
use crate::table::schema::TableSchema;

/// Everything that a row must pass before it is written.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) schema: TableSchema,
    pub(crate) constraints: Constraints,
    /// Columns that every input must have; others that it lacks are null.
    pub(crate) needed: BTreeSet<String>,
    /// The scope of a replace.
    pub(crate) scope: Option<ResolvedScope>,
    /// Whether a digest of the rows is wanted.
    pub(crate) digest: bool,
}

impl Gate {
    /// One that any row passes which may once have gone into a table of this schema, and that only takes their digest.
    pub(crate) fn comparing(schema: &TableSchema) -> Self {
        let columns = schema.columns().fields().iter();
        let columns: Fields = columns.map(|field| Field::new(field.name(), field.data_type().clone(), true)).collect();
        Self {
            schema: TableSchema::new(Arc::new(Schema::new(columns)), schema.partition_columns().to_vec()),
            constraints: Constraints::none(),
            needed: BTreeSet::new(),
            scope: None,
            digest: true,
        }
    }
}

/// What passed.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    pub(crate) rows: u64,
    /// The scope of a replace; that of partitions holds those that have a row.
    pub(crate) scope: Option<ResolvedScope>,
    /// Columns that some input does not have.
    pub(crate) missing: BTreeSet<String>,
    /// Of all rows, where it was wanted.
    pub(crate) digest: Option<RowsDigest>,
    strays: Strays,
}

/// The rows of a source in the table's columns and types, batch by batch and in order; `parallelism` batches are
/// prepared at once, off the async threads. The [`Tally`] is complete when the stream has ended.
///
/// Rows that the scope does not admit are counted to the end, so that the refusal can say how many they are.
pub(crate) fn prepared(
    source: BoxStream<'static, Result<SourceBatch>>,
    mut gate: Gate,
    parallelism: usize,
    stop: Stop,
) -> (impl Stream<Item = Result<(RecordBatch, Places)>> + Send + 'static, Tally) {
    let scope = gate.scope.clone();
    let digest = gate.digest.then(RowsDigest::default);
    let tally = Tally(Arc::new(Mutex::new(Passed { scope: gate.scope.take(), digest, ..Passed::default() })));
    let checks = Arc::new(Checks { gate, scope, conform: Mutex::default() });
    let counted = tally.clone();
    let stream = until(stop, source)
        .map(move |batch| {
            let (checks, tally) = (Arc::clone(&checks), counted.clone());
            let task = tokio::task::spawn_blocking(move || checks.pass(batch?, &tally));
            async move { task.await.map_err(|e| Error::internal("preparing rows broke off").caused_by(e))? }
        })
        .buffered(parallelism.max(1));
    (stream, tally)
}

/// The batches of `source`, and an error as soon as the load is asked to stop.
fn until(
    stop: Stop,
    source: BoxStream<'static, Result<SourceBatch>>,
) -> impl Stream<Item = Result<SourceBatch>> + Send + 'static {
    stream::unfold(Some((stop, source)), |state| async {
        let (stop, mut source) = state?;
        tokio::select! {
            biased;
            error = stop.stopped() => Some((Err(error), None)),
            batch = source.next() => batch.map(|batch| (batch, Some((stop, source)))),
        }
    })
}

struct Checks {
    gate: Gate,
    /// As it was resolved: whether a row is admitted depends on no other row.
    scope: Option<ResolvedScope>,
    /// For the schema of the latest batch: batches of one input share theirs.
    conform: Mutex<Option<(SchemaRef, Arc<Conform>)>>,
}

impl Checks {
    fn pass(&self, batch: SourceBatch, tally: &Tally) -> Result<(RecordBatch, Places)> {
        let conform = self.conform(&batch)?;
        let (rows, places) = conform.apply(batch)?;
        self.gate.constraints.check(&rows, &places)?;
        let admitted = self.scope.as_ref().map(|scope| Ok((scope.admits(&rows)?, scope.columns()))).transpose()?;
        let digest = self.gate.digest.then(|| RowsDigest::of(&rows)).transpose()?;
        let mut passed = tally.lock();
        if let Some(digest) = digest {
            *passed.digest.get_or_insert_default() += digest;
        }
        passed.rows += rows.num_rows() as u64;
        passed.missing.extend(conform.missing().iter().cloned());
        if let Some((Some(admitted), columns)) = admitted {
            passed.strays.observe(&rows, &admitted, &places, &columns);
        }
        if let Some(scope) = &mut passed.scope {
            scope.observe(&rows)?;
        }
        Ok((rows, places))
    }

    fn conform(&self, batch: &SourceBatch) -> Result<Arc<Conform>> {
        let schema = batch.rows.schema_ref();
        let mut latest = self.conform.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, conform)) = &*latest
            && known == schema
        {
            return Ok(Arc::clone(conform));
        }
        let name = batch.places.of(0).source;
        let conform = Conform::new(&self.gate.schema, schema, &name)?;
        self.check_missing(&conform, &name)?;
        let conform = Arc::new(conform);
        *latest = Some((schema.clone(), Arc::clone(&conform)));
        Ok(conform)
    }

    fn check_missing(&self, conform: &Conform, name: &str) -> Result<()> {
        let missing = conform.missing();
        if missing.is_empty() {
            return Ok(());
        }
        let needed: Vec<&str> =
            missing.iter().filter(|column| self.gate.needed.contains(*column)).map(String::as_str).collect();
        if !needed.is_empty() {
            return Err(Error::refused(format!(
                "{name} has no column {}, which this merge takes from it",
                needed.join(", ")
            ))
            .hint("a merge updates whole rows; to leave columns as they are, name the others with --update-columns"));
        }
        let has_default = |name: &&String| {
            self.gate.schema.column(name).is_some_and(|field| field.metadata().contains_key("CURRENT_DEFAULT"))
        };
        match missing.iter().find(has_default) {
            None => Ok(()),
            Some(column) => Err(Error::unsupported(format!(
                "{name} has no column {column}, for which the table declares a default (allowColumnDefaults), which this version does not fill in"
            ))),
        }
    }
}

/// Counts what passes; shared by the batches in preparation.
#[derive(Debug, Clone)]
pub(crate) struct Tally(Arc<Mutex<Passed>>);

impl Tally {
    fn lock(&self) -> MutexGuard<'_, Passed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What passed; `scope` is the scope in the user's words.
    ///
    /// # Errors
    /// `Refused`, with a count and samples, where rows lie outside the scope.
    pub(crate) fn finish(self, scope: &str) -> Result<Passed> {
        let passed = std::mem::take(&mut *self.lock());
        passed.strays.refuse(scope)?;
        Ok(passed)
    }
}
