//! What runs that sleep cost the database while nobody asks for anything.

use super::instances::{Instance, LEASE};
use super::transactions;
use crate::report::{Measured, Report};
use anyhow::Result;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::time::Duration;
use steadfast::{Clock, SystemClock};
use steadfast_test_servers::PostgresServer;

/// How long a process of the server may take to say how much it has done, once it does nothing more.
const SAID_AFTER: Duration = Duration::from_secs(10);

/// An instance whose runs all sleep.
pub(super) struct Idle {
    here: Instance,
    database: String,
    runs: usize,
    /// How long what is under way may take to come to rest.
    rest: Duration,
    /// How long it is looked at, beside what counting takes: at least for a lease, in which everything happens that does without being asked for.
    time: Duration,
}

impl Idle {
    pub(super) async fn begin(server: &PostgresServer, quick: bool) -> Result<Self> {
        let (runs, rest, time_ms) = if quick { (5_000, 1, 7_500) } else { (100_000, 5, 60_000) };
        let database = server.database();
        let here = Instance::start(&server.url(&database), LEASE).await?;
        let start = |_| async { here.engine.start("sleeps", &()).await.map(drop) };
        stream::iter(0..runs).map(start).buffer_unordered(512).try_collect::<()>().await?;
        Ok(Idle { here, database, runs, rest: Duration::from_secs(rest), time: Duration::from_millis(time_ms) })
    }

    pub(super) async fn measure(self, report: &Report, server: &PostgresServer) -> Result<()> {
        let Idle { here, database, runs, rest, time } = self;
        SystemClock.sleep(SAID_AFTER + rest).await;
        let (before, begun) = (transactions(server, &database).await?, SystemClock.now());
        SystemClock.sleep(time).await;
        let (after, took) = (transactions(server, &database).await?, SystemClock.now().saturating_since(begun));
        let per_s = (after - before - 1.0).max(0.0) / took.as_secs_f64(); // one was the question itself
        let (seconds, lease) = (took.as_secs(), LEASE.as_secs());
        let unit = format!("queries per second over {seconds} s, with {runs} runs that sleep and a lease of {lease} s");
        report.say(&Measured::value("idle-queries", per_s, unit))?;
        here.stop().await;
        Ok(())
    }
}
