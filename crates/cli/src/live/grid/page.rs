//! The grid in lines: what the plan is doing, a bar, and a line per tenant as far as there is room.

use super::columns::Columns;
use super::words::{note, sentence};
use super::{Rank, done, rank, stage_status};
use crate::duration;
use crate::output::style::{self, paint};
use crate::output::table::{cut, wrap};
use std::collections::BTreeMap;
use std::time::Duration;
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::{Plan, PlanTask, Progress, TaskStatus, Time};
use unicode_width::UnicodeWidthStr;

/// Between two columns.
const GAP: usize = 2;
/// How many characters the bar has.
const BAR: usize = 30;
/// Below this there is no use in saying what a task waits for.
const NOTE_MIN: usize = 24;
/// However low a terminal is, some tenants are shown.
const ROWS_MIN: usize = 3;

/// How much room there is; as much as it takes where it says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    pub(crate) width: Option<usize>,
    pub(crate) height: Option<usize>,
}

/// A plan as it is now.
pub(crate) fn page(plan: &Plan, room: Room, now: Timestamp) -> Vec<String> {
    let whole = with_rows(plan, room.width, None, now);
    let Some(over) = room.height.and_then(|height| whole.len().checked_sub(height)).filter(|over| *over > 0) else { return whole };
    let rows = plan.tenants.len().saturating_sub(over + 1).max(ROWS_MIN); // a line says who is not shown
    with_rows(plan, room.width, Some(rows), now)
}

fn with_rows(plan: &Plan, width: Option<usize>, rows: Option<usize>, now: Timestamp) -> Vec<String> {
    let (shown, hidden) = chosen(plan, rows);
    let mut lines = head(plan, width, now);
    lines.extend(grid(plan, &shown, width, now));
    lines.extend(not_shown(&hidden).map(|text| paint(style::FAINT, text)));
    lines
}

fn head(plan: &Plan, width: Option<usize>, now: Timestamp) -> Vec<String> {
    let status = paint(style::of_status(plan.status.as_str()), plan.status.as_str());
    let took = |from: Time| whole_seconds(plan.ended_at.map_or(now, |at| at.0).saturating_since(from.0));
    let took = plan.started_at.map(|from| format!("  {}", duration::rough(took(from)))).unwrap_or_default();
    let mut lines = vec![format!("{}  {}  {status}{took}", paint(style::BOLD, &plan.id), plan.definition)];
    let counts = counts(plan);
    match width.filter(|width| BAR + "  100 %".len() + counts.width() > *width) {
        Some(width) => lines.extend([bar(plan)].into_iter().chain(wrap(&counts, width))),
        None => lines.push(format!("{}  {counts}", bar(plan))),
    }
    let mut said: Vec<String> = sentence(plan).into_iter().collect();
    if !plan.skipped.is_empty() {
        let who: Vec<&str> = plan.skipped.iter().map(|locked| locked.tenant_id.as_str()).collect();
        said.push(format!("left out, because others have their locks: {}", who.join(", ")));
    }
    lines.extend(said.iter().flat_map(|said| wrap(said, width.unwrap_or(usize::MAX))));
    lines.push(String::new());
    lines
}

/// Stages that are done, those that have gone wrong, and those to come.
fn bar(plan: &Plan) -> String {
    let of_each = plan.stages.len().max(1);
    let all = (plan.tenants.len() * of_each).max(1);
    let done_in_all: usize = plan.tenants.iter().filter(|task| !is_undone(task)).map(done).sum();
    let stuck: usize = plan
        .tenants
        .iter()
        .filter(|task| rank(task.status) == Rank::NeedsAPerson)
        .map(|task| of_each - done(task).min(of_each))
        .sum();
    let length = |part: usize| if part == 0 { 0 } else { (part * BAR / all).max(1) };
    let good = length(done_in_all).min(if stuck > 0 { BAR - 1 } else { BAR });
    let bad = length(stuck).min(BAR - good);
    let rest = BAR - good - bad;
    let part = |style, sign: &str, length: usize| if length == 0 { String::new() } else { paint(style, sign.repeat(length)) };
    part(style::GOOD, "━", good)
        + &part(style::BAD, "━", bad)
        + &part(style::FAINT, "╌", rest)
        + &format!(" {:>3} %", done_in_all * 100 / all)
}

fn is_undone(task: &PlanTask) -> bool {
    matches!(task.status, TaskStatus::RollingBack | TaskStatus::RolledBack | TaskStatus::RollbackFailed)
}

