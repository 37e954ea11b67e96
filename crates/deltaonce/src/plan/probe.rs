//! Finds the rows of a table whose key the source holds.

use std::cmp::Ordering;

use futures::FutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::error::Result;
use crate::plan::RowsRead;
use crate::plan::source_keys::SourceKeys;
use crate::plan::target::Target;
use crate::prepare::index::Slot;
use crate::table::actions::AddFile;
use crate::table::scan::{Scanned, scan_with};

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
#[derive(Debug)]
pub(super) struct Matched<'a> {
    pub(super) file: &'a AddFile,
    /// In the file's order.
    pub(super) matches: Vec<Match>,
}

#[derive(Debug)]
pub(super) struct Probed<'a> {
    /// In the snapshot's order.
    pub(super) matched: Vec<Matched<'a>>,
    /// Files that were opened.
    pub(super) probed: u64,
    /// Files that were not.
    pub(super) pruned: u64,
}

/// Reads the key and order columns of every file that can hold a key of the source.
///
/// # Errors
/// Those of [`scan_with`].
pub(super) async fn probe<'a>(target: &Target<'a>, source: &SourceKeys) -> Result<Probed<'a>> {
    source.sort().await?;
    let candidates: Vec<&AddFile> = target.files.iter().filter(|file| source.may_be_in(file)).collect();
    let probed = candidates.len();
    let probes: Vec<_> = candidates.into_iter().map(|file| probe_file(target, source, file).boxed()).collect();
    let matched = stream::iter(probes)
        .buffered(target.parallelism)
        .try_filter(|matched| std::future::ready(!matched.matches.is_empty()))
        .try_collect()
        .await?;
    Ok(Probed { matched, probed: probed as u64, pruned: (target.files.len() - probed) as u64 })
}

async fn probe_file<'a>(target: &Target<'a>, source: &SourceKeys, file: &'a AddFile) -> Result<Matched<'a>> {
    let winners = source.winners().clone();
    let key = winners.keyed().key.columns().to_vec();
    let order = winners.keyed().order.as_ref().map(|order| order.columns().to_vec()).unwrap_or_default();
    let mut columns = [key, order].concat();
    columns.sort_unstable();
    columns.dedup();
    let find = {
        let columns = columns.clone();
        move |scanned: Scanned| {
            let pick = |wanted: &[usize]| -> Vec<_> {
                wanted
                    .iter()
                    .map(|column| scanned.rows.column(columns.partition_point(|c| c < column)).clone())
                    .collect()
            };
            let keyed = winners.keyed();
            let keys = keyed.key.encode(&pick(keyed.key.columns()))?;
            let orders = keyed.order.as_ref().map(|order| order.encode(&pick(order.columns()))).transpose()?;
            let mut matches = Vec::new();
            for (row, key) in keys.iter().enumerate() {
                let Some(slot) = winners.find(key.data()) else { continue };
                let age =
                    orders.as_ref().map_or(Ordering::Equal, |orders| winners.order(slot).cmp(orders.row(row).data()));
                matches.push(Match { row: scanned.first + row as u64, slot, age });
            }
            Ok(matches)
        }
    };
    let matches = scan_with(target.store.clone(), target.schema, file, &columns, find).try_concat().await?;
    Ok(Matched { file, matches })
}
