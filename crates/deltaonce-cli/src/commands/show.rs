//! `deltaonce show`

use clap::Args;
use deltaonce::Result;

use crate::args::{StorageArgs, TableArgs};
use crate::interrupt::Signals;
use crate::render::Report;
use crate::session::Session;

/// Show what a table is: version, columns, partitions, properties, features, size
#[derive(Debug, Args)]
#[command(after_help = "Examples:
    deltaonce show lake/silver/orders
    deltaonce show s3://lake/silver/orders --output json")]
pub(crate) struct Show {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    #[command(flatten, next_help_heading = "Storage")]
    storage: StorageArgs,
}

impl Show {
    pub(crate) async fn run(&self, session: &Session) -> Result<Report> {
        let description = Signals::listen()
            .droppable(async { session.open(&self.table, &self.storage).await?.describe().await })
            .await?;
        Ok(Report::Table { table: self.table.table.clone(), description })
    }
}
