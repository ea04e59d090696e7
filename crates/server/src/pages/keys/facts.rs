//! What a key is, in short.

use super::show::Shown;
use super::{link, named, told};
use crate::pages::words;
use maud::{Markup, html};
use steadfast_kernel::{Event, KeyName, Timestamp};

pub(super) fn head(shown: &Shown) -> Markup {
    html! {
        div.head.run {
            p.crumb {
                a href="/keys" { "Keys" }
                @for above in shown.key.above() { " / " a href=(link("/keys", Some(&above.below()), None, None)) { (above) } }
            }
            div.line {
                h1 { (shown.key) }
                @if shown.row.as_ref().is_some_and(|row| row.held.directory) {
                    a.tag href=(link("/keys", Some(&shown.key.below()), None, None)) { "directory" }
                }
            }
        }
    }
}

/// Whether it is there, in a sentence.
pub(super) fn callout(shown: &Shown) -> Markup {
    let (class, line) = match (&shown.row, ended(shown)) {
        (Some(row), _) => {
            ("good", html! { "It is there, and ends " (words::relative(row.held.expires_at, shown.now)) " unless it is renewed." })
        }
        (None, Some((how, at, with))) => {
            let with = html! { @if let Some(with) = with { " with " (named(with)) } };
            ("quiet", html! { "It is gone: it " (how) (with) " " (words::relative(at, shown.now)) "." })
        }
        (None, None) => ("quiet", html! { "It is over; that is about to be put on record." }),
    };
    html! { section class={ "why " (class) } aria-label="Whether it is there" { p.first { (line) } } }
}

/// How it ended last, and when, and with which directory.
fn ended(shown: &Shown) -> Option<(&'static str, Timestamp, Option<&KeyName>)> {
    for entry in shown.entries.iter().rev() {
        match &entry.event {
            Event::KeyExpired { ended_at, with, .. } => return Some(("has expired", *ended_at, with.as_ref())),
            Event::KeyDeleted { with, .. } => return Some(("was deleted", entry.at, with.as_ref())),
            Event::KeyPut(_) | Event::KeyRenewed { .. } => return None,
            _ => {}
        }
    }
    None
}

pub(super) fn facts(shown: &Shown) -> Markup {
    let Some(row) = &shown.row else { return html! {} };
    let (held, now) = (&row.held, shown.now);
    html! {
        dl.facts {
            (fact("Ends", words::relative(held.expires_at, now)))
            (fact("Time to live", html! { (words::lasted(held.ttl)) }))
            (fact("Owner", html! { @match &held.owner { Some(owner) => { (owner) } None => { "everybody may change it" } } }))
            (fact("Revision", html! { (held.revision) }))
            (fact("Put", words::relative(held.put_at, now)))
            (fact("On expiry", html! { @match &held.on_expire { Some(target) => { (told(target)) } None => { "nobody by itself" } } }))
            @if held.directory { (fact("Directory", html! { "the keys below it end with it" })) }
        }
    }
}

fn fact(name: &str, value: Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}
