//! What instances that share tenants put on record: tasks that go from one to another, locks that others have, and the commons being away.

use super::plans::{LEASE, begins, changed, created, in_order, lease, task};
use super::{Journal, journal};
use crate::support::plans::*;
use crate::support::{Leaving, ada, ada_with, at, step_completed, undoable_completed};
use steadfast_kernel::lock::Waiter;
use steadfast_kernel::plan::Settings;
use steadfast_kernel::{
    Conflict, Entry, Event, InstanceId, LockEvent, OnFailure, Origin, Payload, PlanEvent, Retried, TaskEvent, TaskStatus, Wants,
};

pub(super) fn journals() -> Vec<Journal> {
    vec![
        journal("plan:switch-5", degraded()),
        journal("switch-5/acme", adopted()),
        journal("switch-5/bob", adopted_again()),
        journal("lock:cleo", lock()),
    ]
}

fn instance(name: &str) -> Option<InstanceId> {
    InstanceId::new(name).ok()
}

/// The commons are away for a while, and a task is handed over.
fn degraded() -> Vec<Entry> {
    in_order(vec![
        of_plan(PlanEvent::Created(Box::new(created(&["bob"], Settings::default())))),
        of_plan(PlanEvent::Started { origin: ada() }),
        of_plan(PlanEvent::Degraded { why: "the commons cannot be reached: new locks are this instance's own".into() }),
        of_plan(PlanEvent::Restored { why: "the commons are back".into() }),
        of_plan(PlanEvent::Degraded { why: "they are away again".into() }),
        changed("switch-5", "bob", 1, TaskStatus::HandedOver, Wants::Nothing),
        of_plan(PlanEvent::Cancelled),
    ])
}

/// Everything is said that may be: two stages were done elsewhere, and the third is done here.
fn adopted() -> Vec<Entry> {
    let adopted = TaskEvent::Adopted {
        from: instance("i-1"),
        origin: ada_with("c-1"),
        started_at: Some(at(0)),
        fence: 8,
        index: Some(1),
        alone: true,
        half_undone: false,
        data: Payload::json("{\"drained\":17}"),
    };
    let retried = Retried { origin: ada(), from: vec![], cut: 6, cuts: vec![], reset: vec![], supplied: vec![], input: None };
    let mut entries = in_order(vec![
        begins("switch-5", "acme", Conflict::Refuse, OnFailure::Keep),
        of_task(adopted),
        undoable_completed("drain#1", 1, "null"),
        step_completed("switch#1", 1, "null"),
        Event::RunInterrupted,
        Event::RunRetried(Box::new(retried)),
        of_task(TaskEvent::Admitted { epoch: 2 }),
        of_task(TaskEvent::LockAcquired(lease("switch-5", "acme", 2, 9))),
        of_task(TaskEvent::Started),
        stage_started("check", 2),
    ]);
    entries[4] = entries[4].clone().leaving(0);
    entries[5..].iter_mut().for_each(|entry| entry.epoch = 2);
    entries
}

/// Nothing is said that need not be: handed over to whoever wants it, taken up again, and handed over to somebody.
fn adopted_again() -> Vec<Entry> {
    let adopted = TaskEvent::Adopted {
        from: None,
        origin: Origin::default(),
        started_at: None,
        fence: 0,
        index: None,
        alone: false,
        half_undone: true,
        data: Payload::json("{}"),
    };
    let retried = Retried { origin: ada(), from: vec![], cut: 2, cuts: vec![], reset: vec![], supplied: vec![], input: None };
    let handed_over = |to, origin| of_task(TaskEvent::HandedOver { to, origin });
    let mut entries = in_order(vec![
        begins("switch-5", "bob", Conflict::Skip, OnFailure::Release),
        of_task(TaskEvent::Admitted { epoch: 1 }),
        handed_over(None, Origin::default()),
        Event::RunCancelled,
        Event::RunRetried(Box::new(retried)),
        of_task(adopted),
        Event::RunInterrupted,
        handed_over(instance("i-2"), ada()),
        Event::RunCancelled,
    ]);
    entries[4..].iter_mut().for_each(|entry| entry.epoch = 2);
    for place in [3, 6, 8] {
        entries[place] = entries[place].clone().leaving(0);
    }
    entries
}

/// One that does not wait is refused, one that does is granted the lock by the commons, which give it to somebody else later.
fn lock() -> Vec<Entry> {
    let waiter = |plan: &str, waits| Waiter { task: task(plan, "cleo"), plan: plan_named(plan), epoch: 1, asked: 2, lease: LEASE, waits };
    in_order(vec![
        of_lock(LockEvent::BrokenElsewhere { holder: "switch-4:switch-4/cleo".into(), origin: ada_with("c-2") }),
        of_lock(LockEvent::Requested(waiter("switch-5", false))),
        of_lock(LockEvent::Released { task: task("switch-5", "cleo"), fence: None, holder: Some("switch-4:switch-4/cleo".into()) }),
        of_lock(LockEvent::Requested(waiter("switch-6", true))),
        of_lock(LockEvent::Acquired(lease("switch-6", "cleo", 1, 17))),
        of_lock(LockEvent::Lost { fence: 17, origin: ada() }),
        of_lock(LockEvent::Requested(waiter("switch-7", false))),
    ])
}
