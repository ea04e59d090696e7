//! What the code of a program has seen, and where in the program it is.

use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// What a sequence of nodes has seen, one entry per node, and the failure that ended it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Trail {
    pub(super) seen: Vec<Seen>,
    pub(super) failed: Option<String>,
}

/// One thing that was seen: in which order over all branches, at which time, and what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) tick: u32,
    pub(super) at: i64,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum What {
    /// What a step returned.
    Output(String),
    Failed(String),
    Slept,
    /// What a signal said.
    Signal(u64),
    TooLate,
    Drew(u64),
    /// The branches of a join, or the rounds of a loop.
    Each(Vec<Trail>),
    /// The winner of a race.
    Won(usize, Trail),
    /// A branch of its own, or a sequence whose failure was caught.
    Within(Trail),
}

/// A branch, as the decision page defines it: a path, and what is counted in it by kind and name.
#[derive(Default)]
pub(super) struct Place {
    pub(super) path: String,
    counts: Mutex<BTreeMap<(&'static str, String), u32>>,
}

impl Place {
    fn at(path: String) -> Self {
        Place { path, ..Place::default() }
    }

    /// Which one of that kind and name this is in the branch, from 1.
    pub(super) fn count(&self, kind: &'static str, name: &str) -> u32 {
        let mut counts = self.counts.lock().expect("not poisoned");
        let count = counts.entry((kind, name.to_string())).or_default();
        *count += 1;
        *count
    }

    /// The id that the next step of that name must have.
    pub(super) fn step(&self, name: &str) -> String {
        self.below(name, self.count("step", name))
    }

    /// The branch that `ctx.branch(name)` must give.
    pub(super) fn branch(&self, name: &str) -> Place {
        Place::at(self.below(name, self.count("branch", name)))
    }

    /// The branches that a join, race or the like must give.
    pub(super) fn branches(&self, kind: &str, how_many: usize) -> Vec<Place> {
        let fork = self.branch(kind).path;
        (0..how_many).map(|index| Place::at(format!("{fork}.{index}"))).collect()
    }

    fn below(&self, name: &str, occurrence: u32) -> String {
        let slash = if self.path.is_empty() { "" } else { "/" };
        format!("{}{slash}{name}#{occurrence}", self.path)
    }
}

/// An attempt that was made.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Made {
    /// Under which engine of this run.
    pub(super) life: u32,
    pub(super) step: String,
    pub(super) attempt: u32,
    pub(super) undo: bool,
}

thread_local! {
    // Everything of a run happens on one thread, so that threads can check programs side by side.
    static MADE: RefCell<(u32, Vec<Made>)> = RefCell::default();
}

/// Forgets all attempts; a new run is about to begin.
pub(super) fn forget() {
    MADE.with_borrow_mut(|made| *made = (0, Vec::new()));
}

/// A new engine is about to go on with the run. Tells which it is, from 1.
pub(super) fn next_life() -> u32 {
    MADE.with_borrow_mut(|made| {
        made.0 += 1;
        made.0
    })
}

/// Under which engine code begins now.
pub(super) fn life() -> u32 {
    MADE.with_borrow(|made| made.0)
}

pub(super) fn note(attempt: Made) {
    MADE.with_borrow_mut(|made| made.1.push(attempt));
}

/// Every attempt since the last [`forget`].
pub(super) fn made() -> Vec<Made> {
    MADE.with_borrow(|made| made.1.clone())
}
