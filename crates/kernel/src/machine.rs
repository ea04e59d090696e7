//! What all machines have in common: decide on a command, advance by an entry, and what is told to others on the way.
//!
//! A machine is a run, a limit, a letter box, a key, a plan, a lock or a route. [`decide`] looks at the state of one entity and answers with entries and effects. [`advance`] folds an
//! entry into the state and tells what it says to other entities: the outbox is a fold of the journal too.

use crate::key::{self, Key};
use crate::letter::{self, LetterBox};
use crate::limit::{self, Limit};
use crate::lock::{self, Lock};
use crate::plan::{self, Plan};
use crate::route::{self, RouteBox};
use crate::{Answer, Command, Effect, EntityId, Entry, Envelope, Message, Refusal, Run, Seq, Timestamp, run};
use serde::{Deserialize, Serialize};

/// What follows from a command: entries to commit, and what is to be done after that.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// To be appended to the journal, in this order.
    pub entries: Vec<Entry>,
    /// To be done after the commit, in this order.
    pub effects: Vec<Effect>,
}

impl Decision {
    /// Nothing changes, and that is the answer.
    pub(crate) fn answer(answer: Answer) -> Self {
        Decision { entries: Vec::new(), effects: vec![Effect::Answer(answer)] }
    }
}

/// The state of an entity: the fold of its journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Entity {
    /// A run; its state is large, and is folded where it lies.
    Run(Box<Run>),
    /// A limit.
    Limit(Limit),
    /// The dead letters of a workflow.
    Letters(LetterBox),
    /// A key, with its callbacks.
    Key(Box<Key>),
    /// A plan.
    Plan(Box<Plan>),
    /// A lock.
    Lock(Box<Lock>),
    /// The dead letters of a route.
    Route(Box<RouteBox>),
}

impl Entity {
    /// The run, if it is one.
    pub fn run(&self) -> Option<&Run> {
        match self {
            Entity::Run(run) => Some(run),
            _ => None,
        }
    }

    /// The key, if it is one.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Entity::Key(key) => Some(key),
            _ => None,
        }
    }

    /// The plan, if it is one.
    pub fn plan(&self) -> Option<&Plan> {
        match self {
            Entity::Plan(plan) => Some(plan),
            _ => None,
        }
    }

    /// The lock, if it is one.
    pub fn lock(&self) -> Option<&Lock> {
        match self {
            Entity::Lock(lock) => Some(lock),
            _ => None,
        }
    }

    /// True if that is its id.
    pub fn is(&self, id: &EntityId) -> bool {
        match (self, id) {
            (Entity::Run(run), EntityId::Run(id)) => run.id == *id,
            (Entity::Limit(limit), EntityId::Limit(key)) => limit.key == *key,
            (Entity::Letters(letters), EntityId::Letters(workflow)) => letters.workflow == *workflow,
            (Entity::Key(key), EntityId::Key(name)) => key.name == *name,
            (Entity::Plan(plan), EntityId::Plan(id)) => plan.id == *id,
            (Entity::Lock(lock), EntityId::Lock(tenant)) => lock.tenant == *tenant,
            (Entity::Route(letters), EntityId::Route(route)) => letters.route == *route,
            (_, _) => false,
        }
    }

    /// The sequence of the last entry.
    pub fn seq(&self) -> Seq {
        match self {
            Entity::Run(run) => run.seq,
            Entity::Limit(limit) => limit.seq,
            Entity::Letters(letters) => letters.seq,
            Entity::Key(key) => key.seq,
            Entity::Plan(plan) => plan.seq,
            Entity::Lock(lock) => lock.seq,
            Entity::Route(letters) => letters.seq,
        }
    }
}

/// A journal that says something that cannot be: a bug or a damaged store. The evidence is kept, nothing is guessed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal of {entity} cannot be followed at event {seq} ({kind}): {why}")]
pub struct IllegalTransition {
    /// Whose journal.
    pub entity: EntityId,
    /// The event that does not fit.
    pub seq: Seq,
    /// Its type.
    pub kind: &'static str,
    /// What it does not fit.
    pub why: String,
}

