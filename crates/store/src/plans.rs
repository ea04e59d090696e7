//! The rows of plans, of tasks and of locks: folds of their journals.

use crate::ShardId;
use steadfast_kernel::plan::Phase;
use steadfast_kernel::{Lease, Lock, Plan, PlanId, PlanStatus, Run, TaskStatus, TenantId, Timestamp};

/// What lists need to know of a plan. Put when it changes.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanRow {
    /// The shard it lives in.
    pub shard: ShardId,
    /// Its id.
    pub plan: PlanId,
    /// The name of its definition.
    pub definition: String,
    /// Its status.
    pub status: PlanStatus,
    /// Why it is paused or has failed, for people.
    pub why: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

impl PlanRow {
    /// The row of a plan in that state.
    pub fn of(shard: ShardId, plan: &Plan) -> Self {
        let (why, ended_at) = match &plan.phase {
            Phase::Paused { origin, .. } => (origin.why.clone(), None),
            Phase::Ended { failure, at, .. } => (failure.as_ref().map(|failure| failure.message.clone()), Some(*at)),
            Phase::New | Phase::Running | Phase::Ending { .. } => (None, None),
        };
        PlanRow {
            shard,
            plan: plan.id.clone(),
            definition: plan.created.definition.clone(),
            status: plan.status(),
            why,
            created_at: plan.created_at,
            started_at: plan.started_at,
            ended_at,
        }
    }
}

/// Which plans a list shows: those to which all of it applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanFilter {
    /// Of that shard.
    pub shard: Option<ShardId>,
    /// In that status.
    pub status: Option<PlanStatus>,
    /// Of that definition.
    pub definition: Option<String>,
}

impl PlanFilter {
    /// Whether it lets that plan through. What a store answers must agree with this.
    pub fn lets_through(&self, row: &PlanRow) -> bool {
        self.shard.is_none_or(|shard| row.shard == shard)
            && self.status.is_none_or(|status| row.status == status)
            && self.definition.as_ref().is_none_or(|definition| row.definition == *definition)
    }
}

/// The place of a plan in lists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanCursor {
    /// When it was created.
    pub created_at: Timestamp,
    /// Its id.
    pub plan: PlanId,
}

impl From<&PlanRow> for PlanCursor {
    fn from(row: &PlanRow) -> Self {
        PlanCursor { created_at: row.created_at, plan: row.plan.clone() }
    }
}

/// What lists need to know of a run beyond [`RunRow`](crate::RunRow) if it is a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRow {
    /// Its plan.
    pub plan: PlanId,
    /// Its status.
    pub status: TaskStatus,
    /// The stage that it is at, or was at when it stopped, counted from 0; nothing before the first one.
    pub stage: Option<u32>,
    /// How many stages are done.
    pub completed: u32,
    /// The last stage of its checkpoint, if it has one.
    pub checkpoint: Option<u32>,
    /// It pauses, or has paused, because somebody wants it.
    pub pause_requested: bool,
    /// When it first began.
    pub started_at: Option<Timestamp>,
}

impl TaskRow {
    /// The row of a run in that state; nothing if it is no task.
    pub fn of(run: &Run) -> Option<Self> {
        let (task, options) = (run.task()?, run.task_options()?);
        Some(TaskRow {
            plan: options.plan.clone(),
            status: run.task_status()?,
            stage: run.stage_at(),
            completed: u32::try_from(task.completed.len()).unwrap_or(u32::MAX),
            checkpoint: task.checkpoint.as_ref().map(|checkpoint| checkpoint.index),
            pause_requested: run.open().is_some_and(|open| open.paused.is_some()),
            started_at: task.started_at,
        })
    }
}

/// How many tasks of a plan have a status.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskCount {
    /// The plan.
    pub plan: PlanId,
    /// The status.
    pub status: TaskStatus,
    /// How many.
    pub tasks: u64,
}

/// A lock that somebody has.
#[derive(Clone, Debug, PartialEq)]
pub struct LockRow {
    /// The shard it lives in.
    pub shard: ShardId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Who has it.
    pub lease: Lease,
    /// Since when.
    pub since: Timestamp,
    /// How many wait for it.
    pub waiting: u32,
}

/// A lock put or removed.
#[derive(Clone, Debug, PartialEq)]
pub enum LockChange {
    /// Somebody has it; it replaces one of the same tenant.
    Put(Box<LockRow>),
    /// Nobody has it.
    Remove(TenantId),
}

impl LockChange {
    /// What leads from one state of a lock to another, if anything does.
    pub fn between(shard: ShardId, before: Option<&Lock>, after: &Lock) -> Option<Self> {
        let row = |lock: &Lock| {
            let holder = lock.holder.as_ref()?;
            let (tenant, waiting) = (lock.tenant.clone(), u32::try_from(lock.line.len()).unwrap_or(u32::MAX));
            Some(LockRow { shard, tenant, lease: holder.lease.clone(), since: holder.since, waiting })
        };
        let (was, is) = (before.and_then(row), row(after));
        if was == is {
            return None;
        }
        Some(is.map_or_else(|| LockChange::Remove(after.tenant.clone()), |row| LockChange::Put(Box::new(row))))
    }
}
