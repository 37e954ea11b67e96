//! Runs one cell: the load under its fault, and the load again without.

use std::time::Duration;

use serde_json::Value;

use super::cell::{Cell, Reach, Rival, TIMEOUT};
use super::orders::{BASE, Orders, write_request};
use super::verdict::Verdict;
use crate::cli::{Run, Sandbox};
use crate::ledger::Ledger;
use crate::proxy::{Arm, Fault, Proxy, Seen};
use crate::s3::S3;
use crate::table::Table;

/// The version that a load takes if no rival is first.
const NEXT: u64 = BASE.len() as u64;

const FIRST: &str = "first";
const AGAIN: &str = "again";

/// How long the program tries in cells whose fault outlives that.
const DEADLINE: Duration = Duration::from_millis(300);

/// The table before the load, made once and copied for each cell.
#[derive(Debug)]
pub struct Base {
    server: &'static S3,
    url: String,
}

impl Base {
    /// Has Python deltalake write it.
    #[must_use]
    pub fn on(server: &'static S3) -> Self {
        let url = server.fresh_url("base");
        let table = Table::on(server, &url);
        for orders in &BASE {
            table.peer("write", write_request(orders, "append"));
        }
        Self { server, url }
    }

    /// Runs one cell on a copy.
    ///
    /// # Panics
    /// Where the table's log or files are not whole, or the program says something else than a receipt.
    #[must_use]
    pub fn run(&self, cell: Cell) -> Verdict {
        let url = self.server.fresh_url("orders");
        self.server.copy_all(&self.url, &url);
        let sandbox = Sandbox::on(self.server);
        sandbox.write("load.csv", cell.contract.csv());
        let mut trial = Trial {
            verdict: Verdict::of(cell),
            cell,
            table: sandbox.table(&url),
            sandbox,
            url,
            orders: Orders::base(),
        };
        let landed = trial.first(self.server);
        if cell.is_repeatable() {
            trial.again(landed);
        }
        trial.check_with_deltalake();
        trial.verdict
    }
}

/// A cell under way.
struct Trial {
    cell: Cell,
    sandbox: Sandbox,
    url: String,
    table: Table,
    /// What the table should hold.
    orders: Orders,
    verdict: Verdict,
}

impl Trial {
    fn line(&self, run_id: &str) -> String {
        let identity = if self.cell.identity { " --txn orders=1" } else { "" };
        format!("{}{identity} --run-id {run_id} --output json --quiet", self.cell.contract.command(&self.url))
    }

    /// Loads under the fault; gives back whether the load is in the log.
    fn first(&mut self, server: &'static S3) -> bool {
        let proxy = Proxy::before(server.address());
        self.arm(&proxy);
        let mut line = self.line(FIRST) + &format!(" --storage-option endpoint_url=http://{}", proxy.address());
        if matches!(self.cell.fault.1, Fault::Delay(_) | Fault::Stall(_)) {
            line += &format!(" --storage-option timeout={}s", TIMEOUT.as_secs());
        }
        if self.cell.reach == Reach::PastDeadline {
            line += &format!(" --commit-timeout {}ms", DEADLINE.as_millis());
        }
        let run = self.sandbox.run(&line);
        proxy.settle();
        let struck = proxy.seen().iter().any(|seen| seen.fault == Some(self.cell.fault.1));
        self.verdict.check(struck, || "the fault never struck".to_owned());
        let is_blind = |seen: &Seen| seen.method == "PUT" && seen.path.contains("_delta_log/0") && !seen.if_none_match;
        let blind = proxy.seen().iter().any(is_blind);
        self.verdict.check(!blind, || "an entry was put without If-None-Match".to_owned());

        let ledger = self.table.ledger();
        let landed = self.take_turns(&ledger);
        self.verdict.compare(&self.orders.rows(), &ledger.rows, FIRST);
        let said = Said::by(&run);
        self.verdict.first = said.to_string();
        let expected = match self.cell.reach {
            Reach::Once => said.outcome == "committed",
            Reach::PastDeadline => said.outcome == "unknown" || said.outcome == "retryable" && !landed,
        };
        self.verdict.check(expected, || format!("the first run ended {said}: {}", run.stdout));
        self.check_honesty(&said, landed, &ledger, FIRST);
        landed
    }

    fn arm(&self, proxy: &Proxy) {
        let (cell, table) = (self.cell, self.table.clone());
        let arm = Arm::commit(NEXT, cell.fault.1).meanwhile(move || cell.rival.work_on(&table));
        match cell.reach {
            Reach::Once => proxy.arm(arm),
            Reach::PastDeadline => {
                proxy.arm(arm.times(usize::MAX));
                let entry = format!("_delta_log/{NEXT:020}.json");
                proxy.arm(Arm::new("GET", entry, Fault::Lost).times(usize::MAX));
            }
        }
    }

