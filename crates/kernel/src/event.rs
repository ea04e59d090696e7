//! What happened to a run. Events are past tense; their types are upper snake in the store and in public.

use crate::random::Seed;
use crate::{Attempt, Epoch, Failure, Payload, Seq, StepId, Timestamp, WorkflowName};
use std::time::Duration;

/// An event with its place in the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Counted from 1 per run, without gaps.
    pub seq: Seq,
    /// Which life of the run.
    pub epoch: Epoch,
    /// When; for what a turn delivered, the time of delivery, which is what the code sees as `now`.
    pub at: Timestamp,
    /// How many attempts are in flight after it; only on what ends a report of the host.
    pub in_flight: Option<u32>,
    /// What.
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The run exists.
    RunStarted {
        /// The code it executes.
        workflow: WorkflowName,
        /// What the code is given.
        input: Payload,
        /// Where its chance comes from.
        seed: Seed,
        /// When it must be over.
        deadline_at: Option<Timestamp>,
    },
    /// A step has its result.
    StepCompleted {
        /// The step.
        step: StepId,
        /// The attempt that succeeded.
        attempt: Attempt,
        /// What it returned.
        output: Payload,
    },
    /// A step has failed for good.
    StepFailed {
        /// The step.
        step: StepId,
        /// The last attempt.
        attempt: Attempt,
        /// What the code is told.
        failure: Failure,
    },
    /// An attempt has failed and another one will be made.
    RetryScheduled {
        /// The step.
        step: StepId,
        /// The attempt to come.
        attempt: Attempt,
        /// How many attempts there are in all.
        of: Attempt,
        /// The delay that was drawn.
        delay: Duration,
        /// When the attempt to come starts.
        due_at: Timestamp,
        /// Why the attempt before it failed.
        failure: Failure,
    },
    /// The code sleeps.
    TimerSet {
        /// The sleep.
        sleep: StepId,
        /// Until then.
        due_at: Timestamp,
    },
    /// A sleep is over.
    TimerFired {
        /// The sleep.
        sleep: StepId,
    },
    /// The run has its result.
    RunCompleted {
        /// What the code returned.
        output: Payload,
    },
    /// The run has failed.
    RunFailed {
        /// Why.
        failure: Failure,
    },
}

impl Event {
    /// The stored and public type.
    pub fn kind(&self) -> &'static str {
        match self {
            Event::RunStarted { .. } => "RUN_STARTED",
            Event::StepCompleted { .. } => "STEP_COMPLETED",
            Event::StepFailed { .. } => "STEP_FAILED",
            Event::RetryScheduled { .. } => "RETRY_SCHEDULED",
            Event::TimerSet { .. } => "TIMER_SET",
            Event::TimerFired { .. } => "TIMER_FIRED",
            Event::RunCompleted { .. } => "RUN_COMPLETED",
            Event::RunFailed { .. } => "RUN_FAILED",
        }
    }

    /// The step or sleep it is about.
    pub fn subject(&self) -> Option<&StepId> {
        match self {
            Event::StepCompleted { step, .. } | Event::StepFailed { step, .. } | Event::RetryScheduled { step, .. } => Some(step),
            Event::TimerSet { sleep, .. } | Event::TimerFired { sleep } => Some(sleep),
            Event::RunStarted { .. } | Event::RunCompleted { .. } | Event::RunFailed { .. } => None,
        }
    }

    /// True if nothing can follow it in its epoch.
    pub fn is_end(&self) -> bool {
        matches!(self, Event::RunCompleted { .. } | Event::RunFailed { .. })
    }
}
