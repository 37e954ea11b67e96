//! Chooses the newest row of each key, or says why there is none.

use std::cmp::Ordering;
use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{filter_record_batch, take};
use arrow::row::Rows;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use tokio::task::spawn_blocking;

use crate::error::{Error, Result};
use crate::host::Scratch;
use crate::load::NullKeys;
use crate::prepare::content::differing;
use crate::prepare::index::{KeyIndex, Slot};
use crate::prepare::keys::Keyed;
use crate::prepare::spill::{self, Merge, Placed, Sorted, Spill};
use crate::prepare::tie::{self, Tie};
use crate::prepare::winners::{At, Held, Winners, gather, masks, order_of};
use crate::receipt::RowCounts;
use crate::source::Places;

/// Rows that may be held beyond one a key before those that lost are dropped.
const LOSERS: usize = 64 * 1024;
/// Of the memory that rows may take, the part that the rows themselves are given: the rest is for keys, orders and copies.
const ROWS_OF_MEMORY: u64 = 4;
/// Places named for rows with a null in their key.
const NAMED: usize = 5;

/// The rows of a source by key, in memory or not.
#[derive(Debug)]
pub(crate) enum Chosen {
    Held(Winners),
    /// More than was to be held: sorted on disk, to be chosen from some keys at a time.
    Spilled(Sorted),
}

/// Where rows go that are more than may be held.
#[derive(Debug)]
pub(crate) struct Overflow {
    pub(crate) scratch: Scratch,
    /// A name that no other load has.
    pub(crate) name: String,
}

/// Reads `source` (all columns of the table, in its types and order) and keeps the newest row of each key. What is
/// chosen does not depend on how the rows are ordered or cut into batches, nor on whether they fit in memory.
///
/// # Errors
/// `Refused` for a null in a key, unless nulls are to match, and for a key with more than one newest row (where rows
/// were spilled, only when they are [read again](Sorted::winners)); `Retryable` where the scratch folder fails; the
/// source's own errors.
pub(crate) async fn choose(
    keyed: Keyed,
    source: BoxStream<'_, Result<(RecordBatch, Places)>>,
    overflow: Option<Overflow>,
) -> Result<Chosen> {
    choose_beside(keyed, source, LOSERS, overflow).await
}

/// As [`choose`], with `losers` rows held at most beyond two a key.
async fn choose_beside(
    keyed: Keyed,
    mut source: BoxStream<'_, Result<(RecordBatch, Places)>>,
    losers: usize,
    overflow: Option<Overflow>,
) -> Result<Chosen> {
    let limit = overflow.as_ref().map_or(u64::MAX, |overflow| overflow.scratch.memory / ROWS_OF_MEMORY);
    let again = keyed.again()?;
    let mut choice = Choice::new(keyed, losers);
    let (mut read, mut bytes) = (Vec::new(), 0);
    while let Some((rows, places)) = source.try_next().await? {
        if let Some(overflow) = &overflow {
            bytes += spill::bytes(&rows);
            read.push((rows.clone(), places.clone()));
            if bytes > limit {
                drop(choice);
                let spill = Spill::new(again, &overflow.scratch, &overflow.name, limit)?;
                return Ok(Chosen::Spilled(spill_all(spill, read, source).await?));
            }
        }
        choice = spawn_blocking(move || choice.add(rows, places)).await.map_err(broke_off)??;
    }
    spawn_blocking(move || choice.finish()).await.map_err(broke_off)?.map(Chosen::Held)
}

fn broke_off(error: tokio::task::JoinError) -> Error {
    Error::internal("choosing the newest rows broke off").caused_by(error)
}

async fn spill_all(mut spill: Spill, read: Vec<Placed>, mut source: BoxStream<'_, Result<Placed>>) -> Result<Sorted> {
    let add_all = move |mut spill: Spill, rows: Vec<Placed>| {
        rows.into_iter().try_for_each(|(rows, places)| spill.add(rows, places)).map(|()| spill)
    };
    spill = spawn_blocking(move || add_all(spill, read)).await.map_err(broke_off)??;
    while let Some(rows) = source.try_next().await? {
        spill = spawn_blocking(move || add_all(spill, vec![rows])).await.map_err(broke_off)??;
    }
    spawn_blocking(move || spill.finish()).await.map_err(broke_off)?
}

