//! Merge: the winners of a source take the place of the table's rows of their keys, where they are newer or, without an
//! order, where they differ; winners whose key the table does not hold are added.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::FutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};
use roaring::RoaringBitmap;

use crate::error::{Error, Result};
use crate::plan::compare::differing;
use crate::plan::masking::{FileFate, fate as file_fate, mask};
use crate::plan::probe::{Match, Matched, Probes, Search};
use crate::plan::revision::Revision;
use crate::plan::rewrite::{Updated, Writer};
use crate::plan::source_keys::SourceKeys;
use crate::plan::target::{Stage, Target};
use crate::plan::{Change, Reads, feed};
use crate::prepare::index::Slot;
use crate::prepare::winners::Winners;
use crate::receipt::RowCounts;
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

/// What becomes of the winners.
#[derive(Debug)]
pub(super) struct Decided {
    pub(super) rows: RowCounts,
    /// Slots whose key the table does not hold.
    pub(super) inserted: RoaringBitmap,
    pub(super) updated: Vec<Updated>,
    /// Paths of files with rows that were relied on.
    pub(super) read: BTreeSet<String>,
    /// Paths of files that were opened.
    pub(super) probed: BTreeSet<String>,
}

/// Plans a merge on one snapshot and stages its new rows. May be called again on a newer snapshot, with the same
/// `source` and `probes`; what an earlier call staged is then the caller's to delete.
///
/// Reads key and order columns of what can hold a key of the source, and other columns only of rows whose contents
/// decide, and of files that are written again. Of the table it holds a batch or two a file, and a few bytes for each
/// row whose key the source holds. A key that a small file shows to be as new as the source is looked for no further.
///
/// # Errors
/// `Refused` where the table holds a key of the source more than once, as far as that was looked for; the errors of
/// reading and of staging.
pub(crate) async fn plan(
    target: &Target<'_>,
    source: &SourceKeys,
    revision: &Arc<Revision>,
    probes: &Probes,
    stage: &dyn Stage,
) -> Result<Change> {
    let decided = decide_all(target, source, revision, probes).await?;
    let writer = Writer { winners: source.winners(), revision, stage };
    let change = write(target, &writer, &decided).await?;
    let reads = Reads { files: decided.read, rows: Box::new(source.clone()) };
    let probed = decided.probed.len() as u64;
    let pruned = (target.files.len() as u64).saturating_sub(probed);
    Ok(Change { reads, probed, pruned, ..change })
}

/// Finds what becomes of each winner.
///
/// # Errors
/// As [`plan`], but for those of staging.
pub(super) async fn decide_all(
    target: &Target<'_>,
    source: &SourceKeys,
    revision: &Arc<Revision>,
    probes: &Probes,
) -> Result<Decided> {
    let winners = source.winners();
    let mut fates = vec![Fate::Inserted; winners.len()];
    let mut matched = Vec::new();
    let mut search = Search::begin(target, source, probes).await?;
    while let Some(wave) = search.next().await? {
        search.settle(&decide(target, winners, revision, &wave, &mut fates).await?).await?;
        matched.extend(wave);
    }
    check_unique(target, winners, &matched)?;

    let count = |wanted| fates.iter().filter(|&&fate| fate == wanted).count() as u64;
    let mut rows = winners.counts();
    rows.inserted = count(Fate::Inserted);
    rows.updated = count(Fate::Updated);
    rows.stale = count(Fate::Stale);
    rows.divergent = count(Fate::Divergent);
    rows.unchanged = count(Fate::Unchanged);
    let fate = |slot: Slot| fates.get(slot as usize).copied();
    Ok(Decided {
        rows,
        inserted: winners.slots().filter(|slot| fate(*slot) == Some(Fate::Inserted)).collect(),
        updated: matched.iter().filter_map(|matched| updated(matched, &fate)).collect(),
        read: matched.iter().map(|matched| matched.file.file().path.clone()).collect(),
        probed: search.probed,
    })
}

