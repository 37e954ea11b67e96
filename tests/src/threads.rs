//! Work that is done some at a time.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Works on the numbers in their order, `at_a_time` of them at once. After a break no further one is begun; those that are
/// under way, which come before it or soon after, are seen through.
pub fn each(numbers: Range<u64>, at_a_time: usize, work: impl Fn(u64) -> ControlFlow<()> + Sync) {
    let (next, stopped) = (AtomicU64::new(numbers.start), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..at_a_time.max(1) {
            scope.spawn(|| {
                while !stopped.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if !numbers.contains(&number) {
                        return;
                    }
                    if work(number).is_break() {
                        stopped.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
}

/// As many as the machine does at once.
#[must_use]
pub fn of_this_machine() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
