//! How an entry changes a plan, and what it tells its tasks. The same function runs live and at recovery.

use super::{Phase, Plan, PlanCreated, PlanEvent, Task};
use crate::machine::{IllegalTransition, envelopes, illegal};
use crate::run::{Deadline, Verb};
use crate::{
    EntityId, Entry, Envelope, Event, Message, Origin, PlanId, Recovery, RunId, RunOptions, StartChild, TaskOptions, TaskStatus, TenantId,
    Wants, task_id,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Folds one entry into the state, and tells what it says to tasks.
///
/// # Errors
/// [`IllegalTransition`] if the entry cannot come next.
pub fn advance(id: &PlanId, plan: Option<Plan>, entry: &Entry) -> Result<(Plan, Vec<Envelope>), IllegalTransition> {
    let before = plan.as_ref().map_or(0, |plan| plan.sent);
    let told: Vec<RunId> = plan.as_ref().map(|plan| concerned(plan, entry)).unwrap_or_default();
    let mut plan = evolve(id, plan, entry)?;
    let said = envelopes(&EntityId::Plan(id.clone()), plan.numbered_from() + before, said(&plan, entry, told));
    plan.sent += said.len() as u64;
    for Envelope { seq, to, message, .. } in &said {
        if let (Message::OperateTask { verb: Verb::Cancel | Verb::RollBack, .. }, Some(place)) =
            (message, to.run().and_then(|run| plan.places.get(run)))
        {
            Arc::make_mut(&mut plan.tasks[*place]).told = *seq;
        }
    }
    Ok((plan, said))
}

/// What an entry says. `plan` is the state after it, `told` are the tasks of which it wants something.
fn said(plan: &Plan, entry: &Entry, told: Vec<RunId>) -> Vec<(EntityId, Message)> {
    let Event::Plan(event) = &entry.event else { return Vec::new() };
    let all = |verb: Verb, origin: &Origin| {
        let message = |task: RunId| (EntityId::Run(task), Message::OperateTask { verb, origin: of_all(plan, origin) });
        told.into_iter().map(message).collect()
    };
    match &**event {
        PlanEvent::Created(created) => plan
            .tasks
            .iter()
            .map(|task| (EntityId::from(&task.run), begin(plan, created, &task.tenant)))
            .collect(),
        PlanEvent::TaskAdmitted { task, epoch } => vec![(task.into(), Message::AdmitTask { epoch: *epoch })],
        PlanEvent::TaskRecalled { task, epoch } => vec![(task.into(), Message::RecallTask { epoch: *epoch })],
        PlanEvent::Paused { origin, .. } => all(Verb::Pause, origin),
        PlanEvent::Resumed { origin } => all(Verb::Resume, origin),
        PlanEvent::CancelRequested { origin, undo: false } => all(Verb::Cancel, origin),
        PlanEvent::CancelRequested { origin, undo: true } => all(Verb::RollBack, origin),
        PlanEvent::Started { .. }
        | PlanEvent::TaskChanged { .. }
        | PlanEvent::Completed
        | PlanEvent::Failed { .. }
        | PlanEvent::Cancelled
        | PlanEvent::Degraded { .. }
        | PlanEvent::Restored { .. } => Vec::new(),
    }
}

/// The command of a plan is none of its tasks'.
fn of_all(plan: &Plan, origin: &Origin) -> Origin {
    let by = origin.by.clone().or_else(|| Some(format!("plan {}", plan.id)));
    Origin { by, why: origin.why.clone(), command: None }
}

fn begin(plan: &Plan, created: &PlanCreated, tenant: &TenantId) -> Message {
    let settings = &created.settings;
    let task = TaskOptions {
        plan: plan.id.clone(),
        tenant: tenant.clone(),
        stages: created.stages.clone(),
        lease: settings.lease,
        on_failure: settings.on_failure,
        conflict: settings.conflict,
    };
    let options = RunOptions {
        tenant: Some(tenant.to_string()),
        recovery: Recovery::Manual,
        definition: created.version.clone(),
        task: Some(Box::new(task)),
        ..RunOptions::default()
    };
    let seed = created.seed.derive(tenant.as_str(), "task");
    Message::StartChild(StartChild { workflow: created.workflow.clone(), input: plan.input.clone(), seed, deadline: None, options })
}

/// The tasks of which an event wants something, in order.
pub(super) fn concerned(plan: &Plan, entry: &Entry) -> Vec<RunId> {
    let Event::Plan(event) = &entry.event else { return Vec::new() };
    let of = |places: &BTreeSet<usize>| places.iter().map(|place| plan.tasks[*place].run.clone()).collect();
    let those = |wanted: &dyn Fn(&Task) -> bool| plan.tasks.iter().filter(|task| wanted(task)).map(|task| task.run.clone()).collect();
    match &**event {
        PlanEvent::Paused { cause, .. } if cause.pauses_tasks() => of(&plan.admitted),
        PlanEvent::Resumed { .. } if matches!(plan.phase, Phase::Paused { .. }) => of(&plan.admitted),
        PlanEvent::CancelRequested { undo: false, .. } => those(&|task| {
            !matches!(task.status, TaskStatus::Completed | TaskStatus::Cancelled | TaskStatus::RolledBack | TaskStatus::HandedOver)
        }),
        PlanEvent::CancelRequested { undo: true, .. } => {
            those(&|task| !matches!(task.status, TaskStatus::RolledBack | TaskStatus::RollingBack | TaskStatus::HandedOver))
        }
        _ => Vec::new(),
    }
}

/// Folds one entry into the state.
///
/// # Errors
/// [`IllegalTransition`] if the entry cannot come next.
pub fn evolve(id: &PlanId, plan: Option<Plan>, entry: &Entry) -> Result<Plan, IllegalTransition> {
    let wrong = |why: &str| illegal(&EntityId::Plan(id.clone()), entry, why);
    let Event::Plan(event) = &entry.event else { return Err(wrong("no such event can happen to a plan")) };
    let Some(mut plan) = plan else {
        return match &**event {
            PlanEvent::Created(created) if entry.seq == 1 => Ok(create(id, entry, created)),
            _ => Err(wrong("a journal begins with PLAN_CREATED")),
        };
    };
    if entry.seq != plan.seq + 1 {
        return Err(wrong("an event is missing"));
    }
    change(&mut plan, entry, event).map_err(wrong)?;
    plan.seq = entry.seq;
    Ok(plan)
}

fn create(id: &PlanId, entry: &Entry, created: &PlanCreated) -> Plan {
    let new = |tenant: &TenantId| Task {
        tenant: tenant.clone(),
        run: task_id(id, tenant),
        status: TaskStatus::Pending,
        epoch: 0,
        begun: false,
        heard: 0,
        wants: Wants::Nothing,
        told: 0,
    };
    let tasks: Vec<Task> = created.tenants.iter().map(new).collect();
    Plan {
        id: id.clone(),
        seq: entry.seq,
        sent: 0,
        input: created.input.clone(),
        created: Arc::new(PlanCreated { input: crate::Payload::json("{}"), ..created.clone() }),
        created_at: entry.at,
        started_at: None,
        phase: Phase::New,
        places: Arc::new(tasks.iter().enumerate().map(|(place, task)| (task.run.clone(), place)).collect()),
        counts: (!tasks.is_empty()).then_some((TaskStatus::Pending, tasks.len())).into_iter().collect(),
        silent: (0..tasks.len()).collect(),
        tasks: tasks.into_iter().map(Arc::new).collect(),
        waiting: BTreeSet::new(),
        asked: BTreeSet::new(),
        admitted: BTreeSet::new(),
        forgiven: 0,
        deadline: None,
        commands: BTreeSet::new(),
        degraded: false,
    }
}

fn change(plan: &mut Plan, entry: &Entry, event: &PlanEvent) -> Result<(), &'static str> {
    let concerned = concerned(plan, entry);
    match event {
        PlanEvent::Created(_) => return Err("the plan exists already"),
        PlanEvent::Started { origin } => {
            if plan.phase != Phase::New {
                return Err("the plan was started already");
            }
            remember(plan, Verb::Start, origin);
            plan.phase = Phase::Running;
            plan.started_at = Some(entry.at);
            let allowed = plan.created.settings.deadline;
            plan.deadline = allowed.map(|allowed| Deadline { at: entry.at.saturating_add(allowed), allowed, revision: entry.seq });
        }
        PlanEvent::Paused { cause, origin } => {
            if !matches!(plan.phase, Phase::Running | Phase::Paused { .. } | Phase::Ending { undo: true }) {
                return Err("the plan is not running");
            }
            remember(plan, Verb::Pause, origin);
            plan.phase = Phase::Paused { cause: *cause, origin: origin.clone(), since: entry.at };
            if *cause == super::Cause::Restart {
                plan.asked.clear(); // a person wanted it of a process that is gone
            }
            if *cause == super::Cause::Deadline {
                plan.deadline = None; // a person who resumes it knows
            }
        }
        PlanEvent::Resumed { origin } => {
            match plan.phase {
                Phase::Paused { .. } => {}
                Phase::Ended { .. } => plan.deadline = None, // it was for what has ended
                _ => return Err("the plan is not paused"),
            }
            remember(plan, Verb::Resume, origin);
            plan.phase = Phase::Running;
            plan.forgiven = plan.failed();
        }
        PlanEvent::CancelRequested { origin, undo } => {
            remember(plan, if *undo { Verb::RollBack } else { Verb::Cancel }, origin);
            plan.phase = Phase::Ending { undo: *undo };
            plan.started_at.get_or_insert(entry.at);
            for task in concerned {
                plan.silent.extend(plan.places.get(&task));
            }
        }
        PlanEvent::TaskChanged { task, epoch, status, wants, heard } => {
            let place = plan.task(task).ok_or("it is no task of the plan")?.0;
            let seq = entry.heard.as_ref().map_or(0, |heard| heard.seq);
            if *heard >= plan.tasks[place].told {
                plan.silent.remove(&place);
            }
            hear(plan, place, seq, (*epoch, *status, *wants));
        }
        PlanEvent::TaskAdmitted { task, .. } => {
            let place = plan.task(task).ok_or("it is no task of the plan")?.0;
            if !plan.waiting.remove(&place) {
                return Err("the task does not wait for its turn");
            }
            plan.asked.remove(&place);
            plan.admitted.insert(place);
            Arc::make_mut(&mut plan.tasks[place]).begun = false;
        }
        PlanEvent::TaskRecalled { task, .. } => {
            let place = plan.task(task).ok_or("it is no task of the plan")?.0;
            plan.silent.insert(place); // it says where it stands, or has said it by now: whatever is heard of it is enough
            Arc::make_mut(&mut plan.tasks[place]).told = 0;
        }
        PlanEvent::Degraded { .. } if plan.degraded || matches!(plan.phase, Phase::Ended { .. }) => {
            return Err("it is known already, or of no concern any more");
        }
        PlanEvent::Restored { .. } if !plan.degraded => return Err("nothing was amiss"),
        PlanEvent::Degraded { .. } => plan.degraded = true,
        PlanEvent::Restored { .. } => plan.degraded = false,
        PlanEvent::Completed | PlanEvent::Failed { .. } | PlanEvent::Cancelled => {
            let Some((status, failure)) = event.end() else { return Ok(()) };
            plan.phase = Phase::Ended { status, at: entry.at, failure };
        }
    }
    Ok(())
}

