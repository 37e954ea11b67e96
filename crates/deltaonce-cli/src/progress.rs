//! A spinner on stderr, for people only.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::console;

/// Shows that work goes on and for how long, where a person watches; gone when dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    spinner: Option<ProgressBar>,
}

impl Progress {
    /// Nothing is drawn unless `wanted` and stderr is a terminal.
    pub(crate) fn start(wanted: bool, phase: String) -> Self {
        if !wanted || !std::io::stderr().is_terminal() {
            return Self { spinner: None };
        }
        let spinner = ProgressBar::new_spinner();
        // Without colours there is nothing for NO_COLOR to switch off.
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            spinner.set_style(style);
        }
        spinner.set_message(phase);
        spinner.enable_steady_tick(Duration::from_millis(120));
        Self { spinner: Some(spinner) }
    }

    /// Says what is being done now.
    pub(crate) fn phase(&self, phase: String) {
        if let Some(spinner) = &self.spinner {
            spinner.set_message(phase);
        }
    }

    /// Says a line on stderr without tearing the spinner.
    pub(crate) fn say(&self, line: &str) {
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| console::say(line)),
            None => console::say(line),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}
