//! What is asked of the shard, by those who use the engine and by its owner.

use super::view::Look;
use super::{RunView, Waiter};
use crate::cluster::Beside;
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
    /// Say what is known of a run beside its journal.
    Beside { run: RunId, reply: Reply<Beside> },
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
            Request::Await { run, .. } | Request::Beside { run, .. } | Request::View { run, .. } | Request::Preview { run, .. } => {
                run.into()
            }
            Request::Limit { key, .. } => EntityId::Limit(key.clone()),
            Request::Plan { plan, .. } => EntityId::Plan(plan.clone()),
            Request::Sweep { .. } => return None,
        })
    }

    /// What it wants to see of which entity, if it only looks.
    pub(super) fn look(self) -> Result<(EntityId, Look), Self> {
        Ok(match self {
            Request::Beside { run, reply } => (run.into(), Look::Beside(reply)),
            Request::View { run, reply } => (run.into(), Look::Run(reply)),
            Request::Preview { run, command, reply } => (run.into(), Look::Preview(command, reply)),
            Request::Limit { key, reply } => (EntityId::Limit(key), Look::Limit(reply)),
            Request::Plan { plan, reply } => (EntityId::Plan(plan), Look::Plan(reply)),
            Request::Share { entity, reply } => (entity, Look::Share(reply)),
            request => return Err(request),
        })
    }

    /// It was not taken up.
    pub(super) fn refuse(self) {
        match self {
            Request::Start { reply, .. } | Request::Tell { reply, .. } => drop(reply.send(Err(Error::Stopped))),
            Request::Await { waiter, .. } => waiter.fail(Error::Stopped),
            Request::Sweep { .. } => {}
            request => drop(request.look().map(|(_, look)| look.fail(Error::Stopped))),
        }
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
    /// It is to stay here after all. Not answered if it is over already, or was not drained.
    GoOn { reply: oneshot::Sender<()> },
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
