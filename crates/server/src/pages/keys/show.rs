//! `/keys/{key}`: one key. What it holds and for how long, what is still to be told of its ends, and its journal. One that is gone is shown as long as its journal is kept.

use super::{act, callback, facts, feed, in_api, journal};
use crate::app::App;
use crate::ask::{KeyPath, Nothing, Query};
use crate::pages::layout::{Page, Part};
use crate::pages::{data, words};
use crate::problem::Problem;
use crate::shapes::Data;
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use std::sync::Arc;
use steadfast_kernel::{EntityId, Entry, KeyName, LetterId, Refusal, Timestamp};
use steadfast_runtime::Error;
use steadfast_store::{CallbackRow, KeyRow};

/// How much of a journal is read. What a key has told all of is not kept for long, so there is rarely more.
const ENTRIES_MAX: usize = 1000;

/// How many of its ends that are still to be told are on the page.
const CALLBACKS_MAX: usize = 20;

/// What there is to say about a key at some time.
pub(super) struct Shown {
    pub(super) key: KeyName,
    /// What it holds; nothing if it is gone.
    pub(super) row: Option<KeyRow>,
    pub(super) callbacks: Vec<CallbackRow>,
    pub(super) letters: Vec<LetterId>,
    pub(super) entries: Vec<Entry>,
    pub(super) now: Timestamp,
}

pub(in crate::pages) async fn page(State(app): State<Arc<App>>, KeyPath(key): KeyPath, _: Query<Nothing>) -> Result<Response, Problem> {
    let row = app.engine.key(&key).await?;
    let entries = app.engine.entries(&EntityId::Key(key.clone()), 0, ENTRIES_MAX).await?;
    if row.is_none() && entries.is_empty() {
        return Err(Error::Refused(Refusal::KeyNotFound { key }).into());
    }
    let callbacks = of_key(&app, &key).await?;
    let letters = journal::letters(&key, &entries);
    let shown = Shown { key, row, callbacks, letters, entries, now: words::now() };
    let content = html! {
        (facts::head(&shown))
        (facts::callout(&shown))
        (facts::facts(&shown))
        (value(&shown))
        (callbacks_section(&shown))
        (act::section(&shown))
        (journal::section(&shown))
    };
    let title = format!("{} · Key", shown.key);
    Ok(Page { part: Part::Keys, title, follows: Some(feed(Some(shown.key.as_str()))), content }.respond(&app))
}

/// Its ends that are still to be told. Those of keys whose names only begin so are left out.
async fn of_key(app: &App, key: &KeyName) -> Result<Vec<CallbackRow>, Problem> {
    let (mut found, mut after) = (Vec::new(), None);
    for _ in 0..10 {
        let page = app.engine.callbacks(key.as_str(), after.as_ref(), 200).await?;
        let is_last = page.len() < 200;
        after = page.last().map(Into::into);
        found.extend(page.into_iter().filter(|row| row.key == *key));
        if is_last || found.len() >= CALLBACKS_MAX {
            break;
        }
    }
    found.truncate(CALLBACKS_MAX);
    Ok(found)
}

fn value(shown: &Shown) -> Markup {
    html! {
        @if let Some(row) = &shown.row {
            section.card aria-label="Value" { (data::fold("value", "Value", &Data::from(&row.held.value), &in_api(&shown.key))) }
        }
    }
}

fn callbacks_section(shown: &Shown) -> Markup {
    html! {
        @if !shown.callbacks.is_empty() {
            section.card aria-labelledby="callbacks" {
                div.line { h2 #callbacks { "Pending callbacks" } a href="/callbacks" { "All of them" } }
                ul.tolds {
                    @for row in &shown.callbacks {
                        li data-key={ "callback " (row.revision) } data-attempt=(row.attempt) {
                            p.fine { "Revision " (row.revision) " ended " (words::relative(row.ended_at, shown.now)) }
                            (callback::stands(row, shown.now))
                        }
                    }
                }
            }
        }
    }
}
