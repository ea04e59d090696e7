//! A workflow that is hosted by a worker, beside the same workflow in the process that has the store.

use crate::load::{Seen, Span, median, slice};
use crate::report::{Measured, Report};
use anyhow::{Context, Result, anyhow};
use std::time::Duration;
use steadfast::messages::Node;
use steadfast::worker::Worker;
use steadfast::{Ctx, Engine, Failure, workflow};

/// How many clients start runs and wait for them.
const CLIENTS: usize = 128;

#[workflow]
async fn one_step(ctx: Ctx, number: u32) -> Result<u32, Failure> {
    ctx.step("add", || async move { Ok::<_, Failure>(number + 1) }).await
}

/// Both in turns, on stores of their own on the same disk.
pub(super) async fn measure(report: &Report, quick: bool) -> Result<()> {
    let folder = tempfile::tempdir_in(".").context("the data folder belongs on a real disk, so it is made in this one")?;
    let here = Engine::open(folder.path().join("here"))?.register(one_step).start().await?;
    let there = Engine::open(folder.path().join("there"))?
        .messages(Node::builder().name("server"))
        .workers()
        .start()
        .await?;
    let node = there.node().ok_or_else(|| anyhow!("it has a node"))?;
    let addr = node.listen("127.0.0.1:0", Default::default()).await.map_err(Failure::into_error)?;
    let worker = Worker::of(format!("http://{addr}")).name("worker").runs_max(10_000).register(one_step).start();
    let worker = worker.await.map_err(Failure::into_error)?;
    while there.workers().is_empty() {
        tokio::task::yield_now().await;
    }
    let counted = Duration::from_millis(if quick { 1000 } else { 2000 });
    let span = Span { warm_up: counted / 4, counted };
    let (mut local, mut remote) = (Vec::new(), Vec::new());
    for _ in 0..if quick { 1 } else { 5 } {
        local.push(runs(&here, span).await?);
        remote.push(runs(&there, span).await?);
    }
    let limit = median(&local, Seen::per_s);
    let took = remote.iter_mut().flat_map(|seen| std::mem::take(&mut seen.took)).collect();
    let per_s = median(&remote, Seen::per_s);
    report.say(&Measured::rate("remote-worker", per_s).concurrency(CLIENTS).percentiles(took).limit(limit))?;
    report.say(&Measured::value("remote-worker-cpu", median(&remote, Seen::cpu_us), "us of processor time per run, both ends"))?;
    worker.drain().await;
    here.shutdown().await;
    there.shutdown().await;
    Ok(())
}

async fn runs(engine: &Engine, span: Span) -> Result<Seen> {
    let engine = engine.clone();
    let run = move || {
        let engine = engine.clone();
        async move {
            engine.start("one_step", &1).await?.result::<u32>().await?;
            Ok(())
        }
    };
    slice(CLIENTS, span, run).await
}
