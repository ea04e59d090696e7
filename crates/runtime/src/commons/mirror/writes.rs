//! The writes that tell others of a plan or a task: only what has changed, unless they know nothing of it.

use super::{About, Place};
use crate::commons::image::{PlanImage, TaskImage};
use steadfast_kernel::InstanceId;
use steadfast_store::{AsOf, PlanField, TaskField, Write};

pub(super) fn of_plan(me: &InstanceId, place: &Place<PlanImage>, among_many: bool) -> (About, Write) {
    let Place { seq, is, told, fresh, missing, .. } = place;
    let whole = *missing || (*fresh && told.is_none());
    let mut fields = Vec::new();
    let mut add = |changed: bool, field: PlanField, value: &dyn Fn() -> String| {
        if whole || changed {
            fields.push((field, value()));
        }
    };
    let before = told.as_ref();
    add(false, PlanField::PlanId, &|| is.plan.to_string());
    add(before.is_none_or(|told| told.status != is.status), PlanField::Status, &|| is.status.as_str().into());
    add(false, PlanField::TaskIds, &|| serde_json::to_string(&is.tasks).unwrap_or_default());
    add(false, PlanField::MaxConcurrency, &|| is.max_concurrency.to_string());
    add(false, PlanField::CreatedAt, &|| is.created_at.to_string());
    if let Some(started_at) = is.started_at {
        add(before.is_none_or(|told| told.started_at != is.started_at), PlanField::StartedAt, &|| started_at.to_string());
    }
    add(false, PlanField::Definition, &|| is.definition.clone());
    add(false, PlanField::DefinitionHash, &|| is.hash.clone());
    add(false, PlanField::Vars, &|| String::from_utf8_lossy(&is.vars.bytes).into_owned());
    let as_of = among_many.then_some(AsOf { made: is.created_at, seq: *seq });
    let write = Write::Plan { plan: is.plan.clone(), owner: me.clone(), fields, whole, as_of };
    (About::Plan(is.plan.clone(), Box::new(is.clone())), write)
}

pub(super) fn of_task(me: &InstanceId, place: &Place<TaskImage>, among_many: bool) -> Vec<(About, Write)> {
    let Place { seq, is, told, fresh, missing, .. } = place;
    let (before, whole) = (told.as_ref(), *missing || (*fresh && told.is_none()));
    let name = || (is.task.clone(), Box::new(is.clone()));
    let mut writes = Vec::new();
    let checkpoint = |image: &TaskImage| image.checkpoint.as_ref().map(|checkpoint| (checkpoint.fence, checkpoint.version));
    let (task, of) = name();
    match &is.checkpoint {
        Some(now) if before.is_none_or(|told| checkpoint(told) != checkpoint(is)) => {
            writes.push((About::Checkpoint(task, of), Write::Checkpoint { task: is.task.clone(), checkpoint: Box::new(now.clone()) }));
        }
        // What is there of a task that began anew meanwhile would lead another instance to leave stages out.
        None if before.map_or(*missing || !*fresh, |told| told.checkpoint.is_some()) => {
            writes.push((About::Checkpoint(task, of), Write::DropCheckpoint { task: is.task.clone(), fence: is.fence }));
        }
        _ => {}
    }
    let mut fields = Vec::new();
    let mut add = |changed: bool, field: TaskField, value: &dyn Fn() -> String| {
        if whole || changed {
            fields.push((field, value()));
        }
    };
    add(false, TaskField::TaskId, &|| is.task.to_string());
    add(false, TaskField::TenantId, &|| is.tenant.to_string());
    add(false, TaskField::PlanId, &|| is.plan.to_string());
    add(before.is_none_or(|told| told.status != is.status), TaskField::Status, &|| is.status.as_str().into());
    let pause_requested = before.is_none_or(|told| told.pause_requested != is.pause_requested);
    add(pause_requested, TaskField::PauseRequested, &|| is.pause_requested.to_string());
    add(false, TaskField::CreatedAt, &|| is.created_at.to_string());
    if let Some(started_at) = is.started_at {
        add(before.is_none_or(|told| told.started_at != is.started_at), TaskField::StartedAt, &|| started_at.to_string());
    }
    add(false, TaskField::Definition, &|| is.definition.clone());
    add(false, TaskField::DefinitionHash, &|| is.hash.clone());
    if fields.is_empty() && before.is_some_and(|told| told.fence == is.fence) {
        return writes; // the checkpoint is all that has changed
    }
    let (task, of) = name();
    let as_of = among_many.then_some(AsOf { made: is.created_at, seq: *seq });
    let write = Write::Task { task: is.task.clone(), owner: me.clone(), fence: is.fence, fields, whole, as_of };
    writes.insert(0, (About::Task(task, of), write));
    writes
}

/// Of all tasks of a tenant that are told anew, the one that was made last is what it had last; others may have told of a later one.
pub(super) fn index(place: &Place<TaskImage>) -> (About, Write) {
    let Place { is, fresh, missing, .. } = place;
    let has_the_lock = is.started_at.is_some() && !is.status.is_final(); // nobody else has come later
    let unless_there = (*missing || !*fresh) && !has_the_lock;
    (About::Index(is.task.clone()), Write::Index { tenant: is.tenant.clone(), task: is.task.clone(), unless_there })
}
