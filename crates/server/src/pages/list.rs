//! `/`: runs, newest first, as far as they are asked for.

use super::layout::{Page, Part};
use super::{mark, words};
use crate::app::App;
use crate::ask::{Narrow, Query, within};
use crate::cursor;
use crate::problem::Problem;
use crate::shapes::{Status, Wait};
use axum::extract::State;
use axum::response::Response;
use form_urlencoded::Serializer;
use maud::{Markup, html};
use serde::Deserialize;
use std::sync::Arc;
use steadfast_kernel::Timestamp;
use steadfast_store::{RunCursor, RunFilter, RunRow};

/// In the order of a run's life.
const STATUSES: [Status; 9] = [
    Status::Ready,
    Status::Running,
    Status::Waiting,
    Status::Paused,
    Status::Compensating,
    Status::Interrupted,
    Status::Failed,
    Status::Completed,
    Status::Cancelled,
];

/// What can change a line of the list. What steps return is not among it: it may be large.
const CHANGES: &str = "RUN_STARTED,RUN_COMPLETED,RUN_FAILED,RUN_CANCELLED,RUN_CANCEL_REQUESTED,RUN_COMPENSATING,RUN_PAUSED,RUN_RESUMED,RUN_INTERRUPTED,\
                       RUN_RETRIED,RUN_CONTINUED,RETRY_SCHEDULED,STEP_FAILED,TIMER_SET,TIMER_FIRED,SIGNAL_AWAITED,SIGNAL_TAKEN,CHILD_STARTED,CHILD_TAKEN,\
                       SLOT_ACQUIRED,PROGRESS_NOTED,TASK_CREATED,TASK_STARTED,TASK_PAUSED,TASK_RESUMED,TASK_INTERRUPTED,TASK_COMPLETED,TASK_FAILED,\
                       TASK_CANCELLED,TASK_RETRY_STARTED,TASK_ROLLING_BACK,TASK_ROLLED_BACK,TASK_ROLLBACK_FAILED,TASK_PROGRESS";

/// Which runs: those to which all of it applies.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Asked {
    status: Option<Status>,
    workflow: Option<String>,
    tenant: Option<String>,
    wait: Option<String>,
    q: Option<String>,
    limit: Option<u64>,
    cursor: Option<String>,
}

pub(super) async fn page(State(app): State<Arc<App>>, Query(asked): Query<Asked>) -> Result<Response, Problem> {
    let limit = within("limit", asked.limit, 1..=200, 50)? as usize;
    let after: Option<RunCursor> = asked.cursor.as_deref().map(|text| cursor::decode("cursor", text)).transpose()?;
    let found = app.engine.list(&asked.filter()?, asked.q.as_deref(), after.as_ref(), limit).await?;
    let (rows, next) = (found.rows, found.next.as_ref().map(cursor::encode));
    let stopped = found.next.filter(|_| rows.len() < limit);
    let names: Vec<String> = app.engine.workflows().into_iter().map(|(name, _)| name.to_string()).collect();
    let startable = app
        .engine
        .workflows()
        .into_iter()
        .find(|(_, registered)| !registered.is_plan)
        .map(|(name, _)| name.to_string());
    let content = html! {
        div.head { h1 { "Runs" } }
        (chips(&asked))
        (form(&asked, &names))
        @if !rows.is_empty() { (table(&rows, words::now())) }
        @if let Some(place) = &stopped { (so_far(rows.is_empty(), place, words::now())) }
        @else if rows.is_empty() { (nothing(&asked, startable.as_deref())) }
        (pages(&asked, next, stopped.is_some()))
    };
    Ok(Page { part: Part::Runs, title: asked.title(), follows: Some(asked.feed()), content }.respond(&app))
}

impl Asked {
    fn filter(&self) -> Result<RunFilter, Problem> {
        let Asked { status, workflow, tenant, wait, .. } = self.clone();
        Narrow { status, workflow, tenant, wait }.filter()
    }

    fn title(&self) -> String {
        self.status.map_or_else(|| "Runs".into(), |status| format!("{} runs", mark::word(status.as_str())))
    }

    fn is_narrow(&self) -> bool {
        self.status.is_some() || self.is_refined()
    }

    /// Whether something beside the status is asked for.
    fn is_refined(&self) -> bool {
        self.workflow.is_some() || self.tenant.is_some() || self.wait.is_some() || self.q.is_some()
    }

    /// The address of this list.
    fn link(&self) -> String {
        let mut query = Serializer::new(String::new());
        let status = self.status.map(|status| status.as_str().to_string());
        let parts = [("status", &status), ("workflow", &self.workflow), ("tenant", &self.tenant), ("wait", &self.wait), ("q", &self.q)];
        for (name, value) in parts {
            value.as_ref().map(|value| query.append_pair(name, value));
        }
        self.limit.map(|limit| query.append_pair("limit", &limit.to_string()));
        self.cursor.as_ref().map(|cursor| query.append_pair("cursor", cursor));
        let query = query.finish();
        if query.is_empty() { "/".into() } else { format!("/?{query}") }
    }

