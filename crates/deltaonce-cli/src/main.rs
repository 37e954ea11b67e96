//! The command line of `deltaonce`: arguments in, one library call, the result rendered; no load logic.

mod args;
mod cli;
mod commands;
mod console;
mod environment;
mod exit;
mod interrupt;
mod panics;
mod progress;
mod render;
mod session;
mod usage;
mod values;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::args::Output;
use crate::cli::Cli;
use crate::render::Subject;
use crate::session::Session;

fn main() -> ExitCode {
    panics::record();
    let matches = match Cli::command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return usage::end(&error),
    };
    match Cli::from_arg_matches(&matches) {
        Ok(cli) => run(&cli),
        Err(error) => usage::end(&error),
    }
}

fn run(cli: &Cli) -> ExitCode {
    let subject = cli.command.subject();
    let output = cli.output.output;
    let result = panics::caught(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|e| deltaonce::Error::internal("the threads of the program cannot be started").caused_by(e))?;
        let session = Session::new(&cli.output);
        let result = runtime.block_on(cli.command.run(&session));
        // A read of stdin may still wait for input that never comes.
        runtime.shutdown_background();
        result
    });
    match result {
        Ok(report) => {
            console::warn(report.warnings(), output);
            match console::print(&render::report(&report, output)) {
                Ok(()) => exit::SUCCESS,
                Err(error) => {
                    console::say(&format!("warning: the result cannot be written to stdout: {error}"));
                    exit::after_lost_report(&report)
                }
            }
        }
        Err(error) => {
            fail(&error, &subject, output);
            exit::code(error.kind())
        }
    }
}

/// Says an error where its reader looks for it: a program on stdout, a person on stderr.
fn fail(error: &deltaonce::Error, subject: &Subject, output: Output) {
    match output {
        // The error's exit code says all that can still be said when stdout is gone.
        Output::Json => drop(console::print(&render::json::error(error, subject))),
        Output::Text => console::say(&render::text::error(error, subject)),
    }
}
