//! The run's own time: it stands still while the run does, and what the code asked for in an earlier life is asked for when the next one begins.
//!
//! Tested by `crates/sdk/tests/it/pausing.rs`.

use super::{Ask, Board, Key, State, record};
use steadfast_kernel::{Policy, Timestamp};

impl Board {
    /// When a step was asked for, in the run's own time.
    pub(in crate::host) fn asked_at(&self, key: &Key) -> Option<Timestamp> {
        match self.inner.lock().ops.get(key)?.ask {
            Ask::Step { asked_at, .. } => Some(asked_at),
            Ask::Sleep { .. } | Ask::Signal { .. } | Ask::Child { .. } => None,
        }
    }

    /// What a step was asked for with: its policy, and when, in the run's own time.
    pub(in crate::host) fn terms(&self, key: &Key) -> Option<(Policy, Timestamp)> {
        match &self.inner.lock().ops.get(key)?.ask {
            Ask::Step { policy, asked_at, .. } => Some((policy.clone(), *asked_at)),
            Ask::Sleep { .. } | Ask::Signal { .. } | Ask::Child { .. } => None,
        }
    }

    /// The run's time stands still from here on.
    pub(in crate::host) fn stand_still(&self, at: Timestamp) {
        self.inner.lock().still_since.get_or_insert(at);
    }

    /// The run's time goes on: steps have as much of it left as when it stood still.
    pub(in crate::host) fn go_on(&self, now: Timestamp) {
        let mut inner = self.inner.lock();
        let still_since = inner.still_since.take();
        for op in inner.ops.values_mut() {
            if let Ask::Step { asked_at, .. } = &mut op.ask {
                *asked_at = later(*asked_at, still_since, now);
            }
        }
    }

    /// Another life begins: what has no outcome, and what is not on record, is asked for now.
    pub(in crate::host) fn begin_again(&self, at: Timestamp) {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let since = at.saturating_since(inner.now);
        inner.still_since = None;
        for op in inner.ops.values_mut().filter(|op| !matches!(op.state, State::Delivered(_))) {
            match &mut op.ask {
                Ask::Step { asked_at, .. } => *asked_at = at,
                Ask::Sleep { due_at, recorded: false } => *due_at = due_at.saturating_add(since),
                Ask::Signal { until: Some(until), recorded: false, .. } => *until = until.saturating_add(since),
                Ask::Sleep { .. } | Ask::Signal { .. } | Ask::Child { .. } => {}
            }
        }
        for (key, event) in &mut inner.asked {
            if let (Key::Sleep(_) | Key::Signal(_), Some(op)) = (&*key, inner.ops.get(key)) {
                *event = record(key, op);
            }
        }
        inner.now = inner.now.max(at);
    }
}

/// What was at that time, moved by how long the run's time has stood still after it.
pub(super) fn later(at: Timestamp, still_since: Option<Timestamp>, now: Timestamp) -> Timestamp {
    still_since.map_or(at, |since| at.saturating_add(now.saturating_since(since.max(at))))
}
