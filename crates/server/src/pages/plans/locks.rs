//! `/locks`: the locks that tasks have, by tenant.

use super::{Tab, link, plan, tabs, tenant};
use crate::app::App;
use crate::ask::{Command, Form, Nothing, Query, within};
use crate::cursor;
use crate::pages::deed::{self, Deed};
use crate::pages::layout::{Page, Part};
use crate::pages::run::quoted;
use crate::pages::words;
use crate::problem::Problem;
use crate::shapes::Lock;
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use std::sync::Arc;
use steadfast_kernel::{TenantId, Timestamp, code};
use steadfast_runtime::Found;

/// Which locks.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::pages) struct Asked {
    limit: Option<u64>,
    cursor: Option<String>,
}

pub(in crate::pages) async fn page(State(app): State<Arc<App>>, Query(asked): Query<Asked>) -> Result<Response, Problem> {
    let limit = within("limit", asked.limit, 1..=200, 50)? as usize;
    let after: Option<TenantId> = asked.cursor.as_deref().map(|text| cursor::decode("cursor", text)).transpose()?;
    let mut rows = app.engine.locks(after.as_ref(), limit + 1).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|last| cursor::encode(&last.tenant));
    let locks: Vec<Lock> = rows.iter().map(|row| app.lock(row)).collect();
    let at = |cursor| link("/locks", &[("limit", asked.limit.map(|limit| limit.to_string())), ("cursor", cursor)]);
    let instance = app.instance();
    let content = html! {
        div.head { h1 { "Locks" } p.lead {
            "A tenant has one lock: whose task has it is the only one that works for that tenant."
            @if let Some(instance) = instance {
                " These are the locks of tasks of instance " code { (instance) } ", which is this one; the page of a tenant shows who else has its lock."
            }
        } }
        (tabs(Tab::Locks))
        @if locks.is_empty() {
            div.nothing { h2 { "No locks" } p { "No task has the lock of a tenant now." } }
        } @else {
            (table(&locks, words::now()))
        }
        nav.pages aria-label="Pages" {
            @if asked.cursor.is_some() { a.button href=(at(None)) { "First" } }
            @if next.is_some() { a.button rel="next" href=(at(next)) { "More" } }
        }
    };
    Ok(Page { part: Part::Plans, title: "Locks".into(), follows: Some("/v1/events?kind=lock".into()), content }.respond(&app))
}

fn table(locks: &[Lock], now: Timestamp) -> Markup {
    html! {
        table.runs.locks {
            thead { tr { th scope="col" { "Tenant" } th scope="col" { "Task that has it" } th scope="col" { "Plan" } th.number scope="col" { "Fence" }
                th scope="col" { "Since" } th scope="col" { "Until" } th.number scope="col" { "Wait for it" } th scope="col" { "Break it" } } }
            tbody { @for lock in locks { (line(lock, now)) } }
        }
    }
}

fn line(lock: &Lock, now: Timestamp) -> Markup {
    html! {
        tr data-key={ "lock " (lock.tenant_id) } data-fence=(lock.fence) {
            th.id scope="row" { (tenant(&lock.tenant_id)) }
            td.workflow { a href={ "/runs/" (lock.task_id) } { (lock.task_id) } }
            td.workflow { (plan(&lock.plan_id)) }
            td.number data-name="Fence" { (lock.fence) }
            td.when data-name="Since" { @if let Some(since) = lock.since { (words::relative(since.0, now)) } }
            td.when data-name="Until" { (words::relative(lock.expires_at.0, now)) }
            td.number data-name="Wait for it" { (lock.waiting) }
            td.breaks { (deed::form("/locks", &breaking(lock))) }
        }
    }
}

/// How a lock is broken. Who has it then need not be who had it when the page was made, so the form says which holding it is about.
pub(in crate::pages) fn breaking(lock: &Lock) -> Deed {
    let what = "Its holder is interrupted if it is under way, and whoever waits for the lock has it then. Do it if you know that the holder does nothing any more.";
    let command = format!("steadfast lock break {} --reason '…'", quoted(&lock.tenant_id));
    let about = vec![("tenant", lock.tenant_id.clone()), ("fence", lock.fence.to_string())];
    let deed = Deed { about, needs_reason: true, ..Deed::new("break", "Break the lock", what, command) };
    deed.grave(format!("Yes, take it away from {}", lock.task_id))
}

/// What the form sends.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::pages) struct Sent {
    verb: Verb,
    tenant: String,
    fence: u64,
    reason: Option<String>,
    sure: Option<String>,
    /// The page that it was on, if that is not the list.
    page: Option<From>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verb {
    Break,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum From {
    Tenant,
}

/// Breaks a lock.
pub(in crate::pages) async fn change(
    State(app): State<Arc<App>>,
    _: Query<Nothing>,
    command: Command,
    Form(Sent { verb: Verb::Break, tenant, fence, reason, sure, page }): Form<Sent>,
) -> Result<Response, Problem> {
    let tenant = TenantId::new(tenant)?;
    deed::is_sure(sure.as_deref())?;
    let origin = deed::origin(command, Some(deed::reason(reason)?))?;
    if fence_of(&app, &tenant).await?.is_some_and(|now| now != fence) {
        return Err(Problem::new(code::STALE, format!("another task has the lock of {tenant} by now; look at the page again")));
    }
    app.engine.break_lock(&tenant, origin).await?;
    Ok(match page {
        Some(From::Tenant) => deed::see(&format!("/tenants/{tenant}")),
        None => deed::see("/locks"),
    })
}

/// Under which fence somebody has the lock, of this instance or of another.
async fn fence_of(app: &App, tenant: &TenantId) -> Result<Option<u64>, Problem> {
    if let Some(lock) = app.engine.lock(tenant).await? {
        return Ok(Some(lock.lease.fence));
    }
    match app.engine.find_task(tenant).await {
        Ok(Found::Elsewhere(there)) => Ok(there.lock.map(|lock| lock.holder.fence)),
        _ => Ok(None), // whoever breaks it finds out
    }
}