impl Sorted {
    /// The newest rows of all keys, some keys at a time, from the least key on.
    ///
    /// # Errors
    /// As [`choose`]; the stream ends with the first.
    pub(crate) fn winners(&self) -> Result<BoxStream<'static, Result<Winners>>> {
        let (merge, keyed) = (self.read()?, self.keyed().again()?);
        let next = |(mut merge, keyed): (Merge, Keyed)| async move {
            let chosen = spawn_blocking(move || {
                let Some(rows) = merge.next()? else { return Ok(None) };
                let mut choice = Choice::new(keyed.again()?, LOSERS);
                for (rows, places) in rows {
                    choice = choice.add(rows, places)?;
                }
                Ok(Some((choice.finish()?, (merge, keyed))))
            });
            chosen.await.map_err(broke_off)?
        };
        Ok(stream::try_unfold((merge, keyed), next).boxed())
    }
}

struct Choice {
    keyed: Keyed,
    losers: usize,
    index: KeyIndex,
    /// Where the newest row of each slot is.
    at: Vec<At>,
    held: Vec<Held>,
    origins: Vec<Origin>,
    held_rows: usize,
    read: u64,
    /// Rows that equal the newest one of their slot, beyond it.
    duplicates: HashMap<Slot, u64>,
    /// Slots with different rows that are equally new.
    ties: HashMap<Slot, Tie>,
    nulls: u64,
    null_places: Vec<String>,
}

/// Where the rows of a held batch stood in the source.
struct Origin {
    places: Places,
    /// The rows of the source's batch that are left, if not all are.
    rows: Option<Vec<u32>>,
}

impl Origin {
    fn row(&self, row: u32) -> u32 {
        self.rows.as_ref().map_or(row, |rows| rows.get(row as usize).copied().unwrap_or_default())
    }
}

impl Choice {
    fn new(keyed: Keyed, losers: usize) -> Self {
        Self {
            keyed,
            losers,
            index: KeyIndex::default(),
            at: Vec::new(),
            held: Vec::new(),
            origins: Vec::new(),
            held_rows: 0,
            read: 0,
            duplicates: HashMap::new(),
            ties: HashMap::new(),
            nulls: 0,
            null_places: Vec::new(),
        }
    }

    fn add(mut self, rows: RecordBatch, places: Places) -> Result<Self> {
        check_schema(&self.keyed, &rows)?;
        let count = rows.num_rows();
        self.read += count as u64;
        let nulls = self.note_nulls(&rows, &places);
        let keys = self.keyed.key.encode(&pick(&rows, self.keyed.key.columns()))?;
        let order = self.keyed.order.as_ref().map(|order| order.encode(&pick(&rows, order.columns()))).transpose()?;
        let batch = u32::try_from(self.held.len())
            .map_err(|e| Error::refused("the source comes in more batches than one load can take").caused_by(e))?;
        self.held.push(Held { rows, order });
        self.origins.push(Origin { places, rows: None });
        self.held_rows += count;

        // Rows as new as the newest one so far; whether they say the same is compared for all of them at once.
        let mut equal: Vec<(Slot, u32)> = Vec::new();
        for (row, key) in (0_u32..).zip(keys.iter()) {
            if nulls.as_ref().is_some_and(|nulls| nulls.get(row as usize) == Some(&true)) {
                continue;
            }
            let (slot, first) = self.index.number(key.data())?;
            let here = At { batch, row };
            if first {
                self.at.push(here);
                continue;
            }
            match self.compare(here, slot) {
                Ordering::Greater => {
                    *self.at.get_mut(slot as usize).ok_or_else(lost)? = here;
                    self.duplicates.remove(&slot);
                    self.ties.remove(&slot);
                }
                Ordering::Equal => equal.push((slot, row)),
                Ordering::Less => {}
            }
        }
        equal.retain(|&(slot, row)| self.compare(At { batch, row }, slot).is_eq());
        self.settle(batch, &equal)?;
        if self.held_rows > 2 * self.at.len() + self.losers {
            self.drop_losers()?;
        }
        Ok(self)
    }

