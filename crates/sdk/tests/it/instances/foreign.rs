//! Something in a key that none of us has put there: it is left alone and shown, others go on, and all goes on once it is removed.
//!
//! Subject: `crates/runtime/src/commons/worker/follow.rs`.

use super::mirror::{hash, text};
use super::{FIVE, begin, counts, instance, mirror_is_true, settings, start, task_is, until};
use crate::plans::{How, World};
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Engine, SharingState, TaskStatus};
use steadfast_test_servers::RedisServer;

/// Two tenants, one after the other: the first holds on to its first stage until it is let go.
async fn holding(redis: &RedisServer, world: &World) -> Engine {
    world.script("other", "s1", &[How::Holds]);
    let short = |sharing: &mut steadfast::Sharing| sharing.patience = Duration::from_millis(1500);
    let a = start(Engine::on(Memory::new()).instance("a").redis_with(settings(redis), short).plan(world.plan(&FIVE))).await;
    let plan = a.create_plan("switch").id("night").tenants(["other", "acme"]).max_concurrency(1).await.unwrap();
    plan.start().await.unwrap();
    until("the first one is under way", async || world.times("other/s1") == 1).await;
    a.shared().await;
    a
}

/// What is of another type, and what is of the right one and makes no sense.
fn put(redis: &RedisServer, key: &str, is_list: bool) -> String {
    let key = format!("executor:{key}");
    redis.cli(&["DEL", &key]);
    match is_list {
        true => redis.cli(&["RPUSH", &key, "mine"]),
        false => redis.cli(&["SET", &key, "some thing: of mine"]),
    };
    key
}

async fn is_shown(engine: &Engine, key: &str) {
    until(&format!("{key} is shown"), async || engine.sharing().unwrap().foreign.iter().any(|foreign| foreign == key)).await;
}

/// It is as it was; then it is removed, and the instance stops complaining.
async fn remove(redis: &RedisServer, engine: &Engine, key: &str, is_list: bool) {
    let there = if is_list { redis.cli(&["LINDEX", key, "0"]) } else { redis.cli(&["GET", key]) };
    assert_eq!(there.text(), if is_list { "mine" } else { "some thing: of mine" }, "{key} was written over");
    redis.cli(&["DEL", key]);
    until(&format!("{key} is not shown any more"), async || engine.sharing().unwrap().foreign.is_empty()).await;
}

