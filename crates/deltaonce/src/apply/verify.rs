//! Checks that a load which is skipped brings the rows that were loaded.

use std::sync::atomic::Ordering;

use futures::TryStreamExt;

use super::Run;
use crate::commit::replay;
use crate::error::{Error, Result};
use crate::load::Identity;
use crate::prepare::digest::RowsDigest;
use crate::prepare::stream::{Gate, prepared};
use crate::receipt::{ByteCounts, Receipt, RowCounts};
use crate::source::Source;
use crate::table::snapshot::Snapshot;

/// An identity whose version is recorded, and the number that keeps the digest of its rows.
type Applied = (Identity, Option<i64>);

impl Run<'_> {
    /// Reads the source of a load that `snapshot` records, and compares its rows, where there is anything to compare with.
    ///
    /// # Errors
    /// Those of reading it, and as [`replay::check`].
    pub(super) async fn verify(&self, skipped: Receipt, source: Source, snapshot: &Snapshot) -> Result<Receipt> {
        let applied = self.applied(snapshot).await?;
        if applied.is_empty() {
            return Ok(skipped);
        }
        let source = source.open().await?;
        let read = source.bytes_read();
        let batches = source.read(snapshot.schema(), self.parallelism);
        let gate = Gate::comparing(snapshot.schema());
        let (rows, tally) = prepared(batches, gate, self.parallelism, self.table.stopper());
        rows.try_for_each(|_| async { Ok(()) }).await?;
        let passed = tally.finish("")?;
        self.compare(&applied, passed.digest)?;
        let rows = RowCounts { read: passed.rows, unchanged: passed.rows, ..RowCounts::default() };
        let bytes = ByteCounts { read: read.load(Ordering::Relaxed), ..skipped.bytes };
        Ok(Receipt { rows, bytes, ..skipped })
    }

    /// Compares rows that were prepared before another writer applied the load.
    ///
    /// # Errors
    /// As [`replay::check`].
    pub(super) async fn verify_prepared(&self, snapshot: &Snapshot) -> Result<()> {
        self.compare(&self.applied(snapshot).await?, self.digest)
    }

    /// The identities of the load that can be compared. Of one that a higher version superseded the log no longer says what it
    /// brought.
    async fn applied(&self, snapshot: &Snapshot) -> Result<Vec<Applied>> {
        let recorded = snapshot.recorded(&self.load.identities).await?;
        let applied = recorded.into_iter().filter(|(identity, version)| *version == Some(identity.version));
        let applied: Vec<Identity> = applied.map(|(identity, _)| identity).collect();
        let kept = |identity: &Identity| Identity { app_id: replay::app_id(identity), version: 0 };
        let digests = snapshot.recorded(&applied.iter().map(kept).collect::<Vec<_>>()).await?;
        Ok(applied.into_iter().zip(digests.into_iter().map(|(_, digest)| digest)).collect())
    }

    fn compare(&self, applied: &[Applied], digest: Option<RowsDigest>) -> Result<()> {
        let rows = digest.ok_or_else(|| Error::internal("rows of a load with an identity have no digest"))?;
        applied.iter().try_for_each(|(identity, recorded)| replay::check(self.name(), identity, rows, *recorded))
    }
}
