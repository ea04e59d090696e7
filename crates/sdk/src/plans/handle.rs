//! What is done with a plan, and what can be seen of it and its tasks.

use crate::operate::{Act, Verb};
use crate::{Engine, Error, Follow};
use std::collections::BTreeMap;
use steadfast_kernel::plan::{Cause, Phase};
use steadfast_kernel::run::Verb as Wanted;
use steadfast_kernel::{
    Checkpoint, EntityId, Failure, InstanceId, Lease, PlanId, PlanStatus, RunId, TaskStatus, TenantId, Timestamp, Wait,
};
use steadfast_runtime as runtime;
use steadfast_runtime::RunView;

/// A handle to a plan.
#[derive(Clone)]
pub struct PlanHandle {
    pub(super) engine: Engine,
    pub(super) id: PlanId,
    pub(super) is_new: bool,
}

/// What can be seen of a plan.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlanInfo {
    /// Its id.
    pub id: PlanId,
    /// Where it stands.
    pub status: PlanStatus,
    /// Why it is paused, if it is.
    pub cause: Option<Cause>,
    /// What was said about that, or why it has failed.
    pub why: Option<String>,
    /// The names of its stages, in order.
    pub stages: Vec<String>,
    /// Its tasks, in order.
    pub tasks: Vec<RunId>,
    /// Whom it is for, in the same order.
    pub tenants: Vec<TenantId>,
    /// Whom it left out, and who had their lock.
    pub skipped: Vec<(TenantId, String)>,
    /// How many tasks may be under way at once.
    pub max_concurrency: u32,
    /// How many tasks there are of each status.
    pub progress: BTreeMap<TaskStatus, u64>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The other instance that has it, or had it; nothing if it is this one's.
    pub elsewhere: Option<InstanceId>,
}

impl PlanInfo {
    /// Of a plan that another instance has, or had.
    fn elsewhere(there: &runtime::ElsewherePlan) -> Self {
        let mut progress = BTreeMap::new();
        for task in &there.tasks {
            *progress.entry(there.status_of(task)).or_default() += 1;
        }
        PlanInfo {
            id: there.plan.plan.clone(),
            status: there.status(),
            cause: None,
            why: (!there.owner_lives).then(|| format!("instance {} is gone", there.plan.owner)),
            stages: Vec::new(),
            tasks: there.plan.tasks.clone(),
            tenants: there.tasks.iter().map(|task| task.tenant.clone()).collect(),
            skipped: Vec::new(),
            max_concurrency: there.plan.max_concurrency,
            progress,
            created_at: there.plan.created_at,
            started_at: there.plan.started_at,
            ended_at: None,
            elsewhere: Some(there.plan.owner.clone()),
        }
    }
}

/// What can be seen of a task.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TaskInfo {
    /// Whose it is.
    pub tenant: TenantId,
    /// The task: a run of that id.
    pub task: RunId,
    /// Its plan.
    pub plan: PlanId,
    /// Where it stands.
    pub status: TaskStatus,
    /// It pauses, or has paused, because somebody wants it: what tells that from a crash.
    pub pause_requested: bool,
    /// The stage that it is at, or was at when it stopped: which one, counted from 0, and its name.
    pub stage: Option<(u32, String)>,
    /// How many stages there are.
    pub stages: usize,
    /// Where a retry goes on from.
    pub checkpoint: Option<Checkpoint>,
    /// Its tenant's lock, while it has it.
    pub lock: Option<Lease>,
    /// What it waits for.
    pub waits: Vec<Wait>,
    /// Why it failed, if it has.
    pub failure: Option<Failure>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it first began.
    pub started_at: Option<Timestamp>,
    /// The other instance that has it, or had it; nothing if it is this one's.
    pub elsewhere: Option<InstanceId>,
}

