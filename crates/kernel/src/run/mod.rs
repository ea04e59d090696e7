//! The run machine: one durable workflow, from its start to its end.
//!
//! ```text
//!   –    --StartRun------> open            RUN_STARTED
//!   any  --StartRun------> the same        (repeated: answered, no event)
//!   open --TakeTurn------> open            STEP_STARTED STEP_COMPLETED STEP_FAILED TIMER_SET TIMER_FIRED SIGNAL_AWAITED SIGNAL_TAKEN
//!   open --TakeTurn------> compensating    …, RUN_COMPENSATING
//!   open --TakeTurn------> ended           …, RUN_COMPLETED | RUN_FAILED | RUN_CANCELLED
//!   open --ReportFailure-> open            RETRY_SCHEDULED | (given up: delivered, no event yet)
//!   open --FireTimer-----> open            (retry, sleep: passed on, no event; deadline: likewise if something has to be undone)
//!   open --FireTimer-----> ended           RUN_FAILED (deadline)
//!   open --SendSignal----> open            SIGNAL_RECEIVED | (known: answered, no event)
//!   open --CancelRun-----> open            RUN_CANCEL_REQUESTED | (asked for before: answered, no event)
//!   open --CancelRun-----> ended           …, RUN_CANCELLED (its code cannot go on, and nothing has to be undone)
//!   compensating --TakeTurn------> …       UNDO_COMPLETED UNDO_FAILED SIGNAL_AWAITED SIGNAL_TAKEN, then RUN_FAILED | RUN_CANCELLED
//!   compensating --ReportFailure-> …       RETRY_SCHEDULED of an undo
//! ```
//!
//! Everything else is a [`Refusal`]. [`evolve`] is the fold: the same function live and at recovery; what it does not list is an
//! [`IllegalTransition`].

mod cancel;
mod evolve;
mod fire_timer;
mod report_failure;
mod signal;
mod start;
mod turn;

pub use evolve::{IllegalTransition, evolve};
pub use signal::SIGNALS_MAX;

use crate::random::Seed;
use crate::{
    Attempt, Command, Effect, Entry, Epoch, Event, Failure, Payload, Refusal, RunId, Seq, StepId, Timer, TimerName, Timestamp, Wait,
    WorkflowName,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What follows from a command: entries to commit, and what is to be done after that.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// To be appended to the journal, in this order.
    pub entries: Vec<Entry>,
    /// To be done after the commit, in this order.
    pub effects: Vec<Effect>,
}

/// Decides on a command: pure, and touches exactly this run. `state` is `None` where there is no run of that id yet.
///
/// # Errors
/// A [`Refusal`] leaves no trace.
pub fn decide(id: &RunId, state: Option<&Run>, command: Command, now: Timestamp) -> Result<Decision, Refusal> {
    match (state, command) {
        (None, Command::StartRun(command)) => Ok(start::begin(command, now)),
        (Some(run), Command::StartRun(command)) => start::repeat(run, &command),
        (None, _) => Err(Refusal::RunNotFound { run: id.clone() }),
        (Some(run), Command::TakeTurn(command)) => turn::decide(run, command),
        (Some(run), Command::ReportFailure(command)) => report_failure::decide(run, command, now),
        (Some(run), Command::FireTimer(command)) => Ok(fire_timer::decide(run, &command, now)),
        (Some(run), Command::SendSignal(command)) => signal::decide(run, command, now),
        (Some(run), Command::CancelRun(command)) => cancel::decide(run, command, now),
    }
}

/// A run: the fold of its journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The code it executes.
    pub workflow: WorkflowName,
    /// What the code was given.
    pub input: Payload,
    /// Where its chance comes from.
    pub seed: Seed,
    /// Which of its lives.
    pub epoch: Epoch,
    /// The sequence of the last entry.
    pub seq: Seq,
    /// When it began.
    pub started_at: Timestamp,
    /// When it must be over.
    pub deadline_at: Option<Timestamp>,
    /// The last retry of any step.
    pub retry_context: Option<RetryContext>,
    /// Where it stands.
    pub phase: Phase,
}

/// The last retry that was scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryContext {
    /// The attempt to come.
    pub current_attempt: Attempt,
    /// The delay before it.
    pub last_backoff: Duration,
}

/// Where a run stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Under way.
    Open(Open),
    /// Over.
    Ended(Ended),
}

