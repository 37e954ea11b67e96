//! The other tool on the table all the while: Python deltalake appends, compacts and vacuums.

use std::time::Instant;

use serde_json::{Value, json};

use super::Scene;
use super::content::{Row, Way, write_request};
use super::writer::{APPENDED, DAYS, SHARED};

const FIRST_ID: i64 = 900_000_000;

/// More than its own default, which eight writers use up.
const RETRIES: u32 = 200;

/// Works until `end`: appends, puts the files of one day after the other together, and takes away at once what is no
/// longer live.
pub(super) fn work_until(scene: &Scene, end: Instant) {
    let mut days = DAYS.into_iter().cycle();
    for round in 0.. {
        match round % 4 {
            _ if Instant::now() >= end => return,
            2 => {
                ask(scene, "compact", json!({"partition": {"day": days.next()}}));
            }
            3 => {
                ask(scene, "vacuum", json!({}));
            }
            _ => append(scene, round),
        }
    }
}

fn append(scene: &Scene, round: i64) {
    let row = |i| {
        let day = if i < 4 { APPENDED } else { SHARED };
        Row { id: FIRST_ID + round * 8 + i, day, seq: round, status: "neighbour".to_owned() }
    };
    let rows: Vec<Row> = (0..8).map(row).collect();
    match ask(scene, "write", write_request(&rows)) {
        true => scene.content().take(&Way::Added, &rows),
        // Such a writer cannot say whether its commit landed, so either is right, but for a part.
        false => scene.doubt(rows),
    }
}

/// Whether it went well.
fn ask(scene: &Scene, what: &str, mut arguments: Value) -> bool {
    arguments["retries"] = json!(RETRIES);
    scene.neighbour(what, scene.table.try_peer(what, arguments).err())
}
