//! Other software that reads and writes Delta tables: Python processes that answer requests (`tests/peers/peer.py`,
//! `tests/peers/spark_peer.py`).

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde_json::Value;

use crate::process::output_of;
use crate::root;

/// A virtual environment of peers, made on first use.
fn environment(kind: &[&str]) -> PathBuf {
    PathBuf::from(output_of(&root().join("scripts/peers"), kind).trim())
}

/// A program that the peers' environment holds.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    static ENVIRONMENT: OnceLock<PathBuf> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| environment(&[])).join("bin").join(name)
}

struct Peer {
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Kept so that the process is not forgotten; it ends when `requests` closes.
    _child: Child,
}

impl Peer {
    /// Starts a script of `tests/peers`.
    fn start(python: &Path, script: &str, argument: Option<&Path>) -> Self {
        let mut child = Command::new(python)
            .arg(root().join("tests/peers").join(script))
            .args(argument)
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

    fn ask(&mut self, request: &Value) -> Result<Value, String> {
        let mut exchange = || {
            writeln!(self.requests, "{request}")?;
            let mut line = String::new();
            self.answers.read_line(&mut line)?;
            std::io::Result::Ok(line)
        };
        let line = exchange().unwrap_or_else(|error| panic!("the peer process is gone: {error}"));
        let mut answer: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("the peer answered '{line}': {error}"));
        match answer.get("error").and_then(Value::as_str) {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer["ok"].take()),
        }
    }
}

/// Asks Python deltalake or DuckDB to do something; what it cannot do comes back as its own error text.
///
/// # Panics
/// When the process is gone.
pub fn ask(request: &Value) -> Result<Value, String> {
    static PEER: OnceLock<Mutex<Peer>> = OnceLock::new();
    let peer = PEER.get_or_init(|| Mutex::new(Peer::start(&program("python"), "peer.py", None)));
    peer.lock().unwrap_or_else(PoisonError::into_inner).ask(request)
}

/// Whether this machine has Java and Maven, which Spark cannot be installed without (`.ci/run` sees to both); says so if not.
#[must_use]
pub fn has_spark() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |name: &str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    let missing = ["java", "mvn"].into_iter().find(|name| !is_there(name));
    missing.iter().for_each(|name| eprintln!("Spark is not asked: {name} is not installed"));
    missing.is_none()
}

/// Asks Spark to do something; what it cannot do comes back as its own error text. None where [there is none](has_spark).
///
/// # Panics
/// When the process is gone.
pub fn ask_spark(request: &Value) -> Option<Result<Value, String>> {
    static PEER: OnceLock<Option<Mutex<Peer>>> = OnceLock::new();
    let start = || {
        let environment = environment(&["spark"]);
        let (python, jars) = (environment.join("bin/python"), environment.join("jars"));
        Mutex::new(Peer::start(&python, "spark_peer.py", Some(&jars)))
    };
    let peer = PEER.get_or_init(|| has_spark().then(start)).as_ref()?;
    Some(peer.lock().unwrap_or_else(PoisonError::into_inner).ask(request))
}
