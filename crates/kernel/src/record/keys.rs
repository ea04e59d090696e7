//! The stored form of what a key holds. Its value is the record's payload.

use super::micros;
use crate::message::PayloadBody;
use crate::{Held, Payload, Target, Timestamp, WorkflowName};
use prost::Message;
use std::time::Duration;

#[derive(Clone, PartialEq, Message)]
pub(super) struct HeldBody {
    #[prost(uint64, tag = "1")]
    revision: u64,
    #[prost(uint64, tag = "2")]
    ttl_us: u64,
    #[prost(int64, tag = "3")]
    expires_at: i64,
    #[prost(string, optional, tag = "4")]
    owner: Option<String>,
    #[prost(bool, tag = "5")]
    directory: bool,
    #[prost(message, optional, tag = "6")]
    on_expire: Option<TargetBody>,
    #[prost(int64, tag = "7")]
    put_at: i64,
}

/// One of them; a handler of the process if there is neither.
#[derive(Clone, PartialEq, Message)]
struct TargetBody {
    #[prost(string, optional, tag = "1")]
    url: Option<String>,
    #[prost(string, optional, tag = "2")]
    workflow: Option<String>,
    #[prost(message, optional, tag = "3")]
    input: Option<PayloadBody>,
}

impl From<&Held> for HeldBody {
    fn from(held: &Held) -> Self {
        HeldBody {
            revision: held.revision,
            ttl_us: micros(held.ttl),
            expires_at: held.expires_at.as_micros(),
            owner: held.owner.clone(),
            directory: held.directory,
            on_expire: held.on_expire.as_ref().map(Into::into),
            put_at: held.put_at.as_micros(),
        }
    }
}

impl HeldBody {
    pub(super) fn read(&self, value: Payload) -> Option<Held> {
        Some(Held {
            revision: self.revision,
            value,
            ttl: Duration::from_micros(self.ttl_us),
            expires_at: Timestamp::from_micros(self.expires_at),
            owner: self.owner.clone(),
            directory: self.directory,
            on_expire: match &self.on_expire {
                Some(target) => Some(target.read()?),
                None => None,
            },
            put_at: Timestamp::from_micros(self.put_at),
        })
    }
}

impl From<&Target> for TargetBody {
    fn from(target: &Target) -> Self {
        match target {
            Target::Url(url) => TargetBody { url: Some(url.clone()), ..TargetBody::default() },
            Target::StartRun { workflow, input } => {
                TargetBody { workflow: Some(workflow.to_string()), input: Some(input.into()), ..TargetBody::default() }
            }
            Target::Handler => TargetBody::default(),
        }
    }
}

impl TargetBody {
    fn read(&self) -> Option<Target> {
        Some(match (&self.url, &self.workflow) {
            (Some(url), _) => Target::Url(url.clone()),
            (None, Some(workflow)) => Target::StartRun { workflow: WorkflowName::new(workflow).ok()?, input: self.input.as_ref()?.read()? },
            (None, None) => Target::Handler,
        })
    }
}

/// What a key holds, in rows; its value stands beside it.
impl Held {
    /// The stored form.
    pub fn encode(&self) -> bytes::Bytes {
        HeldBody::from(self).encode_to_vec().into()
    }

    /// Reads the stored form; nothing if it cannot be read.
    pub fn decode(bytes: &[u8], value: Payload) -> Option<Held> {
        HeldBody::decode(bytes).ok()?.read(value)
    }
}
