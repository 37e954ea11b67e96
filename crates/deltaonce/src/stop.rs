//! Asking a running load to end before it changes anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, ErrorKind, Result};

/// Ends the loads of a table that have not begun to commit; one that has is seen through, since its outcome must be told.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks for the end: loads end as [`ErrorKind::Interrupted`], with their files removed.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// # Errors
    /// `Interrupted` once the end was asked for.
    pub(crate) fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Interrupted, "the load was interrupted; nothing was changed"));
        }
        Ok(())
    }
}
