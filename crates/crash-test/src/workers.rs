//! A server that has no code and workers that have it, each a process of its own. All of them are killed while steps are in flight.

use crate::log;
use anyhow::Result;
use futures_util::future::try_join_all;
use std::time::Duration;
use steadfast::messages::Node;
use steadfast::worker::{Worker, Workers};
use steadfast::{Clock, Config, Ctx, Engine, Failure, SystemClock, workflow};
use steadfast_store_embedded::Embedded;

/// How long a worker may be silent.
pub const HEARTBEAT: Duration = Duration::from_millis(1500);

/// How long an attempt takes.
pub const TAKES: Duration = Duration::from_millis(120);

/// The steps of a run.
pub const STEPS: [&str; 3] = ["load", "drive", "unload"];

#[workflow]
async fn carry(ctx: Ctx, number: u32) -> Result<u32, Failure> {
    for step in STEPS {
        ctx.step(step, || attempt(&ctx, step)).await?;
    }
    Ok(number)
}

/// Notes when it begins and when it is over, so that it shows if two of them overlap.
async fn attempt(ctx: &Ctx, step: &str) -> Result<(), Failure> {
    log::note(ctx, step)?;
    SystemClock.sleep(TAKES).await;
    log::note(ctx, &over(step))?;
    Ok(())
}

/// What is noted when that step is over.
pub fn over(step: &str) -> String {
    format!("{step}-over")
}

/// Starts the runs, and says `done` when all of them have ended. `PORT:RUNS`.
///
/// # Errors
/// If the port or the store cannot be had, or a run fails.
#[allow(clippy::print_stdout, reason = "who has started it waits for the word")]
pub async fn serve(data: &str, asked: &str) -> Result<()> {
    let (port, runs) = asked.split_once(':').ok_or_else(|| anyhow::anyhow!("a port and a number of runs"))?;
    let workers = Workers { heartbeat_max: HEARTBEAT, ..Workers::default() };
    let engine = Engine::on(Embedded::open(data)?)
        .config(Config { workers, ..Config::default() })
        .messages(Node::builder().name("depot"))
        .workers()
        .brought_by_workers("carry")
        .start()
        .await?;
    let node = engine.node().ok_or_else(|| anyhow::anyhow!("the engine has a node"))?;
    node.listen(&format!("127.0.0.1:{port}"), Default::default()).await.map_err(Failure::into_error)?;
    try_join_all((0..runs.parse::<u32>()?).map(async |number| {
        let run = engine.start("carry", &number).id(format!("parcel-{number}")).await?;
        run.result::<u32>().await
    }))
    .await?;
    println!("done");
    std::future::pending().await
}

/// Works for the server at that port until it is killed. `PORT:NAME`.
///
/// # Errors
/// If the server does not want it.
pub async fn work(asked: &str) -> Result<()> {
    let (port, name) = asked.split_once(':').ok_or_else(|| anyhow::anyhow!("a port and a name"))?;
    let worker = Worker::of(format!("http://127.0.0.1:{port}"))
        .name(name)
        .heartbeat(HEARTBEAT)
        .runs_max(2)
        .register(carry);
    let worker = worker.start().await.map_err(Failure::into_error)?;
    anyhow::bail!("the server does not want it: {}", worker.ended().await)
}
