//! What happened to a run. Events are past tense; their types are upper snake in the store and in public.

use crate::random::Seed;
use crate::{Attempt, Epoch, Failure, Payload, Seq, StepId, TimerName, Timestamp, WorkflowName};
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
    /// What the code no longer waits for, and what must not fire any more; only on what ends a turn.
    pub abandoned: Vec<TimerName>,
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
        /// It has to be undone if the run does not complete.
        undoable: bool,
    },
    /// An attempt of a step that is not repeatable is about to begin.
    StepStarted {
        /// The step.
        step: StepId,
        /// The attempt.
        attempt: Attempt,
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
    /// The code waits for a signal.
    SignalAwaited {
        /// The wait.
        wait: StepId,
        /// The signal's name.
        name: String,
        /// Until then at the most.
        until: Option<Timestamp>,
    },
    /// A signal has arrived.
    SignalReceived {
        /// Its name.
        name: String,
        /// What tells it from others, if the sender said so.
        id: Option<String>,
        /// What it says.
        payload: Payload,
    },
    /// A signal has been given to the code.
    SignalTaken {
        /// The wait.
        wait: StepId,
        /// The sequence of its arrival.
        signal: Seq,
    },
    /// Somebody wants the run to end.
    RunCancelRequested {
        /// Who.
        by: Option<String>,
        /// Why.
        why: Option<String>,
    },
    /// The code is over, and what it did is being undone.
    RunCompensating {
        /// Why; nothing if the run was cancelled.
        failure: Option<Failure>,
    },
    /// A step is undone.
    UndoCompleted {
        /// The step.
        step: StepId,
        /// The attempt that succeeded.
        attempt: Attempt,
    },
    /// A step cannot be undone; a person has to look at it.
    UndoFailed {
        /// The step.
        step: StepId,
        /// The last attempt.
        attempt: Attempt,
        /// Why.
        failure: Failure,
    },
    /// The run was called off.
    RunCancelled,
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
            Event::StepStarted { .. } => "STEP_STARTED",
            Event::StepCompleted { .. } => "STEP_COMPLETED",
            Event::StepFailed { .. } => "STEP_FAILED",
            Event::RetryScheduled { .. } => "RETRY_SCHEDULED",
            Event::TimerSet { .. } => "TIMER_SET",
            Event::TimerFired { .. } => "TIMER_FIRED",
            Event::SignalAwaited { .. } => "SIGNAL_AWAITED",
            Event::SignalReceived { .. } => "SIGNAL_RECEIVED",
            Event::SignalTaken { .. } => "SIGNAL_TAKEN",
            Event::RunCancelRequested { .. } => "RUN_CANCEL_REQUESTED",
            Event::RunCompensating { .. } => "RUN_COMPENSATING",
            Event::UndoCompleted { .. } => "UNDO_COMPLETED",
            Event::UndoFailed { .. } => "UNDO_FAILED",
            Event::RunCancelled => "RUN_CANCELLED",
            Event::RunCompleted { .. } => "RUN_COMPLETED",
            Event::RunFailed { .. } => "RUN_FAILED",
        }
    }

    /// The step or sleep it is about.
    pub fn subject(&self) -> Option<&StepId> {
        match self {
            Event::StepStarted { step, .. }
            | Event::StepCompleted { step, .. }
            | Event::StepFailed { step, .. }
            | Event::RetryScheduled { step, .. }
            | Event::UndoCompleted { step, .. }
            | Event::UndoFailed { step, .. } => Some(step),
            Event::TimerSet { sleep, .. } | Event::TimerFired { sleep } => Some(sleep),
            Event::SignalAwaited { wait, .. } | Event::SignalTaken { wait, .. } => Some(wait),
            Event::RunStarted { .. }
            | Event::SignalReceived { .. }
            | Event::RunCancelRequested { .. }
            | Event::RunCompensating { .. }
            | Event::RunCancelled
            | Event::RunCompleted { .. }
            | Event::RunFailed { .. } => None,
        }
    }

    /// True if nothing can follow it in its epoch.
    pub fn is_end(&self) -> bool {
        matches!(self, Event::RunCompleted { .. } | Event::RunFailed { .. } | Event::RunCancelled)
    }
}
