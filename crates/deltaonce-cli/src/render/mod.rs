//! How results and errors are said: to a person ([`text`]) or to a program ([`json`]).

pub(crate) mod json;
#[cfg(test)]
mod samples;
pub(crate) mod text;
mod words;

use deltaonce::{Commit, Description, Receipt, RecordedIdentity};

use crate::args::{Output, TableArgs};

/// What a command found or did.
#[derive(Debug)]
pub(crate) enum Report {
    /// A write.
    Load(Box<Receipt>),
    /// A table as it is.
    Table { table: String, description: Description },
    /// A table's log, newest first.
    History { table: String, commits: Vec<Commit> },
    /// A table's recorded identities.
    Txns { table: String, txns: Vec<RecordedIdentity> },
    /// The log entry of a receipt, which the log still holds.
    Held { table: String, commit: Commit },
    /// Text for another program, whatever the output format.
    Script(String),
}

impl Report {
    /// What went wrong without failing the command.
    pub(crate) fn warnings(&self) -> &[String] {
        match self {
            Self::Load(receipt) => &receipt.warnings,
            _ => &[],
        }
    }
}

/// What a command was about, for an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The table, as it was named.
    pub(crate) table: Option<String>,
    /// The contract's name, for a command that writes.
    pub(crate) contract: Option<&'static str>,
}

impl Subject {
    /// A command that writes.
    pub(crate) fn write(contract: &'static str, table: &TableArgs) -> Self {
        Self { contract: Some(contract), ..Self::read(table) }
    }

    /// A command that reads.
    pub(crate) fn read(table: &TableArgs) -> Self {
        Self { table: Some(table.table.clone()), contract: None }
    }
}

/// A report as it goes to stdout, its last line end included.
pub(crate) fn report(report: &Report, output: Output) -> String {
    match (report, output) {
        (Report::Script(script), _) => script.clone(),
        (report, Output::Text) => text::report(report),
        (report, Output::Json) => json::report(report),
    }
}
