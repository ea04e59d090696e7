//! What one entity tells another: a row of the outbox, delivered at least once and in order, and dropped by whoever has heard it.

mod stored;

pub(crate) use stored::PayloadBody;

use crate::random::Seed;
use crate::{
    Attempt, Direction, EntityId, Epoch, Failure, KeyName, Lease, MessageKind, Origin, Payload, PlanId, Revision, RouteName, RunId,
    RunOptions, Seq, StepId, TaskStatus, WorkflowName, run::Verb,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// A message with its place in the outbox of who sends it.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// Who says it.
    pub from: EntityId,
    /// Counted from 1 per sender.
    pub seq: u64,
    /// Who is to hear it.
    pub to: EntityId,
    /// What.
    pub message: Message,
}

/// What one entity tells another.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Run to limit: it needs a slot in that epoch.
    RequestSlot {
        /// The epoch in which it asks.
        epoch: Epoch,
        /// How many slots there are to be; what was said last counts.
        slots: u32,
    },
    /// Limit to run: it has the slot that it asked for in that epoch.
    GrantSlot {
        /// The epoch in which it asked.
        epoch: Epoch,
    },
    /// Run to limit: it does not need the slot any more, or no longer waits for it.
    ReleaseSlot {
        /// The epoch in which it asked.
        epoch: Epoch,
    },
    /// Run to run: begin, as a child.
    StartChild(StartChild),
    /// Run to child: end.
    CancelChild {
        /// Who wants it, and why.
        origin: Origin,
    },
    /// Child to parent: it has ended.
    ChildEnded {
        /// What the parent knows it by.
        child: StepId,
        /// How.
        outcome: Result<Payload, Failure>,
    },
    /// Run to letter box: a step that nobody will try again by itself.
    PostLetter(Letter),
    /// Task to plan: where it stands.
    TaskChanged(TaskChanged),
    /// Plan to task: it may begin what it asked for in that epoch.
    AdmitTask {
        /// The epoch in which it asked.
        epoch: Epoch,
    },
    /// Plan to task: if it has not begun yet, it is to wait for its turn again.
    RecallTask {
        /// The epoch in which it asked.
        epoch: Epoch,
    },
    /// Plan to task: that is wanted of all of its tasks.
    OperateTask {
        /// What.
        verb: Verb,
        /// Who wants it, and why.
        origin: Origin,
    },
    /// Task to lock: it needs it.
    AcquireLock {
        /// The epoch in which it asks.
        epoch: Epoch,
        /// The sequence of the event by which it asks.
        asked: Seq,
        /// Its plan.
        plan: PlanId,
        /// For how long it is to hold without being renewed.
        lease: Duration,
        /// It waits if another one has it.
        waits: bool,
    },
    /// Lock to task: it is yours.
    LockGranted {
        /// The holding.
        lease: Box<Lease>,
        /// The sequence of the event by which it asked.
        asked: Seq,
    },
    /// Lock to task: another one has it, and it did not want to wait.
    LockRefused {
        /// The sequence of the event by which it asked.
        asked: Seq,
        /// Who has it.
        holder: String,
    },
    /// Lock to task: is it still to be yours? That is no event, and gets lost if the answer does not come.
    ConfirmLock {
        /// Of this holding.
        fence: u64,
        /// How far the task had come when it was renewed last.
        seen: Seq,
    },
    /// Task to lock: it is; likewise.
    RenewLock {
        /// Of this holding.
        fence: u64,
        /// How far the task has come.
        seen: Seq,
    },
    /// Task to lock: it is not to be renewed; likewise.
    DenyLock {
        /// Of this holding.
        fence: u64,
    },
    /// Task to lock: it does not need it any more, or no longer waits for it.
    ReleaseLock {
        /// Of this holding, if it knows of one.
        fence: Option<u64>,
    },
    /// Lock to task: it is not yours any more.
    LockLost {
        /// Of this holding.
        fence: u64,
        /// Who took it away, and why; nobody if its time was over.
        origin: Origin,
    },
    /// Run to letter box: that step is tried again.
    SettleLetter {
        /// The step.
        step: StepId,
        /// Letters that came with a message up to this number are of an earlier run of the same id.
        after: u64,
    },
}

/// Where a task stands, as its plan has to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskChanged {
    /// Which of its lives.
    pub epoch: Epoch,
    /// Where it stands.
    pub status: TaskStatus,
    /// What it wants of the plan.
    pub wants: Wants,
    /// The last message of the plan that it has heard.
    pub heard: u64,
}

