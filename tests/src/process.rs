//! Servers that never outlive the test run.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Started before the server; ends it, and removes its folder, when its own stdin closes. That happens however the
/// test process ends, so a killed run leaves no server. Signals are ignored so that Ctrl-C cannot stop the watcher first.
const WATCHER: &str = r#"
trap '' INT TERM HUP
cd "$1" || exit 1
shift
"$@" </dev/null >log 2>&1 &
server=$!
cat >/dev/null
kill -9 "$server" 2>/dev/null
wait "$server" 2>/dev/null
rm -rf "$PWD"
"#;

/// A server with a folder of its own; both go when this is dropped or when the process ends.
#[derive(Debug)]
pub struct Server {
    watcher: Child,
    folder: PathBuf,
}

impl Server {
    /// Starts `program` with `arguments` in a new folder that `prepare` fills, and waits until `port` of 127.0.0.1 answers.
    pub fn start(
        program: &Path,
        arguments: &[String],
        environment: &[(&str, &str)],
        port: u16,
        prepare: impl FnOnce(&Path),
    ) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("deltaonce-server-").tempdir().expect("a temporary folder").keep();
        prepare(&folder);
        let watcher = Command::new("sh")
            .args(["-c", WATCHER, "watcher"])
            .arg(&folder)
            .arg(program)
            .args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .spawn()
            .expect("sh starts");
        let server = Self { watcher, folder };
        server.wait_for(port)?;
        Ok(server)
    }

    fn wait_for(&self, port: u16) -> Result<(), String> {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(30) {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        Err(format!("the server did not open port {port} within 30 s; it said:\n{log}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        drop(self.watcher.wait());
    }
}

/// Ports of 127.0.0.1 that were free a moment ago.
#[must_use]
pub fn free_ports<const N: usize>() -> [u16; N] {
    let held: [TcpListener; N] = std::array::from_fn(|_| TcpListener::bind(("127.0.0.1", 0)).expect("a free port"));
    std::array::from_fn(|i| held[i].local_addr().expect("a bound socket has an address").port())
}

/// Runs `program` to its end and gives its stdout.
///
/// # Panics
/// When it does not start or does not succeed, with what it said.
pub fn output_of(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .stdin(File::open("/dev/null").expect("/dev/null"))
        .output()
        .unwrap_or_else(|error| panic!("{} does not start: {error}", program.display()));
    assert!(
        output.status.success(),
        "{} failed ({}):\n{}",
        program.display(),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
