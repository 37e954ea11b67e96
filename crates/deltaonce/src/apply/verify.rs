//! Checks that a load which is skipped brings the rows that were loaded.

use std::sync::atomic::Ordering;

use futures::TryStreamExt;

use super::Run;
use crate::commit::replay;
use crate::error::{Error, Result};
use crate::load::Identity;
use crate::prepare::constraints::Constraints;
use crate::prepare::digest::RowsDigest;
use crate::prepare::stream::{Gate, prepared};
use crate::receipt::{ByteCounts, Outcome, Receipt, RowCounts};
use crate::source::Source;
use crate::table::snapshot::Snapshot;

impl Run<'_> {
    /// Reads the source of a load that `snapshot` records, and compares its rows.
    ///
    /// # Errors
    /// Those of reading it, and as [`same_rows`](Self::same_rows).
    pub(super) async fn verify(&self, skipped: Receipt, source: Source, snapshot: &Snapshot) -> Result<Receipt> {
        let source = source.open().await?;
        let read = source.bytes_read();
        let schema = snapshot.schema();
        let (gate, _) = self.gate(schema, &snapshot.properties(), self.keyed(schema)?.as_ref())?;
        // The rows are in the table already, whatever it asks of those that are new.
        let gate = Gate { constraints: Constraints::none(), scope: None, ..gate };
        let batches = source.read(schema, self.parallelism);
        let (rows, tally) = prepared(batches, gate, self.parallelism, self.table.stopper());
        rows.try_for_each(|_| async { Ok(()) }).await?;
        let passed = tally.finish("")?;
        self.same_rows(&skipped, passed.digest, snapshot).await?;
        let rows = RowCounts { read: passed.rows, unchanged: passed.rows, ..RowCounts::default() };
        let bytes = ByteCounts { read: read.load(Ordering::Relaxed), ..skipped.bytes };
        Ok(Receipt { rows, bytes, ..skipped })
    }

    /// Compares the rows of a skipped load with those that its identities brought. One that a higher version superseded is
    /// not compared: the log no longer says what it brought.
    ///
    /// # Errors
    /// `Refused` where they are others, and where the log does not say what they were.
    pub(super) async fn same_rows(
        &self,
        receipt: &Receipt,
        digest: Option<RowsDigest>,
        snapshot: &Snapshot,
    ) -> Result<()> {
        let Outcome::Skipped { by, recorded, .. } = &receipt.outcome else { return Ok(()) };
        if *recorded > by.version {
            return Ok(());
        }
        let rows = digest.ok_or_else(|| Error::internal("rows of a load with an identity have no digest"))?;
        let kept = |identity: &Identity| Identity { app_id: replay::app_id(identity), version: 0 };
        let kept: Vec<Identity> = self.load.identities.iter().map(kept).collect();
        let recorded = snapshot.recorded(&kept).await?;
        let mut recorded = self.load.identities.iter().zip(recorded);
        recorded.try_for_each(|(identity, (_, digest))| replay::check(self.name(), identity, rows, digest))
    }
}
