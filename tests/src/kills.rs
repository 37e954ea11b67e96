//! Loads of every contract that are killed at any call to their storage, or lose the power there, and are run again.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use object_store::local::LocalFileSystem;

use crate::cli::{Run, Sandbox};
use crate::crash::{Disk, Image};
use crate::disk_calls::{Call, Interference, watch};
use crate::ledger::Ledger;
use crate::proxy::{Arm, Fault, Proxy};
use crate::s3::{S3, block_on, seaweedfs};
use crate::table::Table;

/// A load, the table that it is meant for, and what running it once more says. `{}` is the table.
#[derive(Debug)]
pub struct Case {
    /// Its contract, and what is special about it.
    pub name: &'static str,
    setup: &'static [&'static str],
    load: &'static str,
    again: &'static str,
}

/// The identity that half of the loads carry.
const APP: &str = "orders";

const INPUTS: [(&str, &str); 6] = [
    ("base.csv", "1,2026-10-05,one,1\n2,2026-10-05,two,5\n3,2026-10-06,three,1\n"),
    ("more.csv", "4,2026-10-07,four,1\n5,2026-10-07,five,1\n"),
    ("added.csv", "8,2026-10-06,eight,1\n9,2026-10-07,nine,1\n"),
    ("day.csv", "1,2026-10-05,uno,2\n8,2026-10-05,ocho,1\n"),
    ("days.csv", "1,2026-10-05,uno,2\n8,2026-10-08,ocho,1\n"),
    ("keys.csv", "1,2026-10-05,uno,2\n2,2026-10-05,dos,4\n8,2026-10-06,ocho,2\n"),
];

/// One for each contract, on a table where it has something to do.
pub const CASES: [Case; 8] = [
    Case {
        name: "append with an identity, due for a checkpoint",
        setup: &[
            "create {} --schema schema.sql --property delta.checkpointInterval=2",
            "append {} base.csv --write-id base",
        ],
        load: "append {} added.csv --txn orders=7",
        again: "skipped",
    },
    Case {
        name: "replace where, of files that hold other rows too",
        setup: &["append {} base.csv --schema schema.sql --write-id base", "append {} more.csv --write-id more"],
        load: "replace {} day.csv --where \"day = '2026-10-05'\"",
        again: "unchanged",
    },
    Case {
        name: "replace partitions",
        setup: &["append {} base.csv --schema schema.sql --partition-by day --write-id base"],
        load: "replace {} days.csv --partitions --txn orders=7",
        again: "skipped",
    },
    Case {
        name: "merge, from a checkpoint and due for one",
        setup: &[
            "create {} --schema schema.sql --property delta.checkpointInterval=1",
            "append {} base.csv --write-id base",
        ],
        load: "merge {} keys.csv --key id --newest-by 'version desc'",
        again: "unchanged",
    },
    Case {
        name: "insert",
        setup: &["append {} base.csv --schema schema.sql --write-id base"],
        load: "insert {} keys.csv --key id",
        again: "unchanged",
    },
    Case { name: "create", setup: &[], load: "create {} --schema schema.sql --partition-by day", again: "unchanged" },
    Case {
        name: "append that makes the table",
        setup: &[],
        load: "append {} added.csv --schema schema.sql --partition-by day --txn orders=7",
        again: "skipped",
    },
    Case {
        name: "set",
        setup: &["append {} base.csv --schema schema.sql --write-id base"],
        load: "set {} owner=me delta.enableDeletionVectors=true",
        again: "unchanged",
    },
];

/// Where the tables lie.
#[derive(Debug, Clone, Copy)]
pub enum Medium {
    /// A folder. A call is one that changes or syncs a file or a folder.
    Disk,
    /// A real server. A call is a request, which passes a proxy.
    S3(&'static S3),
}

impl Medium {
    /// Both.
    #[must_use]
    pub fn all() -> [Self; 2] {
        [Self::Disk, Self::S3(seaweedfs())]
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Disk => "local disk",
            Self::S3(_) => "S3",
        }
    }
}

/// When a process is killed: the numbers of its calls count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// As the call begins; it is not carried out.
    Before(usize),
    /// When it was carried out; the process learns nothing of it.
    After(usize),
}

/// What a kill left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The table as it was.
    Nothing,
    /// The load, whole.
    TheLoad,
    /// The process had ended before: it made fewer calls than the run that was counted.
    NotKilled,
}

/// A case on its table, with what one undisturbed run does.
#[derive(Debug)]
pub struct Bench {
    case: &'static Case,
    medium: Medium,
    sandbox: Sandbox,
    base: String,
    before: Ledger,
    once: Ledger,
    calls: usize,
}

