//! What is open is kept in Redis for as long as it is open, and what a task needs to be taken up with it.
//!
//! Subject: `crates/runtime/src/commons/mirror.rs`.

use super::{counts, instance, mirror_is_true, settings, start, task_is, until};
use crate::plans::{How, World};
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Engine, RedisSettings, TaskStatus};
use steadfast_test_servers::RedisServer;

const STAGES: [&str; 3] = ["s1", "s2", "s3"];

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_waits_for_longer_than_things_are_kept_can_still_be_taken_up() {
    let (redis, world) = (RedisServer::start(), World::default());
    world.script("acme", "s2", &[How::Hangs]);
    let short = RedisSettings { ttl: Duration::from_secs(3), ..settings(&redis) };
    let a = start(Engine::on(Memory::new()).instance("a").redis(short.clone()).plan(world.plan(&STAGES))).await;
    let b = start(Engine::on(Memory::new()).instance("b").redis(short).plan(world.plan(&STAGES))).await;
    a.create_plan("switch").id("night").tenants(["acme"]).await.unwrap().start().await.unwrap();
    until("it is in stage 2", async || world.times("acme/s2") == 1).await;
    tokio::time::sleep(Duration::from_secs(5)).await; // longer than anything is kept that nobody writes again
    for key in ["plan:night", "task:night/acme", "index:tenant:acme", "ckpt:night/acme"] {
        assert_eq!(redis.cli(&["EXISTS", &format!("executor:{key}")]).number(), 1, "{key} is gone");
    }
    drop(a);
    task_is(&b, "acme", TaskStatus::Interrupted).await;
    b.retry_task_by_tenant("acme", true).await.unwrap();
    task_is(&b, "acme", TaskStatus::Completed).await;
    assert_eq!(counts(&world, "acme", &STAGES), [1, 2, 1]);
    mirror_is_true(&b, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_task_can_be_taken_up_after_redis_has_lost_everything() {
    let (redis, world) = (RedisServer::start(), World::default());
    world.script("acme", "s2", &[How::Fails]);
    let (store_a, store_b) = (Memory::new(), Memory::new());
    let a = start(instance(&redis, "a", &store_a).plan(world.plan(&STAGES))).await;
    let b = start(instance(&redis, "b", &store_b).plan(world.plan(&STAGES))).await;
    a.create_plan("switch").id("night").tenants(["acme"]).await.unwrap().start().await.unwrap();
    task_is(&a, "acme", TaskStatus::Failed).await;
    a.shared().await;
    redis.flush();
    until("all is there again", async || redis.keys().iter().any(|key| key.ends_with("plan:night"))).await;
    drop(a);
    until("a is gone", async || redis.cli(&["EXISTS", "executor:instance:a"]).number() == 0).await;
    until("it is taken up", async || b.retry_task_by_tenant("acme", true).await.is_ok()).await;
    task_is(&b, "acme", TaskStatus::Completed).await;
    mirror_is_true(&b, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_was_called_off_leaves_no_lock() {
    let (redis, world) = (RedisServer::start(), World::default());
    let a = start(instance(&redis, "a", &Memory::new()).plan(world.plan(&STAGES))).await;
    let tenants: Vec<String> = (0..100).map(|number| format!("t{number}")).collect();
    let plan = a.create_plan("switch").id("night").tenants(&tenants).max_concurrency(100).await.unwrap();
    plan.start().await.unwrap();
    for tenant in &tenants {
        let _it_may_have_ended = a.task_of(tenant).await.unwrap().cancel().await;
    }
    plan.ended().await.unwrap();
    until("no lock is left", async || !redis.keys().iter().any(|key| key.contains(":lock:"))).await;
}
