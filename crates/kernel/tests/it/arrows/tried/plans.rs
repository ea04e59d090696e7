//! Everything that can be asked of plans, tasks and locks, and every event that can be built for them.

use super::now;
use crate::support::plans::*;
use crate::support::*;
use std::time::Duration;
use steadfast_kernel::lock::{Request, Waiter};
use steadfast_kernel::plan::{Cause, Settings};
use steadfast_kernel::run::Verb;
use steadfast_kernel::{
    Claimed, Command, Conflict, EntityId, Envelope, Event, Lease, Lock, LockEvent, Message, OnFailure, OperatePlan, Payload, Plan,
    PlanEvent, Proposal, RetryFrom, RetryRun, Run, RunId, SettleClaim, TakeTurn, TaskChanged, TaskEvent, TaskOptions, TaskStatus, Wants,
};

const VERBS: [Verb; 7] = [Verb::Start, Verb::Pause, Verb::Resume, Verb::Cancel, Verb::RollBack, Verb::Retry, Verb::Terminate];
const WANTS: [Wants; 3] = [Wants::Nothing, Wants::Turn, Wants::TurnAsked];

fn told(from: EntityId, to: &EntityId, message: Message) -> Command {
    told_as(u64::MAX, from, to, message)
}

fn told_as(seq: u64, from: EntityId, to: &EntityId, message: Message) -> Command {
    Command::Hear(Box::new(Envelope { from, seq, to: to.clone(), message }))
}

/// What tasks may say.
fn statuses() -> impl Iterator<Item = (TaskStatus, Wants)> {
    let asks = |status| matches!(status, TaskStatus::Pending | TaskStatus::RollingBack);
    let said = TaskStatus::ALL.into_iter().flat_map(|status| WANTS.map(|wants| (status, wants)));
    said.filter(move |(status, wants)| *wants == Wants::Nothing || asks(*status))
}

pub(super) fn of_plan(id: &EntityId, plan: Option<&Plan>) -> Vec<Command> {
    let created = |tenants: &[&str]| create_plan(plan_created(tenants, Settings::default()), Vec::new());
    let Some(plan) = plan else { return vec![created(&["acme"]), created(&[])] };
    let verbs = VERBS.map(|verb| Command::OperatePlan(OperatePlan { verb, origin: ada(), locked: Vec::new() }));
    let timers = plan.timers().into_iter().map(|timer| fire(timer.name, timer.revision));
    let alerts = [true, false].map(|degraded| Command::AlertPlan { degraded, why: "the commons are away, or back".into() });
    let mut asked: Vec<_> = verbs.into_iter().chain([Command::InterruptPlan]).chain(alerts).chain(timers).collect();
    for task in &plan.tasks {
        for (status, wants) in statuses() {
            let changed = TaskChanged { epoch: task.epoch.max(1), status, wants, heard: u64::MAX };
            asked.push(told(EntityId::from(&task.run), id, Message::TaskChanged(changed)));
        }
    }
    asked
}

fn acquire(waits: bool) -> Message {
    Message::AcquireLock { epoch: 1, asked: 99, plan: plan_named("p-9"), lease: Duration::from_secs(9), waits }
}

/// The same where the commons say who has it, and what they say.
pub(super) fn of_lock(id: &EntityId, lock: Option<&Lock>) -> Vec<Command> {
    let mut asked = of_own_lock(id, lock);
    asked.push(Command::BreakElsewhere { holder: "p-7:p-7/acme".into(), origin: ada() });
    asked.push(Command::LoseLock { fence: lock.map_or(0, |lock| lock.fence), origin: ada() });
    if let Some(Waiter { task, asked: by, .. }) = lock.and_then(Lock::wanted).cloned() {
        let says = [Claimed::Granted { fence: None }, Claimed::Held { holder: "p-7:p-7/acme".into() }];
        asked.extend(says.map(|claimed| Command::SettleClaim(SettleClaim { task: task.clone(), asked: by, claimed })));
    }
    let shared: Vec<_> = asked.iter().map(|command| Command::Shared(Box::new(command.clone()))).collect();
    asked.into_iter().chain(shared).collect()
}

