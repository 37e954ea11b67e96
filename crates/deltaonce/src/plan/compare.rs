//! Compares rows of a table with the winners of their keys, in what key and order leave open.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array};
use arrow::compute::take;
use futures::TryStreamExt;

use crate::error::{Error, Result};
use crate::plan::probe::Match;
use crate::plan::target::Target;
use crate::prepare::content::any_differing;
use crate::prepare::index::Slot;
use crate::prepare::keys::Keyed;
use crate::prepare::winners::Winners;
use crate::table::actions::AddFile;
use crate::table::scan::{Scanned, scan_with};

/// For each of `matches` (in the file's order), whether the row says anything else than its winner. They are known to
/// agree in key and order columns; the other columns of the file are read, unless there are none.
pub(super) async fn differing(
    target: &Target<'_>,
    winners: &Arc<Winners>,
    file: &AddFile,
    matches: Vec<Match>,
) -> Result<Vec<bool>> {
    let wanted = matches.len();
    let open = open_columns(winners.keyed());
    if open.is_empty() || matches.is_empty() {
        return Ok(vec![false; wanted]);
    }
    let compare = {
        let (winners, open) = (winners.clone(), open.clone());
        let mut left = matches.into_iter().peekable();
        move |scanned: Scanned| {
            let end = scanned.first + scanned.rows.num_rows() as u64;
            let here: Vec<Match> = std::iter::from_fn(|| left.next_if(|found| found.row < end)).collect();
            compare(&winners, &open, &scanned, &here)
        }
    };
    let differing = scan_with(target.store.clone(), target.schema, file, &open, compare).try_concat().await?;
    if differing.len() != wanted {
        return Err(Error::internal(format!(
            "{} of {wanted} rows of data file '{}' were compared",
            differing.len(),
            file.path
        )));
    }
    Ok(differing)
}

fn open_columns(keyed: &Keyed) -> Vec<usize> {
    let decided = |column: &usize| {
        keyed.key.columns().contains(column)
            || keyed.order.as_ref().is_some_and(|order| order.columns().contains(column))
    };
    (0..keyed.schema.columns().fields().len()).filter(|column| !decided(column)).collect()
}

fn compare(winners: &Winners, columns: &[usize], scanned: &Scanned, matches: &[Match]) -> Result<Vec<bool>> {
    if matches.is_empty() {
        return Ok(Vec::new());
    }
    let rows = UInt64Array::from_iter_values(matches.iter().map(|found| found.row.saturating_sub(scanned.first)));
    let slots: Vec<Slot> = matches.iter().map(|found| found.slot).collect();
    let had: Vec<ArrayRef> = scanned
        .rows
        .columns()
        .iter()
        .map(|column| take(column, &rows, None))
        .collect::<Result<_, _>>()
        .map_err(|e| Error::internal("rows of the table could not be taken").caused_by(e))?;
    let new = winners.gather(&slots, columns)?;
    Ok(any_differing(&had, &new, matches.len())?.iter().collect())
}
