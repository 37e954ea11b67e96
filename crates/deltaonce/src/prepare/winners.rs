//! The newest row of each key of a source, and the index that finds it.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, BooleanBufferBuilder, RecordBatch, new_empty_array};
use arrow::compute::{filter_record_batch, interleave};
use arrow::row::Rows;
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use crate::error::{Error, Result};
use crate::prepare::index::{KeyIndex, Slot};
use crate::prepare::keys::Keyed;
use crate::receipt::RowCounts;

/// One row for each key of a source. Slots number the keys from 0, in the order in which the source first names them.
///
/// Holds the winning rows and an index of their keys, and nothing else of the source.
#[derive(Debug)]
pub(crate) struct Winners {
    keyed: Keyed,
    index: KeyIndex,
    at: Vec<At>,
    batches: Vec<Held>,
    counts: RowCounts,
}

/// Where a slot's row is.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) batch: u32,
    pub(super) row: u32,
}

/// Rows of the source that are kept.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) rows: RecordBatch,
    /// Their order tuples, if there is an order.
    pub(super) order: Option<Rows>,
}

impl Winners {
    pub(super) fn new(keyed: Keyed, index: KeyIndex, at: Vec<At>, batches: Vec<Held>, counts: RowCounts) -> Self {
        Self { keyed, index, at, batches, counts }
    }

    /// The key and the order that chose them.
    pub(crate) fn keyed(&self) -> &Keyed {
        &self.keyed
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.at.len()
    }

    /// All slots.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..).take(self.len())
    }

    /// The source's rows: `read`, and of them `duplicates` and `superseded`; the winners are the rest.
    pub(crate) fn counts(&self) -> RowCounts {
        self.counts
    }

    /// The values of one column (an index into the table's) in all rows, in pieces.
    pub(crate) fn column(&self, column: usize) -> impl Iterator<Item = &ArrayRef> {
        self.batches.iter().map(move |held| held.rows.column(column))
    }

    /// The slot of a key, as [`Key::encode`](crate::prepare::keys::Key::encode) writes it.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Slot> {
        self.index.find(key)
    }

    /// The key of a slot, encoded.
    pub(crate) fn key(&self, slot: Slot) -> &[u8] {
        self.index.key(slot)
    }

    /// The order tuple of a slot's row, encoded; empty without an order.
    pub(crate) fn order(&self, slot: Slot) -> &[u8] {
        order_of(&self.batches, &self.at, slot)
    }

    /// The values of `columns` (indices into the table's columns) in the rows of `slots`, in that order.
    pub(crate) fn gather(&self, slots: &[Slot], columns: &[usize]) -> Result<Vec<ArrayRef>> {
        let places: Vec<(usize, usize)> = slots
            .iter()
            .filter_map(|&slot| self.at.get(slot as usize))
            .map(|at| (at.batch as usize, at.row as usize))
            .collect();
        gather(self.batches.iter().map(|held| &held.rows), &self.keyed, &places, columns)
    }

    /// The keys of slots for a person: `tenant=a, order_id=7`.
    pub(crate) fn show(&self, slots: &[Slot]) -> Result<Vec<String>> {
        let columns = self.gather(slots, self.keyed.key.columns())?;
        Ok((0..slots.len()).map(|row| self.keyed.key.show(&columns, row)).collect())
    }

    /// The rows of the slots that `keep` names, all columns, a batch at a time in the order in which they are held.
    pub(crate) fn rows(self: &Arc<Self>, keep: impl Fn(Slot) -> bool) -> BoxStream<'static, Result<RecordBatch>> {
        let kept = self.slots().zip(&self.at).filter(|(slot, _)| keep(*slot)).map(|(_, at)| *at);
        let masks = masks(self.batches.iter().map(|held| held.rows.num_rows()), kept);
        let winners = self.clone();
        let some = masks.into_iter().enumerate().filter(|(_, mask)| mask.true_count() > 0);
        stream::iter(some.collect::<Vec<_>>())
            .map(move |(batch, mask)| {
                let rows = winners.batches.get(batch).map(|held| &held.rows);
                let rows = rows.ok_or_else(|| Error::internal("a batch of winners is gone"))?;
                filter_record_batch(rows, &mask)
                    .map_err(|e| Error::internal("winners could not be selected").caused_by(e))
            })
            .boxed()
    }
}

/// The order tuple of a slot's row; empty without an order.
pub(super) fn order_of<'a>(batches: &'a [Held], at: &[At], slot: Slot) -> &'a [u8] {
    let held = at.get(slot as usize).and_then(|at| Some((batches.get(at.batch as usize)?, at.row)));
    held.and_then(|(held, row)| Some(held.order.as_ref()?.row(row as usize).data())).unwrap_or_default()
}

/// The values of `columns` in the rows at `places` (batch, row).
pub(super) fn gather<'a>(
    batches: impl Iterator<Item = &'a RecordBatch>,
    keyed: &Keyed,
    places: &[(usize, usize)],
    columns: &[usize],
) -> Result<Vec<ArrayRef>> {
    let fields = keyed.schema.columns().fields();
    if places.is_empty() {
        let fields = columns.iter().filter_map(|&column| fields.get(column));
        return Ok(fields.map(|field| new_empty_array(field.data_type())).collect());
    }
    let batches: Vec<&RecordBatch> = batches.collect();
    let gathered = columns.iter().map(|&column| {
        let arrays: Vec<_> = batches.iter().map(|batch| batch.column(column).as_ref()).collect();
        interleave(&arrays, places)
    });
    gathered
        .collect::<Result<_, _>>()
        .map_err(|e| Error::internal("rows of the source could not be gathered").caused_by(e))
}

/// For each batch (of `lengths` rows), which of its rows `kept` names.
pub(super) fn masks(lengths: impl Iterator<Item = usize>, kept: impl Iterator<Item = At>) -> Vec<BooleanArray> {
    let mut masks: Vec<BooleanBufferBuilder> = lengths
        .map(|length| {
            let mut mask = BooleanBufferBuilder::new(length);
            mask.append_n(length, false);
            mask
        })
        .collect();
    for at in kept {
        if let Some(mask) = masks.get_mut(at.batch as usize) {
            mask.set_bit(at.row as usize, true);
        }
    }
    masks.into_iter().map(|mut mask| BooleanArray::new(mask.finish(), None)).collect()
}
