//! What one entity tells another: a row of the outbox, delivered at least once and in order, and dropped by whoever has heard it.

use crate::random::Seed;
use crate::record::{FailureBody, OptionsBody};
use crate::{
    Attempt, Encoding, EntityId, Epoch, Failure, KeyName, Lease, Origin, Payload, PlanId, Revision, RunId, RunOptions, Seq, StepId,
    TaskStatus, WorkflowName, run::Verb,
};
use bytes::Bytes;
use prost::Message as _;
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
#[derive(Clone, Debug, PartialEq)]
pub struct Letter {
    /// What it is about.
    pub about: LetterAbout,
    /// The last attempt.
    pub attempt: Attempt,
    /// Whose work it is.
    pub tenant: Option<String>,
    /// Why.
    pub failure: Failure,
    /// What the run was given, or the value of the key.
    pub payload: Payload,
}

/// What a dead letter is about.
#[derive(Clone, Debug, PartialEq, Eq)]
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
}

impl LetterAbout {
    /// The run, if it is about one.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            LetterAbout::Step { run, .. } => Some(run),
            LetterAbout::Expiry { .. } => None,
        }
    }

    /// The step, if it is about one.
    pub fn step(&self) -> Option<&StepId> {
        match self {
            LetterAbout::Step { step, .. } => Some(step),
            LetterAbout::Expiry { .. } => None,
        }
    }
}

