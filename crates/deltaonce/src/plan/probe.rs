//! Finds the rows of a table whose key the source holds.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take;
use futures::FutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};
use roaring::RoaringBitmap;

use crate::error::{Error, Result};
use crate::plan::RowsRead;
use crate::plan::extents::candidates;
use crate::plan::source_keys::SourceKeys;
use crate::plan::target::Target;
use crate::prepare::index::Slot;
use crate::table::actions::AddFile;
use crate::table::row_ranges::RowRanges;
use crate::table::scan::{OpenFile, Scanned};

/// A file with at most so many rows for each key is read before others: it costs little, and in a table that is merged
/// into often, small files are where the last merges put their rows.
const NEAR_ROWS_A_KEY: u64 = 4;

/// A row of the table whose key is a winner's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Match {
    /// Its place among the file's rows, from 0.
    pub(super) row: u64,
    pub(super) slot: Slot,
    /// How new the winner is beside it; equal without an order.
    pub(super) age: Ordering,
}

/// A file with at least one match.
#[derive(Debug, Clone)]
pub(super) struct Matched {
    pub(super) file: Arc<OpenFile>,
    /// In the file's order.
    pub(super) matches: Vec<Match>,
}

/// What was found in files, so that planning again on a newer snapshot reads those only that came since. A data file
/// never changes; only its deletion vector does, and the two together are what is remembered.
#[derive(Debug, Default)]
pub(crate) struct Probes(Mutex<BTreeMap<String, Probe>>);

#[derive(Debug, Clone)]
struct Probe {
    keys: SourceKeys,
    /// None where the file has no match.
    found: Option<Matched>,
}

impl Probes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Probe>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all is known of a file for `keys`.
    fn know(&self, file: &AddFile, keys: &SourceKeys) -> bool {
        self.lock().get(&file.logical_name()).is_some_and(|probe| keys.are_among(&probe.keys))
    }

    /// What is known of a file for `keys`; the outer none: nothing.
    fn known(&self, file: &AddFile, keys: &SourceKeys) -> Option<Option<Matched>> {
        let probes = self.lock();
        let probe = probes.get(&file.logical_name()).filter(|probe| keys.are_among(&probe.keys))?;
        let Some(found) = &probe.found else { return Some(None) };
        let matches: Vec<Match> = found.matches.iter().filter(|found| keys.has(found.slot)).copied().collect();
        Some((!matches.is_empty()).then(|| Matched { file: found.file.clone(), matches }))
    }

    fn remember(&self, file: &AddFile, keys: &SourceKeys, found: Option<Matched>) {
        self.lock().insert(file.logical_name(), Probe { keys: keys.clone(), found });
    }
}

/// A search for the source's keys in a table, in waves: small files first, and in the others only for keys that are not
/// settled by then.
#[derive(Debug)]
pub(super) struct Search<'a> {
    target: Target<'a>,
    probes: &'a Probes,
    keys: SourceKeys,
    waves: VecDeque<Vec<&'a AddFile>>,
    /// Paths of files that were opened, in this plan or an earlier one of the load.
    pub(super) probed: BTreeSet<String>,
}

impl<'a> Search<'a> {
    /// A search for all keys of `source`.
    pub(super) async fn begin(target: &Target<'a>, source: &SourceKeys, probes: &'a Probes) -> Result<Self> {
        source.sort().await?;
        let candidates = target.files.iter().filter(|file| source.may_be_in(file));
        let is_near = |file: &&AddFile| {
            file.num_records().is_some_and(|rows| rows <= source.len().saturating_mul(NEAR_ROWS_A_KEY))
        };
        let (near, far): (Vec<_>, Vec<_>) = candidates.partition(is_near);
        let waves = [near, far].into_iter().filter(|wave| !wave.is_empty()).collect();
        Ok(Self { target: *target, probes, keys: source.clone(), waves, probed: BTreeSet::new() })
    }

