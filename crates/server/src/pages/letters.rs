//! `/letters`: what nobody will try again by itself.

use super::layout::{Page, Part};
use super::{run, words};
use crate::app::App;
use crate::ask::{Query, within};
use crate::cursor;
use crate::problem::Problem;
use crate::shapes::step_name;
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use std::sync::Arc;
use steadfast_kernel::{LetterAbout, Timestamp};
use steadfast_store::{LetterCursor, LetterRow};

/// Which letters.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Asked {
    limit: Option<u64>,
    cursor: Option<String>,
}

pub(super) async fn page(State(app): State<Arc<App>>, Query(asked): Query<Asked>) -> Result<Response, Problem> {
    let limit = within("limit", asked.limit, 1..=200, 50)? as usize;
    let after: Option<LetterCursor> = asked.cursor.as_deref().map(|text| cursor::decode("cursor", text)).transpose()?;
    let mut rows = app.engine.letters(&steadfast_store::LetterFilter::default(), after.as_ref(), limit + 1).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|last| cursor::encode(&LetterCursor::from(last)));
    let now = words::now();
    let content = html! {
        div.head { h1 { "Dead letters" } p.lead { "Steps, and expiries of keys to be told, that nobody will try again. A person has them tried again, or drops them." } }
        @if rows.is_empty() {
            div.nothing { h2 { "No dead letters" } p { "Nothing waits for a person here." } }
        } @else {
            ul.letters { @for row in &rows { (letter(row, now)) } }
        }
        nav.pages aria-label="Pages" {
            @if asked.cursor.is_some() { a.button href="/letters" { "Newest" } }
            @if let Some(next) = next { a.button rel="next" href={ "/letters?cursor=" (next) } { "Older" } }
        }
    };
    Ok(Page { part: Part::Letters, title: "Dead letters".into(), follows: Some("/v1/events?kind=letter".into()), content }.respond(&app))
}

fn letter(row: &LetterRow, now: Timestamp) -> Markup {
    html! {
        li.card data-key={ "letter " (row.letter) } {
            div.line {
                h2 { code { (row.letter) } }
                span.when { (words::relative(row.added_at, now)) }
            }
            p {
                @match &row.about {
                    LetterAbout::Step { run, step } => { "Step " code { (step_name(step)) } " of run " a href={ "/runs/" (run) } { (run) } }
                    LetterAbout::Expiry { key, revision } => {
                        "Nobody was told that the key " a href={ "/keys/" (key) } { (key) } " has expired (revision " (revision) ")"
                    }
                    LetterAbout::Message { route, direction, kind, peer, request } => {
                        (words::sentence(kind.as_str())) " " code { (request) } " on route " code { (route) } " "
                        (direction.word()) " " code { (peer) }
                    }
                }
                @if let Some(tenant) = &row.tenant { " for " (tenant) } ": "
            }
            (run::failure(&(&row.failure).into()))
            (run::command(&format!("steadfast letter redrive {} --reason '…'", row.letter)))
            (run::command(&format!("steadfast letter drop {} --reason '…'", row.letter)))
        }
    }
}
