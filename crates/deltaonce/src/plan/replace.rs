//! The rows of a scope go and the staged ones come, in one change.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::BooleanArray;
use arrow::compute::{filter_record_batch, not};
use arrow::record_batch::RecordBatch;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::ObjectStore;

use super::fingerprint::{Fingerprint, Fingerprinter};
use super::scope::{Coverage, ResolvedScope};
use super::{Change, Reads};
use crate::error::{Error, Result};
use crate::receipt::RowCounts;
use crate::stage::Stager;
use crate::table::actions::AddFile;
use crate::table::scan::scan;
use crate::table::schema::TableSchema;

/// What a replace is planned with.
#[derive(Debug)]
pub(crate) struct Replace<'a> {
    /// Rooted at the table.
    pub(crate) store: &'a Arc<dyn ObjectStore>,
    pub(crate) schema: &'a TableSchema,
    pub(crate) stager: &'a Stager,
    pub(crate) scope: &'a Arc<ResolvedScope>,
    /// Files that hold the source's rows.
    pub(crate) staged: &'a [AddFile],
    /// How many rows those are.
    pub(crate) rows: u64,
    pub(crate) parallelism: usize,
}

/// A file that the scope cuts through, and how many of its rows lie inside.
#[derive(Debug)]
struct Straddling {
    file: AddFile,
    inside: u64,
}

impl Replace<'_> {
    /// Plans against the table's `files`. Files wholly inside the scope go unread, unless the source has just as many
    /// rows as the scope holds: then both are compared, and an equal scope is left as it is.
    pub(crate) async fn plan(&self, files: Vec<AddFile>) -> Result<Change> {
        let (mut inside, mut straddling, mut pruned) = (Vec::new(), Vec::new(), 0);
        for file in files {
            match self.scope.coverage(&file) {
                Coverage::Outside => pruned += 1,
                Coverage::Inside => inside.push(file),
                Coverage::Straddles => straddling.push(file),
            }
        }
        let straddling = self.count_inside(straddling).await?;
        let mut probed = straddling.len() as u64;
        let deleted = self.count_rows(&inside).await?;
        let deleted = straddling.iter().fold(deleted, |sum, cut| sum.saturating_add(cut.inside));
        let read =
            straddling.iter().map(|cut| cut.file.path.clone()).chain(inside.iter().map(|file| file.path.clone()));
        let reads = Reads { files: read.collect::<BTreeSet<_>>(), rows: Box::new(self.scope.as_ref().clone()) };

        if deleted == self.rows {
            probed += inside.len() as u64;
            if self.says_the_same(&inside, &straddling).await? {
                let rows = RowCounts { read: self.rows, unchanged: self.rows, ..RowCounts::default() };
                return Ok(Change { adds: Vec::new(), removes: Vec::new(), reads, rows, copied: 0, probed, pruned });
            }
        }

        let cut: Vec<AddFile> = straddling.into_iter().filter(|cut| cut.inside > 0).map(|cut| cut.file).collect();
        let kept = self.rewrite(&cut).await?;
        let copied = kept.iter().filter_map(AddFile::num_records).sum();
        let removes = inside.into_iter().chain(cut).collect();
        let adds = self.staged.iter().cloned().chain(kept).collect();
        let rows = RowCounts { read: self.rows, inserted: self.rows, deleted, ..RowCounts::default() };
        Ok(Change { adds, removes, reads, rows, copied, probed, pruned })
    }

    fn all_columns(&self) -> Vec<usize> {
        (0..self.schema.columns().fields().len()).collect()
    }

    /// Counts the rows that lie inside, reading only the columns that the scope is about.
    async fn count_inside(&self, files: Vec<AddFile>) -> Result<Vec<Straddling>> {
        let schema = self.schema.columns();
        let columns: Vec<usize> = self.scope.columns().iter().filter_map(|name| schema.index_of(name).ok()).collect();
        let counts = files.into_iter().map(|file| {
            let columns = columns.clone();
            async move {
                let mut inside = 0;
                let mut rows = scan(self.store.clone(), self.schema, &file, &columns);
                while let Some(scanned) = rows.next().await {
                    let keeps = self.scope.keeps(&scanned?.rows)?;
                    inside += keeps.false_count() as u64;
                }
                Ok(Straddling { file, inside })
            }
        });
        stream::iter(counts).buffered(self.parallelism).try_collect().await
    }

    async fn count_rows(&self, files: &[AddFile]) -> Result<u64> {
        let mut count = 0_u64;
        for file in files {
            let rows = match file.num_records() {
                Some(rows) => rows,
                None => {
                    let mut rows = scan(self.store.clone(), self.schema, file, &[]);
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

    async fn says_the_same(&self, inside: &[AddFile], straddling: &[Straddling]) -> Result<bool> {
        let mut before = self.fingerprint(inside, |_, batch| Ok(batch)).await?;
        let cut: Vec<AddFile> = straddling.iter().map(|cut| cut.file.clone()).collect();
        before += self.fingerprint(&cut, |scope, batch| select(&batch, &not_kept(scope, &batch)?)).await?;
        Ok(before == self.fingerprint(self.staged, |_, batch| Ok(batch)).await?)
    }

    async fn fingerprint(
        &self,
        files: &[AddFile],
        select: impl Fn(&ResolvedScope, RecordBatch) -> Result<RecordBatch> + Copy + Send + Sync + 'static,
    ) -> Result<Fingerprint> {
        let printer = Arc::new(Fingerprinter::new(self.schema.columns())?);
        let mut total = Fingerprint::default();
        for file in files {
            let rows = scan(self.store.clone(), self.schema, file, &self.all_columns());
            let mut prints = rows
                .map(|scanned| {
                    let (printer, scope) = (Arc::clone(&printer), Arc::clone(self.scope));
                    let task = tokio::task::spawn_blocking(move || printer.of(&select(&scope, scanned?.rows)?));
                    async move { task.await.map_err(|e| Error::internal("comparing rows broke off").caused_by(e))? }
                })
                .buffer_unordered(self.parallelism);
            while let Some(print) = prints.try_next().await? {
                total += print;
            }
        }
        Ok(total)
    }

    /// Writes again the rows of `files` that lie outside the scope.
    async fn rewrite(&self, files: &[AddFile]) -> Result<Vec<AddFile>> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let scans = files.iter().map(|file| {
            let scope = Arc::clone(self.scope);
            scan(self.store.clone(), self.schema, file, &self.all_columns()).map(move |scanned| {
                let rows = scanned?.rows;
                select(&rows, &scope.keeps(&rows)?)
            })
        });
        let scans: Vec<_> = scans.collect();
        self.stager.write(stream::iter(scans).flatten()).await
    }
}

fn not_kept(scope: &ResolvedScope, batch: &RecordBatch) -> Result<BooleanArray> {
    not(&scope.keeps(batch)?).map_err(|e| Error::internal("a scope could not be turned around").caused_by(e))
}

fn select(batch: &RecordBatch, rows: &BooleanArray) -> Result<RecordBatch> {
    filter_record_batch(batch, rows).map_err(|e| Error::internal("rows could not be selected").caused_by(e))
}
