//! Asking a running load to end before it changes anything.

use std::sync::Arc;

use tokio::sync::watch;

use crate::error::{Error, ErrorKind, Result};

/// Ends the loads of a table that have not begun to commit; one that has is seen through, since its outcome must be told.
#[derive(Debug, Clone)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Default for Stop {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Stop {
    /// Asks for the end: loads end as [`ErrorKind::Interrupted`], with their files removed.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// # Errors
    /// `Interrupted` once the end was asked for.
    pub(crate) fn check(&self) -> Result<()> {
        if *self.0.borrow() { Err(interrupted()) } else { Ok(()) }
    }

    /// The error of the end, as soon as that is asked for: a source may be silent for as long as it likes.
    pub(crate) async fn stopped(&self) -> Error {
        // The sender is this handle's own, so the channel cannot close first.
        let _ = self.0.subscribe().wait_for(|stop| *stop).await;
        interrupted()
    }
}

fn interrupted() -> Error {
    Error::new(ErrorKind::Interrupted, "the load was interrupted; nothing was changed")
}
