//! The parts of stored forms: what is known of a run, failures, and what a retry keeps.

use super::micros;
use crate::message::PayloadBody;
use crate::{
    Class, Code, Direction, Failure, LetterAbout, LimitKey, Limiting, MessageKind, Parent, Recovery, RouteName, RunId, RunOptions, StepId,
};
use bytes::Bytes;
use prost::Message;
use std::time::Duration;

/// What is known of a run beside its code and its input.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OptionsBody {
    #[prost(string, optional, tag = "1")]
    tenant: Option<String>,
    #[prost(bool, tag = "2")]
    manual: bool,
    #[prost(message, repeated, tag = "3")]
    limits: Vec<LimitBody>,
    #[prost(string, optional, tag = "4")]
    parent: Option<String>,
    #[prost(string, optional, tag = "5")]
    child: Option<String>,
    #[prost(bool, tag = "6")]
    detached: bool,
    #[prost(string, optional, tag = "7")]
    definition: Option<String>,
    /// As JSON.
    #[prost(bytes = "vec", optional, tag = "8")]
    task: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct LimitBody {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(uint32, tag = "2")]
    slots: u32,
}

/// Who may say yes or no.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ApprovalBody {
    #[prost(string, repeated, tag = "1")]
    pub(super) roles: Vec<String>,
}

/// A place from which nothing is kept that does not stand beside a step.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CutBody {
    #[prost(uint64, tag = "1")]
    pub(super) at: u64,
    #[prost(string, tag = "2")]
    pub(super) step: String,
}

/// The output of a step that is not executed.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SuppliedBody {
    #[prost(string, tag = "1")]
    pub(super) step: String,
    #[prost(message, optional, tag = "2")]
    pub(super) output: Option<PayloadBody>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FailureBody {
    #[prost(string, tag = "1")]
    class: String,
    #[prost(string, tag = "2")]
    code: String,
    #[prost(string, tag = "3")]
    message: String,
    #[prost(string, repeated, tag = "4")]
    causes: Vec<String>,
    #[prost(uint64, optional, tag = "5")]
    retry_after_us: Option<u64>,
    #[prost(uint32, tag = "6")]
    attempts: u32,
    #[prost(uint32, optional, tag = "7")]
    max_attempts: Option<u32>,
}

/// What a letter of a message is about.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct MessageBody {
    #[prost(string, tag = "1")]
    route: String,
    #[prost(string, tag = "2")]
    direction: String,
    #[prost(string, tag = "3")]
    kind: String,
    #[prost(string, tag = "4")]
    peer: String,
    #[prost(string, tag = "5")]
    request: String,
}

impl MessageBody {
    /// Nothing if the letter is about something else.
    pub(crate) fn of(about: &LetterAbout) -> Option<Self> {
        let LetterAbout::Message { route, direction, kind, peer, request } = about else { return None };
        let (direction, kind) = (direction.as_str().to_string(), kind.as_str().to_string());
        Some(MessageBody { route: route.to_string(), direction, kind, peer: peer.clone(), request: request.clone() })
    }

    pub(crate) fn read(&self) -> Option<LetterAbout> {
        Some(LetterAbout::Message {
            route: RouteName::new(&self.route).ok()?,
            direction: Direction::parse(&self.direction)?,
            kind: MessageKind::parse(&self.kind)?,
            peer: self.peer.clone(),
            request: self.request.clone(),
        })
    }
}

impl RunOptions {
    /// The stored form; nothing for what most runs have.
    pub(super) fn stored(&self) -> Option<OptionsBody> {
        (*self != RunOptions::default()).then(|| self.into())
    }
}

impl From<&RunOptions> for OptionsBody {
    fn from(options: &RunOptions) -> Self {
        let parent = options.parent.as_ref();
        OptionsBody {
            tenant: options.tenant.clone(),
            manual: options.recovery == Recovery::Manual,
            limits: options
                .limits
                .iter()
                .map(|limit| LimitBody { key: limit.key.to_string(), slots: limit.slots })
                .collect(),
            parent: parent.map(|parent| parent.run.to_string()),
            child: parent.map(|parent| parent.child.to_string()),
            detached: parent.is_some_and(|parent| parent.detached),
            definition: options.definition.clone(),
            task: options.task.as_deref().and_then(|task| serde_json::to_vec(task).ok()),
        }
    }
}

impl OptionsBody {
    pub(crate) fn read(&self) -> Option<RunOptions> {
        let limit = |body: &LimitBody| Some(Limiting { key: LimitKey::from_stored(&body.key)?, slots: body.slots });
        let parent = match (&self.parent, &self.child) {
            (Some(run), Some(child)) => {
                Some(Parent { run: RunId::new(run).ok()?, child: StepId::from_stored(child), detached: self.detached })
            }
            _ => None,
        };
        Some(RunOptions {
            tenant: self.tenant.clone(),
            recovery: if self.manual { Recovery::Manual } else { Recovery::Automatic },
            limits: self.limits.iter().map(limit).collect::<Option<_>>()?,
            parent,
            definition: self.definition.clone(),
            task: match &self.task {
                Some(json) => Some(serde_json::from_slice(json).ok()?),
                None => None,
            },
        })
    }
}

/// Failures that stand by themselves, in rows.
impl Failure {
    /// The stored form.
    pub fn encode(&self) -> Bytes {
        FailureBody::from(self).encode_to_vec().into()
    }

    /// Reads the stored form; nothing if it cannot be read.
    pub fn decode(bytes: &[u8]) -> Option<Failure> {
        FailureBody::decode(bytes).ok()?.read()
    }
}

impl From<&Failure> for FailureBody {
    fn from(failure: &Failure) -> Self {
        FailureBody {
            class: failure.class.as_str().to_string(),
            code: failure.code.as_str().to_string(),
            message: failure.message.clone(),
            causes: failure.causes.clone(),
            retry_after_us: failure.retry_after.map(micros),
            attempts: failure.attempts,
            max_attempts: failure.max_attempts,
        }
    }
}

impl FailureBody {
    pub(crate) fn read(&self) -> Option<Failure> {
        let class = [Class::Transient, Class::Permanent, Class::Poison]
            .into_iter()
            .find(|class| class.as_str() == self.class)?;
        Some(Failure {
            class,
            code: Code::parse(&self.code)?,
            message: self.message.clone(),
            causes: self.causes.clone(),
            retry_after: self.retry_after_us.map(Duration::from_micros),
            attempts: self.attempts,
            max_attempts: self.max_attempts,
        })
    }
}
