//! A run in lines: one for itself, one per step.

use crate::commands::run::{sentence, told};
use crate::duration;
use crate::output::style::{self, paint};
use crate::output::time;
use std::time::Duration;
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::{Run, Step, StepStatus, Wait};
use unicode_width::UnicodeWidthStr;

/// The steps of a run, as far as they are known.
pub(crate) fn of(run: &Run) -> &[Step] {
    run.steps.as_deref().unwrap_or_default()
}

/// How long a step took, or has taken so far; nothing if it was never begun.
pub(crate) fn took(step: &Step, now: Timestamp) -> Option<Duration> {
    let began = step.started_at.filter(|_| !matches!(step.status, StepStatus::Pending | StepStatus::Skipped))?;
    Some(step.ended_at.map_or(now, |at| at.0).saturating_since(began.0))
}

/// The lines of a run: the run, its steps, and what it waits for.
pub(super) fn lines(run: &Run, now: Timestamp) -> Vec<String> {
    let took = duration::rough(run.ended_at.map_or(now, |at| at.0).saturating_since(run.started_at.0));
    let status = paint(style::of_status(run.status.as_str()), run.status.as_str());
    let mut lines = vec![format!("{} {}  {status}  {took}", run.workflow, paint(style::BOLD, &run.id))];
    let width = of(run).iter().map(|step| step.label().width()).max().unwrap_or(0);
    lines.extend(of(run).iter().map(|step| line(step, width, now)));
    let told_by_a_step = run.waits.first().is_some_and(|wait| matches!(wait, Wait::Backoff { .. }));
    if !run.status.is_final() && !run.waits.is_empty() && !told_by_a_step {
        lines.push(format!("  {}", paint(style::FAINT, sentence(run, now))));
    }
    lines
}

fn line(step: &Step, width: usize, now: Timestamp) -> String {
    let status = step.status.as_str();
    let look = style::of_status(status);
    let name = step.label();
    let pad = " ".repeat(width.saturating_sub(name.width()));
    format!("  {} {name}{pad}  {}  {}", paint(look, style::sign(status)), paint(look, format_args!("{status:<9}")), detail(step, now))
}

/// What is to be said about a step: its attempts, its next try, its failure, how long it took.
pub(super) fn detail(step: &Step, now: Timestamp) -> String {
    let mut parts = Vec::new();
    let backoff = step.status == StepStatus::Backoff;
    if step.attempts > 1 || backoff {
        parts.push(if step.attempts == 1 { "1 attempt".into() } else { format!("{} attempts", step.attempts) });
    }
    if let Some(at) = step.next_attempt_at.filter(|_| backoff) {
        parts.push(format!("again {}", time::relative(at.0, now)));
    }
    if backoff || step.status == StepStatus::Failed {
        parts.extend(step.failure.as_ref().map(told));
    } else {
        parts.extend(took(step, now).map(duration::rough));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::sample::{self, failure};

    #[test]
    fn every_step_has_a_line_with_its_state_its_attempts_and_its_next_try() {
        let run = sample::run(serde_json::json!({
            "startedAt": "2026-01-01T12:00:00Z",
            "waits": [{"reason": "BACKOFF", "step": "charge", "path": "charge#1", "attempt": 3, "of": 5, "dueAt": "2026-01-01T12:00:30Z", "failure": failure("refused", "UNAVAILABLE", 0)}],
            "steps": [
                {"name": "reserve", "path": "reserve#1", "status": "COMPLETED", "attempts": 1, "startedAt": "2026-01-01T12:00:00Z", "endedAt": "2026-01-01T12:00:02Z"},
                {"name": "charge", "path": "charge#1", "status": "BACKOFF", "attempts": 2, "nextAttemptAt": "2026-01-01T12:00:30Z",
                 "failure": failure("refused", "UNAVAILABLE", 0)},
                {"name": "gift", "path": "gift#1", "status": "SKIPPED", "attempts": 0, "startedAt": "2026-01-01T12:00:00Z"},
                {"name": "ship", "path": "ship#1", "status": "PENDING", "attempts": 0},
            ],
        }));
        let lines = lines(&run, time::parse("2026-01-01T12:00:10Z").unwrap());
        let plain: Vec<String> = lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
        assert_eq!(
            plain,
            [
                "w r  WAITING  10 s",
                "  ✓ reserve  COMPLETED  2 s",
                "  ↻ charge   BACKOFF    2 attempts, again in 20 s, refused [UNAVAILABLE]",
                "  – gift     SKIPPED    ",
                "  · ship     PENDING    ",
            ]
        );
    }

    #[test]
    fn what_no_step_tells_stands_below_them() {
        let run = sample::run(serde_json::json!({"waits": [{"reason": "SIGNAL", "name": "paid"}]}));
        let lines = lines(&run, time::parse("2026-01-01T12:00:10Z").unwrap());
        assert!(lines[1].contains("it waits for the signal paid"), "{lines:?}");
    }
}