/// A lock or a number that is something else: its tenant waits, the other does not.
async fn keeps_a_tenant_waiting(key: &str, is_list: bool) {
    let (redis, world) = (RedisServer::start(), World::default());
    let a = holding(&redis, &world).await;
    let key = put(&redis, key, is_list);
    world.let_go("other/s1");
    task_is(&a, "other", TaskStatus::Completed).await;
    is_shown(&a, &key).await;
    assert_eq!(counts(&world, "acme", &FIVE), [0; 5]);
    assert_eq!(a.sharing().unwrap().state, SharingState::Up);
    remove(&redis, &a, &key, is_list).await;
    task_is(&a, "acme", TaskStatus::Completed).await;
    assert_eq!(counts(&world, "acme", &FIVE), [1; 5]);
    mirror_is_true(&a, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_something_else_keeps_its_tenant_waiting() {
    tokio::join!(keeps_a_tenant_waiting("lock:tenant:acme", true), keeps_a_tenant_waiting("lock:tenant:acme", false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_is_something_else_keeps_its_tenant_waiting() {
    tokio::join!(keeps_a_tenant_waiting("fence:tenant:acme", true), keeps_a_tenant_waiting("fence:tenant:acme", false));
}

/// Whoever asks for that tenant is told which key it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_something_else_refuses_a_plan_and_names_the_key() {
    let (redis, world) = (RedisServer::start(), World::default());
    let a = start(instance(&redis, "a", &Memory::new()).plan(world.plan(&FIVE))).await;
    let key = put(&redis, "lock:tenant:acme", false);
    let refused = a.create_plan("switch").tenants(["acme"]).await.map(drop).unwrap_err();
    assert_eq!((refused.code(), refused.to_string().contains(&key)), ("SF0134", true), "{refused}");
    let (plan, task) = (put(&redis, "plan:day", true), put(&redis, "index:tenant:zoe", true));
    let refused = a.create_plan("switch").id("day").tenants(["other"]).await.map(drop).unwrap_err();
    assert_eq!((refused.code(), refused.to_string().contains(&plan)), ("SF0134", true), "{refused}");
    let refused = a.task_status_by_tenant("zoe").await.unwrap_err();
    assert_eq!((refused.code(), refused.to_string().contains(&task)), ("SF0134", true), "{refused}");
    begin(&a, "night", &["other"]).await;
    task_is(&a, "other", TaskStatus::Completed).await;
}

/// A mirror is no more than that: what it is of goes on.
async fn keeps_nobody_waiting(key: &str, is_list: bool) {
    let (redis, world) = (RedisServer::start(), World::default());
    let a = holding(&redis, &world).await;
    let key = put(&redis, key, is_list);
    world.let_go("other/s1");
    for tenant in ["other", "acme"] {
        task_is(&a, tenant, TaskStatus::Completed).await;
        assert_eq!(counts(&world, tenant, &FIVE), [1; 5]);
    }
    is_shown(&a, &key).await;
    remove(&redis, &a, &key, is_list).await;
    mirror_is_true(&a, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_is_something_else_keeps_nobody_waiting() {
    tokio::join!(keeps_nobody_waiting("plan:night", true), keeps_nobody_waiting("plan:night", false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_something_else_keeps_nobody_waiting() {
    tokio::join!(keeps_nobody_waiting("task:night/acme", true), keeps_nobody_waiting("task:night/acme", false));
}

/// It is written when there is a new task.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_something_else_is_written_when_it_is_removed() {
    let (redis, world) = (RedisServer::start(), World::default());
    let a = holding(&redis, &world).await;
    let (list, garbage) = (put(&redis, "index:tenant:zoe", true), put(&redis, "index:tenant:max", false));
    world.script("zoe", "s1", &[How::Holds]);
    begin(&a, "day", &["zoe", "max"]).await;
    task_is(&a, "max", TaskStatus::Completed).await;
    is_shown(&a, &list).await;
    is_shown(&a, &garbage).await;
    assert_eq!(redis.cli(&["LINDEX", &list, "0"]).text(), "mine");
    redis.cli(&["DEL", &list]);
    remove(&redis, &a, &garbage, false).await;
    until("the indexes are there", async || {
        text(&redis, "index:tenant:zoe").as_deref() == Some("day/zoe") && text(&redis, "index:tenant:max").as_deref() == Some("day/max")
    })
    .await;
    mirror_is_true(&a, &redis).await;
}

/// No stage begins whose checkpoint nobody could go on from.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_is_something_else_fails_the_next_stage() {
    let (redis, world) = (RedisServer::start(), World::default());
    let a = holding(&redis, &world).await;
    let key = put(&redis, "ckpt:night/acme", false);
    world.let_go("other/s1");
    let failed = task_is(&a, "acme", TaskStatus::Failed).await;
    let why = failed.failure.unwrap();
    assert!(why.to_string().contains("the last checkpoint could not be written"), "{why}");
    assert_eq!(counts(&world, "acme", &FIVE), [1, 0, 0, 0, 0]);
    assert_eq!(counts(&world, "other", &FIVE), [1; 5]);
    is_shown(&a, &key).await;
    remove(&redis, &a, &key, false).await;
    a.retry_task_by_tenant("acme", true).await.unwrap();
    task_is(&a, "acme", TaskStatus::Completed).await;
    assert_eq!(counts(&world, "acme", &FIVE), [1; 5]);
    mirror_is_true(&a, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_whose_heartbeat_is_something_else_begins_nothing_and_says_so() {
    let (redis, world) = (RedisServer::start(), World::default());
    let key = put(&redis, "instance:a", true);
    let a = instance(&redis, "a", &Memory::new()).plan(world.plan(&FIVE)).start().await.unwrap();
    is_shown(&a, &key).await;
    redis.forget_commands();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let sent: u64 = redis.commands().values().sum();
    assert!(sent < 100, "it asks again and again: {:?}", redis.commands());
    remove(&redis, &a, &key, true).await;
    until("it is up", async || a.sharing().unwrap().state == SharingState::Up).await;
    begin(&a, "night", &["acme"]).await;
    task_is(&a, "acme", TaskStatus::Completed).await;
    assert_eq!(hash(&redis, "task:night/acme")["owner"], "a");
    mirror_is_true(&a, &redis).await;
}
