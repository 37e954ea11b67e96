//! Insert: winners whose key the table does not hold are added; rows that the table holds are left as they are.

use crate::error::Result;
use crate::plan::probe::probe;
use crate::plan::rewrite::insert;
use crate::plan::source_keys::SourceKeys;
use crate::plan::target::{Stage, Target};
use crate::plan::{Change, Reads};
use crate::prepare::index::Slot;

/// Plans an insert on one snapshot and stages its new rows. May be called again on a newer snapshot, with the same
/// `source`; what an earlier call staged is then the caller's to delete.
///
/// Reads the key columns of the files that can hold a key of the source. A key that the table holds, once or more
/// often and with whatever content, counts as unchanged.
///
/// # Errors
/// Those of reading and of staging.
pub(crate) async fn plan(target: &Target<'_>, source: &SourceKeys, stage: &dyn Stage) -> Result<Change> {
    let winners = source.winners();
    let probed = probe(target, source).await?;
    let mut held = vec![false; winners.len()];
    for found in probed.matched.iter().flat_map(|matched| &matched.matches) {
        if let Some(held) = held.get_mut(found.slot as usize) {
            *held = true;
        }
    }
    let absent = |slot: Slot| held.get(slot as usize) == Some(&false);
    let mut rows = winners.counts();
    rows.inserted = held.iter().filter(|&&held| !held).count() as u64;
    rows.unchanged = winners.len() as u64 - rows.inserted;
    let adds = if rows.inserted > 0 { insert(winners, absent, stage).await? } else { Vec::new() };
    let files = probed.matched.iter().map(|matched| matched.file.path.clone()).collect();
    let reads = Reads { files, rows: Box::new(source.clone()) };
    Ok(Change { adds, removes: Vec::new(), reads, rows, copied: 0, probed: probed.probed, pruned: probed.pruned })
}

#[cfg(test)]
mod tests;
