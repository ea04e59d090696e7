//! Tenants down, stages across: a colour, a shape and a word for every stage.

use super::show::{Asked, ROWS_MAX};
use super::{bar, tenant};
use crate::pages::{mark, words};
use crate::shapes::{Plan, PlanTask, TaskStatus};
use maud::{Markup, html};

/// What a task can wait for that does not come without a person.
const PERSON: [&str; 4] = ["APPROVAL", "IN_DOUBT", "NO_WORKER", "MISMATCH"];

/// Whether nothing comes of it unless a person does something.
pub(super) fn needs_a_person(task: &PlanTask) -> bool {
    let is_stuck = matches!(task.status, TaskStatus::Failed | TaskStatus::Interrupted | TaskStatus::RollbackFailed);
    is_stuck || task.wait.as_deref().is_some_and(|wait| PERSON.contains(&wait))
}

/// What of a plan's tasks is on a page.
pub(super) struct Grid<'a> {
    pub(super) plan: &'a Plan,
    pub(super) asked: &'a Asked,
    /// How many tenants are on a page.
    pub(super) rows: usize,
    /// It was not started.
    pub(super) is_new: bool,
}

pub(super) fn section(shown: &Grid<'_>) -> Markup {
    let Grid { plan, asked, .. } = shown;
    let wanted = |task: &&PlanTask| match asked.show.as_deref() {
        None => true,
        Some("person") => needs_a_person(task),
        Some(status) => task.status.as_str() == status,
    };
    let tasks: Vec<&PlanTask> = plan.tenants.iter().filter(wanted).collect();
    let last = tasks.len().saturating_sub(1) / shown.rows * shown.rows;
    let from = asked.from.map_or(0, |from| usize::try_from(from).unwrap_or(usize::MAX)).min(last);
    let page = &tasks[from..tasks.len().min(from + shown.rows)];
    html! {
        section.card aria-labelledby="tenants" {
            div.line {
                h2 #tenants { "Tenants" }
                span.fine {
                    @if page.len() < tasks.len() { (from + 1) " to " (from + page.len()) " of " (tasks.len()) } @else { (tasks.len()) }
                }
            }
            (chips(shown))
            @if page.is_empty() { p.fine { "None of them now." } } @else { (table(shown, page)) }
            (pages(shown, from, tasks.len()))
        }
    }
}

/// Those that need a person, and one status after the other, with how many there are.
fn chips(shown: &Grid<'_>) -> Markup {
    let Grid { plan, asked, .. } = shown;
    let stuck = plan.tenants.iter().filter(|task| needs_a_person(task)).count() as u64;
    let chip = |show: Option<&str>, name: Markup, tasks: u64| {
        let current = (asked.show.as_deref() == show).then_some("true");
        let link = Asked { show: show.map(Into::into), limit: asked.limit, ..Asked::default() }.link(&plan.id);
        html! { a.chip href=(link) aria-current=[current] data-key={ "chip " (show.unwrap_or("all")) } { (name) span.many { (tasks) } } }
    };
    let mut counts = bar::counts(&plan.progress);
    if let Some(show) = asked
        .show
        .as_deref()
        .filter(|show| *show != "person" && !counts.iter().any(|(status, _)| status == show))
    {
        counts.extend(steadfast_kernel::TaskStatus::parse(show).map(|status| (status.as_str(), 0)));
    }
    html! {
        nav.chips aria-label="Which tenants" {
            (chip(None, html! { "All" }, plan.progress.total))
            (chip(Some("person"), html! { "Need a person" }, stuck))
            @for (status, tasks) in counts { (chip(Some(status), mark::status(status), tasks)) }
        }
    }
}

fn table(shown: &Grid<'_>, tasks: &[&PlanTask]) -> Markup {
    html! {
        (mark::symbols())
        div.wide tabindex="0" role="group" aria-label="Tenants and their stages" {
            table.matrix {
                thead { tr {
                    th.tenant scope="col" { "Tenant" }
                    th scope="col" { "Status" }
                    @for stage in &shown.plan.stages { th.stage scope="col" title=(stage) { span { (stage) } } }
                    th.note scope="col" { "Why, or what for" }
                } }
                tbody { @for task in tasks { (line(shown, task)) } }
            }
        }
    }
}

fn line(shown: &Grid<'_>, task: &PlanTask) -> Markup {
    html! {
        tr data-key={ "task " (task.tenant_id) } data-status=(task.status.as_str()) {
            th.tenant scope="row" { (tenant(&task.tenant_id)) }
            td.state { (mark::status(task.status.as_str())) }
            @for (index, stage) in shown.plan.stages.iter().enumerate() {
                @let (class, word) = stage_of(task, index);
                td.cell title={ (stage) ": " (word) } { (mark::small(class, word)) }
            }
            td.note { (note(shown, task)) }
        }
    }
}

fn stage_of(task: &PlanTask, index: usize) -> (&'static str, &'static str) {
    cell(task.status, task.current_stage.as_ref().map(|stage| stage.index), task.last_completed_stage_index, index)
}

