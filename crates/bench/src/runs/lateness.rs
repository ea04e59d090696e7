//! How long after its recorded due time a retry begins. The delays are longer than a commit, so the commit is not part of it.

use crate::report::{Measured, Report};
use anyhow::{Context, Result, ensure};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;
use steadfast::{Clock, Ctx, Engine, Event, Failure, Policy, SystemClock, Timestamp, workflow};

/// When second attempts began.
static BEGUN: LazyLock<Mutex<Vec<(String, Timestamp)>>> = LazyLock::new(Mutex::default);

/// The first attempt fails; the second notes when it began.
#[workflow]
pub(crate) async fn delayed(ctx: Ctx, delay_ms: u64) -> Result<(), Failure> {
    ctx.step("retry", || {
        let ctx = ctx.clone();
        async move {
            if ctx.attempt() == 1 {
                return Err(Failure::transient("the first attempt fails"));
            }
            let now = SystemClock.now();
            if let Ok(mut begun) = BEGUN.lock() {
                begun.push((ctx.run_id().to_string(), now));
            }
            Ok(())
        }
    })
    .retry(Policy::constant(Duration::from_millis(delay_ms)))
    .await
}

pub(crate) async fn measure(report: &Report, engine: &Engine, quick: bool) -> Result<()> {
    for (concurrency, times) in if quick { [(1, 40), (16, 20), (64, 10)] } else { [(1, 500), (16, 125), (64, 50)] } {
        at_once(report, engine, concurrency, times).await?;
    }
    Ok(())
}

async fn at_once(report: &Report, engine: &Engine, concurrency: usize, times: u64) -> Result<()> {
    let workers = (0..concurrency as u64).map(|worker| {
        let engine = engine.clone();
        tokio::spawn(async move {
            for i in 0..times {
                let delay_ms = 10 + (worker * 7 + i * 3) % 20;
                engine.start("delayed", &delay_ms).await?.result::<()>().await?;
            }
            anyhow::Ok(())
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await??;
    }
    let begun = std::mem::take(&mut *BEGUN.lock().map_err(|_| anyhow::anyhow!("a step panicked"))?);
    let mut late = Vec::new();
    for (run, at) in begun {
        let journal = engine.run(&run)?.journal().await?;
        let due = journal
            .iter()
            .find_map(|entry| if let Event::RetryScheduled { due_at, .. } = entry.event { Some(due_at) } else { None });
        let due = due.context("a run that was retried has a retry on record")?;
        ensure!(at >= due, "a retry began early");
        late.push(at.saturating_since(due));
    }
    report.say(
        &Measured { scenario: "retry-lateness", ..Measured::default() }
            .concurrency(concurrency)
            .percentiles(late),
    )
}