impl Bench {
    /// Makes the table, and runs the load once on a copy.
    ///
    /// # Panics
    /// Where that goes wrong already.
    #[must_use]
    pub fn new(case: &'static Case, medium: Medium) -> Self {
        let sandbox = match medium {
            Medium::Disk => Sandbox::default(),
            Medium::S3(server) => Sandbox::on(server),
        };
        sandbox.write("schema.sql", "id bigint not null, day date, value string, version bigint");
        for (name, rows) in INPUTS {
            sandbox.write(name, format!("id,day,value,version\n{rows}"));
        }
        let mut bench = Self {
            case,
            medium,
            sandbox,
            base: String::new(),
            before: Ledger::default(),
            once: Ledger::default(),
            calls: 0,
        };
        bench.base = bench.place("base");
        for line in case.setup {
            let _ = bench.sandbox.run(&line.replace("{}", &bench.base)).ended(0);
        }
        bench.before = bench.ledger(&bench.base);
        let clean = bench.copy("clean");
        let (run, calls) = bench.counted(&clean);
        assert_eq!(run.ended(0).outcome(), "committed", "{}", case.name);
        (bench.once, bench.calls) = (bench.ledger(&clean), calls);
        assert_eq!(bench.once.entries.len(), bench.before.entries.len() + 1, "{}", case.name);
        assert!(bench.once.strays().is_empty(), "{:?}", bench.once.strays());
        bench
    }

    /// How many calls it makes to its storage where nothing disturbs it.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// Every moment at which it can be killed.
    #[must_use]
    pub fn moments(&self) -> Vec<Moment> {
        let calls = 1..=self.calls;
        match self.medium {
            // A call that has ended and the next that has not begun are one moment on a disk, save at the end.
            Medium::Disk => calls.map(Moment::Before).chain([Moment::After(self.calls)]).collect(),
            Medium::S3(_) => calls.flat_map(|n| [Moment::Before(n), Moment::After(n)]).collect(),
        }
    }

    /// Kills the load, looks at the table, and runs the load again, undisturbed.
    ///
    /// # Panics
    /// Where part of it is visible after the kill, or the second run ends other than one undisturbed run does.
    #[must_use]
    pub fn kill(&self, moment: Moment) -> Left {
        let how = format!("{} on {}, killed {moment:?} of {}", self.case.name, self.medium.name(), self.calls);
        let table = self.copy(&format!("{moment:?}").replace(['(', ')'], "-"));
        let run = match self.medium {
            Medium::Disk => {
                let interference = match moment {
                    Moment::Before(number) => Interference::KillBefore(number),
                    Moment::After(number) => Interference::KillAfter(number),
                };
                watch(&self.sandbox, folder(&table), &self.line(&table), interference).0
            }
            Medium::S3(server) => self.kill_at_request(server, &table, moment),
        };
        let landed = self.check(&table, run.status.is_some(), &how);
        self.run_again(&table, landed, &how);
        self.remove(&table);
        match run.status {
            Some(_) => Left::NotKilled,
            None if landed => Left::TheLoad,
            None => Left::Nothing,
        }
    }

    fn kill_at_request(&self, server: &S3, table: &str, moment: Moment) -> Run {
        let proxy = Proxy::before(server.address());
        let (tell, told) = mpsc::channel();
        let arm = match moment {
            Moment::Before(number) => Arm::nth(number, Fault::Lost),
            Moment::After(number) => Arm::nth(number, Fault::Drop),
        };
        proxy.arm(arm.meanwhile(move || {
            if let Ok(process) = told.recv() {
                kill(process);
            }
        }));
        let line = self.through(&proxy, table);
        let child = self.sandbox.start(&line);
        tell.send(child.id()).expect("the proxy waits for it");
        self.sandbox.finish(&line, child)
    }

    /// Every state in which a disk may be left if the power goes at any point of the load, each with whether the load had
    /// been acknowledged by then.
    ///
    /// # Panics
    /// Where the bench is not one on disk.
    #[must_use]
    pub fn images(&self) -> Vec<(Image, bool)> {
        let table = self.copy("recorded");
        let mut disk = Disk::holding(&self.sandbox.path(folder(&table)));
        let (run, calls) = watch(&self.sandbox, folder(&table), &self.line(&table), Interference::None);
        assert_eq!(run.ended(0).outcome(), "committed", "{}", self.case.name);
        let mut images = std::collections::BTreeMap::new();
        let mut acknowledged = false;
        for call in &calls {
            for image in disk.images() {
                images.insert(image, acknowledged);
            }
            disk.carry_out(call);
            acknowledged |= *call == Call::Answer;
        }
        for image in disk.images() {
            images.insert(image, acknowledged);
        }
        assert!(acknowledged, "{}: the load said how it ended", self.case.name);
        images.into_iter().collect()
    }