/// Where a stage of a task stands that is at that stage, and whose last stage that is done is that one: its class, and a word.
pub(in crate::pages) fn cell(status: TaskStatus, at: Option<u32>, done: Option<u32>, index: usize) -> (&'static str, &'static str) {
    use TaskStatus as S;
    let is = |place: Option<u32>, test: fn(&usize, &usize) -> bool| {
        place.and_then(|place| usize::try_from(place).ok()).is_some_and(|place| test(&index, &place))
    };
    let is_done = is(done, usize::le);
    let is_here = is(at, usize::eq);
    match (status, is_done, is_here) {
        (S::RollingBack, true, _) => ("undo", "being undone"),
        (S::RolledBack, true, _) => ("undo", "undone"),
        (S::RollbackFailed, true, _) => ("doubt", "done, and perhaps not undone"),
        (_, true, _) => ("good", "done"),
        (_, _, false) | (S::Completed, _, _) => ("none", "not begun"),
        (S::Pending, _, true) => ("wait", "waits for its turn"),
        (S::Running, _, true) => ("busy", "under way"),
        (S::Waiting, _, true) => ("wait", "waits"),
        (S::Paused, _, true) => ("held", "paused"),
        (S::Interrupted, _, true) => ("doubt", "interrupted"),
        (S::Failed, _, true) => ("bad", "failed"),
        (S::RollingBack | S::RolledBack | S::RollbackFailed | S::Cancelled | S::HandedOver, _, true) => ("quiet", "not finished"),
    }
}

/// Why it failed, or what it waits for.
fn note(shown: &Grid<'_>, task: &PlanTask) -> Markup {
    if let Some(failure) = &task.failure {
        let again = if task.wait.as_deref() == Some("BACKOFF") { "tried again later: " } else { "" };
        return html! { span title=(failure) { (again) span.message { (failure) } } };
    }
    let owner = task.instance.as_deref().filter(|owner| shown.plan.instance.as_deref() != Some(*owner));
    if let Some(owner) = owner {
        return html! { span { "instance " (owner) " has it" } };
    }
    let what = match (task.status, task.wait.as_deref()) {
        (TaskStatus::Interrupted, _) => "a person decides: retry it, or cancel it",
        (TaskStatus::Running, _) if task.pause_requested => "pauses at the end of its stage",
        (TaskStatus::Pending, _) if shown.is_new => "the start of the plan",
        (TaskStatus::Pending, _) if shown.plan.owner_lives == Some(false) => "the instance of its plan, which is gone; or a retry here",
        (TaskStatus::Pending, _) => "its turn",
        (_, Some("LOCK")) => "the lock of the tenant",
        (_, Some("PLAN")) => "its turn",
        (_, Some("APPROVAL")) => "an approval",
        (_, Some("SIGNAL")) => "a signal",
        (_, Some("TIMER")) => "a time",
        (_, Some("SLOT")) => "a slot",
        (_, Some("CHILD")) => "another run",
        (_, Some("IN_DOUBT")) => "somebody to say whether a stage happened",
        (_, Some("NO_WORKER")) => "its code, which is not here",
        (_, Some("MISMATCH")) => "its code, which has changed",
        (_, Some("PAUSED")) => "somebody to resume it",
        _ => return html! {},
    };
    html! { span title=(what) { (what) } }
}

fn pages(shown: &Grid<'_>, from: usize, all: usize) -> Markup {
    let at = |from: usize| Asked { from: Some(from as u64), before: None, ..shown.asked.clone() }.link(&shown.plan.id);
    let everybody = Asked { from: None, limit: Some(ROWS_MAX), ..shown.asked.clone() }.link(&shown.plan.id);
    html! {
        nav.pages aria-label="Pages of tenants" {
            @if from > 0 { a.button rel="prev" href={ (at(from.saturating_sub(shown.rows))) "#tenants" } { "Previous" } }
            @if from + shown.rows < all { a.button rel="next" href={ (at(from + shown.rows)) "#tenants" } { "Next" } }
            @if all > shown.rows && all as u64 <= ROWS_MAX { a.button href={ (everybody) "#tenants" } { "Show all " (words::count(all as u64, "tenant")) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(status: TaskStatus) -> PlanTask {
        PlanTask {
            tenant_id: "acme".into(),
            task_id: "p/acme".into(),
            status,
            instance: None,
            current_stage: None,
            last_completed_stage_index: None,
            has_checkpoint: false,
            pause_requested: false,
            wait: None,
            started_at: None,
            ended_at: None,
            failure: None,
        }
    }

    fn cells(status: TaskStatus, at: Option<u32>, done: Option<u32>) -> Vec<&'static str> {
        (0..4).map(|index| cell(status, at, done, index).0).collect()
    }

    #[test]
    fn every_stage_says_where_it_stands() {
        assert_eq!(cells(TaskStatus::Pending, None, None), ["none"; 4]);
        assert_eq!(cells(TaskStatus::Running, Some(2), Some(1)), ["good", "good", "busy", "none"]);
        assert_eq!(cells(TaskStatus::Failed, Some(0), None), ["bad", "none", "none", "none"]);
        assert_eq!(cells(TaskStatus::Completed, Some(3), Some(3)), ["good"; 4]);
        assert_eq!(cells(TaskStatus::Interrupted, Some(3), Some(2)), ["good", "good", "good", "doubt"]);
        assert_eq!(cells(TaskStatus::RolledBack, Some(2), Some(1)), ["undo", "undo", "quiet", "none"]);
        assert_eq!(cells(TaskStatus::RollbackFailed, Some(1), Some(0)), ["doubt", "quiet", "none", "none"]);
    }

    #[test]
    fn what_does_not_move_by_itself_needs_a_person() {
        let waits = |wait: &str| PlanTask { wait: Some(wait.into()), ..task(TaskStatus::Waiting) };
        assert!(needs_a_person(&waits("APPROVAL")) && needs_a_person(&task(TaskStatus::Interrupted)));
        assert!(!needs_a_person(&waits("LOCK")) && !needs_a_person(&task(TaskStatus::Cancelled)));
    }
}
