//! A lane per target: what waits for its turn there, and how many are in flight. Pure: it says what to begin, and hears what became of it.
//!
//! ```text
//!   add --> waiting --a turn is free in its lane--> in flight --finished--> reported --on record--> forgotten
//! ```
//!
//! Lanes do not wait for each other. Nothing is twice in them: what is waiting, in flight or reported is not added again, so that a timer that is told twice or
//! rows that are read again do no harm.
//!
//! Tested by `crates/sdk/tests/it/keys/traps.rs`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use steadfast_kernel::{Attempt, Callback, KeyName, Revision};

/// The name of a lane.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    /// Whoever answers at addresses of that target.
    Target(String),
    /// The starts of runs.
    Runs,
    /// The handler of that prefix.
    Handler(String),
    /// There is no handler here: it waits until there is.
    NoHandler,
    /// The keys below directories that have ended.
    Below,
}

/// What an attempt says of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// It is well.
    Well,
    /// It does not work now.
    Sick,
    /// Nothing: the target was not asked, or it is about this one errand.
    Neither,
}

/// One attempt to be made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Errand {
    pub(crate) key: KeyName,
    pub(crate) revision: Revision,
    pub(crate) attempt: Attempt,
    /// What is to be told. Where many wait it is let go, and read again when it is their turn.
    pub(crate) callback: Option<Box<Callback>>,
    /// The keys below it, if it is a directory, have ended: what is left is to tell who is to be told.
    pub(crate) walked: bool,
}

/// How many may wait in a lane with what they have to tell.
const HELD_MAX: usize = 1_000;

/// All lanes.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: BTreeMap<Lane, Waiting>,
    known: BTreeSet<(KeyName, Revision)>,
    in_flight_max: usize,
    /// Nothing is begun: somebody else leads, or the engine is about to stop.
    held: bool,
}

#[derive(Debug)]
struct Waiting {
    line: VecDeque<Errand>,
    in_flight: usize,
    /// How many may be in flight now: one less after each failure that may pass, one more after each success. A target that is down is not called by many at once.
    turns: usize,
}

impl Lanes {
    pub(crate) fn new(in_flight_max: usize) -> Self {
        Lanes { lanes: BTreeMap::new(), known: BTreeSet::new(), in_flight_max, held: false }
    }

    /// Puts an errand in its lane. It is given back if it is its turn at once.
    #[must_use]
    pub(crate) fn add(&mut self, lane: &Lane, errand: Errand) -> Option<Errand> {
        if self.held || !self.known.insert((errand.key.clone(), errand.revision)) {
            return None;
        }
        self.line_up(lane, errand)
    }

    /// Puts an errand that has had its turn in one lane into another.
    #[must_use]
    pub(crate) fn pass_on(&mut self, lane: &Lane, errand: Errand) -> Option<Errand> {
        if self.held {
            self.forget(&errand.key, errand.revision);
            return None;
        }
        self.line_up(lane, errand)
    }

    fn line_up(&mut self, lane: &Lane, mut errand: Errand) -> Option<Errand> {
        let turns = self.in_flight_max;
        let waiting = self
            .lanes
            .entry(lane.clone())
            .or_insert_with(|| Waiting { line: VecDeque::new(), in_flight: 0, turns });
        if waiting.line.len() >= HELD_MAX {
            errand.callback = None;
        }
        waiting.line.push_back(errand);
        self.next(lane)
    }

    /// An attempt is over: those that are next in its lane.
    #[must_use]
    pub(crate) fn finished(&mut self, lane: &Lane, how: How) -> Vec<Errand> {
        if let Some(waiting) = self.lanes.get_mut(lane) {
            waiting.in_flight = waiting.in_flight.saturating_sub(1);
            waiting.turns = match how {
                How::Well => (waiting.turns + 1).min(self.in_flight_max),
                How::Sick => waiting.turns.saturating_sub(1).max(1),
                How::Neither => waiting.turns,
            };
        }
        let next = std::iter::from_fn(|| self.next(lane)).collect();
        if self.lanes.get(lane).is_some_and(|waiting| waiting.line.is_empty() && waiting.in_flight == 0) {
            self.lanes.remove(lane);
        }
        next
    }

    /// What became of it is on record: it may come again.
    pub(crate) fn forget(&mut self, key: &KeyName, revision: Revision) {
        self.known.remove(&(key.clone(), revision));
    }

    /// There is a handler where there was none: what waited for one, to be added again.
    #[must_use]
    pub(crate) fn unhandled(&mut self) -> Vec<Errand> {
        let waited: Vec<_> = self.lanes.remove(&Lane::NoHandler).map(|waiting| waiting.line.into()).unwrap_or_default();
        for errand in &waited {
            self.known.remove(&(errand.key.clone(), errand.revision));
        }
        waited
    }

    /// Nothing is begun from here on, and what waits is let go: the store has it.
    pub(crate) fn hold(&mut self) {
        self.held = true;
        for waiting in self.lanes.values_mut() {
            for errand in waiting.line.drain(..) {
                self.known.remove(&(errand.key, errand.revision));
            }
        }
    }

    /// Whether nothing is begun.
    pub(crate) fn is_held(&self) -> bool {
        self.held
    }

    /// Things are begun here again.
    pub(crate) fn go_on(&mut self) {
        self.held = false;
    }

    /// How many attempts are in flight, or over and not yet on record.
    pub(crate) fn unsettled(&self) -> usize {
        let waiting: usize = self.lanes.values().map(|waiting| waiting.line.len()).sum();
        self.known.len().saturating_sub(waiting)
    }

    fn next(&mut self, lane: &Lane) -> Option<Errand> {
        if self.held || *lane == Lane::NoHandler {
            return None;
        }
        let waiting = self.lanes.get_mut(lane).filter(|waiting| waiting.in_flight < waiting.turns)?;
        let next = waiting.line.pop_front()?;
        waiting.in_flight += 1;
        Some(next)
    }
}

#[cfg(test)]
mod tests;
