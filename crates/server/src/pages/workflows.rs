//! `/workflows`: what can be started here.

use super::layout::{Page, Part};
use super::{data, run, words};
use crate::app::App;
use crate::ask::{Nothing, Query};
use crate::shapes::Workflow;
use axum::extract::State;
use axum::response::Response;
use form_urlencoded::byte_serialize;
use maud::{Markup, html};
use std::sync::Arc;
use steadfast_kernel::Timestamp;

pub(super) async fn page(State(app): State<Arc<App>>, _: Query<Nothing>) -> Response {
    let (all, now) = (app.workflows(), words::now());
    let content = html! {
        div.head { h1 { "Workflows" } p.lead { "What can be started here, from definitions, from code and from workers." } }
        @if all.is_empty() {
            div.nothing { h2 { "No workflows" } p { "Put a definition into the definitions folder, or register one in code." } }
        }
        ul.workflows { @for workflow in &all { (card(workflow, now)) } }
    };
    Page { part: Part::Workflows, title: "Workflows".into(), follows: None, content }.respond(&app)
}

fn card(workflow: &Workflow, now: Timestamp) -> Markup {
    let query: String = byte_serialize(workflow.name.as_bytes()).collect();
    html! {
        li.card data-key={ "workflow " (workflow.name) } {
            div.line {
                h2 { (workflow.name) }
                span.tag { "from " (workflow.source) }
                @if workflow.recovery == "manual" { span.tag { "a person decides after a crash" } }
                @if let Some(slots) = workflow.slots { span.tag { (words::count(slots.into(), "run")) " at once" } }
                @match &workflow.plan {
                    Some(_) => { span.tag { "plan" } a href={ "/plans?definition=" (query) } { "Its plans" } }
                    None => { a href={ "/?workflow=" (query) } { "Its runs" } }
                }
            }
            @if let Some(description) = &workflow.description { p { (description) } }
            @if !workflow.steps.is_empty() {
                ol.names { @for step in &workflow.steps { li { code { (step) } } } }
            }
            @if let Some(input) = &workflow.input { (data::fold("input", "Input", input, "/v1/workflows")) }
            @if let Some(newest) = workflow.versions.first() {
                p.fine { "Version " code title=(newest.hash) { (short(&newest.hash)) } ", kept " (words::relative(newest.kept_at.0, now))
                    @if workflow.versions.len() > 1 { ", after " (words::count(workflow.versions.len() as u64 - 1, "earlier version")) } "." }
            }
            @match &workflow.plan {
                Some(_) => { (run::command(&format!("steadfast plan apply {} --tenant TENANT", workflow.name))) }
                None => { (run::command(&format!("steadfast run start {} --input '{{}}'", workflow.name))) }
            }
        }
    }
}

/// Enough of a hash to tell it from others.
pub(super) fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