impl TaskInfo {
    /// Of a task that another instance has, or had.
    pub(super) fn elsewhere(there: runtime::Elsewhere) -> Self {
        let status = there.status();
        let runtime::Elsewhere { task, checkpoint, lock, stages, .. } = there;
        let next = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.index + 1);
        let stage = stages.as_ref().and_then(|stages| Some((next, stages.get(next as usize)?.clone())));
        let lock = lock.filter(|lock| lock.holder.task == task.task);
        TaskInfo {
            tenant: task.tenant,
            plan: task.plan,
            status,
            pause_requested: task.pause_requested,
            stage: stage.filter(|_| task.started_at.is_some()),
            stages: stages.map_or(0, |stages| stages.len()),
            checkpoint: checkpoint.map(|checkpoint| Checkpoint {
                index: checkpoint.index,
                data: checkpoint.data,
                saved_at: checkpoint.saved_at,
                version: checkpoint.version,
            }),
            lock: lock.map(|lock| Lease {
                plan: lock.holder.plan,
                task: lock.holder.task,
                epoch: 0,
                fence: lock.holder.fence,
                lease: lock.left,
                expires_at: Timestamp::MAX,
            }),
            waits: Vec::new(),
            failure: None,
            task: task.task,
            created_at: task.created_at,
            started_at: task.started_at,
            elsewhere: task.owner,
        }
    }

    pub(super) fn of(view: RunView) -> Option<Self> {
        let task = *view.task?;
        let stage = task.stage.and_then(|index| Some((index, task.options.stages.get(index as usize)?.clone())));
        Some(TaskInfo {
            tenant: task.options.tenant,
            task: view.id,
            plan: task.options.plan,
            status: task.status,
            pause_requested: task.pause_requested,
            stage,
            stages: task.options.stages.len(),
            checkpoint: task.checkpoint,
            lock: task.lock,
            waits: view.waits,
            failure: view.ended.and_then(|ended| ended.outcome.err()),
            created_at: view.started_at,
            started_at: task.started_at,
            elsewhere: None,
        })
    }
}

impl PlanHandle {
    /// The id.
    pub fn id(&self) -> &PlanId {
        &self.id
    }

    /// True if this handle came from the call that created the plan; false if the plan was there already.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Has its tasks begin, as many at once as it allows. Await it: when it returns, that is on record.
    pub fn start(&self) -> Act {
        self.act(Wanted::Start)
    }

    /// Has no other task begin, and those that are under way stop at the end of their stage. They keep their locks.
    pub fn pause(&self) -> Act {
        self.act(Wanted::Pause)
    }

    /// Goes on. Tasks that are interrupted or have failed are [retried](Engine::retry_task_by_tenant) one by one.
    pub fn resume(&self) -> Act {
        self.act(Wanted::Resume)
    }

    /// Calls all tasks off that have not completed. Nothing is undone; their locks are free.
    pub fn cancel(&self) -> Act {
        self.act(Wanted::Cancel)
    }

    /// Undoes what all tasks did, also of those that have completed.
    pub fn roll_back(&self) -> Act {
        self.act(Wanted::RollBack)
    }

    fn act(&self, verb: Wanted) -> Act {
        Act::new(&self.engine.inner, Ok(Verb::Plan(self.id.clone(), verb)))
    }

    /// Where it stands.
    ///
    /// # Errors
    /// If there is no such plan, or it cannot be read now.
    pub async fn info(&self) -> Result<PlanInfo, Error> {
        let plan = match self.engine.inner.find_plan(&self.id).await? {
            runtime::FoundPlan::Here(plan) => *plan,
            runtime::FoundPlan::Elsewhere(there) => return Ok(PlanInfo::elsewhere(&there)),
        };
        let counts = self.engine.inner.task_counts(std::slice::from_ref(&self.id)).await?;
        let (cause, why, ended_at) = match &plan.phase {
            Phase::Paused { cause, origin, .. } => (Some(*cause), origin.why.clone(), None),
            Phase::Ended { failure, at, .. } => (None, failure.as_ref().map(|failure| failure.message.clone()), Some(*at)),
            Phase::New | Phase::Running | Phase::Ending { .. } => (None, None, None),
        };
        Ok(PlanInfo {
            id: plan.id.clone(),
            status: plan.status(),
            cause,
            why,
            stages: plan.created.stages.clone(),
            tasks: plan.tasks.iter().map(|task| task.run.clone()).collect(),
            tenants: plan.tasks.iter().map(|task| task.tenant.clone()).collect(),
            skipped: plan.created.skipped.clone(),
            max_concurrency: plan.created.settings.max_concurrency,
            progress: counts.into_iter().map(|count| (count.status, count.tasks)).collect(),
            created_at: plan.created_at,
            started_at: plan.started_at,
            ended_at,
            elsewhere: None,
        })
    }

    /// Waits until it has ended, however long it takes. One that is paused has not.
    ///
    /// # Errors
    /// If there is no such plan, or the engine stops.
    pub async fn ended(&self) -> Result<PlanInfo, Error> {
        self.until(|info| info.status.is_final()).await
    }

    /// Waits until that is so.
    ///
    /// # Errors
    /// If there is no such plan, or the engine stops.
    pub async fn until(&self, is_so: impl Fn(&PlanInfo) -> bool) -> Result<PlanInfo, Error> {
        let mut feed = self.engine.feed(Follow { after: None, entity: Some(EntityId::Plan(self.id.clone())) }).await?;
        loop {
            let info = self.info().await?;
            if is_so(&info) {
                return Ok(info);
            }
            feed.next().await?;
        }
    }
}
