//! `/keys`: keys by name, as far as they are asked for.

use super::{Asked, Tab, feed, link, named, search, tabs, told};
use crate::app::App;
use crate::ask::{Query, within};
use crate::cursor;
use crate::pages::layout::{Page, Part};
use crate::pages::{data, run, words};
use crate::problem::Problem;
use crate::shapes::Data;
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use std::sync::Arc;
use steadfast_kernel::{KeyName, Timestamp};
use steadfast_store::KeyRow;

pub(in crate::pages) async fn page(State(app): State<Arc<App>>, Query(asked): Query<Asked>) -> Result<Response, Problem> {
    let limit = within("limit", asked.limit, 1..=200, 50)? as usize;
    let after: Option<KeyName> = asked.cursor.as_deref().map(|text| cursor::decode("cursor", text)).transpose()?;
    let prefix = asked.prefix.as_deref();
    let (rows, next) = app.some_keys(prefix.unwrap_or_default(), after, limit).await?;
    let content = html! {
        div.head { h1 { "Keys" } p.lead { "Values with a time to live. Somebody can be told when it is over." } }
        (tabs(Tab::Keys))
        (search("/keys", prefix))
        @if rows.is_empty() { (nothing(&asked)) } @else { (table(&rows, words::now())) }
        nav.pages aria-label="Pages" {
            @if asked.cursor.is_some() { a.button href=(link("/keys", prefix, asked.limit, None)) { "First" } }
            @if let Some(next) = next {
                a.button rel="next" href=(link("/keys", prefix, asked.limit, Some(&cursor::encode(&next)))) { "More" }
            }
        }
    };
    let title = prefix.map_or_else(|| "Keys".into(), |prefix| format!("Keys {prefix}"));
    Ok(Page { part: Part::Keys, title, follows: Some(feed(prefix)), content }.respond(&app))
}

fn table(rows: &[KeyRow], now: Timestamp) -> Markup {
    html! {
        table.runs.keys {
            thead { tr { th scope="col" { "Key" } th scope="col" { "Value" } th scope="col" { "Owner" } th scope="col" { "On expiry" }
                th.number scope="col" { "Revision" } th scope="col" { "Ends" } } }
            tbody { @for row in rows { (line(row, now)) } }
        }
    }
}

fn line(row: &KeyRow, now: Timestamp) -> Markup {
    let held = &row.held;
    html! {
        tr data-key={ "key " (row.key) } data-revision=(held.revision) {
            th.id scope="row" {
                (named(&row.key))
                @if held.directory { " " a.tag href=(link("/keys", Some(&row.key.below()), None, None)) title="The keys below it end with it" { "directory" } }
            }
            td.word { span { code { (data::peek(Data::from(&held.value).as_str())) } } }
            td.tenant { @if let Some(owner) = &held.owner { (owner) } }
            td.tells { @if let Some(target) = &held.on_expire { span { (told(target)) } } }
            td.number.took { (held.revision) }
            td.when { (words::relative(held.expires_at, now)) }
        }
    }
}

/// What to do where nothing is to be seen.
fn nothing(asked: &Asked) -> Markup {
    html! {
        div.nothing {
            @if asked.prefix.is_some() || asked.cursor.is_some() {
                h2 { "No such keys" }
                p { "No name begins so now. What is put appears here by itself." }
                p { a.button href="/keys" { "All keys" } }
            } @else {
                h2 { "No keys" }
                p { "Put one, and it appears here by itself:" }
                (run::command("steadfast key put session:42 '{\"user\":7}' --ttl 30m"))
            }
        }
    }
}
