//! `deltaonce set`

use clap::Args;
use deltaonce::{Properties, Result};

use crate::args::{RunArgs, StorageArgs, TableArgs};
use crate::interrupt::Signals;
use crate::render::Report;
use crate::session::Session;
use crate::values;

/// Set properties of a table; what they say already is left as it is
#[derive(Debug, Args)]
#[command(after_help = "A property that needs a table feature adds it. CHECK constraints cannot be set, since
the rows that are there would have to be checked.

Examples:
  Keep what is written as it is, and a checkpoint every hundred versions:
    deltaonce set lake/bronze/orders delta.appendOnly=true \\
      delta.checkpointInterval=100
  Give new data files Bloom filters, by which readers pass over files:
    deltaonce set s3://lake/silver/orders deltaonce.bloomFilterColumns=order_id
  Let deletes mask rows instead of writing their files anew:
    deltaonce set lake/silver/orders delta.enableDeletionVectors=true")]
pub(crate) struct Set {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// Properties, each with its value
    #[arg(value_name = "KEY=VALUE", required = true, help_heading = None, value_parser = values::pair)]
    properties: Vec<(String, String)>,
    #[command(flatten, next_help_heading = "Run")]
    run: RunArgs,
    #[command(flatten, next_help_heading = "Storage")]
    storage: StorageArgs,
}

impl Set {
    /// What the arguments ask for.
    pub(crate) fn properties(&self) -> Properties {
        let properties = Properties::new(self.properties.iter().cloned()).deadline(self.run.commit_timeout);
        match &self.run.run_id {
            Some(run_id) => properties.run_id(run_id),
            None => properties,
        }
    }

    pub(crate) async fn run(&self, session: &Session) -> Result<Report> {
        let properties = self.properties();
        let mut signals = Signals::listen();
        let table = signals.droppable(session.open(&self.table, &self.storage)).await?;
        session.phase(format!("setting properties of {}", self.table.table));
        let receipt = signals.stoppable(session.stopping(&table), table.set_properties(&properties)).await?;
        Ok(Report::Load(Box::new(receipt)))
    }
}
