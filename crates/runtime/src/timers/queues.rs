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

use hashbrown::HashTable;
use slab::Slab;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::time::Duration;
use steadfast_kernel::{Attempt, Seq, Timestamp};

/// The limits of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// How many that are due are handed out at once.
    pub(crate) expire_batch: usize,
    /// How many that have failed are handed out again at once.
    pub(crate) retry_batch: usize,
    /// How many may be in flight for the first time before more are handed out: when a million are due, they do not all come into memory at once. What has failed
    /// or was silent before does not count, and holds nobody up.
    pub(crate) in_flight_max: usize,
    /// What was handed out and not settled for this long has failed.
    pub(crate) attempt_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { expire_batch: 50, retry_batch: 10, in_flight_max: 1_000, attempt_timeout: Duration::from_secs(30) }
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
    /// Every entry once; everything else refers to its place here. There may be millions: what one takes is what matters.
    entries: Slab<Entry<K>>,
    /// The places by key. It is only looked into, never walked.
    places: HashTable<Place>,
    hasher: RandomState,
    /// By due time and insertion.
    waiting: Queue,
    /// What is pending, by the time at which something has to be done about it: the next try, or the end of the attempt's time.
    pending: Queue,
    insertions: u64,
    /// How many are in flight for the first time.
    fresh: usize,
}

type Place = u32;

type Queue = BTreeMap<(Timestamp, u64), Place>;

#[derive(Debug)]
struct Entry<K> {
    key: K,
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

impl State {
    fn is_fresh(self) -> bool {
        matches!(self, State::InFlight { attempt: 1, .. })
    }
}

impl<K: Eq + Hash + Clone> ExpiryQueues<K> {
    pub(crate) fn new(limits: Limits) -> Self {
        ExpiryQueues {
            limits,
            mode: Mode::default(),
            entries: Slab::new(),
            places: HashTable::new(),
            hasher: RandomState::new(),
            waiting: Queue::new(),
            pending: Queue::new(),
            insertions: 0,
            fresh: 0,
        }
    }

    /// Adds an entry, or gives it another time. One of an older revision is ignored; one that is pending waits again, and what comes of its
    /// attempt in flight is of no concern any more.
    pub(crate) fn update(&mut self, key: K, revision: Seq, due: Timestamp) {
        if self.get(&key).is_some_and(|entry| entry.revision > revision) {
            return;
        }
        self.remove(&key);
        self.insertions += 1;
        let hash = self.hasher.hash_one(&key);
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(self.entries.len() / 8 + 16); // doubling would leave up to half of it empty
        }
        let place = self.entries.insert(Entry { key, revision, due, insertion: self.insertions, state: State::Waiting }) as Place;
        self.waiting.insert((due, self.insertions), place);
        let (entries, hasher) = (&self.entries, &self.hasher);
        self.places.insert_unique(hash, place, |place| hasher.hash_one(&entries[*place as usize].key));
    }

    /// True if there is an entry of that revision or a newer one.
    pub(crate) fn holds(&self, key: &K, revision: Seq) -> bool {
        self.get(key).is_some_and(|entry| entry.revision >= revision)
    }

    /// Forgets an entry, wherever it is. False if there is none.
    pub(crate) fn remove(&mut self, key: &K) -> bool {
        let (hash, entries) = (self.hasher.hash_one(key), &self.entries);
        let Ok(found) = self.places.find_entry(hash, |place| entries[*place as usize].key == *key) else { return false };
        let (place, _) = found.remove();
        self.unlink(place);
        self.entries.remove(place as usize);
        true
    }

    /// Hands out what is due: what has failed and is to be tried again, then what is due for the first time; so many of each at the most.
    pub(crate) fn pass(&mut self, now: Timestamp) -> Pass<K> {
        if self.mode != Mode::Leading {
            return Pass { handed: Vec::new(), again: false };
        }
        let retries = due(&self.pending, now, self.limits.retry_batch);
        let firsts = due(&self.waiting, now, self.limits.expire_batch.min(self.room()));
        let handed = retries.into_iter().chain(firsts).map(|place| self.hand_out(place, now)).collect();
        let again = self.next_at().is_some_and(|next| next <= now);
        Pass { handed, again }
    }

    /// It is done, and gone. False if that is not what is in flight: it was updated, removed, or settled already.
    pub(crate) fn settle(&mut self, key: &K, revision: Seq) -> bool {
        self.get(key).is_some_and(|entry| entry.revision == revision && entry.state != State::Waiting) && self.remove(key)
    }

