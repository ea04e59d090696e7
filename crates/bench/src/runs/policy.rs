//! What a retry policy costs that is not needed: the same step with one and without, in turns.

use crate::load::{self, Seen, Span, median};
use crate::report::{Measured, Report};
use anyhow::Result;
use std::time::Duration;
use steadfast::{Ctx, Engine, Failure, Jitter, Policy, workflow};

/// Enough for the processor, not the disk, to be what runs are made of.
const CONCURRENCY: usize = 64;

#[workflow]
pub(crate) async fn plain(ctx: Ctx, i: u32) -> Result<u32, Failure> {
    ctx.step("add", || async move { Ok::<_, Failure>(i) }).await
}

#[workflow]
pub(crate) async fn with_policy(ctx: Ctx, i: u32) -> Result<u32, Failure> {
    let policy = Policy::exponential(Duration::from_secs(1)).max_attempts(7).max_delay(Duration::from_secs(60));
    ctx.step("add", || async move { Ok::<_, Failure>(i) })
        .retry(policy.jitter(Jitter::Full).deadline(Duration::from_secs(600)))
        .await
}

/// A B B A, so that a machine that becomes slower does so for both.
pub(crate) async fn measure(report: &Report, engine: &Engine, quick: bool) -> Result<()> {
    let (rounds, ms) = if quick { (6, 50) } else { (20, 400) };
    let span = Span { warm_up: Duration::from_millis(ms / 5), counted: Duration::from_millis(ms) };
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        without.push(slice(engine, "plain", span).await?);
        with.push(slice(engine, "with_policy", span).await?);
        with.push(slice(engine, "with_policy", span).await?);
        without.push(slice(engine, "plain", span).await?);
    }
    let percent = |more: f64, than: f64| (more / than - 1.0) * 100.0;
    let measured = |value, unit: &str| Measured::value("policy-unused", value, unit).concurrency(CONCURRENCY);
    report.say(&measured(percent(median(&with, Seen::cpu_us), median(&without, Seen::cpu_us)), "%"))?;
    report.say(&measured(percent(median(&without, Seen::per_s), median(&with, Seen::per_s)), "% more runs/s without it"))
}

async fn slice(engine: &Engine, workflow: &'static str, span: Span) -> Result<Seen> {
    let engine = engine.clone();
    let run = move || {
        let engine = engine.clone();
        async move { Ok(engine.start(workflow, &1).await?.result::<u32>().await.map(drop)?) }
    };
    load::slice(CONCURRENCY, span, run).await
}
