//! Why a run does not move now: a closed set, each reason with its data.

use crate::{Attempt, Failure, Seq, StepId, Timestamp, WorkflowName};

/// Why a run does not move now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A step has failed and is tried again later.
    Backoff {
        /// The step.
        step: StepId,
        /// The attempt to come.
        attempt: Attempt,
        /// How many attempts there are in all.
        of: Attempt,
        /// When it is made.
        due_at: Timestamp,
        /// Why the attempt before it failed.
        failure: Failure,
    },
    /// The code sleeps.
    Timer {
        /// Until then.
        due_at: Timestamp,
    },
    /// The code waits to be told something.
    Signal {
        /// The signal's name.
        name: String,
        /// Until then at the most.
        until: Option<Timestamp>,
    },
    /// Nobody knows whether that attempt happened; its probe or a person has to say.
    InDoubt {
        /// The step.
        step: StepId,
        /// The attempt.
        attempt: Attempt,
    },
    /// No code of that name is registered here.
    NoWorker {
        /// The workflow that is missing.
        workflow: WorkflowName,
    },
    /// The code asks for something else than the journal holds.
    Mismatch {
        /// The event at which they part.
        at: Seq,
        /// What the journal holds.
        expected: String,
        /// What the code did.
        found: String,
    },
}

impl Wait {
    /// The public name of the reason.
    pub fn reason(&self) -> &'static str {
        match self {
            Wait::Backoff { .. } => "BACKOFF",
            Wait::Timer { .. } => "TIMER",
            Wait::Signal { .. } => "SIGNAL",
            Wait::InDoubt { .. } => "IN_DOUBT",
            Wait::NoWorker { .. } => "NO_WORKER",
            Wait::Mismatch { .. } => "MISMATCH",
        }
    }

    /// When it ends by itself, if it does.
    pub fn due_at(&self) -> Option<Timestamp> {
        match self {
            Wait::Backoff { due_at, .. } | Wait::Timer { due_at } => Some(*due_at),
            Wait::Signal { until, .. } => *until,
            Wait::InDoubt { .. } | Wait::NoWorker { .. } | Wait::Mismatch { .. } => None,
        }
    }
}