fn of_own_lock(id: &EntityId, lock: Option<&Lock>) -> Vec<Command> {
    let number = lock.map_or(0, |lock| lock.seq) + 1; // a new one after every change
    let told = |from: &EntityId, message| told_as(number, from.clone(), id, message);
    let strangers = ["p-8/acme", "p-9/acme"].map(|task| EntityId::from(&other_run(task)));
    let asks = |stranger: &EntityId| [true, false].map(|waits| told(stranger, acquire(waits)));
    let mut asked: Vec<_> = strangers.iter().flat_map(asks).collect();
    asked.push(Command::BreakLock(ada()));
    let Some(lock) = lock else { return asked };
    asked.extend(lock.timer().map(|timer| fire(timer.name, timer.revision)));
    let again = |request: &Request| told_as(request.message, EntityId::from(&request.task), id, acquire(true));
    asked.extend(lock.requests.iter().map(again));
    for task in lock.held().map(|lease| &lease.task).into_iter().chain(lock.line.iter().map(|waiter| &waiter.task)) {
        let asked_whether = [Message::RenewLock { fence: lock.fence, seen: 99 }, Message::DenyLock { fence: lock.fence }];
        let says = asked_whether.into_iter().chain([Message::ReleaseLock { fence: None }, acquire(true)]);
        asked.extend(says.map(|message| told(&EntityId::from(task), message)));
    }
    asked
}

/// A task of another instance.
pub(super) fn of_nothing() -> Vec<Command> {
    let (plan, tenant, lease) = (plan_named("p-9"), tenant("acme"), Duration::from_secs(9));
    let stages = ["drain", "switch", "check"].map(String::from).into();
    let options = TaskOptions { plan, tenant, stages, lease, on_failure: OnFailure::Keep, conflict: Conflict::Refuse };
    let done: [&[bool]; 3] = [&[], &[true], &[true, false, true]];
    let adopted = done
        .iter()
        .flat_map(|done| [true, false].map(|alone| adopt(run_id(), options.clone(), done, alone)));
    adopted.collect()
}

pub(super) fn of_task(run: &Run) -> Vec<Command> {
    let (Some(options), Some(task)) = (run.task_options(), run.task()) else { return Vec::new() };
    let (me, plan, lock) = (EntityId::from(&run.id), EntityId::Plan(options.plan.clone()), EntityId::Lock(options.tenant.clone()));
    let lease = lease_of(run, task.lock.as_ref().map_or(1, |lease| lease.fence + 1));
    let of_plan = [Message::AdmitTask { epoch: run.epoch }, Message::RecallTask { epoch: run.epoch }];
    let verbs = VERBS.map(|verb| Message::OperateTask { verb, origin: ada() });
    let of_plan = of_plan.into_iter().chain(verbs).map(|message| told(plan.clone(), &me, message));
    let granted = Message::LockGranted { lease: Box::new(lease), asked: task.asked };
    let refused = Message::LockRefused { asked: task.asked, holder: "p-9:p-9/acme".into() };
    let lost = task.lock.as_ref().map(|lease| Message::LockLost { fence: lease.fence, origin: ada() });
    let of_lock = [granted, refused].into_iter().chain(lost).map(|message| told(lock.clone(), &me, message));
    let verbs = [pause(), resume(), terminate(), cancel(), Command::InterruptRun, Command::RollBackRun(ada())];
    let retries = [RetryFrom::Failed, RetryFrom::Start].map(|from| Command::RetryRun(RetryRun { blocked: true, ..retry_from(from) }));
    let turns = stages(run).into_iter().chain(of_the_code(run)).flat_map(|event| {
        let proposals = vec![Proposal { at: now(), event }];
        let turn = TakeTurn {
            epoch: run.epoch,
            proposals,
            in_flight: 0,
            asked: 0,
            unanswered: Vec::new(),
            abandoned: Vec::new(),
            asks_again: true,
        };
        [0, 1].map(|in_flight| Command::TakeTurn(TakeTurn { in_flight, ..turn.clone() }))
    });
    let elsewhere = [hand_over(Some("i-2")), adopt(run.id.clone(), options.clone(), &[true], false)];
    of_plan.chain(of_lock).chain(verbs).chain(retries).chain(turns).chain(elsewhere).collect()
}

/// What else its code, or who undoes it, may say that makes a difference.
fn of_the_code(run: &Run) -> Vec<Event> {
    let undone = run.open().into_iter().flat_map(|open| &open.undoable);
    let undone = undone.flat_map(|step| [undo_completed(step.as_str(), 1), undo_failed(step.as_str(), 1, timeout())]);
    let wait = signal_awaited(&format!("signal:ok#{}", run.seq), "ok");
    let ends = [run_completed("18"), run_failed(timeout()), Event::RunCancelled];
    ends.into_iter().chain([run_compensating(None), wait]).chain(undone).collect()
}

