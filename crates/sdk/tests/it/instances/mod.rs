//! Several instances with stores of their own that share tenants through a real Redis.

mod costs;
mod doubt;
mod flow;
mod foreign;
mod hand_over;
mod kept;
mod late;
mod locks;
mod looks;
mod mirror;
mod outages;
mod owners;
mod races;
mod traps;
mod undo;

pub(crate) use mirror::mirror_is_true;

use crate::plans::World;
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Engine, EngineBuilder, PlanHandle, RedisSettings, SharingState, TaskInfo, TaskStatus};
use steadfast_test_servers::RedisServer;

/// After how long without a word an instance is taken for gone.
pub(crate) const GONE_AFTER: Duration = Duration::from_secs(2);

pub(crate) fn settings(redis: &RedisServer) -> RedisSettings {
    RedisSettings { heartbeat_ttl: GONE_AFTER, response_timeout: Duration::from_millis(500), ..RedisSettings::new(redis.url()) }
}

/// An instance of that name on that store.
pub(crate) fn instance(redis: &RedisServer, name: &str, store: &Memory) -> EngineBuilder {
    Engine::on(store.clone()).instance(name).redis(settings(redis))
}

/// An instance that has come to know what is shared.
pub(crate) async fn start(builder: EngineBuilder) -> Engine {
    let engine = builder.start().await.unwrap();
    until("Redis is reached", async || engine.sharing().unwrap().state == SharingState::Up).await;
    engine
}

/// Waits for something, in the time of the world.
pub(crate) async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let patience = tokio::time::Instant::now() + Duration::from_secs(30);
    while !is_so().await {
        assert!(tokio::time::Instant::now() < patience, "it never came about that {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until the task of a tenant stands so.
pub(crate) async fn task_is(engine: &Engine, tenant: &str, status: TaskStatus) -> TaskInfo {
    until(&format!("the task of {tenant} is {}", status.as_str()), async || {
        engine.task_status_by_tenant(tenant).await.is_ok_and(|task| task.status == status)
    })
    .await;
    engine.task_status_by_tenant(tenant).await.unwrap()
}

/// How often each stage of a tenant was executed.
pub(crate) fn counts(world: &World, tenant: &str, stages: &[&str]) -> Vec<usize> {
    stages.iter().map(|stage| world.times(&format!("{tenant}/{stage}"))).collect()
}

/// Five stages.
pub(crate) const FIVE: [&str; 5] = ["s1", "s2", "s3", "s4", "s5"];

/// Has a plan of that id begin.
pub(crate) async fn begin(engine: &Engine, id: &str, tenants: &[&str]) -> PlanHandle {
    let plan = engine.create_plan("switch").id(id).tenants(tenants.iter().copied()).await.unwrap();
    plan.start().await.unwrap();
    plan
}

/// Waits until others take an instance that has ended for gone.
pub(crate) async fn is_gone(redis: &RedisServer, name: &str) {
    let key = format!("executor:instance:{name}");
    until(&format!("{name} is gone"), async || redis.cli(&["EXISTS", &key]).number() == 0).await;
}

/// What happened to a task of that instance, by the types of its events.
pub(crate) async fn events(engine: &Engine, task: &str) -> Vec<String> {
    let journal = engine.run(task).unwrap().journal().await.unwrap();
    journal.iter().map(|entry| entry.event.kind().to_string()).collect()
}
