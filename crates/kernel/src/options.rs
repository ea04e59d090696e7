//! What is known of a run beside its code and its input.

use crate::{LimitKey, RunId, StepId, TaskOptions};
use serde::{Deserialize, Serialize};

/// What is known of a run beside its code and its input. It stands in `RUN_STARTED` and never changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunOptions {
    /// Whose work it is; lists can be asked for one tenant's.
    pub tenant: Option<String>,
    /// Whether it goes on by itself after its process died.
    pub recovery: Recovery,
    /// The limits it needs a slot of before it begins, asked for one after another.
    pub limits: Vec<Limiting>,
    /// The run that started it.
    pub parent: Option<Parent>,
    /// The version of its definition that it began with, by hash; nothing if its code is not a definition.
    pub definition: Option<String>,
    /// What makes it a task of a plan, if it is one.
    pub task: Option<Box<TaskOptions>>,
}

/// Whether a run goes on by itself after its process died.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Recovery {
    /// It does.
    #[default]
    Automatic,
    /// If an attempt was in flight or in backoff it is interrupted, and a person decides.
    Manual,
}

/// A limit, and how many slots it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limiting {
    /// Which.
    pub key: LimitKey,
    /// How many runs may hold a slot at once; what was said last counts.
    pub slots: u32,
}

/// The run that started another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parent {
    /// The run.
    pub run: RunId,
    /// What it knows its child by.
    pub child: StepId,
    /// It does not wait for the child, and does not take it along when it ends.
    pub detached: bool,
}

/// Who wants something of an entity, why, and what tells the request from others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// Who.
    pub by: Option<String>,
    /// Why.
    pub why: Option<String>,
    /// The id of the command: the same again is one.
    pub command: Option<String>,
}
