//! An instance that was cut off, and comes back after another one has gone on with its task.
//!
//! Subject: `crates/runtime/src/commons/worker/follow.rs`.

use super::mirror::{hash, text};
use super::{FIVE, begin, counts, instance, is_gone, mirror_is_true, settings, start, task_is, until};
use crate::plans::{How, World};
use steadfast::memory::Memory;
use steadfast::{Engine, RedisSettings, SharingState, TaskStatus};
use steadfast_test_servers::{Proxy, RedisServer};

async fn behind(proxy: &Proxy, redis: &RedisServer, name: &str, world: &World) -> Engine {
    let through = RedisSettings { url: format!("redis://127.0.0.1:{}", proxy.port()), ..settings(redis) };
    start(Engine::on(Memory::new()).instance(name).redis(through).plan(world.plan(&FIVE))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_cut_off_ends_its_stage_and_begins_no_other() {
    let (redis, world) = (RedisServer::start(), World::default());
    let proxy = Proxy::before(redis.port());
    world.script("acme", "s2", &[How::Holds, How::Works]);
    world.script("acme", "s4", &[How::Holds]);
    let a = behind(&proxy, &redis, "a", &world).await;
    let b = start(instance(&redis, "b", &Memory::new()).plan(world.plan(&FIVE))).await;
    begin(&a, "night", &["acme"]).await;
    until("a is in stage 2", async || world.times("acme/s2") == 1).await;
    until("a has seen b", async || a.sharing().unwrap().seen.is_some()).await;
    a.shared().await;
    proxy.refuse(true);
    is_gone(&redis, "a").await;
    b.retry_task_by_tenant("acme", true).await.unwrap();
    until("b is in stage 4", async || world.times("acme/s4") == 1).await;
    b.shared().await;
    let (saved, task) = (text(&redis, "ckpt:night/acme"), hash(&redis, "task:night/acme"));

    world.let_go("acme/s2"); // the stage of a ends while it is cut off
    until("a has its checkpoint", async || {
        let task = a.run("night/acme").unwrap().view().await.unwrap().task.unwrap();
        task.checkpoint.is_some_and(|checkpoint| checkpoint.index == 1)
    })
    .await;
    proxy.refuse(false);
    until("a steps back", async || a.run("night/acme").unwrap().view().await.unwrap().task.unwrap().status == TaskStatus::HandedOver).await;
    until("a is back", async || a.sharing().unwrap().state == SharingState::Up).await;
    a.shared().await;
    assert_eq!((text(&redis, "ckpt:night/acme"), hash(&redis, "task:night/acme")), (saved, task), "a has written over nothing");
    assert_eq!(counts(&world, "acme", &FIVE), [1, 2, 1, 1, 0]);
    world.let_go("acme/s4");
    task_is(&b, "acme", TaskStatus::Completed).await;
    assert_eq!(counts(&world, "acme", &FIVE), [1, 2, 1, 1, 1], "a begins nothing");
    mirror_is_true(&a, &redis).await;
    mirror_is_true(&b, &redis).await;
}

/// What was taken up is on record at its end even if nobody could be told when it ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_ended_unseen_after_it_was_taken_up_does_not_seem_to_run_for_ever() {
    let (redis, world, store) = (RedisServer::start(), World::default(), Memory::new());
    let proxy = Proxy::before(redis.port());
    world.script("acme", "s2", &[How::Hangs]);
    world.script("acme", "s5", &[How::Holds]);
    let a = start(instance(&redis, "a", &Memory::new()).plan(world.plan(&FIVE))).await;
    let c = start(instance(&redis, "c", &Memory::new()).plan(world.plan(&FIVE))).await;
    begin(&a, "night", &["acme"]).await;
    until("a is in stage 2", async || world.times("acme/s2") == 1).await;
    a.shared().await;
    drop(a);
    is_gone(&redis, "a").await;
    let through = RedisSettings { url: format!("redis://127.0.0.1:{}", proxy.port()), ..settings(&redis) };
    let b = start(Engine::on(store.clone()).instance("b").redis(through).plan(world.plan(&FIVE))).await;
    b.retry_task_by_tenant("acme", true).await.unwrap();
    until("b is in the last stage", async || world.times("acme/s5") == 1).await;
    b.shared().await;
    proxy.refuse(true);
    world.let_go("acme/s5");
    until("b is done", async || b.run("night/acme").unwrap().view().await.unwrap().task.unwrap().status == TaskStatus::Completed).await;
    drop(b);
    is_gone(&redis, "b").await;
    assert_eq!(c.task_status_by_tenant("acme").await.unwrap().status, TaskStatus::Interrupted);

    let b = start(instance(&redis, "b", &store.reopen()).plan(world.plan(&FIVE))).await;
    task_is(&c, "acme", TaskStatus::Completed).await;
    assert_eq!(counts(&world, "acme", &FIVE), [1, 2, 1, 1, 1]);
    until("the lock is free", async || text(&redis, "lock:tenant:acme").is_none()).await;
    mirror_is_true(&b, &redis).await;
}
