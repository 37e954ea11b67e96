//! The soak: eight writers, each a loop of real processes, on one table for minutes, beside another tool; then the table is
//! what a plain map says it must be.

mod content;
mod neighbour;
mod report;
mod writer;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::cli::Sandbox;
use crate::s3::S3;
use crate::table::Table;
use content::{COLUMNS, Content, Row};
use report::{Event, Seen};
use writer::{WRITERS, Writer};

pub use report::Report;

/// A table and all that is known of it.
struct Scene {
    sandbox: Sandbox,
    url: String,
    table: Table,
    content: Mutex<Content>,
    /// Rows of which the other tool did not learn whether they landed, a commit each.
    doubtful: Mutex<Vec<Vec<Row>>>,
    seen: Mutex<Seen>,
}

/// Lets all work for a while on a new table, on a server or on local disk, and compares.
///
/// # Panics
/// Where the table cannot be made, or its log or files are not whole in the end.
#[must_use]
pub fn soak(server: Option<&'static S3>, time: Duration) -> Report {
    let scene = Scene::on(server);
    let start = Instant::now();
    thread::scope(|scope| {
        for (number, work) in WRITERS.into_iter().enumerate() {
            let scene = &scene;
            scope.spawn(move || Writer { scene, number, work }.work_until(start + time));
        }
        scope.spawn(|| neighbour::work_until(&scene, start + time));
    });
    let lasted = start.elapsed();
    let ledger = scene.table.ledger();
    scene.compare(&ledger.rows);
    let seen = scene.seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    Report::of(seen, &ledger, lasted)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scene {
    fn on(server: Option<&'static S3>) -> Self {
        let (sandbox, url) = match server {
            Some(server) => (Sandbox::on(server), server.fresh_url("soak")),
            None => (Sandbox::default(), "lake/soak".to_owned()),
        };
        let _ = sandbox.run(&format!("create {url} --schema \"{COLUMNS}\" --partition-by day")).ended(0);
        let (table, content, doubtful, seen) =
            (sandbox.table(&url), Mutex::default(), Mutex::default(), Mutex::default());
        Self { sandbox, url, table, content, doubtful, seen }
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        lock(&self.content)
    }

    fn doubt(&self, rows: Vec<Row>) {
        lock(&self.doubtful).push(rows);
    }

    fn record(&self, event: Event) {
        lock(&self.seen).events.push(event);
    }

    fn loads_ended(&self) -> usize {
        lock(&self.seen).events.len()
    }

    fn complain(&self, complaint: String) {
        lock(&self.seen).complaints.push(complaint);
    }

    /// Notes what the other tool did; whether it went well.
    fn neighbour(&self, what: &str, error: Option<String>) -> bool {
        let mut seen = lock(&self.seen);
        let went_well = error.is_none();
        let counts = if went_well { &mut seen.neighbour } else { &mut seen.neighbour_errors };
        let first = |error: String| error.lines().next().map(|line| format!(": {line}")).unwrap_or_default();
        let name = error.map(first).unwrap_or_default();
        *counts.entry(format!("{what}{name}")).or_default() += 1;
        went_well
    }

    /// Holds the rows that are there against those that must be.
    fn compare(&self, found: &[String]) {
        for rows in lock(&self.doubtful).drain(..) {
            if rows.iter().any(|row| found.binary_search(&row.spelt()).is_ok()) {
                self.content().take(&content::Way::Added, &rows);
            }
        }
        let expected = self.content().rows();
        for row in missing(&expected, found) {
            self.complain(format!("lost: {row}"));
        }
        for row in missing(found, &expected) {
            self.complain(format!("too many: {row}"));
        }
        match self.table.rows_by("duckdb") {
            Ok(rows) if rows.len() == expected.len() => {}
            Ok(rows) => self.complain(format!("DuckDB reads {} rows, not {}", rows.len(), expected.len())),
            Err(error) => self.complain(format!("DuckDB cannot read the table: {error}")),
        }
    }
}

/// What of `these` is not, or not as often, in `those`; both are sorted.
fn missing<'a>(these: &'a [String], those: &[String]) -> Vec<&'a str> {
    let mut those = those.iter().peekable();
    let mut missing = Vec::new();
    for this in these {
        while those.next_if(|that| *that < this).is_some() {}
        if those.next_if(|that| *that == this).is_none() {
            missing.push(this.as_str());
        }
    }
    missing
}
