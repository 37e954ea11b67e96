//! Merge: the winners of a source take the place of the table's rows of their keys, where they are newer or, without an
//! order, where they differ; winners whose key the table does not hold are added.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::error::{Error, Result};
use crate::plan::compare::differing;
use crate::plan::probe::{Match, Matched, Probed, probe};
use crate::plan::rewrite::{insert, rewrite};
use crate::plan::source_keys::SourceKeys;
use crate::plan::target::{Stage, Target};
use crate::plan::{Change, Reads};
use crate::prepare::index::Slot;
use crate::prepare::winners::Winners;
use crate::table::actions::AddFile;

/// Keys that a refusal names.
const NAMED: usize = 5;

/// What becomes of a winner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The table does not hold its key.
    Inserted,
    Updated,
    Stale,
    Divergent,
    Unchanged,
}

/// Plans a merge on one snapshot and stages its new rows. May be called again on a newer snapshot, with the same
/// `source`; what an earlier call staged is then the caller's to delete.
///
/// Reads key and order columns of the files that can hold a key of the source, the other columns of those where
/// contents decide, and whole files only to write them again. Of the table it holds a batch or two a file, and a few
/// bytes for each row whose key the source holds.
///
/// # Errors
/// `Refused` where the table holds a key of the source more than once; the errors of reading and of staging.
pub(crate) async fn plan(target: &Target<'_>, source: &SourceKeys, stage: &dyn Stage) -> Result<Change> {
    let winners = source.winners();
    let probed = probe(target, source).await?;
    check_unique(target, winners, &probed)?;
    let fates = decide(target, winners, &probed).await?;
    let fate = |slot: Slot| fates.get(slot as usize).copied();

    let mut adds = Vec::new();
    let mut removes = Vec::new();
    for Matched { file, matches } in &probed.matched {
        let updated = matches.iter().filter(|found| fate(found.slot) == Some(Fate::Updated));
        let updates: Vec<(u64, Slot)> = updated.map(|found| (found.row, found.slot)).collect();
        if !updates.is_empty() {
            adds.extend(rewrite(target, winners, file, updates, stage).await?);
            removes.push((*file).clone());
        }
    }
    let count = |wanted| fates.iter().filter(|&&fate| fate == wanted).count() as u64;
    let mut rows = winners.counts();
    rows.inserted = count(Fate::Inserted);
    rows.updated = count(Fate::Updated);
    rows.stale = count(Fate::Stale);
    rows.divergent = count(Fate::Divergent);
    rows.unchanged = count(Fate::Unchanged);
    if rows.inserted > 0 {
        adds.extend(insert(winners, |slot| fate(slot) == Some(Fate::Inserted), stage).await?);
    }
    let files = probed.matched.iter().map(|matched| matched.file.path.clone()).collect();
    let reads = Reads { files, rows: Box::new(source.clone()) };
    let written: u64 = adds.iter().filter_map(AddFile::num_records).sum();
    let copied = written.saturating_sub(rows.inserted + rows.updated);
    Ok(Change { adds, removes, reads, rows, copied, probed: probed.probed, pruned: probed.pruned })
}

/// Refuses a table that holds a key of the source twice: there is no telling which of its rows to update.
fn check_unique(target: &Target<'_>, winners: &Winners, probed: &Probed<'_>) -> Result<()> {
    let mut seen = vec![false; winners.len()];
    let mut twice: BTreeMap<Slot, Vec<&str>> = BTreeMap::new();
    for found in probed.matched.iter().flat_map(|matched| &matched.matches) {
        if let Some(seen) = seen.get_mut(found.slot as usize)
            && std::mem::replace(seen, true)
        {
            twice.entry(found.slot).or_default();
        }
    }
    if twice.is_empty() {
        return Ok(());
    }
    let keys = twice.len();
    twice = twice.into_iter().take(NAMED).collect();
    for Matched { file, matches } in &probed.matched {
        for found in matches {
            if let Some(files) = twice.get_mut(&found.slot)
                && files.last() != Some(&file.path.as_str())
            {
                files.push(&file.path);
            }
        }
    }
    let slots: Vec<Slot> = twice.keys().copied().collect();
    let named = winners.show(&slots)?.into_iter().zip(twice.values());
    let named = named.map(|(key, files)| format!("{key}  in {}", files.join(" and ")));
    let which = if keys == 1 { "a key".to_owned() } else { format!("{keys} keys") };
    let (they, are) = if keys == 1 { ("it", "is not a key") } else { ("these", "are not keys") };
    Err(Error::refused(format!(
        "{} holds {which} of the source more than once, so {they} {are}; nothing was changed",
        target.name
    ))
    .details(named)
    .details((keys > NAMED).then(|| format!("and {} more", keys - NAMED)))
    .hint("name the columns that tell the table's rows apart as the key, or remove the table's extra rows first"))
}

/// The fate of every slot.
async fn decide(target: &Target<'_>, winners: &Arc<Winners>, probed: &Probed<'_>) -> Result<Vec<Fate>> {
    let ordered = winners.keyed().order.is_some();
    let mut fates = vec![Fate::Inserted; winners.len()];
    let mut set = |slot: Slot, fate| {
        if let Some(place) = fates.get_mut(slot as usize) {
            *place = fate;
        }
    };
    for found in probed.matched.iter().flat_map(|matched| &matched.matches) {
        // A winner that is newer differs at least in its order; where it is as new, contents are compared below.
        set(found.slot, if found.age.is_gt() { Fate::Updated } else { Fate::Stale });
    }
    let comparisons: Vec<_> = probed
        .matched
        .iter()
        .map(|Matched { file, matches }| {
            let equal: Vec<Match> = matches.iter().filter(|found| found.age.is_eq()).copied().collect();
            let slots: Vec<Slot> = equal.iter().map(|found| found.slot).collect();
            async move { Ok::<_, Error>((slots, differing(target, winners, file, equal).await?)) }.boxed()
        })
        .collect();
    let mut compared = stream::iter(comparisons).buffered(target.parallelism);
    while let Some((slots, differing)) = compared.try_next().await? {
        for (slot, differs) in slots.into_iter().zip(differing) {
            let fate = match (differs, ordered) {
                (false, _) => Fate::Unchanged,
                (true, true) => Fate::Divergent,
                (true, false) => Fate::Updated,
            };
            set(slot, fate);
        }
    }
    Ok(fates)
}

#[cfg(test)]
mod tests;
