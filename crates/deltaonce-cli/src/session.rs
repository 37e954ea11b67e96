//! What every command needs from the machine: clock, credentials, a place for notes.

use std::sync::{Arc, Mutex, PoisonError};

use deltaonce::{Location, Result, SystemHost, Table};

use crate::args::{Output, OutputArgs, TableArgs};
use crate::progress::Progress;
use crate::{console, environment};

/// One run of the program.
#[derive(Debug)]
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
    pub(crate) async fn open(&self, args: &TableArgs) -> Result<Table> {
        let location = Location::parse_with_defaults(&args.table, self.storage_defaults(), args.storage_options()?)?;
        self.phase(format!("opening {}", args.table));
        Table::open(location, self.host.clone()).await
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
