//! Compares rows of a table with what a merge would make of them, where their winners are not newer.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::BooleanBuffer;
use futures::TryStreamExt;

use crate::error::{Error, Result};
use crate::plan::probe::Match;
use crate::plan::revision::Revision;
use crate::prepare::content::any_differing;
use crate::prepare::index::Slot;
use crate::prepare::keys::Keyed;
use crate::prepare::winners::Winners;
use crate::table::row_ranges::RowRanges;
use crate::table::scan::{OpenFile, Scanned};

/// For each of `matches` (in the file's order), whether the row would become another one. They are known to agree with
/// their winners in key and order columns; of these rows the other columns are read that the merge updates, if any.
///
/// With an order, a winner that is as new as the row has been there before: what a merge computes is left out then.
pub(super) async fn differing(
    winners: &Arc<Winners>,
    revision: &Arc<Revision>,
    file: &OpenFile,
    matches: Vec<Match>,
) -> Result<Vec<bool>> {
    let wanted = matches.len();
    let computes = winners.keyed().order.is_none() && revision.computes();
    let columns = if computes { file.all_columns() } else { open_columns(winners.keyed(), revision) };
    if columns.is_empty() || matches.is_empty() {
        return Ok(vec![false; wanted]);
    }
    let rows = RowRanges::at(matches.iter().map(|found| found.row));
    let compare = {
        let (winners, revision, columns) = (winners.clone(), revision.clone(), columns.clone());
        let mut slots = matches.into_iter().map(|found| found.slot);
        move |scanned: Scanned| {
            let here: Vec<Slot> = slots.by_ref().take(scanned.rows.num_rows()).collect();
            let differing = if computes {
                differing_whole(&winners, &revision, &scanned.rows, &here)?
            } else {
                any_differing(scanned.rows.columns(), &winners.gather(&here, &columns)?, here.len())?
            };
            Ok(differing.iter().collect::<Vec<bool>>())
        }
    };
    let differing: Vec<bool> = file.scan(&columns, Some(&rows), compare).try_concat().await?;
    if differing.len() != wanted {
        return Err(Error::internal(format!(
            "{} of {wanted} rows of data file '{}' were compared",
            differing.len(),
            file.file().path
        )));
    }
    Ok(differing)
}

fn differing_whole(winners: &Winners, revision: &Revision, old: &RecordBatch, slots: &[Slot]) -> Result<BooleanBuffer> {
    let new = revision.of(winners, old, slots)?;
    any_differing(old.columns(), new.columns(), old.num_rows())
}

/// Columns that are taken from the source, but for those that key and order have compared.
fn open_columns(keyed: &Keyed, revision: &Revision) -> Vec<usize> {
    let decided = |column: usize| {
        keyed.key.columns().contains(&column)
            || keyed.order.as_ref().is_some_and(|order| order.columns().contains(&column))
    };
    let columns = 0..keyed.schema.columns().fields().len();
    columns.filter(|column| !decided(*column) && revision.takes(*column)).collect()
}
