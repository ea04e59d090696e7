//! Redis is back: what was taken meanwhile is compared with what others have taken, and a conflict is loud.
//!
//! Subject: `crates/runtime/src/commons/worker/follow.rs`.

use super::scene::Does;
use super::*;
use steadfast::TaskStatus;
use steadfast_test_servers::Proxy;

/// One who believes that it is alone, cut off by the proxy, in stage 2 with a lock that it took meanwhile.
async fn took_a_lock_alone(redis: &RedisServer, scene: &Scene) -> (Engine, Proxy) {
    let proxy = Proxy::before(redis.port());
    let through = RedisSettings { url: format!("redis://127.0.0.1:{}", proxy.port()), ..quick(redis) };
    let builder = Engine::on(Memory::new()).instance("a").redis_with(through, |sharing| sharing.patience = PATIENCE);
    let engine = start(builder.plan(scene.plan("a"))).await;
    proxy.refuse(true);
    let (name, plan) = ("night", engine.create_plan("switch").tenants(["acme"]));
    scene.script("acme/s2", Does::Holds);
    plan.id(name).await.unwrap().start().await.unwrap();
    assert_eq!(away(&engine).await, None);
    until("it is in a stage", async || scene.times("acme/s2") == 1).await;
    (engine, proxy)
}

fn lock(redis: &RedisServer) -> Option<String> {
    truth::text(redis, "lock:tenant:acme")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_was_taken_alone_is_known_to_all_when_redis_is_back() {
    let (redis, scene) = (RedisServer::start(), Scene::new());
    let (engine, proxy) = took_a_lock_alone(&redis, &scene).await;
    proxy.refuse(false);
    back(&engine).await;
    assert_eq!(lock(&redis).as_deref(), Some("night:night/acme:a:1"));
    assert_eq!(truth::fence(&redis, "acme"), 1);
    let b = start(instance(&redis, "b", &Memory::new(), &scene)).await;
    let refused = b.create_plan("switch").tenants(["acme"]).await.err().unwrap();
    assert!(refused.to_string().contains("night:night/acme:a:1"), "{refused}");
    scene.let_go("acme/s2");
    task_is(&engine, "acme", TaskStatus::Completed).await;
    mirror_is_true(&engine, &redis).await;
    assert_eq!((lock(&redis), scene.counts("acme")), (None, [1; 4]));
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_that_were_given_before_are_no_conflict_and_are_never_lowered() {
    let (redis, scene) = (RedisServer::start(), Scene::new());
    redis.cli(&["SET", "executor:fence:tenant:acme", "41"]);
    let (engine, proxy) = took_a_lock_alone(&redis, &scene).await;
    proxy.refuse(false);
    back(&engine).await;
    scene.let_go("acme/s2");
    task_is(&engine, "acme", TaskStatus::Completed).await;
    assert_eq!((scene.counts("acme"), truth::fence(&redis, "acme")), ([1; 4], 41));
    mirror_is_true(&engine, &redis).await;
    engine.create_plan("switch").tenants(["acme"]).await.unwrap().start().await.unwrap();
    until("the next one has a number above all", async || truth::fence(&redis, "acme") == 42).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_another_took_meanwhile_is_its_own_and_that_is_loud() {
    for fence in [1, 7] {
        let (redis, scene) = (RedisServer::start(), Scene::new());
        let (engine, proxy) = took_a_lock_alone(&redis, &scene).await;
        let (other, number) = (format!("day:day/acme:b:{fence}"), fence.to_string());
        redis.cli(&["SET", "executor:lock:tenant:acme", &other, "PX", "600000"]);
        redis.cli(&["SET", "executor:fence:tenant:acme", &number]);
        proxy.refuse(false);
        let task = task_is(&engine, "acme", TaskStatus::Interrupted).await;
        assert_eq!(task.lock, None);
        let told = format!("{:?}", engine.run("night/acme").unwrap().journal().await.unwrap());
        assert!(told.contains(&other), "the holder is named: {told}");
        assert_eq!(lock(&redis), Some(other.clone()), "it is left alone");
        let refused = engine.retry_task_by_tenant("acme", true).await.unwrap_err();
        assert!(refused.to_string().contains(&other), "{refused}");
        redis.cli(&["DEL", "executor:lock:tenant:acme"]);
        engine.retry_task_by_tenant("acme", true).await.unwrap();
        task_is(&engine, "acme", TaskStatus::Completed).await;
        assert_eq!(scene.counts("acme"), [1, 2, 1, 1], "from its checkpoint");
        mirror_is_true(&engine, &redis).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_with_a_lower_number_is_taken_back_and_its_holder_is_interrupted() {
    let (redis, scene) = (RedisServer::start(), Scene::new());
    redis.cli(&["SET", "executor:fence:tenant:acme", "5"]);
    let a = start(instance(&redis, "a", &Memory::new(), &scene)).await;
    let b = start(instance(&redis, "b", &Memory::new(), &scene)).await;
    scene.script("acme/s2", Does::Holds);
    a.create_plan("switch").id("night").tenants(["acme"]).await.unwrap().start().await.unwrap();
    until("it is in a stage", async || scene.times("acme/s2") == 1).await;
    a.shared().await;
    assert_eq!(lock(&redis).as_deref(), Some("night:night/acme:a:6"));
    scene.script("acme/s1", Does::Holds);
    redis.cli(&["DEL", "executor:lock:tenant:acme", "executor:fence:tenant:acme"]); // that much was lost
    let second = b.create_plan("switch").id("day").tenants(["acme"]).await.unwrap();
    if second.start().await.is_ok() {
        until("the first has it again", async || lock(&redis).as_deref() == Some("night:night/acme:a:6")).await;
    }
    until("b has lost it, or never had it", async || {
        let task = b.run("day/acme").unwrap().view().await.unwrap().task.unwrap();
        task.lock.is_none() && matches!(task.status, TaskStatus::Interrupted | TaskStatus::Waiting | TaskStatus::Pending)
    })
    .await;
    assert_eq!(truth::fence(&redis, "acme"), 6);
    scene.let_go("acme/s2");
    until("a has gone on", async || {
        let task = a.run("night/acme").unwrap().view().await.unwrap().task.unwrap();
        task.status == TaskStatus::Completed
    })
    .await;
    mirror_is_true(&a, &redis).await;
}
