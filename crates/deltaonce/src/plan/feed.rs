//! Rows for the change data feed, where readers could not tell them from the files that a commit adds and removes
//! (protocol, "Add CDC File"): then all rows that changed are written, those that are new included.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::compute::interleave_record_batch;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use crate::error::{Error, Result};
use crate::plan::difference::{Part, Side, difference};
use crate::plan::revision::Revision;
use crate::plan::rewrite::Updated;
use crate::plan::target::Stage;
use crate::prepare::index::Slot;
use crate::prepare::winners::Winners;
use crate::stage::CHANGE_TYPE;
use crate::table::actions::ChangeFile;
use crate::table::row_ranges::RowRanges;
use crate::table::scan::Scanned;

/// The kinds of change, as the feed calls them.
const INSERT: &str = "insert";
const DELETE: &str = "delete";
const BEFORE: &str = "update_preimage";
const AFTER: &str = "update_postimage";

/// Writes the changes of a merge: the rows of `updated` before and after, and `inserted` rows.
///
/// # Errors
/// Those of reading and of staging.
pub(super) async fn merged(
    winners: &Arc<Winners>,
    revision: &Arc<Revision>,
    updated: &[Updated],
    inserted: BoxStream<'static, Result<RecordBatch>>,
    stage: &dyn Stage,
) -> Result<Vec<ChangeFile>> {
    let updates = updated.iter().map(|Updated { file, rows }| {
        let mut slots = rows.iter().map(|(_, slot)| *slot).collect::<Vec<_>>().into_iter();
        let (winners, revision) = (winners.clone(), revision.clone());
        let both = move |scanned: Scanned| {
            let here: Vec<Slot> = slots.by_ref().take(scanned.rows.num_rows()).collect();
            let new = revision.of(&winners, &scanned.rows, &here)?;
            alternate(&tagged(&scanned.rows, BEFORE)?, &tagged(&new, AFTER)?)
        };
        let places = RowRanges::at(rows.iter().map(|(place, _)| *place));
        file.scan(&file.all_columns(), Some(&places), both)
    });
    let updates: Vec<_> = updates.collect();
    let inserted = inserted.map(|rows| tagged(&rows?, INSERT)).boxed();
    stage.write_changes(stream::iter(updates.into_iter().chain([inserted])).flatten().boxed()).await
}

/// Writes the changes of a replace: of the `gone` rows and the `come` ones, those that the others are not equal to.
/// About so many bytes of `memory` are held to tell them apart.
///
/// # Errors
/// Those of reading and of staging.
pub(super) async fn replaced(
    gone: Vec<Part>,
    come: Vec<Part>,
    memory: u64,
    stage: &dyn Stage,
) -> Result<Vec<ChangeFile>> {
    let changed = difference(gone, come, memory)?.map(|changed| match changed? {
        (Side::Before, rows) => tagged(&rows, DELETE),
        (Side::After, rows) => tagged(&rows, INSERT),
    });
    stage.write_changes(changed.boxed()).await
}

/// The rows with the kind of their change after the other columns.
fn tagged(rows: &RecordBatch, kind: &str) -> Result<RecordBatch> {
    let schema = rows.schema();
    let fields = schema.fields().iter().cloned();
    let fields: Fields = fields.chain([Arc::new(Field::new(CHANGE_TYPE, DataType::Utf8, false))]).collect();
    let kinds: ArrayRef = Arc::new(StringArray::from_iter_values(std::iter::repeat_n(kind, rows.num_rows())));
    let columns = rows.columns().iter().cloned().chain([kinds]).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
        .map_err(|e| Error::internal("rows that changed could not be marked").caused_by(e))
}

/// The rows of two batches in turn.
fn alternate(one: &RecordBatch, other: &RecordBatch) -> Result<RecordBatch> {
    let picks: Vec<(usize, usize)> = (0..one.num_rows()).flat_map(|row| [(0, row), (1, row)]).collect();
    interleave_record_batch(&[one, other], &picks)
        .map_err(|e| Error::internal("rows that changed could not be put in turn").caused_by(e))
}

#[cfg(test)]
mod tests;