    /// Opens the table of such a state, and runs the load on it, undisturbed.
    ///
    /// # Panics
    /// Where part of the load is visible, an acknowledged one is not there, or the second run ends other than one
    /// undisturbed run does.
    pub fn wake_up_on(&self, number: usize, (image, acknowledged): &(Image, bool)) {
        let how = format!("{}, image {number}, acknowledged: {acknowledged}", self.case.name);
        let table = format!("image-{number}/t");
        image.write_to(&self.sandbox.path(folder(&table)));
        let landed = self.check(&table, *acknowledged, &how);
        self.run_again(&table, landed, &how);
        self.remove(&table);
    }

    /// Kills the load before one of its calls, runs it again to its end, and takes the power away: how many different
    /// states of the disk there may be then.
    ///
    /// # Panics
    /// Where the load is not in each.
    #[must_use]
    pub fn kill_run_again_and_crash(&self, number: usize) -> usize {
        let table = self.copy("twice");
        let watched = self.sandbox.path(folder(&table));
        let mut disk = Disk::holding(&watched);
        let line = self.line(&table);
        let (_, calls) = watch(&self.sandbox, folder(&table), &line, Interference::KillBefore(number));
        calls.iter().for_each(|call| disk.carry_out(call));
        disk.catch_up(&watched);
        let (run, calls) = watch(&self.sandbox, folder(&table), &line, Interference::None);
        let outcome = run.ended(0).outcome();
        calls.iter().for_each(|call| disk.carry_out(call));
        self.remove(&table);
        let images = disk.images();
        for (i, image) in images.iter().enumerate() {
            let how = format!("{}, killed before call {number}, then {outcome}, then a crash", self.case.name);
            let table = format!("crashed-{number}-{i}/t");
            image.write_to(&self.sandbox.path(folder(&table)));
            self.check(&table, true, &how);
            self.remove(&table);
        }
        images.len()
    }

    /// Loads while the folder of the log cannot be synced, then looks whether an applied load is told as one; and loads
    /// again when it can.
    ///
    /// # Panics
    /// Where a load is acknowledged that a loss of power could take away.
    pub fn load_without_a_synced_log(&self) {
        let how = format!("{} while its log cannot be synced", self.case.name);
        let table = self.copy("unsynced");
        for (attempt, status, kind) in [("the first", 4, "unknown"), ("the second", 3, "retryable")] {
            let interference = Interference::NoSync("_delta_log");
            let run = watch(&self.sandbox, folder(&table), &self.line(&table), interference).0.ended(status);
            let error = &run.json()["error"];
            assert_eq!(error["kind"], kind, "{how}, {attempt}: {error}");
            let said = error["message"].as_str().unwrap_or_default();
            assert!(said.contains(&table) && said.contains("loss of power"), "{how}, {attempt}: {said}");
        }
        let landed = self.check(&table, false, &how);
        assert!(landed, "{how}: it is there, though not for sure");
        self.run_again(&table, landed, &how);
    }

