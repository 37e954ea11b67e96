//! `deltaonce completions`

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use deltaonce::{Error, Result};

use crate::cli::Cli;
use crate::render::Report;

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
    deltaonce completions bash > /etc/bash_completion.d/deltaonce
    deltaonce completions fish > ~/.config/fish/completions/deltaonce.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> Result<Report> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "deltaonce", &mut script);
        let script =
            String::from_utf8(script).map_err(|e| Error::internal("the completion script is not text").caused_by(e))?;
        Ok(Report::Script(script))
    }
}
