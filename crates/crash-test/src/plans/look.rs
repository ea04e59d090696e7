//! What must be so when a process has been killed and the next one has begun, before anybody has it go on; and in the end.
#![allow(clippy::print_stdout, reason = "what is found is said on standard output")]

use super::noted::{self, Noted, is_asked, stages_done};
use super::{MS, PLANS, STAGES, TENANTS, plan_id, task_id, tenant_id};
use crate::{log, operator};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use steadfast::{Clock, Engine, Error, PlanInfo, PlanStatus, SystemClock, TaskInfo, TaskStatus};
use steadfast_kernel::plan::Cause;
use steadfast_store_embedded::Embedded;

/// How often it is looked whether a restart has seen to everything.
const LOOKS: u32 = 2000;

/// For how long nothing may happen by itself: several stages.
const STILL: std::time::Duration = MS.saturating_mul(15);

/// What a plan is, and its tasks; nothing if it was killed before it was created.
type Left = Option<(PlanInfo, Vec<TaskInfo>)>;

/// Checks what the processes before have left, by tenant. Says how many tasks there are of each status.
pub(super) async fn at_what_is_left(engine: &Engine, store: &Embedded, before: &[Noted]) -> Result<()> {
    let mut found = BTreeMap::new();
    for plan in 0..PLANS {
        is_seen_to(engine, plan, before).await?;
    }
    operator::quiet(engine, store).await?;
    SystemClock.sleep(STILL).await;
    for plan in 0..PLANS {
        let Some((info, tasks)) = left(engine, plan).await? else { continue };
        plan_is_as_left(&info, &tasks, before)?;
        for (tenant, task) in (0..).zip(&tasks) {
            *found.entry(task.status.as_str()).or_insert(0) += 1;
            if let Err(wrong) = is_as_left(task, &task_id(plan, tenant), before) {
                anyhow::bail!("{wrong}: {task:#?}\n{:#?}", engine.run(task.task.as_str())?.journal().await?);
            }
        }
    }
    has_lock_if_interrupted(engine).await?;
    let moved: Vec<Noted> = noted::now()?.into_iter().skip(before.len()).filter(|line| !is_asked(before, &line.task)).collect();
    ensure!(moved.is_empty(), "nobody wanted this: {moved:?}");
    for (status, tasks) in found {
        println!("found {status} {tasks}");
    }
    Ok(())
}

async fn left(engine: &Engine, plan: u32) -> Result<Left> {
    let info = match engine.plan_status(&plan_id(plan)).await {
        Err(error) if error.code() == "SF0124" => return Ok(None),
        info => info?,
    };
    let mut tasks = Vec::new();
    for tenant in 0..TENANTS {
        match task(engine, plan, tenant).await {
            Err(error) if error.code() == "SF0128" => {} // the plan is there, and has not told it yet
            found => tasks.push(found?),
        }
    }
    Ok(Some((info, tasks)))
}

async fn task(engine: &Engine, plan: u32, tenant: u32) -> Result<TaskInfo, Error> {
    engine.task_status_by_tenant(&tenant_id(plan, tenant)).await
}

/// Waits until the restart has seen to a plan and its tasks.
async fn is_seen_to(engine: &Engine, plan: u32, before: &[Noted]) -> Result<()> {
    let mut seen = None;
    for _ in 0..LOOKS {
        seen = left(engine, plan).await?;
        let Some((info, tasks)) = &seen else { return Ok(()) };
        let moves = |task: &&TaskInfo| task.status == TaskStatus::Running && !is_asked(before, task.task.as_str());
        if tasks.len() == TENANTS as usize && info.status != PlanStatus::Running && tasks.iter().find(moves).is_none() {
            return Ok(());
        }
        SystemClock.sleep(MS).await;
    }
    anyhow::bail!("the restart has not seen to {seen:#?}");
}

