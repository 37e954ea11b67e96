//! `deltaonce append`

use clap::Args;
use deltaonce::{Load, Result};

use super::load;
use crate::args::LoadArgs;
use crate::render::Report;
use crate::session::Session;

/// Add all rows; a load that the table's log already records is skipped
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  Load a day's file; doing it again is skipped:
    deltaonce append lake/bronze/orders day1.csv \\
      --txn-app-id bronze_orders_v1 --txn-version 42
  Load what three Kafka partitions brought, each with its offset:
    deltaonce append lake/bronze/clicks batch.ndjson \\
      --txn clicks-0=1841 --txn clicks-1=1790 --txn clicks-2=1902
  Load files that have a name but no number:
    deltaonce append s3://lake/bronze/orders exports/2026-10-05/*.parquet \\
      --write-id export-2026-10-05
  Load from a pipe, creating the table if there is none:
    curl -s https://shop.example/day1.csv | \\
    deltaonce append lake/bronze/orders - --format csv --write-id day1 \\
      --schema \"order_id bigint not null, day date, amount decimal(12,2)\" \\
      --partition-by day")]
pub(crate) struct Append {
    #[command(flatten)]
    pub(crate) load: LoadArgs,
}

impl Append {
    /// What the arguments ask for.
    pub(crate) fn load(&self) -> Result<Load> {
        self.load.complete(Load::append())
    }

    pub(crate) async fn run(&self, session: &Session) -> Result<Report> {
        load::run(&self.load, session, self.load()?).await
    }
}
