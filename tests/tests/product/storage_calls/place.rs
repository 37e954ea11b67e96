//! Where a table under test lies, and what is done to it.

use std::sync::Arc;

use bytes::Bytes;
use deltaonce::fault::{FailingStore, Plan};
use deltaonce::{Load, Location, Receipt, Result, Source, Table};
use deltaonce_tests::host::SteppingHost;
use deltaonce_tests::ledger::Ledger;
use deltaonce_tests::memory::s3_address;
use futures::TryStreamExt;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tempfile::TempDir;

use super::loads::Work;

/// What holds a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Medium {
    /// Folders of this machine, through the product's own store for them.
    Disk,
    /// An object store in memory, at an `s3://` address, so that the product treats it as one.
    Memory,
}

/// A table's objects, to start many tests from.
#[derive(Debug, Clone, Default)]
pub(super) struct Objects(Vec<(Path, Bytes)>);

/// One table, with the plan that its store obeys.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) plan: Plan,
    /// The store below the plan, rooted so that the table is `t`.
    store: Arc<dyn ObjectStore>,
    location: Location,
    folder: Option<Arc<TempDir>>,
}

impl Place {
    /// A table of these objects.
    pub(super) async fn holding(medium: Medium, objects: &Objects) -> Self {
        let (store, location, folder): (Arc<dyn ObjectStore>, _, _) = match medium {
            Medium::Disk => {
                let folder = tempfile::tempdir().unwrap();
                let store = LocalFileSystem::new_with_prefix(folder.path()).unwrap();
                let location = Location::parse(folder.path().join("t").to_str().unwrap(), []).unwrap();
                (Arc::new(store), location, Some(Arc::new(folder)))
            }
            Medium::Memory => (Arc::new(InMemory::new()), s3_address(), None),
        };
        for (path, content) in &objects.0 {
            store.put(path, content.clone().into()).await.unwrap();
        }
        Self { plan: Plan::new(), store, location, folder }
    }

    /// The table's objects as they are.
    pub(super) async fn objects(&self) -> Objects {
        let mut objects = Vec::new();
        for meta in self.store.list(None).try_collect::<Vec<_>>().await.unwrap() {
            let content = self.store.get(&meta.location).await.unwrap().bytes().await.unwrap();
            objects.push((meta.location, content));
        }
        Objects(objects)
    }

    /// Loads with the faults of the plan.
    pub(super) async fn load(&self, work: &Work) -> Result<Receipt> {
        self.load_under(work, self.plan.clone()).await
    }

    /// Loads as another process would, which this table's plan does not reach.
    pub(super) async fn load_beside(&self, work: &Work) -> Result<Receipt> {
        self.load_under(work, Plan::new()).await
    }

    /// Loads rows of any kind with the faults of the plan.
    pub(super) async fn load_rows(&self, load: &Load, source: Source) -> Result<Receipt> {
        self.table(self.plan.clone()).await.apply(load, source).await
    }

    async fn load_under(&self, work: &Work, plan: Plan) -> Result<Receipt> {
        self.table(plan).await.apply(&work.load, work.source()).await
    }

    async fn table(&self, plan: Plan) -> Table {
        let memory = self.folder.is_none().then(|| Arc::clone(&self.store));
        let location = self.location.wrapped(|own| Arc::new(FailingStore::new(memory.unwrap_or(own), plan))).unwrap();
        Table::open(location, Arc::new(SteppingHost::default())).await.unwrap()
    }

    /// The table as deltalake opens it; it must be on disk.
    pub(super) async fn opened_by_deltalake(&self) -> deltalake::DeltaTable {
        assert!(self.folder.is_some(), "deltalake reaches disk only");
        deltalake::open_table(self.location.url().clone()).await.unwrap()
    }

    /// The table as its log and files tell it.
    pub(super) async fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::read(&self.store, &Path::from("t")).await;
        if let Some(folder) = &self.folder {
            // Listings hide unfinished files; a look at the folder does not.
            ledger.objects.extend(deltaonce_tests::table::Table::local(&folder.path().join("t")).files());
        }
        ledger
    }
}
