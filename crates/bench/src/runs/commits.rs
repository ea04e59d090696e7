//! What a lone run costs in durable commits.

use crate::report::{Measured, Report};
use anyhow::Result;
use steadfast::Engine;

pub(crate) async fn measure(report: &Report, engine: &Engine, scenario: &'static str, steps: u32) -> Result<()> {
    const RUNS: u64 = 20;
    let before = engine.commits();
    for _ in 0..RUNS {
        engine.start("steps", &steps).await?.result::<u32>().await?;
    }
    report.say(&Measured::value(scenario, (engine.commits() - before) as f64 / RUNS as f64, "commits per run"))
}
