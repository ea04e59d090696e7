//! Runs on the embedded store.

mod commits;
mod lateness;
mod policy;
mod throughput;

use crate::limit::{self, Disk};
use crate::report::{Measured, Report};
use crate::{restart, timers};
use anyhow::{Context, Result};
use steadfast::{Ctx, Engine, Failure, workflow};

/// What there is to measure.
pub(crate) const SCENARIOS: [&str; 12] = [
    "fdatasync",
    "one-step",
    "ten-steps",
    "retry-once",
    "retry-three-times",
    "commits-one-step",
    "commits-ten-steps",
    "policy-unused",
    "retry-lateness",
    "timers-memory",
    "timers-fired",
    "restart",
];

pub(crate) async fn run(report: &Report, only: Option<&str>, quick: bool) -> Result<()> {
    let wanted = |scenario: &str| only.is_none_or(|only| only == scenario);
    let folder = tempfile::tempdir_in(".").context("the data folder belongs on a real disk, so it is made in this one")?;
    if wanted("fdatasync") {
        let took = limit::fdatasync(folder.path(), if quick { 200 } else { 2000 })?;
        report.say(&Measured { scenario: "fdatasync", ..Measured::default() }.percentiles(took))?;
    }
    let engine = Engine::open(folder.path().join("data"))?
        .register(steps)
        .register(throughput::retried)
        .register(policy::plain)
        .register(policy::with_policy)
        .register(lateness::delayed)
        .start()
        .await?;
    let disk = Disk::start(folder.path())?;
    for shape in throughput::SHAPES.iter().filter(|shape| wanted(shape.scenario)) {
        throughput::measure(report, &engine, &disk, shape, quick).await?;
    }
    for (scenario, count) in [("commits-one-step", 1), ("commits-ten-steps", 10)] {
        if wanted(scenario) {
            commits::measure(report, &engine, scenario, count).await?;
        }
    }
    if wanted("policy-unused") {
        policy::measure(report, &engine, quick).await?;
    }
    if wanted("retry-lateness") {
        lateness::measure(report, &engine, quick).await?;
    }
    engine.shutdown().await;
    if wanted("timers-memory") {
        timers::memory(report, quick).await?;
    }
    if wanted("timers-fired") {
        timers::fired(report, quick).await?;
    }
    if wanted("restart") {
        restart::measure(report, folder.path(), quick).await?;
    }
    Ok(())
}

/// So many steps, one after another, each of which does nothing.
#[workflow]
pub(crate) async fn steps(ctx: Ctx, count: u32) -> Result<u32, Failure> {
    let mut sum = 0;
    for i in 0..count {
        sum += ctx.step("add", || async move { Ok::<_, Failure>(i) }).await?;
    }
    Ok(sum)
}
