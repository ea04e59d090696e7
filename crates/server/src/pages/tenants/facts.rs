//! What a tenant's task is, why it stands where it stands, its checkpoint, and its lock.

use super::show::Shown;
use crate::pages::plans::{self, breaking};
use crate::pages::{data, deed, mark, run, words};
use crate::shapes::{Checkpoint, Lock, Task, TaskStatus};
use maud::{Markup, html};
use std::time::Duration;
use steadfast_kernel::{Timestamp, Wait};
use steadfast_store::{LockHolder, RunRow};

pub(super) fn head(shown: &Shown) -> Markup {
    let task = &shown.task;
    html! {
        div.head.run {
            p.crumb { a href="/plans" { "Plans" } " / " (plans::plan(&task.plan_id)) }
            div.line { h1 { (task.tenant_id) } (mark::status(task.status.as_str())) }
            @if let Some(note) = &shown.view.note { p.lead { (note) } }
        }
    }
}

/// Where its task stands, in a sentence, and what it waits for.
pub(super) fn callout(shown: &Shown) -> Markup {
    let waits = shown.view.waits.iter().filter(|wait| !matches!(wait, Wait::Lock { .. } | Wait::Plan { .. }));
    html! {
        section class={ "why " (mark::class(shown.task.status.as_str())) } aria-label="Why" {
            p.first { (stands(shown)) }
            @for wait in waits { p { (run::waits(wait, shown.now)) } }
            @if let Some(failure) = &shown.task.failure { (run::failure(failure)) }
        }
    }
}

fn stands(shown: &Shown) -> Markup {
    let task = &shown.task;
    let stage = html! { @if let Some(stage) = &task.current_stage { " at the stage " code { (stage.name) } } };
    let others = task.lock.as_ref().filter(|lock| lock.task_id != task.task_id);
    match (task.status, others) {
        (TaskStatus::Pending, _) => html! { "It waits for its turn in the plan." },
        (TaskStatus::Waiting, Some(lock)) => {
            html! { "It waits for the lock, which " a href={ "/runs/" (lock.task_id) } { (lock.task_id) } " has." }
        }
        (TaskStatus::Waiting, None) => match held_elsewhere(shown) {
            Some(LockHolder { task, instance, .. }) => {
                html! { "It waits for the lock, which " (task) " of instance " code { (instance) } " has." }
            }
            None => html! { "It waits" (stage) "." },
        },
        (TaskStatus::Running, _) if task.pause_requested => html! { "It is under way" (stage) ", and pauses at the end of it." },
        (TaskStatus::Running, _) => html! { "It is under way" (stage) "." },
        (TaskStatus::Paused, _) => html! { "It is paused" (stage) "." },
        (TaskStatus::Interrupted, _) => {
            html! { "It was interrupted" (stage) ": its process died, or its lock was taken away. It does not go on by itself: retry it, cancel it, or roll it back." }
        }
        (TaskStatus::Completed, _) => html! { "All of its stages are done." },
        (TaskStatus::Failed, _) => html! { "It has failed" (stage) "." },
        (TaskStatus::Cancelled, _) => html! { "It was called off" (stage) "." },
        (TaskStatus::RollingBack, _) => html! { "What it did is being undone, newest first." },
        (TaskStatus::RolledBack, _) => html! { "What it did is undone." },
        (TaskStatus::RollbackFailed, _) => html! { "Something that it did could not be undone. A person has to look at it." },
        (TaskStatus::HandedOver, _) => html! { "Another instance goes on with it." },
    }
}

/// Who of another instance has the lock that it waits for.
fn held_elsewhere(shown: &Shown) -> Option<LockHolder> {
    shown.view.waits.iter().find_map(|wait| match wait {
        Wait::Lock { holder: Some(holder), .. } => LockHolder::parse(holder),
        _ => None,
    })
}

pub(super) fn facts(shown: &Shown) -> Markup {
    let (task, now) = (&shown.task, shown.now);
    html! {
        dl.facts {
            (fact("Plan", plans::plan(&task.plan_id)))
            (fact("Definition", html! { a href={ "/plans?definition=" (task.definition) } { (task.definition) } }))
            (fact("Stage", html! { (shown.about.completed) " of " (task.stages.len()) " done" }))
            (fact("Made", words::relative(task.created_at.0, now)))
            @if let Some(at) = task.started_at { (fact("Began", words::relative(at.0, now))) }
            @if let Some(at) = task.ended_at { (fact("Ended", words::relative(at.0, now))) }
            @if let Some(epoch) = task.epoch.filter(|epoch| *epoch > 1) { (fact("Life", html! { (epoch) })) }
            (fact("Run", html! { a href={ "/runs/" (task.run_id) } { "steps, attempts and outputs" } }))
        }
    }
}

