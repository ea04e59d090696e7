//! What instances ask each other, and how it travels.
//!
//! Tested by `crates/sdk/tests/it/cluster/line.rs`.

use crate::error::Error;
use bytes::Bytes;
use prost::Message as _;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use steadfast_kernel::run::Ended;
use steadfast_kernel::{
    Answer, Attempt, Command, EntityId, Envelope, Message, Recovery, Refusal, RunId, StartRun, StepId, Timestamp, Wait, WorkflowName,
};
use steadfast_store::{ShardId, Sweep};

/// What is asked of a shard.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    /// Begin a run.
    Start { command: Box<StartRun>, fresh: bool },
    /// Ask something of an entity.
    Tell { entity: EntityId, command: Box<Command> },
    /// Wait for the end of a run.
    Await { run: RunId },
    /// Say what is known of a run beside its journal.
    Beside { run: RunId },
    /// Hear what an entity of another shard says, which has that term.
    Hear { envelope: Box<Envelope>, shard: ShardId, term: u64 },
    /// Remove what has ended.
    Sweep { shard: ShardId, ended: Vec<Sweep> },
    /// Say what goes for runs of a workflow, if a worker has brought it there.
    Offer { workflow: WorkflowName },
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Told {
    Answer(Answer),
    /// The run has ended.
    Ended(Box<Ended>),
    Beside(Beside),
    /// It was heard, durably.
    Heard,
    /// So many are gone.
    Swept(usize),
    /// What a worker has said that goes for runs of that workflow; nothing if none has brought it.
    Offer(Option<Brought>),
}

/// What goes for runs of a workflow that a worker brings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Brought {
    pub(crate) recovery: Recovery,
    pub(crate) slots: Option<u32>,
}

/// What the holder of a shard knows of a run beside its journal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Beside {
    /// Why its code cannot go on.
    pub(crate) blocked: Option<Wait>,
    /// Steps whose next attempt has begun after its delay, which is no event.
    pub(crate) begun: BTreeSet<StepId>,
    /// The attempts that are being made.
    pub(crate) in_flight: Vec<(StepId, Attempt)>,
}

/// Why it was not done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Failed {
    /// The shard is not here, and nothing was done.
    NotHere,
    /// It cannot be.
    Refused(Refusal),
    /// There is too much to do.
    Busy,
    /// It is not known whether it was done, or it cannot be done now.
    Unavailable,
    /// The journal of that entity says something that cannot be.
    Broken { entity: EntityId, why: String },
    /// What was asked is not known to this version of the program.
    Unknown,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) => Failed::Refused(refusal),
            Error::Busy { .. } => Failed::Busy,
            Error::JournalBroken { entity, why } => Failed::Broken { entity, why },
            _ => Failed::Unavailable,
        }
    }
}

/// The same without what travels beside it.
#[derive(Serialize, Deserialize)]
enum Written {
    Start { command: Box<StartRun>, fresh: bool },
    Tell { entity: EntityId, command: Box<Command> },
    Await { run: RunId },
    Beside { run: RunId },
    Hear { from: EntityId, seq: u64, to: EntityId, kind: String, shard: ShardId, term: u64 },
    Sweep { shard: ShardId, ended: Vec<(EntityId, Timestamp)> },
    Offer { workflow: WorkflowName },
}

#[derive(Clone, PartialEq, prost::Message)]
struct Frame {
    /// The id of the instance that is asked: another one may have its address now.
    #[prost(string, tag = "1")]
    to: String,
    /// What, as JSON.
    #[prost(bytes = "bytes", tag = "2")]
    asked: Bytes,
    /// What an entity says, as it is kept.
    #[prost(bytes = "bytes", tag = "3")]
    said: Bytes,
}

impl Asked {
    /// What is asked now, for the first time or again: a run that was to be fresh may be there the next time.
    pub(crate) fn for_once(&mut self) -> Asked {
        let asked = self.clone();
        if let Asked::Start { fresh, .. } = self {
            *fresh = false;
        }
        asked
    }

    /// The bytes, for the instance of that id; nothing if it is what only a shard itself asks.
    pub(crate) fn encode(self, to: &str) -> Option<Bytes> {
        let mut said = Bytes::new();
        let written = match self {
            Asked::Start { command, fresh } => Written::Start { command, fresh },
            Asked::Tell { entity, command } => Written::Tell { entity, command },
            Asked::Await { run } => Written::Await { run },
            Asked::Beside { run } => Written::Beside { run },
            Asked::Hear { envelope, shard, term } => {
                let Envelope { from, seq, to, message } = *envelope;
                said = message.encode();
                Written::Hear { from, seq, to, kind: message.kind().into(), shard, term }
            }
            Asked::Offer { workflow } => Written::Offer { workflow },
            Asked::Sweep { shard, ended } => {
                Written::Sweep { shard, ended: ended.into_iter().map(|sweep| (sweep.entity, sweep.ended_at)).collect() }
            }
        };
        let asked = serde_json::to_vec(&written).ok()?.into();
        Some(Frame { to: to.into(), asked, said }.encode_to_vec().into())
    }

    /// Whom it is for and what it is; nothing if it cannot be read.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(String, Asked)> {
        let Frame { to: instance, asked, said } = Frame::decode(bytes).ok()?;
        let asked = match serde_json::from_slice(&asked).ok()? {
            Written::Start { command, fresh } => Asked::Start { command, fresh },
            Written::Tell { entity, command } => Asked::Tell { entity, command },
            Written::Await { run } => Asked::Await { run },
            Written::Beside { run } => Asked::Beside { run },
            Written::Hear { from, seq, to, kind, shard, term } => {
                let message = Message::decode(&kind, &said)?;
                Asked::Hear { envelope: Box::new(Envelope { from, seq, to, message }), shard, term }
            }
            Written::Offer { workflow } => Asked::Offer { workflow },
            Written::Sweep { shard, ended } => {
                Asked::Sweep { shard, ended: ended.into_iter().map(|(entity, ended_at)| Sweep { entity, ended_at }).collect() }
            }
        };
        Some((instance, asked))
    }
}

/// The bytes of an answer.
pub(super) fn write(told: &Result<Told, Failed>) -> Bytes {
    serde_json::to_vec(told).map(Into::into).unwrap_or_default()
}

/// The answer of those bytes.
pub(super) fn read(bytes: &[u8]) -> Result<Told, Failed> {
    serde_json::from_slice(bytes).unwrap_or(Err(Failed::Unavailable))
}

#[cfg(test)]
mod snapshot;
