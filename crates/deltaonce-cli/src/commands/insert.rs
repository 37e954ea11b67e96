//! `deltaonce insert`

use clap::Args;
use deltaonce::{Load, Result};

use super::load;
use crate::args::{KeyArgs, LoadArgs, MemoryArgs};
use crate::render::Report;
use crate::session::Session;

/// Add only the rows whose key is not in the table
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  Add events that may be delivered more than once:
    deltaonce insert lake/silver/events events.ndjson --key event_id
  The same with a key of two columns, one of which may be null:
    deltaonce insert lake/silver/events events.ndjson \\
      --key device_id,event_id --null-keys match")]
pub(crate) struct Insert {
    #[command(flatten, next_help_heading = "Key")]
    key: KeyArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl Insert {
    /// What the arguments ask for.
    pub(crate) fn load(&self) -> Result<Load> {
        self.load.complete(Load::insert(&self.key.key).null_keys(self.key.null_keys()))
    }

    pub(crate) async fn run(&self, session: &Session) -> Result<Report> {
        load::run_bounded(self.memory.scratch(), &self.load, session, self.load()?).await
    }
}