/// A task has said where it stands.
fn hear(plan: &mut Plan, place: usize, heard: u64, (epoch, status, wants): (crate::Epoch, TaskStatus, Wants)) {
    let task = Arc::make_mut(&mut plan.tasks[place]);
    let is_let = task.epoch == epoch && plan.admitted.contains(&place); // and asks once more, before it has heard that
    *plan.counts.entry(task.status).or_default() -= 1;
    *plan.counts.entry(status).or_default() += 1;
    plan.counts.retain(|_, many| *many > 0);
    (task.status, task.epoch) = (status, epoch);
    task.heard = task.heard.max(heard);
    task.begun |= status == TaskStatus::Running;
    match wants {
        Wants::Nothing => {}
        Wants::TurnAsked if is_let => task.wants = wants,
        Wants::Turn | Wants::TurnAsked => {
            task.wants = wants;
            plan.admitted.remove(&place);
            plan.waiting.insert(place);
            if wants == Wants::TurnAsked {
                plan.asked.insert(place);
            }
        }
    }
    if status.is_final() || status == TaskStatus::Interrupted {
        plan.admitted.remove(&place);
        plan.waiting.remove(&place);
        plan.asked.remove(&place);
    }
}

fn remember(plan: &mut Plan, verb: Verb, origin: &Origin) {
    plan.commands.extend(origin.command.clone().map(|id| (verb, id)));
}
