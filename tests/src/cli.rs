//! The real program, in a folder and an environment of its own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::SystemTime;

use serde_json::Value;
use tempfile::TempDir;

use crate::fixture;
use crate::redact::redact;
use crate::root;
use crate::s3::S3;
use crate::table::Table;

/// A temporary folder in which a test runs the program; the environment is cleared but for what is set here.
#[derive(Debug)]
pub struct Sandbox {
    folder: TempDir,
    environment: BTreeMap<String, String>,
    server: Option<&'static S3>,
}

impl Default for Sandbox {
    fn default() -> Self {
        let folder = TempDir::with_prefix("deltaonce-test-").expect("a temporary folder");
        let environment = [("AWS_EC2_METADATA_DISABLED", "true"), ("TZ", "UTC"), ("LC_ALL", "C.UTF-8")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        Self { folder, environment, server: None }
    }
}

impl Sandbox {
    /// A folder with the files of `fixtures/orders` and `fixtures/events` in it.
    #[must_use]
    pub fn with_fixtures() -> Self {
        let sandbox = Self::default();
        for folder in ["orders", "events"] {
            for file in fs::read_dir(fixture(folder)).expect("fixtures") {
                let file = file.expect("a fixture");
                fs::copy(file.path(), sandbox.path(&file.file_name().to_string_lossy()))
                    .expect("a copy of the fixture");
            }
        }
        sandbox
    }

    /// The same, with the server's address and keys in the environment.
    #[must_use]
    pub fn on(server: &'static S3) -> Self {
        Self { server: Some(server), ..Self::with_fixtures() }.env(server.options())
    }

    /// Sets more of the environment.
    #[must_use]
    pub fn env(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.environment.extend(variables);
        self
    }

    /// A path below the folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file below the folder.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap_or_else(|error| panic!("{name} cannot be written: {error}"));
    }

    /// A table by the name that the commands here use: a folder, or an `s3://` URL.
    #[must_use]
    pub fn table(&self, name: &str) -> Table {
        match self.server {
            Some(server) if name.starts_with("s3://") => Table::on(server, name),
            _ => Table::local(&self.path(name)),
        }
    }

    /// Runs `deltaonce` with the arguments of a line as a shell would split it (quotes, no expansion).
    #[must_use]
    pub fn run(&self, line: &str) -> Run {
        self.finish(line, self.start(line))
    }

    /// Runs `deltaonce` with a line's arguments and some input.
    #[must_use]
    pub fn run_with_input(&self, line: &str, input: &[u8]) -> Run {
        let mut child = self.start_with_input(line);
        // The program may end before it has read all; its own words then say why.
        drop(std::io::Write::write_all(&mut child.stdin.take().expect("stdin is piped"), input));
        self.finish(line, child)
    }

    /// Starts `deltaonce` without waiting for it.
    #[must_use]
    pub fn start(&self, line: &str) -> Child {
        self.start_with(line, Stdio::null())
    }

    /// Runs `deltaonce` by a shell script that does something before or after; in it, `"$@"` is the command.
    ///
    /// What the script mounts is seen by nothing else, and is gone when it ends.
    ///
    /// # Panics
    /// Where the machine does not let the script mount anything.
    #[must_use]
    pub fn run_where(&self, script: &str, line: &str) -> Run {
        let apart = ["unshare", "--map-root-user", "--mount", "sh", "-ec"];
        let mut possible = Command::new(apart[0]);
        possible.args(&apart[1..]).arg("mount -t tmpfs none /tmp").stdin(Stdio::null());
        let possible = possible.output().expect("unshare starts");
        let said = String::from_utf8_lossy(&possible.stderr).into_owned();
        assert!(possible.status.success(), "this machine lets no test mount a file system (unshare): {said}");
        let arguments = apart.iter().chain(&[script, "sh"]).map(OsString::from).collect::<Vec<_>>();
        self.finish(line, self.start_under(&arguments, line))
    }

    /// Starts a program that is to run `deltaonce`, whose path and arguments come after its own.
    #[must_use]
    pub fn start_under(&self, program_and_arguments: &[OsString], line: &str) -> Child {
        let (watcher, arguments) = program_and_arguments.split_first().expect("a program");
        let mut command = Command::new(watcher);
        command.args(arguments).arg(program());
        self.spawn(&mut command, line, Stdio::null())
    }

    /// Starts `deltaonce` with a stdin that the test writes to, and that ends when the test drops it.
    #[must_use]
    pub fn start_with_input(&self, line: &str) -> Child {
        self.start_with(line, Stdio::piped())
    }

