//! `deltaonce merge`

use clap::Args;
use deltaonce::{Load, Result};

use super::load;
use crate::args::{KeyArgs, LoadArgs};
use crate::render::Report;
use crate::session::Session;

/// Bring each key to its newest row; older rows never win
#[derive(Debug, Args)]
#[command(after_help = "Of several rows with one key the newest counts, and only if it is strictly newer
than the table's row. Source rows that are equally new but differ are refused:
the order does not tell which one is right.

Examples:
  Apply changes; an older file that comes again changes nothing:
    deltaonce merge lake/silver/orders changes.ndjson --key order_id \\
      --newest-by \"source_updated_at desc, source_lsn desc\"
  Without an order, a file has one row per key; rows that differ are updated:
    deltaonce merge lake/silver/prices prices.csv --key shop,article")]
pub(crate) struct Merge {
    #[command(flatten, next_help_heading = "Key")]
    key: KeyArgs,
    /// Which of two rows with one key is newer: columns, most important first, each the greatest value first (desc, the
    /// default) or the least (asc); a null is oldest. Without it, keys must be unique in the source
    #[arg(long, value_name = "ORDER", help_heading = "Key")]
    newest_by: Option<String>,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
}

impl Merge {
    /// What the arguments ask for.
    pub(crate) fn load(&self) -> Result<Load> {
        let mut load = Load::merge(&self.key.key).null_keys(self.key.null_keys());
        if let Some(order) = &self.newest_by {
            load = load.newest_by(order)?;
        }
        self.load.complete(load)
    }

    pub(crate) async fn run(&self, session: &Session) -> Result<Report> {
        load::run(&self.load, session, self.load()?).await
    }
}
