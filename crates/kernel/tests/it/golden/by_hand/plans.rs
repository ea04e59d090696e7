//! Plans, the tasks of a tenant and its lock: every way in which they stop, go on and end.

use super::{Journal, journal};
use crate::support::plans::*;
use crate::support::{
    Leaving, SEED, ada, ada_with, at, card_refused, entry, run_compensating, run_failed, step_failed, undo_completed, undoable_completed,
    workflow,
};
use std::time::Duration;
use steadfast_kernel::lock::Waiter;
use steadfast_kernel::plan::{Cause, Settings, StopWhen};
use steadfast_kernel::{
    Conflict, EntityId, Entry, Epoch, Event, Lease, LockEvent, OnFailure, Origin, Payload, PlanCreated, PlanEvent, PlanId, Recovery,
    Retried, RunId, RunOptions, TaskEvent, TaskOptions, TaskStatus, Wants, task_id,
};

pub(super) const LEASE: Duration = Duration::from_secs(9_000);

pub(super) fn journals() -> Vec<Journal> {
    vec![
        journal("plan:switch-7", rolled_back()),
        journal("plan:switch-8", completed()),
        journal("plan:switch-9", called_off()),
        journal("switch-7/acme", undone()),
        journal("switch-8/bob", left_out()),
        journal("lock:acme", lock()),
    ]
}

pub(super) fn task(plan: &str, name: &str) -> RunId {
    task_id(&plan_named(plan), &tenant(name))
}

/// One after the other, a millisecond apart.
pub(super) fn in_order(events: Vec<Event>) -> Vec<Entry> {
    (1..).zip(events).map(|(seq, event)| entry(seq, i64::try_from(seq).unwrap(), event)).collect()
}

pub(super) fn changed(plan: &str, name: &str, epoch: Epoch, status: TaskStatus, wants: Wants) -> Event {
    of_plan(PlanEvent::TaskChanged { task: task(plan, name), epoch, status, wants, heard: 3 })
}

pub(super) fn created(tenants: &[&str], settings: Settings) -> PlanCreated {
    PlanCreated { input: Payload::json("{\"version\":\"2.4\"}"), ..plan_created(tenants, settings) }
}

/// Everything that may be said of a plan is; it stops for every cause, fails, goes on, and is rolled back.
fn rolled_back() -> Vec<Entry> {
    let settings = Settings {
        max_concurrency: 2,
        canary: 1,
        stop_when: Some(StopWhen::Failed(3)),
        conflict: Conflict::Skip,
        on_failure: OnFailure::Release,
        lease: LEASE,
        deadline: Some(Duration::from_micros(3_600_000_001)),
    };
    let (version, skipped) = (Some("5f".repeat(32)), vec![(tenant("dora"), "switch-6:switch-6/dora".to_string())]);
    let created = PlanCreated { version, skipped, ..created(&["acme", "bob", "cleo"], settings) };
    let says = |name, epoch, status, wants| changed("switch-7", name, epoch, status, wants);
    let admitted = |name, epoch| of_plan(PlanEvent::TaskAdmitted { task: task("switch-7", name), epoch });
    let paused = |cause| of_plan(PlanEvent::Paused { cause, origin: ada() });
    let mut events = vec![
        of_plan(PlanEvent::Created(Box::new(created))),
        says("acme", 1, TaskStatus::Pending, Wants::Turn),
        says("bob", 1, TaskStatus::Pending, Wants::Turn),
        says("cleo", 1, TaskStatus::Pending, Wants::Turn),
        of_plan(PlanEvent::Started { origin: ada_with("c-1") }),
        admitted("acme", 1),
        paused(Cause::Restart),
        of_plan(PlanEvent::TaskRecalled { task: task("switch-7", "acme"), epoch: 1 }),
        says("acme", 1, TaskStatus::Pending, Wants::Turn),
    ];
    events.extend([Cause::Person, Cause::StopWhen, Cause::Canary, Cause::Interrupted, Cause::Deadline].map(paused));
    events.extend([
        of_plan(PlanEvent::Resumed { origin: Origin::default() }),
        admitted("acme", 1),
        says("acme", 1, TaskStatus::Running, Wants::Nothing),
        says("acme", 1, TaskStatus::Waiting, Wants::Nothing),
        says("acme", 1, TaskStatus::Paused, Wants::Nothing),
        says("acme", 1, TaskStatus::Failed, Wants::Nothing),
        says("bob", 1, TaskStatus::Interrupted, Wants::Nothing),
        says("bob", 1, TaskStatus::HandedOver, Wants::Nothing),
        says("cleo", 1, TaskStatus::Cancelled, Wants::Nothing),
        of_plan(PlanEvent::Failed { failure: card_refused() }),
        of_plan(PlanEvent::CancelRequested { origin: ada_with("c-2"), undo: true }),
        says("acme", 2, TaskStatus::RollingBack, Wants::TurnAsked),
        admitted("acme", 2),
        says("acme", 2, TaskStatus::RollbackFailed, Wants::Nothing),
        says("acme", 3, TaskStatus::RolledBack, Wants::Nothing),
        says("cleo", 1, TaskStatus::Cancelled, Wants::Nothing),
    ]);
    let mut entries = in_order(events);
    for (entry, seq) in entries.iter_mut().filter(|entry| entry.event.kind() == "TASK_CHANGED").zip(1..) {
        let Event::Plan(event) = &entry.event else { continue };
        let from = event.task().map(EntityId::from);
        entry.heard = from.map(|from| steadfast_kernel::Heard { from, seq });
    }
    entries
}

