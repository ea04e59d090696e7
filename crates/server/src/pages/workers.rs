//! `/workers`: the processes that host runs for this one.

use super::layout::{Page, Part};
use super::{run, words};
use crate::app::App;
use crate::ask::{Nothing, Query};
use crate::shapes::Worker;
use axum::extract::State;
use axum::response::Response;
use form_urlencoded::byte_serialize;
use maud::{Markup, html};
use std::sync::Arc;
use steadfast_kernel::Timestamp;

/// The most workers that are listed.
const LISTED_MAX: usize = 200;

/// The most workflows that are named of each.
const NAMED_MAX: usize = 10;

pub(super) async fn page(State(app): State<Arc<App>>, _: Query<Nothing>) -> Response {
    let (all, now) = (app.workers(), words::now());
    let content = html! {
        div.head { h1 { "Workers" } p.lead { "Processes that have the code of workflows, and host their runs for this server." } }
        @if all.is_empty() { (nobody()) } @else { (table(&all, now)) }
    };
    Page { part: Part::Workers, title: "Workers".into(), follows: None, content }.respond(&app)
}

fn nobody() -> Markup {
    html! {
        div.nothing {
            h2 { "No workers" }
            p { "A worker is a program of your own that is linked with the library and connects to the address of this page:" }
            pre { code { "Worker::of(address).name(\"w1\").register(workflow).start()" } }
            p { "There is one in " code { "examples/worker" } "; this starts it:" }
            (run::command("cargo run --example worker -- http://ADDRESS"))
            p.fine { "Runs of definitions are hosted by this server itself, and need none." }
        }
    }
}

fn table(all: &[Worker], now: Timestamp) -> Markup {
    html! {
        table.runs.workers {
            thead { tr {
                th scope="col" { "Worker" } th scope="col" { "Workflows" } th scope="col" { "Runs" } th scope="col" { "Connected" } th scope="col" { "Last heard" }
            } }
            tbody { @for worker in all.iter().take(LISTED_MAX) { (line(worker, now)) } }
        }
        @if all.len() > LISTED_MAX { p.fine { "And " (words::count((all.len() - LISTED_MAX) as u64, "other")) "." } }
    }
}

fn line(worker: &Worker, now: Timestamp) -> Markup {
    html! {
        tr data-key={ "worker " (worker.name) } {
            th.id scope="row" { code { (worker.name) } @if worker.draining { " " span.tag { "draining" } } }
            td.workflow data-name="Workflows" { (workflows(&worker.workflows)) }
            td.state data-name="Runs" { (worker.runs) " of " (worker.runs_max) }
            td.when data-name="Connected" { (words::relative(worker.since.0, now)) }
            td.when data-name="Last heard" { (words::relative(worker.heard_at.0, now)) }
        }
    }
}

fn workflows(names: &[String]) -> Markup {
    html! {
        @for (place, name) in names.iter().take(NAMED_MAX).enumerate() {
            @if place > 0 { ", " }
            @let query: String = byte_serialize(name.as_bytes()).collect();
            a href={ "/?workflow=" (query) } { (name) }
        }
        @if names.len() > NAMED_MAX { " and " (words::count((names.len() - NAMED_MAX) as u64, "other")) }
    }
}