/// What a task wants of its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Wants {
    /// Nothing.
    Nothing,
    /// To begin when it is its turn.
    Turn,
    /// To begin, because a person said so, whatever the plan is doing.
    TurnAsked,
}

/// Begin a run as a child.
#[derive(Clone, Debug, PartialEq)]
pub struct StartChild {
    /// The code it executes.
    pub workflow: WorkflowName,
    /// What the code is given.
    pub input: Payload,
    /// Where its chance comes from.
    pub seed: Seed,
    /// How long it may take in all.
    pub deadline: Option<Duration>,
    /// What else is known of it; its parent is.
    pub options: RunOptions,
}

/// A dead letter: what nobody will try again by itself, with its bytes and the reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Letter {
    /// What it is about.
    pub about: LetterAbout,
    /// The last attempt.
    pub attempt: Attempt,
    /// Whose work it is.
    pub tenant: Option<String>,
    /// Why.
    pub failure: Failure,
    /// What the run was given, the value of the key, or the exact bytes of the message.
    pub payload: Payload,
}

/// What a dead letter is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LetterAbout {
    /// A step of a run.
    Step {
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
    },
    /// The expiry of a key.
    Expiry {
        /// The key.
        key: KeyName,
        /// The revision that expired.
        revision: Revision,
    },
    /// A message.
    Message {
        /// What it was for.
        route: RouteName,
        /// Whether it came or went.
        direction: Direction,
        /// What it was.
        kind: MessageKind,
        /// Who sent it, or was to have it.
        peer: String,
        /// The id that the one who sent it gave it.
        request: String,
    },
}

impl LetterAbout {
    /// The run, if it is about one.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            LetterAbout::Step { run, .. } => Some(run),
            LetterAbout::Expiry { .. } | LetterAbout::Message { .. } => None,
        }
    }

    /// The step, if it is about one.
    pub fn step(&self) -> Option<&StepId> {
        match self {
            LetterAbout::Step { step, .. } => Some(step),
            LetterAbout::Expiry { .. } | LetterAbout::Message { .. } => None,
        }
    }
}

/// For people: `step STEP of RUN`, `expiry of KEY, revision REVISION`, or `call REQUEST on ROUTE from PEER`.
impl fmt::Display for LetterAbout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LetterAbout::Step { run, step } => write!(f, "step {step} of {run}"),
            LetterAbout::Expiry { key, revision } => write!(f, "expiry of {key}, revision {revision}"),
            LetterAbout::Message { route, direction, kind, peer, request } => {
                write!(f, "{} {request} on {route} {} {peer}", kind.as_str(), direction.word())
            }
        }
    }
}

impl Message {
    /// The stored and public type.
    pub fn kind(&self) -> &'static str {
        match self {
            Message::RequestSlot { .. } => "REQUEST_SLOT",
            Message::GrantSlot { .. } => "GRANT_SLOT",
            Message::ReleaseSlot { .. } => "RELEASE_SLOT",
            Message::StartChild(_) => "START_CHILD",
            Message::CancelChild { .. } => "CANCEL_CHILD",
            Message::ChildEnded { .. } => "CHILD_ENDED",
            Message::PostLetter(_) => "POST_LETTER",
            Message::TaskChanged(_) => "TASK_CHANGED",
            Message::AdmitTask { .. } => "ADMIT_TASK",
            Message::RecallTask { .. } => "RECALL_TASK",
            Message::OperateTask { .. } => "OPERATE_TASK",
            Message::AcquireLock { .. } => "ACQUIRE_LOCK",
            Message::LockGranted { .. } => "LOCK_GRANTED",
            Message::LockRefused { .. } => "LOCK_REFUSED",
            Message::ConfirmLock { .. } => "CONFIRM_LOCK",
            Message::RenewLock { .. } => "RENEW_LOCK",
            Message::DenyLock { .. } => "DENY_LOCK",
            Message::ReleaseLock { .. } => "RELEASE_LOCK",
            Message::LockLost { .. } => "LOCK_LOST",
            Message::SettleLetter { .. } => "SETTLE_LETTER",
        }
    }

    /// A rough number of bytes beyond the fixed ones.
    pub fn size(&self) -> usize {
        match self {
            Message::StartChild(child) => child.input.len(),
            Message::ChildEnded { outcome: Ok(output), .. } => output.len(),
            Message::PostLetter(letter) => letter.payload.len(),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests;
