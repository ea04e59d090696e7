//! Plans and tasks of other instances: what is shared of them, in the shapes that this instance's own have.

use super::plan::PlanSettings;
use super::task::CurrentStage;
use super::{Checkpoint, Lock, Plan, PlanTask, Progress, Task, TaskStatus, Time};
use steadfast_kernel::{self as kernel, RunId, Timestamp};
use steadfast_runtime::{Elsewhere, ElsewherePlan, PlanSpec};
use steadfast_store::{SharedCheckpoint, SharedTask};

/// How far a task has come, as far as its checkpoint says.
struct Reached {
    stage: Option<CurrentStage>,
    completed: Option<u32>,
}

impl Reached {
    fn of(task: &SharedTask, status: kernel::TaskStatus, checkpoint: Option<&SharedCheckpoint>, stages: &[String]) -> Self {
        let last = u32::try_from(stages.len()).ok().and_then(|stages| stages.checked_sub(1));
        let completed = match status {
            kernel::TaskStatus::Completed => last,
            kernel::TaskStatus::RolledBack => None,
            _ => checkpoint.map(|checkpoint| checkpoint.index),
        };
        let at = match status {
            kernel::TaskStatus::Completed => last,
            _ if task.started_at.is_none() => None,
            _ => Some(checkpoint.map_or(0, |checkpoint| checkpoint.index + 1)),
        };
        Reached { stage: CurrentStage::of(status, at, stages), completed }
    }
}

impl Task {
    /// A task that another instance has, or had.
    pub(crate) fn elsewhere(there: &Elsewhere, now: Timestamp) -> Self {
        let (task, status) = (&there.task, there.status());
        let stages = there.stages.clone().unwrap_or_default();
        let Reached { stage, completed } = Reached::of(task, status, there.checkpoint.as_ref(), &stages);
        Task {
            tenant_id: task.tenant.to_string(),
            task_id: task.task.to_string(),
            plan_id: task.plan.to_string(),
            run_id: task.task.to_string(),
            definition: task.definition.clone(),
            status: status.into(),
            instance: task.owner.as_ref().map(ToString::to_string),
            owner_lives: Some(there.owner_lives),
            pause_requested: task.pause_requested,
            current_stage: stage,
            total_stages: there.stages.as_ref().and_then(|stages| u32::try_from(stages.len()).ok()),
            stages,
            last_completed_stage_index: completed,
            has_checkpoint: there.checkpoint.is_some(),
            lock: there.lock.as_ref().map(|lock| Lock::elsewhere(lock, now)),
            wait: None,
            waits: Vec::new(),
            failure: None,
            epoch: None,
            created_at: Time(task.created_at),
            started_at: task.started_at.map(Time),
            ended_at: None,
            heartbeat_at: None,
        }
    }
}

impl Checkpoint {
    /// The checkpoint of a task that another instance has, or had.
    pub(crate) fn elsewhere(there: &Elsewhere) -> Option<Self> {
        let checkpoint = there.checkpoint.as_ref()?;
        Some(Checkpoint {
            task_id: there.task.task.to_string(),
            tenant_id: there.task.tenant.to_string(),
            last_completed_stage_index: checkpoint.index,
            completed_stages: checkpoint.completed.clone(),
            context_data: (&checkpoint.data).into(),
            saved_at: Time(checkpoint.saved_at),
            version: checkpoint.version,
        })
    }
}

impl Plan {
    /// A plan that another instance has, or had. `spec` is what its definition says, if that is here; `checkpoints` are those of its tasks that are known.
    pub(crate) fn elsewhere(there: &ElsewherePlan, spec: Option<&PlanSpec>, checkpoints: &[(RunId, SharedCheckpoint)]) -> Self {
        let plan = &there.plan;
        let stages = spec.map(|spec| spec.stages.clone()).unwrap_or_default();
        let settings = spec.map(|spec| PlanSettings::from(&spec.settings));
        let checkpoint = |task: &RunId| checkpoints.iter().find(|(of, _)| of == task).map(|(_, checkpoint)| checkpoint);
        let tenants: Vec<_> = there.tasks.iter().map(|task| line(there, task, checkpoint(&task.task), &stages)).collect();
        let mut progress = Progress::default();
        tenants.iter().for_each(|task| progress.add(task.status, 1));
        Plan {
            id: plan.plan.to_string(),
            definition: plan.definition.clone(),
            definition_hash: Some(plan.definition_hash.clone()),
            status: there.status().into(),
            instance: Some(plan.owner.to_string()),
            owner_lives: Some(there.owner_lives),
            cause: None,
            why: (!there.owner_lives && !plan.status.is_final()).then(|| format!("instance {} is gone", plan.owner)),
            by: None,
            task_ids: plan.tasks.iter().map(ToString::to_string).collect(),
            tenants,
            stages,
            max_concurrency: plan.max_concurrency,
            canary: settings.as_ref().map(|settings| settings.canary),
            stop_when: settings.as_ref().and_then(|settings| settings.stop_when),
            conflict: settings.as_ref().map(|settings| settings.conflict.clone()),
            on_failure: settings.as_ref().map(|settings| settings.on_failure.clone()),
            lease_ms: settings.as_ref().map(|settings| settings.lease_ms),
            deadline_ms: settings.as_ref().and_then(|settings| settings.deadline_ms),
            skipped: Vec::new(),
            vars: (&plan.vars).into(),
            progress,
            created_at: Time(plan.created_at),
            started_at: plan.started_at.map(Time),
            ended_at: None,
        }
    }
}

fn line(there: &ElsewherePlan, task: &SharedTask, checkpoint: Option<&SharedCheckpoint>, stages: &[String]) -> PlanTask {
    let status = there.status_of(task);
    let Reached { stage, completed } = Reached::of(task, status, checkpoint, stages);
    PlanTask {
        tenant_id: task.tenant.to_string(),
        task_id: task.task.to_string(),
        status: TaskStatus::from(status),
        instance: task.owner.as_ref().map(ToString::to_string),
        current_stage: stage,
        last_completed_stage_index: completed,
        has_checkpoint: checkpoint.is_some(),
        pause_requested: task.pause_requested,
        wait: None,
        started_at: task.started_at.map(Time),
        ended_at: None,
        failure: None,
    }
}
