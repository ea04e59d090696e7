//! What can be done on a page: a button for each, which opens what it needs to be told. They work without a script; what changes much asks whether one is sure.

use super::run::command;
use crate::ask::Command;
use crate::problem::Problem;
use axum::response::{IntoResponse, Response};
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use maud::{Markup, html};
use steadfast_kernel::Origin;

/// Who it is on record that wanted it.
const BY: &str = "console";

/// The longest reason that a form takes, in characters.
const REASON_MAX: &str = "1000";

/// Something that can be done.
pub(super) struct Deed {
    /// What the form says is to be done.
    pub(super) verb: &'static str,
    /// What it is about, where the address of the page does not say it: names of fields and their values.
    pub(super) about: Vec<(&'static str, String)>,
    /// What the button says.
    pub(super) name: &'static str,
    /// What follows from it.
    pub(super) what: &'static str,
    /// What one has to agree to, if it cannot be taken back.
    pub(super) sure: Option<String>,
    /// Whether a reason has to be given.
    pub(super) needs_reason: bool,
    /// The same on a command line.
    pub(super) command: String,
}

impl Deed {
    /// Something that can be taken back.
    pub(super) fn new(verb: &'static str, name: &'static str, what: &'static str, command: String) -> Self {
        Deed { verb, about: Vec::new(), name, what, sure: None, needs_reason: false, command }
    }

    /// Something that cannot.
    pub(super) fn grave(self, sure: String) -> Self {
        Deed { sure: Some(sure), ..self }
    }
}

/// All that can be done, with where it is sent.
pub(super) fn section(action: &str, deeds: &[Deed]) -> Markup {
    html! {
        @if !deeds.is_empty() {
            section.card aria-labelledby="act" {
                h2 #act { "What can be done" }
                div.deeds { @for deed in deeds { (form(action, deed)) } }
            }
        }
    }
}

/// One of them.
pub(super) fn form(action: &str, deed: &Deed) -> Markup {
    let about: String = deed.about.iter().map(|(_, value)| format!(" {value}")).collect();
    html! {
        details.deed.grave[deed.sure.is_some()] data-key={ "deed " (deed.verb) (about) } {
            summary.button { (deed.name) "…" }
            form method="post" action=(action) {
                p { (deed.what) }
                input type="hidden" name="verb" value=(deed.verb);
                @for (name, value) in &deed.about { input type="hidden" name=(name) value=(value); }
                label { span { "Reason" @if !deed.needs_reason { " (optional)" } ", kept on record" }
                    input name="reason" maxlength=(REASON_MAX) autocomplete="off" required[deed.needs_reason];
                }
                @if let Some(sure) = &deed.sure {
                    label.sure { input type="checkbox" name="sure" value="yes" required; span { (sure) } }
                }
                button type="submit" { (deed.name) }
                p.fine { "The same on the command line:" }
                (command(&deed.command))
            }
        }
    }
}

/// What goes on record with something that somebody wanted on a page.
pub(super) fn origin(command: Command, reason: Option<String>) -> Result<Origin, Problem> {
    let reason = reason.map(|reason| reason.trim().to_string());
    Ok(Origin { by: Some(BY.into()), ..command.because(reason)? })
}

/// Refuses what nobody has agreed to.
pub(super) fn is_sure(sure: Option<&str>) -> Result<(), Problem> {
    match sure {
        Some("yes") => Ok(()),
        _ => Err(Problem::bad_request("this cannot be taken back: go back, tick the box that says so, and send it again")),
    }
}

/// A reason where one is needed.
pub(super) fn reason(reason: Option<String>) -> Result<String, Problem> {
    let given = reason.filter(|reason| !reason.trim().is_empty());
    given.ok_or_else(|| Problem::bad_request("say why: a lock is broken for a reason, which is kept on record"))
}

/// Has the browser look at the page, as it is after what was done.
pub(super) fn see(page: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    HeaderValue::try_from(page).map(|page| response.headers_mut().insert(LOCATION, page)).ok();
    response
}