    fn feed(&self) -> String {
        let mut query = Serializer::new(String::new());
        query.append_pair("types", CHANGES);
        self.tenant.as_ref().map(|tenant| query.append_pair("tenant", tenant));
        format!("/v1/events?{}", query.finish())
    }
}

/// One status after the other, at a click.
fn chips(asked: &Asked) -> Markup {
    let chip = |status: Option<Status>| {
        let link = Asked { status, cursor: None, ..asked.clone() }.link();
        let current = (asked.status == status).then_some("true");
        html! {
            a.chip href=(link) aria-current=[current] {
                @match status { Some(status) => { (mark::status(status.as_str())) } None => { "All" } }
            }
        }
    };
    html! {
        nav.chips aria-label="Status" {
            (chip(None))
            @for status in STATUSES { (chip(Some(status))) }
        }
    }
}

fn form(asked: &Asked, names: &[String]) -> Markup {
    let other = asked.workflow.as_ref().filter(|name| !names.contains(name));
    html! {
        form.filters method="get" action="/" role="search" {
            @if let Some(status) = asked.status { input type="hidden" name="status" value=(status.as_str()); }
            label { span { "Text" } input type="search" name="q" value=[&asked.q] placeholder="id, workflow, tenant, failure"; }
            label { span { "Workflow" }
                select name="workflow" {
                    option value="" { "Any" }
                    @for name in names.iter().chain(other) {
                        option value=(name) selected[asked.workflow.as_ref() == Some(name)] { (name) }
                    }
                }
            }
            label { span { "Waits for" }
                select name="wait" {
                    option value="" { "Anything" }
                    @for reason in Wait::REASONS {
                        option value=(reason) selected[asked.wait.as_deref() == Some(reason)] { (mark::word(reason)) }
                    }
                }
            }
            label { span { "Tenant" } input name="tenant" value=[&asked.tenant] placeholder="Any" autocomplete="off" spellcheck="false"; }
            button type="submit" { "Filter" }
            @if asked.is_refined() {
                a.clear href=(Asked { status: asked.status, ..Asked::default() }.link()) { "Clear" }
            }
        }
    }
}

fn table(rows: &[RunRow], now: Timestamp) -> Markup {
    html! {
        table.runs {
            thead { tr { th scope="col" { "Status" } th scope="col" { "Run" } th scope="col" { "Workflow" } th scope="col" { "Last word" }
                th scope="col" { "Tenant" } th scope="col" { "Started" } th.number scope="col" { "Took" } } }
            tbody { @for row in rows { (line(row, now)) } }
        }
    }
}

fn line(row: &RunRow, now: Timestamp) -> Markup {
    let status = row.status.as_str();
    let workflow = Asked { workflow: Some(row.workflow.to_string()), ..Asked::default() }.link();
    html! {
        tr data-key={ "run " (row.run) } data-status=(status) {
            td.state { (mark::status(status)) @if let Some(wait) = row.wait.as_ref().filter(|wait| *wait != status) { span.reason { (mark::word(wait)) } } }
            th.id scope="row" { a href={ "/runs/" (row.run) } { (row.run) } }
            td.workflow { a href=(workflow) { (row.workflow) } }
            td.word { @if let Some(text) = &row.text { span title=(text) { (text) } } }
            td.tenant { @if let Some(tenant) = &row.tenant {
                a href=(Asked { tenant: Some(tenant.clone()), ..Asked::default() }.link()) { (tenant) }
            } }
            td.when { (words::relative(row.started_at, now)) }
            td.number.took { @if let Some(ended) = row.ended_at { (words::lasted(ended.saturating_since(row.started_at))) } }
        }
    }
}

/// What to do where nothing is to be seen.
fn nothing(asked: &Asked, workflow: Option<&str>) -> Markup {
    html! {
        div.nothing {
            @if asked.is_narrow() || asked.cursor.is_some() {
                h2 { "No such runs" }
                p { "Nothing fits these filters now. What begins to fit appears here by itself." }
                p { a.button href="/" { "All runs" } }
            } @else {
                h2 { "No runs yet" }
                @match workflow {
                    None => { p { "No workflow is registered. Put a definition into the definitions folder, and its runs appear here." } }
                    Some(workflow) => {
                        p { "Start one, and it appears here by itself:" }
                        (super::run::command(&format!("steadfast run start {workflow} --input '{{}}'")))
                    }
                }
            }
        }
    }
}

/// How far a search has come that has not looked at everything.
fn so_far(nothing: bool, place: &RunCursor, now: Timestamp) -> Markup {
    html! {
        p.so-far {
            @if nothing { "Nothing found yet" } @else { "These are all" }
            " among the newest runs, back to those that began " (words::relative(place.started_at, now)) ". Older ones were not searched yet."
        }
    }
}

fn pages(asked: &Asked, next: Option<String>, stopped: bool) -> Markup {
    html! {
        nav.pages aria-label="Pages" {
            @if asked.cursor.is_some() {
                a.button href=(Asked { cursor: None, ..asked.clone() }.link()) { "Newest" }
            }
            @if let Some(next) = next {
                a.button rel="next" href=(Asked { cursor: Some(next), ..asked.clone() }.link()) {
                    @if stopped { "Search older runs" } @else { "Older" }
                }
            }
        }
    }
}
