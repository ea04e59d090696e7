//! What is known of a run: the fold of its journal.

use super::task::Task;
use crate::random::Seed;
use crate::{Attempt, EntityId, Epoch, Failure, LimitKey, Origin, Payload, RunId, RunOptions, Seq, StepId, Timestamp, WorkflowName};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A run: the fold of its journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The code it executes.
    pub workflow: WorkflowName,
    /// What the code is given.
    pub input: Payload,
    /// What it was started with: the same start again finds it, whatever its code is given since.
    pub given: Payload,
    /// Where its chance comes from.
    pub seed: Seed,
    /// What else is known of it.
    pub options: RunOptions,
    /// Which of its lives.
    pub epoch: Epoch,
    /// When this life began, and the sequence of the event that says so; nothing in the first one, and in one without a past.
    pub retried: Option<(Timestamp, Seq)>,
    /// The sequence of the last entry.
    pub seq: Seq,
    /// How many messages it has sent.
    pub sent: u64,
    /// The last message of each sender that was heard.
    pub heard: BTreeMap<EntityId, u64>,
    /// The commands with an id that were carried out: what was asked for, and the id.
    pub commands: BTreeSet<(Verb, String)>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it must be over.
    pub deadline: Option<Deadline>,
    /// The last retry of any step.
    pub retry_context: Option<RetryContext>,
    /// How often recorded successes were discarded on purpose.
    pub generations: Generations,
    /// Steps that are not executed, and what they are to have returned.
    pub supplied: BTreeMap<StepId, Payload>,
    /// Steps of which a dead letter was posted.
    pub letters: BTreeSet<StepId>,
    /// The slots it has asked for.
    pub slots: Slots,
    /// What attempts of steps that have not succeeded said last of how far they had come; another life can read it too.
    pub details: BTreeMap<StepId, Payload>,
    /// What the code said last of how far it has come.
    pub note: Option<String>,
    /// What of its journal the code has to be told.
    pub past: Past,
    /// What is known of it as a task, if it is one.
    pub task: Option<Box<Task>>,
    /// Where it stands.
    pub phase: Phase,
}

/// What operators ask of a run, or of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verb {
    /// Begin nothing new.
    Pause,
    /// Go on.
    Resume,
    /// End, and undo what was done.
    Cancel,
    /// End at once.
    Terminate,
    /// Begin another life.
    Retry,
    /// Undo what was done.
    RollBack,
    /// Begin; only plans wait to be started.
    Start,
}

/// When a run must be over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deadline {
    /// Then.
    pub at: Timestamp,
    /// How long it has in all.
    pub allowed: Duration,
    /// The sequence of the event that says so.
    pub revision: Seq,
}

/// The last retry that was scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryContext {
    /// The attempt to come.
    pub current_attempt: Attempt,
    /// The delay before it.
    pub last_backoff: Duration,
}

/// What of a journal the code has to be told: all of it, unless the run has gone on with a fresh past.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Past {
    /// The sequence of the event by which it last went on with a fresh past; zero if it never did.
    pub continued: Seq,
    /// The entries before that one that still count.
    pub kept: BTreeSet<Seq>,
    /// What operators asked for in this life, and those before it that it continues.
    pub(super) verbs: BTreeSet<Seq>,
}

/// How often recorded successes were discarded on purpose: part of the idempotency key of each step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Generations {
    /// Of all steps: it rises when the code begins again without a past.
    pub base: u32,
    /// Of single steps and children, beyond that.
    pub of: BTreeMap<StepId, u32>,
}

impl Generations {
    /// The generation of a step or child, from 1. An undo has that of its step.
    pub fn get(&self, step: &StepId) -> u32 {
        let done = step.undone(); // a step that is executed once more is undone once more
        1 + self.base + self.of.get(done.as_ref().unwrap_or(step)).copied().unwrap_or_default()
    }

    /// The key that is equal for all attempts of one execution of a step, and for no other: `RUN/STEP/GENERATION`.
    pub fn key(&self, run: &RunId, step: &StepId) -> String {
        format!("{run}/{step}/{}", self.get(step))
    }
}

/// The slots that a run has asked for: one limit after another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Slots {
    /// The epoch in which it asked.
    pub epoch: Epoch,
    /// How many it has asked for.
    pub asked: usize,
    /// How many it has.
    pub held: usize,
}

/// Where a run stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::large_enum_variant, reason = "nearly every run that is kept in memory is under way")]
pub enum Phase {
    /// Under way.
    Open(Open),
    /// Over, with what was known of it when it ended.
    Ended(Ended, Box<Open>),
}

