//! Merges and inserts whose source does not fit in memory: some keys at a time, in one change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::TryStreamExt;
use roaring::RoaringTreemap;

use super::masking::take_out;
use super::merge;
use super::probe::Probes;
use super::revision::Revision;
use super::rewrite::Writer;
use super::source_keys::SourceKeys;
use super::target::{Stage, Target};
use super::{Change, Reads, RowsRead, feed, insert};
use crate::error::Result;
use crate::prepare::spill::Sorted;
use crate::table::actions::AddFile;
use crate::table::scan::OpenFile;

/// What is done with a key that the table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// Merge.
    Updated,
    /// Insert.
    Kept,
}

/// Plans on one snapshot and stages new rows. May be called again on a newer snapshot, with the same `source`; what an
/// earlier call staged is then the caller's to delete.
///
/// Newer rows are always written apart from the files that held the older ones: those are masked, or written again
/// without them once all keys are known.
///
/// # Errors
/// As planning a merge or an insert; `Refused` for ties in the source; `Retryable` where the scratch folder fails.
pub(crate) async fn plan(
    target: &Target<'_>,
    source: &Sorted,
    held: Held,
    revision: &Arc<Revision>,
    stage: &dyn Stage,
) -> Result<Change> {
    let mut total = Change::none();
    let mut going: BTreeMap<String, (Arc<OpenFile>, RoaringTreemap)> = BTreeMap::new();
    let (mut probed, mut read) = (BTreeSet::new(), BTreeSet::new());
    let mut chunks = source.winners()?;
    while let Some(winners) = chunks.try_next().await? {
        let keys = SourceKeys::new(Arc::new(winners))?;
        let probes = Probes::default();
        let decided = match held {
            Held::Updated => merge::decide_all(target, &keys, revision, &probes).await?,
            Held::Kept => insert::decide_all(target, &keys, &probes).await?,
        };
        let writer = Writer { winners: keys.winners(), revision, stage };
        let inserted = |slot| decided.inserted.contains(slot);
        if decided.rows.inserted + decided.rows.updated > 0 {
            total.adds.extend(writer.add(&decided.updated, inserted).await?);
        }
        // Whether a later key is updated, by which all changes would have to be told, is not known yet.
        if target.feeds && held == Held::Updated {
            let added = writer.added(inserted);
            total.changes.extend(feed::merged(writer.winners, revision, &decided.updated, added, stage).await?);
        }
        for updated in &decided.updated {
            let places = updated.rows.iter().map(|(place, _)| *place);
            let file = going.entry(updated.file.file().logical_name());
            file.or_insert_with(|| (updated.file.clone(), RoaringTreemap::new())).1.extend(places);
        }
        total.rows += decided.rows;
        probed.extend(decided.probed);
        read.extend(decided.read);
    }
    (total.probed, total.pruned) = (probed.len() as u64, target.files.len().saturating_sub(probed.len()) as u64);
    total.reads = Reads { files: read, rows: Box::new(AnyRow) };
    let taken = take_out(target, going.values().map(|(file, places)| (file.as_ref(), places)), stage).await?;
    total.copied = taken.kept.iter().filter_map(AddFile::num_records).sum();
    total.adds.extend(taken.kept);
    (total.removes, total.masks) = (taken.removes, taken.masks);
    Ok(total)
}

/// Any row may be one whose key the source holds: its keys are too many to be kept at hand.
#[derive(Debug)]
struct AnyRow;

impl RowsRead for AnyRow {
    fn may_be_in(&self, _: &AddFile) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