/// How many tasks stand where.
pub(crate) fn counts(plan: &Plan) -> String {
    let Progress { total, completed, .. } = plan.progress;
    let progress = &plan.progress;
    let others = [
        ("failed", progress.failed),
        ("interrupted", progress.interrupted),
        ("rollback failed", progress.rollback_failed),
        ("running", progress.running),
        ("waiting", progress.waiting),
        ("paused", progress.paused),
        ("rolling back", progress.rolling_back),
        ("pending", progress.pending),
        ("cancelled", progress.cancelled),
        ("rolled back", progress.rolled_back),
        ("handed over", progress.handed_over),
    ];
    let others = others.iter().filter(|(_, many)| *many > 0).map(|(what, many)| format!(", {many} {what}"));
    format!("{completed} of {total} completed{}", others.collect::<String>())
}

/// The tasks that are shown, and those that are not: all in their order if there is room, or else those that need a person first.
fn chosen(plan: &Plan, rows: Option<usize>) -> (Vec<&PlanTask>, Vec<&PlanTask>) {
    let mut tasks: Vec<&PlanTask> = plan.tenants.iter().collect();
    let Some(rows) = rows.filter(|rows| *rows < tasks.len()) else { return (tasks, Vec::new()) };
    tasks.sort_by_key(|task| rank(task.status));
    let hidden = tasks.split_off(rows);
    (tasks, hidden)
}

fn not_shown(hidden: &[&PlanTask]) -> Option<String> {
    let mut by_status: BTreeMap<(Rank, &str), usize> = BTreeMap::new();
    for task in hidden {
        *by_status.entry((rank(task.status), task.status.as_str())).or_default() += 1;
    }
    let parts: Vec<String> = by_status
        .iter()
        .map(|((_, status), many)| format!("{many} {}", status.to_lowercase().replace('_', " ")))
        .collect();
    (!hidden.is_empty()).then(|| format!("… and {} more: {} (plan show --all has them)", hidden.len(), parts.join(", ")))
}

/// How wide the columns beside the stages are.
struct Widths {
    tenant: usize,
    status: usize,
    took: usize,
    note: usize,
}

impl Widths {
    fn of(tasks: &[&PlanTask], width: Option<usize>, now: Timestamp) -> Self {
        let widest = |of: &dyn Fn(&PlanTask) -> usize, least: usize| tasks.iter().map(|task| of(task)).max().unwrap_or(0).max(least);
        let note = widest(&|task| note(task).width(), 0);
        Widths {
            tenant: widest(&|task| task.tenant_id.width(), "TENANT".len()).min(width.map_or(usize::MAX, |width| width / 3)),
            status: widest(&|task| task.status.as_str().width(), "STATUS".len()),
            took: widest(&|task| took(task, now).width(), "TOOK".len()),
            note,
        }
    }

    /// What is left for the stages, if something is to be left for notes.
    fn rest(&self, width: usize) -> usize {
        let note = if self.note == 0 { 0 } else { self.note.min(NOTE_MIN) + GAP };
        width.saturating_sub(self.tenant + self.status + self.took + note + 3 * GAP)
    }
}

fn grid(plan: &Plan, tasks: &[&PlanTask], width: Option<usize>, now: Timestamp) -> Vec<String> {
    let widths = Widths::of(tasks, width, now);
    let columns = Columns::fit(&plan.stages, width.map(|width| widths.rest(width)));
    let Widths { tenant, status, took: time, .. } = widths;
    let gap = " ".repeat(GAP);
    let mut lines = Vec::new();
    if columns.numbered {
        let names: Vec<String> = plan.stages.iter().enumerate().map(|(at, name)| format!("{} {name}", at + 1)).collect();
        lines.extend(wrap(&names.join(", "), width.unwrap_or(usize::MAX)).iter().map(|line| paint(style::FAINT, line)));
    }
    let titles: String = columns
        .titles
        .iter()
        .enumerate()
        .map(|(at, title)| format!("{title}{}", columns.pad(at, title.width())))
        .collect();
    lines.push(paint(style::FAINT, format!("{:<tenant$}{gap}{titles}{gap}{:<status$}{gap}TOOK", "TENANT", "STATUS").trim_end()));
    let before_note = tenant + columns.width() + status + time + 4 * GAP;
    let for_note = width.map_or(usize::MAX, |width| width.saturating_sub(before_note));
    for task in tasks {
        let look = style::of_status(task.status.as_str());
        let name = cut(&task.tenant_id, tenant);
        let name = format!("{name}{}", " ".repeat(tenant.saturating_sub(name.width())));
        let name = if rank(task.status) == Rank::NeedsAPerson { paint(style::BOLD, name) } else { name };
        let stages: String = (0..plan.stages.len())
            .map(|stage| {
                let is = stage_status(task, stage);
                paint(style::of_status(is), style::sign(is)) + &columns.pad(stage, 1)
            })
            .collect();
        let note = if for_note < NOTE_MIN / 2 { String::new() } else { cut(&note(task), for_note) };
        let rest = format!("{:<time$}{gap}{note}", took(task, now));
        let state = format_args!("{:<status$}", task.status.as_str());
        let state = if rest.trim().is_empty() { paint(look, task.status.as_str()) } else { paint(look, state) };
        lines.push(format!("{name}{gap}{stages}{gap}{state}{gap}{rest}").trim_end().into());
    }
    lines
}

