//! `deltaonce txns`

use std::path::{Path, PathBuf};

use clap::Args;
use deltaonce::{Commit, Error, Result, Standing, Table};
use serde::Deserialize;

use crate::args::{StorageArgs, TableArgs};
use crate::interrupt::Signals;
use crate::render::Report;
use crate::session::Session;

/// Show the identities that a table's log records, or whether it still holds a load
#[derive(Debug, Args)]
#[command(after_help = "Examples:
    deltaonce txns lake/bronze/orders
    deltaonce txns s3://lake/bronze/orders --output json
    deltaonce append lake/bronze/orders day1.csv --txn orders=42 --output json > receipt.json
    deltaonce txns lake/bronze/orders --receipt receipt.json")]
pub(crate) struct Txns {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// Say whether the log entry of this receipt (what a load wrote with --output json) is still the one in the log;
    /// exit code 1 if it is not
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Storage")]
    storage: StorageArgs,
}

/// What of a receipt names its entry.
#[derive(Debug, Deserialize)]
struct Receipt {
    outcome: String,
    version: Option<u64>,
    token: Option<String>,
}

impl Txns {
    pub(crate) async fn run(&self, session: &Session) -> Result<Report> {
        let mut signals = Signals::listen();
        let name = self.table.table.clone();
        let Some(file) = &self.receipt else {
            let work = async { session.open(&self.table, &self.storage).await?.txns().await };
            let mut txns = signals.droppable(work).await?;
            txns.sort_by(|a, b| a.app_id.cmp(&b.app_id));
            return Ok(Report::Txns { table: name, txns });
        };
        let (version, token) = entry_of(file)?;
        let work = async {
            let table = session.open(&self.table, &self.storage).await?;
            held(&table, &name, version, &token).await
        };
        let commit = signals.droppable(work).await?;
        Ok(Report::Held { table: name, commit })
    }
}

/// The version and the token of the receipt in `file`.
///
/// # Errors
/// `Invalid` for a file that is no receipt, or one of a load that wrote no entry.
fn entry_of(file: &Path) -> Result<(u64, String)> {
    let name = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|e| Error::invalid(format!("the receipt '{name}' cannot be read: {e}")))?;
    let receipt: Receipt = serde_json::from_str(&text).map_err(|e| {
        Error::invalid(format!("'{name}' is not a receipt: {e}"))
            .hint("give the file that a load's --output json was written to")
    })?;
    match (receipt.version, receipt.token) {
        (Some(version), Some(token)) if receipt.outcome == "committed" => Ok((version, token)),
        _ => Err(Error::invalid(format!(
            "the receipt '{name}' is of a load that ended as {}, which wrote no log entry of its own",
            receipt.outcome
        ))
        .hint("give the receipt of the run that committed the load")),
    }
}

/// The entry, where the log still holds it.
///
/// # Errors
/// `Refused` where it holds another one or none, `Unknown` where its part of the log was cleaned up.
async fn held(table: &Table, name: &str, version: u64, token: &str) -> Result<Commit> {
    let lost = |sentence: String| {
        Err(Error::refused(sentence).hint("run the load again: it will find its identity gone, and load"))
    };
    match table.standing(version, token).await? {
        Standing::Held(commit) => Ok(*commit),
        Standing::Overwritten(other) => lost(format!(
            "version {version} of {name} is not this load's entry any more: {} put another one over it",
            other.engine.as_deref().unwrap_or("a writer that gives no name")
        )),
        Standing::Missing { latest } => {
            lost(format!("{name} has no version {version}: its log ends with version {latest}"))
        }
        Standing::CleanedUp => Err(Error::unknown(format!(
            "whether {name} holds this load cannot be told: entry {version} of its log was cleaned up"
        ))
        .hint("see whether its identity is recorded: deltaonce txns without --receipt")),
    }
}
