//! Steps per second, how many transactions each of them takes, and how many there are if each has one of its own.

use super::instances::{Instance, LEASE};
use super::{baseline, transactions};
use crate::load::{Seen, Span, median, slice};
use crate::report::{Measured, Report};
use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use steadfast_test_servers::PostgresServer;

/// How many runs there are at once.
const RUNS: usize = 256;

/// How many steps a run has.
const STEPS: u32 = 10;

/// What is asked for: so many transactions for a step at the most.
const ALLOWED: f64 = 0.05;

pub(super) async fn measure(report: &Report, server: &PostgresServer, quick: bool) -> Result<()> {
    let database = server.database();
    let here = Instance::start(&server.url(&database), LEASE).await?;
    let engine = here.engine.clone();
    let one = engine.start("steps", &STEPS).await?;
    one.result::<u32>().await?;
    let counted = Duration::from_secs(if quick { 1 } else { 4 });
    let (slices, span) = (if quick { 1 } else { 3 }, Span { warm_up: counted / 4, counted });
    let begun = transactions(server, &database).await?;
    let (mut mine, mut theirs, runs) = (Vec::new(), Vec::new(), Arc::new(AtomicU64::new(0)));
    for _ in 0..slices {
        let (engine, runs) = (engine.clone(), Arc::clone(&runs));
        let run = move || {
            let (engine, runs) = (engine.clone(), Arc::clone(&runs));
            async move {
                engine.start("steps", &STEPS).await?.result::<u32>().await?;
                runs.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        };
        mine.push(slice(RUNS, span, run).await?);
        theirs.push(baseline::measure(server, &one, RUNS, span).await?);
    }
    let made = transactions(server, &database).await? - begun;
    let steps = runs.load(Ordering::Relaxed) as f64 * f64::from(STEPS);
    let per_s = median(&mine, Seen::per_s) * f64::from(STEPS);
    let one_each = median(&theirs, Seen::per_s);
    let took = mine.into_iter().flat_map(|slice| slice.took).collect();
    report.say(&Measured::rate("steps", per_s).concurrency(RUNS).percentiles(took))?;
    report.say(&Measured::rate("one-each", one_each).concurrency(RUNS))?;
    report.say(&Measured::value("steps-to-one-each", per_s / one_each, "steps for each with a transaction of its own"))?;
    let per_step = made / steps;
    report.say(&Measured {
        value: Some((per_step * 1e4).round() / 1e4),
        ratio: Some((per_step / ALLOWED * 100.0).round() / 100.0),
        ..Measured::value("transactions-per-step", per_step, format!("transactions per step, of {ALLOWED} that are allowed"))
    })?;
    drop(engine);
    here.stop().await;
    Ok(())
}