/// Nothing is said that need not be.
fn completed() -> Vec<Entry> {
    in_order(vec![
        of_plan(PlanEvent::Created(Box::new(created(&["bob"], Settings::default())))),
        of_plan(PlanEvent::Started { origin: Origin::default() }),
        changed("switch-8", "bob", 1, TaskStatus::Completed, Wants::Nothing),
        of_plan(PlanEvent::Completed),
    ])
}

fn called_off() -> Vec<Entry> {
    let settings = Settings { stop_when: Some(StopWhen::FailedPercent(20)), ..Settings::default() };
    in_order(vec![
        of_plan(PlanEvent::Created(Box::new(created(&["bob"], settings)))),
        of_plan(PlanEvent::CancelRequested { origin: ada(), undo: false }),
        changed("switch-9", "bob", 1, TaskStatus::Cancelled, Wants::Nothing),
        of_plan(PlanEvent::Cancelled),
    ])
}

pub(super) fn begins(plan: &str, name: &str, conflict: Conflict, on_failure: OnFailure) -> Event {
    let (plan, stages): (PlanId, _) = (plan_named(plan), ["drain", "switch", "check"].map(String::from).into());
    let task = TaskOptions { plan, tenant: tenant(name), stages, lease: LEASE, on_failure, conflict };
    let options = RunOptions { tenant: Some(name.into()), recovery: Recovery::Manual, task: Some(Box::new(task)), ..RunOptions::default() };
    Event::RunStarted { workflow: workflow("switch"), input: Payload::json("{}"), seed: SEED, deadline_at: None, options }
}

pub(super) fn lease(plan: &str, name: &str, epoch: Epoch, fence: u64) -> Lease {
    Lease { plan: plan_named(plan), task: task(plan, name), epoch, fence, lease: LEASE, expires_at: at(9_000_000) }
}

/// A task is recalled, begins, fails at its second stage, loses its lock, and is undone in another life.
fn undone() -> Vec<Entry> {
    let (plan, lock): (EntityId, EntityId) = (EntityId::Plan(plan_named("switch-7")), EntityId::Lock(tenant("acme")));
    let admitted = |epoch| of_task(TaskEvent::Admitted { epoch });
    let acquired = |epoch, fence| of_task(TaskEvent::LockAcquired(lease("switch-7", "acme", epoch, fence)));
    let retried =
        Retried { origin: ada(), from: Vec::new(), cut: 15, cuts: Vec::new(), reset: Vec::new(), supplied: Vec::new(), input: None };
    let mut entries = in_order(vec![
        begins("switch-7", "acme", Conflict::Refuse, OnFailure::Keep),
        admitted(1),
        of_task(TaskEvent::Recalled { epoch: 1 }),
        admitted(1),
        acquired(1, 4),
        of_task(TaskEvent::Started),
        stage_started("drain", 0),
        undoable_completed("drain#1", 1, "{\"count\":17}"),
        stage_completed("drain", 0),
        checkpoint_saved("drain", 0, "{\"drained\":17}"),
        stage_started("switch", 1),
        step_failed("switch#1", 1, card_refused()),
        stage_failed("switch", 1, card_refused()),
        run_failed(card_refused()),
        of_task(TaskEvent::LockLost { fence: 4, origin: ada() }),
        Event::RunRetried(Box::new(retried)),
        Event::RunCancelRequested { origin: ada_with("c-3"), terminate: false, undo: true },
        admitted(2),
        acquired(2, 6),
        of_task(TaskEvent::Started),
        run_compensating(None),
        undo_completed("drain#1", 1),
        Event::RunCancelled,
    ]);
    for (place, seq) in [(2, 8), (3, 9), (4, 10), (18, 12)] {
        entries[place - 1] = entries[place - 1].clone().heard(plan.clone(), seq);
    }
    for (place, seq) in [(5, 2), (15, 3), (19, 4)] {
        entries[place - 1] = entries[place - 1].clone().heard(lock.clone(), seq);
    }
    for entry in &mut entries[15..] {
        entry.epoch = 2;
    }
    entries
}

