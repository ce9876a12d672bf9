//! Folded streams that were used of late. A cache: what is lost is folded again.
//!
//! Owns: what is kept and for how long. Does not own: whether a fold is up to date, which only the log knows.
//! Invariant: a fold is only replaced by one of more events.

use super::fold::Fold;
use domain::kernel::{Aggregate, StreamName};
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many streams are kept; one in eight goes when there are more.
const STREAMS_MAX: usize = 4096;

/// Folds by stream.
#[derive(Debug)]
pub(super) struct Cache {
    kept: Mutex<Kept>,
    streams_max: usize,
}

#[derive(Debug, Default)]
struct Kept {
    folds: HashMap<StreamName, Entry>,
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    fold: Arc<dyn Any + Send + Sync>,
    used: u64,
}

impl Default for Cache {
    fn default() -> Self {
        Self { kept: Mutex::default(), streams_max: STREAMS_MAX }
    }
}

impl Cache {
    /// The fold of a stream, perhaps not of its last events.
    pub(super) fn get<A: Aggregate>(&self, stream: &StreamName) -> Option<Arc<Fold<A>>> {
        let mut kept = self.kept();
        kept.uses += 1;
        let used = kept.uses;
        let entry = kept.folds.get_mut(stream)?;
        entry.used = used;
        Arc::clone(&entry.fold).downcast().ok()
    }

    /// Forgets a stream, so that its fold can be changed in place.
    pub(super) fn forget(&self, stream: &StreamName) {
        self.kept().folds.remove(stream);
    }

    /// Keeps a fold, unless there is one of more events.
    pub(super) fn put<A: Aggregate>(&self, stream: &StreamName, fold: Arc<Fold<A>>) {
        let mut kept = self.kept();
        let older = |entry: &Entry| entry.fold.downcast_ref::<Fold<A>>().is_none_or(|kept| kept.events <= fold.events);
        if kept.folds.get(stream).is_none_or(older) {
            kept.uses += 1;
            let used = kept.uses;
            kept.folds.insert(stream.clone(), Entry { fold, used });
        }
        if kept.folds.len() > self.streams_max {
            kept.evict(self.streams_max / 8);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Forgets those that were used longest ago, and at least one.
    fn evict(&mut self, streams: usize) {
        let mut used: Vec<u64> = self.folds.values().map(|entry| entry.used).collect();
        let (_, &mut oldest, _) = used.select_nth_unstable(streams.min(self.folds.len() - 1));
        self.folds.retain(|_, entry| entry.used > oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Default)]
    struct Nothing;

    #[derive(Debug, thiserror::Error)]
    #[error("nothing is refused")]
    struct Never;

    impl domain::kernel::Rejection for Never {
        fn code(&self) -> &'static str {
            "nothing.never"
        }

        fn kind(&self) -> domain::kernel::Kind {
            domain::kernel::Kind::Invalid
        }
    }

    impl Aggregate for Nothing {
        const STREAM: &'static str = "nothing";
        type Command = ();
        type Event = ();
        type Error = Never;

        fn decide(&self, (): ()) -> Result<Vec<()>, Never> {
            Ok(vec![])
        }

        fn evolve(self, (): &()) -> Self {
            self
        }
    }

    fn of(events: i64) -> Arc<Fold<Nothing>> {
        Arc::new(Fold { events, ..Fold::default() })
    }

    #[test]
    fn keeps_what_was_used_last() {
        let cache = Cache { kept: Mutex::default(), streams_max: 8 };
        let streams: Vec<_> = (0..9).map(|n| StreamName::new("nothing", n)).collect();
        for stream in &streams[..8] {
            cache.put(stream, of(1));
        }
        assert!(cache.get::<Nothing>(&streams[0]).is_some());
        cache.put(&streams[8], of(1));
        let kept: Vec<_> = streams.iter().map(|stream| cache.get::<Nothing>(stream).is_some()).collect();
        assert_eq!(kept, [true, false, false, true, true, true, true, true, true]);
    }

    #[test]
    fn keeps_the_fold_of_more_events() {
        let (cache, stream) = (Cache::default(), StreamName::new("nothing", "a"));
        cache.put(&stream, of(2));
        cache.put(&stream, of(1));
        assert_eq!(cache.get::<Nothing>(&stream).unwrap().events, 2);
        cache.put(&stream, of(3));
        assert_eq!(cache.get::<Nothing>(&stream).unwrap().events, 3);
    }
}
