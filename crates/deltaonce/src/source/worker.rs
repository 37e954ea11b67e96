//! Work on blocking threads as streams: bounded, in order, and never short without an error.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::error::{Error, Result};

/// Where work on a blocking thread puts what it makes.
pub(crate) struct Out<T>(mpsc::Sender<T>);

impl<T> Out<T> {
    /// Hands `item` on, waiting while the reader is behind; false when nobody reads any more and the work may end.
    pub(crate) fn send(&self, item: T) -> bool {
        self.0.blocking_send(item).is_ok()
    }
}

/// Runs `work` on a blocking thread of the current runtime and streams what it sends, at most `ahead` items ahead.
///
/// The stream ends without an error only when `work` returned without one: work that dies is an error too, since a
/// source cut short must never look like a whole one. `name` is the input's, for that error.
pub(crate) fn run<T: Send + 'static>(
    name: Arc<str>,
    ahead: usize,
    work: impl FnOnce(&Out<T>) -> Result<()> + Send + 'static,
) -> BoxStream<'static, Result<T>> {
    let (sender, receiver) = mpsc::channel(ahead.max(1));
    let done = tokio::task::spawn_blocking(move || work(&Out(sender)));
    let state: (mpsc::Receiver<T>, Option<JoinHandle<Result<()>>>) = (receiver, Some(done));
    stream::unfold((state, name), |((mut receiver, done), name)| async move {
        if let Some(item) = receiver.recv().await {
            return Some((Ok(item), ((receiver, done), name)));
        }
        let error = match done?.await {
            Ok(Ok(())) => return None,
            Ok(Err(error)) => error,
            Err(died) => Error::internal(format!("reading {name} broke off")).caused_by(died),
        };
        Some((Err(error), ((receiver, None), name)))
    })
    .boxed()
}

/// Runs `work` on a blocking thread of the current runtime.
pub(crate) async fn once<T: Send + 'static>(
    name: Arc<str>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(died) => Err(Error::internal(format!("reading {name} broke off")).caused_by(died)),
    }
}

/// The streams of `starts` one after the other, each begun (and so working ahead) while the one before it is read.
pub(crate) fn in_order<T: Send + 'static>(
    starts: impl Iterator<Item = BoxStream<'static, Result<T>>> + Send + 'static,
) -> BoxStream<'static, Result<T>> {
    let state = (starts, VecDeque::new());
    stream::unfold(state, |(mut starts, mut begun): (_, VecDeque<BoxStream<'static, Result<T>>>)| async move {
        loop {
            while begun.len() < 2
                && let Some(next) = starts.next()
            {
                begun.push_back(next);
            }
            match begun.front_mut()?.next().await {
                Some(item) => return Some((item, (starts, begun))),
                None => begun.pop_front(),
            };
        }
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;

    use super::*;

    #[tokio::test]
    async fn work_that_dies_is_not_an_end() {
        let mut items = run("a.csv".into(), 1, |out: &Out<u8>| {
            out.send(1);
            panic!("on purpose");
        });
        assert_eq!(items.next().await.unwrap().unwrap(), 1);
        let error = items.next().await.unwrap().unwrap_err();
        assert_eq!(error.message(), "reading a.csv broke off");
        assert!(items.next().await.is_none());
    }

    #[tokio::test]
    async fn streams_come_in_order() {
        let starts = (0..3u8).map(|i| {
            run("x".into(), 1, move |out: &Out<u8>| {
                out.send(i);
                out.send(i + 10);
                Ok(())
            })
        });
        assert_eq!(in_order(starts).try_collect::<Vec<_>>().await.unwrap(), [0, 10, 1, 11, 2, 12]);
    }
}
