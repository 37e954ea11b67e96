//! Ctrl-C and SIGTERM: the first asks the load to stop and clean up, the second leaves at once.

use std::pin::pin;

use deltaonce::{Error, ErrorKind, Result};

/// The signals that ask a program to end, from the moment of listening on. Of a result and a signal that are both there,
/// the result counts.
#[derive(Debug)]
pub(crate) struct Signals {
    #[cfg(unix)]
    sources: Vec<tokio::signal::unix::Signal>,
}

impl Signals {
    /// Runs `work`, which has changed nothing yet and needs no clean-up; a signal drops it.
    pub(crate) async fn droppable<T>(&mut self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            result = work => result,
            () = self.next() => Err(Error::new(ErrorKind::Interrupted, "the run was stopped")),
        }
    }

    /// Runs `work`, which `stop` asks to end. The work's own result counts even after a signal: it may have landed.
    pub(crate) async fn stoppable<T>(
        &mut self,
        stop: impl FnOnce(),
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            result = &mut work => return result,
            () = self.next() => stop(),
        }
        tokio::select! {
            biased;
            result = work => result,
            () = self.next() => Err(left()),
        }
    }
}

fn left() -> Error {
    Error::unknown("the run was told twice to stop and did not wait to learn whether the load landed")
        .hint("run it again with the same identity; files that no log entry names are left for a vacuum")
}

#[cfg(unix)]
impl Signals {
    /// Listens from now on; a signal that cannot be listened to keeps its default effect.
    pub(crate) fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
        Self { sources: kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect() }
    }

    async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let arrived = self.sources.iter_mut().any(|source| source.poll_recv(context).is_ready());
            if arrived { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }
}

#[cfg(not(unix))]
impl Signals {
    /// Listens from now on.
    pub(crate) fn listen() -> Self {
        Self {}
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    async fn terminate() {
        let kill = std::process::Command::new("kill").args(["-TERM", &std::process::id().to_string()]).status();
        assert!(kill.is_ok_and(|status| status.success()));
    }

    /// One test for all, since a signal reaches every listener of the process.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_signal_stops_and_a_second_one_leaves() {
        let mut signals = Signals::listen();
        let never = std::future::pending::<Result<()>>;

        let (dropped, ()) = tokio::join!(signals.droppable(never()), terminate());
        assert_eq!(dropped.unwrap_err().kind(), ErrorKind::Interrupted);

        let asked = tokio::sync::Notify::new();
        let landed = async {
            asked.notified().await;
            Ok(18)
        };
        let (result, ()) = tokio::join!(signals.stoppable(|| asked.notify_one(), landed), terminate());
        assert_eq!(result.unwrap(), 18);

        let again = tokio::sync::Notify::new();
        let twice = async {
            terminate().await;
            again.notified().await;
            terminate().await;
        };
        let (left, ()) = tokio::join!(signals.stoppable(|| again.notify_one(), never()), twice);
        assert_eq!(left.unwrap_err().kind(), ErrorKind::Unknown);
    }
}
