//! The journal of a key, as far as it is kept.

use super::show::Shown;
use super::{in_api, told};
use crate::pages::{data, words};
use crate::shapes;
use maud::{Markup, html};
use std::collections::BTreeSet;
use steadfast_kernel::{Entry, Event, KeyName, LetterHome, LetterId};

/// How many events are on the page.
const SHOWN_MAX: usize = 100;

/// Its dead letters: what the journal has added and not taken away.
pub(super) fn letters(key: &KeyName, entries: &[Entry]) -> Vec<LetterId> {
    let mut open = BTreeSet::new();
    for entry in entries {
        match &entry.event {
            Event::LetterAdded(_) => drop(open.insert(entry.seq)),
            Event::LetterRedriven { letter, .. } | Event::LetterDropped { letter, .. } => drop(open.remove(letter)),
            _ => {}
        }
    }
    open.into_iter().map(|seq| LetterId { home: LetterHome::Key(key.clone()), seq }).collect()
}

pub(super) fn section(shown: &Shown) -> Markup {
    let from = shown.entries.len().saturating_sub(SHOWN_MAX);
    html! {
        section.card aria-labelledby="journal" {
            div.line {
                h2 #journal { "Journal" }
                span.fine {
                    @if from > 0 { "the last " (SHOWN_MAX) " of " }
                    (words::count(shown.entries.len() as u64, "event")) ", as far as it is kept"
                }
            }
            ol.journal { @for entry in &shown.entries[from..] { (line(entry, shown)) } }
        }
    }
}

fn line(entry: &Entry, shown: &Shown) -> Markup {
    let event = shapes::Event::of(shown.key.as_str(), entry);
    let payload = data::of(&shapes::EventPayload { on_expire: None, ..event.payload.clone() });
    html! {
        li data-key={ "event " (entry.seq) } {
            span.seq { (entry.seq) }
            (words::relative(entry.at, shown.now))
            span.type { (event.event_type) }
            span.about { (about(&entry.event)) }
            @if payload.as_str() != "{}" { (data::fold(&format!("event {}", entry.seq), "", &payload, &in_api(&shown.key))) }
        }
    }
}

/// What is to be said of it in a line.
fn about(event: &Event) -> Markup {
    let revision = |revision: &u64| html! { "revision " (revision) };
    match event {
        Event::KeyPut(held) => html! {
            (revision(&held.revision)) " for " (words::lasted(held.ttl))
            @if let Some(target) = &held.on_expire { ", tells " (told(target)) }
        },
        Event::KeyRenewed { revision: number, ttl, .. } => html! { (revision(number)) " for " (words::lasted(*ttl)) },
        Event::KeyDeleted { revision: number, with } | Event::KeyExpired { revision: number, with, .. } => html! {
            (revision(number)) @if let Some(with) = with { ", with " (super::named(with)) }
        },
        Event::CallbackFailed { revision: number, attempt, of, delay, failure, .. } => html! {
            (revision(number)) ", attempt " (attempt) " of " (of) ", again in " (words::lasted(*delay)) ": " span.message { (failure.message) }
        },
        Event::CallbackSettled { revision: number, attempt, run } => html! {
            (revision(number)) ", attempt " (attempt) @if let Some(run) = run { ": " a href={ "/runs/" (run) } { (run) } }
        },
        Event::LetterAdded(letter) => html! { "attempt " (letter.attempt) ": " span.message { (letter.failure.message) } },
        Event::LetterRedriven { letter, origin } | Event::LetterDropped { letter, origin } => html! {
            "letter " (letter) @if let Some(why) = &origin.why { ": " span.message { (why) } }
        },
        _ => html! {},
    }
}
