//! All rows are added; nothing of the table is read.

use super::Change;
use crate::receipt::RowCounts;
use crate::table::actions::AddFile;

/// Adds the staged files, which hold `rows` rows.
pub(crate) fn plan(staged: &[AddFile], rows: u64) -> Change {
    let rows = RowCounts { read: rows, inserted: rows, ..RowCounts::default() };
    Change { adds: staged.to_vec(), rows, ..Change::none() }
}