    /// The matches in the next wave of files, in the snapshot's order; none at the end.
    ///
    /// # Errors
    /// Those of reading the files.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Matched>>> {
        let Some(files) = self.waves.pop_front() else { return Ok(None) };
        let files: Vec<&AddFile> = files.into_iter().filter(|file| self.keys.may_be_in(file)).collect();
        self.probed.extend(files.iter().map(|file| file.path.clone()));
        let unknown: Vec<&AddFile> = files.iter().copied().filter(|file| !self.probes.know(file, &self.keys)).collect();
        self.probe(unknown).await?;
        Ok(Some(files.into_iter().filter_map(|file| self.probes.known(file, &self.keys)?).collect()))
    }

    /// Leaves keys out of the search that need no further look.
    pub(super) async fn settle(&mut self, settled: &RoaringBitmap) -> Result<()> {
        if settled.is_empty() || self.waves.is_empty() {
            return Ok(());
        }
        self.keys = self.keys.without(settled)?;
        self.keys.sort().await
    }

    /// Reads key and order columns of what of the files can hold a key, and remembers what is found.
    async fn probe(&self, files: Vec<&AddFile>) -> Result<()> {
        let opened = files.into_iter().map(|file| self.open(file).boxed());
        let opened: Vec<_> = opened.collect();
        let parts = stream::iter(opened).buffered(self.target.parallelism).map_ok(|(file, rows)| {
            let parts: Vec<RowRanges> =
                file.groups().iter().map(|group| rows.and(&RowRanges::of([group.clone()]))).collect();
            let parts: Vec<RowRanges> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            // A file of which no row can have a key is still one that was looked at.
            let parts = if parts.is_empty() { vec![RowRanges::default()] } else { parts };
            stream::iter(parts.into_iter().map(move |part| Ok((file.clone(), part))))
        });
        let mut found = parts
            .try_flatten()
            .map_ok(|(file, part)| {
                let matches = probe_part(file.clone(), self.keys.clone(), part);
                async move { Ok((file, matches.await?)) }
            })
            .try_buffered(self.target.parallelism)
            .boxed();
        let mut current: Option<Matched> = None;
        while let Some((file, matches)) = found.try_next().await? {
            match &mut current {
                Some(matched) if Arc::ptr_eq(&matched.file, &file) => matched.matches.extend(matches),
                _ => {
                    self.remember(current.replace(Matched { file, matches }));
                }
            }
        }
        self.remember(current);
        Ok(())
    }

    async fn open(&self, file: &AddFile) -> Result<(Arc<OpenFile>, RowRanges)> {
        let file = self.target.open(file).await?;
        let rows = candidates(&file, &self.keys).await?;
        Ok((Arc::new(file), rows))
    }

    fn remember(&self, matched: Option<Matched>) {
        if let Some(matched) = matched {
            let file = matched.file.file().clone();
            self.probes.remember(&file, &self.keys, (!matched.matches.is_empty()).then_some(matched));
        }
    }
}

async fn probe_part(file: Arc<OpenFile>, keys: SourceKeys, part: RowRanges) -> Result<Vec<Match>> {
    let keyed = keys.winners().keyed();
    let order = keyed.order.as_ref().map(|order| order.columns().to_vec()).unwrap_or_default();
    let mut columns = [keyed.key.columns().to_vec(), order].concat();
    columns.sort_unstable();
    columns.dedup();
    let find = {
        let columns = columns.clone();
        move |scanned: Scanned| matches(&keys, &columns, &scanned)
    };
    file.scan(&columns, Some(&part), find).try_concat().await
}

fn matches(keys: &SourceKeys, columns: &[usize], scanned: &Scanned) -> Result<Vec<Match>> {
    let winners = keys.winners();
    let keyed = winners.keyed();
    let pick = |wanted: &[usize]| -> Vec<ArrayRef> {
        wanted.iter().map(|column| scanned.rows.column(columns.partition_point(|c| c < column)).clone()).collect()
    };
    let key_columns = pick(keyed.key.columns());
    let rows = keys.sift(&key_columns, scanned.rows.num_rows())?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let rows = UInt32Array::from(rows);
    let sifted = |columns: Vec<ArrayRef>| -> Result<Vec<ArrayRef>> {
        let taken = columns.iter().map(|column| take(column, &rows, None)).collect::<Result<_, _>>();
        taken.map_err(|e| Error::internal("rows of the table could not be taken").caused_by(e))
    };
    let encoded = keyed.key.encode(&sifted(key_columns)?)?;
    let orders = match &keyed.order {
        Some(order) => Some(order.encode(&sifted(pick(order.columns()))?)?),
        None => None,
    };
    let mut matches = Vec::new();
    for (number, (key, row)) in encoded.iter().zip(rows.values()).enumerate() {
        let Some(slot) = keys.find(key.data()) else { continue };
        let age = orders.as_ref().map_or(Ordering::Equal, |orders| winners.order(slot).cmp(orders.row(number).data()));
        matches.push(Match { row: scanned.places.of(*row as usize), slot, age });
    }
    Ok(matches)
}

#[cfg(test)]
mod tests;
