//! `deltaonce history`

use clap::Args;
use deltaonce::Result;

use crate::args::{StorageArgs, TableArgs};
use crate::interrupt::Signals;
use crate::render::Report;
use crate::session::Session;

/// Show what was written to a table, newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
    deltaonce history lake/silver/orders
    deltaonce history lake/silver/orders --limit 1 --output json")]
pub(crate) struct History {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// How many versions to show at most
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    #[command(flatten, next_help_heading = "Storage")]
    storage: StorageArgs,
}

impl History {
    pub(crate) async fn run(&self, session: &Session) -> Result<Report> {
        let work = async { session.open(&self.table, &self.storage).await?.history(self.limit).await };
        let commits = Signals::listen().droppable(work).await?;
        Ok(Report::History { table: self.table.table.clone(), commits })
    }
}
