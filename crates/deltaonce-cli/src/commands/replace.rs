//! `deltaonce replace`

use clap::Args;
use deltaonce::{Error, Load, Result, Scope};

use super::load;
use crate::args::LoadArgs;
use crate::environment;
use crate::render::Report;
use crate::session::Session;

/// Delete the rows of a scope and write the new ones, in one commit
#[derive(Debug, Args)]
#[command(after_help = "Every row of the source must lie within the scope. The same scope and the same
rows leave the same table.

Examples:
  Rebuild a day:
    deltaonce replace s3://lake/silver/orders day1.parquet \\
      --where \"order_date = '2026-10-05'\"
  Rebuild a span of time; the end is not inside:
    deltaonce replace lake/silver/orders day1.parquet \\
      --interval order_ts=2026-10-05T00:00:00Z/2026-10-06T00:00:00Z
  Rebuild the partitions that the source has rows for:
    deltaonce replace lake/silver/orders day1.parquet --partitions
  Rebuild the whole table; readers see the old one until the new one is there:
    deltaonce replace lake/silver/orders all.parquet --all")]
pub(crate) struct Replace {
    #[command(flatten, next_help_heading = "Scope (one of)")]
    scope: ScopeArgs,
    /// Let a source without any rows delete the scope's rows
    #[arg(long, help_heading = "Source")]
    allow_empty: bool,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct ScopeArgs {
    /// The rows for which a SQL predicate over the table's columns is true
    #[arg(long = "where", value_name = "SQL")]
    predicate: Option<String>,
    /// The rows with START <= COLUMN < END
    #[arg(long, value_name = "COLUMN=START/END")]
    interval: Option<String>,
    /// The partitions that have a row in the source
    #[arg(long)]
    partitions: bool,
    /// The whole table
    #[arg(long)]
    all: bool,
}

impl ScopeArgs {
    fn scope(&self) -> Result<Scope> {
        match (&self.predicate, &self.interval, self.partitions, self.all) {
            (Some(sql), None, false, false) => Ok(Scope::Where(sql.clone())),
            (None, Some(text), false, false) => Scope::interval(text),
            (None, None, true, false) => Ok(Scope::Partitions),
            (None, None, false, true) => Ok(Scope::All),
            _ => Err(Error::invalid("a replace needs exactly one of --where, --interval, --partitions and --all")),
        }
    }
}

impl Replace {
    /// What the arguments ask for.
    pub(crate) fn load(&self) -> Result<Load> {
        self.load.complete(Load::replace(self.scope.scope()?).allow_empty(self.allow_empty))
    }

    pub(crate) async fn run(&self, session: &Session) -> Result<Report> {
        load::run_bounded(environment::scratch(None), &self.load, session, self.load()?).await
    }
}
