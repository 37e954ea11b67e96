//! Other software that reads and writes Delta tables: a Python process that answers requests (`tests/peers/peer.py`).

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde_json::Value;

use crate::process::output_of;
use crate::root;

/// The virtual environment of the peers, made on first use.
fn environment() -> &'static Path {
    static ENVIRONMENT: OnceLock<PathBuf> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| PathBuf::from(output_of(&root().join("scripts/peers"), &[]).trim()))
}

/// A program that the peers' environment holds.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    environment().join("bin").join(name)
}

struct Peer {
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Kept so that the process is not forgotten; it ends when `requests` closes.
    _child: Child,
}

impl Peer {
    fn start() -> Self {
        let mut child = Command::new(program("python"))
            .arg(root().join("tests/peers/peer.py"))
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python starts");
        let requests = child.stdin.take().expect("stdin is piped");
        let answers = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Self { requests, answers, _child: child }
    }

    fn ask(&mut self, request: &Value) -> std::io::Result<String> {
        writeln!(self.requests, "{request}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        Ok(answer)
    }
}

/// Asks the peer to do something; what it cannot do comes back as its own error text.
///
/// # Panics
/// When the process is gone.
pub fn ask(request: &Value) -> Result<Value, String> {
    static PEER: OnceLock<Mutex<Peer>> = OnceLock::new();
    let mut peer = PEER.get_or_init(|| Mutex::new(Peer::start())).lock().unwrap_or_else(PoisonError::into_inner);
    let line = peer.ask(request).unwrap_or_else(|error| panic!("the peer process is gone: {error}"));
    let mut answer: Value =
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("the peer answered '{line}': {error}"));
    match answer.get("error").and_then(Value::as_str) {
        Some(error) => Err(error.to_owned()),
        None => Ok(answer["ok"].take()),
    }
}
