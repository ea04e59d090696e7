//! How many runs there are in a second, side by side, beside what the disk could have done in the same minute.

use crate::limit::{self, Disk};
use crate::load::{self, Seen, Span, median};
use crate::report::{Measured, Report};
use anyhow::{Result, ensure};
use std::sync::Arc;
use std::time::Duration;
use steadfast::{Ctx, Engine, Entry, Failure, Policy, workflow};
use steadfast_kernel::EntityId;

/// How many clients there are.
const CONCURRENCY: [usize; 5] = [1, 16, 64, 256, 1024];

/// A run that is made over and over.
pub(crate) struct Shape {
    pub(crate) scenario: &'static str,
    workflow: &'static str,
    /// Its input: how many steps, or how often its step fails.
    input: u32,
    /// How many attempts it makes; what came of each is on record.
    attempts: u32,
    /// What its processor time is called.
    cpu: Option<&'static str>,
}

pub(crate) const SHAPES: [Shape; 4] = [
    Shape { scenario: "one-step", workflow: "steps", input: 1, attempts: 1, cpu: Some("cpu-one-step") },
    Shape { scenario: "ten-steps", workflow: "steps", input: 10, attempts: 10, cpu: Some("cpu-ten-steps") },
    Shape { scenario: "retry-once", workflow: "retried", input: 1, attempts: 2, cpu: None },
    Shape { scenario: "retry-three-times", workflow: "retried", input: 3, attempts: 4, cpu: None },
];

/// A step that fails so often and is tried again at once.
#[workflow]
pub(crate) async fn retried(ctx: Ctx, failures: u32) -> Result<(), Failure> {
    ctx.step("try", || {
        let ctx = ctx.clone();
        async move { if ctx.attempt() <= failures { Err(Failure::transient("not yet")) } else { Ok(()) } }
    })
    .retry(Policy::constant(Duration::ZERO))
    .await
}

/// The machine is not always equally quick, so the engine and the disk are measured in turns.
pub(crate) async fn measure(report: &Report, engine: &Engine, disk: &Disk, shape: &Shape, quick: bool) -> Result<()> {
    let commits = Arc::new(commits_of(engine, shape).await?);
    for concurrency in CONCURRENCY {
        let (mut mine, mut limit) = (Vec::new(), Vec::new());
        let (slices, span) = slices(quick, concurrency);
        for _ in 0..slices {
            let (engine, workflow, input) = (engine.clone(), shape.workflow, shape.input);
            let run = move || {
                let engine = engine.clone();
                async move { Ok(engine.start(workflow, &input).await?.result::<serde_json::Value>().await.map(drop)?) }
            };
            mine.push(load::slice(concurrency, span, run).await?);
            let (disk, commits) = (disk.clone(), Arc::clone(&commits));
            let play = move || {
                let (disk, commits) = (disk.clone(), Arc::clone(&commits));
                async move { disk.play(&commits.0, &commits.1).await }
            };
            limit.push(load::slice(concurrency, span, play).await?);
        }
        let cpu_us = median(&mine, Seen::cpu_us) / f64::from(shape.attempts);
        let measured = Measured::rate(shape.scenario, median(&mine, Seen::per_s))
            .concurrency(concurrency)
            .limit(median(&limit, Seen::per_s));
        report.say(&measured.percentiles(mine.into_iter().flat_map(|slice| slice.took).collect()))?;
        if let Some(scenario) = shape.cpu {
            report.say(&Measured::value(scenario, cpu_us, "us CPU per step").concurrency(concurrency))?;
        }
    }
    Ok(())
}

/// How many slices there are of each, and how long they are. Many clients take longer to get into step.
fn slices(quick: bool, concurrency: usize) -> (u32, Span) {
    let ms = Duration::from_millis;
    match (quick, concurrency) {
        (true, ..256) => (4, Span { warm_up: ms(10), counted: ms(50) }),
        (true, _) => (4, Span { warm_up: ms(60), counted: ms(120) }),
        (false, ..256) => (10, Span { warm_up: ms(50), counted: ms(500) }),
        (false, _) => (6, Span { warm_up: ms(250), counted: ms(750) }),
    }
}

/// The commits of such a run, from the journal of one.
async fn commits_of(engine: &Engine, shape: &Shape) -> Result<(EntityId, Vec<Vec<Entry>>)> {
    let before = engine.commits();
    let run = engine.start(shape.workflow, &shape.input).await?;
    run.result::<serde_json::Value>().await?;
    let made = engine.commits() - before;
    let commits = limit::commits_of(&run.journal().await?);
    ensure!(commits.len() as u64 == made, "a lone {} made {made} commits, and its journal shows {}", shape.scenario, commits.len());
    Ok((run.id().into(), commits))
}