/// What is known of a run that is under way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Open {
    /// How many attempts were in flight after the host's last report; at the start the code itself counts as one.
    pub in_flight: u32,
    /// Every step on record.
    pub steps: BTreeMap<StepId, Step>,
    /// Every sleep on record.
    pub sleeps: BTreeMap<StepId, Sleep>,
    /// What the code waits to be told.
    pub awaits: BTreeMap<StepId, Await>,
    /// Signals that have arrived and were not taken yet: their names, by the sequence of their arrival.
    pub signals: BTreeMap<Seq, String>,
    /// The ids of all signals that had one.
    pub signal_ids: BTreeSet<String>,
    /// Steps that have to be undone if the run does not complete.
    pub undoable: BTreeSet<StepId>,
    /// Somebody wants the run to end.
    pub cancel_requested: bool,
    /// What is being done.
    pub stage: Stage,
}

/// What is being done in a run that is under way.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Stage {
    /// Its code is executed.
    #[default]
    Running,
    /// What it did is undone.
    Compensating {
        /// Why; nothing if it was cancelled.
        failure: Option<Failure>,
    },
}

/// A wait for a signal.
#[derive(Clone, Debug, PartialEq)]
pub struct Await {
    /// The signal's name.
    pub name: String,
    /// Until then at the most.
    pub until: Option<Timestamp>,
    /// The sequence of the event that says so.
    pub revision: Seq,
}

/// How far a step on record has come. One that is not on record is at its first attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Failed, to be tried again.
    Backoff {
        /// The attempt to come.
        attempt: Attempt,
        /// How many there are in all.
        of: Attempt,
        /// When it starts.
        due_at: Timestamp,
        /// The sequence of the event that says so.
        revision: Seq,
        /// Why the attempt before it failed.
        failure: Failure,
    },
    /// Not repeatable, and this attempt was about to begin.
    Started {
        /// The attempt.
        attempt: Attempt,
    },
    /// Has its outcome, or nobody wants it any more.
    Done,
}

/// How far a sleep has come.
#[derive(Clone, Debug, PartialEq)]
pub enum Sleep {
    /// Not yet over.
    Pending {
        /// When it is.
        due_at: Timestamp,
        /// The sequence of the event that says so.
        revision: Seq,
    },
    /// Over, or nobody waits for it any more.
    Fired,
}

/// How a run has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// When.
    pub at: Timestamp,
    /// With what; a run that was called off has a failure with the code `CANCELLED`.
    pub outcome: Result<Payload, Failure>,
    /// It was called off; code may also fail with the code `CANCELLED` by itself.
    pub cancelled: bool,
}

/// The public status of a run, derived from its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Work is under way.
    Running,
    /// Nothing moves until something named happens.
    Waiting,
    /// What it did is being undone.
    Compensating,
    /// Over, with a result.
    Completed,
    /// Over, with a failure.
    Failed,
    /// Over: it was called off.
    Cancelled,
}

impl Status {
    /// Every status.
    pub const ALL: [Status; 6] =
        [Status::Running, Status::Waiting, Status::Compensating, Status::Completed, Status::Failed, Status::Cancelled];

    /// The stored and public name.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Running => "RUNNING",
            Status::Waiting => "WAITING",
            Status::Compensating => "COMPENSATING",
            Status::Completed => "COMPLETED",
            Status::Failed => "FAILED",
            Status::Cancelled => "CANCELLED",
        }
    }

    /// The status of that name.
    pub fn parse(name: &str) -> Option<Status> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// True if nothing follows.
    pub fn is_final(self) -> bool {
        matches!(self, Status::Completed | Status::Failed | Status::Cancelled)
    }
}

impl Run {
    /// The public status.
    pub fn status(&self) -> Status {
        match &self.phase {
            Phase::Open(Open { stage: Stage::Compensating { .. }, .. }) => Status::Compensating,
            Phase::Open(_) if self.is_waiting() => Status::Waiting,
            Phase::Open(_) => Status::Running,
            Phase::Ended(Ended { outcome: Ok(_), .. }) => Status::Completed,
            Phase::Ended(Ended { cancelled: true, .. }) => Status::Cancelled,
            Phase::Ended(Ended { outcome: Err(_), .. }) => Status::Failed,
        }
    }

    /// True if nothing moves until something named happens: such a run need not be hosted.
    pub fn is_waiting(&self) -> bool {
        matches!(&self.phase, Phase::Open(open) if open.in_flight == 0 && !open.has_news()) && !self.waits().is_empty()
    }

