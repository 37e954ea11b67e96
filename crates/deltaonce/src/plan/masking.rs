//! What becomes of a file when some of its rows go: it leaves the table, a deletion vector masks them, or it is written
//! again without them.

use std::ops::Range;

use futures::{StreamExt, stream};
use roaring::RoaringTreemap;

use super::Mask;
use super::rewrite::write_pieces;
use super::runs::{pieces, runs};
use super::target::{Stage, Target};
use crate::error::{Error, Result};
use crate::table::actions::AddFile;
use crate::table::row_ranges::RowRanges;
use crate::table::scan::OpenFile;

/// A file is written again once more than one row in so many is masked: readers pay for masked rows each time.
const MASKED_AT_MOST: u64 = 2;

/// What is to become of a file.
#[derive(Debug)]
pub(super) enum FileFate {
    /// None of its rows stays.
    Removed,
    /// It stays, with these rows masked (those that were masked before among them).
    Masked(RoaringTreemap),
    Rewritten,
}

/// What is to become of `file` when the rows at `going` go; `masks` says whether rows of the table may be masked.
pub(super) fn fate(file: &OpenFile, going: impl IntoIterator<Item = u64>, masks: bool) -> FileFate {
    let mut masked = file.masked().clone();
    masked.extend(going);
    match (masked.len(), file.physical_rows()) {
        (gone, all) if gone >= all => FileFate::Removed,
        (gone, all) if masks && gone <= all / MASKED_AT_MOST => FileFate::Masked(masked),
        _ => FileFate::Rewritten,
    }
}

/// What takes rows out of files.
#[derive(Debug, Default)]
pub(super) struct TakenOut {
    /// Files that leave the table.
    pub(super) removes: Vec<AddFile>,
    pub(super) masks: Vec<Mask>,
    /// Staged files with the rows of removed ones that stay.
    pub(super) kept: Vec<AddFile>,
}

/// Takes the rows at places out of their files.
///
/// # Errors
/// Those of reading and of staging.
pub(super) async fn take_out(
    target: &Target<'_>,
    going: impl IntoIterator<Item = (&OpenFile, &RoaringTreemap)>,
    stage: &dyn Stage,
) -> Result<TakenOut> {
    let (mut taken, mut masks, mut again) = (TakenOut::default(), Vec::new(), Vec::new());
    for (file, places) in going {
        match fate(file, places, target.masks) {
            FileFate::Masked(rows) => masks.push((file, rows)),
            FileFate::Removed => taken.removes.push(file.file().clone()),
            FileFate::Rewritten => {
                taken.removes.push(file.file().clone());
                again.push((file, places));
            }
        }
    }
    let mut stay = Vec::new();
    for (file, places) in again {
        let rows = |run: Range<u64>| {
            let rows = RowRanges::of([run]).without(places);
            file.scan(&file.all_columns(), Some(&rows), |scanned| Ok(scanned.rows))
        };
        stay.push(pieces(file, runs(file, places).await?, rows));
    }
    taken.masks = mask(masks, stage).await?;
    if !stay.is_empty() {
        taken.kept = write_pieces(stream::iter(stay).flatten().boxed(), stage).await?;
    }
    Ok(taken)
}

/// Writes the deletion vectors of files, and gives the files with them.
///
/// # Errors
/// Those of staging.
pub(super) async fn mask(files: Vec<(&OpenFile, RoaringTreemap)>, stage: &dyn Stage) -> Result<Vec<Mask>> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let (files, sets): (Vec<_>, Vec<_>) = files.into_iter().unzip();
    let vectors = stage.mask(sets).await?;
    if vectors.len() != files.len() {
        let (staged, wanted) = (vectors.len(), files.len());
        return Err(Error::internal(format!("{staged} deletion vectors were staged for {wanted} files")));
    }
    let masks = files.into_iter().zip(vectors).map(|(file, vector)| Mask {
        file: file.file().clone(),
        masked: file.file().masked_by(vector, file.physical_rows()),
    });
    Ok(masks.collect())
}

#[cfg(test)]
mod tests;
