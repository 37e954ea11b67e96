//! Time, waits and chance of a simulated process.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use deltaonce::Host;

use super::process::{Life, Point};

/// More than any deadline: a dead process is not to wait for anything.
const FOREVER: Duration = Duration::from_secs(1_000_000);

#[derive(Debug)]
pub(super) struct SimulatedHost {
    life: Arc<Life>,
    /// A load writes one file while another is under way, so its clock stands still: it must not matter which is faster.
    started: Duration,
}

impl SimulatedHost {
    pub(super) fn new(life: Arc<Life>) -> Self {
        Self { started: life.sea.time(), life }
    }
}

#[async_trait::async_trait]
impl Host for SimulatedHost {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp(1_790_000_000, 0).expect("the number is a time") + self.started
    }

    fn elapsed(&self) -> Duration {
        if self.life.is_dead() { FOREVER } else { self.life.sea.time() }
    }

    async fn sleep(&self, duration: Duration) {
        let until = self.life.sea.time() + duration;
        self.life.stand(Point { name: self.life.name_call("sleeps"), until: Some(until) }).await;
    }

    fn random(&self) -> u128 {
        let name = format!("{} draws {}", self.life.name, self.life.draw());
        let half = |which: &str| u128::from(self.life.sea.dice.drawn(&format!("{name} {which}")));
        let number = (half("high") << 64) | half("low");
        // A load's first number is its token.
        let _ = self.life.token.set(number);
        number
    }

    /// With more, the order of a load's own calls would be the machine's choice.
    fn parallelism(&self) -> usize {
        1
    }
}
