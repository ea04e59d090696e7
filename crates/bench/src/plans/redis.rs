//! What plans cost on Redis: how many commands are sent for a plan, and in how many round trips.

use super::{STAGES, TASKS, stages, tenants};
use crate::report::{Measured, Report};
use anyhow::{Result, ensure};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use steadfast::{Clock, Engine, Failure, Plan, PlanStatus, RedisSettings, Sharing, SharingState, SystemClock, Task};
use steadfast_kernel::{InstanceId, PlanId, RunId, TenantId};
use steadfast_store::{Commons, CommonsError, LockHolder, SharedCheckpoint, SharedLock, SharedPlan, SharedTask, Write, Wrote};
use steadfast_store_redis::Redis;
use steadfast_test_servers::{Monitor, RedisServer};

/// How long a stage works.
const WORK: Duration = Duration::from_millis(50);

/// What is asked for: so many commands for a plan at the most.
const ALLOWED: f64 = 222.0;

pub(super) async fn measure(report: &Report, folder: &Path, plans: usize) -> Result<()> {
    let redis = RedisServer::start();
    let counted = Arc::new(Counted { redis: Redis::open(RedisSettings::new(redis.url()))?, round_trips: AtomicU64::new(0) });
    let instance = steadfast_store_embedded::instance(folder)?;
    let sharing = Sharing::new(Arc::clone(&counted) as Arc<dyn Commons>, instance);
    let engine = Engine::open(folder)?.sharing(sharing).plan(working()).start().await?;
    while engine.sharing().is_none_or(|sharing| sharing.state != SharingState::Up) {
        SystemClock.sleep(Duration::from_millis(5)).await;
    }
    let monitor = Monitor::of(redis.port());
    counted.round_trips.store(0, Ordering::SeqCst);
    let began = SystemClock.now();
    let mut handles = Vec::new();
    for plan in 0..plans {
        handles.push(engine.create_plan("work").id(format!("plan-{plan}")).tenants(tenants(plan)).await?);
    }
    for plan in &handles {
        plan.start().await?;
    }
    for plan in &handles {
        ensure!(plan.ended().await?.status == PlanStatus::Completed, "a plan has failed");
    }
    engine.shared().await;
    let took = SystemClock.now().saturating_since(began);
    SystemClock.sleep(Duration::from_millis(200)).await; // the monitor has read all of it
    let per_plan = monitor.sent() as f64 / plans as f64;
    let trips = counted.round_trips.load(Ordering::SeqCst) as f64 / plans as f64;
    let what = format!("commands for a plan of {TASKS} tasks with {STAGES} stages, in {trips:.1} round trips; {plans} plans took {took:?}");
    report.say(&Measured {
        ratio: Some((per_plan / ALLOWED * 100.0).round() / 100.0),
        ..Measured::value("redis-commands", per_plan, what)
    })?;
    ensure!(per_plan <= ALLOWED, "a plan has sent {per_plan} commands; {ALLOWED} are allowed");
    engine.shutdown().await;
    Ok(())
}

fn working() -> Plan {
    stages().fold(Plan::new("work").max_concurrency(TASKS as u32), |plan, stage| {
        plan.stage(stage, |_: Task| async {
            SystemClock.sleep(WORK).await;
            Ok::<_, Failure>(())
        })
    })
}

/// Redis, and how often it was asked.
struct Counted {
    redis: Redis,
    round_trips: AtomicU64,
}

impl Counted {
    fn asked(&self) -> &Redis {
        self.round_trips.fetch_add(1, Ordering::SeqCst);
        &self.redis
    }
}

#[async_trait::async_trait]
impl Commons for Counted {
    async fn send(&self, writes: Vec<Write>) -> Result<Vec<Wrote>, CommonsError> {
        self.asked().send(writes).await
    }

    async fn plan(&self, plan: &PlanId) -> Result<Option<SharedPlan>, CommonsError> {
        self.asked().plan(plan).await
    }

    async fn tasks(&self, tasks: &[RunId]) -> Result<Vec<SharedTask>, CommonsError> {
        self.asked().tasks(tasks).await
    }

    async fn task_of(&self, tenant: &TenantId) -> Result<Option<RunId>, CommonsError> {
        self.asked().task_of(tenant).await
    }

    async fn checkpoint(&self, task: &RunId) -> Result<Option<SharedCheckpoint>, CommonsError> {
        self.asked().checkpoint(task).await
    }

    async fn locks(&self, tenants: &[TenantId]) -> Result<Vec<SharedLock>, CommonsError> {
        self.asked().locks(tenants).await
    }

    async fn holders(&self, tenants: &[TenantId]) -> Result<Vec<Option<LockHolder>>, CommonsError> {
        self.asked().holders(tenants).await
    }

    async fn fence(&self, tenant: &TenantId) -> Result<u64, CommonsError> {
        self.asked().fence(tenant).await
    }

    async fn alive(&self, instances: &[InstanceId]) -> Result<Vec<InstanceId>, CommonsError> {
        self.asked().alive(instances).await
    }

    async fn instances(&self, from: u64) -> Result<(u64, Vec<InstanceId>), CommonsError> {
        self.asked().instances(from).await
    }
}
