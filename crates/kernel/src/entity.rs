//! What has a journal and a state of its own: a run, a limit, a letter box.

use crate::id::check;
use crate::{InvalidId, RunId, Seq, WorkflowName};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The id of an entity: one decision touches exactly one. Ids of runs stand for themselves, others have a prefix that no run id can have.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum EntityId {
    /// A run.
    Run(RunId),
    /// A limit, with those who hold its slots and those who wait for one.
    Limit(LimitKey),
    /// The dead letters of a workflow.
    Letters(WorkflowName),
}

impl EntityId {
    /// Takes an id as it was stored.
    pub fn from_stored(text: &str) -> Option<Self> {
        match text.split_once(':') {
            None => RunId::new(text).ok().map(EntityId::Run),
            Some(("limit", key)) => LimitKey::new(key).ok().map(EntityId::Limit),
            Some(("letters", workflow)) => WorkflowName::new(workflow).ok().map(EntityId::Letters),
            Some(_) => None,
        }
    }

    /// The run, if it is one.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            EntityId::Run(run) => Some(run),
            EntityId::Limit(_) | EntityId::Letters(_) => None,
        }
    }
}

impl From<EntityId> for String {
    fn from(id: EntityId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for EntityId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        EntityId::from_stored(&text).ok_or("no entity has such an id")
    }
}

impl From<RunId> for EntityId {
    fn from(run: RunId) -> Self {
        EntityId::Run(run)
    }
}

impl From<&RunId> for EntityId {
    fn from(run: &RunId) -> Self {
        EntityId::Run(run.clone())
    }
}

/// The stored form: `RUN`, `limit:KEY` or `letters:WORKFLOW`.
impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EntityId::Run(run) => write!(f, "{run}"),
            EntityId::Limit(key) => write!(f, "limit:{key}"),
            EntityId::Letters(workflow) => write!(f, "letters:{workflow}"),
        }
    }
}

impl fmt::Debug for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// The key of a limit: of a workflow, or one that callers have agreed on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LimitKey(Arc<str>);

impl LimitKey {
    fn new(text: &str) -> Result<Self, InvalidId> {
        check("limit key", text.strip_prefix("workflow/").or_else(|| text.strip_prefix("key/")).unwrap_or_default(), true)?;
        Ok(LimitKey(text.into()))
    }

    /// The limit over all runs of a workflow.
    pub fn of_workflow(workflow: &WorkflowName) -> Self {
        LimitKey(format!("workflow/{workflow}").into())
    }

    /// The limit over all runs that are started with that key, whatever their workflow.
    ///
    /// # Errors
    /// [`InvalidId`] if it is empty, too long, or has other characters than `A-Z a-z 0-9 . _ - /`.
    pub fn of_key(key: &str) -> Result<Self, InvalidId> {
        check("limit key", key, true)?;
        Ok(LimitKey(format!("key/{key}").into()))
    }

    /// Takes a key as it was stored.
    pub fn from_stored(text: &str) -> Option<Self> {
        LimitKey::new(text).ok()
    }

    /// The key as text: `workflow/NAME` or `key/KEY`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LimitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for LimitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The id of a dead letter: its box, and the place of its arrival in the box's journal. Shown as `WORKFLOW.SEQ`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LetterId {
    /// The workflow whose box it is in.
    pub workflow: WorkflowName,
    /// The sequence of its arrival.
    pub seq: Seq,
}

impl LetterId {
    /// Reads the shown form.
    pub fn parse(text: &str) -> Option<Self> {
        let (workflow, seq) = text.rsplit_once('.')?;
        let digits = !seq.is_empty() && seq.bytes().all(|b| b.is_ascii_digit());
        Some(LetterId { workflow: WorkflowName::new(workflow).ok()?, seq: seq.parse().ok().filter(|seq| digits && *seq > 0)? })
    }
}

impl fmt::Display for LetterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.workflow, self.seq)
    }
}

impl fmt::Debug for LetterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_survive_being_stored() {
        let workflow = WorkflowName::new("team/checkout").unwrap();
        let ids = [
            EntityId::Run(RunId::new("order-17").unwrap()),
            EntityId::Limit(LimitKey::of_workflow(&workflow)),
            EntityId::Limit(LimitKey::of_key("customer-7").unwrap()),
            EntityId::Letters(workflow),
        ];
        for id in ids {
            assert_eq!(EntityId::from_stored(&id.to_string()), Some(id));
        }
        for bad in ["", "other:x", "limit:x", "limit:key/", "letters:", "limit:key/a b"] {
            assert_eq!(EntityId::from_stored(bad), None, "{bad}");
        }
    }

    #[test]
    fn letters_are_found_by_their_shown_id() {
        let id = LetterId { workflow: WorkflowName::new("a.b/c.2").unwrap(), seq: 17 };
        assert_eq!(id.to_string(), "a.b/c.2.17");
        assert_eq!(LetterId::parse("a.b/c.2.17"), Some(id));
        for bad in ["", "17", "checkout", "checkout.", "checkout.0", "checkout.+1", ".5", "a b.1"] {
            assert_eq!(LetterId::parse(bad), None, "{bad}");
        }
    }
}
