//! The calls by which the real program changes and syncs files, in their order (`tests/peers/disk_calls.py`).

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use crate::cli::{Run, Sandbox};
use crate::{peers, root};

/// A call that ended. Paths are relative to the folder that is watched.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "call", rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names are those of the system's calls")]
pub enum Call {
    Create {
        path: PathBuf,
    },
    Truncate {
        path: PathBuf,
    },
    Write {
        path: PathBuf,
        at: usize,
        /// As Latin-1 text.
        bytes: String,
    },
    Sync {
        path: PathBuf,
    },
    Link {
        path: PathBuf,
        to: PathBuf,
    },
    Rename {
        path: PathBuf,
        to: PathBuf,
    },
    Remove {
        path: PathBuf,
    },
    Mkdir {
        path: PathBuf,
    },
    /// The program wrote its answer to stdout.
    Answer,
}

impl Call {
    /// Whether it changes or syncs a file or folder: the answer does not.
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        *self != Self::Answer
    }
}

/// What is done to the program on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interference {
    /// Nothing.
    None,
    /// SIGKILL when the call of this number, counted from 1 and without answers, begins; it is not carried out.
    KillBefore(usize),
    /// SIGKILL when the call of this number has ended.
    KillAfter(usize),
    /// No sync of the file or folder of this name is carried out, and each is answered with `EIO`.
    NoSync(&'static str),
}

/// Runs `deltaonce` with the arguments of a line and gives how it ended, and its calls that succeeded on files below
/// `folder`.
///
/// # Panics
/// Where the machine does not let a process be traced.
#[must_use]
pub fn watch(sandbox: &Sandbox, folder: &str, line: &str, interference: Interference) -> (Run, Vec<Call>) {
    let log = sandbox.path("disk-calls.ndjson");
    let mut watcher: Vec<OsString> =
        vec![peers::program("python").into(), root().join("tests/peers/disk_calls.py").into()];
    watcher.extend([sandbox.path(folder).into(), log.clone().into()]);
    let words = match interference {
        Interference::None => Vec::new(),
        Interference::KillBefore(number) => vec!["--kill".to_owned(), "before".to_owned(), number.to_string()],
        Interference::KillAfter(number) => vec!["--kill".to_owned(), "after".to_owned(), number.to_string()],
        Interference::NoSync(name) => ["--fail", "sync", name, "EIO"].map(str::to_owned).into(),
    };
    watcher.extend(words.into_iter().map(OsString::from));
    watcher.push("--".into());
    let run = sandbox.finish(line, sandbox.start_under(&watcher, line));
    assert_ne!(run.status, Some(125), "{}", run.stderr);
    let text = fs::read_to_string(&log).expect("the watcher wrote its log");
    (run, text.lines().filter_map(succeeded).collect())
}

fn succeeded(line: &str) -> Option<Call> {
    let value: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let is_ok = value["ok"] == true;
    is_ok.then(|| serde_json::from_value(value).unwrap_or_else(|error| panic!("{line}: {error}")))
}
