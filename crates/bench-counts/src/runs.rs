//! Starts runs in memory and waits for their results, one after another.

use crate::region::in_virtual_time;
use anyhow::Result;
use std::ops::Range;
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Ctx, Engine, Failure, Policy, VirtualClock, workflow};

pub(crate) fn one_step(operations: u32) -> Result<()> {
    in_virtual_time(operations, engine, async |engine, runs| repeat(engine, runs, "steps", 1).await)
}

pub(crate) fn ten_steps(operations: u32) -> Result<()> {
    in_virtual_time(operations, engine, async |engine, runs| repeat(engine, runs, "steps", 10).await)
}

/// A step that fails once and succeeds at its second attempt.
pub(crate) fn retry(operations: u32) -> Result<()> {
    in_virtual_time(operations, engine, async |engine, runs| repeat(engine, runs, "retried", 1).await)
}

async fn engine() -> Result<Engine> {
    on(Memory::new()).await
}

/// An engine with the workflows of this file.
pub(crate) async fn on(store: Memory) -> Result<Engine> {
    Ok(Engine::on(store).clock(VirtualClock::start()).register(steps).register(retried).start().await?)
}

/// The id of the nth run.
pub(crate) fn id(number: u32) -> String {
    format!("run-{number:08}")
}

async fn repeat(engine: &Engine, runs: Range<u32>, workflow: &str, input: u32) -> Result<()> {
    for number in runs {
        let run = engine.start(workflow, &input).id(id(number)).await?;
        run.result::<u32>().await?;
    }
    Ok(())
}

/// So many steps, one after another.
#[workflow]
async fn steps(ctx: Ctx, count: u32) -> Result<u32, Failure> {
    let mut sum = 0;
    for i in 0..count {
        sum += ctx.step("add", || async move { Ok::<_, Failure>(i) }).await?;
    }
    Ok(sum)
}

/// A step that fails so often and is repeated without delay.
#[workflow]
async fn retried(ctx: Ctx, failures: u32) -> Result<u32, Failure> {
    ctx.step("try", || {
        let ctx = ctx.clone();
        async move { if ctx.attempt() <= failures { Err(Failure::transient("not yet")) } else { Ok(ctx.attempt()) } }
    })
    .retry(Policy::constant(Duration::ZERO))
    .await
}
