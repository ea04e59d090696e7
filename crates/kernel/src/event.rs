//! What happened to an entity. Events are past tense; their types are upper snake in the store and in public.

mod retried;

pub use retried::Retried;

use crate::key::Held;
use crate::lock::LockEvent;
use crate::plan::PlanEvent;
use crate::random::Seed;
use crate::task::TaskEvent;
use crate::{
    Attempt, EntityId, Epoch, Failure, KeyName, Letter, LimitKey, Origin, Payload, Revision, RunId, RunOptions, Seq, StepId, TimerName,
    Timestamp, WorkflowName,
};
use std::time::Duration;

/// An event with its place in the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Counted from 1 per entity, without gaps.
    pub seq: Seq,
    /// Which life of the run.
    pub epoch: Epoch,
    /// When; for what a turn delivered, the time of delivery, which is what the code sees as `now`.
    pub at: Timestamp,
    /// How many attempts are in flight after it; only on what ends a report of the host.
    pub in_flight: Option<u32>,
    /// How many attempts begin when the run is resumed; only on what ends a report of the host.
    pub held: u32,
    /// What the code no longer waits for, and what must not fire any more; only on what ends a turn. A child is named as a sleep is.
    pub abandoned: Vec<TimerName>,
    /// The message that it came of, if it came of one.
    pub heard: Option<Heard>,
    /// What.
    pub event: Event,
}

/// A message that was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Who said it.
    pub from: EntityId,
    /// Its place in the sender's outbox.
    pub seq: u64,
}

