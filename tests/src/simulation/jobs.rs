//! What the writers of a simulation have to do, decided by its seed.

use std::io::Cursor;
use std::time::Duration;

use deltaonce::{Format, Identity, Load, Scope, Source, TableSpec};

use super::content::{Row, Write, date};
use super::dice::Dice;

/// One load that somebody has scheduled.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) name: String,
    pub(super) write: Write,
    pub(super) rows: Vec<Row>,
    pub(super) identity: Option<Identity>,
    pub(super) load: Load,
}

impl Job {
    /// Its rows, to be read once.
    #[must_use]
    pub(super) fn source(&self) -> Source {
        let rows = self.rows.iter().map(|row| format!("{},{},{},{}\n", row.id, row.date(), row.value, row.version));
        Source::reader(Cursor::new(format!("id,day,value,version\n{}", rows.collect::<String>())), Format::Csv)
    }

    /// Whether it may be run again although it may have landed.
    #[must_use]
    pub(super) fn is_repeatable(&self) -> bool {
        self.identity.is_some() || self.write != Write::Append
    }
}

/// All that a seed decides before anything runs.
#[derive(Debug)]
pub(super) struct Setup {
    /// Fills the table before the writers start; none: they make it.
    pub(super) base: Option<Job>,
    /// By writer, in the order in which it does them.
    pub(super) writers: Vec<Vec<Job>>,
}

/// Days that rows have.
const DAYS: [u64; 3] = [5, 6, 7];

struct Maker<'a> {
    dice: &'a Dice,
    partitioned: bool,
    spec: TableSpec,
}

impl Setup {
    /// The setup of this seed.
    #[must_use]
    pub(super) fn of(dice: &Dice) -> Self {
        let partitioned = dice.below("partitioned", 2) == 1;
        let checkpoints = dice.pick("checkpoints", &["2", "3", "5", "100"]).to_string();
        let mut properties = vec![("delta.checkpointInterval".to_owned(), checkpoints)];
        if dice.below("masks rows", 2) == 1 {
            properties.push(("delta.enableDeletionVectors".to_owned(), "true".to_owned()));
        }
        let spec = TableSpec {
            schema: Some("id bigint not null, day date, value string, version bigint".to_owned()),
            partition_by: partitioned.then(|| "day".to_owned()).into_iter().collect(),
            properties,
        };
        let maker = Maker { dice, partitioned, spec };
        let base = (dice.below("base", 10) > 1).then(|| {
            let rows = (1..=6).map(|id| maker.row("base", id, 0)).collect();
            maker.job("base".to_owned(), Write::Append, rows, None)
        });
        let mut writers: Vec<Vec<Job>> = Vec::new();
        for writer in 0..2 + dice.below("writers", 3) {
            let mut jobs: Vec<Job> = Vec::new();
            for number in 0..1 + dice.below(&format!("jobs of {writer}"), 3) {
                let name = format!("w{writer}.{number}");
                let before =
                    writers.iter().flatten().chain(&jobs).filter(|job| job.is_repeatable()).collect::<Vec<_>>();
                // A job that another one does too, or does again.
                let job = if !before.is_empty() && dice.below(&format!("{name} is a twin"), 3) == 0 {
                    Job { name: name.clone(), ..(*dice.pick(&format!("twin of {name}"), &before)).clone() }
                } else {
                    maker.make(name.clone(), writer, number)
                };
                // Always, but where a run is made short.
                if dice.happens(&format!("{name} is scheduled"), 1_000) {
                    jobs.push(job);
                }
            }
            writers.push(jobs);
        }
        Self { base, writers }
    }
}

