//! `/messages`: who is connected, and what was sent and received.

use super::layout::{Page, Part};
use super::words;
use crate::app::App;
use crate::ask::{Nothing, Query};
use crate::shapes::{ConnectedNode, Messages};
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use std::sync::Arc;
use steadfast_kernel::Timestamp;
use steadfast_messaging::{Node, NodeCounts};

/// The most nodes that are listed.
const LISTED_MAX: usize = 200;

pub(super) async fn page(State(app): State<Arc<App>>, _: Query<Nothing>) -> Response {
    let node = app.door.as_ref().map(|door| &door.node);
    let content = html! {
        div.head { h1 { "Messages" } p.lead {
            @match node {
                Some(node) => { "Calls and tells between this server, whose node is called " code { (node.name()) } ", and other nodes." }
                None => "Calls and tells between this server and other nodes."
            }
        } }
        @match node {
            Some(node) => { (facts(&node.counts())) (routes(&node.routes())) (connected(node)) }
            None => { div.nothing { h2 { "No node" } p { "This server takes no messages." } } }
        }
    };
    Page { part: Part::Messages, title: "Messages".into(), follows: None, content }.respond(&app)
}

fn facts(counts: &NodeCounts) -> Markup {
    let NodeCounts { connections, requests, inbox, totals, .. } = counts;
    let known = inbox.running + inbox.finished;
    html! {
        dl.facts {
            (fact("Connected", html! { (words::count(*connections as u64, "node")) }))
            (fact("Under way here", html! { (words::count(*requests as u64, "request")) }))
            (fact("Received", both(totals.calls_received, totals.tells_received)))
            (fact("Sent", both(totals.calls, totals.tells)))
            (fact("Sent once more", html! { (words::count(totals.retries, "time")) }))
            (fact("Failed for good", both(totals.calls_failed, totals.tells_failed)))
            (fact("Dead letters", html! { a href="/letters" { (totals.letters) } " since the start" }))
            (fact("Inbox in memory", html! { (words::count(known as u64, "request")) ", " (bytes(inbox.bytes))
                @if inbox.forgotten_early > 0 { ", " (inbox.forgotten_early) " forgotten early" } }))
        }
    }
}

fn fact(name: &str, value: Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

fn both(calls: u64, tells: u64) -> Markup {
    html! { (words::count(calls, "call")) ", " (words::count(tells, "tell")) }
}

fn bytes(count: usize) -> String {
    match count {
        0..1024 => format!("{count} B"),
        1024..1_048_576 => format!("{} KiB", count / 1024),
        _ => format!("{} MiB", count / 1_048_576),
    }
}

fn routes(names: &[String]) -> Markup {
    html! {
        section.card aria-label="Routes" {
            h2 { "Routes" }
            @if names.is_empty() {
                p.fine { "Nobody can be called here. A definition with " code { "answers: true" } " answers calls to its name." }
            } @else {
                ul.line { @for name in names { li { span.tag { (name) } } } }
            }
        }
    }
}

fn connected(node: &Node) -> Markup {
    let now = words::now();
    let all = Messages::of(node, now).connections;
    if all.is_empty() {
        return html! { div.nothing { h2 { "Nobody is connected" } p { "Nodes connect at the address of this page." } } };
    }
    html! {
        table.runs.nodes {
            thead { tr { th scope="col" { "Node" } th scope="col" { "Address" } th scope="col" { "Known by" } th scope="col" { "Connected" } } }
            tbody { @for connected in all.iter().take(LISTED_MAX) { (line(connected, now)) } }
        }
        @if all.len() > LISTED_MAX { p.fine { "And " (words::count((all.len() - LISTED_MAX) as u64, "other")) "." } }
    }
}

fn line(connected: &ConnectedNode, now: Timestamp) -> Markup {
    html! {
        tr data-key={ "node " (connected.name) " " (connected.address) } {
            th.id scope="row" { code { (connected.name) } }
            td.workflow data-name="Address" { (connected.address) }
            td.state data-name="Known by" { (connected.known_by()) }
            td.when data-name="Connected" { (words::relative(connected.since.0, now)) }
        }
    }
}