/// How long a task took, or has taken so far; nothing before it began.
fn took(task: &PlanTask, now: Timestamp) -> String {
    let from = task.started_at.filter(|_| task.status != TaskStatus::Pending);
    let until = match task.status {
        TaskStatus::Interrupted => return String::new(), // nobody knows until when
        _ => task.ended_at.map_or(now, |at| at.0),
    };
    from.map(|from| duration::rough(whole_seconds(until.saturating_since(from.0)))).unwrap_or_default()
}

/// Numbers that change with every redraw distract.
fn whole_seconds(took: Duration) -> Duration {
    Duration::from_secs(took.as_secs())
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::output::time;

    const STAGES: [&str; 4] = ["drain", "copy", "verify", "switch-over"];

    fn plain(plan: &Plan, width: Option<usize>, height: Option<usize>) -> Vec<String> {
        let now = time::parse("2026-01-01T12:00:10Z").unwrap();
        let lines = page(plan, Room { width, height }, now);
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn a_line_per_tenant_with_a_sign_per_stage() {
        let tenants = [("acme", "COMPLETED", 4), ("blue", "RUNNING", 1), ("cato", "FAILED", 2), ("dodo", "PENDING", 0)];
        assert_eq!(
            plain(&sample::plan(&STAGES, &tenants), None, None),
            [
                "p  switch  RUNNING  10 s",
                "━━━━━━━━━━━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌  43 %  1 of 4 completed, 1 failed, 1 running, 1 pending",
                "",
                "TENANT  drain  copy  verify  switch-over  STATUS     TOOK",
                "acme    ✓      ✓     ✓       ✓            COMPLETED  10 s",
                "blue    ✓      ▸     ·       ·            RUNNING    10 s",
                "cato    ✓      ✓     ✗       ·            FAILED     10 s  exit code 1 [EXIT]",
                "dodo    ·      ·     ·       ·            PENDING",
            ]
        );
    }

    #[test]
    fn who_needs_a_person_is_shown_first_and_nobody_is_forgotten() {
        let mut tenants: Vec<(String, &str, usize)> = (0..50).map(|at| (format!("t{at}"), "COMPLETED", 4)).collect();
        tenants.push(("busy".into(), "RUNNING", 1));
        tenants.push(("lost".into(), "INTERRUPTED", 1));
        let tenants: Vec<(&str, &str, usize)> = tenants.iter().map(|(name, status, done)| (name.as_str(), *status, *done)).collect();
        let lines = plain(&sample::plan(&STAGES, &tenants), Some(100), Some(12));
        assert_eq!(lines.len(), 12, "{lines:#?}");
        assert!(lines[4].starts_with("lost"), "{lines:#?}");
        assert!(lines[5].starts_with("busy"), "{lines:#?}");
        assert_eq!(lines[11], "… and 45 more: 45 completed (plan show --all has them)");
    }

    #[test]
    fn it_fits_its_width() {
        let stages: Vec<String> = (1..=12).map(|at| format!("a-long-stage-{at}")).collect();
        let stages: Vec<&str> = stages.iter().map(String::as_str).collect();
        let tenants = [("a-tenant-with-a-name", "INTERRUPTED", 4), ("blue", "FAILED", 1)];
        for width in [60, 80, 120, 200] {
            let lines = plain(&sample::plan(&stages, &tenants), Some(width), None);
            let grid = &lines[2..];
            assert!(grid.iter().all(|line| line.width() <= width), "{width}: {lines:#?}");
            assert!(grid.iter().any(|line| line.contains("INTERRUPTED")), "{lines:#?}");
        }
        let numbered = plain(&sample::plan(&stages, &tenants), Some(100), None);
        assert!(numbered.iter().any(|line| line.starts_with("1 a-long-stage-1, 2 a-long-stage-2,")), "{numbered:#?}");
    }
}
