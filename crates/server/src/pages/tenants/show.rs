//! The page of a tenant: where its latest task stands and why, what can be done, and what was.

use super::{act, elsewhere, facts, history};
use crate::app::App;
use crate::ask::{Command, Form, Nothing, Query, TenantPath};
use crate::pages::layout::{Page, Part};
use crate::pages::{deed, mark, words};
use crate::problem::Problem;
use crate::shapes::{Checkpoint, Task};
use axum::extract::State;
use axum::response::Response;
use maud::html;
use serde::Deserialize;
use std::sync::Arc;
use steadfast_kernel::{Origin, RetryFrom, RetryRun, RunId, TenantId, Timestamp, code};
use steadfast_runtime::{Found, RunView, TaskView, Wanted};
use steadfast_store::{RunFilter, RunRow};

/// How many runs of the tenant are looked through for its earlier tasks.
const EARLIER_MAX: usize = 100;

/// What part of the journal.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::pages) struct Asked {
    /// Events before that one; the last ones if it is left out.
    before: Option<u64>,
}

/// What there is to say about a tenant at some time.
pub(super) struct Shown {
    pub(super) view: RunView,
    pub(super) about: TaskView,
    pub(super) task: Task,
    pub(super) checkpoint: Option<Checkpoint>,
    /// The tasks before it, newest first.
    pub(super) earlier: Vec<RunRow>,
    /// Tenants are shared with other instances.
    pub(super) shares: bool,
    pub(super) now: Timestamp,
}

pub(in crate::pages) async fn page(
    State(app): State<Arc<App>>,
    TenantPath(tenant): TenantPath,
    Query(asked): Query<Asked>,
) -> Result<Response, Problem> {
    let view = match app.engine.find_task(&tenant).await? {
        Found::Here(task) => app.engine.view(&task).await?,
        Found::Elsewhere(there) => return elsewhere::page(&app, &there).await,
    };
    let no_task = || Problem::new(code::TASK_NOT_FOUND, format!("run {} is no task of a plan", view.id));
    let about = *view.task.clone().ok_or_else(no_task)?;
    let lock = app.engine.lock(&tenant).await?;
    let task = Task::of(&view, &about, lock.as_ref().map(|row| app.lock(row)), None);
    let checkpoint = Checkpoint::of(&view, &about);
    let earlier = earlier(&app, &tenant, &view.id).await?;
    let journal = history::read(&app, &view, asked.before).await?;
    let shares = app.instance().is_some();
    let shown = Shown { view, about, task, checkpoint, earlier, shares, now: words::now() };
    let content = html! {
        (facts::head(&shown))
        (facts::callout(&shown))
        (facts::facts(&shown))
        (facts::stages(&shown.task))
        (deed::section(&format!("/tenants/{tenant}"), &act::deeds(&shown)))
        (act::asked(&shown))
        (facts::lock(&shown.task, shown.now))
        (facts::checkpoint(&shown.task, shown.checkpoint.as_ref(), shown.now))
        (history::section(&shown, &journal))
        (facts::earlier(&shown.earlier, shown.now))
    };
    let title = format!("{} · {}", tenant, mark::word(shown.task.status.as_str()));
    let mut feed = form_urlencoded::Serializer::new(String::new());
    let follows = Some(format!("/v1/events?{}", feed.append_pair("tenant", tenant.as_str()).finish()));
    Ok(Page { part: Part::Plans, title, follows, content }.respond(&app))
}

/// Its other tasks, as far as they are among its latest runs.
pub(super) async fn earlier(app: &App, tenant: &TenantId, latest: &RunId) -> Result<Vec<RunRow>, Problem> {
    let filter = RunFilter { tenant: Some(tenant.to_string()), ..RunFilter::default() };
    let rows = app.engine.list(&filter, None, None, EARLIER_MAX).await?.rows;
    Ok(rows.into_iter().filter(|row| row.task.is_some() && row.run != *latest).collect())
}

/// What the forms of the page send.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::pages) struct Sent {
    verb: act::Verb,
    /// The task that the page was about: the tenant may have another one by now.
    task: String,
    reason: Option<String>,
    sure: Option<String>,
}

/// Does what somebody wants on the page.
pub(in crate::pages) async fn change(
    State(app): State<Arc<App>>,
    TenantPath(tenant): TenantPath,
    _: Query<Nothing>,
    command: Command,
    Form(Sent { verb, task, reason, sure }): Form<Sent>,
) -> Result<Response, Problem> {
    if verb.is_grave() {
        deed::is_sure(sure.as_deref())?;
    }
    let origin = deed::origin(command, reason)?;
    let latest = match app.engine.find_task(&tenant).await? {
        Found::Here(task) => task,
        Found::Elsewhere(there) => there.task.task,
    };
    if latest.as_str() != task {
        return Err(Problem::new(code::STALE, format!("{tenant} has another task by now, {latest}; look at the page again")));
    }
    act(&app, &tenant, verb, origin).await?;
    Ok(deed::see(&format!("/tenants/{tenant}")))
}

async fn act(app: &App, tenant: &TenantId, verb: act::Verb, origin: Origin) -> Result<(), Problem> {
    let retry = |from| RetryRun { origin: origin.clone(), from, ..RetryRun::default() };
    match verb {
        act::Verb::Retry => {
            app.engine
                .retry(&app.own_task(tenant, Wanted::Retry, &origin).await?, retry(RetryFrom::Failed))
                .await?
        }
        act::Verb::Restart => {
            app.engine
                .retry(&app.own_task(tenant, Wanted::RetryFromStart, &origin).await?, retry(RetryFrom::Start))
                .await?
        }
        act::Verb::Pause => app.engine.pause(&app.task_here(tenant).await?, origin).await?,
        act::Verb::Resume => app.engine.resume(&app.task_here(tenant).await?, origin).await?,
        act::Verb::Cancel => app.engine.cancel(&app.own_task(tenant, Wanted::Cancel, &origin).await?, origin).await?,
        act::Verb::Rollback => app.engine.roll_back(&app.own_task(tenant, Wanted::RollBack, &origin).await?, origin).await?,
        act::Verb::HandOver => drop(app.hand_over(tenant, origin).await?),
    }
    Ok(())
}
