//! Runs on the embedded store: how many there are in a second, what they cost in commits, and how late retries are.

use crate::report::{Measured, Report};
use anyhow::{Context, Result, ensure};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;
use steadfast::{Clock, Ctx, Engine, Event, Failure, Policy, SystemClock, Timestamp, workflow};

const MS: Duration = Duration::from_millis(1);

/// When second attempts began.
static BEGUN: LazyLock<Mutex<Vec<(String, Timestamp)>>> = LazyLock::new(Mutex::default);

/// What there is to measure.
pub(crate) const SCENARIOS: [&str; 5] = ["one-step", "ten-steps", "commits-one-step", "commits-ten-steps", "retry-lateness"];

pub(crate) async fn run(report: &Report, only: Option<&str>, quick: bool) -> Result<()> {
    let wanted = |scenario: &str| only.is_none_or(|only| only == scenario);
    let folder = tempfile::tempdir_in(".").context("the data folder belongs on a real disk, so it is made in this one")?;
    let engine = Engine::open(folder.path())?.register(steps).register(retry_once).start().await?;
    for (scenario, count) in [("one-step", 1), ("ten-steps", 10)].into_iter().filter(|(scenario, _)| wanted(scenario)) {
        for concurrency in [1, 16, 64, 256, 1024] {
            let for_ms = if quick { 1000 } else { 5000 };
            side_by_side(report, &engine, scenario, count, concurrency, for_ms * MS).await?;
        }
    }
    for (scenario, count) in [("commits-one-step", 1), ("commits-ten-steps", 10)]
        .into_iter()
        .filter(|(scenario, _)| wanted(scenario))
    {
        commits(report, &engine, scenario, count).await?;
    }
    for concurrency in [1, 16, 64].into_iter().filter(|_| wanted("retry-lateness")) {
        let runs = if quick { 300 } else { 2000 };
        retry_lateness(report, &engine, concurrency, runs).await?;
    }
    engine.shutdown().await;
    Ok(())
}

#[workflow]
async fn steps(ctx: Ctx, count: u32) -> Result<u32, Failure> {
    let mut sum = 0;
    for i in 0..count {
        sum += ctx.step("add", || async move { Ok::<_, Failure>(i) }).await?;
    }
    Ok(sum)
}

/// Starts runs one after another, so many side by side, for that long; then waits for those under way.
async fn side_by_side(
    report: &Report,
    engine: &Engine,
    scenario: &'static str,
    count: u32,
    concurrency: usize,
    for_long: Duration,
) -> Result<()> {
    let begun = SystemClock.now();
    let workers = (0..concurrency).map(|_| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let mut took = Vec::new();
            while SystemClock.now().saturating_since(begun) < for_long {
                let started = SystemClock.now();
                engine.start("steps", &count).await?.result::<u32>().await?;
                took.push(SystemClock.now().saturating_since(started));
            }
            Ok::<_, steadfast::Error>(took)
        })
    });
    let mut took = Vec::new();
    for worker in workers.collect::<Vec<_>>() {
        took.extend(worker.await??);
    }
    let seconds = SystemClock.now().saturating_since(begun).as_secs_f64();
    let per_s = (took.len() as f64 / seconds).round();
    let measured = Measured { scenario, concurrency: Some(concurrency), per_s: Some(per_s), ..Measured::default() };
    report.say(&measured.percentiles(took))
}

/// How many durable commits a lone run costs.
async fn commits(report: &Report, engine: &Engine, scenario: &'static str, count: u32) -> Result<()> {
    const RUNS: u64 = 50;
    let before = engine.commits();
    for _ in 0..RUNS {
        engine.start("steps", &count).await?.result::<u32>().await?;
    }
    let value = (engine.commits() - before) as f64 / RUNS as f64;
    report.say(&Measured { scenario, value: Some(value), unit: Some("commits per run"), ..Measured::default() })
}

/// The first attempt fails; the second notes when it began.
#[workflow]
async fn retry_once(ctx: Ctx, delay_ms: u32) -> Result<(), Failure> {
    let mut first = true;
    ctx.step("retry", || {
        let (ctx, again) = (ctx.clone(), !std::mem::replace(&mut first, false));
        async move {
            if !again {
                return Err(Failure::transient("the first attempt fails"));
            }
            let now = SystemClock.now();
            if let Ok(mut begun) = BEGUN.lock() {
                begun.push((ctx.run_id().to_string(), now));
            }
            Ok(())
        }
    })
    .retry(Policy::constant(delay_ms * MS))
    .await
}

/// How long after its recorded due time a second attempt begins. The delays are longer than a commit, so the commit is not part of it.
async fn retry_lateness(report: &Report, engine: &Engine, concurrency: usize, runs: usize) -> Result<()> {
    let workers = (0..concurrency).map(|worker| {
        let engine = engine.clone();
        tokio::spawn(async move {
            for i in 0..runs.div_ceil(concurrency) {
                let delay_ms = 10 + ((worker * 7 + i * 3) % 20) as u32;
                engine.start("retry_once", &delay_ms).await?.result::<()>().await?;
            }
            Ok::<_, steadfast::Error>(())
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
    let measured = Measured { scenario: "retry-lateness", concurrency: Some(concurrency), ..Measured::default() };
    report.say(&measured.percentiles(late))
}
