//! Tasks: one tenant's part of a plan.

use super::{Data, Failure, Lock, Time, Wait};
use serde::{Deserialize, Serialize};
use steadfast_kernel as kernel;
use steadfast_runtime::{RunView, TaskView};
use utoipa::ToSchema;

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[schema(as = TaskStatus)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TaskStatus {
    /// Its plan has not let it begin yet.
    Pending,
    /// A stage is under way.
    Running,
    /// Nothing moves until something named happens.
    Waiting,
    /// Nothing new is begun until somebody resumes it.
    Paused,
    /// Its process died, or its lock was lost, and a person decides.
    Interrupted,
    /// All stages are done.
    Completed,
    /// A stage has failed for good.
    Failed,
    /// It was called off.
    Cancelled,
    /// What it did is being undone.
    RollingBack,
    /// What it did is undone.
    RolledBack,
    /// Something that it did cannot be undone; a person has to look at it.
    RollbackFailed,
    /// Another instance goes on with it.
    HandedOver,
}

impl From<kernel::TaskStatus> for TaskStatus {
    fn from(status: kernel::TaskStatus) -> Self {
        match status {
            kernel::TaskStatus::Pending => TaskStatus::Pending,
            kernel::TaskStatus::Running => TaskStatus::Running,
            kernel::TaskStatus::Waiting => TaskStatus::Waiting,
            kernel::TaskStatus::Paused => TaskStatus::Paused,
            kernel::TaskStatus::Interrupted => TaskStatus::Interrupted,
            kernel::TaskStatus::Completed => TaskStatus::Completed,
            kernel::TaskStatus::Failed => TaskStatus::Failed,
            kernel::TaskStatus::Cancelled => TaskStatus::Cancelled,
            kernel::TaskStatus::RollingBack => TaskStatus::RollingBack,
            kernel::TaskStatus::RolledBack => TaskStatus::RolledBack,
            kernel::TaskStatus::RollbackFailed => TaskStatus::RollbackFailed,
            kernel::TaskStatus::HandedOver => TaskStatus::HandedOver,
        }
    }
}

impl From<TaskStatus> for kernel::TaskStatus {
    fn from(status: TaskStatus) -> Self {
        match status {
            TaskStatus::Pending => kernel::TaskStatus::Pending,
            TaskStatus::Running => kernel::TaskStatus::Running,
            TaskStatus::Waiting => kernel::TaskStatus::Waiting,
            TaskStatus::Paused => kernel::TaskStatus::Paused,
            TaskStatus::Interrupted => kernel::TaskStatus::Interrupted,
            TaskStatus::Completed => kernel::TaskStatus::Completed,
            TaskStatus::Failed => kernel::TaskStatus::Failed,
            TaskStatus::Cancelled => kernel::TaskStatus::Cancelled,
            TaskStatus::RollingBack => kernel::TaskStatus::RollingBack,
            TaskStatus::RolledBack => kernel::TaskStatus::RolledBack,
            TaskStatus::RollbackFailed => kernel::TaskStatus::RollbackFailed,
            TaskStatus::HandedOver => kernel::TaskStatus::HandedOver,
        }
    }
}

impl TaskStatus {
    /// True if nothing follows unless a person wants it.
    pub fn is_final(self) -> bool {
        kernel::TaskStatus::from(self).is_final()
    }

    /// The public name.
    pub fn as_str(self) -> &'static str {
        kernel::TaskStatus::from(self).as_str()
    }
}

/// A stage that a task is at, or was at when it stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = CurrentStage)]
#[serde(rename_all = "camelCase")]
pub struct CurrentStage {
    /// Which one, counted from 0.
    pub index: u32,
    /// Its name.
    pub name: String,
}

impl CurrentStage {
    pub(super) fn of(status: kernel::TaskStatus, index: Option<u32>, stages: &[String]) -> Option<Self> {
        let index = index.filter(|_| status != kernel::TaskStatus::RolledBack)?;
        Some(CurrentStage { index, name: stages.get(usize::try_from(index).ok()?)?.clone() })
    }
}

/// The last stage that is done. Of what was rolled back nothing is.
pub(super) fn last_completed(status: kernel::TaskStatus, completed: u32) -> Option<u32> {
    completed.checked_sub(1).filter(|_| status != kernel::TaskStatus::RolledBack)
}

