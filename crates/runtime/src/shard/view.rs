//! What can be seen of an entity: it is told once it is durable.

use super::decide::not_found;
use super::{Follow, From, Memory, Reply, Seat, Shard};
use crate::cluster::Beside;
use crate::error::Error;
use crate::host::InFlight;
use std::collections::BTreeSet;
use steadfast_kernel::limit::Limit;
use steadfast_kernel::run::{Ended, Open, Preview, Recover, RetryContext, preview};
use steadfast_kernel::{
    Attempt, Checkpoint, Entity, EntityId, Epoch, Lease, Payload, Plan, Recovery, Refusal, RetryRun, Run, RunId, Seq, Status, StepId,
    TaskOptions, TaskStatus, Timestamp, Wait, WorkflowName,
};
use steadfast_store::{RunRow, ShardId, TaskRow};

/// A run as it stood at its last commit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RunView {
    /// Its id.
    pub id: RunId,
    /// The code it executes.
    pub workflow: WorkflowName,
    /// Where it stands.
    pub status: Status,
    /// What it waits for: what a person has to see to first, then what ends first.
    pub waits: Vec<Wait>,
    /// Which of its lives.
    pub epoch: Epoch,
    /// The number of entries in its journal.
    pub seq: Seq,
    /// When it began.
    pub started_at: Timestamp,
    /// When its present life began, if there was one before.
    pub retried_at: Option<Timestamp>,
    /// When it must be over.
    pub deadline_at: Option<Timestamp>,
    /// How it has ended, if it has.
    pub ended: Option<Ended>,
    /// The last retry of any step.
    pub retry_context: Option<RetryContext>,
    /// Whose work it is.
    pub tenant: Option<String>,
    /// Whether it goes on by itself after its process died.
    pub recovery: Recovery,
    /// The run that started it.
    pub parent: Option<RunId>,
    /// The runs that it has started, by what its code knows them by.
    pub children: Vec<(StepId, RunId)>,
    /// What the code said last of how far it has come.
    pub note: Option<String>,
    /// The version of its definition that it began with, by hash.
    pub definition: Option<String>,
    /// What the code is given.
    pub input: Payload,
    /// The attempts that are being made, of steps and undos.
    pub in_flight: Vec<(StepId, Attempt)>,
    /// What else can be seen of it if it is a task.
    pub task: Option<Box<TaskView>>,
}

/// What can be seen of a task beyond what can be seen of every run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TaskView {
    /// What makes it a task.
    pub options: TaskOptions,
    /// Where it stands.
    pub status: TaskStatus,
    /// The stage that it is at, or was at when it stopped, counted from 0; nothing before the first one.
    pub stage: Option<u32>,
    /// How many stages are done.
    pub completed: u32,
    /// Where a retry goes on from.
    pub checkpoint: Option<Checkpoint>,
    /// It pauses, or has paused, because somebody wants it.
    pub pause_requested: bool,
    /// Its tenant's lock, while it has it.
    pub lock: Option<Lease>,
    /// When it first began.
    pub started_at: Option<Timestamp>,
}

impl TaskView {
    fn of(run: &Run) -> Option<Self> {
        let (task, options, row) = (run.task()?, run.task_options()?, TaskRow::of(run)?);
        Some(TaskView {
            options: options.clone(),
            status: row.status,
            stage: row.stage,
            completed: row.completed,
            checkpoint: task.checkpoint.clone(),
            pause_requested: row.pause_requested,
            lock: task.lock.clone(),
            started_at: task.started_at,
        })
    }
}

impl RunView {
    /// `begun` are the steps whose next attempt has begun after its delay, which is no event.
    pub(super) fn of(run: &Run, blocked: Option<&Wait>, begun: &BTreeSet<StepId>) -> Self {
        let (status, mut waits) = seen(run, blocked);
        waits.retain(|wait| !matches!(wait, Wait::Backoff { step, .. } if begun.contains(step)));
        let status = if status == Status::Waiting && !begun.is_empty() { Status::Running } else { status };
        RunView {
            id: run.id.clone(),
            workflow: run.workflow.clone(),
            status,
            waits,
            epoch: run.epoch,
            seq: run.seq,
            started_at: run.started_at,
            retried_at: run.retried.map(|(at, _)| at),
            deadline_at: run.deadline.map(|deadline| deadline.at),
            ended: run.ended().cloned(),
            retry_context: run.retry_context,
            tenant: run.options.tenant.clone(),
            recovery: run.options.recovery,
            parent: run.options.parent.as_ref().map(|parent| parent.run.clone()),
            children: run.children().map(|(child, run)| (child.clone(), run.clone())).collect(),
            note: run.note.clone(),
            definition: run.options.definition.clone(),
            input: run.input.clone(),
            in_flight: Vec::new(),
            task: TaskView::of(run).map(Box::new),
        }
    }
}

/// Where a run stands and what it waits for, given why its code cannot go on. A run that stands still does not go on for another reason.
fn seen(run: &Run, blocked: Option<&Wait>) -> (Status, Vec<Wait>) {
    let (status, mut waits) = (run.status(), run.waits());
    let Some(blocked) = blocked.filter(|_| run.ended().is_none()) else { return (status, waits) };
    let stands_still = run.open().is_some_and(Open::stands_still);
    waits.insert(if stands_still { waits.len() } else { 0 }, blocked.clone());
    (if status == Status::Running { Status::Waiting } else { status }, waits)
}