    /// That attempt has failed: it is to be tried again then. False if that is not what is in flight.
    pub(crate) fn fail(&mut self, key: &K, revision: Seq, attempt: Attempt, next_try: Timestamp) -> bool {
        let Some(place) = self.place(key) else { return false };
        let entry = &self.entries[place as usize];
        let mine = matches!(entry.state, State::InFlight { attempt: mine, .. } if mine == attempt);
        if entry.revision != revision || !mine {
            return false;
        }
        self.put(place, State::Failed { attempt, next_try });
        true
    }

    /// When the next pass has something to do, over both queues.
    pub(crate) fn next_at(&self) -> Option<Timestamp> {
        if self.mode != Mode::Leading {
            return None;
        }
        let first = |queue: &Queue| queue.keys().next().map(|(at, _)| *at);
        let waiting = first(&self.waiting).filter(|_| self.room() > 0);
        [waiting, first(&self.pending)].into_iter().flatten().min()
    }

    /// How many more may be handed out for the first time.
    fn room(&self) -> usize {
        self.limits.in_flight_max.saturating_sub(self.fresh)
    }

    /// Somebody else hands things out from here on: all that is pending waits again, in its old place.
    pub(crate) fn follow(&mut self) {
        self.change(Mode::Following);
        for place in std::mem::take(&mut self.pending).into_values() {
            let entry = &mut self.entries[place as usize];
            entry.state = State::Waiting;
            self.waiting.insert((entry.due, entry.insertion), place);
        }
        self.fresh = 0;
    }

    /// Things are handed out here again.
    pub(crate) fn lead(&mut self) {
        self.change(Mode::Leading);
    }

    /// Nothing is handed out any more, whatever the role becomes; what is in flight may settle.
    pub(crate) fn stop(&mut self) {
        self.mode = Mode::Stopping;
    }

    /// It is not stopped after all; what becomes of it is up to the role.
    pub(crate) fn go_on(&mut self) {
        self.mode = Mode::Following;
    }

    /// Whoever is about to stop takes no other role.
    fn change(&mut self, mode: Mode) {
        if self.mode != Mode::Stopping {
            self.mode = mode;
        }
    }

    /// How many were handed out and are neither settled nor reported as failed.
    #[cfg(test)]
    fn in_flight(&self) -> usize {
        self.entries.iter().filter(|(_, entry)| matches!(entry.state, State::InFlight { .. })).count()
    }

    /// How many there are in all.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn place(&self, key: &K) -> Option<Place> {
        let entries = &self.entries;
        self.places.find(self.hasher.hash_one(key), |place| entries[*place as usize].key == *key).copied()
    }

    fn get(&self, key: &K) -> Option<&Entry<K>> {
        self.place(key).map(|place| &self.entries[place as usize])
    }

    fn hand_out(&mut self, place: Place, now: Timestamp) -> Handed<K> {
        let attempt = match self.entries[place as usize].state {
            State::Waiting => 1,
            State::InFlight { attempt, .. } | State::Failed { attempt, .. } => attempt.saturating_add(1),
        };
        self.put(place, State::InFlight { attempt, until: now.saturating_add(self.limits.attempt_timeout) });
        let entry = &self.entries[place as usize];
        Handed { key: entry.key.clone(), revision: entry.revision, attempt, due: entry.due }
    }

    /// Moves an entry to where its new state belongs.
    fn put(&mut self, place: Place, state: State) {
        self.unlink(place);
        let entry = &mut self.entries[place as usize];
        entry.state = state;
        let (at, queue) = match state {
            State::Waiting => (entry.due, &mut self.waiting),
            State::InFlight { until, .. } => (until, &mut self.pending),
            State::Failed { next_try, .. } => (next_try, &mut self.pending),
        };
        queue.insert((at, entry.insertion), place);
        self.fresh += usize::from(state.is_fresh());
    }

    /// Takes an entry out of the queue that it is in.
    fn unlink(&mut self, place: Place) {
        let entry = &self.entries[place as usize];
        let _was_there = match entry.state {
            State::Waiting => self.waiting.remove(&(entry.due, entry.insertion)),
            State::InFlight { until, .. } => self.pending.remove(&(until, entry.insertion)),
            State::Failed { next_try, .. } => self.pending.remove(&(next_try, entry.insertion)),
        };
        self.fresh -= usize::from(entry.state.is_fresh());
    }
}

fn due(queue: &Queue, now: Timestamp, limit: usize) -> Vec<Place> {
    queue.range(..=(now, u64::MAX)).take(limit).map(|(_, place)| *place).collect()
}

#[cfg(test)]
mod tests;
