//! What a task waits for, and what a person can do about it.

use crate::commands::run::waiting;
use crate::output::time;
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::{Task, TaskStatus, Wait};

/// Where it stands, in a sentence; nothing where its status says it all.
pub(super) fn said(task: &Task, now: Timestamp) -> Option<String> {
    let ended = task.ended_at.map(|at| format!(" {}", time::relative(at.0, now))).unwrap_or_default();
    if let Some(lives) = task.owner_lives {
        return Some(crate::output::plain(&elsewhere(task, lives)));
    }
    let said = match (task.status, task.waits.first()) {
        (TaskStatus::Interrupted, _) => {
            let stage = task
                .current_stage
                .as_ref()
                .map(|stage| format!(" while {} was under way", stage.name))
                .unwrap_or_default();
            format!("its process ended, or its lock was lost,{stage}; nothing goes on until a person decides")
        }
        (TaskStatus::Completed, _) => format!("it completed{ended}"),
        (TaskStatus::Cancelled, _) => format!("it was cancelled{ended}"),
        (TaskStatus::RolledBack, _) => format!("what it did is undone{ended}"),
        (TaskStatus::Failed, _) => format!("it failed{ended}"),
        (TaskStatus::RollbackFailed, _) => format!("something that it did could not be undone{ended}; a person has to look at it"),
        (TaskStatus::HandedOver, _) => "another instance goes on with it".into(),
        (TaskStatus::RollingBack, None) => "what it did is being undone".into(),
        (TaskStatus::Running, _) if task.pause_requested => "it pauses at the end of this stage".into(),
        (_, Some(Wait::Paused { by, why, since })) => {
            let by = by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
            let why = why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
            format!("it was paused{by} {}{why}", time::relative(since.0, now))
        }
        (_, Some(wait)) => waiting(&task.run_id, wait, now),
        (_, None) => return None,
    };
    Some(crate::output::plain(&said))
}

/// Where a task stands that the instance that was asked does not have.
fn elsewhere(task: &Task, owner_lives: bool) -> String {
    match &task.instance {
        Some(owner) if owner_lives => format!("instance {owner} has it; what is to be done with it, ask that instance for (--server)"),
        Some(owner) if task.status.is_final() => format!("instance {owner} had it, and is gone"),
        Some(owner) => {
            format!("instance {owner} had it, and is gone; nothing goes on until a person decides, here or on any other instance")
        }
        None => "it was handed over, and nobody has it; whoever retries it goes on with it".into(),
    }
}

/// Commands that help, each with what it does.
pub(super) fn commands(task: &Task) -> Vec<(String, &'static str)> {
    let of = |verb: &str| format!("steadfast tenant {verb} {}", task.tenant_id);
    let from_here = if task.has_checkpoint { "go on after the checkpoint" } else { "try again; nothing is done yet" };
    let half_undone = !task.has_checkpoint && task.last_completed_stage_index.is_some();
    let mut next = Vec::new();
    match task.status {
        _ if task.owner_lives == Some(true) => {}
        TaskStatus::Pending if task.owner_lives.is_some() => next.push((of("retry"), "have it begin here")),
        TaskStatus::Running | TaskStatus::Waiting | TaskStatus::RollingBack | TaskStatus::HandedOver if task.owner_lives.is_some() => {
            next.push((of("retry"), from_here));
        }
        TaskStatus::Interrupted if half_undone => {
            next.push((of("rollback"), "go on to undo what it did"));
            next.push((of("retry") + " --from-start", "do all stages again"));
            next.push((of("cancel"), "give it up, and its lock back; nothing more is undone"));
        }
        TaskStatus::Interrupted | TaskStatus::Failed => {
            next.push((of("retry"), from_here));
            if task.has_checkpoint {
                next.push((of("retry") + " --from-start", "do all stages again"));
                next.push((of("rollback"), "undo the stages that are done"));
            }
            next.push((of("cancel"), "give it up, and its lock back; nothing is undone"));
        }
        TaskStatus::RollbackFailed => {
            next.push((of("rollback"), "try to undo the rest again"));
            next.push((of("cancel"), "give it up, and its lock back"));
            next.push((format!("steadfast run show {}", task.run_id), "see what could not be undone"));
        }
        TaskStatus::Paused => {
            next.push((of("resume"), "have it go on"));
            next.push((format!("steadfast plan resume {}", task.plan_id), "have all of the plan go on, if that is paused"));
        }
        TaskStatus::Running | TaskStatus::Waiting | TaskStatus::RollingBack | TaskStatus::Pending => {
            next.push((format!("steadfast plan show {} --watch", task.plan_id), "see how it goes"));
        }
        TaskStatus::Completed | TaskStatus::Cancelled | TaskStatus::RolledBack | TaskStatus::HandedOver => {}
    }
    next
}
