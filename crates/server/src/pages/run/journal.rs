//! The journal of a run: the last events, and those before them page by page.

use super::{Shown, in_api};
use crate::app::App;
use crate::pages::{data, words};
use crate::problem::Problem;
use crate::shapes::{Event, EventPayload};
use maud::{Markup, html};
use std::time::Duration;
use steadfast_kernel::{Entry, Seq};
use steadfast_runtime::RunView;

/// How many events are on a page.
const PAGE: u64 = 50;

/// A part of a journal.
pub(super) struct Part {
    entries: Vec<Entry>,
    /// The event before which it ends; nothing if it is the last part.
    before: Option<Seq>,
}

pub(super) async fn read(app: &App, view: &RunView, before: Option<Seq>) -> Result<Part, Problem> {
    let before = before.filter(|before| *before <= view.seq);
    let last = before.map_or(view.seq, |before| before.saturating_sub(1));
    let after = last.saturating_sub(PAGE);
    let entries = if last == 0 { Vec::new() } else { app.engine.journal(&view.id, after, (last - after) as usize).await? };
    Ok(Part { entries, before })
}

pub(super) fn section(shown: &Shown, part: &Part) -> Markup {
    let link = |before: Seq| format!("/runs/{}?before={before}#journal", shown.view.id);
    let first = part.entries.first().map_or(1, |entry| entry.seq);
    html! {
        section.card aria-labelledby="journal" {
            div.line {
                h2 #journal { "Journal" }
                span.fine { (words::count(shown.view.seq, "event")) }
                a href={ (in_api(&shown.view.id)) "/events" } { "As JSON" }
            }
            nav.pages aria-label="Earlier events" {
                @if first > 1 { a.button href=(link(first)) { "Load earlier" } }
                @if part.before.is_some() { a.button href={ "/runs/" (shown.view.id) "#journal" } { "Latest" } }
            }
            ol.journal { @for entry in &part.entries { (line(entry, shown)) } }
        }
    }
}

fn line(entry: &Entry, shown: &Shown) -> Markup {
    let run = shown.view.id.as_str();
    let event = Event::of(run, entry);
    let all = format!("{}/events?after={}&limit=1", in_api(&shown.view.id), entry.seq.saturating_sub(1));
    let payload = data::of(&event.payload);
    html! {
        li data-key={ "event " (entry.seq) } {
            span.seq { (entry.seq) }
            (words::offset(entry.at, shown.view.started_at))
            span.type { (event.event_type) }
            span.about {
                @if let Some(name) = &event.payload.task_id { code { (name) } " " }
                @if let Some(backoff) = event.backoff_delay_ms {
                    "attempt " (event.attempt_number) " in " (words::lasted(Duration::from_millis(backoff))) ": "
                } @else if event.attempt_number > 1 {
                    "attempt " (event.attempt_number) " "
                }
                @if let Some(reason) = said(&event.payload) { span.message { (reason) } }
            }
            @if payload.as_str() != "{}" { (data::fold(&format!("event {}", entry.seq), "", &payload, &all)) }
        }
    }
}

/// What a person or the code said about it.
fn said(payload: &EventPayload) -> Option<&str> {
    payload.reason.as_deref().or(payload.note.as_deref()).or(payload.signal.as_deref())
}
