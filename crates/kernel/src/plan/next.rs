//! What follows from where a plan and its tasks stand: which task begins, when it pauses, when it has ended. Asked again until nothing follows.
//!
//! Tested by `crates/sdk/tests/it/plans/rules.rs`.

use super::{Cause, Phase, Plan, PlanEvent, PlanStatus, StopWhen, Task};
use crate::{Code, Failure, Origin, TaskStatus, Wants};

/// The next thing that follows, if anything does.
pub(super) fn next(plan: &Plan) -> Option<PlanEvent> {
    match &plan.phase {
        Phase::Ended { .. } => reopen(plan),
        Phase::Ending { undo } => admit_asked(plan).or_else(|| admit_again(plan)).or_else(|| {
            let rest = is_at_rest(plan) && plan.waiting.is_empty() && plan.count(TaskStatus::Interrupted) == 0;
            rest.then(|| if *undo && plan.failed() > 0 { failed(plan) } else { PlanEvent::Cancelled })
        }),
        Phase::New => None, // whatever is asked for waits for its start
        Phase::Paused { .. } => recall(plan).or_else(|| admit_asked(plan)).or_else(|| end(plan)),
        Phase::Running => admit_asked(plan)
            .or_else(|| end(plan))
            .or_else(|| stop(plan))
            .or_else(|| admit(plan))
            .or_else(|| stuck(plan)),
    }
}

/// True if no task is under way, as far as they have said.
fn is_at_rest(plan: &Plan) -> bool {
    plan.admitted.is_empty() && plan.silent.is_empty()
}

fn has_room(plan: &Plan) -> bool {
    plan.admitted.len() < plan.created.settings.max_concurrency as usize
}

fn admitted(plan: &Plan, place: usize) -> Option<PlanEvent> {
    let task = plan.tasks.get(place)?;
    Some(PlanEvent::TaskAdmitted { task: task.run.clone(), epoch: task.epoch })
}

/// Whoever was let begin by the plan itself and has not is to wait for its turn again.
fn recall(plan: &Plan) -> Option<PlanEvent> {
    let may_begin = |task: &Task| !task.begun && task.status == TaskStatus::Pending && task.wants == Wants::Turn;
    let place = plan.admitted.difference(&plan.silent).find(|place| may_begin(&plan.tasks[**place]))?;
    let task = &plan.tasks[*place];
    Some(PlanEvent::TaskRecalled { task: task.run.clone(), epoch: task.epoch })
}

/// What a person wants begins whatever the plan is doing, but not more at once than it allows.
fn admit_asked(plan: &Plan) -> Option<PlanEvent> {
    plan.asked.first().filter(|_| has_room(plan)).and_then(|place| admitted(plan, *place))
}

/// While it is being ended only what a person has wanted since is left to begin, also if a restart has come in between.
fn admit_again(plan: &Plan) -> Option<PlanEvent> {
    let is_wanted = |place: &&usize| plan.tasks[**place].epoch > 1;
    plan.waiting
        .iter()
        .find(is_wanted)
        .filter(|_| has_room(plan))
        .and_then(|place| admitted(plan, *place))
}

fn admit(plan: &Plan) -> Option<PlanEvent> {
    let place = plan.waiting.first().filter(|_| has_room(plan))?;
    let is_canary = canaries(plan).is_none_or(|canaries| canaries.contains(place));
    admitted(plan, *place).filter(|_| is_canary)
}

/// The tasks that all others wait for: the first ones that were not called off or handed over, until they have completed.
pub(super) fn canaries(plan: &Plan) -> Option<Vec<usize>> {
    let many = plan.created.settings.canary as usize;
    let counts = |status: TaskStatus| !matches!(status, TaskStatus::Cancelled | TaskStatus::RolledBack | TaskStatus::HandedOver);
    let canaries: Vec<usize> = (0..plan.tasks.len()).filter(|place| counts(plan.tasks[*place].status)).take(many).collect();
    let done = canaries.iter().all(|place| plan.tasks[*place].status == TaskStatus::Completed);
    (!done).then_some(canaries)
}

/// Too many have failed since a person last looked.
fn stop(plan: &Plan) -> Option<PlanEvent> {
    let rule = plan.created.settings.stop_when.filter(|_| !plan.waiting.is_empty())?;
    let failed = plan.failed().saturating_sub(plan.forgiven);
    let (reached, rule) = match rule {
        StopWhen::Failed(many) => (failed >= many as usize, format!("failed: {many}")),
        StopWhen::FailedPercent(part) => (failed * 100 >= part as usize * plan.tasks.len(), format!("failed_percent: {part}")),
    };
    let why = format!("{failed} of {} tasks have failed, and the plan stops at {rule}", plan.tasks.len());
    (reached && failed > 0).then(|| paused(Cause::StopWhen, why))
}

/// Nothing is under way, and what is left cannot begin.
fn stuck(plan: &Plan) -> Option<PlanEvent> {
    if !is_at_rest(plan) {
        return None;
    }
    if plan.waiting.is_empty() {
        let many = plan.count(TaskStatus::Interrupted);
        return (many > 0).then(|| paused(Cause::Interrupted, format!("{many} tasks are interrupted: retry or cancel them")));
    }
    let open = canaries(plan)?.into_iter().map(|place| plan.tasks[place].tenant.to_string()).collect::<Vec<_>>();
    Some(paused(Cause::Canary, format!("the others wait for {}: retry or cancel it, then resume the plan", open.join(", "))))
}

fn paused(cause: Cause, why: String) -> PlanEvent {
    PlanEvent::Paused { cause, origin: Origin { by: Some("the plan".into()), why: Some(why), command: None } }
}

/// All tasks have ended.
fn end(plan: &Plan) -> Option<PlanEvent> {
    if !is_at_rest(plan) || !plan.waiting.is_empty() || plan.count(TaskStatus::Interrupted) > 0 {
        return None;
    }
    Some(match plan.count(TaskStatus::Completed) {
        _ if plan.failed() > 0 => failed(plan),
        0 => PlanEvent::Cancelled,
        _ => PlanEvent::Completed,
    })
}

fn failed(plan: &Plan) -> PlanEvent {
    let message = format!("{} of {} tasks have failed", plan.failed(), plan.tasks.len());
    PlanEvent::Failed { failure: Failure::permanent(message).code(Code::FailedPrecondition) }
}

/// A person wants a task of it to begin again: it goes on until that has ended.
fn reopen(plan: &Plan) -> Option<PlanEvent> {
    let task = plan.asked.first().and_then(|place| plan.tasks.get(*place))?;
    let origin = Origin { by: Some(format!("task {}", task.run)), why: Some("it was asked to begin again".into()), command: None };
    Some(PlanEvent::Resumed { origin })
}

impl PlanEvent {
    /// The status that it ends a plan with.
    pub(super) fn end(&self) -> Option<(PlanStatus, Option<Failure>)> {
        match self {
            PlanEvent::Completed => Some((PlanStatus::Completed, None)),
            PlanEvent::Cancelled => Some((PlanStatus::Cancelled, None)),
            PlanEvent::Failed { failure } => Some((PlanStatus::Failed, Some(failure.clone()))),
            _ => None,
        }
    }
}
