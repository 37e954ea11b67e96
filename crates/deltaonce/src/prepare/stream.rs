//! A source's rows on their way to data files: conformed, checked, admitted by the scope, and counted.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::record_batch::RecordBatch;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};

use super::conform::Conform;
use super::constraints::Constraints;
use crate::error::{Error, Result};
use crate::plan::scope::{PartitionSet, ResolvedScope, Strays};
use crate::source::{Places, SourceBatch};
use crate::stop::Stop;

/// Everything that a row must pass before it is written.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) conform: Conform,
    pub(crate) constraints: Constraints,
    /// The scope of a replace.
    pub(crate) scope: Option<Arc<ResolvedScope>>,
    /// Collects the partitions that have a row, where the scope is those.
    pub(crate) partitions: Option<PartitionSet>,
}

/// What passed, once the stream has ended.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    pub(crate) rows: u64,
    pub(crate) partitions: Option<PartitionSet>,
    strays: Strays,
}

/// The rows of a source in the table's columns and types, batch by batch and in order; `parallelism` batches are
/// prepared at once, off the async threads.
///
/// Rows that the scope does not admit are counted to the end, so that the refusal can say how many they are.
pub(crate) fn prepared(
    source: BoxStream<'static, Result<SourceBatch>>,
    gate: Gate,
    parallelism: usize,
    stop: Stop,
) -> (impl Stream<Item = Result<(RecordBatch, Places)>> + Send + 'static, Tally) {
    let Gate { conform, constraints, scope, partitions } = gate;
    let tally = Tally(Arc::new(Mutex::new(Passed { partitions, ..Passed::default() })));
    let (gate, counted) = (Arc::new((conform, constraints, scope)), tally.clone());
    let stream = source
        .map(move |batch| {
            let (gate, tally, stop) = (Arc::clone(&gate), counted.clone(), stop.clone());
            let task = tokio::task::spawn_blocking(move || {
                stop.check()?;
                let (conform, constraints, scope) = gate.as_ref();
                let (rows, places) = conform.apply(batch?)?;
                constraints.check(&rows, &places)?;
                tally.take(&rows, &places, scope.as_deref())?;
                Ok((rows, places))
            });
            async move { task.await.map_err(|e| Error::internal("preparing rows broke off").caused_by(e))? }
        })
        .buffered(parallelism.max(1));
    (stream, tally)
}

/// Counts what passes; shared by the batches in preparation.
#[derive(Debug, Clone)]
pub(crate) struct Tally(Arc<Mutex<Passed>>);

impl Tally {
    fn take(&self, rows: &RecordBatch, places: &Places, scope: Option<&ResolvedScope>) -> Result<()> {
        let admitted = scope.map(|scope| scope.admits(rows)).transpose()?.flatten();
        let mut passed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        passed.rows += rows.num_rows() as u64;
        if let Some(admitted) = admitted {
            passed.strays.add(&admitted, places);
        }
        if let Some(partitions) = &mut passed.partitions {
            partitions.observe(rows)?;
        }
        Ok(())
    }

    /// What passed.
    ///
    /// # Errors
    /// `Refused`, with a count and samples, where rows lie outside the scope.
    pub(crate) fn finish(self, scope: Option<&ResolvedScope>) -> Result<Passed> {
        let passed = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        match scope {
            Some(scope) if !passed.strays.is_empty() => Err(passed.strays.refusal(passed.rows, scope)),
            _ => Ok(passed),
        }
    }
}