pub(super) fn fact(name: &str, value: Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

/// Its stages in order, each with where it stands.
pub(super) fn stages(task: &Task) -> Markup {
    html! {
        section.card aria-labelledby="stages" {
            h2 #stages { "Stages" }
            (mark::symbols())
            ol.stages {
                @for (index, stage) in task.stages.iter().enumerate() {
                    @let (class, word) = plans::stage(task.status, task.current_stage.as_ref().map(|at| at.index), task.last_completed_stage_index, index);
                    li data-key={ "stage " (stage) } {
                        (mark::small(class, word))
                        span.name { (index + 1) ". " (stage) }
                        span.fine { (word) }
                    }
                }
            }
        }
    }
}

/// Where a retry goes on from.
pub(super) fn checkpoint(task: &Task, checkpoint: Option<&Checkpoint>, now: Timestamp) -> Markup {
    let all = format!("/v1/tenants/{}/checkpoint", task.tenant_id.replace('/', "%2F"));
    html! {
        section.card aria-labelledby="checkpoint" {
            h2 #checkpoint { "Checkpoint" }
            @match checkpoint {
                None => { p.fine { "None: a retry begins with the first stage." } }
                Some(checkpoint) => {
                    dl.facts {
                        (fact("Last stage that is done", html! { (checkpoint.last_completed_stage_index) @if let Some(stage) = checkpoint.completed_stages.last() { " (" (stage) ")" } }))
                        (fact("Saved", words::relative(checkpoint.saved_at.0, now)))
                        (fact("Version", html! { (checkpoint.version) }))
                    }
                    ol.names aria-label="Stages that are done" { @for stage in &checkpoint.completed_stages { li { code { (stage) } } } }
                    (data::fold("context", "Context data", &checkpoint.context_data, &all))
                }
            }
        }
    }
}

/// Who has the lock of the tenant.
pub(super) fn lock(task: &Task, now: Timestamp) -> Markup {
    html! {
        section.card aria-labelledby="lock" {
            h2 #lock { "Lock" }
            @match &task.lock {
                None => { p.fine { "Nobody has it." } }
                Some(lock) => { (held(lock, task, now)) }
            }
        }
    }
}

fn held(lock: &Lock, task: &Task, now: Timestamp) -> Markup {
    let mut deed = breaking(lock);
    deed.about.push(("page", "tenant".into()));
    let is_here = task.owner_lives.is_none();
    html! {
        dl.facts {
            (fact("Holder", html! {
                @if is_here { a href={ "/runs/" (lock.task_id) } { (lock.task_id) } } @else { (lock.task_id) }
                @if lock.task_id == task.task_id { ", this task" } @else { " of the plan " (plans::plan(&lock.plan_id)) }
            }))
            @if let Some(instance) = &lock.instance { (fact("Instance", html! { code { (instance) } })) }
            (fact("Fence", html! { (lock.fence) }))
            @if let Some(since) = lock.since { (fact("Since", words::relative(since.0, now))) }
            (fact("Until", html! { (words::relative(lock.expires_at.0, now)) ", unless it is renewed" }))
            @if let Some(lease) = lock.lease_ms { (fact("Lease", html! { (words::lasted(Duration::from_millis(lease))) })) }
            @if lock.waiting > 0 { (fact("Wait for it", html! { (words::count(lock.waiting.into(), "task")) })) }
        }
        @if task.owner_lives != Some(true) { (deed::form("/locks", &deed)) }
    }
}

/// The tasks before it.
pub(super) fn earlier(rows: &[RunRow], now: Timestamp) -> Markup {
    html! {
        @if !rows.is_empty() {
            section.card aria-labelledby="earlier" {
                h2 #earlier { "Earlier tasks" }
                ul.earlier {
                    @for row in rows {
                        @if let Some(task) = &row.task {
                            li data-key={ "earlier " (row.run) } {
                                (mark::status(task.status.as_str()))
                                a href={ "/runs/" (row.run) } { (row.run) }
                                span.fine { "of the plan " (plans::plan(task.plan.as_str())) ", made " (words::relative(row.started_at, now)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
