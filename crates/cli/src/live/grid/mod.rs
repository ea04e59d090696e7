//! A plan as a grid: tenants down, stages across.

mod columns;
mod news;
mod page;
mod words;

pub(crate) use page::{Room, counts, page};
pub(crate) use words::sentence;

use super::screen::{self, Screen};
use std::io::IsTerminal;
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::{Plan, PlanTask, TaskStatus};

/// What is shown of a plan while it goes on: on a terminal a grid that is redrawn, elsewhere a line per change.
pub(crate) enum PlanView {
    Screen(Screen),
    Plain(news::News),
}

impl PlanView {
    /// The view that fits who looks.
    pub(crate) fn new() -> Self {
        if std::io::stderr().is_terminal() { PlanView::Screen(Screen::default()) } else { PlanView::Plain(news::News::default()) }
    }

    /// Shows a plan as it is now.
    pub(crate) fn show(&mut self, plan: &Plan, now: Timestamp) {
        match self {
            PlanView::Screen(screen) => {
                let (width, height) = screen::size();
                screen.draw(&page(plan, Room { width: Some(width), height: Some(height) }, now));
            }
            PlanView::Plain(news) => news.of(plan).iter().for_each(crate::output::say),
        }
    }

    /// Whether time alone changes what is shown.
    pub(crate) fn ticks(&self) -> bool {
        matches!(self, PlanView::Screen(_))
    }

    /// Something that is said beside it.
    pub(crate) fn say(&mut self, text: &str) {
        if let PlanView::Screen(screen) = self {
            screen.leave();
        }
        crate::output::say(text);
    }
}

/// How urgent it is that somebody sees a task; the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    NeedsAPerson,
    UnderWay,
    ToCome,
    Over,
}

fn rank(status: TaskStatus) -> Rank {
    use TaskStatus as S;
    match status {
        S::Failed | S::Interrupted | S::RollbackFailed => Rank::NeedsAPerson,
        S::Running | S::Waiting | S::Paused | S::RollingBack => Rank::UnderWay,
        S::Pending => Rank::ToCome,
        S::Completed | S::Cancelled | S::RolledBack | S::HandedOver => Rank::Over,
    }
}

/// How many stages of a task are done.
fn done(task: &PlanTask) -> usize {
    task.last_completed_stage_index.map_or(0, |last| last as usize + 1)
}

/// Where a stage of a task stands, in the words that steps have.
fn stage_status(task: &PlanTask, stage: usize) -> &'static str {
    use TaskStatus as S;
    let is_done = stage < done(task);
    let is_current = stage == task.current_stage.as_ref().map_or_else(|| done(task), |current| current.index as usize);
    match task.status {
        S::RollingBack if is_done => "UNDOING",
        S::RolledBack if is_done => "UNDONE",
        S::RollbackFailed if is_done => "IN_DOUBT", // which of them are undone is in the journal
        _ if is_done => "COMPLETED",
        S::RollingBack | S::RolledBack | S::RollbackFailed => "PENDING",
        _ if !is_current => "PENDING",
        S::Running => "RUNNING",
        S::Waiting if task.wait.as_deref() == Some("BACKOFF") => "BACKOFF",
        S::Waiting => "WAITING",
        S::Failed => "FAILED",
        S::Paused => "PAUSED",
        S::Interrupted => "INTERRUPTED",
        S::Cancelled => "SKIPPED",
        S::Pending | S::Completed | S::HandedOver => "PENDING",
    }
}

#[cfg(test)]
pub(crate) mod sample {
    use steadfast_server::shapes::Plan;

    /// A plan of these tenants, each a status and how many of its stages are done; those under way are at the next one.
    pub(crate) fn plan(stages: &[&str], tenants: &[(&str, &str, usize)]) -> Plan {
        let task = |(tenant, status, done): &(&str, &str, usize)| {
            let at = (*done).min(stages.len() - 1);
            serde_json::json!({
                "tenantId": tenant, "taskId": format!("p/{tenant}"), "status": status, "hasCheckpoint": *done > 0, "pauseRequested": false,
                "currentStage": (*status != "PENDING").then(|| serde_json::json!({"index": at, "name": stages[at]})),
                "lastCompletedStageIndex": done.checked_sub(1), "wait": null, "startedAt": "2026-01-01T12:00:00Z",
                "endedAt": null, "failure": (*status == "FAILED").then_some("exit code 1 [EXIT]"),
            })
        };
        let many = |status: &str| tenants.iter().filter(|tenant| tenant.1 == status).count();
        let progress = serde_json::json!({
            "total": tenants.len(), "completed": many("COMPLETED"), "failed": many("FAILED"), "pending": many("PENDING"), "running": many("RUNNING"),
            "waiting": many("WAITING"), "paused": many("PAUSED"), "interrupted": many("INTERRUPTED"), "cancelled": many("CANCELLED"),
            "rollingBack": many("ROLLING_BACK"), "rolledBack": many("ROLLED_BACK"), "rollbackFailed": many("ROLLBACK_FAILED"), "handedOver": 0,
        });
        let plan = serde_json::json!({
            "id": "p", "definition": "switch", "definitionHash": null, "status": "RUNNING", "taskIds": [], "stages": stages,
            "tenants": tenants.iter().map(task).collect::<Vec<_>>(), "maxConcurrency": 5, "canary": 0, "stopWhen": null, "conflict": "refuse",
            "onFailure": "keep", "leaseMs": 9_000_000, "deadlineMs": null, "skipped": [], "vars": {}, "progress": progress,
            "createdAt": "2026-01-01T12:00:00Z", "startedAt": "2026-01-01T12:00:00Z", "endedAt": null,
        });
        serde_json::from_value(plan).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_of_a_task_has_its_state() {
        for (status, done, expected) in [
            ("PENDING", 0, ["PENDING", "PENDING", "PENDING"]),
            ("RUNNING", 1, ["COMPLETED", "RUNNING", "PENDING"]),
            ("WAITING", 1, ["COMPLETED", "WAITING", "PENDING"]),
            ("FAILED", 2, ["COMPLETED", "COMPLETED", "FAILED"]),
            ("PAUSED", 1, ["COMPLETED", "PAUSED", "PENDING"]),
            ("INTERRUPTED", 0, ["INTERRUPTED", "PENDING", "PENDING"]),
            ("CANCELLED", 1, ["COMPLETED", "SKIPPED", "PENDING"]),
            ("COMPLETED", 3, ["COMPLETED", "COMPLETED", "COMPLETED"]),
            ("ROLLING_BACK", 2, ["UNDOING", "UNDOING", "PENDING"]),
            ("ROLLED_BACK", 2, ["UNDONE", "UNDONE", "PENDING"]),
            ("ROLLBACK_FAILED", 1, ["IN_DOUBT", "PENDING", "PENDING"]),
        ] {
            let plan = sample::plan(&["a", "b", "c"], &[("acme", status, done)]);
            let is: Vec<&str> = (0..3).map(|stage| stage_status(&plan.tenants[0], stage)).collect();
            assert_eq!(is, expected, "{status}");
        }
    }
}
