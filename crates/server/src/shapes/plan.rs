//! Plans: in full with a line for every tenant, and in lists.

use super::task::last_completed;
use super::time::millis;
use super::{CurrentStage, Data, Locked, TaskStatus, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use steadfast_kernel as kernel;
use steadfast_kernel::plan::Phase;
use steadfast_store::{PlanRow, RunRow, TaskCount, TaskRow};
use utoipa::ToSchema;

/// Where a plan stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PlanStatus)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PlanStatus {
    /// Its tasks are being made.
    Created,
    /// It waits to be started.
    Ready,
    /// Its tasks are under way.
    Running,
    /// No other task begins until somebody resumes it.
    Paused,
    /// All tasks that were not called off are done.
    Completed,
    /// It has ended with tasks that have failed.
    Failed,
    /// It was called off.
    Cancelled,
}

impl From<kernel::PlanStatus> for PlanStatus {
    fn from(status: kernel::PlanStatus) -> Self {
        match status {
            kernel::PlanStatus::Created => PlanStatus::Created,
            kernel::PlanStatus::Ready => PlanStatus::Ready,
            kernel::PlanStatus::Running => PlanStatus::Running,
            kernel::PlanStatus::Paused => PlanStatus::Paused,
            kernel::PlanStatus::Completed => PlanStatus::Completed,
            kernel::PlanStatus::Failed => PlanStatus::Failed,
            kernel::PlanStatus::Cancelled => PlanStatus::Cancelled,
        }
    }
}

impl From<PlanStatus> for kernel::PlanStatus {
    fn from(status: PlanStatus) -> Self {
        match status {
            PlanStatus::Created => kernel::PlanStatus::Created,
            PlanStatus::Ready => kernel::PlanStatus::Ready,
            PlanStatus::Running => kernel::PlanStatus::Running,
            PlanStatus::Paused => kernel::PlanStatus::Paused,
            PlanStatus::Completed => kernel::PlanStatus::Completed,
            PlanStatus::Failed => kernel::PlanStatus::Failed,
            PlanStatus::Cancelled => kernel::PlanStatus::Cancelled,
        }
    }
}

impl PlanStatus {
    /// True if nothing follows unless a person wants it.
    pub fn is_final(self) -> bool {
        kernel::PlanStatus::from(self).is_final()
    }

    /// The public name.
    pub fn as_str(self) -> &'static str {
        kernel::PlanStatus::from(self).as_str()
    }
}

/// A plan, with a line for every tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Plan)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Its id.
    pub id: String,
    /// The name of its definition.
    pub definition: String,
    /// The version of the definition, by hash; nothing if it is code.
    pub definition_hash: Option<String>,
    /// Where it stands. Another instance's plan that was under way when that was lost is `PAUSED`.
    pub status: PlanStatus,
    /// The other instance that has it, or had it; nothing if this one has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Of a plan that this instance does not have: whether the one that has it lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_lives: Option<bool>,
    /// What it is paused for: `PERSON`, `RESTART`, `STOP_WHEN`, `CANARY`, `DEADLINE` or `INTERRUPTED`; while it is being ended, `CANCEL` or `ROLLBACK`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Why it is paused, or has failed, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Who paused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Its tasks, in order.
    pub task_ids: Vec<String>,
    /// A line for every task, in the same order.
    pub tenants: Vec<PlanTask>,
    /// The names of its stages, in order.
    pub stages: Vec<String>,
    /// How many tasks may be under way at once.
    pub max_concurrency: u32,
    /// That many tasks come first; the others begin once they have completed. This and what follows is not known of another instance's plan whose definition is not here.
    pub canary: Option<u32>,
    /// When no other task is to begin.
    pub stop_when: Option<StopWhen>,
    /// What it does about tenants that are locked: `refuse` or `skip`.
    pub conflict: Option<String>,
    /// What becomes of a tenant's lock if its task fails: `keep` or `release`.
    pub on_failure: Option<String>,
    /// For how long a lock is a task's own without being renewed.
    pub lease_ms: Option<u64>,
    /// How long it may take, from its start, before it pauses.
    pub deadline_ms: Option<u64>,
    /// Whom it leaves out because somebody else had their lock.
    pub skipped: Vec<Locked>,
    /// What all of its tasks are given.
    pub vars: Data,
    /// How many tasks stand where.
    pub progress: Progress,
    /// When it was created.
    pub created_at: Time,
    /// When it was first started.
    pub started_at: Option<Time>,
    /// When it ended.
    pub ended_at: Option<Time>,
}

