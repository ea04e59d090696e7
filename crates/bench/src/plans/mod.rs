//! Plans on the embedded store: what they cost on Redis, what a stage loses to bookkeeping, and how soon a person has everything going again after a crash.

mod bookkeeping;
mod redis;
mod restart;

use crate::report::Report;
use anyhow::{Context, Result};
use std::path::Path;
use steadfast::{Engine, EngineBuilder};
use steadfast_store_embedded::Embedded;

/// What there is to measure.
pub(crate) const SCENARIOS: [&str; 3] = ["redis-commands", "bookkeeping", "restart-and-retry"];

/// How many tasks a plan has.
const TASKS: usize = 10;

/// How many stages a task has.
const STAGES: usize = 10;

pub(crate) async fn run(report: &Report, only: Option<&str>, quick: bool) -> Result<()> {
    let wanted = |scenario: &str| only.is_none_or(|only| only == scenario);
    let folder = tempfile::tempdir_in(".").context("the data folder belongs on a real disk, so it is made in this one")?;
    let plans = if quick { 20 } else { 100 };
    if wanted("redis-commands") {
        redis::measure(report, &folder.path().join("redis"), plans).await?;
    }
    if wanted("bookkeeping") {
        bookkeeping::measure(report, &folder.path().join("bookkeeping"), plans).await?;
    }
    if wanted("restart-and-retry") {
        restart::measure(report, &folder.path().join("restart"), plans).await?;
    }
    Ok(())
}

fn builder(folder: &Path) -> Result<EngineBuilder> {
    Ok(Engine::on(Embedded::open(folder)?))
}

/// The tenants of the nth plan.
fn tenants(plan: usize) -> impl Iterator<Item = String> {
    (0..TASKS).map(move |task| format!("p{plan}-t{task}"))
}

/// The names of the stages.
fn stages() -> impl Iterator<Item = String> {
    (1..=STAGES).map(|stage| format!("stage-{stage}"))
}
