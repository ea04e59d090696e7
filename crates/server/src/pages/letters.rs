//! `/letters`: what nobody will try again by itself, as far as it is asked for, and all of that tried again.

use super::deed::{self, Deed};
use super::layout::{Page, Part};
use super::{run, words};
use crate::app::App;
use crate::ask::{Command, Form, NarrowLetters, Nothing, Query, within};
use crate::cursor;
use crate::problem::Problem;
use crate::shapes::{LettersRedriven, Time, step_name};
use axum::extract::State;
use axum::response::Response;
use form_urlencoded::Serializer;
use maud::{Markup, html};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Class, Code, LetterAbout, Timestamp};
use steadfast_runtime::RedriveLetters;
use steadfast_store::{LetterCursor, LetterFilter, LetterKind, LetterRow};

/// For how long a page may be waited for.
const WITHIN: Duration = Duration::from_secs(10);

/// Which letters: those to which all of it applies.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Asked {
    kind: Option<String>,
    workflow: Option<String>,
    route: Option<String>,
    key_prefix: Option<String>,
    tenant: Option<String>,
    class: Option<String>,
    code: Option<String>,
    limit: Option<u64>,
    cursor: Option<String>,
}

impl Asked {
    fn filter(&self, added_before: Option<Time>) -> Result<LetterFilter, Problem> {
        let Asked { kind, workflow, route, key_prefix, tenant, class, code, .. } = self.clone();
        NarrowLetters { kind, workflow, route, key_prefix, tenant, class, code, added_before, ..NarrowLetters::default() }.filter()
    }

    /// What is asked for, by name.
    fn parts(&self) -> Vec<(&'static str, String)> {
        let parts = [
            ("kind", &self.kind),
            ("workflow", &self.workflow),
            ("route", &self.route),
            ("keyPrefix", &self.key_prefix),
            ("tenant", &self.tenant),
            ("class", &self.class),
            ("code", &self.code),
        ];
        parts.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }

    /// Whether something beside the kind is asked for.
    fn is_refined(&self) -> bool {
        self.parts().iter().any(|(name, _)| *name != "kind")
    }

    /// The address of this list.
    fn link(&self) -> String {
        let mut query = Serializer::new(String::new());
        for (name, value) in self.parts() {
            query.append_pair(name, &value);
        }
        self.limit.map(|limit| query.append_pair("limit", &limit.to_string()));
        self.cursor.as_ref().map(|cursor| query.append_pair("cursor", cursor));
        let query = query.finish();
        if query.is_empty() { "/letters".into() } else { format!("/letters?{query}") }
    }

    /// The same on a command line.
    fn command(&self) -> String {
        let flag = |name: &str| if name == "keyPrefix" { "key-prefix" } else { name }.to_string();
        let flags: String = self.parts().iter().map(|(name, value)| format!(" --{} '{value}'", flag(name))).collect();
        let all = if flags.is_empty() { " --all" } else { "" };
        format!("steadfast letter redrive{flags}{all} --reason '…'")
    }
}

pub(super) async fn page(State(app): State<Arc<App>>, Query(asked): Query<Asked>) -> Result<Response, Problem> {
    show(&app, &asked, None).await
}

/// What the form sends: which letters, and since when the latest of them is there that its sender has seen counted.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Sent {
    verb: Verb,
    kind: Option<String>,
    workflow: Option<String>,
    route: Option<String>,
    key_prefix: Option<String>,
    tenant: Option<String>,
    class: Option<String>,
    code: Option<String>,
    added_before: Time,
    reason: Option<String>,
    sure: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verb {
    Redrive,
}

/// Tries all of them again, as far as there is time, and shows what came of it.
pub(super) async fn change(
    State(app): State<Arc<App>>,
    _: Query<Nothing>,
    command: Command,
    Form(sent): Form<Sent>,
) -> Result<Response, Problem> {
    let Sent { verb: Verb::Redrive, kind, workflow, route, key_prefix, tenant, class, code, added_before, reason, sure } = sent;
    deed::is_sure(sure.as_deref())?;
    let asked = Asked { kind, workflow, route, key_prefix, tenant, class, code, ..Asked::default() };
    let wanted = RedriveLetters {
        filter: asked.filter(Some(added_before))?,
        within: Some(WITHIN.min(app.config.request_time / 2)),
        origin: deed::origin(command, reason)?,
        ..RedriveLetters::default()
    };
    let done = app.engine.redrive_letters(wanted).await?;
    show(&app, &asked, Some(done.into())).await
}

