//! Where a process dies.

use super::meddler::is_meant;
use std::fmt;
use steadfast_kernel::{Entry, Event};
use steadfast_store::memory::Fault;
use steadfast_store::{Append, Batch};

/// Where a process dies. Commits and events are counted from 1, commits over all processes of a lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Crash {
    /// Just before that commit is durable: what it says is lost.
    BeforeCommit(u64),
    /// Just after that commit is durable: nobody was told.
    AfterCommit(u64),
    /// Just after that event of that run is durable, with what was committed together with it.
    AfterEvent(String, u64),
    /// Just before it is durable that that step has completed: its work is done, and nobody knows. The step is named as in
    /// [`Lab::fail_attempt`](super::Lab::fail_attempt).
    BeforeOutcome(String),
}

impl Crash {
    pub(super) fn fault(&self) -> Fault {
        match self {
            Crash::BeforeCommit(_) | Crash::BeforeOutcome(_) => Fault::CrashBefore,
            Crash::AfterCommit(_) | Crash::AfterEvent(..) => Fault::CrashAfter,
        }
    }

    /// Whether this is the commit, after so many.
    pub(super) fn is_at(&self, commits: u64, batch: &Batch) -> bool {
        match self {
            Crash::BeforeCommit(nth) | Crash::AfterCommit(nth) => commits + 1 == *nth,
            Crash::AfterEvent(run, seq) => batch
                .events
                .iter()
                .any(|append| append.record.seq == *seq && append.entity.run().is_some_and(|id| id.as_str() == run)),
            Crash::BeforeOutcome(wanted) => batch.events.iter().filter_map(outcome_of).any(|step| is_meant(&step, wanted)),
        }
    }
}

/// The step, or its undo, that has completed with that.
fn outcome_of(append: &Append) -> Option<String> {
    match Entry::try_from(&append.record).ok()?.event {
        Event::StepCompleted { step, .. } => Some(step.to_string()),
        Event::UndoCompleted { step, .. } => Some(step.undo().to_string()),
        _ => None,
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Crash::BeforeCommit(nth) => write!(f, "a crash before commit {nth}"),
            Crash::AfterCommit(nth) => write!(f, "a crash after commit {nth}"),
            Crash::BeforeOutcome(step) => write!(f, "a crash before it is on record that {step} has completed"),
            Crash::AfterEvent(run, seq) => write!(f, "a crash after event {seq} of run {run}"),
        }
    }
}
