//! Instances that have one store beside a Redis: it shows what is there, and nothing waits for it or asks it.
//!
//! Subject: `crates/runtime/src/commons/scribe.rs`.

use super::scene::Does;
use super::truth::{fence, hash, text};
use super::*;
use steadfast::{PlanStatus, TaskStatus};

/// An instance of a store whose instances are all called `db`. Whoever waited for Redis would wait for longer than any test does.
fn mirroring(redis: &RedisServer, store: &Memory, scene: &Scene) -> EngineBuilder {
    let never = Duration::from_secs(600);
    Engine::on(store.clone())
        .instance("db")
        .redis_with(quick(redis), |sharing| (sharing.mirror_only, sharing.patience, sharing.fallback) = (true, never, Fallback::Refuse))
        .plan(scene.plan("db"))
}

async fn begin(engine: &Engine, id: &str, tenant: &str) -> steadfast::PlanHandle {
    let plan = engine.create_plan("switch").id(id).tenants([tenant]).await.unwrap();
    plan.start().await.unwrap();
    plan
}

async fn has_ended(engine: &Engine, plan: &str) {
    until(&format!("{plan} has ended"), async || engine.plan_status(plan).await.unwrap().status == PlanStatus::Completed).await;
}

fn status(redis: &RedisServer, key: &str) -> Option<String> {
    hash(redis, key).remove("status")
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_shows_plans_tasks_checkpoints_and_locks_as_they_are() {
    let (redis, scene) = (lasting(), Scene::new());
    let engine = start(mirroring(&redis, &Memory::new(), &scene)).await;
    scene.script("acme/s3", Does::Holds);
    begin(&engine, "night", "acme").await;
    until("it is in its third stage", async || scene.times("acme/s3") == 1).await;
    engine.shared().await;
    mirror_is_true(&engine, &redis).await;
    assert_eq!((status(&redis, "plan:night").unwrap(), status(&redis, "task:night/acme").unwrap()), ("RUNNING".into(), "RUNNING".into()));
    assert_eq!(text(&redis, "lock:tenant:acme").as_deref(), Some("night:night/acme:db:1"));
    assert_eq!((fence(&redis, "acme"), text(&redis, "index:tenant:acme").as_deref()), (1, Some("night/acme")));
    assert!(text(&redis, "ckpt:night/acme").unwrap().starts_with("{\"lastCompletedStageIndex\":1,"));
    let left = redis.cli(&["TTL", "executor:lock:tenant:acme"]).number();
    assert!((8_000..=9_000).contains(&left), "{left}");
    scene.let_go("acme/s3");
    has_ended(&engine, "night").await;
    until("the lock is given back", async || text(&redis, "lock:tenant:acme").is_none()).await;
    mirror_is_true(&engine, &redis).await;
    assert_eq!(status(&redis, "task:night/acme").unwrap(), "COMPLETED");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_redis_is_away_everything_goes_on_and_is_written_when_it_is_back() {
    let (mut redis, scene) = (lasting(), Scene::new());
    redis.kill();
    let engine = mirroring(&redis, &Memory::new(), &scene).start().await.unwrap();
    begin(&engine, "first", "a").await;
    has_ended(&engine, "first").await; // it was never there
    assert_eq!(away(&engine).await, None);
    assert!(engine.sharing().unwrap().mirror_only && engine.sharing().unwrap().pending > 0);
    redis.restart();
    back(&engine).await;
    assert_eq!((status(&redis, "plan:first").unwrap(), status(&redis, "task:first/a").unwrap()), ("COMPLETED".into(), "COMPLETED".into()));

    scene.script("b/s2", Does::Holds);
    scene.script("c/s2", Does::Holds);
    begin(&engine, "second", "b").await;
    begin(&engine, "third", "c").await;
    until("they are in their second stage", async || scene.times("b/s2") + scene.times("c/s2") == 2).await;
    engine.shared().await;
    redis.kill_and_forget();
    scene.let_go("b/s2");
    has_ended(&engine, "second").await;
    begin(&engine, "fourth", "b").await;
    has_ended(&engine, "fourth").await;
    redis.restart();
    back(&engine).await;
    mirror_is_true(&engine, &redis).await;
    assert_eq!(status(&redis, "task:third/c").unwrap(), "RUNNING", "what is open is written again");
    assert_eq!(text(&redis, "lock:tenant:c").as_deref(), Some("third:third/c:db:1"));
    assert_eq!(text(&redis, "lock:tenant:b"), None);
    assert_eq!(engine.plan_status("third").await.unwrap().status, PlanStatus::Running);
    scene.let_go("c/s2");
    has_ended(&engine, "third").await;
    for tenant in ["a", "b", "c"] {
        let times = if tenant == "b" { 2 } else { 1 };
        assert_eq!(scene.counts(tenant), [times; 4], "{tenant}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_looks_elsewhere_and_what_others_have_there_is_left_alone() {
    let (redis, scene) = (lasting(), Scene::new());
    let other = start(instance(&redis, "other", &Memory::new(), &scene)).await;
    for tenant in ["acme", "gone"] {
        scene.script(&format!("{tenant}/s2"), Does::Holds);
        begin(&other, tenant, tenant).await;
        until("it holds", async || scene.times(&format!("{tenant}/s2")) == 1).await;
    }
    other.shared().await;
    let there = (hash(&redis, "plan:acme"), text(&redis, "lock:tenant:acme").unwrap());

    let engine = start(mirroring(&redis, &Memory::new(), &scene)).await;
    let codes = [engine.task_status_by_tenant("gone").await.unwrap_err().code(), engine.plan_status("gone").await.unwrap_err().code()];
    assert_eq!(codes, ["SF0128", "SF0124"]);
    begin(&engine, "acme", "acme").await;
    has_ended(&engine, "acme").await; // neither the id nor the lock is asked for there
    engine.shared().await;
    assert_eq!((hash(&redis, "plan:acme"), text(&redis, "lock:tenant:acme").unwrap()), there);
    let foreign = engine.sharing().unwrap().foreign.join("; ");
    assert!(foreign.contains("plan acme, which is owned by other"), "{foreign}");
}

/// What one instance of a store has left is what the next one finds in its shards.
#[tokio::test(flavor = "multi_thread")]
async fn who_takes_over_writes_what_the_one_before_did_not_come_to_write() {
    let (mut redis, store, scene) = (lasting(), Memory::new(), Scene::new());
    let first = start(mirroring(&redis, &store, &scene)).await;
    for what in ["open/s2", "ends/s2"] {
        scene.script(what, Does::Holds);
    }
    begin(&first, "open", "open").await;
    begin(&first, "ends", "ends").await;
    until("both are in a stage", async || scene.times("open/s2") + scene.times("ends/s2") == 2).await;
    first.shared().await;
    redis.kill();
    scene.let_go("ends/s2");
    has_ended(&first, "ends").await;
    drop(first); // as a crash
    redis.restart();
    assert!(text(&redis, "lock:tenant:ends").is_some() && status(&redis, "task:ends/ends").unwrap() == "RUNNING");

    let second = start(mirroring(&redis, &store, &scene)).await;
    task_is(&second, "open", TaskStatus::Interrupted).await;
    second.shared().await;
    mirror_is_true(&second, &redis).await;
    assert_eq!(status(&redis, "task:open/open").unwrap(), "INTERRUPTED");
    assert_eq!((status(&redis, "plan:ends").unwrap(), status(&redis, "task:ends/ends").unwrap()), ("COMPLETED".into(), "COMPLETED".into()));
    assert_eq!(text(&redis, "lock:tenant:ends"), None);
    assert_eq!(text(&redis, "lock:tenant:open").as_deref(), Some("open:open/open:db:1"));
}

/// Two processes under one name are no two lives of one instance.
#[tokio::test(flavor = "multi_thread")]
async fn several_write_under_one_name_and_each_finds_out_when_all_is_lost() {
    let (redis, scene) = (lasting(), Scene::new());
    let (first, second) = (start(mirroring(&redis, &Memory::new(), &scene)).await, start(mirroring(&redis, &Memory::new(), &scene)).await);
    for (engine, name) in [(&first, "one"), (&second, "two")] {
        scene.script(&format!("{name}/s2"), Does::Holds);
        begin(engine, name, name).await;
        until("it is in a stage", async || scene.times(&format!("{name}/s2")) == 1).await;
        engine.shared().await;
    }
    let said = text(&redis, "instance:db");
    tokio::time::sleep(super::super::GONE_AFTER).await; // three beats of each
    for engine in [&first, &second] {
        assert_eq!(engine.sharing().unwrap().state, SharingState::Up);
    }
    assert_eq!((text(&redis, "instance:db"), said.as_deref()), (said.clone(), Some("db")), "whoever says it");
    redis.flush();
    for name in ["one", "two"] {
        until(&format!("{name} is there again"), async || {
            status(&redis, &format!("task:{name}/{name}")).is_some() && text(&redis, &format!("lock:tenant:{name}")).is_some()
        })
        .await;
    }
    first.shutdown().await;
    assert!(text(&redis, "instance:db").is_some(), "the other one lives under that name");
    assert_eq!(second.sharing().unwrap().state, SharingState::Up);
}
