//! Writes the rows of a merge: files again with some of their rows newer, newer rows apart from their files, and rows that
//! are new.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{interleave_record_batch, take_record_batch};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};

use crate::error::{Error, Result};
use crate::plan::revision::Revision;
use crate::plan::runs::{pieces, runs};
use crate::plan::target::Stage;
use crate::prepare::index::Slot;
use crate::prepare::winners::Winners;
use crate::stage::Piece;
use crate::table::actions::AddFile;
use crate::table::row_ranges::RowRanges;
use crate::table::scan::{OpenFile, Scanned};

/// Rows of a file that become newer.
#[derive(Debug, Clone)]
pub(super) struct Updated {
    pub(super) file: Arc<OpenFile>,
    /// Place and slot of each, ascending.
    pub(super) rows: Vec<(u64, Slot)>,
}

/// Writes the rows of a merge.
pub(super) struct Writer<'a> {
    pub(super) winners: &'a Arc<Winners>,
    pub(super) revision: &'a Arc<Revision>,
    pub(super) stage: &'a dyn Stage,
}

impl Writer<'_> {
    /// Writes all rows of a file that are there again, in its order, newer ones in place of the updated.
    ///
    /// # Errors
    /// Those of reading and staging; `Internal` where not every row of the file came out again.
    pub(super) async fn rewrite(&self, updated: &Updated) -> Result<Vec<AddFile>> {
        let Updated { file, rows } = updated;
        let wanted = rows.len() as u64;
        let replaced = Arc::new(AtomicU64::new(0));
        let replace_in = |places: Range<u64>| {
            let (winners, revision, replaced) = (self.winners.clone(), self.revision.clone(), replaced.clone());
            let here = rows.iter().filter(|(place, _)| places.contains(place)).copied().collect::<Vec<_>>();
            let mut left = here.into_iter().peekable();
            let replace = move |scanned: Scanned| {
                let here: Vec<(usize, Slot)> = (0..scanned.rows.num_rows())
                    .filter_map(|row| {
                        let place = scanned.places.of(row);
                        left.next_if(|(updated, _)| *updated == place).map(|(_, slot)| (row, slot))
                    })
                    .collect();
                replaced.fetch_add(here.len() as u64, Ordering::Relaxed);
                replace(&winners, &revision, scanned.rows, &here)
            };
            file.scan(&file.all_columns(), Some(&RowRanges::of([places])), replace)
        };
        let runs = runs(file, &rows.iter().map(|(place, _)| *place).collect()).await?;
        let path = &file.file().path;
        let adds = write_pieces(pieces(file, runs, replace_in), self.stage).await;
        let adds = adds.map_err(|e| e.detail(format!("while data file '{path}' was written again")))?;
        let replaced = replaced.load(Ordering::Relaxed);
        if replaced != wanted {
            return Err(Error::internal(format!("{replaced} of {wanted} rows of data file '{path}' were replaced")));
        }
        Ok(adds)
    }

    /// Writes the newer rows of `apart` and the rows of the slots that `keep` names.
    ///
    /// # Errors
    /// Those of reading and staging; `Internal` where not every row came out.
    pub(super) async fn add(&self, apart: &[Updated], keep: impl Fn(Slot) -> bool) -> Result<Vec<AddFile>> {
        if self.revision.is_whole() {
            let slots = apart.iter().flat_map(|updated| &updated.rows).map(|(_, slot)| *slot);
            let slots: roaring::RoaringBitmap = slots.collect();
            return write(self.winners.rows(|slot| keep(slot) || slots.contains(slot)), self.stage).await;
        }
        let newer = apart.iter().map(|updated| self.newer(updated)).collect::<Vec<_>>();
        let rows = stream::iter(newer.into_iter().chain([self.added(keep)])).flatten();
        write(rows.boxed(), self.stage).await
    }

    /// The rows of the slots that `keep` names, as they are new to the table.
    pub(super) fn added(&self, keep: impl Fn(Slot) -> bool) -> BoxStream<'static, Result<RecordBatch>> {
        let (winners, revision) = (self.winners.clone(), self.revision.clone());
        let rows = self.winners.rows(keep);
        rows.map(move |rows| revision.added(rows?, &winners.keyed().schema)).boxed()
    }

    fn newer(&self, updated: &Updated) -> BoxStream<'static, Result<RecordBatch>> {
        let (winners, revision) = (self.winners.clone(), self.revision.clone());
        let mut slots = updated.rows.iter().map(|(_, slot)| *slot).collect::<Vec<_>>().into_iter();
        let places = RowRanges::at(updated.rows.iter().map(|(place, _)| *place));
        updated.file.scan(&updated.file.all_columns(), Some(&places), move |scanned| {
            let here: Vec<Slot> = slots.by_ref().take(scanned.rows.num_rows()).collect();
            revision.of(&winners, &scanned.rows, &here)
        })
    }
}

/// Stages rows, and checks what the new files say they hold against what went in.
pub(super) async fn write(rows: BoxStream<'static, Result<RecordBatch>>, stage: &dyn Stage) -> Result<Vec<AddFile>> {
    write_pieces(rows.map_ok(Piece::Rows).boxed(), stage).await
}

/// Stages pieces, and checks what the new files say they hold against what went in.
pub(super) async fn write_pieces(pieces: BoxStream<'static, Result<Piece>>, stage: &dyn Stage) -> Result<Vec<AddFile>> {
    let given = Arc::new(AtomicU64::new(0));
    let counted = {
        let given = given.clone();
        pieces.inspect(move |piece| {
            if let Ok(piece) = piece {
                given.fetch_add(piece.rows(), Ordering::Relaxed);
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

/// The rows with newer ones in place of those of `updates`.
fn replace(
    winners: &Winners,
    revision: &Revision,
    rows: RecordBatch,
    updates: &[(usize, Slot)],
) -> Result<RecordBatch> {
    if updates.is_empty() {
        return Ok(rows);
    }
    let failed = |e| Error::internal("rows could not be replaced").caused_by(e);
    let slots: Vec<Slot> = updates.iter().map(|&(_, slot)| slot).collect();
    let places = UInt32Array::from_iter_values(updates.iter().map(|&(row, _)| row as u32));
    let new = revision.of(winners, &take_record_batch(&rows, &places).map_err(failed)?, &slots)?;
    let mut picks: Vec<(usize, usize)> = (0..rows.num_rows()).map(|row| (0, row)).collect();
    for (number, &(row, _)) in updates.iter().enumerate() {
        *picks.get_mut(row).ok_or_else(|| Error::internal("a row to replace is not where it was"))? = (1, number);
    }
    interleave_record_batch(&[&rows, &new], &picks).map_err(failed)
}
