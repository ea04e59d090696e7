//! Keys: `/keys` lists them by name, `/keys/{key}` shows one, and `/callbacks` has the ends that are still to be told.

mod act;
mod callback;
mod facts;
mod journal;
mod list;
mod show;

pub(super) use callback::page as callbacks;
pub(super) use list::page as list;
pub(super) use show::page as show;

use maud::{Markup, html};
use serde::Deserialize;
use steadfast_kernel::{KeyName, Target};

/// Which of them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Asked {
    prefix: Option<String>,
    limit: Option<u64>,
    cursor: Option<String>,
}

/// What there is of keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tab {
    Keys,
    Callbacks,
}

fn tabs(tab: Tab) -> Markup {
    let chip = |of: Tab, address: &str, name: &str| {
        html! { a.chip href=(address) aria-current=[(tab == of).then_some("true")] { (name) } }
    };
    html! {
        nav.chips aria-label="Keys" {
            (chip(Tab::Keys, "/keys", "Keys"))
            (chip(Tab::Callbacks, "/callbacks", "Pending callbacks"))
        }
    }
}

/// The form that narrows a list to what names begin with.
fn search(action: &str, prefix: Option<&str>) -> Markup {
    html! {
        form.filters.short method="get" action=(action) role="search" {
            label { span { "Names that begin with" }
                input type="search" name="prefix" value=[prefix] placeholder="session:" autocomplete="off" spellcheck="false";
            }
            button type="submit" { "Filter" }
            @if prefix.is_some() { a.clear href=(action) { "Clear" } }
        }
    }
}

/// The address of a list.
fn link(page: &str, prefix: Option<&str>, limit: Option<u64>, cursor: Option<&str>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    prefix.map(|prefix| query.append_pair("prefix", prefix));
    limit.map(|limit| query.append_pair("limit", &limit.to_string()));
    cursor.map(|cursor| query.append_pair("cursor", cursor));
    let query = query.finish();
    if query.is_empty() { page.into() } else { format!("{page}?{query}") }
}

/// What says that a page about keys whose names begin so is out of date.
fn feed(prefix: Option<&str>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    match prefix {
        Some(prefix) => query.append_pair("prefix", prefix),
        None => query.append_pair("kind", "key"),
    };
    format!("/v1/events?{}", query.finish())
}

/// Where a key is in the API: its name is one part of the path there, whatever it ends with.
fn in_api(key: &KeyName) -> String {
    format!("/v1/keys/{}", key.as_str().replace('/', "%2F"))
}

/// A link to a key.
fn named(key: &KeyName) -> Markup {
    html! { a href={ "/keys/" (key) } { (key) } }
}

/// Who is told of an expiry. An address may have a secret in its query, which is left out.
fn told(target: &Target) -> Markup {
    match target {
        Target::Url(url) => html! { code { (url.split(['?', '#']).next().unwrap_or_default().split("://").last().unwrap_or_default()) } },
        Target::StartRun { workflow, .. } => html! { "a run of " a href={ "/?workflow=" (workflow) } { (workflow) } },
        Target::Handler => html! { "a handler" },
    }
}
