//! Calls of a node over HTTP/2 on the loopback, beside what the wire alone gives and what a call of gRPC for each of them gives, all in one run.

use super::{echo, unary};
use crate::load::{Seen, Span, median, slice};
use crate::report::{Measured, Report};
use anyhow::{Result, anyhow};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Failure, Policy};
use steadfast_messaging::wire::memory::{Faults, Memory};
use steadfast_messaging::{Incoming, Node, Peer, Route};

/// How many bytes a request has.
const BYTES: usize = 200;

/// How many calls are on their way at once.
const IN_FLIGHT: usize = 128;

/// How far apart the two ends of a network that loses packets are.
const WAY: Duration = Duration::from_millis(5);

/// Calls, and their limits, to a node whose inbox is full, as it is after a while: each call forgets the oldest. Before that, what counts is how soon the
/// system gives memory.
pub(super) async fn measure(report: &Report, quick: bool) -> Result<()> {
    let slices = if quick { 1 } else { 5 };
    let span = span(quick);
    let payload = Bytes::from(vec![7; BYTES]);
    let (bank, shop) = (bind().await?, bind().await?);
    answer(&bank);
    let peer = Peer::at(format!("http://{}", bank.addr().ok_or_else(|| anyhow!("it listens"))?));
    while bank.counts().inbox.forgotten_early == 0 {
        called(&shop, &peer, "echo", &payload, None, span).await?;
    }
    let (mut calls, mut in_tasks, mut links, mut unaries) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..slices {
        links.push(echo::echo(payload.clone(), IN_FLIGHT, span.counted).await?);
        calls.push(called(&shop, &peer, "echo", &payload, None, span).await?);
        in_tasks.push(called(&shop, &peer, "in-tasks", &payload, None, span).await?);
        unaries.push(unary::echo(payload.clone(), IN_FLIGHT, span).await?);
    }
    let (link, unary) = (middle(links), middle(unaries));
    report.say(&Measured::rate("unary-grpc", unary).concurrency(IN_FLIGHT))?;
    for (calls, [scenario, cpu, ratio]) in
        [(calls, ["call-http2", "call-cpu", "call-to-unary"]), (in_tasks, ["call-in-tasks", "call-in-tasks-cpu", "call-in-tasks-to-unary"])]
    {
        let (per_s, cpu_us) = (median(&calls, |seen| seen.per_s()), median(&calls, |seen| seen.cpu_us()));
        let took = calls.into_iter().flat_map(|seen| seen.took).collect();
        report.say(&Measured::rate(scenario, per_s).concurrency(IN_FLIGHT).percentiles(took).limit(link))?;
        report.say(&Measured::value(cpu, cpu_us, "us of processor time per call, both ends"))?;
        report.say(&Measured::value(ratio, per_s / unary, "calls for each unary call of gRPC"))?;
    }
    Ok(())
}

/// What a call of gRPC for each of them gives, alone.
pub(super) async fn unary(report: &Report, quick: bool) -> Result<()> {
    let (slices, span) = (if quick { 1 } else { 5 }, span(quick));
    let mut unaries = Vec::new();
    for _ in 0..slices {
        unaries.push(unary::echo(Bytes::from(vec![7; BYTES]), IN_FLIGHT, span).await?);
    }
    report.say(&Measured::rate("unary-grpc", middle(unaries)).concurrency(IN_FLIGHT))
}

/// Calls over a network in memory that loses so many packets of a hundred.
pub(super) async fn lossy(report: &Report, scenario: &'static str, percent: u32, quick: bool) -> Result<()> {
    let network = Memory::new(7);
    let node = |name: &str| {
        Node::builder()
            .name(name)
            .wire(Arc::new(network.wire_of(name)))
            .build()
            .map_err(Failure::into_error)
    };
    let (bank, shop) = (node("bank")?, node("shop")?);
    answer(&bank);
    let (mut listener, accepting) = (network.listen("bank"), bank.clone());
    let listening = tokio::spawn(async move {
        while let Some(link) = listener.accept().await {
            drop(accepting.accept(link).await);
        }
    });
    network.set_everywhere(Faults { drop: f64::from(percent) / 100.0, delay: Some(WAY..=WAY), ..Faults::default() });
    let policy = Policy::constant(WAY).max_attempts(20).attempt_timeout(20 * WAY);
    let seen = called(&shop, &Peer::at("bank"), "echo", &Bytes::from(vec![7; BYTES]), Some(policy), span(quick)).await?;
    listening.abort();
    report.say(&Measured::rate(scenario, seen.per_s()).concurrency(IN_FLIGHT).percentiles(seen.took))
}

fn span(quick: bool) -> Span {
    let counted = Duration::from_millis(if quick { 1000 } else { 2000 });
    Span { warm_up: counted / 4, counted }
}

async fn bind() -> Result<Node> {
    Ok(Node::bind("127.0.0.1:0").await.map_err(Failure::into_error)?)
}

fn answer(node: &Node) {
    let echo = |incoming: Incoming| async move { Ok::<Bytes, Failure>(incoming.payload) };
    node.route("echo", echo);
    node.route_by("in-tasks", Route::new(echo).in_tasks());
}

/// By the policy that calls have, unless another one is named.
async fn called(node: &Node, peer: &Peer, route: &'static str, payload: &Bytes, policy: Option<Policy>, span: Span) -> Result<Seen> {
    let (node, peer, payload) = (node.clone(), peer.clone(), payload.clone());
    let call = move || {
        let call = node.call(&peer, route, payload.clone());
        let call = match &policy {
            Some(policy) => call.policy(policy.clone()),
            None => call,
        };
        async move {
            call.await.map_err(Failure::into_error)?;
            Ok(())
        }
    };
    slice(IN_FLIGHT, span, call).await
}

fn middle(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or_default()
}