/// For people: `step STEP of RUN`, or `expiry of KEY, revision REVISION`.
impl fmt::Display for LetterAbout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LetterAbout::Step { run, step } => write!(f, "step {step} of {run}"),
            LetterAbout::Expiry { key, revision } => write!(f, "expiry of {key}, revision {revision}"),
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

    /// The stored form; the type is stored beside it.
    pub fn encode(&self) -> Bytes {
        let mut body = Body::default();
        match self {
            Message::RequestSlot { epoch, slots } => (body.epoch, body.slots) = (Some(*epoch), Some(*slots)),
            Message::GrantSlot { epoch } | Message::ReleaseSlot { epoch } => body.epoch = Some(*epoch),
            Message::StartChild(StartChild { workflow, input, seed, deadline, options }) => {
                body.workflow = Some(workflow.to_string());
                body.payload = Some(input.into());
                body.seed = Some(seed.0.to_vec());
                body.deadline_us = deadline.map(|deadline| u64::try_from(deadline.as_micros()).unwrap_or(u64::MAX));
                body.options = Some(options.into());
            }
            Message::CancelChild { origin } => {
                (body.by, body.why, body.command) = (origin.by.clone(), origin.why.clone(), origin.command.clone())
            }
            Message::ChildEnded { child, outcome } => {
                body.step = Some(child.to_string());
                match outcome {
                    Ok(output) => body.payload = Some(output.into()),
                    Err(failure) => body.failure = Some(failure.into()),
                }
            }
            Message::PostLetter(Letter { about, attempt, tenant, failure, payload }) => {
                match about {
                    LetterAbout::Step { run, step } => (body.run, body.step) = (Some(run.to_string()), Some(step.to_string())),
                    LetterAbout::Expiry { key, revision } => (body.key, body.revision) = (Some(key.to_string()), Some(*revision)),
                }
                body.attempt = Some(*attempt);
                body.tenant.clone_from(tenant);
                body.failure = Some(failure.into());
                body.payload = Some(payload.into());
            }
            Message::TaskChanged(TaskChanged { epoch, status, wants, heard }) => {
                body.after = Some(*heard);
                (body.epoch, body.status) = (Some(*epoch), Some(status.as_str().to_string()));
                body.wants = match wants {
                    Wants::Nothing => None,
                    Wants::Turn => Some(1),
                    Wants::TurnAsked => Some(2),
                };
            }
            Message::AdmitTask { epoch } | Message::RecallTask { epoch } => body.epoch = Some(*epoch),
            Message::OperateTask { verb, origin } => {
                body.verb = serde_json::to_string(verb).ok();
                (body.by, body.why, body.command) = (origin.by.clone(), origin.why.clone(), origin.command.clone());
            }
            Message::AcquireLock { epoch, asked, plan, lease, waits } => {
                body.after = Some(*asked);
                (body.epoch, body.plan, body.waits) = (Some(*epoch), Some(plan.to_string()), Some(*waits));
                body.lease_us = Some(u64::try_from(lease.as_micros()).unwrap_or(u64::MAX));
            }
            Message::LockGranted { lease, asked } => (body.lease, body.after) = (serde_json::to_vec(lease).ok(), Some(*asked)),
            Message::LockRefused { asked, holder } => (body.after, body.holder) = (Some(*asked), Some(holder.clone())),
            Message::ConfirmLock { fence, seen } | Message::RenewLock { fence, seen } => {
                (body.fence, body.after) = (Some(*fence), Some(*seen))
            }
            Message::DenyLock { fence } => body.fence = Some(*fence),
            Message::ReleaseLock { fence } => body.fence = *fence,
            Message::LockLost { fence, origin } => {
                body.fence = Some(*fence);
                (body.by, body.why, body.command) = (origin.by.clone(), origin.why.clone(), origin.command.clone());
            }
            Message::SettleLetter { step, after } => (body.step, body.after) = (Some(step.to_string()), Some(*after)),
        }
        body.encode_to_vec().into()
    }

    /// Reads the stored form; nothing if it cannot be read.
    pub fn decode(kind: &str, bytes: &[u8]) -> Option<Message> {
        let body = Body::decode(bytes).ok()?;
        let step = || body.step.as_deref().map(StepId::from_stored);
        let payload = || body.payload.as_ref().and_then(PayloadBody::read);
        let failure = || body.failure.as_ref().and_then(FailureBody::read);
        let origin = || Origin { by: body.by.clone(), why: body.why.clone(), command: body.command.clone() };
        Some(match kind {
            "REQUEST_SLOT" => Message::RequestSlot { epoch: body.epoch?, slots: body.slots? },
            "GRANT_SLOT" => Message::GrantSlot { epoch: body.epoch? },
            "RELEASE_SLOT" => Message::ReleaseSlot { epoch: body.epoch? },
            "START_CHILD" => Message::StartChild(StartChild {
                workflow: WorkflowName::new(body.workflow.as_deref()?).ok()?,
                input: payload()?,
                seed: Seed(body.seed.as_deref()?.try_into().ok()?),
                deadline: body.deadline_us.map(Duration::from_micros),
                options: body.options.as_ref()?.read()?,
            }),
            "CANCEL_CHILD" => Message::CancelChild { origin: origin() },
            "CHILD_ENDED" => {
                let outcome = if body.failure.is_some() { Err(failure()?) } else { Ok(payload()?) };
                Message::ChildEnded { child: step()?, outcome }
            }
            "POST_LETTER" => Message::PostLetter(Letter {
                about: match &body.key {
                    Some(key) => LetterAbout::Expiry { key: KeyName::new(key).ok()?, revision: body.revision? },
                    None => LetterAbout::Step { run: RunId::new(body.run.as_deref()?).ok()?, step: step()? },
                },
                attempt: body.attempt?,
                failure: failure()?,
                payload: payload()?,
                tenant: body.tenant,
            }),
            "TASK_CHANGED" => Message::TaskChanged(TaskChanged {
                epoch: body.epoch?,
                status: TaskStatus::parse(body.status.as_deref()?)?,
                wants: match body.wants {
                    None => Wants::Nothing,
                    Some(1) => Wants::Turn,
                    Some(2) => Wants::TurnAsked,
                    Some(_) => return None,
                },
                heard: body.after?,
            }),
            "ADMIT_TASK" => Message::AdmitTask { epoch: body.epoch? },
            "RECALL_TASK" => Message::RecallTask { epoch: body.epoch? },
            "OPERATE_TASK" => Message::OperateTask { verb: serde_json::from_str(body.verb.as_deref()?).ok()?, origin: origin() },
            "ACQUIRE_LOCK" => Message::AcquireLock {
                epoch: body.epoch?,
                asked: body.after?,
                plan: PlanId::new(body.plan.as_deref()?).ok()?,
                lease: body.lease_us.map(Duration::from_micros)?,
                waits: body.waits?,
            },
            "LOCK_GRANTED" => Message::LockGranted { lease: serde_json::from_slice(body.lease.as_deref()?).ok()?, asked: body.after? },
            "LOCK_REFUSED" => Message::LockRefused { asked: body.after?, holder: body.holder? },
            "CONFIRM_LOCK" => Message::ConfirmLock { fence: body.fence?, seen: body.after? },
            "RENEW_LOCK" => Message::RenewLock { fence: body.fence?, seen: body.after? },
            "DENY_LOCK" => Message::DenyLock { fence: body.fence? },
            "RELEASE_LOCK" => Message::ReleaseLock { fence: body.fence },
            "LOCK_LOST" => Message::LockLost { fence: body.fence?, origin: origin() },
            "SETTLE_LETTER" => Message::SettleLetter { step: step()?, after: body.after? },
            _ => return None,
        })
    }
}