/// What is known of a run that is under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Open {
    /// How many attempts were in flight after the host's last report; at the start the code itself counts as one.
    pub in_flight: u32,
    /// How many attempts begin when the run goes on.
    pub held: u32,
    /// Every step on record.
    pub steps: BTreeMap<StepId, Step>,
    /// The sequence of the event that says so, of every step that is not repeatable and was about to begin.
    pub begun: BTreeMap<StepId, Seq>,
    /// Every sleep on record.
    pub sleeps: BTreeMap<StepId, Sleep>,
    /// Every wait for a signal on record.
    pub awaits: BTreeMap<StepId, Await>,
    /// Signals that have arrived and were not taken yet, by the sequence of their arrival.
    pub signals: BTreeMap<Seq, String>,
    /// The ids of all signals that had one, with the sequence of their arrival.
    pub signal_ids: BTreeMap<String, Seq>,
    /// Every child on record.
    pub children: BTreeMap<StepId, Child>,
    /// Steps that have to be undone if the run does not complete.
    pub undoable: BTreeSet<StepId>,
    /// Somebody wants the run to end.
    pub cancel_requested: bool,
    /// Nothing new is begun.
    pub paused: Option<Paused>,
    /// Since when its process is dead, if it does not go on by itself.
    pub interrupted: Option<Timestamp>,
    /// What is being done.
    pub stage: Stage,
}

/// Since when nothing new is begun, and who wants that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Paused {
    /// Since when.
    pub at: Timestamp,
    /// Who wants it, and why.
    pub origin: Origin,
}

/// What is being done in a run that is under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Stage {
    /// Its code is executed.
    #[default]
    Running,
    /// What it did is undone.
    Compensating {
        /// Why; nothing if it was cancelled.
        failure: Option<Failure>,
        /// The sequence of the event that says so.
        at: Seq,
    },
}

/// A wait for a signal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Await {
    /// The signal's name.
    pub name: String,
    /// Until then at the most.
    pub until: Option<Timestamp>,
    /// It is a person's yes or no, and these roles may say it.
    pub approval: Option<Vec<String>>,
    /// The time and the sequence of the event that says so.
    pub since: Timestamp,
    /// The sequence of that event.
    pub revision: Seq,
    /// What has become of it.
    pub settled: Option<Settled>,
}

/// How a wait for a signal was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settled {
    /// The sequence of the event that says so.
    pub at: Seq,
    /// The signal that was taken, by the sequence of its arrival; nothing if it came too late or nobody waits any more.
    pub signal: Option<Seq>,
}

/// How far a step on record has come. One that is not on record is at its first attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Step {
    /// Failed, to be tried again.
    Backoff {
        /// The attempt to come.
        attempt: Attempt,
        /// How many there are in all.
        of: Attempt,
        /// When it starts.
        due_at: Timestamp,
        /// The time of the event that says so.
        since: Timestamp,
        /// The sequence of that event.
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
    Done {
        /// The sequence of the event that says so.
        at: Seq,
        /// What it came to.
        how: How,
    },
}

/// What a step came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum How {
    /// It has its result.
    Completed,
    /// It has failed for good.
    Failed(Failure),
    /// It had its result and was undone.
    Undone,
    /// Nobody wants it any more.
    Abandoned,
}

/// How far a sleep has come.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sleep {
    /// When it is over.
    pub due_at: Timestamp,
    /// The time of the event that says so.
    pub since: Timestamp,
    /// The sequence of that event.
    pub revision: Seq,
    /// The sequence of the event that says that it is over, or that nobody waits for it any more.
    pub fired: Option<Seq>,
}

/// A run that was started by this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Child {
    /// Its id.
    pub run: RunId,
    /// Nobody waits for it, and it does not end with this run.
    pub detached: bool,
    /// The sequence of the event that started it.
    pub started: Seq,
    /// It has ended; the code is told.
    pub ended: bool,
    /// Why it failed, if it has.
    pub failure: Option<Failure>,
    /// The sequence of the event that told the code, or that says that nobody waits for it any more.
    pub taken: Option<Seq>,
    /// It was told to end.
    pub cancelled: bool,
}

/// How a run has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ended {
    /// When.
    pub at: Timestamp,
    /// With what; a run that was called off has a failure with the code `CANCELLED`.
    pub outcome: Result<Payload, Failure>,
    /// It was called off; code may also fail with the code `CANCELLED` by itself.
    pub cancelled: bool,
}

