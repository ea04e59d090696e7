//! What a plan and its tasks wait for, in words.

use crate::output;
use steadfast_server::shapes::{Plan, PlanStatus, PlanTask, TaskStatus};

/// Why a plan does not move, or how it ended, and what helps; nothing while it is under way.
pub(crate) fn sentence(plan: &Plan) -> Option<String> {
    let id = &plan.id;
    let why = || plan.why.clone().map(|why| output::plain(&why));
    if let (Some(lives), Some(owner)) = (plan.owner_lives, &plan.instance) {
        return Some(elsewhere(plan, owner, lives));
    }
    let said = match (plan.status, plan.cause.as_deref()) {
        (_, Some("CANCEL")) => "it is being called off".into(),
        (_, Some("ROLLBACK")) => "what its tasks did is being undone".into(),
        (PlanStatus::Created, _) => "its tasks are being made".into(),
        (PlanStatus::Ready, _) => format!("it waits to be started: steadfast plan start {id}"),
        (PlanStatus::Paused, Some("CANARY" | "INTERRUPTED")) => format!("paused: {}", why().unwrap_or_default()),
        (PlanStatus::Paused, Some("RESTART")) => {
            let rest = match plan.progress.interrupted {
                0 => "",
                _ => "; who is interrupted goes on with: steadfast tenant retry TENANT",
            };
            format!("paused, because the server was started again; go on with: steadfast plan resume {id}{rest}")
        }
        (PlanStatus::Paused, _) => {
            let by = plan.by.as_ref().map(|by| format!(" by {}", output::plain(by))).unwrap_or_default();
            let why = why().map(|why| format!(": {why}")).unwrap_or_default();
            format!("paused{by}{why}; go on with: steadfast plan resume {id}")
        }
        (PlanStatus::Failed, _) => format!("failed: {}", why().unwrap_or_default()),
        (PlanStatus::Running | PlanStatus::Completed | PlanStatus::Cancelled, _) => return None,
    };
    Some(said)
}

/// Where a plan stands that the instance that was asked does not have.
fn elsewhere(plan: &Plan, owner: &str, lives: bool) -> String {
    match lives {
        true => format!("instance {owner} has it; what is to be done with the plan, ask that instance for (--server)"),
        false if plan.status.is_final() => format!("instance {owner} had it, and is gone"),
        false => format!(
            "instance {owner} had it, and is gone: no other task begins; go on with a tenant here by: steadfast tenant retry TENANT"
        ),
    }
}

/// The stage that a task is at, or was at when it stopped: `verify (3 of 10)`.
pub(super) fn place(task: &PlanTask, stages: usize) -> Option<String> {
    let current = task.current_stage.as_ref().filter(|_| task.status != TaskStatus::Completed)?;
    Some(format!("{} ({} of {stages})", current.name, current.index + 1))
}

/// What a task waits for, why it failed, or what a person may do about it.
pub(super) fn note(task: &PlanTask) -> String {
    let failure = task.failure.as_ref().map(|failure| output::plain(failure)).unwrap_or_default();
    match (task.status, task.wait.as_deref()) {
        (TaskStatus::Interrupted, _) => "retry it, or cancel it".into(),
        (TaskStatus::Failed | TaskStatus::RollbackFailed, _) => failure,
        (TaskStatus::Running, _) if task.pause_requested => "pauses at the end of this stage".into(),
        (TaskStatus::Running | TaskStatus::Completed | TaskStatus::Cancelled | TaskStatus::RolledBack, _) => String::new(),
        (_, Some("BACKOFF")) => format!("is tried again: {failure}"),
        (TaskStatus::Pending | TaskStatus::Paused, Some("PLAN" | "PAUSED") | None) => String::new(),
        (_, Some("LOCK")) => "waits for its lock".into(),
        (_, Some("APPROVAL")) => "waits for an approval".into(),
        (_, Some("SIGNAL")) => "waits for a signal".into(),
        (_, Some("TIMER")) => "sleeps".into(),
        (_, Some("CHILD")) => "waits for a run that it has started".into(),
        (_, Some("NO_WORKER")) => "nobody here has its code".into(),
        (_, Some("MISMATCH")) => "its definition does not fit its journal".into(),
        (_, Some("IN_DOUBT")) => "nobody knows whether an attempt happened".into(),
        (_, Some(other)) => other.to_lowercase().replace('_', " "),
        (_, None) => String::new(),
    }
}
