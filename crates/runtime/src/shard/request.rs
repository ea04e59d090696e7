//! What is asked of the shard, by those who use the engine and by its owner.

use super::{RunView, Waiter};
use crate::error::Error;
use std::collections::BTreeSet;
use steadfast_kernel::limit::Limit;
use steadfast_kernel::run::Preview;
use steadfast_kernel::{Answer, Command, EntityId, Envelope, LimitKey, Plan, PlanId, RetryRun, RunId, StartRun, WorkflowName};
use steadfast_store::Sweep;
use tokio::sync::oneshot;

/// What others ask of the shard.
pub(crate) enum Request {
    /// Begin a run. `fresh` says that the id was just made, so that nobody need look for it.
    Start { command: Box<StartRun>, fresh: bool, reply: Reply<Answer> },
    /// Ask something of an entity.
    Tell { entity: EntityId, command: Box<Command>, reply: Reply<Answer> },
    /// Wait for the end of a run.
    Await { run: RunId, waiter: Waiter },
    /// Look at a run.
    View { run: RunId, reply: Reply<RunView> },
    /// Look what a retry would do.
    Preview { run: RunId, command: Box<RetryRun>, reply: Reply<Preview> },
    /// Look at a limit; nothing if nobody ever asked for a seat of it.
    Limit { key: LimitKey, reply: Reply<Option<Limit>> },
    /// Look at a plan.
    Plan { plan: PlanId, reply: Reply<Box<Plan>> },
    /// Have other instances know how an entity is.
    Share { entity: EntityId, reply: Reply<()> },
    /// Remove what has ended; answered with how many are gone, or not at all if it is not the time for it.
    Sweep { ended: Vec<Sweep>, reply: oneshot::Sender<usize> },
}

impl Request {
    /// The entity that it is about; nothing if it is about the shard.
    pub(crate) fn entity(&self) -> Option<EntityId> {
        Some(match self {
            Request::Start { command, .. } => (&command.run).into(),
            Request::Tell { entity, .. } | Request::Share { entity, .. } => entity.clone(),
            Request::Await { run, .. } | Request::View { run, .. } | Request::Preview { run, .. } => run.into(),
            Request::Limit { key, .. } => EntityId::Limit(key.clone()),
            Request::Plan { plan, .. } => EntityId::Plan(plan.clone()),
            Request::Sweep { .. } => return None,
        })
    }
}

/// What an entity of another shard tells one of this shard.
pub(crate) struct Said {
    pub(crate) envelope: Envelope,
    /// Told once it is durable that it was heard; dropped if it has to be said again.
    pub(crate) heard: oneshot::Sender<()>,
}

/// What the engine's owner wants of the shard. It is heard before everything else, however long the queue is.
pub(crate) enum Control {
    /// Begin nothing new; answered when nothing is in flight.
    Drain { reply: oneshot::Sender<()> },
    /// There is code of these names now, perhaps other code than before, or room for it.
    Registered(BTreeSet<WorkflowName>),
    /// Runs of another shard wait for room at those who have that workflow: so many that only wait here may leave.
    LeaveRoom { workflow: WorkflowName, runs: usize },
    /// There is a handler for expiries where there was none.
    Handled,
    /// Stop, whatever is in flight.
    Stop,
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, Error>>;
