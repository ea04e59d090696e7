//! What lies between the end of a stage and the beginning of the next one, beside what one durable commit takes at the same time.

use super::{STAGES, TASKS, builder, stages, tenants};
use crate::report::{Measured, Report};
use anyhow::{Result, ensure};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::{Clock, Engine, Failure, Plan, PlanStatus, SystemClock, Task, Timestamp};

/// How long a stage works.
const WORK: Duration = Duration::from_millis(250);

/// How often it is measured what a commit takes.
const PROBE_EVERY: Duration = Duration::from_millis(10);

/// When stages began and ended: task, which stage, begun, ended.
type Worked = Arc<Mutex<Vec<(String, String, Timestamp, Timestamp)>>>;

pub(super) async fn measure(report: &Report, folder: &Path, plans: usize) -> Result<()> {
    let worked = Worked::default();
    let engine = builder(folder)?.plan(working(&worked)).start().await?;
    let mut handles = Vec::new();
    for plan in 0..plans {
        handles.push(engine.create_plan("work").id(format!("plan-{plan}")).tenants(tenants(plan)).await?);
    }
    let probes = tokio::spawn(probe(engine.clone(), worked.clone(), plans * TASKS * STAGES));
    for plan in &handles {
        plan.start().await?;
    }
    for plan in &handles {
        ensure!(plan.ended().await?.status == PlanStatus::Completed, "a plan has failed");
    }
    let commits = probes.await??;
    let (gaps, stages) = gaps(&worked)?;
    ensure!(stages == plans * TASKS * STAGES, "{stages} stages were done");
    let gap = Measured { scenario: "bookkeeping", ..Measured::default() }
        .concurrency(plans * TASKS)
        .percentiles(gaps);
    let commit = Measured::default().percentiles(commits);
    let beyond = gap.p50_ms.unwrap_or_default() - commit.p50_ms.unwrap_or_default();
    let unit = format!("ms median beyond one durable change, which takes {} ms meanwhile", commit.p50_ms.unwrap_or_default());
    report.say(&Measured { value: Some((beyond * 1e3).round() / 1e3), unit: Some(unit), ..gap })?;
    engine.shutdown().await;
    Ok(())
}

fn working(worked: &Worked) -> Plan {
    stages().fold(Plan::new("work").max_concurrency(TASKS as u32), |plan, stage| {
        let worked = Arc::clone(worked);
        plan.stage(stage, move |task: Task| {
            let worked = Arc::clone(&worked);
            async move {
                let begun = SystemClock.now();
                SystemClock.sleep(WORK).await;
                let mut worked = worked.lock().map_err(|_| Failure::permanent("a stage panicked"))?;
                worked.push((task.tenant().to_string(), task.stage().to_string(), begun, SystemClock.now()));
                Ok::<_, Failure>(())
            }
        })
    })
}

/// What a small durable change takes while the stages are at work.
async fn probe(engine: Engine, worked: Worked, stages: usize) -> Result<Vec<Duration>> {
    let mut took = Vec::new();
    while worked.lock().is_ok_and(|worked| worked.len() < stages) {
        let begun = SystemClock.now();
        engine.put("probe", &took.len()).ttl(Duration::from_secs(3600)).await?;
        took.push(SystemClock.now().saturating_since(begun));
        SystemClock.sleep(PROBE_EVERY).await;
    }
    Ok(took)
}

/// The time between the stages of each task, and how many stages there were.
fn gaps(worked: &Worked) -> Result<(Vec<Duration>, usize)> {
    let worked = worked.lock().map_err(|_| anyhow::anyhow!("a stage panicked"))?;
    let mut tasks = BTreeMap::<&str, Vec<(Timestamp, Timestamp)>>::new();
    for (task, _, begun, ended) in worked.iter() {
        tasks.entry(task).or_default().push((*begun, *ended));
    }
    let mut gaps = Vec::new();
    for stages in tasks.values_mut() {
        stages.sort();
        gaps.extend(stages.windows(2).map(|pair| pair[1].0.saturating_since(pair[0].1)));
    }
    Ok((gaps, worked.len()))
}
