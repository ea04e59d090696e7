//! How soon every interrupted task is listed and retried, from the start of an engine on the store that a crash has left.

use super::{TASKS, builder, stages, tenants};
use crate::report::{Measured, Report};
use anyhow::{Result, ensure};
use futures_util::{StreamExt, TryStreamExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use steadfast::{Clock, Failure, Plan, PlanStatus, SystemClock, TaskStatus};

/// The stage in which the process dies.
const DIES_IN: &str = "stage-5";

/// How many ask at once.
const AT_ONCE: usize = 50;

pub(super) async fn measure(report: &Report, folder: &Path, plans: usize) -> Result<()> {
    let tasks = plans * TASKS;
    let (hangs, hanging) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let engine = builder(folder)?.plan(hanging_in(&hangs, &hanging)).start().await?;
    for plan in 0..plans {
        engine.create_plan("work").id(format!("plan-{plan}")).tenants(tenants(plan)).await?.start().await?;
    }
    while hanging.load(Ordering::SeqCst) < tasks {
        SystemClock.sleep(Duration::from_millis(5)).await;
    }
    drop(engine); // as a crash would
    SystemClock.sleep(Duration::from_millis(500)).await; // the file is let go of

    hangs.store(false, Ordering::SeqCst);
    let began = SystemClock.now();
    let engine = builder(folder)?.plan(hanging_in(&hangs, &hanging)).start().await?;
    let tenants: Vec<String> = (0..plans).flat_map(tenants).collect();
    let retried = futures_util::stream::iter(&tenants).map(|tenant| {
        let engine = engine.clone();
        async move {
            while engine.task_status_by_tenant(tenant).await?.status != TaskStatus::Interrupted {
                SystemClock.sleep(Duration::from_millis(1)).await;
            }
            engine.retry_task_by_tenant(tenant, true).await?;
            anyhow::Ok(())
        }
    });
    retried.buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
    let took = SystemClock.now().saturating_since(began);
    for plan in 0..plans {
        let ended = engine.plan(&format!("plan-{plan}"))?.ended().await?;
        ensure!(ended.status == PlanStatus::Completed, "plan {plan} is {}", ended.status.as_str());
    }
    let done = SystemClock.now().saturating_since(began);
    let unit = format!("s until {tasks} tasks are listed and retried; {:.2} s until all have completed", done.as_secs_f64());
    report.say(&Measured::value("restart-and-retry", took.as_secs_f64(), unit))?;
    engine.shutdown().await;
    Ok(())
}

fn hanging_in(hangs: &Arc<AtomicBool>, hanging: &Arc<AtomicUsize>) -> Plan {
    stages().fold(Plan::new("work").max_concurrency(TASKS as u32), |plan, stage| {
        let (hangs, hanging, here) = (Arc::clone(hangs), Arc::clone(hanging), stage == DIES_IN);
        plan.stage(stage, move |_| {
            let (hangs, hanging) = (Arc::clone(&hangs), Arc::clone(&hanging));
            async move {
                if here && hangs.load(Ordering::SeqCst) {
                    hanging.fetch_add(1, Ordering::SeqCst);
                    SystemClock.sleep(Duration::from_secs(3600)).await;
                }
                Ok::<_, Failure>(())
            }
        })
    })
}
