//! The stored form of a message; its type is stored beside it.

use super::{Letter, LetterAbout, Message, StartChild, TaskChanged, Wants};
use crate::random::Seed;
use crate::record::{FailureBody, MessageBody, OptionsBody};
use crate::{Encoding, KeyName, Origin, Payload, PlanId, RunId, StepId, TaskStatus, WorkflowName};
use bytes::Bytes;
use prost::Message as _;
use std::time::Duration;

impl Message {
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
                    LetterAbout::Message { .. } => body.message = MessageBody::of(about),
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
                    _ if body.message.is_some() => body.message.as_ref()?.read()?,
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
pub(super) struct Body {
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
    #[prost(message, optional, tag = "28")]
    message: Option<MessageBody>,
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
