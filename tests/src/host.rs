//! A host for loads inside the test's own process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use deltaonce::Host;

use crate::chance::scattered;

/// A [`Host`] whose waits pass at once: its time is what was waited, so deadlines end without anybody waiting.
///
/// Its random numbers are a fixed series, and no two hosts of one process draw the same.
#[derive(Debug, Default)]
pub struct SteppingHost {
    waited: AtomicU64,
}

impl SteppingHost {
    fn microseconds(&self) -> u64 {
        self.waited.load(Ordering::Relaxed)
    }
}

#[async_trait::async_trait]
impl Host for SteppingHost {
    fn now(&self) -> DateTime<Utc> {
        let start = DateTime::from_timestamp(1_790_000_000, 0).expect("the number is a time");
        start + Duration::from_micros(self.microseconds())
    }

    fn elapsed(&self) -> Duration {
        Duration::from_micros(self.microseconds())
    }

    async fn sleep(&self, duration: Duration) {
        self.waited.fetch_add(u64::try_from(duration.as_micros()).expect("a wait is short"), Ordering::Relaxed);
        tokio::task::yield_now().await;
    }

    fn random(&self) -> u128 {
        static DRAWN: AtomicU64 = AtomicU64::new(0);
        let n = DRAWN.fetch_add(1, Ordering::Relaxed);
        (u128::from(scattered(n)) << 64) | u128::from(scattered(!n))
    }

    fn parallelism(&self) -> usize {
        2
    }
}
