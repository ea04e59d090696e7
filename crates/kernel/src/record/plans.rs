//! The stored form of what happens to tasks, plans and locks: JSON in a field of its own, and beside it what people look for.

use super::{Body, Record};
use crate::lock::LockEvent;
use crate::plan::PlanEvent;
use crate::task::TaskEvent;
use crate::{Event, Origin};
use serde::de::DeserializeOwned;

pub(super) fn write_task(event: &TaskEvent, record: &mut Record, body: &mut Body) {
    body.task = serde_json::to_vec(event).ok();
    match event {
        TaskEvent::CheckpointSaved { data, .. } => record.payload = Some(data.clone()),
        TaskEvent::Adopted { data, origin, .. } => {
            record.payload = Some(data.clone());
            record.reason.clone_from(&origin.why);
        }
        TaskEvent::HandedOver { origin, .. } => record.reason.clone_from(&origin.why),
        TaskEvent::StageFailed { failure, .. } => record.reason = Some(failure.message.clone()),
        TaskEvent::LockLost { origin, .. } => record.reason.clone_from(&origin.why),
        TaskEvent::Admitted { .. }
        | TaskEvent::Recalled { .. }
        | TaskEvent::LockAcquired(_)
        | TaskEvent::Started
        | TaskEvent::StageStarted { .. }
        | TaskEvent::StageCompleted { .. } => {}
    }
}

pub(super) fn write_plan(event: &PlanEvent, record: &mut Record, body: &mut Body) {
    body.plan = serde_json::to_vec(event).ok();
    if let PlanEvent::Created(created) = event {
        record.payload = Some(created.input.clone());
    }
    record.reason = match event {
        PlanEvent::Failed { failure } => Some(failure.message.clone()),
        PlanEvent::Degraded { why } | PlanEvent::Restored { why } => Some(why.clone()),
        event => event.origin().and_then(|Origin { why, .. }| why.clone()),
    };
}

pub(super) fn write_lock(event: &LockEvent, record: &mut Record, body: &mut Body) {
    body.lock = serde_json::to_vec(event).ok();
    if let LockEvent::Broken { origin, .. } | LockEvent::BrokenElsewhere { origin, .. } | LockEvent::Lost { origin, .. } = event {
        record.reason.clone_from(&origin.why);
    }
}

/// Puts the event together, if it is one of these.
pub(super) fn read(record: &Record, body: &Body) -> Option<Result<Event, &'static str>> {
    let payload = || record.payload.clone().ok_or("payload");
    let event = match (&body.task, &body.plan, &body.lock) {
        (Some(json), _, _) => parse(json).and_then(|mut event: TaskEvent| {
            if let TaskEvent::CheckpointSaved { data, .. } | TaskEvent::Adopted { data, .. } = &mut event {
                *data = payload()?;
            }
            Ok(Event::Task(Box::new(event)))
        }),
        (_, Some(json), _) => parse(json).and_then(|mut event: PlanEvent| {
            if let PlanEvent::Created(created) = &mut event {
                created.input = payload()?;
            }
            Ok(Event::Plan(Box::new(event)))
        }),
        (_, _, Some(json)) => parse(json).map(|event: LockEvent| Event::Lock(Box::new(event))),
        (None, None, None) => return None,
    };
    Some(event.and_then(|event| if event.kind() == record.kind { Ok(event) } else { Err("kind") }))
}

fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, &'static str> {
    serde_json::from_slice(json).map_err(|_| "event")
}
