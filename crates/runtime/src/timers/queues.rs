//! What is to happen at a time and has to be settled by somebody: two queues, and no clock. Time is an argument.
//!
//! ```text
//!            add, update                      due, handed out                   settled
//!   (none) --------------> waiting ------------------------------> in flight -----------> (none)
//!                             ^  ^                                   |  ^
//!                             |  |                  failed, or silent |  | next try is due, handed out
//!                             |  +---- update ---------- failed <-----+  |
//!                             |                            |             |
//!                             +---- follower --------------+-------------+
//! ```
//!
//! *Waiting* is in the order of due time and insertion. *Pending* is what was handed out and is not settled: in flight, or failed and to be tried again. What has
//! failed is found by the time of its next try, never by its due time, so that one entry in flight at the head holds nobody up. One pass
//! hands out a bounded number of each and says whether there is more; whoever drives it lets others work in between.

use std::collections::BTreeMap;
use std::time::Duration;
use steadfast_kernel::{Attempt, Seq, Timestamp};

/// The limits of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// How many that are due are handed out at once.
    pub(crate) expire_batch: usize,
    /// How many that have failed are handed out again at once.
    pub(crate) retry_batch: usize,
    /// What was handed out and not settled for this long has failed.
    pub(crate) attempt_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { expire_batch: 50, retry_batch: 10, attempt_timeout: Duration::from_secs(30) }
    }
}

/// Something that was handed out, to be settled or reported as failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handed<K> {
    pub(crate) key: K,
    pub(crate) revision: Seq,
    pub(crate) attempt: Attempt,
    pub(crate) due: Timestamp,
}

/// What a pass has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pass<K> {
    pub(crate) handed: Vec<Handed<K>>,
    /// There is more that is due now.
    pub(crate) again: bool,
}

/// Where the queues stand as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Leading,
    /// Somebody else hands things out.
    Following,
    /// Nothing is handed out any more; what is in flight may settle.
    Stopping,
}

/// The two queues.
#[derive(Debug)]
pub(crate) struct ExpiryQueues<K> {
    limits: Limits,
    mode: Mode,
    entries: BTreeMap<K, Entry>,
    /// By due time and insertion.
    waiting: BTreeMap<(Timestamp, u64), K>,
    /// What is pending, by the time at which something has to be done about it: the next try, or the end of the attempt's time.
    pending: BTreeMap<(Timestamp, u64), K>,
    insertions: u64,
    in_flight: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    revision: Seq,
    due: Timestamp,
    insertion: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    InFlight { attempt: Attempt, until: Timestamp },
    Failed { attempt: Attempt, next_try: Timestamp },
}

impl<K: Ord + Clone> ExpiryQueues<K> {
    pub(crate) fn new(limits: Limits) -> Self {
        let (entries, waiting, pending) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        ExpiryQueues { limits, mode: Mode::default(), entries, waiting, pending, insertions: 0, in_flight: 0 }
    }

    /// Adds an entry, or gives it another time. One of an older revision is ignored; one that is pending waits again, and what comes of its
    /// attempt in flight is of no concern any more.
    pub(crate) fn update(&mut self, key: K, revision: Seq, due: Timestamp) {
        if self.entries.get(&key).is_some_and(|entry| entry.revision > revision) {
            return;
        }
        self.remove(&key);
        self.insertions += 1;
        let entry = Entry { revision, due, insertion: self.insertions, state: State::Waiting };
        self.waiting.insert((due, entry.insertion), key.clone());
        self.entries.insert(key, entry);
    }

