//! What the library takes from the machine only through its caller: time, waiting and chance.

use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::error::{Error, Result};
use crate::size::bytes;

/// Gives a load its time, its waits and its random numbers.
///
/// The library never reads the wall clock by itself. A service passes [`SystemHost`]; a simulation passes its own,
/// and then the same seed gives the same run.
#[async_trait::async_trait]
pub trait Host: Send + Sync + std::fmt::Debug {
    /// The wall-clock time, for `lastUpdated`, `modificationTime` and commit timestamps only.
    fn now(&self) -> DateTime<Utc>;
    /// Time since some fixed point, never going backwards, for deadlines and durations.
    fn elapsed(&self) -> Duration;
    /// Waits.
    async fn sleep(&self, duration: Duration);
    /// A number no other load draws: tokens and file names are made of it.
    fn random(&self) -> u128;
    /// How many threads or files a load may keep busy at a time, at least 1. With 1, a load makes its storage calls in an
    /// order of its own.
    fn parallelism(&self) -> usize;
    /// What memory the rows of a merge or an insert may take, and where they go beyond it; also what may be held to tell
    /// which rows a replace changed, for the change data feed. None: all are held in memory.
    fn scratch(&self) -> Option<Scratch> {
        None
    }
}

/// Memory for rows, and a place on local disk for those that do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scratch {
    /// Bytes that the rows of a load may take, what is worked out of them included, about.
    pub memory: u64,
    /// A folder in which loads make folders of their own, and remove them when they end.
    pub folder: PathBuf,
}

/// Memory with which a batch of rows can be held.
const LEAST_MEMORY: u64 = 1 << 20;

impl Scratch {
    /// Reads an amount of memory: `512MiB`, `2GiB`, `64m`; units are binary.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for text that is no size, and for less than 1 MiB.
    pub fn memory_of(text: &str) -> Result<u64> {
        let lower = text.trim().to_ascii_lowercase();
        let size = lower.strip_suffix("ib").map_or_else(|| lower.clone(), |size| format!("{size}b"));
        match bytes(&size) {
            None => Err(Error::invalid(format!("'{text}' is not a size like 512MiB or 2GiB"))),
            Some(bytes) if bytes < LEAST_MEMORY => {
                Err(Error::invalid(format!("'{text}' is less than 1 MiB, with which no batch of rows can be held")))
            }
            Some(bytes) => Ok(bytes),
        }
    }
}

/// The [`Host`] of a process on a real machine.
#[derive(Debug)]
pub struct SystemHost {
    start: std::time::Instant,
    scratch: Option<Scratch>,
}

impl SystemHost {
    /// The same, with bounded memory for rows.
    #[must_use]
    pub fn with_scratch(self, scratch: Scratch) -> Self {
        Self { scratch: Some(scratch), ..self }
    }
}

impl Default for SystemHost {
    #[allow(clippy::disallowed_methods, reason = "the one adapter through which a caller lends its clock")]
    fn default() -> Self {
        Self { start: std::time::Instant::now(), scratch: None }
    }
}

#[allow(clippy::disallowed_methods, reason = "the one adapter through which a caller lends its clock")]
#[async_trait::async_trait]
impl Host for SystemHost {
    fn now(&self) -> DateTime<Utc> {
        std::time::SystemTime::now().into()
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn random(&self) -> u128 {
        uuid::Uuid::new_v4().as_u128()
    }

    fn parallelism(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    fn scratch(&self) -> Option<Scratch> {
        self.scratch.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_a_size_with_a_binary_unit() {
        for (text, size) in [("2GiB", 2 << 30), ("512 mb", 512 << 20), ("4194304", 4 << 20), ("64m", 64 << 20)] {
            assert_eq!(Scratch::memory_of(text).unwrap(), size, "{text}");
        }
        for wrong in ["", "GiB", "ib", "-1", "1.5GiB", "12 parsecs", "99999999TiB", "1000"] {
            assert!(Scratch::memory_of(wrong).is_err(), "{wrong}");
        }
    }
}
