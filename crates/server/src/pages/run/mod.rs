//! `/runs/{id}`: one run. Where it stands and why, its steps in time, what it was given and gave, and its journal.

mod act;
mod axis;
mod facts;
mod journal;
mod table;
mod timeline;
mod why;

pub(super) use act::{asked, command, quoted};
pub(super) use facts::failure;
pub(super) use why::waits;

use super::layout::{Page, Part};
use super::{data, mark, words};
use crate::app::App;
use crate::ask::{Query, RunPath};
use crate::problem::Problem;
use crate::shapes::{Data, Step, StepStatus};
use crate::steps;
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use std::sync::Arc;
use steadfast_kernel::{RunId, Status, Timestamp};
use steadfast_runtime::RunView;

/// What part of the journal.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Asked {
    /// Events before that one; the last ones if it is left out.
    before: Option<u64>,
}

/// What there is to say about a run at some time.
struct Shown {
    view: RunView,
    steps: Vec<Step>,
    now: Timestamp,
    /// How many workers that are connected have its code.
    workers: usize,
}

pub(super) async fn page(State(app): State<Arc<App>>, RunPath(run): RunPath, Query(asked): Query<Asked>) -> Result<Response, Problem> {
    let view = app.engine.view(&run).await?;
    let steps = steps::of_run(&app, &view).await?;
    let journal = journal::read(&app, &view, asked.before).await?;
    let workers = app.engine.workers().iter().filter(|worker| worker.workflows.contains(&view.workflow)).count();
    let shown = Shown { view, steps, now: words::now(), workers };
    let content = html! {
        (facts::head(&shown))
        (why::callout(&shown))
        (facts::facts(&shown))
        (timeline::section(&shown))
        (table::section(&shown))
        (values(&shown))
        (act::section(&shown))
        (journal::section(&shown, &journal))
    };
    let title = format!("{} · {}", run, mark::word(shown.view.status.as_str()));
    Ok(Page { part: Part::Runs, title, follows: Some(feed(&shown.view)), content }.respond(&app))
}

/// What says that its page is out of date. What happens to a task is a kind of its own.
fn feed(view: &RunView) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let kind = if view.task.is_some() { "task" } else { "run" };
    format!("/v1/events?{}", query.append_pair("kind", kind).append_pair("id", view.id.as_str()).finish())
}

/// Where a run is in the API: its id is one part of the path there, whatever it ends with.
fn in_api(run: &RunId) -> String {
    format!("/v1/runs/{}", run.as_str().replace('/', "%2F"))
}

/// The status of a step; what is under way and has no attempts only waits.
fn stands(step: &Step) -> &'static str {
    match step.status {
        StepStatus::Running if step.tries.is_empty() => "WAITING",
        status => status.as_str(),
    }
}

/// The step that it has failed at: the one that failed last.
fn failed(steps: &[Step]) -> Option<&Step> {
    steps.iter().filter(|step| step.status == StepStatus::Failed).max_by_key(|step| step.ended_at)
}

/// What it was given, and what it gave.
fn values(shown: &Shown) -> Markup {
    let view = &shown.view;
    let result = view
        .ended
        .as_ref()
        .and_then(|ended| ended.outcome.as_ref().ok())
        .filter(|_| view.status == Status::Completed);
    html! {
        section.card aria-label="Input and result" {
            (data::fold("input", "Input", &Data::from(&view.input), &in_api(&view.id)))
            @if let Some(result) = result { (data::fold("result", "Result", &Data::from(result), &in_api(&view.id))) }
        }
    }
}
