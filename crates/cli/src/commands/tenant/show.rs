//! `steadfast tenant show`: where a tenant's task stands, its checkpoint and its lock, and what to do next.

use super::{next, path};
use crate::commands::run::{Context, told};
use crate::error::Error;
use crate::output::style::{self, paint};
use crate::output::table::{cut, width_of_terminal, wrap};
use crate::output::{self, time};
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::{Checkpoint, Lock, Task, TaskStatus};

/// How much of a checkpoint's data is shown; `--json` has all of a task, and the API all of its checkpoint.
const DATA_MAX: usize = 400;

pub(super) async fn run(context: &Context, tenant: &str) -> Result<(), Error> {
    let answer = context.client.get(&path(tenant, "task"), Vec::new()).await?;
    if context.json {
        output::data(answer.text);
        return Ok(());
    }
    let task: Task = answer.read()?;
    let checkpoint: Option<Checkpoint> = match task.has_checkpoint {
        true => Some(context.client.get(&path(tenant, "checkpoint"), Vec::new()).await?.read()?),
        false => None,
    };
    output::data(page(&task, checkpoint.as_ref(), width_of_terminal(), time::now()));
    Ok(())
}

/// `stage 5 of 10, verify`; nothing before the first one.
pub(super) fn stage(task: &Task) -> Option<String> {
    let current = task.current_stage.as_ref().filter(|_| task.status != TaskStatus::Completed)?;
    Some(format!("stage {} of {}, {}", current.index + 1, task.stages.len(), current.name))
}

fn page(task: &Task, checkpoint: Option<&Checkpoint>, width: Option<usize>, now: Timestamp) -> String {
    let status = paint(style::of_status(task.status.as_str()), task.status.as_str());
    let stage = stage(task).map(|stage| format!("  {stage}")).unwrap_or_default();
    let mut lines = vec![format!("{}  {status}{stage}", paint(style::BOLD, &task.tenant_id))];
    let said = next::said(task, now);
    lines.extend(said.iter().flat_map(|said| wrap(said, width.unwrap_or(usize::MAX))));
    lines.push(String::new());
    let room = width.map_or(DATA_MAX, |width| width.saturating_sub(12).max(20));
    for (name, value) in facts(task, checkpoint, now) {
        lines.push(format!("{}{}", paint(style::FAINT, format_args!("{name:<12}")), cut(&value, room)));
    }
    if let Some(failure) = &task.failure {
        lines.extend([String::new(), paint(style::BAD, told(failure))]);
        lines.extend(failure.causes.iter().map(|cause| format!("  caused by: {}", output::plain(cause))));
    }
    let next = next::commands(task);
    if !next.is_empty() {
        lines.push(String::new());
        let widest = next.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
        let hint = |(command, what): &(String, &str)| format!("  {command:<widest$}  {}", paint(style::FAINT, what));
        lines.extend(next.iter().map(hint));
    }
    lines.join("\n")
}

