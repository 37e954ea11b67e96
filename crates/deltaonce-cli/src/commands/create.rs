//! `deltaonce create`

use clap::Args;
use deltaonce::{Result, TableSpec};

use crate::args::{StorageArgs, TableArgs, schema_text};
use crate::interrupt::Signals;
use crate::render::Report;
use crate::session::Session;
use crate::values;

/// Create an empty table; one that is there already and equal is left as it is
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  With columns as in SQL:
    deltaonce create lake/silver/orders --partition-by order_date \\
      --schema \"order_id bigint not null, order_date date\"
  With Delta's own schema JSON, and table properties:
    deltaonce create s3://lake/silver/orders --schema orders.json \\
      --property delta.appendOnly=true --property delta.checkpointInterval=100")]
pub(crate) struct Create {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// The columns: a file or text, either Delta's schema JSON or a list as in SQL,
    /// "order_id bigint not null, amount decimal(12,2)"
    #[arg(long, value_name = "FILE|COLUMNS", help_heading = "New table")]
    schema: String,
    /// Partition columns, in order
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', value_parser = values::column, help_heading = "New table")]
    partition_by: Vec<String>,
    /// A table property; repeatable
    #[arg(long = "property", value_name = "KEY=VALUE", value_parser = values::pair, help_heading = "New table")]
    properties: Vec<(String, String)>,
    #[command(flatten, next_help_heading = "Storage")]
    storage: StorageArgs,
}

impl Create {
    /// What the arguments ask for.
    pub(crate) fn spec(&self) -> Result<TableSpec> {
        Ok(TableSpec {
            schema: Some(schema_text(&self.schema)?),
            partition_by: self.partition_by.clone(),
            properties: self.properties.clone(),
        })
    }

    pub(crate) async fn run(&self, session: &Session) -> Result<Report> {
        let spec = self.spec()?;
        let mut signals = Signals::listen();
        let table = signals.droppable(session.open(&self.table, &self.storage)).await?;
        session.phase(format!("creating {}", self.table.table));
        let receipt = signals.stoppable(session.stopping(&table), table.create(&spec)).await?;
        Ok(Report::Load(Box::new(receipt)))
    }
}