    /// True if something has to be undone should the run not complete.
    pub fn has_undoable(&self) -> bool {
        matches!(&self.phase, Phase::Open(open) if !open.undoable.is_empty())
    }

    /// True if somebody wants it to end, and it has not yet.
    pub fn is_called_off(&self) -> bool {
        matches!(&self.phase, Phase::Open(open) if open.cancel_requested)
    }

    /// How it has ended, if it has.
    pub fn ended(&self) -> Option<&Ended> {
        match &self.phase {
            Phase::Ended(ended) => Some(ended),
            Phase::Open(_) => None,
        }
    }

    /// What it waits for, the one that ends first in front.
    pub fn waits(&self) -> Vec<Wait> {
        let Phase::Open(open) = &self.phase else { return Vec::new() };
        let backoffs = open.steps.iter().filter_map(|(step, state)| match state {
            Step::Backoff { attempt, of, due_at, failure, .. } => {
                Some(Wait::Backoff { step: step.clone(), attempt: *attempt, of: *of, due_at: *due_at, failure: failure.clone() })
            }
            Step::Started { .. } | Step::Done => None,
        });
        let sleeps = open.sleeps.values().filter_map(|sleep| match sleep {
            Sleep::Pending { due_at, .. } => Some(Wait::Timer { due_at: *due_at }),
            Sleep::Fired => None,
        });
        let awaits = open.awaits.iter().map(|(wait, signal)| match wait.doubted() {
            Some(step) => Wait::InDoubt { attempt: open.attempt_to_come(&step).unwrap_or(1), step },
            None => Wait::Signal { name: signal.name.clone(), until: signal.until },
        });
        let mut waits: Vec<Wait> = backoffs.chain(sleeps).chain(awaits).collect();
        waits.sort_by_key(|wait| wait.due_at().unwrap_or(Timestamp::MAX));
        waits
    }

    /// The timers that must be armed: what the timer rows of this run are a fold of.
    pub fn timers(&self) -> Vec<Timer> {
        let Phase::Open(open) = &self.phase else { return Vec::new() };
        let timer = |name, due, revision| Timer { run: self.id.clone(), name, due, revision };
        let retries = open.steps.iter().filter_map(|(step, state)| match state {
            Step::Backoff { due_at, revision, .. } => Some(timer(TimerName::Retry(step.clone()), *due_at, *revision)),
            Step::Started { .. } | Step::Done => None,
        });
        let sleeps = open.sleeps.iter().filter_map(|(sleep, state)| match state {
            Sleep::Pending { due_at, revision } => Some(timer(TimerName::Sleep(sleep.clone()), *due_at, *revision)),
            Sleep::Fired => None,
        });
        let awaits = open
            .awaits
            .iter()
            .filter_map(|(wait, signal)| signal.until.map(|until| timer(TimerName::Sleep(wait.clone()), until, signal.revision)));
        let deadline = self.deadline(open).map(|due| timer(TimerName::Deadline, due, DEADLINE_REVISION));
        retries.chain(sleeps).chain(awaits).chain(deadline).collect()
    }

    /// When the code must be over; what it did may be undone after that.
    fn deadline(&self, open: &Open) -> Option<Timestamp> {
        self.deadline_at.filter(|_| open.stage == Stage::Running)
    }

