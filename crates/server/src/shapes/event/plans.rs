//! What belongs to events of plans, tasks and locks.

use super::EventPayload;
use crate::shapes::{Locked, Time, step_name};
use steadfast_kernel::lock::LockEvent;
use steadfast_kernel::plan::{PlanCreated, PlanEvent};
use steadfast_kernel::{Lease, StepId, TaskEvent};

impl EventPayload {
    pub(super) fn of_task(event: &TaskEvent) -> Self {
        match event {
            TaskEvent::Admitted { .. } | TaskEvent::Recalled { .. } | TaskEvent::Started => Self::default(),
            TaskEvent::LockAcquired(lease) => EventPayload { run: None, ..Self::holding(lease) },
            TaskEvent::LockLost { fence, origin } => EventPayload { fence: Some(*fence), ..Self::asked(origin) },
            TaskEvent::Adopted { from, origin, fence, index, data, .. } => EventPayload {
                instance: from.as_ref().map(ToString::to_string),
                fence: Some(*fence),
                index: *index,
                context_data: Some(data.into()),
                ..Self::asked(origin)
            },
            TaskEvent::HandedOver { to, origin } => EventPayload { instance: to.as_ref().map(ToString::to_string), ..Self::asked(origin) },
            TaskEvent::StageStarted { stage, index } | TaskEvent::StageCompleted { stage, index } => Self::at_stage(stage, *index),
            TaskEvent::StageFailed { stage, index, failure } => Self::at_stage(stage, *index).failed(failure),
            TaskEvent::CheckpointSaved { stage, index, data } => {
                EventPayload { context_data: Some(data.into()), ..Self::at_stage(stage, *index) }
            }
        }
    }

    pub(super) fn of_plan(event: &PlanEvent) -> Self {
        let asked = event.origin().map(Self::asked).unwrap_or_default();
        let asked = EventPayload { run: event.task().map(ToString::to_string), ..asked };
        match event {
            PlanEvent::Created(created) => Self::created(created, asked),
            PlanEvent::Paused { cause, .. } => EventPayload { cause: Some(cause.as_str().into()), ..asked },
            PlanEvent::TaskChanged { status, .. } => EventPayload { status: Some(status.as_str().into()), ..asked },
            PlanEvent::Failed { failure } => asked.failed(failure),
            PlanEvent::CancelRequested { undo, .. } => EventPayload { undo: Some(*undo).filter(|undo| *undo), ..asked },
            PlanEvent::Degraded { why } | PlanEvent::Restored { why } => EventPayload { reason: Some(why.clone()), ..asked },
            PlanEvent::Started { .. }
            | PlanEvent::Resumed { .. }
            | PlanEvent::TaskAdmitted { .. }
            | PlanEvent::TaskRecalled { .. }
            | PlanEvent::Completed
            | PlanEvent::Cancelled => asked,
        }
    }

    pub(super) fn of_lock(event: &LockEvent) -> Self {
        match event {
            LockEvent::Requested(waiter) => {
                EventPayload { run: Some(waiter.task.to_string()), plan: Some(waiter.plan.to_string()), ..Self::default() }
            }
            LockEvent::Acquired(lease) => Self::holding(lease),
            LockEvent::Renewed { fence, expires_at, .. } => {
                EventPayload { fence: Some(*fence), expires_at: Some(Time(*expires_at)), ..Self::default() }
            }
            LockEvent::Released { task, fence, holder } => {
                EventPayload { run: Some(task.to_string()), fence: *fence, holder: holder.clone(), ..Self::default() }
            }
            LockEvent::Suspected { fence } => EventPayload { fence: Some(*fence), ..Self::default() },
            LockEvent::Lost { fence, origin } | LockEvent::Broken { fence, origin } => {
                EventPayload { fence: Some(*fence), ..Self::asked(origin) }
            }
            LockEvent::BrokenElsewhere { holder, origin } => EventPayload { holder: Some(holder.clone()), ..Self::asked(origin) },
        }
    }

    fn created(created: &PlanCreated, asked: Self) -> Self {
        EventPayload {
            workflow: Some(created.definition.clone()),
            definition: created.version.clone(),
            stages: Some(created.stages.clone()),
            tenants: Some(created.tenants.iter().map(ToString::to_string).collect()),
            skipped: Some(created.skipped.iter().map(Locked::from).collect()),
            max_concurrency: Some(created.settings.max_concurrency),
            input: Some((&created.input).into()),
            ..asked
        }
    }

    fn holding(lease: &Lease) -> Self {
        EventPayload {
            run: Some(lease.task.to_string()),
            plan: Some(lease.plan.to_string()),
            holder: Some(lease.holder()),
            fence: Some(lease.fence),
            expires_at: Some(Time(lease.expires_at)),
            ..Self::default()
        }
    }

    fn at_stage(stage: &StepId, index: u32) -> Self {
        let name = step_name(stage);
        let name = name.strip_prefix("stage:").unwrap_or(name).to_string();
        EventPayload { task_id: Some(name.clone()), stage: Some(name), index: Some(index), ..Self::default() }
    }
}
