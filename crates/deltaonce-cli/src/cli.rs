//! The one definition of the command line: help, completions and parsing all come from it.

use clap::{Parser, Subcommand};
use deltaonce::Result;

use crate::args::OutputArgs;
use crate::commands::{append, completions, create, history, insert, merge, replace, set, show, txns};
use crate::render::{Report, Subject};
use crate::session::Session;

/// A load that is retried writes its rows twice; deltaonce writes to Delta Lake tables so that doing a load twice leaves
/// the table as doing it once.
#[derive(Debug, Parser)]
#[command(
    name = "deltaonce",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Which command for which output:
  batches of rows, each to be added once        append, with an identity
  a day, a partition, a whole table, rebuilt    replace
  the newest state of each key                  merge
  events that may arrive more than once         insert

Exit codes:
   0  done, or done already: committed, skipped or unchanged
   1  refused: the rows are wrong for this table or this command
   2  the command, the configuration or the credentials are wrong,
      or the table uses a feature that is not supported
   3  storage or other writers got in the way, or the run was stopped;
      run it again
   4  it is not known whether the load landed;
      run it again with the same identity
  70  a defect of deltaonce
After 1, 2 and 3 nothing was changed.

Credentials, region and endpoint of S3 come from AWS_* variables;
a --storage-option wins over them."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Append(append::Append),
    Replace(replace::Replace),
    Merge(merge::Merge),
    Insert(insert::Insert),
    Create(create::Create),
    Set(set::Set),
    Show(show::Show),
    History(history::History),
    Txns(txns::Txns),
    Completions(completions::Completions),
}

impl Command {
    /// Runs the command to its end.
    pub(crate) async fn run(&self, session: &Session) -> Result<Report> {
        match self {
            Self::Append(command) => command.run(session).await,
            Self::Replace(command) => command.run(session).await,
            Self::Merge(command) => command.run(session).await,
            Self::Insert(command) => command.run(session).await,
            Self::Create(command) => command.run(session).await,
            Self::Set(command) => command.run(session).await,
            Self::Show(command) => command.run(session).await,
            Self::History(command) => command.run(session).await,
            Self::Txns(command) => command.run(session).await,
            Self::Completions(command) => command.run(),
        }
    }

    /// What the command is about, for an error.
    pub(crate) fn subject(&self) -> Subject {
        match self {
            Self::Append(command) => Subject::write("append", &command.load.table),
            Self::Replace(command) => Subject::write("replace", &command.load.table),
            Self::Merge(command) => Subject::write("merge", &command.load.table),
            Self::Insert(command) => Subject::write("insert", &command.load.table),
            Self::Create(command) => Subject::write("create", &command.table),
            Self::Set(command) => Subject::write("set", &command.table),
            Self::Show(command) => Subject::read(&command.table),
            Self::History(command) => Subject::read(&command.table),
            Self::Txns(command) => Subject::read(&command.table),
            Self::Completions(_) => Subject::default(),
        }
    }
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;
