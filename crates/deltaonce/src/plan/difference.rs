//! The rows that one of two bags of rows has and the other has not.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};

use super::fingerprint::Fingerprinter;
use crate::error::{Error, Result};
use crate::table::row_ranges::RowRanges;
use crate::table::scan::{OpenFile, Scanned};

/// What a hash and a count take in a map at most, just after it has grown.
const BYTES_A_ROW: u64 = 128;

/// A file's rows: all of them, or those at the places given.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) file: Arc<OpenFile>,
    pub(super) places: Option<Arc<RowRanges>>,
}

impl Part {
    /// How many rows are there, as the file itself says: the log may say any number.
    fn rows(&self) -> u64 {
        let all = || self.file.physical_rows().saturating_sub(self.file.masked().len());
        self.places.as_ref().map_or_else(all, |places| places.count())
    }

    /// What `each` makes of its rows, batch by batch.
    pub(super) fn scan<T: Send + 'static>(
        &self,
        mut each: impl FnMut(RecordBatch) -> Result<T> + Send + 'static,
    ) -> BoxStream<'static, Result<T>> {
        self.file.scan(&self.file.all_columns(), self.places.as_deref(), move |Scanned { rows, .. }| each(rows))
    }
}

/// Which bag a row is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

/// The rows that are in one bag and not in the other, as often as they are there more often. Of the rows
/// nothing is held but a hash and a count of those of `before`. Where these take more than `memory` bytes, rows are compared
/// in several passes, each of which reads all of `before` twice and of `after` once.
///
/// # Errors
/// `Unsupported` for rows of types that cannot be compared; the stream's are those of reading.
pub(super) fn difference(
    before: Vec<Part>,
    after: Vec<Part>,
    memory: u64,
) -> Result<BoxStream<'static, Result<(Side, RecordBatch)>>> {
    let rows = before.iter().fold(0_u64, |rows, part| rows.saturating_add(part.rows()));
    let passes = rows.div_ceil((memory / BYTES_A_ROW).max(1)).max(1);
    let Some(first) = before.first().or(after.first()) else { return Ok(stream::empty().boxed()) };
    let printer = Arc::new(Fingerprinter::new(first.file.schema().columns())?);
    let changed = stream::iter(0..passes).flat_map(move |number| {
        let pass = Arc::new(Pass { number, passes, printer: printer.clone(), left: Mutex::default() });
        let count = scans(&before, &pass, |pass, rows| pass.count(&rows).map(|()| None));
        let come = scans(&after, &pass, |pass, rows| pass.pick(&rows, false).map(|rows| Some((Side::After, rows))));
        let gone = scans(&before, &pass, |pass, rows| pass.pick(&rows, true).map(|rows| Some((Side::Before, rows))));
        count.chain(come).chain(gone)
    });
    Ok(changed.try_filter_map(|found| async { Ok(found.filter(|(_, rows)| rows.num_rows() > 0)) }).boxed())
}

type Found = Option<(Side, RecordBatch)>;

/// What `each` makes of the rows of `parts`, one after the other; a file is read when its turn comes.
fn scans(
    parts: &[Part],
    pass: &Arc<Pass>,
    each: fn(&Pass, RecordBatch) -> Result<Found>,
) -> BoxStream<'static, Result<Found>> {
    let pass = pass.clone();
    let scan = move |part: Part| {
        let pass = pass.clone();
        part.scan(move |rows| each(&pass, rows))
    };
    stream::iter(parts.to_vec()).flat_map(scan).boxed()
}

/// One look at the rows whose hash falls to it.
struct Pass {
    number: u64,
    passes: u64,
    printer: Arc<Fingerprinter>,
    /// How often rows were counted and not yet found again.
    left: Mutex<HashMap<u128, u64>>,
}

impl Pass {
    fn is_ours(&self, hash: u128) -> bool {
        hash % u128::from(self.passes) == u128::from(self.number)
    }

    fn count(&self, rows: &RecordBatch) -> Result<()> {
        let hashes = self.printer.hashes(rows)?;
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        for hash in hashes.into_iter().filter(|hash| self.is_ours(*hash)) {
            *left.entry(hash).or_default() += 1;
        }
        Ok(())
    }

    /// The rows that were counted (or those that were not), each as often as it was.
    fn pick(&self, rows: &RecordBatch, counted: bool) -> Result<RecordBatch> {
        let hashes = self.printer.hashes(rows)?;
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let picked = hashes.into_iter().map(|hash| {
            let was_counted = left.get_mut(&hash).is_some_and(|left| {
                let any = *left > 0;
                *left = left.saturating_sub(1);
                any
            });
            Some(self.is_ours(hash) && was_counted == counted)
        });
        let picked: BooleanArray = picked.collect();
        drop(left);
        filter_record_batch(rows, &picked)
            .map_err(|e| Error::internal("rows that changed could not be picked").caused_by(e))
    }
}

#[cfg(test)]
mod tests;
