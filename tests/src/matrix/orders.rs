//! What each load and each rival makes of a table, on plain maps: nothing here is the product's.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};

use super::cell::{Contract, Rival};

/// One row of the tables under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    id: i64,
    day: &'static str,
    status: &'static str,
    lsn: i64,
}

const fn order(id: i64, day: &'static str, status: &'static str, lsn: i64) -> Order {
    Order { id, day, status, lsn }
}

const MONDAY: &str = "2026-10-05";
const TUESDAY: &str = "2026-10-06";

/// The table before the load, a file each: both days lie in both.
pub const BASE: [[Order; 4]; 2] = [
    [
        order(1, MONDAY, "base", 1),
        order(2, MONDAY, "base", 1),
        order(3, TUESDAY, "base", 1),
        order(4, TUESDAY, "base", 1),
    ],
    [
        order(5, MONDAY, "base", 1),
        order(6, TUESDAY, "base", 1),
        order(7, TUESDAY, "base", 1),
        order(8, MONDAY, "base", 1),
    ],
];

/// What a rival leaves of a table that it overwrites: one key that loads bring too, and one that none brings.
const OVERWRITTEN: [Order; 2] = [order(2, MONDAY, "overwritten", 1), order(201, TUESDAY, "overwritten", 1)];

/// What a rival deletes: a row that was there before, and one that every load brings.
const DELETED: [i64; 2] = [2, 102];

/// A table's rows by `id`, which no two rows share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orders(BTreeMap<i64, Order>);

impl Orders {
    /// The table before the load.
    #[must_use]
    pub fn base() -> Self {
        Self(BASE.into_iter().flatten().map(|order| (order.id, order)).collect())
    }

    /// Takes one load in.
    pub fn load(&mut self, contract: Contract) {
        let brought = contract.brings();
        match contract {
            Contract::Append => self.0.extend(brought.into_iter().map(|order| (order.id, order))),
            Contract::Replace => {
                self.0.retain(|_, order| order.day != MONDAY);
                self.0.extend(brought.into_iter().map(|order| (order.id, order)));
            }
            Contract::Merge => {
                for order in brought {
                    if self.0.get(&order.id).is_none_or(|held| held.lsn < order.lsn) {
                        self.0.insert(order.id, order);
                    }
                }
            }
            Contract::Insert => {
                for order in brought {
                    self.0.entry(order.id).or_insert(order);
                }
            }
        }
    }

    /// Takes a rival's work in.
    pub fn work(&mut self, rival: Rival) {
        match rival {
            Rival::None | Rival::Compaction | Rival::Vacuum => {}
            Rival::Delete => self.0.retain(|id, _| !DELETED.contains(id)),
            Rival::Overwrite => self.0 = OVERWRITTEN.into_iter().map(|order| (order.id, order)).collect(),
        }
    }

    /// The rows as [`Ledger::rows`](crate::ledger::Ledger::rows) spells them, sorted.
    #[must_use]
    pub fn rows(&self) -> Vec<String> {
        let spelt = self
            .0
            .values()
            .map(|Order { id, day, status, lsn }| format!("day={day} id={id} lsn={lsn} status={status}"));
        let mut rows: Vec<String> = spelt.collect();
        rows.sort();
        rows
    }
}

impl Contract {
    /// The rows of the load.
    fn brings(self) -> Vec<Order> {
        match self {
            Self::Append => vec![order(101, MONDAY, "loaded", 2), order(102, TUESDAY, "loaded", 2)],
            Self::Replace => {
                vec![order(2, MONDAY, "loaded", 2), order(101, MONDAY, "loaded", 2), order(102, MONDAY, "loaded", 2)]
            }
            // One newer and one older than what the table holds, and two that it does not.
            Self::Merge => vec![
                order(2, MONDAY, "loaded", 2),
                order(7, TUESDAY, "loaded", 0),
                order(101, MONDAY, "loaded", 2),
                order(102, TUESDAY, "loaded", 2),
            ],
            Self::Insert => {
                vec![order(2, MONDAY, "loaded", 2), order(101, MONDAY, "loaded", 2), order(102, TUESDAY, "loaded", 2)]
            }
        }
    }

    /// The load's source.
    #[must_use]
    pub fn csv(self) -> String {
        let mut csv = "id,day,status,lsn\n".to_owned();
        for Order { id, day, status, lsn } in self.brings() {
            writeln!(csv, "{id},{day},{status},{lsn}").expect("a text takes more");
        }
        csv
    }

    /// The load's command and scope or key.
    #[must_use]
    pub fn command(self, table: &str) -> String {
        match self {
            Self::Append => format!("append {table} load.csv"),
            Self::Replace => format!("replace {table} load.csv --where \"day = '{MONDAY}'\""),
            Self::Merge => format!("merge {table} load.csv --key id --newest-by lsn"),
            Self::Insert => format!("insert {table} load.csv --key id"),
        }
    }
}

/// What makes the peer write some orders.
#[must_use]
pub fn write_request(orders: &[Order], mode: &str) -> Value {
    let rows: Vec<Value> = orders
        .iter()
        .map(|Order { id, day, status, lsn }| json!([day, id.to_string(), lsn.to_string(), status]))
        .collect();
    // In the names' order, which is the order of a JSON object here.
    json!({"schema": {"day": "date32", "id": "int64", "lsn": "int64", "status": "string"}, "rows": rows, "mode": mode})
}

/// What makes the peer overwrite the table as [`Rival::Overwrite`] does.
#[must_use]
pub fn overwrite_request() -> Value {
    write_request(&OVERWRITTEN, "overwrite")
}

/// What makes the peer delete what [`Rival::Delete`] does.
#[must_use]
pub fn delete_request() -> Value {
    let [a, b] = DELETED;
    json!({"predicate": format!("id in ({a}, {b})")})
}