/// How a plan goes about its tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PlanSettings)]
#[serde(rename_all = "camelCase")]
pub struct PlanSettings {
    /// How many tasks may be under way at once.
    pub max_concurrency: u32,
    /// That many tasks come first; the others begin once they have completed.
    pub canary: u32,
    /// When no other task is to begin.
    pub stop_when: Option<StopWhen>,
    /// What it does about tenants that are locked: `refuse` or `skip`.
    pub conflict: String,
    /// What becomes of a tenant's lock if its task fails: `keep` or `release`.
    pub on_failure: String,
    /// For how long a lock is a task's own without being renewed.
    pub lease_ms: u64,
    /// How long it may take, from its start, before it pauses.
    pub deadline_ms: Option<u64>,
}

impl From<&kernel::plan::Settings> for PlanSettings {
    fn from(settings: &kernel::plan::Settings) -> Self {
        let conflict = match settings.conflict {
            kernel::Conflict::Refuse => "refuse",
            kernel::Conflict::Skip => "skip",
        };
        let on_failure = match settings.on_failure {
            kernel::OnFailure::Keep => "keep",
            kernel::OnFailure::Release => "release",
        };
        PlanSettings {
            max_concurrency: settings.max_concurrency,
            canary: settings.canary,
            stop_when: settings.stop_when.map(|stop| match stop {
                kernel::plan::StopWhen::Failed(tasks) => StopWhen::Failed(tasks),
                kernel::plan::StopWhen::FailedPercent(percent) => StopWhen::FailedPercent(percent),
            }),
            conflict: conflict.into(),
            on_failure: on_failure.into(),
            lease_ms: millis(settings.lease),
            deadline_ms: settings.deadline.map(millis),
        }
    }
}

/// When no other task of a plan is to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = StopWhen)]
#[serde(rename_all = "camelCase")]
pub enum StopWhen {
    /// Once that many have failed.
    Failed(u32),
    /// Once that part of all of them has failed, in percent.
    FailedPercent(u32),
}

/// One tenant's line in a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PlanTask)]
#[serde(rename_all = "camelCase")]
pub struct PlanTask {
    /// Whose it is.
    pub tenant_id: String,
    /// The task.
    pub task_id: String,
    /// Where it stands.
    pub status: TaskStatus,
    /// The instance that has it, if another instance has the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The stage that it is at, or was at when it stopped; nothing before the first one.
    pub current_stage: Option<CurrentStage>,
    /// The last stage that is done, counted from 0; nothing before that.
    pub last_completed_stage_index: Option<u32>,
    /// Whether a retry can go on from a checkpoint.
    pub has_checkpoint: bool,
    /// It pauses, or has paused, because somebody wants it.
    pub pause_requested: bool,
    /// The reason of its primary wait, if nothing of it moves now: `BACKOFF`, `LOCK`, …
    pub wait: Option<String>,
    /// When it first began.
    pub started_at: Option<Time>,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// Why it, or a stage that is tried again, failed.
    pub failure: Option<String>,
}

impl PlanTask {
    fn of(task: &kernel::plan::Task, row: Option<(&RunRow, &TaskRow)>, stages: &[String]) -> Self {
        let (tenant_id, task_id) = (task.tenant.to_string(), task.run.to_string());
        let Some((run, task)) = row else { return Self::being_made(tenant_id, task_id) };
        let failed = matches!(task.status, kernel::TaskStatus::Failed | kernel::TaskStatus::RollbackFailed);
        let failed = failed || run.wait.as_deref() == Some("BACKOFF");
        PlanTask {
            tenant_id,
            task_id,
            status: task.status.into(),
            instance: None,
            current_stage: CurrentStage::of(task.status, task.stage, stages),
            last_completed_stage_index: last_completed(task.status, task.completed),
            has_checkpoint: task.checkpoint.is_some(),
            pause_requested: task.pause_requested,
            wait: run.wait.clone(),
            started_at: task.started_at.map(Time),
            ended_at: run.ended_at.map(Time),
            failure: run.text.clone().filter(|_| failed),
        }
    }

    fn being_made(tenant_id: String, task_id: String) -> Self {
        PlanTask {
            tenant_id,
            task_id,
            status: TaskStatus::Pending,
            instance: None,
            current_stage: None,
            last_completed_stage_index: None,
            has_checkpoint: false,
            pause_requested: false,
            wait: None,
            started_at: None,
            ended_at: None,
            failure: None,
        }
    }
}

/// How many tasks of a plan stand where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Progress)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// All of them.
    pub total: u64,
    /// All stages are done.
    pub completed: u64,
    /// A stage has failed for good.
    pub failed: u64,
    /// Not begun.
    pub pending: u64,
    /// A stage is under way.
    pub running: u64,
    /// Nothing moves until something named happens.
    pub waiting: u64,
    /// Nothing new is begun until somebody resumes them.
    pub paused: u64,
    /// A person decides.
    pub interrupted: u64,
    /// Called off.
    pub cancelled: u64,
    /// Being undone.
    pub rolling_back: u64,
    /// Undone.
    pub rolled_back: u64,
    /// Not to be undone by itself.
    pub rollback_failed: u64,
    /// Gone on with by another instance.
    pub handed_over: u64,
}