    /// Lets the load and the rival work on the expected rows in the order in which the log has them, each once.
    fn take_turns(&mut self, ledger: &Ledger) -> bool {
        let (mut landed, mut worked) = (0, 0);
        for entry in &ledger.entries[BASE.len()..] {
            let ours = run_id(entry).is_some();
            let count = if ours { &mut landed } else { &mut worked };
            *count += 1;
            match (ours, *count) {
                (true, 1) => self.orders.load(self.cell.contract),
                (false, 1) => self.orders.work(self.cell.rival),
                _ => {}
            }
        }
        self.verdict.check(landed <= 1, || format!("{landed} entries hold the load"));
        let idle = self.cell.rival == Rival::None;
        self.verdict.check(idle == (worked == 0), || format!("the rival made {worked} entries"));
        landed > 0
    }

    /// Loads again without the fault.
    fn again(&mut self, landed: bool) {
        let run = self.sandbox.run(&self.line(AGAIN));
        let said = Said::by(&run);
        let before = self.orders.clone();
        let expected = if self.cell.identity && landed {
            "skipped"
        } else {
            self.orders.load(self.cell.contract);
            if self.orders == before && !self.cell.identity { "unchanged" } else { "committed" }
        };
        self.verdict.again = Some(said.to_string());
        self.verdict
            .check(said.outcome == expected, || format!("run again it ended {said}, not {expected}: {}", run.stdout));
        let ledger = self.table.ledger();
        self.verdict.compare(&self.orders.rows(), &ledger.rows, AGAIN);
        let count = ledger.entries.iter().filter(|entry| run_id(entry) == Some(AGAIN)).count();
        self.verdict
            .check(count == usize::from(expected == "committed"), || format!("running again made {count} entries"));
        self.check_honesty(&said, count > 0, &ledger, AGAIN);
    }

    /// No error for a load that landed, no success for one that did not, and the exit code that goes with the words.
    fn check_honesty(&mut self, said: &Said, landed: bool, ledger: &Ledger, run: &str) {
        let code = match said.outcome.as_str() {
            "committed" | "skipped" | "unchanged" => 0,
            "refused" => 1,
            "invalid" | "unsupported" => 2,
            "retryable" => 3,
            "unknown" => 4,
            _ => 70,
        };
        self.verdict.check(said.status == Some(code), || format!("{run}: {said} is not status {code}"));
        let honest = match said.outcome.as_str() {
            "unknown" => true,
            "committed" => {
                let tokens = ledger.tokens();
                let there = said.version.and_then(|version| tokens.get(version as usize)?.as_ref());
                landed && there.is_some() && there == said.token.as_ref()
            }
            _ => !landed,
        };
        self.verdict.false_failures += usize::from(!honest);
        self.verdict.check(honest, || format!("{run}: {said}, but the load is in the log: {landed}"));
    }

    /// Other software reads the same rows.
    fn check_with_deltalake(&mut self) {
        let spell = |row: &crate::content::Row| {
            let columns = row.iter().map(|(name, value)| format!("{name}={}", value.as_deref().unwrap_or("null")));
            columns.collect::<Vec<_>>().join(" ")
        };
        match self.table.rows_by("deltalake") {
            Ok(rows) => {
                let mut rows: Vec<String> = rows.0.iter().map(spell).collect();
                rows.sort();
                let expected = self.orders.rows();
                self.verdict.check(rows == expected, || format!("deltalake reads {rows:#?}, not {expected:#?}"));
            }
            Err(error) => self.verdict.check(false, || format!("deltalake cannot read the table: {error}")),
        }
    }
}

/// The run id of our own entries.
fn run_id(entry: &[Value]) -> Option<&str> {
    entry.iter().find_map(|action| action.get("commitInfo"))?["deltaonce"]["runId"].as_str()
}

/// How the program said that it ended.
struct Said {
    outcome: String,
    status: Option<i32>,
    version: Option<u64>,
    token: Option<String>,
}

impl Said {
    fn by(run: &Run) -> Self {
        let receipt = run.json();
        Self {
            outcome: receipt["outcome"].as_str().unwrap_or("nothing").to_owned(),
            status: run.status,
            version: receipt["version"].as_u64(),
            token: receipt["token"].as_str().map(str::to_owned),
        }
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let status = self.status.map_or("a signal".to_owned(), |status| status.to_string());
        write!(f, "{} ({status})", self.outcome)
    }
}