    /// Waits for what [`Sandbox::start`] started.
    #[must_use]
    pub fn finish(&self, line: &str, child: Child) -> Run {
        let output = child.wait_with_output().expect("the program ends");
        Run::new(line, &output, self.folder.path())
    }

    /// Runs all lines at the same time, each in a process of its own, and gives their results in the same order.
    #[must_use]
    pub fn race(&self, lines: &[String]) -> Vec<Run> {
        let children: Vec<Child> = lines.iter().map(|line| self.start(line)).collect();
        lines.iter().zip(children).map(|(line, child)| self.finish(line, child)).collect()
    }

    fn start_with(&self, line: &str, input: Stdio) -> Child {
        self.spawn(&mut Command::new(program()), line, input)
    }

    fn spawn(&self, command: &mut Command, line: &str, input: Stdio) -> Child {
        command
            .args(split(line))
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .envs(&self.environment)
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", command.get_program().display()))
    }
}

/// How one run of the program ended.
#[derive(Debug)]
pub struct Run {
    line: String,
    /// The exit code; none when a signal ended it.
    pub status: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it said beside that.
    pub stderr: String,
}

impl Run {
    fn new(line: &str, output: &Output, folder: &Path) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&folder.display().to_string(), "[folder]");
        Self {
            line: line.to_owned(),
            status: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// Stdout, stderr and status with what differs from run to run taken out, for snapshots.
    #[must_use]
    pub fn report(&self) -> String {
        let status = self.status.map_or("a signal".to_owned(), |code| code.to_string());
        let mut report = redact(&self.stdout);
        if !self.stderr.is_empty() {
            report.push_str("--- stderr\n");
            report.push_str(&redact(&self.stderr));
        }
        report.push_str(&format!("--- status {status}"));
        report
    }

    /// The run, given that it ended with a code.
    ///
    /// # Panics
    /// When it ended otherwise, with all that it said.
    #[must_use]
    pub fn ended(self, code: i32) -> Self {
        let Self { line, status, stdout, stderr } = &self;
        assert_eq!(*status, Some(code), "deltaonce {line}\n--- stdout\n{stdout}--- stderr\n{stderr}");
        self
    }

    /// The one JSON document on stdout.
    ///
    /// # Panics
    /// When stdout is something else.
    #[must_use]
    pub fn json(&self) -> Value {
        let Self { line, stdout, stderr, .. } = self;
        serde_json::from_str(stdout).unwrap_or_else(|error| {
            panic!(
                "deltaonce {line}\ndid not print one JSON document: {error}\n--- stdout\n{stdout}--- stderr\n{stderr}"
            )
        })
    }

    /// The `outcome` of a run with `--output json`.
    ///
    /// # Panics
    /// When it printed no receipt.
    #[must_use]
    pub fn outcome(&self) -> String {
        self.json()["outcome"].as_str().unwrap_or_else(|| panic!("no outcome in {}", self.stdout)).to_owned()
    }
}

/// The program as cargo built it beside the running one, or what `DELTAONCE_BIN` names.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        if let Some(given) = std::env::var_os("DELTAONCE_BIN") {
            return given.into();
        }
        let own = std::env::current_exe().expect("a program knows where it is");
        let folder = own.parent().expect("a program lies in a folder");
        // Test binaries lie in target/PROFILE/deps, others in target/PROFILE.
        let profile = if folder.ends_with("deps") { folder.parent().expect("deps lies in a folder") } else { folder };
        let program = profile.join(format!("deltaonce{}", std::env::consts::EXE_SUFFIX));
        let built = modified(&program).unwrap_or_else(|| {
            panic!("{} is not there: run scripts/test, or first `cargo build --workspace --bins`", program.display())
        });
        let newest = newest_source(&root().join("crates"));
        assert!(
            built >= newest,
            "{} is older than its source: run `cargo build --workspace --bins`",
            program.display()
        );
        program
    })
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|metadata| metadata.modified()).ok()
}

fn newest_source(folder: &Path) -> SystemTime {
    let entries = fs::read_dir(folder).expect("the crates' folders can be read");
    let times = entries.map(|entry| entry.expect("a folder's entry can be read").path()).map(|path| {
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        match path.is_dir() {
            true => newest_source(&path),
            false if is_source => modified(&path).unwrap_or(SystemTime::UNIX_EPOCH),
            false => SystemTime::UNIX_EPOCH,
        }
    });
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Splits a command line at blanks; single and double quotes keep them, and nothing else is special.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    assert!(quote.is_none(), "a quote is left open in: {line}");
    words.extend(word);
    words
}
