//! The rows of a scope go and the staged ones come, in one change.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use roaring::RoaringTreemap;

use super::difference::Part;
use super::fingerprint::{Fingerprint, Fingerprinter};
use super::masking::take_out;
use super::scope::{Coverage, ResolvedScope};
use super::sieve::HashBits;
use super::target::{Stage, Target};
use super::{Change, Reads, feed};
use crate::error::Result;
use crate::receipt::RowCounts;
use crate::table::actions::AddFile;
use crate::table::row_ranges::RowRanges;
use crate::table::scan::{OpenFile, Scanned, scan};

/// What a replace is planned with.
pub(crate) struct Replace<'a> {
    pub(crate) target: Target<'a>,
    pub(crate) stage: &'a dyn Stage,
    pub(crate) scope: &'a Arc<ResolvedScope>,
    /// Files that hold the source's rows.
    pub(crate) staged: &'a [AddFile],
    /// How many rows those are.
    pub(crate) rows: u64,
}

/// A file that the scope cuts through.
#[derive(Debug)]
struct Straddling {
    file: Arc<OpenFile>,
    /// Places of its rows inside.
    inside: RoaringTreemap,
}

impl Replace<'_> {
    /// Plans against the table's files. Files wholly inside the scope go unread, unless the source has just as many
    /// rows as the scope holds: then both are compared, and an equal scope is left as it is.
    ///
    /// # Errors
    /// Those of reading and of staging.
    pub(crate) async fn plan(&self) -> Result<Change> {
        let (mut inside, mut straddling, mut pruned) = (Vec::new(), Vec::new(), 0);
        for file in self.target.files {
            match self.scope.coverage(file) {
                Coverage::Outside => pruned += 1,
                Coverage::Inside => inside.push(file.clone()),
                Coverage::Straddles => straddling.push(file),
            }
        }
        let straddling = self.look_inside(straddling).await?;
        let mut probed = straddling.len() as u64;
        let deleted = self.count_rows(&inside).await?;
        let deleted = straddling.iter().fold(deleted, |sum, cut| sum.saturating_add(cut.inside.len()));
        let cut = straddling.iter().map(|cut| cut.file.file().path.clone());
        let read: BTreeSet<String> = cut.chain(inside.iter().map(|file| file.path.clone())).collect();
        let reads = Reads { files: read, rows: Box::new(self.scope.as_ref().clone()) };

        if deleted == self.rows {
            probed += inside.len() as u64;
            if self.says_the_same(&inside, &straddling).await? {
                let rows = RowCounts { read: self.rows, unchanged: self.rows, ..RowCounts::default() };
                return Ok(Change { reads, rows, probed, pruned, ..Change::none() });
            }
        }

        let cut = straddling.iter().filter(|cut| !cut.inside.is_empty());
        let taken = take_out(&self.target, cut.map(|cut| (cut.file.as_ref(), &cut.inside)), self.stage).await?;
        // Readers tell the rows of files that only come or only go whole from those files.
        let told = taken.masks.is_empty() && taken.kept.is_empty() && (deleted == 0 || self.rows == 0);
        let changes = if self.target.feeds && !told {
            let (gone, come) = (self.parts(&inside, &straddling).await?, self.whole(self.staged).await?);
            feed::replaced(gone, come, self.target.memory, self.stage).await?
        } else {
            Vec::new()
        };
        let copied = taken.kept.iter().filter_map(AddFile::num_records).sum();
        let adds = self.staged.iter().cloned().chain(taken.kept).collect();
        let removes = inside.into_iter().chain(taken.removes).collect();
        let rows = RowCounts { read: self.rows, inserted: self.rows, deleted, ..RowCounts::default() };
        Ok(Change { adds, removes, masks: taken.masks, changes, reads, rows, copied, probed, pruned })
    }

    /// The rows of the scope: all of the files inside, and of the others those at the places found.
    async fn parts(&self, inside: &[AddFile], straddling: &[Straddling]) -> Result<Vec<Part>> {
        let cut = straddling.iter().filter(|cut| !cut.inside.is_empty());
        let cut = cut.map(|cut| Part { file: cut.file.clone(), places: Some(RowRanges::at(&cut.inside).into()) });
        Ok(self.whole(inside).await?.into_iter().chain(cut).collect())
    }

    /// All rows of files.
    async fn whole(&self, files: &[AddFile]) -> Result<Vec<Part>> {
        let opens: Vec<_> = files.iter().map(|file| self.target.open(file).boxed()).collect();
        let opened = stream::iter(opens).buffered(self.target.parallelism);
        opened.map_ok(|file| Part { file: file.into(), places: None }).try_collect().await
    }

    /// Opens files and finds the rows that lie inside, reading only the columns that the scope is about.
    async fn look_inside(&self, files: Vec<&AddFile>) -> Result<Vec<Straddling>> {
        let schema = self.target.schema.columns();
        let columns: Vec<usize> = self.scope.columns().iter().filter_map(|name| schema.index_of(name).ok()).collect();
        let looks = files.into_iter().map(|file| {
            let columns = columns.clone();
            let scope = Arc::clone(self.scope);
            async move {
                let file = Arc::new(self.target.open(file).await?);
                let places = move |scanned: Scanned| {
                    let keeps = scope.keeps(&scanned.rows)?;
                    let inside = keeps.values().iter().enumerate().filter(|(_, keeps)| !keeps);
                    Ok(inside.map(|(row, _)| scanned.places.of(row)).collect::<Vec<u64>>())
                };
                let mut inside = RoaringTreemap::new();
                let mut found = file.scan(&columns, None, places);
                while let Some(places) = found.try_next().await? {
                    inside.extend(places);
                }
                Ok(Straddling { file, inside })
            }
            .boxed()
        });
        stream::iter(looks.collect::<Vec<_>>()).buffered(self.target.parallelism).try_collect().await
    }

    async fn count_rows(&self, files: &[AddFile]) -> Result<u64> {
        let mut count = 0_u64;
        for file in files {
            let rows = match file.num_records() {
                Some(rows) => rows,
                None => {
                    let mut rows = scan(self.target.store.clone(), self.target.schema, file, &[]);
                    let mut counted = 0;
                    while let Some(scanned) = rows.next().await {
                        counted += scanned?.rows.num_rows() as u64;
                    }
                    counted
                }
            };
            // The log may say any number.
            count = count.saturating_add(rows);
        }
        Ok(count)
    }

    /// Whether the rows inside are those that come, of which there are just as many. Ends at the first that surely is not.
    async fn says_the_same(&self, inside: &[AddFile], straddling: &[Straddling]) -> Result<bool> {
        let printer = Arc::new(Fingerprinter::new(self.target.schema.columns())?);
        let (mut come, mut seen) = (Fingerprint::default(), HashBits::with_room(self.rows as usize));
        let mut hashes = self.hashes(&printer, &self.whole(self.staged).await?);
        while let Some(hashes) = hashes.try_next().await? {
            hashes.iter().for_each(|hash| seen.insert(*hash as u64));
            come.extend(hashes);
        }
        let mut there = Fingerprint::default();
        let mut hashes = self.hashes(&printer, &self.parts(inside, straddling).await?);
        while let Some(hashes) = hashes.try_next().await? {
            if !hashes.iter().all(|hash| seen.may_hold(*hash as u64)) {
                return Ok(false);
            }
            there.extend(hashes);
        }
        Ok(there == come)
    }

    /// The hashes of rows, of several files at once.
    fn hashes(&self, printer: &Arc<Fingerprinter>, parts: &[Part]) -> BoxStream<'static, Result<Vec<u128>>> {
        let scan = |part: &Part| {
            let printer = printer.clone();
            part.scan(move |rows| printer.hashes(&rows))
        };
        let scans: Vec<_> = parts.iter().map(scan).collect();
        stream::iter(scans).flatten_unordered(self.target.parallelism).boxed()
    }
}