    /// Whether the load is in the table, which holds all of it or nothing.
    fn check(&self, table: &str, acknowledged: bool, how: &str) -> bool {
        // Told first, since a table that cannot be read ends the test with other words.
        let now = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.ledger(table))) {
            Ok(now) => now,
            Err(_) => panic!("{how}: the table cannot be read"),
        };
        let landed = now.entries.len() == self.once.entries.len();
        let expected = if landed { &self.once } else { &self.before };
        assert!(landed || !acknowledged, "{how}: the load was acknowledged and is not there");
        assert_eq!(now.rows, expected.rows, "{how}: part of the load is visible");
        assert_eq!(now.entries.len(), expected.entries.len(), "{how}");
        assert_eq!(
            now.entries[..self.before.entries.len()],
            self.before.entries,
            "{how}: the log before it is as it was"
        );
        assert_eq!(now.recording(APP), expected.recording(APP), "{how}");
        self.check_shown(table, &now, how);
        landed
    }

    fn check_shown(&self, table: &str, now: &Ledger, how: &str) {
        let shown = self.sandbox.run(&format!("show {table} --output json --quiet"));
        match now.entries.len().checked_sub(1) {
            None => assert_eq!(shown.status, Some(2), "{how}: there is no table, and it is said so: {shown:?}"),
            Some(version) => {
                let shown = shown.ended(0).json();
                assert_eq!(shown["version"], version, "{how}: {shown}");
                assert_eq!(shown["rows"], now.rows.len(), "{how}: {shown}");
            }
        }
    }

    /// Runs the load undisturbed: then the table is as after one run.
    fn run_again(&self, table: &str, landed: bool, how: &str) {
        let strays = self.ledger(table).strays();
        let run = self.sandbox.run(&self.line(table)).ended(0);
        assert_eq!(run.outcome(), if landed { self.case.again } else { "committed" }, "{how}: the second run");
        let now = self.ledger(table);
        assert_eq!(now.rows, self.once.rows, "{how}: after the second run");
        assert_eq!(now.entries.len(), self.once.entries.len(), "{how}: after the second run");
        assert_eq!(now.recording(APP), self.once.recording(APP), "{how}: after the second run");
        let more: Vec<_> = now.strays().difference(&strays).cloned().collect();
        assert!(more.is_empty(), "{how}: the second run left {more:?}");
    }

    /// Runs the load to its end and counts its calls.
    fn counted(&self, table: &str) -> (Run, usize) {
        match self.medium {
            Medium::Disk => {
                let (run, calls) = watch(&self.sandbox, folder(table), &self.line(table), Interference::None);
                (run, calls.iter().filter(|call| call.is_on_disk()).count())
            }
            Medium::S3(server) => {
                let proxy = Proxy::before(server.address());
                let run = self.sandbox.run(&self.through(&proxy, table));
                (run, proxy.seen().len())
            }
        }
    }

    fn line(&self, table: &str) -> String {
        format!("{} --output json --quiet", self.case.load.replace("{}", table))
    }

    fn through(&self, proxy: &Proxy, table: &str) -> String {
        format!("{} --storage-option endpoint_url=http://{}", self.line(table), proxy.address())
    }

    /// A name for a table in a folder of its own, where there is nothing yet.
    fn place(&self, name: &str) -> String {
        match self.medium {
            Medium::Disk => {
                fs::create_dir_all(self.sandbox.path(name)).expect("a folder for the table");
                format!("{name}/t")
            }
            Medium::S3(server) => server.fresh_url("t"),
        }
    }

    /// A copy of the table as the load finds it.
    fn copy(&self, name: &str) -> String {
        let copy = self.place(name);
        match self.medium {
            Medium::Disk => copy_folder(&self.sandbox.path(&self.base), &self.sandbox.path(&copy)),
            Medium::S3(server) => server.copy_all(&self.base, &copy),
        }
        copy
    }

    fn remove(&self, table: &str) {
        if matches!(self.medium, Medium::Disk) {
            fs::remove_dir_all(self.sandbox.path(folder(table))).expect("the folder can be removed");
        }
    }

    fn ledger(&self, table: &str) -> Ledger {
        match self.medium {
            Medium::Disk => {
                let folder = self.sandbox.path(folder(table));
                let store = LocalFileSystem::new_with_prefix(&folder).expect("the folder is there");
                let mut ledger = block_on(Ledger::read(&store, &"t".into()));
                // Listings hide unfinished files; a look at the folder does not.
                ledger.objects.extend(Table::local(&folder.join("t")).files());
                ledger
            }
            Medium::S3(server) => server.ledger(table),
        }
    }
}

/// The folder that holds a table on disk and nothing else.
fn folder(table: &str) -> &str {
    table.strip_suffix("/t").expect("tables on disk are called t")
}

fn copy_folder(from: &Path, to: &Path) {
    let Ok(entries) = fs::read_dir(from) else { return };
    fs::create_dir_all(to).expect("a folder for the copy");
    for entry in entries {
        let from = entry.expect("an entry can be read").path();
        let to = to.join(from.file_name().expect("an entry has a name"));
        match from.is_dir() {
            true => copy_folder(&from, &to),
            false => drop(fs::copy(&from, &to).expect("a file can be copied")),
        }
    }
}

/// Kills a process by SIGKILL and waits until it does nothing any more.
fn kill(process: u32) {
    // It may have ended by itself, which its status then tells.
    let _ =
        Command::new("kill").args(["-9", &process.to_string()]).stderr(Stdio::null()).status().expect("kill starts");
    let state = Path::new("/proc").join(process.to_string()).join("stat");
    while fs::read_to_string(&state).is_ok_and(|state| !state.contains(") Z")) {
        std::thread::sleep(Duration::from_millis(1));
    }
}
