//! What the library gives a program that the command line has no use for.

use std::io::Cursor;
use std::sync::Arc;

use deltaonce::{Format, Load, Location, Outcome, Source, SystemHost, Table, TableSpec};

/// A service has several loads under way, each in a task of its own that any thread may run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loads_run_in_spawned_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let location = Location::parse(folder.path().to_str().unwrap(), []).unwrap();
    let table = Table::open(location, Arc::new(SystemHost::default())).await.unwrap();
    let spec = TableSpec { schema: Some("id bigint not null".to_owned()), ..TableSpec::default() };
    table.create(&spec).await.unwrap();
    // Each its own key: an append may double a key, and then a merge on it is refused.
    let loads = [
        (Load::append().write_id("a"), "id\n1\n"),
        (Load::merge(["id"]), "id\n2\n"),
        (Load::insert(["id"]), "id\n3\n"),
    ];
    let loads = loads.map(|(load, csv)| {
        let table = table.clone();
        tokio::spawn(async move {
            let rows = Source::reader(Cursor::new(csv.as_bytes()), Format::Csv);
            let receipt = table.apply(&load, rows).await.unwrap();
            (receipt, table.describe().await.unwrap(), table.txns().await.unwrap(), table.history(9).await.unwrap())
        })
    });
    for load in loads {
        let (receipt, description, _, history) = load.await.unwrap();
        assert!(matches!(receipt.outcome, Outcome::Committed { .. }), "{receipt:?}");
        assert!(!history.is_empty() && description.rows >= Some(1));
    }
}