impl Maker<'_> {
    fn make(&self, name: String, writer: u64, number: u64) -> Job {
        let below = |what: &str, bound| self.dice.below(&format!("{name} {what}"), bound);
        let count = 1 + below("rows", 4);
        let known = |row: u64| 1 + below(&format!("id of row {row}"), 9);
        let fresh = |row: u64| 100 + writer * 100 + number * 10 + row;
        let kinds = if self.partitioned { 9 } else { 8 };
        let (write, ids): (Write, Vec<u64>) = match below("kind", kinds) {
            0 | 1 if below("clashes", 8) == 0 => (Write::Append, (0..count).map(known).collect()),
            0 | 1 => (Write::Append, (0..count).map(fresh).collect()),
            2 => (Write::MergeNewest, (0..count).map(known).collect()),
            3 => (Write::Merge, (0..count).map(known).collect()),
            4 => (Write::Insert, (0..count).map(known).collect()),
            5 => (Write::ReplaceDay(*self.dice.pick(&format!("{name} day"), &DAYS)), (0..count).map(known).collect()),
            6 => {
                let from = 1 + below("from", 8);
                let to = from + 1 + below("width", 4);
                (Write::ReplaceIds { from, to }, (from..to).collect())
            }
            7 if below("takes all", 2) == 0 => (Write::ReplaceAll, (0..count).map(fresh).collect()),
            7 => (Write::MergeNewest, (0..count).map(|row| if row == 0 { fresh(row) } else { known(row) }).collect()),
            _ => (Write::ReplacePartitions, (0..count).map(fresh).collect()),
        };
        let mut rows: Vec<Row> = (0..).zip(ids).map(|(place, id)| self.row(&name, id, place)).collect();
        if let Write::ReplaceDay(day) = write {
            rows.iter_mut().for_each(|row| row.day = day);
        }
        // Of a key there is one newest row, and where there is no order, one row.
        let has_order = write == Write::MergeNewest;
        if has_order || matches!(write, Write::Merge | Write::Insert) {
            rows.sort_by_key(|row| (row.id, row.version));
            rows.dedup_by_key(|row| (row.id, if has_order { row.version } else { 0 }));
        }
        let identity = match below("identity", 3) {
            // Several jobs of a writer are versions of one app id, so that an older one may come late.
            0 => Some(Identity { app_id: format!("app{writer}"), version: i64::try_from(number).expect("small") }),
            1 => Some(Identity { app_id: name.clone(), version: 0 }),
            _ => None,
        };
        self.job(name, write, rows, identity)
    }

    fn row(&self, job: &str, id: u64, place: u64) -> Row {
        let name = format!("{job} row {place} {id}");
        // With an order, what is as new must be the same, or nobody could say which of two tables is right.
        let version = 1 + self.dice.below(&format!("{name} version"), 9);
        let day = *self.dice.pick(&format!("{name} day"), &DAYS);
        Row { id, day, value: format!("{job}-{place}").replace('.', "-"), version }
    }

    fn job(&self, name: String, write: Write, rows: Vec<Row>, identity: Option<Identity>) -> Job {
        let load = match &write {
            Write::Append => Load::append(),
            Write::ReplaceAll => Load::replace(Scope::All),
            Write::ReplacePartitions => Load::replace(Scope::Partitions),
            Write::ReplaceDay(day) => Load::replace(Scope::Where(format!("day = '{}'", date(*day)))),
            Write::ReplaceIds { from, to } => {
                Load::replace(Scope::Interval { column: "id".to_owned(), start: from.to_string(), end: to.to_string() })
            }
            Write::MergeNewest => Load::merge(["id"]).newest_by("version desc").expect("the order is one"),
            Write::Merge => Load::merge(["id"]),
            Write::Insert => Load::insert(["id"]),
            Write::Delete(_) | Write::Nothing => unreachable!("only other tools do this"),
        };
        let seconds = *self.dice.pick(&format!("{name} deadline"), &[2, 20, 120]);
        let load = Load { identities: identity.iter().cloned().collect(), ..load }
            .create(self.spec.clone())
            .deadline(Duration::from_secs(seconds));
        Job { name, write, rows, identity, load }
    }
}