async fn show(app: &App, asked: &Asked, done: Option<LettersRedriven>) -> Result<Response, Problem> {
    let limit = within("limit", asked.limit, 1..=200, 50)? as usize;
    let after: Option<LetterCursor> = asked.cursor.as_deref().map(|text| cursor::decode("cursor", text)).transpose()?;
    let filter = asked.filter(None)?;
    let now = words::now();
    let matching = app.engine.letters_count(&LetterFilter { until: Some(now), ..filter.clone() }).await?;
    let mut rows = app.engine.letters(&filter, after.as_ref(), limit + 1).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|last| cursor::encode(&LetterCursor::from(last)));
    let names: Vec<String> = app.engine.workflows().into_iter().map(|(name, _)| name.to_string()).collect();
    let content = html! {
        div.head { h1 { "Dead letters" }
            p.lead { "Steps, expiries of keys to be told, and messages that nobody will try again. A person has them tried again, or drops them." } }
        @if let Some(done) = &done { (came_of(done)) }
        (chips(asked))
        (form(asked, &names))
        @if rows.is_empty() {
            (nothing(asked))
        } @else {
            ul.letters { @for row in &rows { (letter(row, now)) } }
        }
        nav.pages aria-label="Pages" {
            @if asked.cursor.is_some() { a.button href=(Asked { cursor: None, ..asked.clone() }.link()) { "Newest" } }
            @if let Some(next) = next { a.button rel="next" href=(Asked { cursor: Some(next), ..asked.clone() }.link()) { "Older" } }
        }
        @if matching > 0 { (deed::section("/letters", &[all_again(asked, matching, now)])) }
    };
    let title = if done.is_some() { "Dead letters tried again" } else { "Dead letters" };
    let follows = done.is_none().then(|| "/v1/events?kind=letter".to_string());
    Ok(Page { part: Part::Letters, title: title.into(), follows, content }.respond(app))
}

/// How all that are asked for are tried again: those that the person who agrees to it has seen counted.
fn all_again(asked: &Asked, matching: u64, now: Timestamp) -> Deed {
    let what = "Each is tried once, oldest first: runs begin again at their step, expiries are told again, messages are sent or handled again. What fails again stays here.";
    let about = asked.parts().into_iter().chain([("addedBefore", Time(now).to_string())]).collect();
    let deed = Deed { about, ..Deed::new("redrive", "Redrive all that match", what, asked.command()) };
    deed.grave(format!("Yes, try {} again", words::count(matching, "dead letter")))
}

/// What came of trying them again.
fn came_of(done: &LettersRedriven) -> Markup {
    html! {
        section.card role="status" aria-labelledby="done" {
            h2 #done { (words::count(done.redriven, "dead letter")) " tried again" }
            @if done.refused > 0 { p { (words::count(done.refused, "dead letter")) " could not be, or failed again, and stayed." } }
            @if !done.reasons.is_empty() {
                ul { @for why in &done.reasons { li { code { (why.letter) } ": " span.message { (why.detail) } " (" (why.code) ")" } } }
            }
            @if done.more { p { "The time was over before all were tried. Redrive those that are left, or use the command line." } }
        }
    }
}

/// One kind after the other, at a click.
fn chips(asked: &Asked) -> Markup {
    let chip = |kind: Option<LetterKind>| {
        let kind_name = kind.map(|kind| kind.as_str().to_string());
        let current = (asked.kind == kind_name).then_some("true");
        let link = Asked { kind: kind_name, cursor: None, ..asked.clone() }.link();
        let name = match kind {
            None => "All",
            Some(LetterKind::Step) => "Steps",
            Some(LetterKind::Expiry) => "Expiries",
            Some(LetterKind::Message) => "Messages",
        };
        html! { a.chip href=(link) aria-current=[current] { (name) } }
    };
    html! {
        nav.chips aria-label="Kind" { (chip(None)) @for kind in LetterKind::ALL { (chip(Some(kind))) } }
    }
}

fn form(asked: &Asked, names: &[String]) -> Markup {
    let other = asked.workflow.as_ref().filter(|name| !names.contains(name));
    let text = |name: &str, label: &str, value: &Option<String>| {
        html! { label { span { (label) } input name=(name) value=[value] placeholder="Any" autocomplete="off" spellcheck="false"; } }
    };
    html! {
        form.filters method="get" action="/letters" role="search" {
            @if let Some(kind) = &asked.kind { input type="hidden" name="kind" value=(kind); }
            label { span { "Workflow" }
                select name="workflow" {
                    option value="" { "Any" }
                    @for name in names.iter().chain(other) {
                        option value=(name) selected[asked.workflow.as_ref() == Some(name)] { (name) }
                    }
                }
            }
            (text("route", "Route", &asked.route))
            (text("keyPrefix", "Keys that begin with", &asked.key_prefix))
            label { span { "Class" }
                select name="class" {
                    option value="" { "Any" }
                    @for class in [Class::Transient, Class::Permanent, Class::Poison].map(Class::as_str) {
                        option value=(class) selected[asked.class.as_deref() == Some(class)] { (class) }
                    }
                }
            }
            label { span { "Code" }
                select name="code" {
                    option value="" { "Any" }
                    @for code in Code::ALL.iter().map(|code| code.as_str()) {
                        option value=(code) selected[asked.code.as_deref() == Some(code)] { (code) }
                    }
                }
            }
            (text("tenant", "Tenant", &asked.tenant))
            button type="submit" { "Filter" }
            @if asked.is_refined() { a.clear href=(Asked { kind: asked.kind.clone(), ..Asked::default() }.link()) { "Clear" } }
        }
    }
}

fn nothing(asked: &Asked) -> Markup {
    html! {
        div.nothing {
            @if asked.parts().is_empty() && asked.cursor.is_none() {
                h2 { "No dead letters" } p { "Nothing waits for a person here." }
            } @else {
                h2 { "No such dead letters" } p { "Nothing fits these filters now. What begins to fit appears here by itself." }
            }
        }
    }
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
                        (words::sentence(kind.as_str())) " " code { (request) } " on route "
                        a href=(Asked { route: Some(route.to_string()), ..Asked::default() }.link()) { (route) } " "
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