    /// True if there is an entry of that revision or a newer one.
    pub(crate) fn holds(&self, key: &K, revision: Seq) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.revision >= revision)
    }

    /// Forgets an entry, wherever it is. False if there is none.
    pub(crate) fn remove(&mut self, key: &K) -> bool {
        let Some(entry) = self.entries.remove(key) else { return false };
        self.unlink(&entry);
        true
    }

    /// Hands out what is due: what has failed and is to be tried again, then what is due for the first time; so many of each at the most.
    pub(crate) fn pass(&mut self, now: Timestamp) -> Pass<K> {
        if self.mode != Mode::Leading {
            return Pass { handed: Vec::new(), again: false };
        }
        let retries = due(&self.pending, now, self.limits.retry_batch);
        let firsts = due(&self.waiting, now, self.limits.expire_batch);
        let handed = retries.into_iter().chain(firsts).filter_map(|key| self.hand_out(key, now)).collect();
        let again = self.next_at().is_some_and(|next| next <= now);
        Pass { handed, again }
    }

    /// It is done, and gone. False if that is not what is in flight: it was updated, removed, or settled already.
    pub(crate) fn settle(&mut self, key: &K, revision: Seq) -> bool {
        self.pending_of(key, revision).is_some() && self.remove(key)
    }

    /// That attempt has failed: it is to be tried again then. False if that is not what is in flight.
    pub(crate) fn fail(&mut self, key: &K, revision: Seq, attempt: Attempt, next_try: Timestamp) -> bool {
        match self.pending_of(key, revision) {
            Some(entry @ Entry { state: State::InFlight { attempt: mine, .. }, .. }) if mine == attempt => {
                self.put(key.clone(), entry, State::Failed { attempt, next_try });
                true
            }
            _ => false,
        }
    }

    /// When the next pass has something to do, over both queues.
    pub(crate) fn next_at(&self) -> Option<Timestamp> {
        if self.mode != Mode::Leading {
            return None;
        }
        let first = |queue: &BTreeMap<(Timestamp, u64), K>| queue.keys().next().map(|(at, _)| *at);
        [first(&self.waiting), first(&self.pending)].into_iter().flatten().min()
    }

    /// Somebody else hands things out from here on: all that is pending waits again, in its old place.
    pub(crate) fn follow(&mut self) {
        self.mode = Mode::Following;
        for key in std::mem::take(&mut self.pending).into_values() {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.state = State::Waiting;
                self.waiting.insert((entry.due, entry.insertion), key);
            }
        }
        self.in_flight = 0;
    }

    /// Things are handed out here again.
    pub(crate) fn lead(&mut self) {
        self.mode = Mode::Leading;
    }

    /// Nothing is handed out any more; what is in flight may settle.
    pub(crate) fn stop(&mut self) {
        self.mode = Mode::Stopping;
    }

    /// How many were handed out and are neither settled nor reported as failed.
    #[cfg(test)]
    fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// How many there are in all.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn hand_out(&mut self, key: K, now: Timestamp) -> Option<Handed<K>> {
        let entry = *self.entries.get(&key)?;
        let attempt = match entry.state {
            State::Waiting => 1,
            State::InFlight { attempt, .. } | State::Failed { attempt, .. } => attempt.saturating_add(1),
        };
        self.put(key.clone(), entry, State::InFlight { attempt, until: now.saturating_add(self.limits.attempt_timeout) });
        Some(Handed { key, revision: entry.revision, attempt, due: entry.due })
    }

    fn pending_of(&self, key: &K, revision: Seq) -> Option<Entry> {
        self.entries
            .get(key)
            .copied()
            .filter(|entry| entry.revision == revision && entry.state != State::Waiting)
    }

    /// Gives an entry its place according to its new state.
    fn put(&mut self, key: K, entry: Entry, state: State) {
        self.unlink(&entry);
        let entry = Entry { state, ..entry };
        let (at, queue) = match state {
            State::Waiting => (entry.due, &mut self.waiting),
            State::InFlight { until, .. } => (until, &mut self.pending),
            State::Failed { next_try, .. } => (next_try, &mut self.pending),
        };
        queue.insert((at, entry.insertion), key.clone());
        self.in_flight += usize::from(matches!(state, State::InFlight { .. }));
        self.entries.insert(key, entry);
    }

    /// Takes an entry out of the queue that it is in.
    fn unlink(&mut self, entry: &Entry) {
        let _was_there = match entry.state {
            State::Waiting => self.waiting.remove(&(entry.due, entry.insertion)),
            State::InFlight { until, .. } => self.pending.remove(&(until, entry.insertion)),
            State::Failed { next_try, .. } => self.pending.remove(&(next_try, entry.insertion)),
        };
        self.in_flight -= usize::from(matches!(entry.state, State::InFlight { .. }));
    }
}

fn due<K: Clone>(queue: &BTreeMap<(Timestamp, u64), K>, now: Timestamp, limit: usize) -> Vec<K> {
    queue.range(..=(now, u64::MAX)).take(limit).map(|(_, key)| key.clone()).collect()
}

#[cfg(test)]
mod tests;
