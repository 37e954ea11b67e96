//! Errors in the arguments, help and version: what clap ends with.

use std::process::ExitCode;

use clap::error::ErrorKind as Clap;
use deltaonce::{Error, ErrorKind};

use crate::render::{self, Subject};
use crate::{console, environment, exit};

/// Prints what clap has to say and gives the exit code: 0 for help and version, 2 for an error.
pub(crate) fn end(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // As with every other output, a reader that went away is no error.
        drop(error.print());
        return exit::SUCCESS;
    }
    if environment::asks_for_json() {
        drop(console::print(&render::json::error(&invalid(error), &Subject::default())));
    } else {
        drop(error.print());
    }
    exit::code(ErrorKind::Invalid)
}

/// The first sentence of clap's message; the rest of it is laid out for people.
fn invalid(error: &clap::Error) -> Error {
    if error.kind() == Clap::DisplayHelpOnMissingArgumentOrSubcommand {
        return Error::invalid("no command was given").hint("deltaonce --help lists the commands");
    }
    let text = error.to_string();
    let sentence: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let sentence = sentence.join(" ");
    Error::invalid(sentence.strip_prefix("error: ").unwrap_or(&sentence))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn one_sentence_is_taken_from_claps_message() {
        let parsed = Cli::command().try_get_matches_from(["deltaonce", "merge", "orders", "changes.ndjson"]);
        let error = invalid(&parsed.expect_err("merge needs a key"));
        assert_eq!(error.message(), "the following required arguments were not provided: --key <COLUMNS>");
    }
}