fn lease_of(run: &Run, fence: u64) -> Lease {
    let expires_at = now().saturating_add(Duration::from_secs(9));
    Lease { plan: plan_named("p-9"), task: run.id.clone(), epoch: run.epoch, fence, lease: Duration::from_secs(9), expires_at }
}

/// What the code of a task may say of its stages.
fn stages(run: &Run) -> Vec<Event> {
    let names = ["drain", "switch", "check"];
    let done = run.task().map_or(0, |task| task.completed.len());
    let Some(name) = names.get(done) else { return Vec::new() };
    let index = u32::try_from(done).expect("three stages");
    let said = [stage_started(name, index), stage_completed(name, index), stage_failed(name, index, timeout())];
    said.into_iter().chain([checkpoint_saved(name, index, "{}")]).collect()
}

/// About everything on record and something that is not.
pub(super) fn events_of_task(run: &Run) -> Vec<Event> {
    let Some(task) = run.task() else { return Vec::new() };
    let fence = task.lock.as_ref().map_or(1, |lease| lease.fence);
    let says = [
        TaskEvent::Admitted { epoch: run.epoch },
        TaskEvent::Recalled { epoch: run.epoch },
        TaskEvent::LockAcquired(lease_of(run, fence + 1)),
        TaskEvent::LockLost { fence, origin: ada() },
        TaskEvent::Started,
        TaskEvent::Adopted {
            from: None,
            origin: ada(),
            started_at: None,
            fence: 1,
            index: None,
            alone: true,
            half_undone: false,
            data: Payload::json("{}"),
        },
        TaskEvent::HandedOver { to: None, origin: ada() },
    ];
    says.map(of_task_event).into_iter().chain(stages(run)).collect()
}

fn of_task_event(event: TaskEvent) -> Event {
    crate::support::plans::of_task(event)
}

pub(super) fn events_of_plan(plan: Option<&Plan>) -> Vec<Event> {
    let mut events = vec![
        PlanEvent::Created(Box::new(plan_created(&["acme"], Settings::default()))),
        PlanEvent::Started { origin: ada() },
        PlanEvent::Paused { cause: Cause::Person, origin: ada() },
        PlanEvent::Resumed { origin: ada() },
        PlanEvent::Degraded { why: "away".into() },
        PlanEvent::Restored { why: "back".into() },
    ];
    for task in plan.iter().flat_map(|plan| &plan.tasks) {
        let (task, epoch) = (task.run.clone(), task.epoch);
        let changed = |(status, wants)| PlanEvent::TaskChanged { task: task.clone(), epoch, status, wants, heard: u64::MAX };
        events.extend(statuses().map(changed));
    }
    events.into_iter().map(crate::support::plans::of_plan).collect()
}

pub(super) fn events_of_lock(lock: Option<&Lock>) -> Vec<Event> {
    let fence = lock.map_or(0, |lock| lock.fence);
    let lease = |task: RunId| {
        let (plan, lease) = (plan_named("p-9"), Duration::from_secs(9));
        Lease { plan, task, epoch: 1, fence: fence + 1, lease, expires_at: now().saturating_add(lease) }
    };
    let waiter = |task: RunId| Waiter { task, plan: plan_named("p-9"), epoch: 1, asked: 99, lease: Duration::from_secs(9), waits: true };
    let known = lock.into_iter().flat_map(|lock| {
        let line = lock.line.iter().map(|waiter| waiter.task.clone());
        lock.held().map(|lease| lease.task.clone()).into_iter().chain(line)
    });
    let mut events = vec![LockEvent::Lost { fence, origin: ada() }, LockEvent::Broken { fence, origin: ada() }];
    events.push(LockEvent::Renewed { fence, expires_at: now(), seen: 99 });
    events.push(LockEvent::Suspected { fence });
    events.push(LockEvent::BrokenElsewhere { holder: "p-7:p-7/acme".into(), origin: ada() });
    for task in known.chain([other_run("p-9/acme")]) {
        events.push(LockEvent::Acquired(lease(task.clone())));
        events.push(LockEvent::Released { task: task.clone(), fence: Some(fence), holder: None });
        if lock.is_some_and(|lock| lock.line.iter().any(|waiter| waiter.task == task)) {
            events.push(LockEvent::Released { task: task.clone(), fence: None, holder: None });
        }
        events.push(LockEvent::Requested(waiter(task)));
    }
    events.into_iter().map(crate::support::plans::of_lock).collect()
}
