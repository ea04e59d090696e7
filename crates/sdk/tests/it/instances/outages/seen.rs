//! Another instance was seen: without Redis nobody can know who has a lock, so nothing begins, and a person goes on when it is back.
//!
//! Subject: `crates/runtime/src/commons/gate.rs`.
//! Subject: `crates/runtime/src/commons/worker/away.rs`.

use super::scene::Does;
use super::*;
use steadfast::{Error, TaskStatus};

/// Two instances that know of each other.
async fn two(redis: &RedisServer, scene: &Scene) -> (Engine, Engine) {
    let (store_a, store_b) = (Memory::new(), Memory::new());
    let a = start(instance(redis, "a", &store_a, scene)).await;
    let b = start(instance(redis, "b", &store_b, scene)).await;
    until("they know of each other", async || a.sharing().unwrap().seen.is_some() && b.sharing().unwrap().seen.is_some()).await;
    (a, b)
}

fn is_away(error: &Error) {
    assert!(error.code() == "SF0133" && error.to_string().contains("was seen lately"), "{} {error}", error.code());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_a_lock_is_refused_and_a_stage_fails_by_its_policy() {
    let (mut redis, scene) =
        (lasting(), Scene::with(Duration::ZERO, steadfast::Policy::constant(Duration::from_millis(100)).max_attempts(2)));
    let (a, b) = two(&redis, &scene).await;
    let alerts = Alerts::of(&a).await;
    for what in ["acme/s2", "late/s1"] {
        scene.script(what, Does::Holds);
    }
    scene.script("broken/s2", Does::Breaks);
    let late = a.create_plan("switch").id("late").tenants(["late", "next"]).max_concurrency(1).await.unwrap();
    for plan in ["acme", "broken", "paused"] {
        a.create_plan("switch").id(plan).tenants([plan]).await.unwrap().start().await.unwrap();
    }
    late.start().await.unwrap();
    task_is(&a, "broken", TaskStatus::Failed).await;
    task_is(&a, "paused", TaskStatus::Completed).await;
    let idle = a.create_plan("switch").id("idle").tenants(["idle"]).await.unwrap();
    until("they are in a stage", async || scene.times("acme/s2") == 1 && scene.times("late/s1") == 1).await;

    redis.kill();
    let refuses = away(&a).await.unwrap();
    assert!(refuses.contains("instance b was seen lately"), "{refuses}");
    let why = alerts.are("DEGRADED", &["acme", "late", "idle"]).await;
    assert!(why.contains("no stage begins, because instance b was seen lately"), "{why}");
    is_away(&a.create_plan("switch").tenants(["new"]).await.err().unwrap());
    is_away(&idle.start().await.unwrap_err());
    is_away(&a.retry_task_by_tenant("broken", true).await.unwrap_err());
    is_away(&a.run("broken/broken").unwrap().roll_back().await.unwrap_err());

    scene.let_go("acme/s2");
    let failed = task_is(&a, "acme", TaskStatus::Failed).await;
    let failure = failed.failure.unwrap();
    assert!(failure.message.contains("2 of 2 attempts"), "{}", failure.message);
    let text = format!("{} {:?}", failure.message, failure.causes);
    assert!(text.contains("the stage was not begun, because others share its tenant and Redis cannot be used"), "{text}");
    assert!(text.contains("Redis at 127.0.0.1") && text.contains("instance b was seen lately"), "{text}");
    assert_eq!((failed.checkpoint.unwrap().index, scene.counts("acme")), (1, [1, 1, 0, 0]), "nothing after the stage in flight");

    redis.restart();
    back(&a).await;
    back(&b).await;
    mirror_is_true(&a, &redis).await;
    assert_eq!(b.task_status_by_tenant("acme").await.unwrap().checkpoint.unwrap().index, 1, "others could go on from there");
    a.retry_task_by_tenant("acme", true).await.unwrap();
    task_is(&a, "acme", TaskStatus::Completed).await;
    assert_eq!(scene.counts("acme"), [1, 1, 1, 1], "only the remaining ones");
    a.retry_task_by_tenant("broken", true).await.unwrap();
    idle.start().await.unwrap();
    scene.let_go("late/s1");
    for tenant in ["broken", "idle", "late", "next"] {
        task_is(&a, tenant, TaskStatus::Completed).await;
    }
    mirror_is_true(&a, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_waits_for_its_lock_gets_it_when_redis_is_back() {
    let (mut redis, scene) = (lasting(), Scene::new());
    let (a, _b) = two(&redis, &scene).await;
    scene.script("first/s4", Does::Holds);
    let plan = a.create_plan("switch").id("p").tenants(["first", "second"]).max_concurrency(1).await.unwrap();
    plan.start().await.unwrap();
    until("the first is in its last stage", async || scene.times("first/s4") == 1).await;
    redis.kill();
    away(&a).await.unwrap();
    scene.let_go("first/s4");
    task_is(&a, "first", TaskStatus::Completed).await;
    task_is(&a, "second", TaskStatus::Waiting).await;
    tokio::time::sleep(2 * PATIENCE).await;
    assert_eq!((task_is(&a, "second", TaskStatus::Waiting).await.lock, scene.counts("second")), (None, [0; 4]), "no lock is granted");
    redis.restart();
    task_is(&a, "second", TaskStatus::Completed).await;
    assert_eq!(scene.counts("second"), [1; 4]);
    mirror_is_true(&a, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_setting_lets_one_go_on_whoever_else_there_is_or_nobody() {
    let (mut redis, scene) = (lasting(), Scene::new());
    let (local, refuse) = (Memory::new(), Memory::new());
    let local = start(falling_back(&redis, "l", &local, &scene, Fallback::Local)).await;
    let refuse = start(falling_back(&redis, "r", &refuse, &scene, Fallback::Refuse)).await;
    until("they know of each other", async || local.sharing().unwrap().seen.is_some()).await;
    redis.kill();
    assert_eq!(away(&local).await, None);
    assert!(away(&refuse).await.unwrap().contains("locks.fallback = refuse"));
    let refused = refuse.create_plan("switch").tenants(["x"]).await.err().unwrap();
    assert!(refused.code() == "SF0133" && refused.to_string().contains("locks.fallback = refuse"), "{refused}");
    local.create_plan("switch").tenants(["acme"]).await.unwrap().start().await.unwrap();
    task_is(&local, "acme", TaskStatus::Completed).await;
    redis.restart();
    back(&local).await;
    back(&refuse).await;
    refuse.create_plan("switch").tenants(["x"]).await.unwrap().start().await.unwrap();
    task_is(&refuse, "x", TaskStatus::Completed).await;
    mirror_is_true(&local, &redis).await;
    mirror_is_true(&refuse, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_starts_without_redis_refuses_until_it_is_there_and_then_shares_all() {
    let (mut redis, store, scene) = (lasting(), Memory::new(), Scene::new());
    scene.script("acme/s3", Does::Holds);
    let engine = start(instance(&redis, "a", &store, &scene)).await;
    engine.create_plan("switch").id("night").tenants(["acme"]).await.unwrap().start().await.unwrap();
    until("it is in stage 3", async || scene.times("acme/s3") == 1).await;
    engine.shared().await;
    redis.kill_and_forget();
    drop(engine);

    let engine = instance(&redis, "a", &store.reopen(), &scene).start().await.unwrap();
    let refuses = away(&engine).await.unwrap();
    assert!(refuses.contains("it is not known whether there are other instances"), "{refuses}");
    assert_eq!(task_is(&engine, "acme", TaskStatus::Interrupted).await.checkpoint.unwrap().index, 1);
    let refused = engine.create_plan("switch").tenants(["new"]).await.err().unwrap();
    assert_eq!(refused.code(), "SF0133", "{refused}");
    assert_eq!(engine.retry_task_by_tenant("acme", true).await.unwrap_err().code(), "SF0133");

    redis.restart();
    back(&engine).await;
    mirror_is_true(&engine, &redis).await;
    engine.retry_task_by_tenant("acme", true).await.unwrap();
    task_is(&engine, "acme", TaskStatus::Completed).await;
    assert_eq!(scene.counts("acme"), [1, 1, 2, 1]);
    mirror_is_true(&engine, &redis).await;
}
