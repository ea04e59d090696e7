//! A task is given up on one instance, and goes on at once on another.
//!
//! Subject: `crates/runtime/src/engine/adopt.rs`.

use super::mirror::{hash, text};
use super::{FIVE, begin, counts, instance, mirror_is_true, start, task_is, until};
use crate::plans::{How, World};
use steadfast::memory::Memory;
use steadfast::{Engine, TaskStatus};
use steadfast_test_servers::RedisServer;

async fn two(redis: &RedisServer, world: &World) -> (Engine, Engine) {
    let a = start(instance(redis, "a", &Memory::new()).plan(world.plan(&FIVE))).await;
    let b = start(instance(redis, "b", &Memory::new()).plan(world.plan(&FIVE))).await;
    (a, b)
}

/// The task goes from a to b, which does what is left of it, though a lives.
async fn goes_over(redis: &RedisServer, world: &World, (a, b): (Engine, Engine), expected: [usize; 5]) {
    let refused = b.retry_task_by_tenant("acme", true).await.unwrap_err();
    assert_eq!((refused.code(), refused.to_string().contains("instance a")), ("SF0132", true), "{refused}");
    a.hand_over("acme").by("eve").why("a is to be updated").await.unwrap();
    assert_eq!(hash(redis, "task:night/acme")["owner"], "");
    let here = a.run("night/acme").unwrap().view().await.unwrap().task.unwrap();
    assert_eq!(here.status, TaskStatus::HandedOver);
    b.retry_task_by_tenant("acme", true).await.unwrap();
    let done = task_is(&b, "acme", TaskStatus::Completed).await;
    assert_eq!(done.elsewhere, None);
    assert_eq!(counts(world, "acme", &FIVE), expected);
    assert_eq!(a.task_status_by_tenant("acme").await.unwrap().elsewhere.unwrap().as_str(), "b");
    until("the lock is free", async || text(redis, "lock:tenant:acme").is_none()).await;
    mirror_is_true(&a, redis).await;
    mirror_is_true(&b, redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_task_that_was_handed_over_goes_on_at_once() {
    let (redis, world) = (RedisServer::start(), World::default());
    let both = two(&redis, &world).await;
    world.script("acme", "s2", &[How::Holds]);
    let plan = begin(&both.0, "night", &["acme"]).await;
    until("it is in stage 2", async || world.times("acme/s2") == 1).await;
    let refused = both.0.hand_over("acme").await.unwrap_err();
    assert!(refused.to_string().contains("pause it"), "{refused}");
    plan.pause().await.unwrap();
    world.let_go("acme/s2");
    task_is(&both.0, "acme", TaskStatus::Paused).await;
    drop(plan);
    goes_over(&redis, &world, both, [1; 5]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_task_that_was_handed_over_goes_on_at_once() {
    let (redis, world) = (RedisServer::start(), World::default());
    let both = two(&redis, &world).await;
    world.script("acme", "s3", &[How::Fails]);
    begin(&both.0, "night", &["acme"]).await;
    task_is(&both.0, "acme", TaskStatus::Failed).await;
    goes_over(&redis, &world, both, [1, 1, 2, 1, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pending_task_that_was_handed_over_begins_at_once() {
    let (redis, world) = (RedisServer::start(), World::default());
    let both = two(&redis, &world).await;
    both.0.create_plan("switch").id("night").tenants(["acme"]).await.unwrap();
    task_is(&both.0, "acme", TaskStatus::Pending).await;
    both.0.shared().await;
    goes_over(&redis, &world, both, [1; 5]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_task_that_was_handed_over_goes_on_at_once() {
    let (redis, world) = (RedisServer::start(), World::default());
    let both = two(&redis, &world).await;
    world.script("acme", "s2", &[How::Hangs]);
    let plan = begin(&both.0, "night", &["acme"]).await;
    until("it is in stage 2", async || world.times("acme/s2") == 1).await;
    plan.cancel().await.unwrap();
    task_is(&both.0, "acme", TaskStatus::Cancelled).await;
    both.0.shared().await;
    drop(plan);
    goes_over(&redis, &world, both, [1, 2, 1, 1, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_done_is_not_handed_over() {
    let (redis, world) = (RedisServer::start(), World::default());
    let (a, _b) = two(&redis, &world).await;
    begin(&a, "night", &["acme"]).await;
    task_is(&a, "acme", TaskStatus::Completed).await;
    let refused = a.hand_over("acme").await.unwrap_err();
    assert!(refused.to_string().contains("nothing to go on with"), "{refused}");
    mirror_is_true(&a, &redis).await;
    assert_eq!(hash(&redis, "task:night/acme")["owner"], "a");
}

/// Nobody has to wait for the heartbeat of one who has said that it goes.
#[tokio::test(flavor = "multi_thread")]
async fn the_tasks_of_an_instance_that_has_shut_down_are_taken_up_at_once() {
    let (redis, world) = (RedisServer::start(), World::default());
    world.script("acme", "s3", &[How::Hangs]);
    let (a, b) = two(&redis, &world).await;
    begin(&a, "night", &["acme"]).await;
    until("it is in stage 3", async || world.times("acme/s3") == 1).await;
    a.shared().await;
    a.shutdown().await;
    assert_eq!(redis.cli(&["EXISTS", "executor:instance:a"]).number(), 0, "it has said that it goes");
    b.retry_task_by_tenant("acme", true).await.unwrap();
    task_is(&b, "acme", TaskStatus::Completed).await;
    assert_eq!(counts(&world, "acme", &FIVE), [1, 1, 2, 1, 1]);
    mirror_is_true(&b, &redis).await;
}
