//! When what a journal comes to is saved: with the batch that makes it long enough.
//!
//! Tested by `crates/sdk/tests/it/saved.rs`.

use steadfast_kernel::{Entity, EntityId, Seq, Snapshot};

/// What an event takes in a store, roughly. A snapshot that takes as much as so many events comes after so many events.
const EVENT_BYTES: usize = 200;

/// What is known to be saved of an entity.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Saved {
    /// Up to that entry; zero if nothing is.
    seq: Seq,
    bytes: usize,
}

impl Saved {
    pub(super) fn by(snapshot: &Snapshot) -> Self {
        Saved { seq: snapshot.seq, bytes: snapshot.state.len() }
    }

    pub(super) fn is_something(&self) -> bool {
        self.seq > 0
    }

    /// Saves a state if it is time to.
    pub(super) fn save(&mut self, id: &EntityId, entity: &Entity, every: usize) -> Option<Snapshot> {
        let since = usize::try_from(entity.seq().saturating_sub(self.seq)).unwrap_or(usize::MAX);
        if since < every.max(self.bytes / EVENT_BYTES) {
            return None;
        }
        let snapshot = Snapshot::of(id, entity)?;
        *self = Saved::by(&snapshot);
        Some(snapshot)
    }
}
