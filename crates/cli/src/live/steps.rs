//! A run in lines: one for itself, one per step.

use crate::client::shapes::{Run, Step};
use crate::commands::run::{bare, sentence, told};
use crate::duration;
use crate::output::style::{self, paint};
use crate::output::time;
use steadfast_kernel::Timestamp;
use unicode_width::UnicodeWidthStr;

/// The lines of a run: the run, its steps, and what it waits for.
pub(super) fn lines(run: &Run, now: Timestamp) -> Vec<String> {
    let took = time::took(run.started_at.as_deref(), run.ended_at.as_deref(), now)
        .map(duration::rough)
        .unwrap_or_default();
    let status = paint(style::of_status(&run.status), &run.status);
    let mut lines = vec![format!("{} {}  {status}  {took}", run.workflow, paint(style::BOLD, &run.id))];
    let width = run.steps.iter().map(|step| bare(&step.path).width()).max().unwrap_or(0);
    lines.extend(run.steps.iter().map(|step| line(step, width, now)));
    let told_by_a_step = run.waits.first().is_some_and(|wait| wait.reason == "BACKOFF");
    if !run.is_over() && !run.waits.is_empty() && !told_by_a_step {
        lines.push(format!("  {}", paint(style::FAINT, sentence(run, now))));
    }
    lines
}

fn line(step: &Step, width: usize, now: Timestamp) -> String {
    let look = style::of_status(&step.status);
    let name = bare(&step.path);
    let pad = " ".repeat(width.saturating_sub(name.width()));
    format!(
        "  {} {name}{pad}  {}  {}",
        paint(look, style::sign(&step.status)),
        paint(look, format_args!("{:<9}", step.status)),
        detail(step, now)
    )
}

/// What is to be said about a step: its attempts, its next try, its failure, how long it took.
pub(super) fn detail(step: &Step, now: Timestamp) -> String {
    let mut parts = Vec::new();
    if step.attempts > 1 || step.status == "BACKOFF" {
        parts.push(if step.attempts == 1 { "1 attempt".into() } else { format!("{} attempts", step.attempts) });
    }
    if let Some(at) = step.next_attempt_at.as_deref().filter(|_| step.status == "BACKOFF") {
        parts.push(format!("again {}", time::relative(at, now)));
    }
    if matches!(step.status.as_str(), "BACKOFF" | "FAILED") {
        parts.extend(step.failure.as_ref().map(told));
    } else if !["PENDING", "SKIPPED"].contains(&&*step.status) {
        parts.extend(time::took(step.started_at.as_deref(), step.ended_at.as_deref(), now).map(duration::rough));
    }
    parts.join(", ")
}
