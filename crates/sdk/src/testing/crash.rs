//! Where a process dies.

use std::fmt;
use steadfast_store::Batch;
use steadfast_store::memory::Fault;

/// Where a process dies. Commits and events are counted from 1, commits over all processes of a lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Crash {
    /// Just before that commit is durable: what it says is lost.
    BeforeCommit(u64),
    /// Just after that commit is durable: nobody was told.
    AfterCommit(u64),
    /// Just after that event of that run is durable, with what was committed together with it.
    AfterEvent(String, u64),
}

impl Crash {
    pub(super) fn fault(&self) -> Fault {
        match self {
            Crash::BeforeCommit(_) => Fault::CrashBefore,
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
        }
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Crash::BeforeCommit(nth) => write!(f, "a crash before commit {nth}"),
            Crash::AfterCommit(nth) => write!(f, "a crash after commit {nth}"),
            Crash::AfterEvent(run, seq) => write!(f, "a crash after event {seq} of run {run}"),
        }
    }
}
