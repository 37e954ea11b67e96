//! `deltaonce merge`

use clap::Args;
use deltaonce::{Load, Result};

use super::load;
use crate::args::{KeyArgs, LoadArgs, MemoryArgs};
use crate::render::Report;
use crate::session::Session;
use crate::values;

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
    deltaonce merge lake/silver/prices prices.csv --key shop,article
  Update two columns, one of them computed:
    deltaonce merge lake/silver/orders stock.csv --key order_id --newest-by at \\
      --update-columns status --set \"qty=target.qty + source.qty\"")]
pub(crate) struct Merge {
    #[command(flatten, next_help_heading = "Key")]
    key: KeyArgs,
    /// Which of two rows with one key is newer: columns, most important first, each the greatest value first (desc, the
    /// default) or the least (asc); a null is oldest. Without it, keys must be unique in the source
    #[arg(long, value_name = "ORDER", help_heading = "Key")]
    newest_by: Option<String>,
    /// Update only these columns of rows that the table holds; the source need not have others. Columns of the order are
    /// always updated
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', value_parser = values::column, help_heading = "Update")]
    update_columns: Vec<String>,
    /// Compute a column of rows that the table holds, from source.COLUMN and target.COLUMN; repeatable. Columns that
    /// neither option names stay
    #[arg(long, value_name = "COLUMN=EXPRESSION", value_parser = values::assignment, help_heading = "Update")]
    set: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl Merge {
    /// What the arguments ask for.
    pub(crate) fn load(&self) -> Result<Load> {
        let mut load = Load::merge(&self.key.key).null_keys(self.key.null_keys());
        if let Some(order) = &self.newest_by {
            load = load.newest_by(order)?;
        }
        load = load.update_columns(self.update_columns.clone())?;
        for (column, expression) in &self.set {
            load = load.set(column, expression)?;
        }
        self.load.complete(load)
    }

    pub(crate) async fn run(&self, session: &Session) -> Result<Report> {
        load::run_bounded(self.memory.scratch(), &self.load, session, self.load()?).await
    }
}