    /// Which rows have a null in their key, where that is refused; they take no part in the choice.
    fn note_nulls(&mut self, rows: &RecordBatch, places: &Places) -> Option<Vec<bool>> {
        if self.keyed.null_keys == NullKeys::Match {
            return None;
        }
        let columns = pick(rows, self.keyed.key.columns());
        if columns.iter().all(|column| column.null_count() == 0) {
            return None;
        }
        let nulls: Vec<bool> =
            (0..rows.num_rows()).map(|row| columns.iter().any(|column| column.is_null(row))).collect();
        for (row, _) in nulls.iter().enumerate().filter(|(_, is_null)| **is_null) {
            self.nulls += 1;
            if self.null_places.len() < NAMED {
                let key = self.keyed.key.show(&columns, row);
                self.null_places.push(format!("{}: {key}", places.of(row)));
            }
        }
        Some(nulls)
    }

    /// Where the newest row of a slot is.
    fn newest(&self, slot: Slot) -> Result<At> {
        self.at.get(slot as usize).copied().ok_or_else(lost)
    }

    /// Where the newest rows of slots are, as (batch, row).
    fn places(&self, slots: impl Iterator<Item = Slot>) -> Result<Vec<(usize, usize)>> {
        slots.map(|slot| self.newest(slot).map(|at| (at.batch as usize, at.row as usize))).collect()
    }

    /// How new the row at `here` is beside the newest one of `slot`.
    fn compare(&self, here: At, slot: Slot) -> Ordering {
        let order = |at: &At| -> Option<&Rows> { self.held.get(at.batch as usize)?.order.as_ref() };
        order(&here).map_or(Ordering::Equal, |rows| {
            rows.row(here.row as usize).data().cmp(order_of(&self.held, &self.at, slot))
        })
    }

    /// Tells duplicates of the newest row from ties with it, for rows of `batch` that are as new.
    fn settle(&mut self, batch: u32, equal: &[(Slot, u32)]) -> Result<()> {
        if equal.is_empty() {
            return Ok(());
        }
        let all: Vec<usize> = (0..self.keyed.schema.columns().fields().len()).collect();
        let newest = self.places(equal.iter().map(|&(slot, _)| slot))?;
        let left = gather(self.held.iter().map(|held| &held.rows), &self.keyed, &newest, &all)?;
        let rows = UInt32Array::from_iter_values(equal.iter().map(|&(_, row)| row));
        let here = &self.held.get(batch as usize).ok_or_else(lost)?.rows;
        let columns = left
            .iter()
            .zip(here.columns())
            .map(|(left, column)| {
                let right = take(column, &rows, None)
                    .map_err(|e| Error::internal("rows of the source could not be taken").caused_by(e))?;
                differing(left, &right)
            })
            .collect::<Result<Vec<_>>>()?;
        for (pair, &(slot, row)) in equal.iter().enumerate() {
            if columns.iter().all(|differs| !differs.value(pair)) {
                *self.duplicates.entry(slot).or_default() += 1;
                continue;
            }
            let place = |at: At| {
                let origin = self.origins.get(at.batch as usize).ok_or_else(lost)?;
                Ok::<_, Error>(origin.places.of(origin.row(at.row) as usize))
            };
            let (newest, here) = (place(self.newest(slot)?)?, place(At { batch, row })?);
            let tie = self.ties.entry(slot).or_insert_with(|| Tie::new(newest, columns.len()));
            tie.add(here, columns.iter().map(|differs| differs.value(pair)));
        }
        Ok(())
    }

