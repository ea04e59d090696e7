//! What plans cost on Redis.
//!
//! Subject: `crates/runtime/src/commons/worker.rs`.

use super::{GONE_AFTER, instance, start, until};
use crate::plans::{TEN, World};
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Engine, PlanStatus, RedisSettings};
use steadfast_test_servers::{Monitor, RedisServer};

/// Ten plans of ten tasks with ten stages each, side by side.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_ten_tasks_with_ten_stages_sends_222_commands_at_the_most() {
    let (redis, world) = (RedisServer::start(), World::default());
    let a = start(
        Engine::on(Memory::new())
            .instance("a")
            .redis(RedisSettings::new(redis.url()))
            .plan(world.plan(&TEN)),
    )
    .await;
    let monitor = Monitor::of(redis.port());
    let mut plans = Vec::new();
    for plan in 0..10 {
        let tenants = (0..10).map(|tenant| format!("p{plan}-t{tenant}"));
        plans.push(a.create_plan("switch").id(format!("p{plan}")).tenants(tenants).max_concurrency(10).await.unwrap());
    }
    for plan in &plans {
        plan.start().await.unwrap();
    }
    for plan in &plans {
        assert_eq!(plan.ended().await.unwrap().status, PlanStatus::Completed);
    }
    a.shared().await;
    redis.cli(&["PING"]);
    until("the monitor has seen all", async || {
        let before = monitor.sent();
        tokio::time::sleep(Duration::from_millis(100)).await;
        monitor.sent() == before
    })
    .await;
    let sent = monitor.sent() / 10;
    assert!((120..=222).contains(&sent), "{sent} commands were sent for a plan");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_instance_sends_a_few_commands_per_beat() {
    let redis = RedisServer::start();
    let _a = start(instance(&redis, "a", &Memory::new())).await;
    let monitor = Monitor::of(redis.port());
    tokio::time::sleep(GONE_AFTER).await; // three beats
    let sent = monitor.sent();
    assert!((2..=10).contains(&sent), "{sent} commands were sent in three beats");
}