/// Another task has the lock, and this one does not wait for it.
fn left_out() -> Vec<Entry> {
    in_order(vec![
        begins("switch-8", "bob", Conflict::Skip, OnFailure::Release),
        of_task(TaskEvent::Admitted { epoch: 1 }),
        Event::RunCancelRequested { origin: ada(), terminate: false, undo: false },
        Event::RunCancelled,
    ])
}

/// A holder that gives no sign of life, and a task that was paused in the middle of its stage.
pub(super) fn of_leases() -> Vec<Journal> {
    let waiter = Waiter { task: task("switch-7", "bob"), plan: plan_named("switch-7"), epoch: 1, asked: 2, lease: LEASE, waits: true };
    let lock = in_order(vec![
        of_lock(LockEvent::Requested(waiter)),
        of_lock(LockEvent::Acquired(lease("switch-7", "bob", 1, 1))),
        of_lock(LockEvent::Suspected { fence: 1 }),
    ]);
    let mut paused = in_order(vec![
        begins("switch-7", "bob", Conflict::Refuse, OnFailure::Keep),
        of_task(TaskEvent::Admitted { epoch: 1 }),
        of_task(TaskEvent::LockAcquired(lease("switch-7", "bob", 1, 1))),
        of_task(TaskEvent::Started),
        stage_started("drain", 0),
        Event::RunPaused { origin: ada() },
        undoable_completed("drain#1", 1, "1"),
        stage_completed("drain", 0),
        checkpoint_saved("drain", 0, "{}"),
        stage_started("switch", 1),
    ]);
    let last = paused.last_mut().unwrap();
    (last.in_flight, last.held) = (Some(0), 1);
    vec![journal("lock:bob", lock), journal("switch-7/bob", paused)]
}

fn lock() -> Vec<Entry> {
    let (plans, name) = (["switch-6", "switch-7", "switch-8"], "acme");
    let requested = |plan: &str, asked| {
        let waiter = Waiter { task: task(plan, name), plan: plan_named(plan), epoch: 1, asked, lease: LEASE, waits: true };
        of_lock(LockEvent::Requested(waiter))
    };
    let acquired = |plan: &str, fence| of_lock(LockEvent::Acquired(lease(plan, name, 1, fence)));
    let mut entries = in_order(vec![
        requested(plans[0], 2),
        acquired(plans[0], 1),
        requested(plans[1], 2),
        requested(plans[2], 2),
        of_lock(LockEvent::Renewed { fence: 1, expires_at: at(18_000_000), seen: 12 }),
        of_lock(LockEvent::Released { task: task(plans[1], name), fence: None, holder: None }),
        of_lock(LockEvent::Released { task: task(plans[0], name), fence: Some(1), holder: None }),
        acquired(plans[2], 2),
        requested(plans[1], 4),
        of_lock(LockEvent::Lost { fence: 2, origin: Origin::default() }),
        acquired(plans[1], 3),
        requested(plans[2], 6),
        of_lock(LockEvent::Broken { fence: 3, origin: ada_with("c-4") }),
        acquired(plans[2], 4),
        requested(plans[0], 9),
    ]);
    entries[0] = entries[0].clone().heard(task(plans[0], name), 1_767_225_600_000_007);
    entries
}
