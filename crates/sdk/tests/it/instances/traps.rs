//! What plans that keep their state in Redis have got wrong before.

use super::mirror::{hash, lock_is, text};
use super::{FIVE, begin, counts, instance, mirror_is_true, settings, start, task_is, until};
use crate::plans::{How, World};
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Engine, PlanStatus, RedisSettings, TaskStatus};
use steadfast_test_servers::RedisServer;

async fn one(redis: &RedisServer, world: &World) -> Engine {
    start(instance(redis, "a", &Memory::new()).plan(world.plan(&FIVE))).await
}

fn lives_for(redis: &RedisServer, key: &str) -> Duration {
    let left = redis.cli(&["PTTL", key]).number();
    Duration::from_millis(u64::try_from(left).unwrap_or_else(|_| panic!("{key} lives for ever, or is not there: {left}")))
}

/// Keys that live for ever but for the numbers of holdings.
fn live_for_ever(redis: &RedisServer) -> Vec<String> {
    let mut keys = redis.keys();
    keys.retain(|key| !key.contains("fence:tenant:") && redis.cli(&["PTTL", key]).number() == -1);
    keys
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hash_and_its_time_to_live_are_written_in_one() {
    let (redis, world) = (RedisServer::start(), World::default());
    let a = one(&redis, &world).await;
    let tenants: Vec<String> = (0..20).map(|tenant| format!("t{tenant}")).collect();
    let plan = a.create_plan("switch").id("night").tenants(tenants).max_concurrency(4).await.unwrap();
    plan.start().await.unwrap();
    while plan.info().await.unwrap().status != PlanStatus::Completed {
        assert_eq!(live_for_ever(&redis), [""; 0], "these would stay if the instance died now");
    }
    a.shared().await;
    assert_eq!(live_for_ever(&redis), [""; 0]);
    mirror_is_true(&a, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_touches_its_own_fields_only() {
    let (redis, world) = (RedisServer::start(), World::default());
    world.script("acme", "s2", &[How::Holds]);
    let a = one(&redis, &world).await;
    begin(&a, "night", &["acme"]).await;
    until("it is in stage 2", async || world.times("acme/s2") == 1).await;
    a.shared().await;
    for key in ["plan:night", "task:night/acme"] {
        redis.cli(&["HSET", &format!("executor:{key}"), "note", "left by a person", "createdAt", "2020-01-01T00:00:00Z"]);
    }
    world.let_go("acme/s2");
    task_is(&a, "acme", TaskStatus::Completed).await;
    until("the plan is done there", async || hash(&redis, "plan:night")["status"] == "COMPLETED").await;
    for key in ["plan:night", "task:night/acme"] {
        let there = hash(&redis, key);
        assert_eq!((there["note"].as_str(), there["createdAt"].as_str()), ("left by a person", "2020-01-01T00:00:00Z"), "{key}");
        assert_eq!(there["status"], "COMPLETED");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn namespace_times_to_live_and_lease_are_honoured_by_every_key() {
    let (redis, world) = (RedisServer::start(), World::default());
    world.script("acme", "s2", &[How::Holds]);
    let hour = Duration::from_secs(3600);
    let other = RedisSettings { prefix: "shop:of:".into(), ttl: hour, ..settings(&redis) };
    let plan = world.plan(&FIVE).lease(Duration::from_secs(70));
    let a = start(Engine::on(Memory::new()).instance("a").redis(other).plan(plan)).await;
    begin(&a, "night", &["acme"]).await;
    until("it is in stage 2", async || world.times("acme/s2") == 1).await;
    a.shared().await;
    let keys = redis.keys();
    let kinds =
        ["ckpt:night/acme", "fence:tenant:acme", "index:tenant:acme", "instance:a", "lock:tenant:acme", "plan:night", "task:night/acme"];
    assert_eq!(keys, kinds.map(|kind| format!("shop:of:{kind}")));
    for key in &keys {
        let most = match key {
            key if key.contains("fence") => continue, // it outlives everything
            key if key.contains("lock") => Duration::from_secs(70),
            key if key.contains("instance") => super::GONE_AFTER,
            _ => hour,
        };
        let left = lives_for(&redis, key);
        assert!(left <= most && left > most / 3, "{key} lives for {left:?}");
    }
    world.let_go("acme/s2");
    task_is(&a, "acme", TaskStatus::Completed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_and_retry_are_seen_everywhere_at_once() {
    let (redis, world) = (RedisServer::start(), World::default());
    world.script("acme", "s2", &[How::Hangs, How::Holds]);
    let a = one(&redis, &world).await;
    let b = start(instance(&redis, "b", &Memory::new()).plan(world.plan(&FIVE))).await;
    let plan = begin(&a, "night", &["acme"]).await;
    until("it is in stage 2", async || world.times("acme/s2") == 1).await;
    let seen = async |task: TaskStatus, status: PlanStatus| {
        a.shared().await;
        let there = b.plan_status("night").await.unwrap();
        assert_eq!((b.task_status_by_tenant("acme").await.unwrap().status, there.status), (task, status));
        assert_eq!((hash(&redis, "task:night/acme")["status"].as_str(), there.progress.get(&task)), (task.as_str(), Some(&1)));
    };
    seen(TaskStatus::Running, PlanStatus::Running).await;
    plan.cancel().await.unwrap();
    plan.ended().await.unwrap();
    seen(TaskStatus::Cancelled, PlanStatus::Cancelled).await;
    lock_is(&redis, "acme", |holder| holder.is_none()).await;
    a.retry_task_by_tenant("acme", true).await.unwrap();
    until("it is in stage 2 again", async || world.times("acme/s2") == 2).await;
    a.shared().await;
    assert_eq!(b.task_status_by_tenant("acme").await.unwrap().status, TaskStatus::Running);
    world.let_go("acme/s2");
    task_is(&a, "acme", TaskStatus::Completed).await;
    task_is(&b, "acme", TaskStatus::Completed).await;
    mirror_is_true(&a, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn times_carry_a_zone() {
    let (redis, world) = (RedisServer::start(), World::default());
    let a = one(&redis, &world).await;
    begin(&a, "night", &["acme"]).await;
    task_is(&a, "acme", TaskStatus::Completed).await;
    a.shared().await;
    for (key, field) in
        [("plan:night", "createdAt"), ("plan:night", "startedAt"), ("task:night/acme", "createdAt"), ("task:night/acme", "startedAt")]
    {
        let time = &hash(&redis, key)[field];
        assert!(time.starts_with("20") && time.contains('T') && time.ends_with('Z'), "{field} of {key} is {time}");
    }
    let saved: serde_json::Value = serde_json::from_str(&text(&redis, "ckpt:night/acme").unwrap()).unwrap();
    assert!(saved["savedAt"].as_str().unwrap().ends_with('Z'), "{saved}");
    assert_eq!(saved["lastCompletedStageIndex"], 3, "none is needed after the last stage");
    mirror_is_true(&a, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_renewed_while_it_is_held_and_not_after_that() {
    let (redis, world) = (RedisServer::start(), World::default());
    let plan = world.plan(&FIVE).lease(Duration::from_secs(2));
    world.script("acme", "s2", &[How::Holds]);
    let a = start(instance(&redis, "a", &Memory::new()).plan(plan)).await;
    let plan = begin(&a, "night", &["acme"]).await;
    until("it is in stage 2", async || world.times("acme/s2") == 1).await;
    plan.pause().await.unwrap();
    world.let_go("acme/s2");
    task_is(&a, "acme", TaskStatus::Paused).await;
    let lock = "executor:lock:tenant:acme";
    for _ in 0..4 {
        until("some of its time is over", async || lives_for(&redis, lock) < Duration::from_millis(1500)).await;
        until("it is renewed", async || lives_for(&redis, lock) > Duration::from_millis(1600)).await;
    }
    plan.cancel().await.unwrap();
    lock_is(&redis, "acme", |holder| holder.is_none()).await;
    redis.cli(&["SET", lock, "day:day/acme:z:9", "PX", "2500"]);
    let mut before = lives_for(&redis, lock);
    while text(&redis, "lock:tenant:acme").is_some() {
        let left = redis.cli(&["PTTL", lock]).number();
        let left = Duration::from_millis(u64::try_from(left).unwrap_or_default());
        assert!(left <= before, "somebody who does not have it has renewed it");
        before = left;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    mirror_is_true(&a, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_task_goes_on_although_it_has_its_lock_in_redis() {
    let (redis, world) = (RedisServer::start(), World::default());
    world.script("acme", "s2", &[How::Holds]);
    let a = one(&redis, &world).await;
    let plan = begin(&a, "night", &["acme"]).await;
    until("it is in stage 2", async || world.times("acme/s2") == 1).await;
    plan.pause().await.unwrap();
    world.let_go("acme/s2");
    task_is(&a, "acme", TaskStatus::Paused).await;
    let held = text(&redis, "lock:tenant:acme");
    assert_eq!(held.as_deref(), Some("night:night/acme:a:1"));
    a.shared().await;
    assert_eq!(hash(&redis, "task:night/acme")["pauseRequested"], "true", "that tells it from a crash");
    plan.resume().await.unwrap();
    task_is(&a, "acme", TaskStatus::Completed).await;
    assert_eq!(counts(&world, "acme", &FIVE), [1; 5]);
    mirror_is_true(&a, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_all_is_found_and_can_be_retried() {
    let (redis, world, store) = (RedisServer::start(), World::default(), Memory::new());
    world.script("acme", "s3", &[How::Hangs]);
    let a = start(instance(&redis, "a", &store).plan(world.plan(&FIVE))).await;
    let b = start(instance(&redis, "b", &Memory::new()).plan(world.plan(&FIVE))).await;
    let plan = begin(&a, "night", &["acme", "other"]).await;
    until("it is in stage 3", async || world.times("acme/s3") == 1).await;
    task_is(&a, "other", TaskStatus::Completed).await;
    drop((plan, a));
    let a = start(instance(&redis, "a", &store.reopen()).plan(world.plan(&FIVE))).await;
    a.shared().await;
    for engine in [&a, &b] {
        let plan = engine.plan_status("night").await.unwrap();
        assert_eq!((plan.status, plan.max_concurrency, plan.tasks.len()), (PlanStatus::Paused, 2, 2));
        let task = engine.task_status_by_tenant("acme").await.unwrap();
        assert_eq!((task.status, task.checkpoint.unwrap().index), (TaskStatus::Interrupted, 1));
    }
    mirror_is_true(&a, &redis).await;
    a.retry_task_by_tenant("acme", true).await.unwrap();
    task_is(&a, "acme", TaskStatus::Completed).await;
    assert_eq!(counts(&world, "acme", &FIVE), [1, 1, 2, 1, 1]);
    mirror_is_true(&a, &redis).await;
}

/// Neither in the same millisecond.
#[tokio::test(flavor = "multi_thread")]
async fn ids_that_two_instances_make_at_the_same_time_do_not_collide() {
    let (redis, world) = (RedisServer::start(), World::default());
    let (a, b) = (one(&redis, &world).await, start(instance(&redis, "b", &Memory::new()).plan(world.plan(&FIVE))).await);
    let make = async |engine: &Engine, of: &str| {
        let mut ids = Vec::new();
        for number in 0..50 {
            ids.push(engine.create_plan("switch").tenants([format!("{of}{number}")]).await.unwrap().id().to_string());
        }
        ids
    };
    let (of_a, of_b) = tokio::join!(make(&a, "x"), make(&b, "y"));
    let all: std::collections::BTreeSet<_> = of_a.iter().chain(&of_b).collect();
    assert_eq!(all.len(), 100);
    mirror_is_true(&a, &redis).await;
    mirror_is_true(&b, &redis).await;
}
