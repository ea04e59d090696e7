//! The server: how many runs a second it starts and waits for, beside the same workflow without HTTP in the same minute; what those cost who follow the feed; how soon it is
//! there, and with how much memory.

mod client;
mod embedded;
mod served;

use crate::load::{self, Seen, Span, median};
use crate::report::{Measured, Report};
use anyhow::{Context, Result, ensure};
use client::{Client, Pool};
use served::Served;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use steadfast::{Clock, SystemClock};

pub(crate) const SCENARIOS: [&str; 4] = ["start-and-wait", "feed-readers", "start-up", "rss-idle"];

/// How many ask at once.
const CLIENTS: usize = 64;

/// How many follow the feed, a run each.
const READERS: usize = 1000;

/// The workflow, in the two ways in which it is measured.
const ONE_STEP: &str =
    "workflow: one-step\nsteps:\n  - { name: add, set: { sum: \"{{ input.a + 1 }}\" } }\noutput: \"{{ steps.add.output }}\"\n";

/// What readers follow: nothing happens to it meanwhile.
const ASLEEP: &str = "workflow: asleep\nsteps:\n  - { name: rest, wait: 24h }\n";

/// How long an idle server is left alone before its memory is looked at.
const IDLE: Duration = Duration::from_secs(2);

pub(crate) async fn run(report: &Report, only: Option<&str>, quick: bool) -> Result<()> {
    let binary = PathBuf::from(
        std::env::var_os("BENCH_BINARY").context("BENCH_BINARY does not say where the binary is; use cargo xtask bench http")?,
    );
    let wanted = |scenario: &str| only.is_none_or(|only| only == scenario);
    if wanted("start-and-wait") {
        start_and_wait(report, &binary, quick).await?;
    }
    if wanted("feed-readers") {
        feed_readers(report, &binary, quick).await?;
    }
    if wanted("start-up") {
        start_up(report, &binary, quick).await?;
    }
    if wanted("rss-idle") {
        let served = Served::start(&binary, &[]).await?;
        SystemClock.sleep(IDLE).await;
        report.say(&Measured::value("rss-idle", served.rss_mib()?, "MiB"))?;
    }
    Ok(())
}

/// By turns with and without HTTP, since the machine is not always equally quick.
async fn start_and_wait(report: &Report, binary: &std::path::Path, quick: bool) -> Result<()> {
    let served = Served::start(binary, &[("one-step.yaml", ONE_STEP)]).await?;
    let engine = embedded::start(ONE_STEP).await?;
    let pool = Pool::new(served.addr);
    let (mut over_http, mut within) = (Vec::new(), Vec::new());
    let (slices, span) = slices(quick);
    for _ in 0..slices {
        over_http.push(ask(&pool, span).await?);
        let engine = engine.clone();
        within.push(load::slice(CLIENTS, span, move || embedded::run(engine.clone())).await?);
    }
    let measured = Measured::rate("start-and-wait", median(&over_http, Seen::per_s))
        .concurrency(CLIENTS)
        .limit(median(&within, Seen::per_s));
    report.say(&measured.percentiles(over_http.into_iter().flat_map(|slice| slice.took).collect()))
}

/// By turns with and without those who follow.
async fn feed_readers(report: &Report, binary: &std::path::Path, quick: bool) -> Result<()> {
    let served = Served::start(binary, &[("one-step.yaml", ONE_STEP), ("asleep.yaml", ASLEEP)]).await?;
    let pool = Pool::new(served.addr);
    let mut client = Client::connect(served.addr).await?;
    for number in 0..READERS {
        let body = format!("{{\"workflow\":\"asleep\",\"id\":\"asleep-{number}\",\"input\":null}}");
        ensure!(client.post("/v1/runs", &body).await? == 201, "a run to be followed was not started");
    }
    let (mut alone, mut followed) = (Vec::new(), Vec::new());
    let (slices, span) = slices(quick);
    for _ in 0..slices {
        alone.push(ask(&pool, span).await?);
        let mut readers = Vec::with_capacity(READERS);
        for number in 0..READERS {
            let mut reader = Client::connect(served.addr).await?;
            reader.follow(&format!("asleep-{number}")).await?;
            readers.push(reader);
        }
        followed.push(ask(&pool, span).await?);
    }
    let measured = Measured::rate("feed-readers", median(&followed, Seen::per_s))
        .concurrency(READERS)
        .limit(median(&alone, Seen::per_s));
    report.say(&measured.percentiles(followed.into_iter().flat_map(|slice| slice.took).collect()))
}

/// Starts a run and waits for it, over and over.
async fn ask(pool: &Arc<Pool>, span: Span) -> Result<Seen> {
    let pool = Arc::clone(pool);
    load::slice(CLIENTS, span, move || {
        let pool = Arc::clone(&pool);
        async move {
            let mut client = pool.take().await?;
            let status = client.post("/v1/runs", "{\"workflow\":\"one-step\",\"input\":{\"a\":1},\"waitMs\":60000}").await?;
            ensure!(status == 201, "the server answered {status}");
            pool.give_back(client);
            Ok(())
        }
    })
    .await
}

/// From the start of the process to its first answer.
async fn start_up(report: &Report, binary: &std::path::Path, quick: bool) -> Result<()> {
    let mut took = Vec::new();
    for _ in 0..if quick { 5 } else { 20 } {
        took.push(Served::start(binary, &[]).await?.took);
    }
    took.sort();
    let median = took[took.len() / 2];
    report.say(&Measured::value("start-up", median.as_secs_f64() * 1e3, "ms to the first answer").percentiles(took))
}

fn slices(quick: bool) -> (u32, Span) {
    let ms = Duration::from_millis;
    if quick { (3, Span { warm_up: ms(100), counted: ms(300) }) } else { (8, Span { warm_up: ms(200), counted: ms(1000) }) }
}
