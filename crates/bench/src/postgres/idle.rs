//! What runs that sleep cost the database while nobody asks for anything.

use super::instances::Instance;
use super::transactions;
use crate::report::{Measured, Report};
use anyhow::Result;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::time::Duration;
use steadfast::{Clock, SystemClock};
use steadfast_test_servers::PostgresServer;

pub(super) async fn measure(report: &Report, server: &PostgresServer, quick: bool) -> Result<()> {
    let (runs, seconds) = if quick { (5_000, 10) } else { (100_000, 60) };
    let database = server.database();
    let here = Instance::start(&server.url(&database)).await?;
    let engine = here.engine.clone();
    let start = |_| async { engine.start("sleeps", &()).await.map(drop) };
    stream::iter(0..runs).map(start).buffer_unordered(512).try_collect::<()>().await?;
    SystemClock.sleep(Duration::from_secs(15)).await; // what is under way comes to rest, and those who were busy say how much they did
    let (before, begun) = (transactions(server, &database).await?, SystemClock.now());
    SystemClock.sleep(Duration::from_secs(seconds)).await;
    let (after, took) = (transactions(server, &database).await?, SystemClock.now().saturating_since(begun));
    let per_s = (after - before - 1.0).max(0.0) / took.as_secs_f64(); // one was the question itself
    report.say(&Measured::value("idle-queries", per_s, format!("queries per second, with {runs} runs that sleep")))?;
    drop(engine);
    here.stop().await;
    Ok(())
}
