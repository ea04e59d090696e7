//! What forms events of tasks, plans and locks can have.

use super::{of_failure, of_origin, present};
use steadfast_kernel::lock::Waiter;
use steadfast_kernel::plan::{Cause, Settings, StopWhen};
use steadfast_kernel::{Conflict, Lease, LockEvent, OnFailure, PlanCreated, PlanEvent, TaskEvent, TaskOptions, TaskStatus, Wants};

/// Fields that may be there or not.
pub(super) const EITHER: [&str; 15] = [
    "PLAN_CREATED.version",
    "PLAN_CREATED.skipped",
    "settings.stop_when",
    "settings.deadline",
    "PLAN_CANCEL_REQUESTED.undo",
    "LOCK_RELEASED.fence",
    "settings.canary",
    "LOCK_REQUESTED.waits",
    "LOCK_RELEASED.holder",
    "TASK_ADOPTED.from",
    "TASK_ADOPTED.started_at",
    "TASK_ADOPTED.index",
    "TASK_ADOPTED.alone",
    "TASK_ADOPTED.half_undone",
    "TASK_HANDED_OVER.to",
];

/// What is one of several.
pub(super) fn single() -> Vec<String> {
    let causes = [Cause::Person, Cause::Restart, Cause::StopWhen, Cause::Canary, Cause::Deadline, Cause::Interrupted];
    let causes = causes.iter().map(|cause| format!("paused by {}", cause.as_str()));
    let statuses = TaskStatus::ALL.iter().map(|status| format!("task is {}", status.as_str()));
    let wants = [Wants::Nothing, Wants::Turn, Wants::TurnAsked].map(wants);
    let settled = [on_failure(OnFailure::Keep), on_failure(OnFailure::Release), conflict(Conflict::Refuse), conflict(Conflict::Skip)];
    let rules = ["stops at a number", "stops at a part"].map(String::from);
    causes.chain(statuses).chain(wants).chain(settled).chain(rules).collect()
}

fn wants(wants: Wants) -> String {
    format!("task wants {wants:?}")
}

fn on_failure(on_failure: OnFailure) -> String {
    format!("on failure {on_failure:?}")
}

fn conflict(conflict: Conflict) -> String {
    format!("conflict {conflict:?}")
}

pub(super) fn of_task_options(options: &TaskOptions) -> Vec<String> {
    let TaskOptions { plan: _, tenant: _, stages: _, lease: _, on_failure: failed, conflict: locked } = options;
    vec![on_failure(*failed), conflict(*locked)]
}

pub(super) fn of_task(event: &TaskEvent) -> Vec<String> {
    match event {
        TaskEvent::LockLost { fence: _, origin } => of_origin(origin),
        TaskEvent::StageFailed { stage: _, index: _, failure } => of_failure(failure),
        TaskEvent::LockAcquired(lease) => of_lease(lease),
        TaskEvent::Adopted { from, origin, started_at, fence: _, index, alone, half_undone, data: _ } => {
            let fields = [
                present("TASK_ADOPTED.from", from.is_some()),
                present("TASK_ADOPTED.started_at", started_at.is_some()),
                present("TASK_ADOPTED.index", index.is_some()),
                present("TASK_ADOPTED.alone", *alone),
                present("TASK_ADOPTED.half_undone", *half_undone),
            ];
            [fields.into(), of_origin(origin)].concat()
        }
        TaskEvent::HandedOver { to, origin } => [vec![present("TASK_HANDED_OVER.to", to.is_some())], of_origin(origin)].concat(),
        TaskEvent::Admitted { epoch: _ }
        | TaskEvent::Recalled { epoch: _ }
        | TaskEvent::Started
        | TaskEvent::StageStarted { stage: _, index: _ }
        | TaskEvent::StageCompleted { stage: _, index: _ }
        | TaskEvent::CheckpointSaved { stage: _, index: _, data: _ } => Vec::new(),
    }
}

fn of_lease(lease: &Lease) -> Vec<String> {
    let Lease { plan: _, task: _, epoch: _, fence: _, lease: _, expires_at: _ } = lease;
    Vec::new()
}

pub(super) fn of_plan(event: &PlanEvent) -> Vec<String> {
    match event {
        PlanEvent::Created(created) => of_created(created),
        PlanEvent::Paused { cause, origin } => [vec![format!("paused by {}", cause.as_str())], of_origin(origin)].concat(),
        PlanEvent::Started { origin } | PlanEvent::Resumed { origin } => of_origin(origin),
        PlanEvent::CancelRequested { origin, undo } => [vec![present("PLAN_CANCEL_REQUESTED.undo", *undo)], of_origin(origin)].concat(),
        PlanEvent::TaskChanged { task: _, epoch: _, status, wants: wanted, heard: _ } => {
            vec![format!("task is {}", status.as_str()), wants(*wanted)]
        }
        PlanEvent::Failed { failure } => of_failure(failure),
        PlanEvent::TaskAdmitted { task: _, epoch: _ }
        | PlanEvent::TaskRecalled { task: _, epoch: _ }
        | PlanEvent::Completed
        | PlanEvent::Cancelled
        | PlanEvent::Degraded { why: _ }
        | PlanEvent::Restored { why: _ } => Vec::new(),
    }
}

fn of_created(created: &PlanCreated) -> Vec<String> {
    let PlanCreated { workflow: _, definition: _, version, stages: _, tenants: _, skipped, settings, seed: _, origin, input: _ } = created;
    let Settings { max_concurrency: _, canary, stop_when, conflict: locked, on_failure: failed, lease: _, deadline } = settings;
    let rule = stop_when.map(|rule| match rule {
        StopWhen::Failed(_) => "stops at a number".to_string(),
        StopWhen::FailedPercent(_) => "stops at a part".to_string(),
    });
    let fields = [
        present("PLAN_CREATED.version", version.is_some()),
        present("PLAN_CREATED.skipped", !skipped.is_empty()),
        present("settings.stop_when", stop_when.is_some()),
        present("settings.deadline", deadline.is_some()),
        present("settings.canary", *canary > 0),
        on_failure(*failed),
        conflict(*locked),
    ];
    fields.into_iter().chain(rule).chain(of_origin(origin)).collect()
}

pub(super) fn of_lock(event: &LockEvent) -> Vec<String> {
    match event {
        LockEvent::Renewed { fence: _, expires_at: _, seen: _ } | LockEvent::Suspected { fence: _ } => Vec::new(),
        LockEvent::Requested(Waiter { task: _, plan: _, epoch: _, asked: _, lease: _, waits }) => {
            vec![present("LOCK_REQUESTED.waits", *waits)]
        }
        LockEvent::Acquired(lease) => of_lease(lease),
        LockEvent::Released { task: _, fence, holder } => {
            vec![present("LOCK_RELEASED.fence", fence.is_some()), present("LOCK_RELEASED.holder", holder.is_some())]
        }
        LockEvent::Lost { fence: _, origin }
        | LockEvent::Broken { fence: _, origin }
        | LockEvent::BrokenElsewhere { holder: _, origin } => of_origin(origin),
    }
}
