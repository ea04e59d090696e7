//! What happened to a tenant's task, in the names that the change feed has for it.

use super::show::Shown;
use crate::app::App;
use crate::pages::{data, words};
use crate::problem::Problem;
use crate::shapes::Change;
use maud::{Markup, html};
use std::collections::BTreeMap;
use std::time::Duration;
use steadfast_kernel::{Entry, Epoch, Event, Seq, TaskStatus};
use steadfast_runtime::{Fed, Place, RunView};

/// How many events are on a page.
const PAGE: u64 = 50;

/// How many more are read, to know how a life ended whose end is on the page.
const BACK: u64 = 200;

/// A part of a journal.
pub(super) struct Part {
    entries: Vec<Entry>,
    /// The lives in which what was done was to be undone.
    undoes: BTreeMap<Epoch, bool>,
    /// The event before which it ends; nothing if it is the last part.
    before: Option<Seq>,
}

pub(super) async fn read(app: &App, view: &RunView, before: Option<Seq>) -> Result<Part, Problem> {
    let before = before.filter(|before| *before <= view.seq);
    let last = before.map_or(view.seq, |before| before.saturating_sub(1));
    let (first, after) = (last.saturating_sub(PAGE), last.saturating_sub(PAGE + BACK));
    let mut entries = if last == 0 { Vec::new() } else { app.engine.journal(&view.id, after, (last - after) as usize).await? };
    let mut undoes: BTreeMap<Epoch, bool> = entries.iter().filter_map(|entry| Some((entry.epoch, undo(&entry.event)?))).collect();
    if view
        .task
        .as_ref()
        .is_some_and(|task| matches!(task.status, TaskStatus::RolledBack | TaskStatus::RollbackFailed))
    {
        undoes.insert(view.epoch, true);
    }
    entries.retain(|entry| entry.seq > first);
    Ok(Part { entries, undoes, before })
}

fn undo(event: &Event) -> Option<bool> {
    match event {
        Event::RunCancelRequested { undo, .. } => Some(*undo),
        _ => None,
    }
}

pub(super) fn section(shown: &Shown, part: &Part) -> Markup {
    let page = format!("/tenants/{}", shown.task.tenant_id);
    let first = part.entries.first().map_or(1, |entry| entry.seq);
    html! {
        section.card aria-labelledby="journal" {
            div.line {
                h2 #journal { "History" }
                span.fine { (words::count(shown.view.seq, "event")) }
                a href={ "/v1/runs/" (shown.task.run_id.replace('/', "%2F")) "/events" } { "As JSON" }
            }
            nav.pages aria-label="Earlier events" {
                @if first > 1 { a.button href={ (page) "?before=" (first) "#journal" } { "Load earlier" } }
                @if part.before.is_some() { a.button href={ (page) "#journal" } { "Latest" } }
            }
            ol.journal { @for entry in &part.entries { (line(entry, shown, part)) } }
        }
    }
}

fn line(entry: &Entry, shown: &Shown, part: &Part) -> Markup {
    let fed = Fed {
        place: Place { shard: 0, number: 0 },
        entity: (&shown.view.id).into(),
        tenant: Some(shown.task.tenant_id.clone()),
        plan: Some(shown.about.options.plan.clone()),
        rolled_back: part.undoes.get(&entry.epoch).copied().unwrap_or_default(),
        entry: entry.clone(),
    };
    let Some(Change { event, .. }) = Change::of(&fed) else { return html! {} };
    let all = format!("/v1/runs/{}/events?after={}&limit=1", shown.task.run_id.replace('/', "%2F"), entry.seq.saturating_sub(1));
    let (said, payload) = (&event.payload, data::of(&event.payload));
    html! {
        li data-key={ "event " (entry.seq) } {
            span.seq { (entry.seq) }
            (words::relative(entry.at, shown.now))
            span.type { (event.event_type) }
            span.about {
                @if let Some(name) = &said.task_id { code { (name) } " " }
                @if let Some(backoff) = event.backoff_delay_ms { "attempt " (event.attempt_number) " in " (words::lasted(Duration::from_millis(backoff))) ": " }
                @if let Some(instance) = &said.instance { "instance " code { (instance) } @if said.by.is_some() || said.reason.is_some() { ", " } }
                @if let Some(by) = &said.by { "by " (by) @if said.reason.is_some() { ": " } }
                @if let Some(reason) = said.reason.as_deref().or(said.note.as_deref()).or(said.signal.as_deref()) { span.message { (reason) } }
            }
            @if payload.as_str() != "{}" { (data::fold(&format!("event {}", entry.seq), "", &payload, &all)) }
        }
    }
}