/// What lists show of it: the same. A restart tries again whether its code can go on.
pub(super) fn row(shard: ShardId, run: &Run, blocked: Option<&Wait>) -> RunRow {
    let mut row = RunRow::of(shard, run);
    if let Some(blocked) = blocked.filter(|_| run.open().is_some_and(|open| !open.stands_still())) {
        row.status = seen(run, Some(blocked)).0;
        row.wait = Some(blocked.reason().to_string());
        row.recover = row.recover.or(Some(Recover::Host));
    }
    row
}

/// Something that is only looked at.
pub(super) enum Look {
    Beside(Reply<Beside>),
    Run(Reply<RunView>),
    Preview(Box<RetryRun>, Reply<Preview>),
    Limit(Reply<Option<Limit>>),
    Plan(Reply<Box<Plan>>),
    Share(Reply<()>),
}

/// What was seen, and who wants to know.
pub(super) enum Seen {
    Beside(Reply<Beside>, Beside, InFlight),
    Run(Reply<RunView>, Box<RunView>, InFlight),
    Preview(Reply<Preview>, Result<Box<Preview>, Refusal>),
    Limit(Reply<Option<Limit>>, Option<Box<Limit>>),
    Plan(Reply<Box<Plan>>, Box<Plan>),
    Shared(Reply<()>),
}

impl Shard {
    /// What is seen is told once it is durable.
    pub(super) fn look(&mut self, id: &EntityId, look: Look) {
        if let Look::Share(_) = look {
            self.note(id, &[]);
        }
        match look.at(self.seat(id)) {
            Ok(seen) => self.follow(id, From::Viewer(seen), Ok(Follow::default())),
            Err(look) => look.fail(not_found(id)),
        }
    }
}

impl Seat {
    /// The attempts that are being made.
    fn attempts(&self) -> InFlight {
        self.session.as_ref().map_or(InFlight::Now(Vec::new()), |session| session.line.attempts())
    }
}

impl Look {
    /// What is seen there; the look itself if there is nothing to be seen.
    pub(super) fn at(self, seat: &Seat) -> Result<Seen, Look> {
        Ok(match (self, &seat.memory) {
            (Look::Beside(reply), Memory::Ready(Some(Entity::Run(_)))) => {
                let beside = Beside { blocked: seat.blocked.clone(), begun: seat.begun.clone(), in_flight: Vec::new() };
                Seen::Beside(reply, beside, seat.attempts())
            }
            (Look::Run(reply), Memory::Ready(Some(Entity::Run(run)))) => {
                Seen::Run(reply, Box::new(RunView::of(run, seat.blocked.as_ref(), &seat.begun)), seat.attempts())
            }
            (Look::Preview(mut retry, reply), Memory::Ready(Some(Entity::Run(run)))) => {
                seat.complete(&mut retry);
                Seen::Preview(reply, preview(run, *retry).map(Box::new))
            }
            (Look::Limit(reply), Memory::Ready(Some(Entity::Limit(limit)))) => Seen::Limit(reply, Some(Box::new(limit.clone()))),
            (Look::Limit(reply), _) => Seen::Limit(reply, None),
            (Look::Plan(reply), Memory::Ready(Some(Entity::Plan(plan)))) => Seen::Plan(reply, plan.clone()),
            (Look::Share(reply), Memory::Ready(Some(_))) => Seen::Shared(reply),
            (look, _) => return Err(look),
        })
    }

    pub(super) fn fail(self, error: Error) {
        match self {
            Look::Beside(reply) => drop(reply.send(Err(error))),
            Look::Run(reply) => drop(reply.send(Err(error))),
            Look::Preview(_, reply) => drop(reply.send(Err(error))),
            Look::Limit(reply) => drop(reply.send(Err(error))),
            Look::Plan(reply) => drop(reply.send(Err(error))),
            Look::Share(reply) => drop(reply.send(Err(error))),
        }
    }
}

impl Seen {
    pub(super) fn tell(self) {
        match self {
            Seen::Beside(reply, beside, InFlight::Now(in_flight)) => drop(reply.send(Ok(Beside { in_flight, ..beside }))),
            Seen::Beside(reply, beside, InFlight::Later(in_flight)) => {
                tokio::spawn(async move { reply.send(Ok(Beside { in_flight: in_flight.await, ..beside })) });
            }
            Seen::Run(reply, view, InFlight::Now(in_flight)) => drop(reply.send(Ok(RunView { in_flight, ..*view }))),
            Seen::Run(reply, view, InFlight::Later(in_flight)) => {
                tokio::spawn(async move { reply.send(Ok(RunView { in_flight: in_flight.await, ..*view })) });
            }
            Seen::Preview(reply, preview) => drop(reply.send(preview.map(|preview| *preview).map_err(Into::into))),
            Seen::Limit(reply, limit) => drop(reply.send(Ok(limit.map(|limit| *limit)))),
            Seen::Plan(reply, plan) => drop(reply.send(Ok(plan))),
            Seen::Shared(reply) => drop(reply.send(Ok(()))),
        }
    }

    pub(super) fn fail(self, error: Error) {
        match self {
            Seen::Beside(reply, ..) => drop(reply.send(Err(error))),
            Seen::Run(reply, ..) => drop(reply.send(Err(error))),
            Seen::Preview(reply, _) => drop(reply.send(Err(error))),
            Seen::Limit(reply, _) => drop(reply.send(Err(error))),
            Seen::Plan(reply, _) => drop(reply.send(Err(error))),
            Seen::Shared(reply) => drop(reply.send(Err(error))),
        }
    }
}
