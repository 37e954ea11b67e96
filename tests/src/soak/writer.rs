//! The eight writers, each a loop of processes: what their loads bring, and what they do about a load that did not end well.

use std::thread;
use std::time::{Duration, Instant};

use super::Scene;
use super::content::{Row, Way, csv};
use super::report::Event;

/// Contracts, by what they contend for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    /// Appends with a sequence identity.
    Append,
    /// Merges into keys of its own and keys that another writer merges into.
    Merge,
    /// Inserts keys of its own and keys that another writer inserts at the same time.
    Insert,
    /// Replaces an interval of ids, in a day that another tool appends to and compacts.
    ReplaceInterval,
    /// Replaces a partition.
    ReplacePartition,
}

/// Who does what.
pub(super) const WRITERS: [Work; 8] = [
    Work::Append,
    Work::Append,
    Work::Merge,
    Work::Merge,
    Work::Insert,
    Work::Insert,
    Work::ReplaceInterval,
    Work::ReplacePartition,
];

/// The day that appended rows lie in, of the writers and of the other tool.
pub(super) const APPENDED: &str = "2026-10-01";
const MERGED: &str = "2026-10-02";
const INSERTED: &str = "2026-10-03";
/// The day whose interval is replaced while the other tool appends beside it.
pub(super) const SHARED: &str = "2026-10-04";
const REPLACED: &str = "2026-10-05";

/// All days, a partition each.
pub(super) const DAYS: [&str; 5] = [APPENDED, MERGED, INSERTED, SHARED, REPLACED];

const MERGED_BY_ALL: i64 = 1_000_000;
const INSERTED_BY_ALL: i64 = 2_000_000;

/// The ids that writer `number` alone writes.
fn own(number: usize) -> std::ops::Range<i64> {
    let start = (number as i64 + 1) * 10_000_000;
    start..start + 10_000_000
}

/// A load to come.
struct Load {
    /// The command line.
    line: String,
    way: Way,
    rows: Vec<Row>,
}

/// One writer.
pub(super) struct Writer<'a> {
    pub(super) scene: &'a Scene,
    pub(super) number: usize,
    pub(super) work: Work,
}

/// Between two loads of a writer, so that others come to their turn too.
const PAUSE: Duration = Duration::from_millis(250);

/// So often a load that may succeed later is run again before the writer gives up.
const TRIES: u32 = 20;

impl Writer<'_> {
    /// Loads until `end`; every fifth load is run again at once, which must change nothing.
    pub(super) fn work_until(&self, end: Instant) {
        let mut round = 0;
        while Instant::now() < end {
            let load = self.load(round);
            self.scene.sandbox.write(&self.file(), csv(&load.rows));
            if !self.run_to_the_end(&load, &["committed", "skipped", "unchanged"]) {
                return;
            }
            self.scene.content().take(&load.way, &load.rows);
            if round % 5 == 4 && !self.run_to_the_end(&load, &["skipped", "unchanged"]) {
                return;
            }
            round += 1;
            thread::sleep(PAUSE);
        }
    }

    /// Runs a load until it ends well, as whoever starts loads would; whether it ended as it may.
    fn run_to_the_end(&self, load: &Load, may_end: &[&str]) -> bool {
        for _ in 0..TRIES {
            let start = Instant::now();
            let run = self.scene.sandbox.run(&load.line);
            let event = Event::of(self.work, &run, start.elapsed());
            let (outcome, may_try_again) = (event.outcome.clone(), event.may_try_again);
            self.scene.record(event);
            if may_end.contains(&outcome.as_str()) {
                return true;
            }
            if !may_try_again {
                self.scene.complain(format!("{} ended {outcome}: {} {}", load.line, run.stdout, run.stderr));
                return false;
            }
        }
        self.scene.complain(format!("{} did not end well in {TRIES} runs", load.line));
        false
    }

    fn file(&self) -> String {
        format!("writer-{}.csv", self.number)
    }

    fn load(&self, round: i64) -> Load {
        let (table, file, own) = (&self.scene.url, self.file(), own(self.number));
        let row = |id, day, seq| Row { id, day, seq, status: format!("writer-{}", self.number) };
        let identity = format!("--txn writer-{}={round}", self.number);
        // Every other load of those that need none.
        let sometimes = if round % 2 == 0 { identity.as_str() } else { "" };
        let (line, way, rows) = match self.work {
            Work::Append => {
                let rows = (0..10).map(|i| row(own.start + round * 10 + i, APPENDED, round));
                (format!("append {table} {file} {identity}"), Way::Added, rows.collect())
            }
            Work::Merge => {
                let seq = round * WRITERS.len() as i64 + self.number as i64;
                let ours = (0..20).map(|i| row(own.start + (round * 13 + i) % 300, MERGED, seq));
                let shared = (0..10).map(|i| row(MERGED_BY_ALL + (round * 3 + i) % 40, MERGED, seq));
                let line = format!("merge {table} {file} --key id --newest-by seq {sometimes}");
                (line, Way::Newest, ours.chain(shared).collect())
            }
            Work::Insert => {
                let ours = (0..10).map(|i| row(own.start + round * 10 + i, INSERTED, round));
                let now = self.scene.loads_ended() as i64;
                let shared = (0..8).map(|i| INSERTED_BY_ALL + now + i);
                let shared = shared.map(|id| Row { id, day: INSERTED, seq: 0, status: "whoever".to_owned() });
                let line = format!("insert {table} {file} --key id {sometimes}");
                (line, Way::Inserted, ours.chain(shared).collect())
            }
            Work::ReplaceInterval => {
                let rows = (0..10 + round % 7).map(|i| row(own.start + i, SHARED, round)).collect();
                let line = format!("replace {table} {file} --interval id={}/{} {sometimes}", own.start, own.end);
                (line, Way::Instead(own), rows)
            }
            Work::ReplacePartition => {
                let rows = (0..15 + round % 5).map(|i| row(own.start + i, REPLACED, round)).collect();
                (format!("replace {table} {file} --partitions {sometimes}"), Way::Instead(own), rows)
            }
        };
        Load { line: format!("{line} --output json --quiet"), way, rows }
    }
}