    /// Whether that event may come next; the reason if not. Everything that [`evolve`] and the decisions check about order is here.
    fn may_follow(&self, event: &Event) -> Result<(), String> {
        let Phase::Open(open) = &self.phase else { return Err("the run has ended".into()) };
        match (&open.stage, event) {
            (_, Event::RunStarted { .. }) => Err("the run has started already".into()),
            (
                Stage::Running,
                Event::StepStarted { step, attempt } | Event::StepCompleted { step, attempt, .. } | Event::StepFailed { step, attempt, .. },
            ) => open.attempt_is(step, *attempt),
            (_, Event::RetryScheduled { step, attempt, .. }) => open.may_be_tried(step, attempt.saturating_sub(1)),
            (Stage::Running, Event::TimerSet { sleep, .. }) => match open.sleeps.get(sleep) {
                None => Ok(()),
                Some(_) => Err(format!("{sleep} is set already")),
            },
            (_, Event::TimerFired { sleep }) => match (open.sleeps.get(sleep), open.awaits.get(sleep)) {
                (Some(Sleep::Pending { .. }), _) | (_, Some(Await { until: Some(_), .. })) => Ok(()),
                (Some(Sleep::Fired), _) => Err(format!("{sleep} has fired already")),
                (None, _) => Err(format!("{sleep} was never set")),
            },
            (_, Event::SignalAwaited { wait, .. }) => match open.awaits.get(wait) {
                None => Ok(()),
                Some(_) => Err(format!("{wait} is on record already")),
            },
            (_, Event::SignalTaken { wait, signal }) => match open.awaits.get(wait) {
                Some(awaited) => open.may_take(&awaited.name, *signal),
                None => Err(format!("{wait} was never asked for")),
            },
            (Stage::Compensating { .. }, Event::UndoCompleted { step, attempt } | Event::UndoFailed { step, attempt, .. }) => {
                open.may_be_tried(&step.undo(), *attempt)
            }
            (_, Event::RunCancelRequested { .. }) if open.cancel_requested => Err("it was asked for already".into()),
            (_, Event::RunCancelled) if !open.cancel_requested => Err("nobody asked for it".into()),
            (Stage::Running, Event::RunCompensating { .. } | Event::RunCompleted { .. }) => Ok(()),
            (_, Event::SignalReceived { .. } | Event::RunCancelRequested { .. } | Event::RunCancelled | Event::RunFailed { .. }) => Ok(()),
            (Stage::Compensating { .. }, _) => Err("the run is being undone".into()),
            (Stage::Running, Event::UndoCompleted { .. } | Event::UndoFailed { .. }) => Err("the run is not being undone".into()),
        }
    }

    fn entry(&self, offset: usize, at: Timestamp, in_flight: Option<u32>, event: Event) -> Entry {
        Entry { seq: self.seq + 1 + offset as Seq, epoch: self.epoch, at, in_flight, abandoned: Vec::new(), event }
    }
}

impl Open {
    /// The attempt to come of a step; `None` once it has its outcome.
    fn attempt_to_come(&self, step: &StepId) -> Option<Attempt> {
        match self.steps.get(step) {
            None => Some(1),
            Some(Step::Backoff { attempt, .. } | Step::Started { attempt }) => Some(*attempt),
            Some(Step::Done) => None,
        }
    }

    /// Whether that is the attempt to come.
    fn attempt_is(&self, step: &StepId, attempt: Attempt) -> Result<(), String> {
        match self.attempt_to_come(step) {
            Some(due) if due == attempt => Ok(()),
            Some(due) => Err(format!("{step} is at attempt {due}, not {attempt}")),
            None => Err(format!("{step} has its outcome already")),
        }
    }

    /// Whether that is the attempt to come of something that is being done: steps while the code runs, undos after it.
    fn may_be_tried(&self, step: &StepId, attempt: Attempt) -> Result<(), String> {
        match (&self.stage, step.undone()) {
            (Stage::Running, None) => self.attempt_is(step, attempt),
            (Stage::Running, Some(_)) => Err("the run is not being undone".into()),
            (Stage::Compensating { .. }, None) => Err("the run is being undone".into()),
            (Stage::Compensating { .. }, Some(done)) if self.undoable.contains(&done) => self.attempt_is(step, attempt),
            (Stage::Compensating { .. }, Some(done)) => Err(format!("there is nothing of {done} to undo")),
        }
    }

    /// How many of the attempts that a host counts are in flight: those are not that the state knows to be over.
    fn still_in_flight(&self, counted: u32, unanswered: &[(StepId, Attempt)]) -> u32 {
        let over = unanswered.iter().filter(|(step, attempt)| self.attempt_to_come(step) != Some(*attempt)).count();
        counted.saturating_sub(u32::try_from(over).unwrap_or(u32::MAX))
    }

    /// True if there is something that the code has to be told and that no timer brings back after a restart. What the host last said of
    /// attempts in flight may be older than that.
    fn has_news(&self) -> bool {
        let is_there = |awaited: &Await| self.signals.values().any(|name| *name == awaited.name);
        (self.cancel_requested && self.stage == Stage::Running) || self.awaits.values().any(is_there)
    }

    /// Whether that signal is there to be taken by somebody who waits for that name.
    fn may_take(&self, name: &str, signal: Seq) -> Result<(), String> {
        match self.signals.get(&signal) {
            Some(arrived) if arrived == name => Ok(()),
            Some(arrived) => Err(format!("signal {signal} is {arrived}, not {name}")),
            None => Err(format!("there is no signal {signal} to be taken")),
        }
    }
}

/// The deadline is armed by the first event and never replaced.
const DEADLINE_REVISION: Seq = 1;