fn facts(task: &Task, checkpoint: Option<&Checkpoint>, now: Timestamp) -> Vec<(&'static str, String)> {
    let at = |at: Timestamp| time::relative(at, now);
    let done = task.last_completed_stage_index.map_or(0, |last| last + 1);
    let all = [
        ("task", Some(task.task_id.clone())),
        ("plan", Some(format!("{} ({})", task.plan_id, task.definition))),
        ("instance", owner(task)),
        ("stages", Some(task.total_stages.map_or_else(|| format!("{done} done"), |total| format!("{done} of {total} done")))),
        ("began", task.started_at.map(|began| at(began.0))),
        ("ended", task.ended_at.map(|ended| at(ended.0))),
        ("life", task.epoch.filter(|epoch| *epoch > 1).map(|epoch| epoch.to_string())),
        ("last sign", task.heartbeat_at.map(|seen| at(seen.0))),
        ("checkpoint", Some(checkpoint.map_or_else(|| "none".into(), |checkpoint| saved(checkpoint, now)))),
        (
            "  data",
            checkpoint
                .map(|checkpoint| output::plain(checkpoint.context_data.as_str()))
                .filter(|data| data != "{}"),
        ),
        ("lock", Some(held(task.lock.as_ref(), task, now))),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Where it lives, if that is not the instance that was asked.
fn owner(task: &Task) -> Option<String> {
    let owner = task.instance.as_deref();
    Some(match (owner, task.owner_lives?) {
        (Some(owner), true) => format!("{owner}, which lives"),
        (Some(owner), false) => format!("{owner}, which is gone"),
        (None, _) => "none; it was handed over".into(),
    })
}

fn saved(checkpoint: &Checkpoint, now: Timestamp) -> String {
    let index = checkpoint.last_completed_stage_index;
    let name = checkpoint.completed_stages.last().map(|name| format!(", {name}")).unwrap_or_default();
    format!(
        "after stage {}{name} (index {index}), saved {}, version {}",
        index + 1,
        time::relative(checkpoint.saved_at.0, now),
        checkpoint.version
    )
}

fn held(lock: Option<&Lock>, task: &Task, now: Timestamp) -> String {
    match lock {
        None => "nobody has it".into(),
        Some(lock) => {
            let who = if lock.task_id == task.task_id { "its own".into() } else { format!("{} has it", lock.task_id) };
            let waiting = if lock.waiting == 0 { String::new() } else { format!(", {} waiting for it", lock.waiting) };
            let instance = lock.instance.as_ref().map(|instance| format!(", instance {instance}")).unwrap_or_default();
            let since = lock.since.map(|since| format!(", since {}", time::relative(since.0, now))).unwrap_or_default();
            format!("{who}{instance}, fence {}{since}, lease ends {}{waiting}", lock.fence, time::relative(lock.expires_at.0, now))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr;

    #[test]
    fn an_interrupted_task_says_how_far_it_came_and_what_to_do() {
        let task: Task = serde_json::from_value(serde_json::json!({
            "tenantId": "acme", "taskId": "p/acme", "planId": "p", "runId": "p/acme", "definition": "switch", "status": "INTERRUPTED", "pauseRequested": false,
            "currentStage": {"index": 4, "name": "verify"}, "totalStages": 10, "stages": ["a", "b", "c", "copy", "verify", "f", "g", "h", "i", "j"], "lastCompletedStageIndex": 3, "hasCheckpoint": true,
            "lock": {"tenantId": "acme", "holder": "p:p/acme", "planId": "p", "taskId": "p/acme", "fence": 7, "leaseMs": 9_000_000,
                "since": "2026-01-01T11:58:00Z", "expiresAt": "2026-01-01T14:00:00Z", "waiting": 0},
            "wait": null, "waits": [], "failure": null, "epoch": 1, "createdAt": "2026-01-01T11:50:00Z", "startedAt": "2026-01-01T11:58:00Z",
            "endedAt": null, "heartbeatAt": null,
        }))
        .unwrap();
        let checkpoint: Checkpoint = serde_json::from_value(serde_json::json!({
            "taskId": "p/acme", "tenantId": "acme", "lastCompletedStageIndex": 3, "completedStages": ["a", "b", "c", "copy"],
            "contextData": {"drained": 17}, "savedAt": "2026-01-01T11:59:00Z", "version": 21,
        }))
        .unwrap();
        let text = page(&task, Some(&checkpoint), Some(100), time::parse("2026-01-01T12:00:00Z").unwrap());
        let text = anstream::adapter::strip_str(&text).to_string();
        for part in [
            "acme  INTERRUPTED  stage 5 of 10, verify\n",
            "checkpoint  after stage 4, copy (index 3), saved 60 s ago, version 21\n",
            r#"{"drained":17}"#,
            "lock        its own, fence 7, since 2 min ago, lease ends in 2 h\n",
            "steadfast tenant retry acme ",
            "steadfast tenant retry acme --from-start",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(text.lines().all(|line| line.width() <= 110), "{text}");
    }

    fn elsewhere(owner: Option<&str>, lives: bool, status: &str) -> String {
        let task: Task = serde_json::from_value(serde_json::json!({
            "tenantId": "acme", "taskId": "p/acme", "planId": "p", "runId": "p/acme", "definition": "switch", "status": status, "pauseRequested": false,
            "instance": owner, "ownerLives": lives, "currentStage": {"index": 1, "name": "b"}, "totalStages": 2, "stages": ["a", "b"],
            "lastCompletedStageIndex": 0, "hasCheckpoint": true, "lock": null, "wait": null, "waits": [], "failure": null, "epoch": null,
            "createdAt": "2026-01-01T11:50:00Z", "startedAt": "2026-01-01T11:58:00Z", "endedAt": null, "heartbeatAt": null,
        }))
        .unwrap();
        let text = page(&task, None, Some(100), time::parse("2026-01-01T12:00:00Z").unwrap());
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn a_task_elsewhere_says_where_it_is_and_what_to_do() {
        let lives = elsewhere(Some("a"), true, "RUNNING");
        assert!(lives.contains("instance    a, which lives") && lives.contains("ask that instance"), "{lives}");
        assert!(!lives.contains("tenant retry"), "{lives}");
        let gone = elsewhere(Some("a"), false, "INTERRUPTED");
        assert!(gone.contains("instance    a, which is gone") && gone.contains("steadfast tenant retry acme "), "{gone}");
        let nobody = elsewhere(None, false, "INTERRUPTED");
        assert!(nobody.contains("it was handed over") && nobody.contains("steadfast tenant retry acme "), "{nobody}");
    }
}
