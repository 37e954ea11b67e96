//! `deltaonce txns`

use clap::Args;
use deltaonce::Result;

use crate::args::{StorageArgs, TableArgs};
use crate::interrupt::Signals;
use crate::render::Report;
use crate::session::Session;

/// Show the identities that a table's log records
#[derive(Debug, Args)]
#[command(after_help = "Examples:
    deltaonce txns lake/bronze/orders
    deltaonce txns s3://lake/bronze/orders --output json")]
pub(crate) struct Txns {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    #[command(flatten, next_help_heading = "Storage")]
    storage: StorageArgs,
}

impl Txns {
    pub(crate) async fn run(&self, session: &Session) -> Result<Report> {
        let mut txns =
            Signals::listen().droppable(async { session.open(&self.table, &self.storage).await?.txns().await }).await?;
        txns.sort_by(|a, b| a.app_id.cmp(&b.app_id));
        Ok(Report::Txns { table: self.table.table.clone(), txns })
    }
}