impl Entry {
    /// An entry that says nothing but the event.
    pub fn new(seq: Seq, epoch: Epoch, at: Timestamp, event: Event) -> Self {
        Entry { seq, epoch, at, in_flight: None, held: 0, abandoned: Vec::new(), heard: None, event }
    }
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
        /// What else is known of it.
        options: RunOptions,
    },
    /// The run has a slot of a limit.
    SlotAcquired {
        /// The limit.
        key: LimitKey,
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
        /// What that attempt said last of how far it had come.
        details: Option<Payload>,
    },
    /// A step is left out, because it is not needed this time.
    StepSkipped {
        /// The step.
        step: StepId,
    },
    /// An attempt says how far it has come.
    StepHeartbeat {
        /// The step.
        step: StepId,
        /// The attempt.
        attempt: Attempt,
        /// What it says.
        details: Payload,
    },
    /// The code says how far it has come.
    ProgressNoted {
        /// Which note.
        note: StepId,
        /// What it says.
        text: String,
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
        /// It is a person's yes or no, and these roles may say it; with none of them, everybody may.
        approval: Option<Vec<String>>,
    },
    /// A signal has arrived.
    SignalReceived {
        /// Its name.
        name: String,
        /// What tells it from others, if the sender said so.
        id: Option<String>,
        /// What it says.
        payload: Payload,
        /// Who sent it.
        by: Option<String>,
        /// Why.
        why: Option<String>,
    },
    /// A signal has been given to the code.
    SignalTaken {
        /// The wait.
        wait: StepId,
        /// The sequence of its arrival.
        signal: Seq,
    },
    /// The code has another run started.
    ChildStarted {
        /// What the code knows it by.
        child: StepId,
        /// Its id.
        run: RunId,
        /// The code it executes.
        workflow: WorkflowName,
        /// What that code is given.
        input: Payload,
        /// How long it may take in all.
        deadline: Option<Duration>,
        /// What else is known of it.
        options: RunOptions,
    },
    /// A child has ended.
    ChildEnded {
        /// What the code knows it by.
        child: StepId,
        /// How.
        outcome: Result<Payload, Failure>,
    },
    /// The outcome of a child has been given to the code.
    ChildTaken {
        /// What the code knows it by.
        child: StepId,
    },
    /// Nothing new is begun until the run is resumed.
    RunPaused {
        /// Who wants it, and why.
        origin: Origin,
    },
    /// It goes on with the time that was left.
    RunResumed {
        /// Who wants it, and why.
        origin: Origin,
    },
    /// The process died with an attempt in flight or in backoff, and the run does not go on by itself.
    RunInterrupted,
    /// Another life of the run begins; it keeps what is not discarded.
    RunRetried(Box<Retried>),
    /// The code begins again with another input and without a past.
    RunContinued {
        /// What the code is given.
        input: Payload,
    },
    /// Somebody wants the run to end.
    RunCancelRequested {
        /// Who wants it, and why.
        origin: Origin,
        /// At once, and nothing is undone.
        terminate: bool,
        /// Of a task: what it did is to be undone, which is not done otherwise.
        undo: bool,
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
    /// Of a limit: a run asks for a slot.
    SlotRequested {
        /// The run.
        run: RunId,
        /// The epoch in which it asks.
        epoch: Epoch,
        /// How many slots there are from here on.
        slots: u32,
    },
    /// Of a limit: a run has a slot.
    SlotGranted {
        /// The run.
        run: RunId,
    },
    /// Of a limit: a run has given its slot back, or no longer waits for one.
    SlotReleased {
        /// The run.
        run: RunId,
    },
    /// Of a letter box or a key: something that nobody will try again by itself.
    LetterAdded(Box<Letter>),
    /// Of a letter box or a key: it is tried again.
    LetterRedriven {
        /// The sequence of its arrival.
        letter: Seq,
        /// Who wants it, and why; of a step's letter the run knows.
        origin: Origin,
    },
    /// Of a letter box or a key: a person does not want it any more.
    LetterDropped {
        /// The sequence of its arrival.
        letter: Seq,
        /// Who, and why.
        origin: Origin,
    },
    /// Of a route: a message of a letter came again, or was tried again, and failed again.
    LetterFailed {
        /// The sequence of its arrival.
        letter: Seq,
        /// How many attempts there were in all.
        attempt: Attempt,
        /// Why the last one failed.
        failure: Failure,
    },
    /// Of a key: it has this value.
    KeyPut(Box<Held>),
    /// Of a key: it ends later, or sooner.
    KeyRenewed {
        /// Which change of it.
        revision: Revision,
        /// For how long it lives from here on.
        ttl: Duration,
        /// Until then.
        expires_at: Timestamp,
        /// Now and then all of it is said again, so that what came before need not be kept.
        restated: Option<Box<Held>>,
    },
    /// Of a key: somebody removed it.
    KeyDeleted {
        /// The revision that is gone.
        revision: Revision,
        /// The directory that it was removed with.
        with: Option<KeyName>,
    },
    /// Of a key: its time is over.
    KeyExpired {
        /// The revision that is gone.
        revision: Revision,
        /// When its time was over.
        ended_at: Timestamp,
        /// The process has a handler for it, though the key does not say so.
        handled: bool,
        /// The directory that it expired with.
        with: Option<KeyName>,
    },
    /// Of a key: nobody could be told of an expiry, and it will be tried again.
    CallbackFailed {
        /// The revision that expired.
        revision: Revision,
        /// The attempt that failed.
        attempt: Attempt,
        /// How many attempts there are in all.
        of: Attempt,
        /// The delay that was drawn.
        delay: Duration,
        /// When the next attempt starts.
        due_at: Timestamp,
        /// Why.
        failure: Failure,
    },
    /// Of a key: an expiry was told.
    CallbackSettled {
        /// The revision that expired.
        revision: Revision,
        /// The attempt that succeeded.
        attempt: Attempt,
        /// The run that was started.
        run: Option<RunId>,
    },
    /// Of a run that is a task.
    Task(Box<TaskEvent>),
    /// Of a plan.
    Plan(Box<PlanEvent>),
    /// Of a lock.
    Lock(Box<LockEvent>),
}

