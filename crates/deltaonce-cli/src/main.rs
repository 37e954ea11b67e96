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

use clap::Parser;
use deltaonce::Error;

use crate::args::Output;
use crate::cli::Cli;
use crate::render::Subject;
use crate::session::Session;

/// The system's gives large buffers back as soon as they are free, and reading data files takes and frees them all the time.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    panics::record();
    match panics::caught(|| Ok(parse_and_run())) {
        Ok(code) => code,
        Err(error) => fail(&error, &Subject::default(), Output::Text),
    }
}

fn parse_and_run() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => run(&cli),
        Err(error) => usage::end(&error),
    }
}

fn run(cli: &Cli) -> ExitCode {
    let subject = cli.command.subject();
    let output = cli.output.output;
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let error = Error::internal("the threads of the program cannot be started").caused_by(error);
            return fail(&error, &subject, output);
        }
    };
    let result = panics::caught(|| {
        let session = Session::new(&cli.output);
        runtime.block_on(cli.command.run(&session))
    });
    // A read of stdin may still wait for input that never comes.
    runtime.shutdown_background();
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
        Err(error) => fail(&error, &subject, output),
    }
}

/// Says an error where its reader looks for it, a program on stdout and a person on stderr; gives its exit code.
fn fail(error: &Error, subject: &Subject, output: Output) -> ExitCode {
    match output {
        // The error's exit code says all that can still be said when stdout is gone.
        Output::Json => drop(console::print(&render::json::error(error, subject))),
        Output::Text => console::say(&render::text::error(error, subject)),
    }
    exit::code(error.kind())
}
