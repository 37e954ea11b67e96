use std::path::PathBuf;

use futures::StreamExt;
use futures::stream;

use super::*;
use crate::host::Scratch;
use crate::plan::fixture::Table;
use crate::prepare::choose::{Chosen, Overflow, choose};
use crate::prepare::keys::Keyed;
use crate::source::{Places, Unit};

/// Rows of few keys in no order, spilled in runs of a few hundred.
async fn spilled(table: &Table, folder: &tempfile::TempDir, version: i64) -> Sorted {
    let keyed = Keyed::new("t", &table.schema, &table.key, table.order.as_ref(), table.null_keys).unwrap();
    let batches: Vec<_> = (0..40_i64)
        .map(|batch| {
            let rows: Vec<_> =
                (0..100).map(|row| ((batch * 7_919 + row * 37) % 1_000, "new", version + row % 3)).collect();
            Ok((table.versions(&rows), Places::consecutive("source".into(), Unit::Row, 1 + 100 * batch as u64)))
        })
        .collect();
    let scratch = Scratch { memory: 64 * 1024, folder: PathBuf::from(folder.path()) };
    let overflow = Overflow { scratch, name: "load".to_owned() };
    match choose(keyed, stream::iter(batches).boxed(), Some(overflow)).await.unwrap() {
        Chosen::Spilled(sorted) => sorted,
        Chosen::Held(_) => panic!("it all fits"),
    }
}

async fn old(masks: bool) -> Table {
    let table = Table::of_versions();
    let table = if masks { table.masking() } else { table };
    // Some of whose rows go, all of whose rows go, and newer than the source.
    let some: Vec<_> = (0..300).chain(2_000..2_400).map(|id| (id, "old", 1)).collect();
    let one: Vec<_> = (300..600).map(|id| (id, "old", 1)).collect();
    let two: Vec<_> = (600..1_100).map(|id| (id, "old", 100)).collect();
    let (some, one, two) = (table.versions(&some), table.versions(&one), table.versions(&two));
    table.holding(some).await.holding(one).await.holding(two).await
}

#[tokio::test]
async fn what_does_not_fit_in_memory_ends_as_what_does() {
    for masks in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let mut table = old(masks).await;
        let source = spilled(&table, &folder, 10).await;
        let held: Vec<_> = source.winners().unwrap().map(|winners| winners.unwrap().len()).collect().await;
        assert!(held.len() > 3, "{held:?}");
        let keys = table.source(&[]).await.unwrap();
        let revision = table.revision(&keys).unwrap();
        let change = plan(&table.target(), &source, Held::Updated, &revision, &table).await.unwrap();
        let (rows, all) = (change.rows, held.iter().sum::<usize>() as u64);
        assert_eq!(rows.read, 4_000);
        assert_eq!(rows.duplicates + rows.superseded, 4_000 - all);
        assert_eq!(rows.updated + rows.stale, all, "the table holds every key");
        let change = table.commit(change).await;
        assert_eq!((change.masks.len(), change.copied), if masks { (1, 0) } else { (0, 400) });
        let after = table.all().await;
        assert_eq!(after.len(), 1_500);
        assert_eq!(after.iter().filter(|row| row.contains("|new|")).count() as u64, rows.updated);
        let again = plan(&table.target(), &source, Held::Updated, &revision, &table).await.unwrap();
        assert!(again.is_empty());
        let inserted = plan(&table.target(), &source, Held::Kept, &revision, &table).await.unwrap();
        assert!(inserted.is_empty());
        assert_eq!(inserted.rows.unchanged, all);
        drop(source);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the scratch folder is left as it was");
    }
}

#[tokio::test]
async fn ties_are_told_with_their_places_wherever_they_were_spilled() {
    let folder = tempfile::tempdir().unwrap();
    let table = Table::of_versions();
    let keyed = Keyed::new("t", &table.schema, &table.key, table.order.as_ref(), table.null_keys).unwrap();
    let batch = |value: &'static str, first: u64| {
        let rows: Vec<_> = (0..2_000).map(|id| (id, if id == 7 { value } else { "same" }, 1)).collect();
        Ok((table.versions(&rows), Places::consecutive("rows.csv".into(), Unit::Line, first)))
    };
    let scratch = Scratch { memory: 64 * 1024, folder: PathBuf::from(folder.path()) };
    let overflow = Overflow { scratch, name: "load".to_owned() };
    let source = stream::iter([batch("one", 2), batch("other", 5_000)]).boxed();
    let Chosen::Spilled(sorted) = choose(keyed, source, Some(overflow)).await.unwrap() else { panic!("it all fits") };
    let error = sorted.winners().unwrap().try_collect::<Vec<_>>().await.unwrap_err();
    let told = error.evidence().join("\n");
    assert!(told.contains("rows.csv line 9") && told.contains("line 5007"), "{error}: {told}");
}
