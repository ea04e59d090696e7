//! `/tenants/{tenant}` of a task that another instance has, or had: how far it has come, and whether it can be gone on with here.

use super::{act, facts, show};
use crate::app::App;
use crate::pages::layout::{Page, Part};
use crate::pages::{deed, mark, plans, words};
use crate::problem::Problem;
use crate::shapes::{Checkpoint, Task};
use axum::response::Response;
use maud::{Markup, html};
use steadfast_kernel::Timestamp;
use steadfast_runtime::Elsewhere;

pub(super) async fn page(app: &App, there: &Elsewhere) -> Result<Response, Problem> {
    let now = words::now();
    let (task, checkpoint) = (Task::elsewhere(there, now), Checkpoint::elsewhere(there));
    let earlier = show::earlier(app, &there.task.tenant, &there.task.task).await?;
    let content = html! {
        div.head.run {
            p.crumb { a href="/plans" { "Plans" } " / " (plans::plan(&task.plan_id)) }
            div.line { h1 { (task.tenant_id) } (mark::status(task.status.as_str())) }
        }
        section class={ "why " (mark::class(task.status.as_str())) } aria-label="Why" { p.first { (stands(&task)) } }
        (about(&task, now))
        @if !task.stages.is_empty() { (facts::stages(&task)) }
        (deed::section(&format!("/tenants/{}", task.tenant_id), &act::elsewhere(&task)))
        (facts::lock(&task, now))
        (facts::checkpoint(&task, checkpoint.as_ref(), now))
        (facts::earlier(&earlier, now))
    };
    let title = format!("{} · {}", task.tenant_id, mark::word(task.status.as_str()));
    Ok(Page { part: Part::Plans, title, follows: None, content }.respond(app))
}

/// Where it is, and what follows from that.
fn stands(task: &Task) -> Markup {
    let stage = html! { @if let Some(stage) = &task.current_stage { " at the stage " code { (stage.name) } } };
    match (&task.instance, task.owner_lives) {
        (Some(owner), Some(true)) => html! {
            "Instance " code { (owner) } " has this task" (stage) ". It is shown as that instance has shared it; what is to be done with it is done there."
        },
        (Some(owner), _) if task.status.is_final() => html! { "Instance " code { (owner) } " had this task, and is gone." },
        (Some(owner), _) => html! {
            "Instance " code { (owner) } " had this task" (stage) ", and is gone. Nothing goes on by itself: retry it, and this instance goes on after the checkpoint."
        },
        (None, _) => {
            html! { "It was handed over" (stage) ", and nobody has it. Retry it, and this instance goes on after the checkpoint." }
        }
    }
}

fn about(task: &Task, now: Timestamp) -> Markup {
    html! {
        dl.facts {
            (facts::fact("Instance", match (&task.instance, task.owner_lives) {
                (Some(owner), Some(true)) => html! { code { (owner) } ", which lives" },
                (Some(owner), _) => html! { code { (owner) } ", which is gone" },
                (None, _) => html! { "none" },
            }))
            (facts::fact("Plan", plans::plan(&task.plan_id)))
            (facts::fact("Definition", html! { (task.definition) @if task.stages.is_empty() { ": this version of it is not here, so that the task cannot be gone on with here" } }))
            @if let Some(total) = task.total_stages {
                (facts::fact("Stage", html! { (task.last_completed_stage_index.map_or(0, |last| last + 1)) " of " (total) " done" }))
            }
            (facts::fact("Made", words::relative(task.created_at.0, now)))
            @if let Some(at) = task.started_at { (facts::fact("Began", words::relative(at.0, now))) }
        }
    }
}