/// The fields of all messages. Numbers are for ever; a field that falls out of use keeps its number.
#[derive(Clone, PartialEq, prost::Message)]
struct Body {
    #[prost(uint32, optional, tag = "1")]
    epoch: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    slots: Option<u32>,
    #[prost(string, optional, tag = "3")]
    workflow: Option<String>,
    #[prost(message, optional, tag = "4")]
    payload: Option<PayloadBody>,
    #[prost(bytes = "vec", optional, tag = "5")]
    seed: Option<Vec<u8>>,
    #[prost(uint64, optional, tag = "6")]
    deadline_us: Option<u64>,
    #[prost(message, optional, tag = "7")]
    options: Option<OptionsBody>,
    #[prost(string, optional, tag = "8")]
    by: Option<String>,
    #[prost(string, optional, tag = "9")]
    why: Option<String>,
    #[prost(string, optional, tag = "10")]
    command: Option<String>,
    #[prost(string, optional, tag = "11")]
    step: Option<String>,
    #[prost(message, optional, tag = "12")]
    failure: Option<FailureBody>,
    #[prost(string, optional, tag = "13")]
    run: Option<String>,
    #[prost(uint32, optional, tag = "14")]
    attempt: Option<u32>,
    #[prost(string, optional, tag = "15")]
    tenant: Option<String>,
    #[prost(uint64, optional, tag = "16")]
    after: Option<u64>,
    #[prost(string, optional, tag = "17")]
    key: Option<String>,
    #[prost(uint64, optional, tag = "18")]
    revision: Option<u64>,
    #[prost(string, optional, tag = "19")]
    status: Option<String>,
    #[prost(uint32, optional, tag = "20")]
    wants: Option<u32>,
    #[prost(string, optional, tag = "21")]
    verb: Option<String>,
    #[prost(string, optional, tag = "22")]
    plan: Option<String>,
    #[prost(bool, optional, tag = "23")]
    waits: Option<bool>,
    #[prost(uint64, optional, tag = "24")]
    lease_us: Option<u64>,
    /// As JSON.
    #[prost(bytes = "vec", optional, tag = "25")]
    lease: Option<Vec<u8>>,
    #[prost(string, optional, tag = "26")]
    holder: Option<String>,
    #[prost(uint64, optional, tag = "27")]
    fence: Option<u64>,
}

/// A payload inside another message.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PayloadBody {
    #[prost(string, tag = "1")]
    encoding: String,
    #[prost(bytes = "bytes", tag = "2")]
    bytes: Bytes,
}

impl From<&Payload> for PayloadBody {
    fn from(payload: &Payload) -> Self {
        PayloadBody { encoding: payload.encoding.as_str().to_string(), bytes: payload.bytes.clone() }
    }
}

impl PayloadBody {
    pub(crate) fn read(&self) -> Option<Payload> {
        Some(Payload { encoding: Encoding::parse(&self.encoding)?, bytes: self.bytes.clone() })
    }
}

#[cfg(test)]
mod tests;
