//! How much all shards of an instance have under way: its limits go for all of them together.
//!
//! Tested by `crates/sdk/tests/it/limits.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What all shards of an instance have under way.
#[derive(Default)]
pub(crate) struct Crowd {
    /// Runs that are in memory with their code.
    live: AtomicUsize,
    /// Held once by every start that is not yet answered.
    starting: Place,
}

/// The part of one shard in it, which is over with the shard.
#[derive(Default)]
pub(super) struct Live {
    /// For whoever looks how busy the shard is.
    count: Arc<AtomicUsize>,
    crowd: Arc<Crowd>,
}

impl Live {
    pub(super) fn of(crowd: Arc<Crowd>) -> Self {
        Live { count: Arc::default(), crowd }
    }

    /// How many runs of this shard are in memory with their code.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The same, wherever it is looked at.
    pub(super) fn counted(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.count)
    }

    pub(super) fn add(&mut self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.crowd.live.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn remove(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.crowd.live.fetch_sub(1, Ordering::Relaxed);
    }

    /// A place for one more start; nothing if there are so many already.
    pub(super) fn start(&self, most: usize) -> Option<Place> {
        (self.crowd.starting.others() < most).then(|| self.crowd.starting.clone())
    }

    /// True if there are more than so many runs. Those that start hold a place already.
    pub(super) fn is_over(&self, most: usize) -> bool {
        self.crowd.live.load(Ordering::Relaxed) + self.crowd.starting.others() > most
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.crowd.live.fetch_sub(self.count.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// A place among the starts that are not yet answered; free again when it is dropped.
#[derive(Clone, Default)]
pub(super) struct Place(Arc<()>);

impl Place {
    /// How many others hold one.
    pub(super) fn others(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}
