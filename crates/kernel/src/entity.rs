//! What has a journal and a state of its own: a run, a limit, a letter box, a key, a plan, a lock, a route.

use crate::id::check;
use crate::{InvalidId, KeyName, PlanId, RouteName, RunId, Seq, TenantId, WorkflowName};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The id of an entity: one decision touches exactly one. Ids of runs stand for themselves, others have a prefix that no run id can have. They are in the
/// order of their stored form.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum EntityId {
    /// A run.
    Run(RunId),
    /// A limit, with those who hold its slots and those who wait for one.
    Limit(LimitKey),
    /// The dead letters of a workflow.
    Letters(WorkflowName),
    /// A key, with its callbacks.
    Key(KeyName),
    /// A plan, with what it knows of its tasks.
    Plan(PlanId),
    /// The lock of a tenant, with its holder and those who wait for it.
    Lock(TenantId),
    /// The dead letters of a route.
    Route(RouteName),
}

impl EntityId {
    /// Takes an id as it was stored.
    pub fn from_stored(text: &str) -> Option<Self> {
        match text.split_once(':') {
            None => RunId::new(text).ok().map(EntityId::Run),
            Some(("limit", key)) => LimitKey::new(key).ok().map(EntityId::Limit),
            Some(("letters", workflow)) => WorkflowName::new(workflow).ok().map(EntityId::Letters),
            Some(("key", key)) => KeyName::new(key).ok().map(EntityId::Key),
            Some(("plan", plan)) => PlanId::new(plan).ok().map(EntityId::Plan),
            Some(("lock", tenant)) => TenantId::new(tenant).ok().map(EntityId::Lock),
            Some(("route", route)) => RouteName::new(route).ok().map(EntityId::Route),
            Some(_) => None,
        }
    }

    /// The run, if it is one.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            EntityId::Run(run) => Some(run),
            _ => None,
        }
    }

    /// The key, if it is one.
    pub fn key(&self) -> Option<&KeyName> {
        match self {
            EntityId::Key(key) => Some(key),
            _ => None,
        }
    }

    /// The stored form, as `Display` writes it. That of a run is its id.
    pub fn stored(&self) -> Cow<'_, str> {
        match self.parts() {
            ("", name) => Cow::Borrowed(name),
            (kind, name) => Cow::Owned([kind, name].concat()),
        }
    }

    /// The stored form: what tells the kinds apart, and what tells those of a kind apart.
    fn parts(&self) -> (&'static str, &str) {
        match self {
            EntityId::Run(run) => ("", run.as_str()),
            EntityId::Limit(key) => ("limit:", key.as_str()),
            EntityId::Letters(workflow) => ("letters:", workflow.as_str()),
            EntityId::Key(key) => ("key:", key.as_str()),
            EntityId::Plan(plan) => ("plan:", plan.as_str()),
            EntityId::Lock(tenant) => ("lock:", tenant.as_str()),
            EntityId::Route(route) => ("route:", route.as_str()),
        }
    }
}

impl Ord for EntityId {
    fn cmp(&self, other: &Self) -> Ordering {
        let (mine, theirs) = (self.parts(), other.parts());
        if mine.0 == theirs.0 {
            return mine.1.cmp(theirs.1);
        }
        mine.0.bytes().chain(mine.1.bytes()).cmp(theirs.0.bytes().chain(theirs.1.bytes()))
    }
}

impl PartialOrd for EntityId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
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

/// The stored form: `RUN`, `limit:KEY`, `letters:WORKFLOW`, `key:KEY`, `plan:PLAN`, `lock:TENANT` or `route:ROUTE`.
impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = self.parts();
        write!(f, "{kind}{name}")
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

/// Where a dead letter is kept, and on what record: in the box of a workflow or of a route, or with the key whose callback it is.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum LetterHome {
    /// Steps of runs of that workflow.
    Workflow(WorkflowName),
    /// Callbacks of that key.
    Key(KeyName),
    /// Messages of that route.
    Route(RouteName),
}