/// It waits for a person, unless it was never started or is done.
fn plan_is_as_left(plan: &PlanInfo, tasks: &[TaskInfo], before: &[Noted]) -> Result<()> {
    let is_good = match plan.status {
        PlanStatus::Paused => plan.cause == Some(Cause::Restart),
        PlanStatus::Created | PlanStatus::Ready => tasks.iter().all(|task| task.status == TaskStatus::Pending),
        PlanStatus::Completed => tasks.iter().all(|task| task.status == TaskStatus::Completed),
        _ => false,
    };
    let asked = tasks.iter().any(|task| is_asked(before, task.task.as_str()));
    ensure!(is_good || asked, "a restart pauses a plan that was under way: {plan:#?}");
    Ok(())
}

/// What the log says was done is on record, but for the stage that was under way.
fn is_as_left(task: &TaskInfo, id: &str, before: &[Noted]) -> Result<()> {
    ensure!(task.task.as_str() == id, "this is not {id}");
    if is_asked(before, id) {
        return Ok(()); // a person wanted it, so it may be anywhere from there on
    }
    let done = stages_done(before, id);
    match task.status {
        TaskStatus::Pending => ensure!(done == 0, "stage {done} was done"),
        TaskStatus::Completed => ensure!(done == STAGES, "only {done} stages were done"),
        TaskStatus::Interrupted => {
            let kept = task.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.index + 1);
            ensure!(done == kept || done == kept + 1, "{kept} stages are on record, {done} were done");
            ensure!(task.stage.as_ref().is_none_or(|(index, _)| *index == kept), "it stopped at the stage after its checkpoint");
            let data = task
                .checkpoint
                .as_ref()
                .map_or_else(|| Ok(BTreeMap::new()), |checkpoint| serde_json::from_slice(&checkpoint.data.bytes))?;
            let wanted: BTreeMap<String, String> = (0..kept).map(|stage| (format!("s{stage}"), task.tenant.to_string())).collect();
            ensure!(data == wanted, "the checkpoint has {data:?}");
        }
        _ => anyhow::bail!("it cannot be {} now", task.status.as_str()),
    }
    Ok(())
}

/// Every interrupted task has its tenant's lock, and only the tasks of their own tenants have locks.
async fn has_lock_if_interrupted(engine: &Engine) -> Result<()> {
    let locks = engine.locks().await?;
    let holders: BTreeMap<&str, &str> = locks.iter().map(|lock| (lock.tenant.as_str(), lock.lease.task.as_str())).collect();
    for plan in 0..PLANS {
        let Some((_, tasks)) = left(engine, plan).await? else { continue };
        for task in tasks {
            let holder = holders.get(task.tenant.as_str()).copied();
            ensure!(holder.is_none_or(|holder| holder == task.task.as_str()), "the lock of {} is with {holder:?}", task.tenant);
            let wanted = task.status == TaskStatus::Interrupted;
            ensure!(!wanted || (holder.is_some() && task.lock.is_some()), "nobody has the lock of {task:#?}");
            ensure!(task.status != TaskStatus::Completed || holder.is_none(), "the lock of {} is not free", task.tenant);
        }
    }
    Ok(())
}

/// Has a task go on that waits for a person.
pub(super) async fn retry_if_interrupted(engine: &Engine, plan: u32, tenant: u32) -> Result<()> {
    let id = tenant_id(plan, tenant);
    match task(engine, plan, tenant).await {
        Ok(info) if info.status == TaskStatus::Interrupted => {
            log::note_words(&format!("{} retry", task_id(plan, tenant)))?;
            engine.retry_task_by_tenant(&id, true).await.with_context(|| format!("retrying {info:#?}"))
        }
        Err(error) if error.code() != "SF0128" => Err(error.into()),
        _ => Ok(()),
    }
}

/// All tasks have completed, and no lock is left.
pub(super) async fn at_the_end(engine: &Engine) -> Result<()> {
    for (plan, tenant) in (0..PLANS).flat_map(|plan| (0..TENANTS).map(move |tenant| (plan, tenant))) {
        let task = task(engine, plan, tenant).await?;
        ensure!(task.status == TaskStatus::Completed, "{task:#?}");
    }
    let locks = engine.locks().await?;
    ensure!(locks.is_empty(), "these locks are not free: {locks:?}");
    Ok(())
}
