//! Carries out plans of one task, and counts its stages.

use crate::region::in_virtual_time;
use anyhow::{Result, ensure};
use steadfast::{Engine, Failure, Plan, PlanStatus, Task, VirtualClock};

/// The number of stages of a plan, so that stages make up most of the count.
const STAGES: u32 = 20;

/// Operations are stages, so there is a plan for every 20 of them.
pub(crate) fn stage(operations: u32) -> Result<()> {
    in_virtual_time(operations, prepare, async |engine, stages| {
        for number in stages.step_by(STAGES as usize) {
            let plan = engine
                .create_plan("work")
                .id(format!("plan-{number:08}"))
                .tenants([format!("tenant-{number:08}")])
                .await?;
            plan.start().await?;
            ensure!(plan.ended().await?.status == PlanStatus::Completed, "a plan has failed");
        }
        Ok(())
    })
}

async fn prepare() -> Result<Engine> {
    let plan =
        (0..STAGES).fold(Plan::new("work"), |plan, number| plan.stage(format!("stage-{number}"), |_: Task| async { Ok::<_, Failure>(()) }));
    Ok(Engine::in_memory().clock(VirtualClock::start()).plan(plan).start().await?)
}