/// The rows of a file that winners take the place of; none where there is no such row.
fn updated(matched: &Matched, fate: &impl Fn(Slot) -> Option<Fate>) -> Option<Updated> {
    let updated = matched.matches.iter().filter(|found| fate(found.slot) == Some(Fate::Updated));
    let rows: Vec<(u64, Slot)> = updated.map(|found| (found.row, found.slot)).collect();
    (!rows.is_empty()).then(|| Updated { file: matched.file.clone(), rows })
}

/// Stages newer rows and those that are new.
async fn write(target: &Target<'_>, writer: &Writer<'_>, decided: &Decided) -> Result<Change> {
    let Decided { updated, rows, .. } = decided;
    let inserted = |slot| decided.inserted.contains(slot);
    let (mut adds, mut removes, mut masks, mut apart, mut again) = (vec![], vec![], vec![], vec![], vec![]);
    for updated in updated {
        let file = &updated.file;
        match file_fate(file, updated.rows.iter().map(|(row, _)| *row), target.masks) {
            FileFate::Masked(rows) => {
                apart.push(updated.clone());
                masks.push((file.as_ref(), rows));
            }
            FileFate::Removed if target.masks => {
                apart.push(updated.clone());
                removes.push(file.file().clone());
            }
            FileFate::Removed | FileFate::Rewritten => {
                again.push(writer.rewrite(updated).boxed());
                removes.push(file.file().clone());
            }
        }
    }
    let mut again = stream::iter(again).buffered(target.parallelism);
    while let Some(files) = again.try_next().await? {
        adds.extend(files);
    }
    if rows.inserted > 0 || !apart.is_empty() {
        adds.extend(writer.add(&apart, &inserted).await?);
    }
    let masks = mask(masks, writer.stage).await?;
    // Rows that are only added are told from their file.
    let changes = if target.feeds && !updated.is_empty() {
        feed::merged(writer.winners, writer.revision, updated, writer.added(inserted), writer.stage).await?
    } else {
        Vec::new()
    };
    let written: u64 = adds.iter().filter_map(AddFile::num_records).sum();
    let copied = written.saturating_sub(rows.inserted + rows.updated);
    Ok(Change { adds, removes, masks, changes, rows: *rows, copied, ..Change::none() })
}

/// Refuses a table that holds a key of the source twice: there is no telling which of its rows to update.
fn check_unique(target: &Target<'_>, winners: &Winners, matched: &[Matched]) -> Result<()> {
    let mut seen = vec![false; winners.len()];
    let mut twice: BTreeMap<Slot, Vec<&str>> = BTreeMap::new();
    for found in matched.iter().flat_map(|matched| &matched.matches) {
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
    for Matched { file, matches } in matched {
        let path = file.file().path.as_str();
        for found in matches {
            if let Some(files) = twice.get_mut(&found.slot)
                && files.last() != Some(&path)
            {
                files.push(path);
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

/// Decides the fates of the slots that a wave of files matches, and gives those that nothing further can change.
async fn decide(
    target: &Target<'_>,
    winners: &Arc<Winners>,
    revision: &Arc<Revision>,
    wave: &[Matched],
    fates: &mut [Fate],
) -> Result<RoaringBitmap> {
    let ordered = winners.keyed().order.is_some();
    let mut settled = RoaringBitmap::new();
    let mut set = |slot: Slot, fate| {
        if let Some(place) = fates.get_mut(slot as usize) {
            *place = fate;
        }
        if fate != Fate::Updated {
            settled.insert(slot);
        }
    };
    for found in wave.iter().flat_map(|matched| &matched.matches).filter(|found| !found.age.is_eq()) {
        // A winner that is newer differs at least in its order; where it is as new, contents are compared below.
        set(found.slot, if found.age.is_gt() { Fate::Updated } else { Fate::Stale });
    }
    let comparisons: Vec<_> = wave
        .iter()
        .map(|Matched { file, matches }| {
            let equal: Vec<Match> = matches.iter().filter(|found| found.age.is_eq()).copied().collect();
            let slots: Vec<Slot> = equal.iter().map(|found| found.slot).collect();
            async move { Ok::<_, Error>((slots, differing(winners, revision, file, equal).await?)) }.boxed()
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
    Ok(settled)
}

#[cfg(test)]
mod tests;
