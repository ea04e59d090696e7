//! What others may know of a plan, a task and a lock: made from their state after every commit that changes them.
//!
//! Tested by `crates/sdk/tests/it/instances/mirror.rs`.

use steadfast_kernel::run::Run;
use steadfast_kernel::{Entity, Lease, Lock, Payload, Plan, PlanId, PlanStatus, RunId, Seq, TaskStatus, TenantId, Timestamp, lock, random};
use steadfast_store::SharedCheckpoint;

/// What others may know of an entity.
#[derive(Clone, Debug)]
pub(crate) enum Image {
    Plan(Box<PlanImage>),
    Task(Box<TaskImage>),
    Lock(Box<LockImage>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlanImage {
    pub(crate) seq: Seq,
    pub(crate) plan: PlanId,
    pub(crate) status: PlanStatus,
    pub(crate) tasks: Vec<RunId>,
    pub(crate) max_concurrency: u32,
    pub(crate) created_at: Timestamp,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) definition: String,
    pub(crate) hash: String,
    pub(crate) vars: Payload,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TaskImage {
    pub(crate) seq: Seq,
    pub(crate) task: RunId,
    pub(crate) tenant: TenantId,
    pub(crate) plan: PlanId,
    pub(crate) status: TaskStatus,
    pub(crate) pause_requested: bool,
    pub(crate) created_at: Timestamp,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) definition: String,
    pub(crate) hash: String,
    pub(crate) fence: u64,
    pub(crate) checkpoint: Option<SharedCheckpoint>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LockImage {
    pub(crate) seq: Seq,
    pub(crate) tenant: TenantId,
    pub(crate) holder: Option<Lease>,
    pub(crate) wanted: Option<lock::Waiter>,
    /// The fence of the last holding that is known here.
    pub(crate) fence: u64,
}

impl Image {
    /// Of an entity in that state; nothing if it is no concern of others.
    pub(crate) fn of(entity: &Entity) -> Option<Self> {
        match entity {
            Entity::Run(run) => TaskImage::of(run).map(Box::new).map(Image::Task),
            Entity::Plan(plan) => Some(Image::Plan(Box::new(PlanImage::of(plan)))),
            Entity::Lock(lock) => Some(Image::Lock(Box::new(LockImage::of(lock)))),
            Entity::Limit(_) | Entity::Letters(_) | Entity::Key(_) | Entity::Route(_) => None,
        }
    }
}

/// What tells one definition of a name from another: its hash, or that of the names of its stages if it is code.
pub(crate) fn definition_hash(version: Option<&str>, stages: &[String]) -> String {
    version.map_or_else(|| format!("code-{}", random::digest(&stages.join("\n"))), Into::into)
}

impl PlanImage {
    fn of(plan: &Plan) -> Self {
        PlanImage {
            seq: plan.seq,
            plan: plan.id.clone(),
            status: plan.status(),
            tasks: plan.tasks.iter().map(|task| task.run.clone()).collect(),
            max_concurrency: plan.created.settings.max_concurrency,
            created_at: plan.created_at,
            started_at: plan.started_at,
            definition: plan.created.definition.clone(),
            hash: definition_hash(plan.created.version.as_deref(), &plan.created.stages),
            vars: plan.input.clone(),
        }
    }
}

impl TaskImage {
    fn of(run: &Run) -> Option<Self> {
        let (task, options) = (run.task()?, run.task_options()?);
        let status = run.task_status()?;
        let undoing = task.undoing.as_ref().filter(|_| status != TaskStatus::RolledBack);
        let checkpoint = task.checkpoint.as_ref().or(undoing).map(|checkpoint| SharedCheckpoint {
            index: checkpoint.index,
            completed: options.stages.iter().take(checkpoint.index as usize + 1).cloned().collect(),
            data: checkpoint.data.clone(),
            saved_at: checkpoint.saved_at,
            version: checkpoint.version,
            fence: task.fence,
        });
        Some(TaskImage {
            seq: run.seq,
            task: run.id.clone(),
            tenant: options.tenant.clone(),
            plan: options.plan.clone(),
            status,
            pause_requested: run.open().is_some_and(|open| open.paused.is_some()),
            created_at: run.started_at,
            started_at: task.started_at,
            definition: run.workflow.to_string(),
            hash: definition_hash(run.options.definition.as_deref(), &options.stages),
            fence: task.fence,
            checkpoint,
        })
    }
}

impl LockImage {
    fn of(lock: &Lock) -> Self {
        LockImage {
            seq: lock.seq,
            tenant: lock.tenant.clone(),
            holder: lock.held().cloned(),
            wanted: lock.wanted().cloned(),
            fence: lock.fence,
        }
    }
}
