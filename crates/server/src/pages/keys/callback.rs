//! `/callbacks`: ends of keys that are still to be told, those that have waited for longest first.

use super::{Asked, Tab, feed, link, named, search, tabs};
use crate::app::App;
use crate::ask::{Query, within};
use crate::pages::layout::{Page, Part};
use crate::pages::{run, words};
use crate::problem::Problem;
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use std::sync::Arc;
use steadfast_kernel::Timestamp;
use steadfast_store::CallbackRow;

pub(in crate::pages) async fn page(State(app): State<Arc<App>>, Query(asked): Query<Asked>) -> Result<Response, Problem> {
    let limit = within("limit", asked.limit, 1..=200, 50)? as usize;
    let prefix = asked.prefix.as_deref();
    let (rows, next) = app.some_callbacks(prefix, asked.cursor.as_deref(), limit).await?;
    let now = words::now();
    let content = html! {
        div.head { h1 { "Pending callbacks" } p.lead { "Keys that have ended and of whose end somebody is still to be told, those that have waited for longest first." } }
        (tabs(Tab::Callbacks))
        (search("/callbacks", prefix))
        @if rows.is_empty() {
            div.nothing { h2 { "Nothing is to be told" } p { "Everybody who is to be told of the end of a key has been, or a " a href="/letters" { "dead letter" } " says why not." } }
        } @else {
            ul.letters { @for row in &rows { (card(row, now)) } }
        }
        nav.pages aria-label="Pages" {
            @if asked.cursor.is_some() { a.button href=(link("/callbacks", prefix, asked.limit, None)) { "Oldest" } }
            @if let Some(next) = next { a.button rel="next" href=(link("/callbacks", prefix, asked.limit, Some(&next))) { "More" } }
        }
    };
    Ok(Page { part: Part::Keys, title: "Pending callbacks".into(), follows: Some(feed(prefix)), content }.respond(&app))
}

fn card(row: &CallbackRow, now: Timestamp) -> Markup {
    html! {
        li.card data-key={ "callback " (row.key) " " (row.revision) } data-attempt=(row.attempt) {
            div.line {
                h2 { (named(&row.key)) }
                span.fine { "revision " (row.revision) }
                span.when { "ended " (words::relative(row.ended_at, now)) }
            }
            (stands(row, now))
        }
    }
}

/// Who is to be told, how often it was tried, why it failed last, and when it is tried next.
pub(super) fn stands(row: &CallbackRow, now: Timestamp) -> Markup {
    let target = match row.target.as_str() {
        "keys below" => html! { "The keys below it are ended" },
        "handler" => html! { "A handler is told" },
        target => match target.strip_prefix("run ") {
            Some(workflow) => html! { "A run of " a href={ "/?workflow=" (workflow) } { (workflow) } " is started" },
            None => html! { code { (target.split("://").last().unwrap_or_default()) } " is told" },
        },
    };
    html! {
        p {
            (target) ": attempt " (row.attempt)
            @if let Some(of) = row.of { " of " (of) }
            @match row.next_at {
                Some(at) if at > now => { ", " (words::relative(at, now)) }
                _ => { ", at any moment" }
            }
            "."
        }
        @if let Some(failure) = &row.failure { (run::failure(&failure.into())) }
    }
}
