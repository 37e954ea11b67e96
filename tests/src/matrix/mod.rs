//! The fault matrix: every way to spoil the answer to a commit on a real S3 server, for every contract, with and without
//! an identity, while other software works on the same table.

pub mod cell;
pub mod orders;
pub mod run;
pub mod verdict;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::s3;
use cell::Cell;
use run::Base;
use verdict::Verdict;

/// Runs cells, some at a time, and gives their verdicts in the cells' order. `seen` hears of each as it ends.
pub fn run_cells(cells: &[Cell], at_a_time: usize, seen: impl Fn(&Verdict) + Sync) -> Vec<Verdict> {
    let base = Base::on(s3::seaweedfs());
    let (next, verdicts) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..at_a_time.max(1) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(cell) = cells.get(at) else { return };
                    let verdict = run_one(&base, *cell);
                    seen(&verdict);
                    verdicts.lock().expect("no thread panics with the lock").push((at, verdict));
                }
            });
        }
    });
    let mut verdicts = verdicts.into_inner().expect("no thread panics with the lock");
    verdicts.sort_by_key(|(at, _)| *at);
    verdicts.into_iter().map(|(_, verdict)| verdict).collect()
}

/// A cell that cannot be judged does not hold.
fn run_one(base: &Base, cell: Cell) -> Verdict {
    catch_unwind(AssertUnwindSafe(|| base.run(cell))).unwrap_or_else(|panic| {
        let mut verdict = Verdict::of(cell);
        verdict.complaints.push(said(&*panic));
        verdict
    })
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it panicked").to_owned()
}
