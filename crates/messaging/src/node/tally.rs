//! What a node has done since it began, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a node has done since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Calls that were sent.
    pub calls: u64,
    /// Calls that have failed for good, for whoever sent them. Those of steps are not counted: their runs say what became of them.
    pub calls_failed: u64,
    /// Tells that were sent.
    pub tells: u64,
    /// Tells that have failed for good, but for those of steps.
    pub tells_failed: u64,
    /// Attempts beyond the first, of both.
    pub retries: u64,
    /// Calls of others that have come, each as often as it was delivered.
    pub calls_received: u64,
    /// Tells of others that have come, likewise.
    pub tells_received: u64,
    /// Messages that became dead letters.
    pub letters: u64,
    /// Dead letters that could not be kept: they are in the log and nowhere else.
    pub letters_lost: u64,
}

/// Counts what a node does.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    calls: AtomicU64,
    calls_failed: AtomicU64,
    tells: AtomicU64,
    tells_failed: AtomicU64,
    retries: AtomicU64,
    calls_received: AtomicU64,
    tells_received: AtomicU64,
    letters: AtomicU64,
    letters_lost: AtomicU64,
}

impl Tally {
    /// A request is sent for the first time.
    pub(crate) fn sent(&self, is_call: bool) {
        add(if is_call { &self.calls } else { &self.tells });
    }

    /// A request has failed for good.
    pub(crate) fn failed(&self, is_call: bool) {
        add(if is_call { &self.calls_failed } else { &self.tells_failed });
    }

    /// A request is sent once more.
    pub(crate) fn retried(&self) {
        add(&self.retries);
    }

    /// A request of somebody else has come.
    pub(crate) fn received(&self, is_call: bool) {
        add(if is_call { &self.calls_received } else { &self.tells_received });
    }

    /// A message is a dead letter.
    pub(crate) fn posted(&self) {
        add(&self.letters);
    }

    /// A dead letter could not be kept.
    pub(crate) fn lost(&self) {
        add(&self.letters_lost);
    }

    pub(crate) fn totals(&self) -> Totals {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Totals {
            calls: read(&self.calls),
            calls_failed: read(&self.calls_failed),
            tells: read(&self.tells),
            tells_failed: read(&self.tells_failed),
            retries: read(&self.retries),
            calls_received: read(&self.calls_received),
            tells_received: read(&self.tells_received),
            letters: read(&self.letters),
            letters_lost: read(&self.letters_lost),
        }
    }
}

fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}
