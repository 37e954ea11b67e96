//! What becomes of a file when some of its rows go: it leaves the table, a deletion vector masks them, or it is written
//! again without them.

use roaring::RoaringTreemap;

use super::Mask;
use super::target::Stage;
use crate::error::{Error, Result};
use crate::table::actions::AddFile;
use crate::table::scan::OpenFile;

/// A file is written again once more than one row in so many is masked: readers pay for masked rows each time.
const MASKED_AT_MOST: u64 = 2;

/// What is to become of a file.
#[derive(Debug)]
pub(super) enum Fate {
    /// None of its rows stays.
    Removed,
    /// It stays, with these rows masked (those that were masked before among them).
    Masked(RoaringTreemap),
    Rewritten,
}

/// What is to become of `file` when the rows at `going` go; `masks` says whether rows of the table may be masked.
pub(super) fn fate(file: &OpenFile, going: impl IntoIterator<Item = u64>, masks: bool) -> Fate {
    let mut masked = file.masked().clone();
    masked.extend(going);
    match (masked.len(), file.physical_rows()) {
        (gone, all) if gone >= all => Fate::Removed,
        (gone, all) if masks && gone <= all / MASKED_AT_MOST => Fate::Masked(masked),
        _ => Fate::Rewritten,
    }
}

/// Writes the deletion vectors of files, and gives the files with them.
///
/// # Errors
/// Those of staging; `Unsupported` for statistics that cannot be taken over.
pub(super) async fn mask(files: Vec<(AddFile, u64, RoaringTreemap)>, stage: &dyn Stage) -> Result<Vec<Mask>> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let (files, sets): (Vec<_>, Vec<_>) = files.into_iter().map(|(file, rows, set)| ((file, rows), set)).unzip();
    let vectors = stage.mask(sets).await?;
    if vectors.len() != files.len() {
        return Err(Error::internal(format!(
            "{} deletion vectors were staged for {} files",
            vectors.len(),
            files.len()
        )));
    }
    let masks = files.into_iter().zip(vectors).map(|((file, rows), vector)| {
        let masked = file.masked_by(vector, rows);
        Mask { file, masked }
    });
    Ok(masks.collect())
}

#[cfg(test)]
mod tests;