impl Event {
    /// The stored and public type.
    pub fn kind(&self) -> &'static str {
        match self {
            Event::RunStarted { .. } => "RUN_STARTED",
            Event::StepStarted { .. } => "STEP_STARTED",
            Event::StepCompleted { .. } => "STEP_COMPLETED",
            Event::StepFailed { .. } => "STEP_FAILED",
            Event::StepSkipped { .. } => "STEP_SKIPPED",
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
            Event::SlotAcquired { .. } => "SLOT_ACQUIRED",
            Event::StepHeartbeat { .. } => "STEP_HEARTBEAT",
            Event::ProgressNoted { .. } => "PROGRESS_NOTED",
            Event::ChildStarted { .. } => "CHILD_STARTED",
            Event::ChildEnded { .. } => "CHILD_ENDED",
            Event::ChildTaken { .. } => "CHILD_TAKEN",
            Event::RunPaused { .. } => "RUN_PAUSED",
            Event::RunResumed { .. } => "RUN_RESUMED",
            Event::RunInterrupted => "RUN_INTERRUPTED",
            Event::RunRetried(_) => "RUN_RETRIED",
            Event::RunContinued { .. } => "RUN_CONTINUED",
            Event::SlotRequested { .. } => "SLOT_REQUESTED",
            Event::SlotGranted { .. } => "SLOT_GRANTED",
            Event::SlotReleased { .. } => "SLOT_RELEASED",
            Event::LetterAdded(_) => "LETTER_ADDED",
            Event::LetterRedriven { .. } => "LETTER_REDRIVEN",
            Event::LetterDropped { .. } => "LETTER_DROPPED",
            Event::LetterFailed { .. } => "LETTER_FAILED",
            Event::KeyPut(_) => "KEY_PUT",
            Event::KeyRenewed { .. } => "KEY_RENEWED",
            Event::KeyDeleted { .. } => "KEY_DELETED",
            Event::KeyExpired { .. } => "KEY_EXPIRED",
            Event::CallbackFailed { .. } => "CALLBACK_FAILED",
            Event::CallbackSettled { .. } => "CALLBACK_SETTLED",
            Event::Task(event) => event.kind(),
            Event::Plan(event) => event.kind(),
            Event::Lock(event) => event.kind(),
        }
    }

    /// The step, sleep, wait, child or note it is about.
    pub fn subject(&self) -> Option<&StepId> {
        match self {
            Event::StepStarted { step, .. }
            | Event::StepCompleted { step, .. }
            | Event::StepFailed { step, .. }
            | Event::StepSkipped { step }
            | Event::RetryScheduled { step, .. }
            | Event::StepHeartbeat { step, .. }
            | Event::UndoCompleted { step, .. }
            | Event::UndoFailed { step, .. } => Some(step),
            Event::ProgressNoted { note, .. } => Some(note),
            Event::ChildStarted { child, .. } | Event::ChildEnded { child, .. } | Event::ChildTaken { child } => Some(child),
            Event::TimerSet { sleep, .. } | Event::TimerFired { sleep } => Some(sleep),
            Event::SignalAwaited { wait, .. } | Event::SignalTaken { wait, .. } => Some(wait),
            Event::Task(event) => event.stage(),
            Event::RunStarted { .. }
            | Event::SignalReceived { .. }
            | Event::RunCancelRequested { .. }
            | Event::RunCompensating { .. }
            | Event::RunCancelled
            | Event::RunCompleted { .. }
            | Event::RunFailed { .. }
            | Event::SlotAcquired { .. }
            | Event::RunPaused { .. }
            | Event::RunResumed { .. }
            | Event::RunInterrupted
            | Event::RunRetried(_)
            | Event::RunContinued { .. }
            | Event::SlotRequested { .. }
            | Event::SlotGranted { .. }
            | Event::SlotReleased { .. }
            | Event::LetterAdded(_)
            | Event::LetterRedriven { .. }
            | Event::LetterDropped { .. }
            | Event::LetterFailed { .. }
            | Event::KeyPut(_)
            | Event::KeyRenewed { .. }
            | Event::KeyDeleted { .. }
            | Event::KeyExpired { .. }
            | Event::CallbackFailed { .. }
            | Event::CallbackSettled { .. }
            | Event::Plan(_)
            | Event::Lock(_) => None,
        }
    }

    /// True if nothing can follow it in its epoch.
    pub fn is_end(&self) -> bool {
        matches!(self, Event::RunCompleted { .. } | Event::RunFailed { .. } | Event::RunCancelled)
    }
}
