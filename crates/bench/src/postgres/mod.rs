//! Runs on PostgreSQL: what they cost the database, beside what a transaction for each step would.

mod baseline;
mod idle;
mod instances;
mod steps;

use crate::report::Report;
use anyhow::{Context, Result};
use idle::Idle;
pub(crate) use instances::child;
use std::time::Duration;
use steadfast::{Clock, Ctx, Failure, SystemClock, workflow};
use steadfast_test_servers::{PostgresOptions, PostgresServer};

/// What there is to measure.
pub(crate) const SCENARIOS: [&str; 5] = ["steps", "transactions-per-step", "idle-queries", "three-instances", "take-over"];

pub(crate) async fn run(report: &Report, only: Option<&str>, quick: bool) -> Result<()> {
    let wanted = |scenario: &str| only.is_none_or(|only| only == scenario);
    let more = vec![("max_connections".into(), "200".into())];
    let server = PostgresServer::start_with(PostgresOptions { more, ..PostgresOptions::default() });
    let idle = if wanted("idle-queries") { Some(Idle::begin(&server, quick).await?) } else { None };
    let idle = async {
        match idle {
            Some(idle) => idle.measure(report, &server).await,
            None => Ok(()),
        }
    };
    let others = async {
        if wanted("three-instances") {
            instances::three(report, &server, quick)?;
        }
        if wanted("steps") || wanted("transactions-per-step") {
            steps::measure(report, &server, quick).await?;
        }
        if wanted("take-over") {
            instances::take_over(report, &server, quick).await?;
        }
        anyhow::Ok(())
    };
    if quick {
        // What is idle has a database of its own in which it is counted, and takes next to nothing from the others.
        return tokio::try_join!(idle, others).map(drop);
    }
    idle.await?;
    others.await
}

/// How many transactions the database has seen since its start, once those who count them have said so.
async fn transactions(server: &PostgresServer, database: &str) -> Result<f64> {
    SystemClock.sleep(Duration::from_millis(2500)).await; // the server's processes say what they have done once in a second
    let sql = format!("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '{database}'");
    server
        .psql(database, &sql)
        .trim()
        .parse()
        .context("the database does not say how many transactions it has seen")
}

/// Sleeps for a day.
#[workflow]
async fn sleeps(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.sleep(steadfast::DAY).await
}
