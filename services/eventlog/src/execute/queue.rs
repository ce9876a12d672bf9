//! Turns: commands to one stream wait for each other in the process instead of racing at the log.
//!
//! Owns: one lock per stream that is in use. Invariant: a stream that nobody uses takes no memory, also where a waiting
//! call was dropped.

use domain::kernel::StreamName;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Who uses which stream.
#[derive(Debug, Default)]
pub(super) struct Queues(Mutex<HashMap<StreamName, Arc<AsyncMutex<()>>>>);

/// A place in a stream's queue; when it is dropped the next one is served.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    queues: &'a Queues,
    stream: &'a StreamName,
    lock: Option<Arc<AsyncMutex<()>>>,
    held: Option<OwnedMutexGuard<()>>,
}

impl Queues {
    /// Waits for the stream, first come first served.
    pub(super) async fn turn<'a>(&'a self, stream: &'a StreamName) -> Turn<'a> {
        let lock = Arc::clone(self.locks().entry(stream.clone()).or_default());
        // Made before waiting, so that a call that is dropped while it waits cleans up as well.
        let mut turn = Turn { queues: self, stream, lock: Some(Arc::clone(&lock)), held: None };
        turn.held = Some(lock.lock_owned().await);
        turn
    }

    fn locks(&self) -> MutexGuard<'_, HashMap<StreamName, Arc<AsyncMutex<()>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.held = None;
        self.lock = None;
        let mut locks = self.queues.locks();
        if locks.get(self.stream).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(self.stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn a_stream_is_used_by_one_and_forgotten_after_the_last() {
        let (queues, stream) = (Queues::default(), StreamName::new("test", "a"));
        let first = queues.turn(&stream).await;
        assert!(queues.turn(&StreamName::new("test", "b")).now_or_never().is_some());
        let mut second = Box::pin(queues.turn(&stream));
        let mut dropped = Box::pin(queues.turn(&stream));
        assert!(second.as_mut().now_or_never().is_none() && dropped.as_mut().now_or_never().is_none());
        drop(dropped);
        drop(first);
        drop(second.await);
        assert!(queues.locks().is_empty());
    }

    #[tokio::test]
    async fn a_stream_is_forgotten_though_its_last_waiter_was_dropped() {
        let (queues, stream) = (Queues::default(), StreamName::new("test", "a"));
        let first = queues.turn(&stream).await;
        let mut waiter = Box::pin(queues.turn(&stream));
        assert!(waiter.as_mut().now_or_never().is_none());
        drop(first);
        drop(waiter);
        assert!(queues.locks().is_empty());
    }
}
