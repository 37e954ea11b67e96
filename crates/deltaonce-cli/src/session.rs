//! What every command needs from the machine: clock, credentials, a place for notes.

use std::sync::{Arc, Mutex, PoisonError};

use deltaonce::{Location, Result, Scratch, SystemHost, Table};

use crate::args::{Output, OutputArgs, StorageArgs, TableArgs};
use crate::progress::Progress;
use crate::{console, environment};

/// One run of the program. Not `Debug`: it holds credentials.
pub(crate) struct Session {
    host: Arc<SystemHost>,
    defaults: Vec<(String, String)>,
    notes: bool,
    progress_wanted: bool,
    progress: Mutex<Option<Progress>>,
}

impl Session {
    /// A run that speaks as `args` say.
    pub(crate) fn new(args: &OutputArgs) -> Self {
        Self {
            host: Arc::new(SystemHost::default()),
            defaults: environment::storage_defaults(),
            notes: !args.quiet,
            progress_wanted: !args.quiet && args.output == Output::Text,
            progress: Mutex::new(None),
        }
    }

    /// Storage options from the environment; those given on the command line win over them.
    pub(crate) fn storage_defaults(&self) -> Vec<(String, String)> {
        self.defaults.clone()
    }

    /// Opens the table that `args` name; it may not exist yet.
    pub(crate) async fn open(&self, args: &TableArgs, storage: &StorageArgs) -> Result<Table> {
        self.open_on(self.host.clone(), args, storage).await
    }

    /// Opens the table for loads whose rows may take so much memory.
    pub(crate) async fn open_bounded(
        &self,
        scratch: Scratch,
        args: &TableArgs,
        storage: &StorageArgs,
    ) -> Result<Table> {
        self.open_on(Arc::new(SystemHost::default().with_scratch(scratch)), args, storage).await
    }

    async fn open_on(&self, host: Arc<SystemHost>, args: &TableArgs, storage: &StorageArgs) -> Result<Table> {
        let location = Location::parse_with_defaults(&args.table, self.storage_defaults(), storage.options()?)?;
        self.phase(format!("opening {}", args.table));
        Table::open(location, host).await
    }

    /// What a signal does to a write of `table`.
    pub(crate) fn stopping(&self, table: &Table) -> impl FnOnce() {
        let stopper = table.stopper();
        move || {
            stopper.stop();
            self.note("stopping, and removing the files written so far; press Ctrl-C again to leave at once");
        }
    }

    /// Says what is being done now, where a person watches.
    pub(crate) fn phase(&self, phase: String) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        match &*progress {
            Some(progress) => progress.phase(phase),
            None => *progress = Some(Progress::start(self.progress_wanted, phase)),
        }
    }

    /// Says one line that helps but is no result; `--quiet` leaves it out.
    pub(crate) fn note(&self, line: &str) {
        if !self.notes {
            return;
        }
        let line = format!("note: {line}");
        match &*self.progress.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(progress) => progress.say(&line),
            None => console::say(&line),
        }
    }
}