/// The task of a tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Task)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Whose it is.
    pub tenant_id: String,
    /// Its id: `PLAN/TENANT`.
    #[schema(examples("switch-17/acme"))]
    pub task_id: String,
    /// Its plan.
    pub plan_id: String,
    /// The run that it is: the same id as the task's.
    pub run_id: String,
    /// The name of the plan's definition.
    pub definition: String,
    /// Where it stands. What another instance had under way when it was lost is `INTERRUPTED`.
    pub status: TaskStatus,
    /// The other instance that has it, or had it; nothing if this one has it, or if it was handed over and nobody has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Of a task that this instance does not have: whether the one that has it lives. If not, a retry takes the task up here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_lives: Option<bool>,
    /// It pauses, or has paused, because somebody wants it.
    pub pause_requested: bool,
    /// The stage that it is at, or was at when it stopped; nothing before the first one.
    pub current_stage: Option<CurrentStage>,
    /// How many stages there are; not known of another instance's task whose definition is not here.
    pub total_stages: Option<u32>,
    /// Their names, in order.
    pub stages: Vec<String>,
    /// The last stage that is done, counted from 0; nothing before that.
    pub last_completed_stage_index: Option<u32>,
    /// Whether a retry can go on from a checkpoint.
    pub has_checkpoint: bool,
    /// The lock of its tenant, whoever has it; nothing if nobody has.
    pub lock: Option<Lock>,
    /// What it waits for before anything else.
    pub wait: Option<Wait>,
    /// Everything it waits for: what a person has to see to first, then what ends first.
    pub waits: Vec<Wait>,
    /// Why it failed, if it has.
    pub failure: Option<Failure>,
    /// Which of its lives; the first is 1, and every retry begins another. Not known of another instance's.
    pub epoch: Option<u32>,
    /// When it was made.
    pub created_at: Time,
    /// When it first began.
    pub started_at: Option<Time>,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// Its last sign of life, if it is RUNNING: the last thing on its record, a heartbeat of a stage included.
    pub heartbeat_at: Option<Time>,
}

impl Task {
    /// What is known of a run that is a task; `lock` is that of its tenant, and `seen_at` the time of the last entry of its journal.
    pub(crate) fn of(view: &RunView, task: &TaskView, lock: Option<Lock>, seen_at: Option<kernel::Timestamp>) -> Self {
        let waits: Vec<Wait> = view.waits.iter().map(Wait::from).collect();
        let ended = view.ended.as_ref();
        let failure = ended.filter(|ended| !ended.cancelled).and_then(|ended| ended.outcome.as_ref().err());
        Task {
            tenant_id: task.options.tenant.to_string(),
            task_id: view.id.to_string(),
            plan_id: task.options.plan.to_string(),
            run_id: view.id.to_string(),
            definition: view.workflow.to_string(),
            status: task.status.into(),
            instance: None,
            owner_lives: None,
            pause_requested: task.pause_requested,
            current_stage: CurrentStage::of(task.status, task.stage, &task.options.stages),
            total_stages: Some(count(&task.options.stages)),
            stages: task.options.stages.clone(),
            last_completed_stage_index: last_completed(task.status, task.completed),
            has_checkpoint: task.checkpoint.is_some(),
            lock,
            wait: waits.first().cloned(),
            waits,
            failure: failure.map(Failure::from),
            epoch: Some(view.epoch),
            created_at: Time(task.started_at.map_or(view.started_at, |began| began.min(view.started_at))), // a task that was taken up began elsewhere
            started_at: task.started_at.map(Time),
            ended_at: ended.map(|ended| Time(ended.at)),
            heartbeat_at: seen_at.filter(|_| task.status == kernel::TaskStatus::Running).map(Time),
        }
    }
}

fn count(stages: &[String]) -> u32 {
    u32::try_from(stages.len()).unwrap_or(u32::MAX)
}

/// What makes a run a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RunTask)]
#[serde(rename_all = "camelCase")]
pub struct RunTask {
    /// Its plan.
    pub plan_id: String,
    /// Whose it is.
    pub tenant_id: String,
    /// Where it stands as a task.
    pub status: TaskStatus,
    /// It pauses, or has paused, because somebody wants it.
    pub pause_requested: bool,
    /// The stage that it is at, or was at when it stopped; nothing before the first one.
    pub current_stage: Option<CurrentStage>,
    /// How many stages there are.
    pub total_stages: u32,
    /// The last stage that is done, counted from 0; nothing before that.
    pub last_completed_stage_index: Option<u32>,
    /// Whether a retry can go on from a checkpoint.
    pub has_checkpoint: bool,
}

impl From<&TaskView> for RunTask {
    fn from(task: &TaskView) -> Self {
        RunTask {
            plan_id: task.options.plan.to_string(),
            tenant_id: task.options.tenant.to_string(),
            status: task.status.into(),
            pause_requested: task.pause_requested,
            current_stage: CurrentStage::of(task.status, task.stage, &task.options.stages),
            total_stages: count(&task.options.stages),
            last_completed_stage_index: last_completed(task.status, task.completed),
            has_checkpoint: task.checkpoint.is_some(),
        }
    }
}

/// How far a task has come, and what its stages have left for those after them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Checkpoint)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// The task.
    pub task_id: String,
    /// Whose it is.
    pub tenant_id: String,
    /// The last stage that is done, counted from 0.
    pub last_completed_stage_index: u32,
    /// The names of those that are done, in order.
    pub completed_stages: Vec<String>,
    /// What they have left.
    pub context_data: Data,
    /// When it was saved.
    pub saved_at: Time,
    /// It rises with every checkpoint of the task.
    pub version: u64,
}

impl Checkpoint {
    /// The checkpoint of a task, if it has one.
    pub(crate) fn of(view: &RunView, task: &TaskView) -> Option<Self> {
        let checkpoint = task.checkpoint.as_ref()?;
        Some(Checkpoint {
            task_id: view.id.to_string(),
            tenant_id: task.options.tenant.to_string(),
            last_completed_stage_index: checkpoint.index,
            completed_stages: task.options.stages.iter().take(checkpoint.index as usize + 1).cloned().collect(),
            context_data: (&checkpoint.data).into(),
            saved_at: Time(checkpoint.saved_at),
            version: checkpoint.version,
        })
    }
}
