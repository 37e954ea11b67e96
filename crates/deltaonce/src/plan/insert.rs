//! Insert: winners whose key the table does not hold are added; rows that the table holds are left as they are.

use std::collections::BTreeSet;

use roaring::RoaringBitmap;

use crate::error::Result;
use crate::plan::merge::Decided;
use crate::plan::probe::{Probes, Search};
use crate::plan::rewrite::write;
use crate::plan::source_keys::SourceKeys;
use crate::plan::target::{Stage, Target};
use crate::plan::{Change, Reads};

/// Plans an insert on one snapshot and stages its new rows. May be called again on a newer snapshot, with the same
/// `source` and `probes`; what an earlier call staged is then the caller's to delete.
///
/// Reads the key columns of what can hold a key of the source. A key that the table holds, once or more often and with
/// whatever content, counts as unchanged.
///
/// # Errors
/// Those of reading and of staging.
pub(crate) async fn plan(
    target: &Target<'_>,
    source: &SourceKeys,
    probes: &Probes,
    stage: &dyn Stage,
) -> Result<Change> {
    let winners = source.winners();
    let decided = decide_all(target, source, probes).await?;
    let adds = match decided.rows.inserted {
        0 => Vec::new(),
        _ => write(winners.rows(|slot| decided.inserted.contains(slot)), stage).await?,
    };
    let reads = Reads { files: decided.read, rows: Box::new(source.clone()) };
    let probed = decided.probed.len() as u64;
    let pruned = (target.files.len() as u64).saturating_sub(probed);
    Ok(Change { adds, reads, rows: decided.rows, probed, pruned, ..Change::none() })
}

/// Finds the winners whose key the table does not hold.
///
/// # Errors
/// Those of reading.
pub(super) async fn decide_all(target: &Target<'_>, source: &SourceKeys, probes: &Probes) -> Result<Decided> {
    let winners = source.winners();
    let mut inserted: RoaringBitmap = winners.slots().collect();
    let mut read = BTreeSet::new();
    let mut search = Search::begin(target, source, probes).await?;
    while let Some(wave) = search.next().await? {
        let found: RoaringBitmap = wave.iter().flat_map(|matched| &matched.matches).map(|found| found.slot).collect();
        search.settle(&found).await?;
        inserted -= found;
        read.extend(wave.iter().map(|matched| matched.file.file().path.clone()));
    }
    let mut rows = winners.counts();
    rows.inserted = inserted.len();
    rows.unchanged = (winners.len() as u64).saturating_sub(rows.inserted);
    Ok(Decided { rows, inserted, updated: Vec::new(), read, probed: search.probed })
}

#[cfg(test)]
mod tests;
