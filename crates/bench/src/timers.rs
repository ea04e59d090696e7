//! The timer keeper by itself: what pending timers take, how many are fired in a second, and how late.

use crate::memory;
use crate::report::{Measured, Report};
use anyhow::{Context, Result, ensure};
use std::sync::Arc;
use std::time::Duration;
use steadfast::{Clock, SystemClock, Timestamp};
use steadfast_kernel::{RunId, StepId, Timer, TimerName};
use steadfast_runtime::measure::Keeper;

/// A sleep of a run of its own, with an id as long as those that the engine makes.
fn timer(i: u64, due: Timestamp) -> Result<Timer> {
    let entity = RunId::new(format!("0199a8f2-7c1e-7d3a-9b2f-{i:012x}"))?.into();
    Ok(Timer { entity, name: TimerName::Sleep(StepId::sleep("", 1)), due, revision: 2 })
}

/// Bytes for each of a million timers that are due within the keeper's horizon, so that all of them are in memory.
pub(crate) async fn memory(report: &Report, quick: bool) -> Result<()> {
    let count: u64 = if quick { 200_000 } else { 1_000_000 };
    let mut keeper = Keeper::start(Arc::new(SystemClock));
    arm_and_wait(&mut keeper, 1, 60).await?; // what the keeper takes by itself
    let (bytes, outcome) = memory::count(arm_and_wait(&mut keeper, count, 60)).await;
    outcome?;
    report.say(&Measured::value("timers-memory", bytes as f64 / count as f64, format!("bytes per timer, of {count}")))
}

/// Arms timers that are due in a minute and the ones after, and waits until the keeper has them: what it was told last fires at once.
async fn arm_and_wait(keeper: &mut Keeper, count: u64, after_s: u64) -> Result<()> {
    let first = SystemClock.now().saturating_add(Duration::from_secs(after_s));
    for i in 0..count {
        let spread = Duration::from_micros(i * 7919 % 300_000_000); // over five minutes, and not in the order of their ids
        keeper.arm(timer(i, first.saturating_add(spread))?);
        if i % 1000 == 0 {
            tokio::task::yield_now().await;
        }
    }
    keeper.arm(timer(u64::from(u32::MAX), SystemClock.now())?);
    let fired = keeper.fired().await.context("the keeper is gone")?;
    keeper.settle(fired);
    Ok(())
}

pub(crate) async fn fired(report: &Report, quick: bool) -> Result<()> {
    all_at_once(report, if quick { 100_000 } else { 1_000_000 }).await?;
    steadily(report, if quick { 1_000 } else { 20_000 }).await
}

/// All of them are due at once.
async fn all_at_once(report: &Report, count: u64) -> Result<()> {
    let mut keeper = Keeper::start(Arc::new(SystemClock));
    let due = SystemClock.now().saturating_add(Duration::from_secs(if count > 200_000 { 8 } else { 2 }));
    for i in 0..count {
        keeper.arm(timer(i, due)?);
        if i % 1000 == 0 {
            tokio::task::yield_now().await;
        }
    }
    ensure!(SystemClock.now() < due, "it took too long to arm {count} timers");
    for _ in 0..count {
        let fired = keeper.fired().await.context("the keeper is gone")?;
        ensure!(SystemClock.now() >= fired.due, "a timer was fired early");
        keeper.settle(fired);
    }
    let took = SystemClock.now().saturating_since(due);
    report.say(&Measured::rate("timers-fired", count as f64 / took.as_secs_f64()))
}

/// A thousand in a second, one after another.
async fn steadily(report: &Report, count: u64) -> Result<()> {
    let mut keeper = Keeper::start(Arc::new(SystemClock));
    let first = SystemClock.now().saturating_add(Duration::from_millis(300));
    for i in 0..count {
        keeper.arm(timer(i, first.saturating_add(Duration::from_millis(i)))?);
    }
    let mut late = Vec::new();
    for _ in 0..count {
        let fired = keeper.fired().await.context("the keeper is gone")?;
        let now = SystemClock.now();
        ensure!(now >= fired.due, "a timer was fired early");
        late.push(now.saturating_since(fired.due));
        keeper.settle(fired);
    }
    report.say(&Measured::value("timers-fired", 1000.0, "due per second; how late they were").percentiles(late))
}
