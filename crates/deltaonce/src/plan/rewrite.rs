//! Writes a file again with some of its rows replaced, and rows that are new.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::compute::interleave;
use futures::StreamExt;
use futures::stream::BoxStream;

use crate::error::{Error, Result};
use crate::plan::target::{Stage, Target};
use crate::prepare::index::Slot;
use crate::prepare::winners::Winners;
use crate::table::actions::AddFile;
use crate::table::scan::{Scanned, scan_with};

/// Writes all rows of `file` again, in its order, with the winner of `slot` in place of each row of `updates`
/// (row, slot), which is in the order of rows.
///
/// # Errors
/// Those of reading and staging; `Internal` where not every row of the file came out again.
pub(super) async fn rewrite(
    target: &Target<'_>,
    winners: &Arc<Winners>,
    file: &AddFile,
    updates: Vec<(u64, Slot)>,
    stage: &dyn Stage,
) -> Result<Vec<AddFile>> {
    let wanted = updates.len() as u64;
    let replaced = Arc::new(AtomicU64::new(0));
    let all: Vec<usize> = (0..target.schema.columns().fields().len()).collect();
    let replace = {
        let (winners, replaced) = (winners.clone(), replaced.clone());
        let mut left = updates.into_iter().peekable();
        move |scanned: Scanned| {
            let end = scanned.first + scanned.rows.num_rows() as u64;
            let here: Vec<(u64, Slot)> = std::iter::from_fn(|| left.next_if(|(row, _)| *row < end)).collect();
            replaced.fetch_add(here.len() as u64, Ordering::Relaxed);
            replace(&winners, &scanned, &here)
        }
    };
    let rows = scan_with(target.store.clone(), target.schema, file, &all, replace).boxed();
    let adds =
        write(rows, stage).await.map_err(|e| e.detail(format!("while data file '{}' was written again", file.path)))?;
    let replaced = replaced.load(Ordering::Relaxed);
    if replaced != wanted {
        return Err(Error::internal(format!("{replaced} of {wanted} rows of data file '{}' were replaced", file.path)));
    }
    Ok(adds)
}

/// Writes the rows of the slots that `keep` names.
///
/// # Errors
/// Those of staging; `Internal` where not every row came out.
pub(super) async fn insert(
    winners: &Arc<Winners>,
    keep: impl Fn(Slot) -> bool,
    stage: &dyn Stage,
) -> Result<Vec<AddFile>> {
    write(winners.rows(keep), stage).await
}

/// Stages rows, and checks what the new files say they hold against what went in.
async fn write(rows: BoxStream<'static, Result<RecordBatch>>, stage: &dyn Stage) -> Result<Vec<AddFile>> {
    let given = Arc::new(AtomicU64::new(0));
    let counted = {
        let given = given.clone();
        rows.inspect(move |batch| {
            if let Ok(batch) = batch {
                given.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
            }
        })
    };
    let adds = stage.write(counted.boxed()).await?;
    let given = given.load(Ordering::Relaxed);
    let staged: Option<u64> = adds.iter().map(AddFile::num_records).sum();
    match staged {
        Some(staged) if staged != given => {
            Err(Error::internal(format!("{given} rows were to be written and the new files hold {staged}")))
        }
        _ => Ok(adds),
    }
}

fn replace(winners: &Winners, scanned: &Scanned, updates: &[(u64, Slot)]) -> Result<RecordBatch> {
    let rows = &scanned.rows;
    if updates.is_empty() {
        return Ok(rows.clone());
    }
    let slots: Vec<Slot> = updates.iter().map(|&(_, slot)| slot).collect();
    let all: Vec<usize> = (0..rows.num_columns()).collect();
    let new = winners.gather(&slots, &all)?;
    let mut picks: Vec<(usize, usize)> = (0..rows.num_rows()).map(|row| (0, row)).collect();
    for (number, &(row, _)) in updates.iter().enumerate() {
        let place = row.checked_sub(scanned.first).and_then(|row| picks.get_mut(usize::try_from(row).ok()?));
        *place.ok_or_else(|| Error::internal("a row to replace is not where it was"))? = (1, number);
    }
    let columns = rows.columns().iter().zip(&new).map(|(old, new)| interleave(&[old.as_ref(), new.as_ref()], &picks));
    let replaced =
        columns.collect::<Result<Vec<_>, _>>().and_then(|columns| RecordBatch::try_new(rows.schema(), columns));
    replaced.map_err(|e| Error::internal("rows could not be replaced").caused_by(e))
}