    /// Gives back the memory of rows that are no longer the newest of their key.
    fn drop_losers(&mut self) -> Result<()> {
        let masks = masks(self.held.iter().map(|held| held.rows.num_rows()), self.at.iter().copied());
        let mut held = Vec::with_capacity(self.held.len());
        let mut origins = Vec::with_capacity(self.held.len());
        // For each old batch, its new number and the new row of each old one (none where all rows stay).
        let mut moved: Vec<(u32, Option<Vec<u32>>)> = Vec::with_capacity(self.held.len());
        for ((old, origin), mask) in self.held.drain(..).zip(self.origins.drain(..)).zip(masks) {
            let number = held.len() as u32;
            let left = mask.true_count();
            if left == mask.len() {
                moved.push((number, None));
                held.push(old);
                origins.push(origin);
                continue;
            }
            let mut next = 0;
            let mut to = Vec::with_capacity(mask.len());
            let mut from = Vec::with_capacity(left);
            for (row, stays) in (0..).zip(mask.values().iter()) {
                to.push(next);
                if stays {
                    from.push(origin.row(row));
                    next += 1;
                }
            }
            moved.push((number, Some(to)));
            if left > 0 {
                let rows = filter_record_batch(&old.rows, &mask)
                    .map_err(|e| Error::internal("rows of the source could not be selected").caused_by(e))?;
                let order = self.keyed.order.as_ref().map(|order| order.encode(&pick(&rows, order.columns())));
                held.push(Held { rows, order: order.transpose()? });
                origins.push(Origin { places: origin.places, rows: Some(from) });
            }
        }
        for at in &mut self.at {
            let (batch, rows) = moved.get(at.batch as usize).ok_or_else(lost)?;
            let row = match rows {
                Some(rows) => *rows.get(at.row as usize).ok_or_else(lost)?,
                None => at.row,
            };
            *at = At { batch: *batch, row };
        }
        self.held = held;
        self.origins = origins;
        self.held_rows = self.at.len();
        Ok(())
    }

    fn finish(mut self) -> Result<Winners> {
        if self.nulls > 0 {
            return Err(self.refuse_nulls());
        }
        if !self.ties.is_empty() {
            return Err(self.refuse_ties()?);
        }
        if self.held_rows > self.at.len() {
            self.drop_losers()?;
        }
        let duplicates = self.duplicates.values().sum();
        let superseded = self.read - self.at.len() as u64 - duplicates;
        let counts = RowCounts { read: self.read, duplicates, superseded, ..RowCounts::default() };
        Ok(Winners::new(self.keyed, self.index, self.at, self.held, counts))
    }

    fn refuse_nulls(self) -> Error {
        let rows = if self.nulls == 1 { "1 row has".to_owned() } else { format!("{} rows have", self.nulls) };
        let more = self.nulls - self.null_places.len() as u64;
        Error::refused(format!("{rows} a null in the key ({}); nothing was changed", self.keyed.key.names().join(", ")))
            .details(self.null_places)
            .details((more > 0).then(|| format!("and {more} more")))
            .hint("give every row a key, or take nulls as equal to each other with --null-keys match")
    }

    fn refuse_ties(&self) -> Result<Error> {
        let mut ties: Vec<(Slot, &Tie)> = self.ties.iter().map(|(&slot, tie)| (slot, tie)).collect();
        ties.sort_by(|(_, one), (_, other)| one.cmp_place(other));
        ties.truncate(tie::NAMED);
        let places = self.places(ties.iter().map(|&(slot, _)| slot))?;
        let key = &self.keyed.key;
        let columns = gather(self.held.iter().map(|held| &held.rows), &self.keyed, &places, key.columns())?;
        let named = ties.iter().enumerate().map(|(row, (_, tie))| format!("{}  {tie}", key.show(&columns, row)));
        Ok(tie::refuse(&self.keyed, named.collect(), self.ties.values()))
    }
}

/// The error for a slot without a row, or a row without a batch.
fn lost() -> Error {
    Error::internal("a row of the source that was held is not where it should be")
}

fn pick(rows: &RecordBatch, columns: &[usize]) -> Vec<ArrayRef> {
    columns.iter().map(|&column| rows.column(column).clone()).collect()
}

fn check_schema(keyed: &Keyed, rows: &RecordBatch) -> Result<()> {
    let wanted = keyed.schema.columns().fields();
    let schema = rows.schema();
    let same = wanted.len() == schema.fields().len()
        && wanted.iter().zip(schema.fields()).all(|(wanted, got)| wanted.data_type() == got.data_type());
    if same {
        return Ok(());
    }
    Err(Error::internal(format!("rows for {} were not prepared in its types", keyed.table)))
}

#[cfg(test)]
mod tests;
