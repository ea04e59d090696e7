//! A lock that is not what its holder takes it for: stolen, expired, lost with all that Redis had.
//!
//! Subject: `crates/runtime/src/commons/locks.rs`.

use super::mirror::{hash, lock_is, text};
use super::{FIVE, begin, events, instance, mirror_is_true, settings, start, task_is, until};
use crate::plans::{How, World};
use steadfast::memory::Memory;
use steadfast::{Engine, RedisSettings, SharingState, TaskStatus};
use steadfast_test_servers::{Proxy, RedisServer};

/// An instance whose task of acme is in its second stage until it is let go.
async fn holding(redis: &RedisServer, world: &World) -> Engine {
    world.script("acme", "s2", &[How::Holds]);
    let a = start(instance(redis, "a", &Memory::new()).plan(world.plan(&FIVE))).await;
    begin(&a, "night", &["acme"]).await;
    until("it is in stage 2", async || world.times("acme/s2") == 1).await;
    a
}

fn steal(redis: &RedisServer, holder: &str) {
    redis.cli(&["SET", "executor:lock:tenant:acme", holder]);
}

async fn last_words(engine: &Engine, task: &str) -> String {
    let journal = engine.run(task).unwrap().journal().await.unwrap();
    let lost = journal.iter().rev().find(|entry| entry.event.kind() == "LOCK_LOST").unwrap();
    format!("{:?}", lost.event)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_was_deleted_by_hand_is_its_holders_again() {
    let (redis, world) = (RedisServer::start(), World::default());
    let a = holding(&redis, &world).await;
    let before = text(&redis, "lock:tenant:acme").unwrap();
    redis.cli(&["DEL", "executor:lock:tenant:acme"]);
    lock_is(&redis, "acme", |holder| holder == Some(&before)).await;
    assert!(redis.cli(&["PTTL", "executor:lock:tenant:acme"]).number() > 0, "it has a lease again");
    world.let_go("acme/s2");
    task_is(&a, "acme", TaskStatus::Completed).await;
    assert!(!events(&a, "night/acme").await.contains(&"LOCK_LOST".to_string()));
    lock_is(&redis, "acme", |holder| holder.is_none()).await;
    mirror_is_true(&a, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_was_anothers_meanwhile_is_lost() {
    let (redis, world) = (RedisServer::start(), World::default());
    let a = holding(&redis, &world).await;
    redis.cli(&["INCR", "executor:fence:tenant:acme"]);
    redis.cli(&["DEL", "executor:lock:tenant:acme"]);
    let lost = task_is(&a, "acme", TaskStatus::Interrupted).await;
    assert_eq!(lost.lock, None);
    assert!(last_words(&a, "night/acme").await.contains("another's meanwhile"));
    world.let_go("acme/s2");
    a.retry_task_by_tenant("acme", true).await.unwrap();
    task_is(&a, "acme", TaskStatus::Completed).await;
    assert_eq!(super::counts(&world, "acme", &FIVE), [1, 2, 1, 1, 1]);
    mirror_is_true(&a, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_another_took_with_a_higher_number_is_that_ones() {
    let (redis, world) = (RedisServer::start(), World::default());
    let a = holding(&redis, &world).await;
    redis.cli(&["SET", "executor:fence:tenant:acme", "99"]);
    steal(&redis, "day:day/acme:z:99");
    task_is(&a, "acme", TaskStatus::Interrupted).await;
    assert!(last_words(&a, "night/acme").await.contains("day:day/acme:z:99 has it"));
    world.let_go("acme/s2");
    let refused = a.retry_task_by_tenant("acme", true).await.unwrap_err();
    assert!(refused.to_string().contains("day:day/acme:z:99"), "{refused}");
    assert_eq!(a.task_status_by_tenant("acme").await.unwrap().status, TaskStatus::Interrupted);

    a.plan("night").unwrap().cancel().await.unwrap();
    task_is(&a, "acme", TaskStatus::Cancelled).await;
    a.shared().await;
    assert_eq!(text(&redis, "lock:tenant:acme").as_deref(), Some("day:day/acme:z:99"), "who ends releases nobody else's lock");
    assert_eq!(super::counts(&world, "acme", &FIVE), [1, 1, 0, 0, 0]);

    a.break_lock("acme").why("z is gone for good").await.unwrap();
    lock_is(&redis, "acme", |holder| holder.is_none()).await;
    a.retry_task_by_tenant("acme", true).await.unwrap();
    until("it has a higher number", async || hash(&redis, "task:night/acme").get("fence").is_some_and(|fence| fence == "100")).await;
    task_is(&a, "acme", TaskStatus::Completed).await;
    mirror_is_true(&a, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_another_took_with_a_lower_number_is_taken_back() {
    let (redis, world) = (RedisServer::start(), World::default());
    redis.cli(&["SET", "executor:fence:tenant:acme", "6"]);
    let a = holding(&redis, &world).await;
    steal(&redis, "day:day/acme:z:3");
    lock_is(&redis, "acme", |holder| holder == Some("night:night/acme:a:7")).await;
    world.let_go("acme/s2");
    task_is(&a, "acme", TaskStatus::Completed).await;
    assert!(!events(&a, "night/acme").await.contains(&"LOCK_LOST".to_string()));
    mirror_is_true(&a, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_was_lost_while_its_task_is_paused_is_lost() {
    let (redis, world) = (RedisServer::start(), World::default());
    let a = holding(&redis, &world).await;
    a.plan("night").unwrap().pause().await.unwrap();
    world.let_go("acme/s2");
    task_is(&a, "acme", TaskStatus::Paused).await;
    redis.cli(&["SET", "executor:fence:tenant:acme", "99"]);
    steal(&redis, "day:day/acme:z:99");
    until("it has no lock any more", async || a.task_status_by_tenant("acme").await.unwrap().lock.is_none()).await;
    let refused = a.retry_task_by_tenant("acme", true).await.unwrap_err();
    assert!(refused.to_string().contains("day:day/acme:z:99"), "{refused}");
    redis.cli(&["DEL", "executor:lock:tenant:acme"]);
    a.retry_task_by_tenant("acme", true).await.unwrap();
    task_is(&a, "acme", TaskStatus::Completed).await;
    assert_eq!(super::counts(&world, "acme", &FIVE), [1, 1, 1, 1, 1]);
    mirror_is_true(&a, &redis).await;
}

/// Nobody renews it while its holder is cut off.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_has_expired_goes_to_who_waits_and_its_old_holder_stops() {
    let (redis, world) = (RedisServer::start(), World::default());
    let proxy = Proxy::before(redis.port());
    let cut_off = RedisSettings { url: format!("redis://127.0.0.1:{}", proxy.port()), ..settings(&redis) };
    world.script("acme", "s2", &[How::Holds, How::Works]);
    let a = start(Engine::on(Memory::new()).instance("a").redis(cut_off).plan(world.plan(&FIVE))).await;
    let b = start(instance(&redis, "b", &Memory::new()).plan(world.plan(&FIVE))).await;
    let waits = b.create_plan("switch").id("day").tenants(["acme"]).await.unwrap();
    begin(&a, "night", &["acme"]).await;
    until("a is in stage 2", async || world.times("acme/s2") == 1).await;
    let refused = waits.start().await.unwrap_err();
    assert!(refused.to_string().contains("night:night/acme:a:1"), "{refused}");

    proxy.refuse(true);
    until("a is cut off", async || matches!(a.sharing().unwrap().state, SharingState::Away { .. })).await;
    redis.cli(&["PEXPIRE", "executor:lock:tenant:acme", "1"]);
    until("the lock is free", async || text(&redis, "lock:tenant:acme").is_none()).await;
    waits.start().await.unwrap();
    waits.ended().await.unwrap();

    proxy.refuse(false);
    until("a knows", async || a.run("night/acme").unwrap().view().await.unwrap().task.unwrap().status == TaskStatus::Interrupted).await;
    world.let_go("acme/s2");
    assert_eq!(super::counts(&world, "acme", &FIVE), [2, 2, 1, 1, 1], "nothing after the stage of a that was under way");
    mirror_is_true(&a, &redis).await;
    mirror_is_true(&b, &redis).await;
}

/// Who waits does not take what is free only because all was lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_was_lost_with_everything_is_not_given_to_who_waits() {
    let (redis, world) = (RedisServer::start(), World::default());
    let b = start(instance(&redis, "b", &Memory::new()).plan(world.plan(&FIVE))).await;
    let tenants: Vec<String> = (0..20).map(|tenant| format!("t{tenant}")).collect();
    let names: Vec<&str> = tenants.iter().map(String::as_str).collect();
    for tenant in &names {
        world.script(tenant, "s2", &[How::Holds]);
    }
    let a = start(instance(&redis, "a", &Memory::new()).plan(world.plan(&FIVE))).await;
    let day = b.create_plan("switch").id("day").tenants(names.clone()).max_concurrency(20).await.unwrap();
    let night = a.create_plan("switch").id("night").tenants(names.clone()).max_concurrency(20).await.unwrap();
    let (one, other) = tokio::join!(night.start(), day.start());
    one.and(other).unwrap();
    let inside = |world: &World| names.iter().map(|tenant| world.times(&format!("{tenant}/s2"))).sum::<usize>();
    until("one is in stage 2 of each", async || inside(&world) == 20).await;
    for _ in 0..4 {
        redis.flush();
        until("all is known again", async || redis.keys().iter().filter(|key| key.contains("lock:tenant")).count() == 20).await;
        assert_eq!(inside(&world), 20, "two are inside of one tenant");
    }
    for tenant in &names {
        world.let_go(&format!("{tenant}/s2"));
    }
    night.ended().await.unwrap();
    day.ended().await.unwrap();
    mirror_is_true(&a, &redis).await;
    mirror_is_true(&b, &redis).await;
}