impl LetterHome {
    /// Reads the shown form: `WORKFLOW`, `key:KEY` or `route:ROUTE`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once(':') {
            Some(("key", key)) => KeyName::new(key).ok().map(LetterHome::Key),
            Some(("route", route)) => RouteName::new(route).ok().map(LetterHome::Route),
            _ => WorkflowName::new(text).ok().map(LetterHome::Workflow),
        }
    }

    /// Whose journal has it.
    pub fn entity(&self) -> EntityId {
        match self {
            LetterHome::Workflow(workflow) => EntityId::Letters(workflow.clone()),
            LetterHome::Key(key) => EntityId::Key(key.clone()),
            LetterHome::Route(route) => EntityId::Route(route.clone()),
        }
    }

    /// The home of the letters that stand in that journal.
    pub fn of(entity: &EntityId) -> Option<Self> {
        match entity {
            EntityId::Letters(workflow) => Some(LetterHome::Workflow(workflow.clone())),
            EntityId::Key(key) => Some(LetterHome::Key(key.clone())),
            EntityId::Route(route) => Some(LetterHome::Route(route.clone())),
            EntityId::Run(_) | EntityId::Limit(_) | EntityId::Plan(_) | EntityId::Lock(_) => None,
        }
    }
}

impl Ord for LetterHome {
    fn cmp(&self, other: &Self) -> Ordering {
        self.to_string().cmp(&other.to_string())
    }
}

impl PartialOrd for LetterHome {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for LetterHome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LetterHome::Workflow(workflow) => write!(f, "{workflow}"),
            LetterHome::Key(key) => write!(f, "key:{key}"),
            LetterHome::Route(route) => write!(f, "route:{route}"),
        }
    }
}

/// The id of a dead letter: its home, and the place of its arrival in the journal there. Shown as `WORKFLOW.SEQ`, `key:KEY.SEQ` or `route:ROUTE.SEQ`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct LetterId {
    /// Where it is kept.
    pub home: LetterHome,
    /// The sequence of its arrival.
    pub seq: Seq,
}

impl From<LetterId> for String {
    fn from(id: LetterId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for LetterId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        LetterId::parse(&text).ok_or("no letter has such an id")
    }
}

impl LetterId {
    /// Reads the shown form.
    pub fn parse(text: &str) -> Option<Self> {
        let (home, seq) = text.rsplit_once('.')?;
        let digits = !seq.is_empty() && seq.bytes().all(|b| b.is_ascii_digit());
        Some(LetterId { home: LetterHome::parse(home)?, seq: seq.parse().ok().filter(|seq| digits && *seq > 0)? })
    }
}

impl fmt::Display for LetterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.home, self.seq)
    }
}

impl fmt::Debug for LetterHome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
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
            EntityId::Key(KeyName::new("session:42/cart").unwrap()),
            EntityId::Plan(PlanId::new("switch/17").unwrap()),
            EntityId::Lock(TenantId::new("acme.eu").unwrap()),
            EntityId::Route(RouteName::new("mail/send.v2").unwrap()),
        ];
        for id in &ids {
            assert_eq!(EntityId::from_stored(&id.to_string()).as_ref(), Some(id));
            assert_eq!(id.stored(), id.to_string());
        }
        let sorted = |mut ids: Vec<String>| {
            ids.sort();
            ids
        };
        let mut by_id = ids.to_vec();
        by_id.sort();
        let by_text = sorted(ids.iter().map(ToString::to_string).collect());
        assert_eq!(by_id.iter().map(ToString::to_string).collect::<Vec<_>>(), by_text, "they are in the order of their text");
        let others = ["key:", "key:a//b", "key:a b", "plan:", "lock:a b", "route:", "route:a:b"];
        for bad in ["", "other:x", "limit:x", "limit:key/", "letters:", "limit:key/a b"].into_iter().chain(others) {
            assert_eq!(EntityId::from_stored(bad), None, "{bad}");
        }
    }

    #[test]
    fn letters_are_found_by_their_shown_id() {
        let id = LetterId { home: LetterHome::Workflow(WorkflowName::new("a.b/c.2").unwrap()), seq: 17 };
        assert_eq!(id.to_string(), "a.b/c.2.17");
        assert_eq!(LetterId::parse("a.b/c.2.17"), Some(id));
        let id = LetterId { home: LetterHome::Key(KeyName::new("session:42/a.b").unwrap()), seq: 3 };
        assert_eq!(id.to_string(), "key:session:42/a.b.3");
        assert_eq!(LetterId::parse("key:session:42/a.b.3"), Some(id));
        let id = LetterId { home: LetterHome::Route(RouteName::new("mail/send.v2").unwrap()), seq: 5 };
        assert_eq!(id.to_string(), "route:mail/send.v2.5");
        assert_eq!(LetterId::parse("route:mail/send.v2.5"), Some(id));
        for bad in ["route:.5", "route:a b.1", "routes:a.1", "", "17", "checkout", "checkout.", "checkout.0", "checkout.+1", ".5", "a b.1"]
        {
            assert_eq!(LetterId::parse(bad), None, "{bad}");
        }
    }
}
