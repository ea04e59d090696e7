//! What attempts say of how far they have come. It may be said from any thread.
//!
//! Tested by `crates/sdk/tests/it/heartbeats.rs`.

use super::{Beat, Board, Key};
use std::task::Waker;
use steadfast_kernel::{Attempt, Payload, StepId};

impl Board {
    /// That attempt of a step says how far it has come; only the last word of each counts.
    pub(in crate::host) fn beat(&self, step: &StepId, attempt: Attempt, details: Payload) {
        let mut inner = self.inner.lock();
        let count = inner.beats.get(step).map_or(0, |beat| beat.count) + 1;
        inner.beats.insert(step.clone(), Beat { attempt, details, count, seen: false });
        let session = inner.session.take();
        drop(inner);
        session.into_iter().for_each(Waker::wake);
    }

    /// Wakes that task when an attempt says something.
    pub(in crate::host) fn wake_on_beat(&self, waker: &Waker) {
        self.inner.lock().session = Some(waker.clone());
    }

    /// How often the attempts of a step have said something.
    pub(in crate::host) fn beats(&self, key: &Key) -> u64 {
        let inner = self.inner.lock();
        key.attempted().and_then(|step| inner.beats.get(&step)).map_or(0, |beat| beat.count)
    }

    /// What attempts have said since the last look.
    pub(in crate::host) fn take_beats(&self) -> Vec<(StepId, Attempt, Payload)> {
        let mut inner = self.inner.lock();
        let new = inner.beats.iter_mut().filter(|(_, beat)| !beat.seen);
        new.map(|(step, beat)| {
            beat.seen = true;
            (step.clone(), beat.attempt, beat.details.clone())
        })
        .collect()
    }

    /// What the attempt before this one said last, or this one before a crash.
    pub(in crate::host) fn details(&self, step: &StepId) -> Option<Payload> {
        self.inner.lock().details.get(step).cloned()
    }

    /// The journal has it: an attempt has said that.
    pub(in crate::host) fn details_recorded(&self, step: &StepId, details: &Payload) {
        self.inner.lock().details.insert(step.clone(), details.clone());
    }
}