impl Run {
    /// Its messages are numbered on from the time of its beginning, in microseconds. A run of its id that was removed may have been heard by somebody who still
    /// remembers: what this one says is newer than all of that.
    pub fn numbered_from(&self) -> u64 {
        u64::try_from(self.started_at.as_micros()).unwrap_or_default()
    }

    /// What is known of it while it is under way.
    pub fn open(&self) -> Option<&Open> {
        match &self.phase {
            Phase::Open(open) => Some(open),
            Phase::Ended(..) => None,
        }
    }

    /// How it has ended, if it has.
    pub fn ended(&self) -> Option<&Ended> {
        match &self.phase {
            Phase::Ended(ended, _) => Some(ended),
            Phase::Open(_) => None,
        }
    }

    /// What is, or was, known of it while it is, or was, under way.
    pub(super) fn records(&self) -> &Open {
        match &self.phase {
            Phase::Open(open) => open,
            Phase::Ended(_, left) => left,
        }
    }

    /// The runs that it has started, by what its code knows them by.
    pub fn children(&self) -> impl Iterator<Item = (&StepId, &RunId)> {
        self.records().children.iter().map(|(id, child)| (id, &child.run))
    }

    /// True if something has to be undone should the run not complete.
    pub fn has_undoable(&self) -> bool {
        self.open().is_some_and(|open| !open.undoable.is_empty())
    }

    /// True if somebody wants it to end, and it has not yet.
    pub fn is_called_off(&self) -> bool {
        self.open().is_some_and(|open| open.cancel_requested)
    }

    /// True if it has not begun: it waits for a slot, or for its turn and its lock.
    pub fn is_ready(&self) -> bool {
        self.open().is_some() && (self.slots.held < self.options.limits.len() || self.is_held_back())
    }

    /// The limit whose slot it waits for.
    pub fn wanted(&self) -> Option<&LimitKey> {
        self.options.limits.get(self.slots.held).map(|limit| &limit.key)
    }

    /// True if that was asked for with that id, and was carried out. The same id for something else is another command.
    pub(super) fn has_done(&self, verb: Verb, origin: &Origin) -> bool {
        origin.command.as_ref().is_some_and(|id| self.commands.contains(&(verb, id.clone())))
    }
}

impl Step {
    /// True if it has its outcome, or nobody wants it any more.
    pub fn is_done(&self) -> bool {
        matches!(self, Step::Done { .. })
    }
}

impl Await {
    /// True while the code waits.
    pub fn is_open(&self) -> bool {
        self.settled.is_none()
    }
}

impl Open {
    /// The attempt to come of a step; `None` once it has its outcome.
    pub(super) fn attempt_to_come(&self, step: &StepId) -> Option<Attempt> {
        match self.steps.get(step) {
            None => Some(1),
            Some(Step::Backoff { attempt, .. } | Step::Started { attempt }) => Some(*attempt),
            Some(Step::Done { .. }) => None,
        }
    }

    /// How many of the attempts that a host counts are in flight: those are not that the state knows to be over.
    pub(super) fn still_in_flight(&self, counted: u32, unanswered: &[(StepId, Attempt)]) -> u32 {
        let over = unanswered.iter().filter(|(step, attempt)| self.attempt_to_come(step) != Some(*attempt)).count();
        counted.saturating_sub(u32::try_from(over).unwrap_or(u32::MAX))
    }

    /// The waits for signals that are not settled.
    pub fn open_awaits(&self) -> impl Iterator<Item = (&StepId, &Await)> {
        self.awaits.iter().filter(|(_, awaited)| awaited.is_open())
    }

    /// The children that end with this run if it does not complete, and have not ended.
    pub(super) fn open_children(&self) -> impl Iterator<Item = (&StepId, &Child)> {
        self.children.iter().filter(|(_, child)| !child.detached && !child.ended)
    }

    /// True if there is something that the code has to be told and that no timer brings back after a restart. What the host last said of
    /// attempts in flight may be older than that.
    pub(super) fn has_news(&self) -> bool {
        let is_there = |awaited: &Await| self.signals.values().any(|name| *name == awaited.name);
        let has_ended = |child: &Child| child.ended && child.taken.is_none();
        let running = self.stage == Stage::Running;
        (running && (self.cancel_requested || self.children.values().any(has_ended)))
            || self.open_awaits().any(|(_, awaited)| is_there(awaited))
    }
}
