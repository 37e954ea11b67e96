//! The fault matrix: every way to spoil the answer to a commit on a real S3 server, for every contract, with and without
//! an identity, while other software works on the same table.

pub mod cell;
pub mod orders;
pub mod run;
pub mod verdict;

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use crate::panics::words_of;
use crate::s3;
use crate::threads::each;
use cell::Cell;
use run::Base;
use verdict::Verdict;

/// Runs cells, some at a time, and gives their verdicts in the cells' order. `seen` hears of each as it ends.
pub fn run_cells(cells: &[Cell], at_a_time: usize, seen: impl Fn(&Verdict) + Sync) -> Vec<Verdict> {
    let base = Base::on(s3::seaweedfs());
    let verdicts = Mutex::new(Vec::new());
    each(0..cells.len() as u64, at_a_time, |at| {
        let verdict = run_one(&base, cells[at as usize]);
        seen(&verdict);
        verdicts.lock().expect("no thread panics with the lock").push((at, verdict));
        ControlFlow::Continue(())
    });
    let mut verdicts = verdicts.into_inner().expect("no thread panics with the lock");
    verdicts.sort_by_key(|(at, _)| *at);
    verdicts.into_iter().map(|(_, verdict)| verdict).collect()
}

/// A cell that cannot be judged does not hold.
fn run_one(base: &Base, cell: Cell) -> Verdict {
    catch_unwind(AssertUnwindSafe(|| base.run(cell))).unwrap_or_else(|panic| {
        let mut verdict = Verdict::of(cell);
        verdict.complaints.push(words_of(&*panic));
        verdict
    })
}
