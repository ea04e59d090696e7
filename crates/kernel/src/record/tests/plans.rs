//! Every event of tasks, plans and locks, in every form.

use super::{failure, origin, step, workflow};
use crate::lock::Waiter;
use crate::plan::{Cause, Settings, StopWhen};
use crate::random::Seed;
use crate::{
    Conflict, Event, InstanceId, Lease, LockEvent, OnFailure, Origin, Payload, PlanCreated, PlanEvent, PlanId, RunId, TaskEvent,
    TaskOptions, TaskStatus, TenantId, Timestamp, Wants,
};
use std::time::Duration;

fn plan() -> PlanId {
    PlanId::new("switch-17").unwrap()
}

fn tenant() -> TenantId {
    TenantId::new("acme/eu").unwrap()
}

fn task() -> RunId {
    crate::task_id(&plan(), &tenant())
}

pub(super) fn task_options() -> TaskOptions {
    let (on_failure, conflict) = (OnFailure::Release, Conflict::Skip);
    let stages = vec!["drain".into(), "switch".into()];
    TaskOptions { plan: plan(), tenant: tenant(), stages, lease: Duration::from_micros(9_000_000_001), on_failure, conflict }
}

fn lease() -> Lease {
    let expires_at = Timestamp::from_micros(1_700_000_000_000_001);
    Lease { plan: plan(), task: task(), epoch: 3, fence: 1 << 60, lease: Duration::from_secs(9_000), expires_at }
}

fn created(settings: Settings) -> PlanEvent {
    PlanEvent::Created(Box::new(PlanCreated {
        workflow: workflow(),
        definition: "switch".into(),
        version: Some("1f".repeat(32)),
        stages: vec!["drain".into(), "switch".into()],
        tenants: vec![tenant(), TenantId::new("b").unwrap()],
        skipped: vec![(TenantId::new("c").unwrap(), "other:other/c".into())],
        settings,
        seed: Seed([9; 32]),
        origin: origin(),
        input: Payload::json("{\"a\":\u{0}}"),
    }))
}

fn of_tasks() -> Vec<TaskEvent> {
    let (stage, index) = (step(), 4);
    vec![
        TaskEvent::Admitted { epoch: 2 },
        TaskEvent::Recalled { epoch: 2 },
        TaskEvent::LockAcquired(lease()),
        TaskEvent::LockLost { fence: 7, origin: origin() },
        TaskEvent::LockLost { fence: 7, origin: Origin::default() },
        TaskEvent::Started,
        TaskEvent::StageStarted { stage: stage.clone(), index },
        TaskEvent::StageCompleted { stage: stage.clone(), index },
        TaskEvent::StageFailed { stage: stage.clone(), index, failure: failure() },
        TaskEvent::CheckpointSaved { stage, index, data: Payload::json("{\"drained\":17}") },
        adopted(Some(7)),
        adopted(None),
        TaskEvent::HandedOver { to: InstanceId::new("i-2").ok(), origin: origin() },
        TaskEvent::HandedOver { to: None, origin: Origin::default() },
    ]
}

fn adopted(index: Option<u32>) -> TaskEvent {
    let (from, started_at) = (index.and_then(|_| InstanceId::new("i-1").ok()), index.map(|_| Timestamp::from_micros(7)));
    TaskEvent::Adopted {
        from,
        origin: origin(),
        started_at,
        fence: 9,
        index,
        alone: index.is_none(),
        half_undone: index.is_some(),
        data: Payload::json("{\"drained\":17}"),
    }
}

fn of_plans() -> Vec<PlanEvent> {
    let deadline = Some(Duration::from_micros(1_500_001));
    let settings = Settings { canary: 1, stop_when: Some(StopWhen::Failed(3)), deadline, ..Settings::default() };
    let percent = Settings { stop_when: Some(StopWhen::FailedPercent(20)), conflict: Conflict::Skip, ..Settings::default() };
    let causes = [Cause::Person, Cause::Restart, Cause::StopWhen, Cause::Canary, Cause::Deadline, Cause::Interrupted];
    let wants = [Wants::Nothing, Wants::Turn, Wants::TurnAsked].into_iter().cycle();
    let paused = causes.map(|cause| PlanEvent::Paused { cause, origin: origin() });
    let changed = TaskStatus::ALL.into_iter().zip(wants).map(|(status, wants)| PlanEvent::TaskChanged {
        task: task(),
        epoch: 2,
        status,
        wants,
        heard: 7,
    });
    let others = [
        created(settings),
        created(percent),
        created(Settings::default()),
        PlanEvent::Started { origin: origin() },
        PlanEvent::Resumed { origin: Origin::default() },
        PlanEvent::CancelRequested { origin: origin(), undo: false },
        PlanEvent::CancelRequested { origin: origin(), undo: true },
        PlanEvent::TaskAdmitted { task: task(), epoch: 2 },
        PlanEvent::TaskRecalled { task: task(), epoch: 2 },
        PlanEvent::Completed,
        PlanEvent::Failed { failure: failure() },
        PlanEvent::Cancelled,
        PlanEvent::Degraded { why: "the commons cannot be reached".into() },
        PlanEvent::Restored { why: "the commons are back".into() },
    ];
    paused.into_iter().chain(changed).chain(others).collect()
}

fn of_locks() -> Vec<LockEvent> {
    let waiter = Waiter { task: task(), plan: plan(), epoch: 2, asked: 9, lease: Duration::from_micros(1), waits: false };
    vec![
        LockEvent::Requested(waiter),
        LockEvent::Acquired(lease()),
        LockEvent::Renewed { fence: 7, expires_at: Timestamp::from_micros(9), seen: 4 },
        LockEvent::Suspected { fence: 7 },
        LockEvent::Released { task: task(), fence: Some(7), holder: None },
        LockEvent::Released { task: task(), fence: None, holder: None },
        LockEvent::Released { task: task(), fence: None, holder: Some("q:q/acme".into()) },
        LockEvent::Lost { fence: 7, origin: Origin::default() },
        LockEvent::Lost { fence: 7, origin: origin() },
        LockEvent::BrokenElsewhere { holder: "q:q/acme".into(), origin: origin() },
        LockEvent::Broken { fence: 7, origin: origin() },
    ]
}

pub(super) fn every_event_of_plans() -> Vec<Event> {
    let tasks = of_tasks().into_iter().map(|event| Event::Task(Box::new(event)));
    let plans = of_plans().into_iter().map(|event| Event::Plan(Box::new(event)));
    let locks = of_locks().into_iter().map(|event| Event::Lock(Box::new(event)));
    tasks.chain(plans).chain(locks).collect()
}
