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
      --property delta.appendOnly=true --property delta.checkpointInterval=100
  For merges by key, with what makes them quick:
    deltaonce create lake/silver/orders --schema orders.json \\
      --deletion-vectors --bloom order_id")]
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
    /// Deleted and updated rows may be masked instead of writing their files anew: delta.enableDeletionVectors=true
    #[arg(long, help_heading = "New table")]
    deletion_vectors: bool,
    /// Changes of rows are kept for readers of a change data feed: delta.enableChangeDataFeed=true
    #[arg(long, help_heading = "New table")]
    change_data_feed: bool,
    /// Columns of which data files hold a Bloom filter: deltaonce.bloomFilterColumns=COLUMNS
    #[arg(long, value_name = "COLUMNS", help_heading = "New table")]
    bloom: Option<String>,
    #[command(flatten, next_help_heading = "Storage")]
    storage: StorageArgs,
}

impl Create {
    /// What the arguments ask for.
    pub(crate) fn spec(&self) -> Result<TableSpec> {
        Ok(TableSpec {
            schema: Some(schema_text(&self.schema)?),
            partition_by: self.partition_by.clone(),
            properties: self.properties(),
        })
    }

    /// The properties, those first that an option stands for.
    fn properties(&self) -> Vec<(String, String)> {
        let switched = |on: bool, key: &str| on.then(|| (key.to_owned(), "true".to_owned()));
        let options = [
            switched(self.deletion_vectors, "delta.enableDeletionVectors"),
            switched(self.change_data_feed, "delta.enableChangeDataFeed"),
            self.bloom.clone().map(|columns| ("deltaonce.bloomFilterColumns".to_owned(), columns)),
        ];
        options.into_iter().flatten().chain(self.properties.iter().cloned()).collect()
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
