//! Plans for many tenants, by one process after the other. A person looks at what the last process has left, has it go on, and waits for the end.
//!
//! What a person wants of a task is written to the log before it is asked (`PROCESS TASK retry`), and what a stage does is written in the middle of its work (`PROCESS TASK STAGE`): what is
//! in the log after a kill has been done, and what is on record is in the log.
#![allow(clippy::print_stdout, reason = "what is acknowledged is said on standard output")]

mod look;
mod noted;

pub use noted::{Noted, What, read};

use crate::{log, operator};
use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use std::time::Duration;
use steadfast::{Clock, Config, Engine, Failure, Plan, PlanStatus, SystemClock, Task};
use steadfast_store_embedded::Embedded;

const MS: Duration = Duration::from_millis(1);

/// How many plans there are.
pub const PLANS: u32 = 10;

/// How many tenants each of them is for.
pub const TENANTS: u32 = 10;

/// How many stages each of them has.
pub const STAGES: u32 = 10;

/// How many tasks of a plan are under way at once: some always wait for their turn.
const AT_ONCE: u32 = 3;

/// The id of a plan.
pub fn plan_id(plan: u32) -> String {
    format!("plan-{plan}")
}

/// A tenant. It is part of one plan only.
pub fn tenant_id(plan: u32, tenant: u32) -> String {
    format!("t{plan}-{tenant}")
}

/// The task of a tenant.
pub fn task_id(plan: u32, tenant: u32) -> String {
    format!("{}/{}", plan_id(plan), tenant_id(plan, tenant))
}

/// Looks at what there is, has all of it go on, and waits until every plan has completed.
///
/// # Errors
/// If something is not as it must be.
pub async fn live(data: &str, process: u32) -> Result<()> {
    let before = noted::now()?;
    let store = Embedded::open(data)?;
    let engine = Engine::on(store.clone())
        .config(Config { snapshot_every: 5, ..Config::default() })
        .plan(plan())
        .start()
        .await?;
    tokio::select! {
        biased;
        () = operator::pulse(&engine) => {}
        done = see_to_all(&engine, &store, process, before) => done?,
    }
    engine.shutdown().await;
    println!("done");
    Ok(())
}

async fn see_to_all(engine: &Engine, store: &Embedded, process: u32, before: Vec<Noted>) -> Result<()> {
    if process > 1 {
        look::at_what_is_left(engine, store, &before).await?;
    }
    try_join_all((0..PLANS).map(|plan| see_to(engine, plan))).await?;
    operator::quiet(engine, store).await?;
    look::at_the_end(engine).await
}

/// Has a plan go on from wherever it is, and waits for its end.
async fn see_to(engine: &Engine, n: u32) -> Result<()> {
    let tenants = (0..TENANTS).map(|tenant| tenant_id(n, tenant));
    let plan = engine.create_plan("switch").id(plan_id(n)).tenants(tenants).max_concurrency(AT_ONCE).await?;
    for tenant in 0..TENANTS {
        look::retry_if_interrupted(engine, n, tenant).await?;
    }
    match plan.info().await?.status {
        PlanStatus::Created | PlanStatus::Ready => plan.start().why("the new gateway").await?,
        PlanStatus::Paused => plan.resume().why("the process was killed").await?,
        _ => {}
    }
    let ended = plan.ended().await?;
    ensure!(ended.status == PlanStatus::Completed, "{} has not completed: {ended:?}", plan_id(n));
    Ok(())
}

fn plan() -> Plan {
    (0..STAGES).fold(Plan::new("switch"), |plan, stage| plan.stage(format!("s{stage}"), work))
}

/// What it did is in the log before it is on record, with some time on both sides for a kill to come in.
async fn work(task: Task) -> Result<serde_json::Value, Failure> {
    SystemClock.sleep(MS).await;
    log::note_words(&format!("{}/{} {}", task.plan(), task.tenant(), task.stage()))?;
    SystemClock.sleep(2 * MS).await;
    Ok(serde_json::json!({ task.stage(): task.tenant() }))
}