impl Progress {
    pub(super) fn add(&mut self, status: TaskStatus, tasks: u64) {
        self.total += tasks;
        *match status {
            TaskStatus::Pending => &mut self.pending,
            TaskStatus::Running => &mut self.running,
            TaskStatus::Waiting => &mut self.waiting,
            TaskStatus::Paused => &mut self.paused,
            TaskStatus::Interrupted => &mut self.interrupted,
            TaskStatus::Completed => &mut self.completed,
            TaskStatus::Failed => &mut self.failed,
            TaskStatus::Cancelled => &mut self.cancelled,
            TaskStatus::RollingBack => &mut self.rolling_back,
            TaskStatus::RolledBack => &mut self.rolled_back,
            TaskStatus::RollbackFailed => &mut self.rollback_failed,
            TaskStatus::HandedOver => &mut self.handed_over,
        } += tasks;
    }

    /// Of that plan, among the counts of several.
    fn of(plan: &kernel::PlanId, counts: &[TaskCount]) -> Self {
        let mut progress = Progress::default();
        for count in counts.iter().filter(|count| count.plan == *plan) {
            progress.add(count.status.into(), count.tasks);
        }
        progress
    }
}

impl Plan {
    /// A plan, and the rows of its tasks.
    pub(crate) fn of(plan: &kernel::Plan, rows: &[RunRow]) -> Self {
        let by_run: BTreeMap<_, _> = rows.iter().filter_map(|row| Some((&row.run, (row, row.task.as_ref()?)))).collect();
        let stages = &plan.created.stages;
        let tenants: Vec<_> = plan.tasks.iter().map(|task| PlanTask::of(task, by_run.get(&task.run).copied(), stages)).collect();
        let mut progress = Progress::default();
        tenants.iter().for_each(|task| progress.add(task.status, 1));
        let (cause, by, why, ended_at) = match &plan.phase {
            Phase::New | Phase::Running => (None, None, None, None),
            Phase::Paused { cause, origin, .. } => (Some(cause.as_str()), origin.by.clone(), origin.why.clone(), None),
            Phase::Ending { undo } => (Some(if *undo { "ROLLBACK" } else { "CANCEL" }), None, None, None),
            Phase::Ended { at, failure, .. } => (None, None, failure.as_ref().map(|failure| failure.message.clone()), Some(Time(*at))),
        };
        let settings = PlanSettings::from(&plan.created.settings);
        Plan {
            id: plan.id.to_string(),
            definition: plan.created.definition.clone(),
            definition_hash: plan.created.version.clone(),
            status: plan.status().into(),
            instance: None,
            owner_lives: None,
            cause: cause.map(Into::into),
            why,
            by,
            task_ids: plan.tasks.iter().map(|task| task.run.to_string()).collect(),
            tenants,
            stages: stages.clone(),
            max_concurrency: settings.max_concurrency,
            canary: Some(settings.canary),
            stop_when: settings.stop_when,
            conflict: Some(settings.conflict),
            on_failure: Some(settings.on_failure),
            lease_ms: Some(settings.lease_ms),
            deadline_ms: settings.deadline_ms,
            skipped: plan.created.skipped.iter().map(Locked::from).collect(),
            vars: (&plan.input).into(),
            progress,
            created_at: Time(plan.created_at),
            started_at: plan.started_at.map(Time),
            ended_at,
        }
    }
}

/// A plan as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PlanSummary)]
#[serde(rename_all = "camelCase")]
pub struct PlanSummary {
    /// Its id.
    pub id: String,
    /// The name of its definition.
    pub definition: String,
    /// Where it stands.
    pub status: PlanStatus,
    /// Why it is paused, or has failed, for people.
    pub why: Option<String>,
    /// How many tasks stand where.
    pub progress: Progress,
    /// When it was created.
    pub created_at: Time,
    /// When it was first started.
    pub started_at: Option<Time>,
    /// When it ended.
    pub ended_at: Option<Time>,
}

impl PlanSummary {
    /// The row of a plan, and the counts of its tasks, among those of several.
    pub(crate) fn of(row: &PlanRow, counts: &[TaskCount]) -> Self {
        PlanSummary {
            id: row.plan.to_string(),
            definition: row.definition.clone(),
            status: row.status.into(),
            why: row.why.clone(),
            progress: Progress::of(&row.plan, counts),
            created_at: Time(row.created_at),
            started_at: row.started_at.map(Time),
            ended_at: row.ended_at.map(Time),
        }
    }
}
