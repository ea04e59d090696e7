//! What was done to a plan, by whom and why. What its tasks say is in its journal as well; that is shown to those who ask for it.

use super::facts::in_api;
use super::show::{Asked, Shown};
use crate::app::App;
use crate::pages::{data, mark, words};
use crate::problem::Problem;
use crate::shapes;
use maud::{Markup, html};
use steadfast_kernel::plan::PlanEvent;
use steadfast_kernel::{self as kernel, EntityId, Entry, Event, Seq};

/// How many events are on a page.
const PAGE: usize = 50;

/// How many entries are read at once, and how often, to find them: those of tasks lie between.
const CHUNK: u64 = 500;
const CHUNKS_MAX: usize = 4;

/// A part of a journal.
pub(super) struct Part {
    /// Newest first.
    entries: Vec<Entry>,
    /// Everything from there on was looked at.
    from: Seq,
}

pub(super) async fn read(app: &App, plan: &kernel::Plan, asked: &Asked) -> Result<Part, Problem> {
    let id = EntityId::Plan(plan.id.clone());
    let all = asked.journal.is_some();
    let mut part = Part { entries: Vec::new(), from: asked.before.unwrap_or(Seq::MAX).min(plan.seq + 1) };
    for _ in 0..CHUNKS_MAX {
        let after = part.from.saturating_sub(CHUNK + 1);
        let read = app.engine.entries(&id, after, (part.from - 1 - after) as usize).await?;
        for entry in read.into_iter().rev() {
            if part.entries.len() == PAGE {
                return Ok(part);
            }
            part.from = entry.seq;
            part.entries.extend(Some(entry).filter(|entry| all || !is_of_task(entry)));
        }
        if part.from <= 1 {
            break;
        }
    }
    Ok(part)
}

fn is_of_task(entry: &Entry) -> bool {
    let Event::Plan(event) = &entry.event else { return false };
    matches!(**event, PlanEvent::TaskChanged { .. } | PlanEvent::TaskAdmitted { .. } | PlanEvent::TaskRecalled { .. })
}

pub(super) fn section(shown: &Shown, part: &Part) -> Markup {
    let (id, asked) = (&shown.plan.id, &shown.asked);
    let all = asked.journal.is_some();
    let to = |journal: Option<&str>, before: Option<Seq>| {
        let asked = Asked { journal: journal.map(Into::into), before, ..asked.clone() };
        format!("{}#journal", asked.link(id))
    };
    html! {
        section.card aria-labelledby="journal" {
            div.line {
                h2 #journal { "History" }
                span.fine { "newest first" }
                @if all { a href=(to(None, None)) { "Without its tasks" } } @else { a href=(to(Some("all"), None)) { "With its tasks" } }
                a href={ (in_api(id)) "/events" } { "As JSON" }
            }
            ol.journal { @for entry in &part.entries { (line(entry, shown)) } }
            nav.pages aria-label="Earlier events" {
                @if asked.before.is_some() { a.button href=(to(asked.journal.as_deref(), None)) { "Latest" } }
                @if part.from > 1 { a.button href=(to(asked.journal.as_deref(), Some(part.from))) { "Earlier" } }
            }
        }
    }
}

fn line(entry: &Entry, shown: &Shown) -> Markup {
    let event = shapes::Event::of(&shown.plan.id, entry);
    let all = format!("{}/events?after={}&limit=1", in_api(&shown.plan.id), entry.seq.saturating_sub(1));
    let payload = data::of(&event.payload);
    let said = &event.payload;
    html! {
        li data-key={ "event " (entry.seq) } {
            span.seq { (entry.seq) }
            (words::relative(entry.at, shown.now))
            span.type { (event.event_type) }
            span.about {
                @if let Some(task) = &said.run { a href={ "/runs/" (task) } { (task) } " " }
                @if let Some(status) = &said.status { (mark::status(status)) " " }
                @if let Some(by) = &said.by { "by " (by) @if said.reason.is_some() { ": " } }
                @if let Some(reason) = &said.reason { span.message { (reason) } }
            }
            @if payload.as_str() != "{}" { (data::fold(&format!("event {}", entry.seq), "", &payload, &all)) }
        }
    }
}