/// Decides on a command: pure, and touches exactly this entity. `state` is `None` where there is none of that id yet.
///
/// # Errors
/// A [`Refusal`] leaves no trace.
pub fn decide(id: &EntityId, state: Option<&Entity>, command: Command, now: Timestamp) -> Result<Decision, Refusal> {
    match (id, state) {
        (EntityId::Run(id), None) => run::decide(id, None, command, now),
        (EntityId::Run(id), Some(Entity::Run(run))) => run::decide(id, Some(run), command, now),
        (EntityId::Limit(_), None) => Ok(limit::decide(None, &command, now)),
        (EntityId::Limit(_), Some(Entity::Limit(limit))) => Ok(limit::decide(Some(limit), &command, now)),
        (EntityId::Letters(workflow), None) => letter::decide(workflow, None, command, now),
        (EntityId::Letters(workflow), Some(Entity::Letters(letters))) => letter::decide(workflow, Some(letters), command, now),
        (EntityId::Key(name), None) => key::decide(name, None, command, now),
        (EntityId::Key(name), Some(Entity::Key(key))) => key::decide(name, Some(key), command, now),
        (EntityId::Plan(id), None) => plan::decide(id, None, command, now),
        (EntityId::Plan(id), Some(Entity::Plan(plan))) => plan::decide(id, Some(plan), command, now),
        (EntityId::Lock(tenant), None) => lock::decide(tenant, None, command, now),
        (EntityId::Lock(tenant), Some(Entity::Lock(lock))) => lock::decide(tenant, Some(lock), command, now),
        (EntityId::Route(route), None) => route::decide(route, None, command, now),
        (EntityId::Route(route), Some(Entity::Route(letters))) => route::decide(route, Some(letters), command, now),
        (_, Some(_)) => Ok(Decision::default()), // a state is kept under the id of its own kind
    }
}

/// Folds one entry into the state, and tells what it says to others.
///
/// # Errors
/// [`IllegalTransition`] if the entry cannot come next: a gap, another epoch, or anything the machine does not list.
pub fn advance(id: &EntityId, state: Option<Entity>, entry: &Entry) -> Result<(Entity, Vec<Envelope>), IllegalTransition> {
    match (id, state) {
        (EntityId::Run(id), None) => run::begin_with(id, entry).map(|(run, said)| (Entity::Run(Box::new(run)), said)),
        (EntityId::Run(_), Some(Entity::Run(mut run))) => run::advance(&mut run, entry).map(|said| (Entity::Run(run), said)),
        (EntityId::Limit(key), None) => limit::advance(key, None, entry).map(|(limit, said)| (Entity::Limit(limit), said)),
        (EntityId::Limit(key), Some(Entity::Limit(limit))) => {
            limit::advance(key, Some(limit), entry).map(|(limit, said)| (Entity::Limit(limit), said))
        }
        (EntityId::Letters(workflow), None) => letter::evolve(workflow, None, entry).map(|letters| (Entity::Letters(letters), Vec::new())),
        (EntityId::Letters(workflow), Some(Entity::Letters(letters))) => {
            letter::evolve(workflow, Some(letters), entry).map(|letters| (Entity::Letters(letters), Vec::new()))
        }
        (EntityId::Key(name), None) => key::begin_with(name, entry).map(|key| (Entity::Key(Box::new(key)), Vec::new())),
        (EntityId::Key(_), Some(Entity::Key(mut key))) => key::advance(&mut key, entry).map(|()| (Entity::Key(key), Vec::new())),
        (EntityId::Plan(id), None) => plan::advance(id, None, entry).map(|(plan, said)| (Entity::Plan(Box::new(plan)), said)),
        (EntityId::Plan(id), Some(Entity::Plan(plan))) => {
            plan::advance(id, Some(*plan), entry).map(|(plan, said)| (Entity::Plan(Box::new(plan)), said))
        }
        (EntityId::Lock(tenant), None) => lock::advance(tenant, None, entry).map(|(lock, said)| (Entity::Lock(Box::new(lock)), said)),
        (EntityId::Lock(tenant), Some(Entity::Lock(lock))) => {
            lock::advance(tenant, Some(*lock), entry).map(|(lock, said)| (Entity::Lock(Box::new(lock)), said))
        }
        (EntityId::Route(route), None) => route::evolve(route, None, entry).map(|letters| (Entity::Route(letters), Vec::new())),
        (EntityId::Route(route), Some(Entity::Route(letters))) => {
            route::evolve(route, Some(letters), entry).map(|letters| (Entity::Route(letters), Vec::new()))
        }
        (_, Some(_)) => Err(illegal(id, entry, "the state is that of another kind of entity")),
    }
}

/// What an entity says, with its place in its outbox.
pub(crate) fn envelopes(from: &EntityId, sent: u64, said: Vec<(EntityId, Message)>) -> Vec<Envelope> {
    (sent + 1..)
        .zip(said)
        .map(|(seq, (to, message))| Envelope { from: from.clone(), seq, to, message })
        .collect()
}

pub(crate) fn illegal(entity: &EntityId, entry: &Entry, why: impl Into<String>) -> IllegalTransition {
    IllegalTransition { entity: entity.clone(), seq: entry.seq, kind: entry.event.kind(), why: why.into() }
}
