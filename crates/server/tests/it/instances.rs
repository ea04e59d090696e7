//! Two servers with stores of their own that share tenants through a real Redis.

use crate::plans::{How, World};
use crate::support::{Got, Site, builder, config, until};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::InstanceId;
use steadfast_runtime::{Builder, Callbacks, Fallback, Sharing};
use steadfast_server::{CallerSettings, Parts};
use steadfast_store::memory::Memory;
use steadfast_store_redis::{Redis, Settings};
use steadfast_test_servers::RedisServer;

/// After how long without a word an instance is taken for gone.
const GONE_AFTER: Duration = Duration::from_secs(2);

fn sharing(redis: &RedisServer, name: &str) -> Sharing {
    let settings = Settings { heartbeat_ttl: GONE_AFTER, response_timeout: Duration::from_millis(500), ..Settings::new(redis.url()) };
    let commons = Arc::new(Redis::open(settings).unwrap());
    Sharing { gone_after: GONE_AFTER, ..Sharing::new(commons, InstanceId::new(name).unwrap()) }
}

/// A server of that name on that store.
async fn shared(sharing: Sharing, store: Memory, world: &World) -> Site {
    let plain = builder(store.clone(), Callbacks::default(), CallerSettings::default(), world);
    let engine = Builder { sharing: Some(sharing), ..plain }.start().await.unwrap();
    let site = Site::before(engine, store, world.clone(), config(), Parts::default()).await;
    until("Redis is reached", async || site.redis().await["status"] == "up").await;
    site
}

/// Two of them that share a Redis.
pub(crate) async fn two(redis: &RedisServer) -> (Site, Site, World) {
    let world = World::default();
    let a = shared(sharing(redis, "a"), Memory::new(), &world).await;
    let b = shared(sharing(redis, "b"), Memory::new(), &world).await;
    (a, b, world)
}

impl Site {
    /// The line of Redis in what `/readyz` says.
    async fn redis(&self) -> Value {
        let ready = self.get("/readyz").await.json();
        let lines = ready["dependencies"].as_array().unwrap();
        lines.iter().find(|line| line["name"] == "redis").unwrap().clone()
    }

    async fn delete(&self, path: &str) -> Got {
        self.send(self.request(Method::DELETE, path)).await
    }

    /// Its process dies. What it leaves is its store.
    fn dies(self) -> Memory {
        self.engine.abort();
        self.served.abort();
        self.store.reopen()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_of_a_server_that_died_is_shown_and_goes_on_at_another() {
    let redis = RedisServer::start();
    let (a, b, world) = two(&redis).await;
    world.script("acme/verify", &[How::Hangs]);
    a.switch("p", &["acme"]).await;
    until("it verifies", async || world.times("acme/verify") == 1).await;
    a.engine.shared().await;

    let seen = b.get("/v1/tenants/acme/task").await.json();
    assert_eq!((&seen["status"], &seen["instance"], &seen["ownerLives"]), (&json!("RUNNING"), &json!("a"), &json!(true)));
    assert_eq!((&seen["currentStage"], &seen["totalStages"]), (&json!({"index": 2, "name": "verify"}), &json!(3)));
    assert_eq!((&seen["lastCompletedStageIndex"], &seen["hasCheckpoint"]), (&json!(1), &json!(true)));
    assert_eq!((&seen["lock"]["holder"], &seen["lock"]["instance"], &seen["lock"]["fence"]), (&json!("p:p/acme"), &json!("a"), &json!(1)));
    assert_eq!(a.get("/v1/tenants/acme/task").await.json().get("instance"), None, "it is a's own there");
    let (here, there) = (a.get("/v1/tenants/acme/checkpoint").await.json(), b.get("/v1/tenants/acme/checkpoint").await.json());
    assert_eq!((&there["contextData"], &there["completedStages"]), (&here["contextData"], &json!(["drain", "move"])));
    let plan = b.get("/v1/plans/p").await.json();
    assert_eq!(
        (&plan["status"], &plan["instance"], &plan["stages"]),
        (&json!("RUNNING"), &json!("a"), &json!(["drain", "move", "verify"]))
    );
    assert_eq!(plan["tenants"][0]["currentStage"]["name"], "verify");
    for verb in ["retry", "pause", "resume", "cancel", "rollback", "hand-over"] {
        let refused = b.post(&format!("/v1/tenants/acme/{verb}"), json!({"reason": "x"})).await;
        assert_eq!(refused.problem(409), "SF0132", "{verb}");
        assert!(refused.text.contains("instance a"), "{verb}: {}", refused.text);
    }
    for verb in ["start", "pause", "resume", "cancel", "rollback"] {
        let refused = b.post(&format!("/v1/plans/p/{verb}"), json!({"reason": "x"})).await;
        assert_eq!(refused.problem(409), "SF0132", "{verb}");
    }
    assert_eq!(b.get("/v1/plans/p/events").await.problem(409), "SF0132");
    assert_eq!(b.delete("/v1/locks/acme?reason=x").await.problem(409), "SF0132");
    let locked = b.post("/v1/plans", json!({"definition": "switch", "id": "q", "tenants": ["acme"]})).await;
    assert_eq!(locked.problem(409), "SF0126");
    assert!(locked.json()["locked"][0]["holder"].as_str().unwrap().starts_with("p:p/acme:a:"), "{}", locked.text);

    let store = a.dies();
    let seen = b.task_is("acme", "INTERRUPTED").await; // once the heartbeat of a is gone
    assert_eq!((&seen["instance"], &seen["ownerLives"]), (&json!("a"), &json!(false)));
    let plan = b.plan_is("p", "PAUSED").await;
    assert_eq!((&plan["ownerLives"], &plan["why"]), (&json!(false), &json!("instance a is gone")));
    for verb in ["pause", "resume"] {
        let refused = b.post(&format!("/v1/tenants/acme/{verb}"), json!({})).await;
        assert_eq!(refused.problem(409), "SF0132", "{verb}");
        assert!(refused.text.contains("retry it"), "{}", refused.text);
    }
    let again = json!({"fromCheckpoint": true, "reason": "a is gone"});
    for _ in 0..2 {
        let retried = b.keyed("/v1/tenants/acme/retry", "k1", again.clone()).await;
        assert_eq!(retried.status, 200, "{}", retried.text);
    }
    let done = b.task_is("acme", "COMPLETED").await;
    assert_eq!((done.get("instance"), &done["epoch"]), (None, &json!(2)), "it is b's, and was retried once");
    assert_eq!(["drain", "move", "verify"].map(|stage| world.times(&format!("acme/{stage}"))), [1, 1, 2], "only what was not done");
    b.engine.shared().await;

    let a = shared(sharing(&redis, "a"), store, &world).await;
    until("a steps back", async || a.get("/v1/runs/p/acme").await.json()["task"]["status"] == "HANDED_OVER").await;
    let seen = a.get("/v1/tenants/acme/task").await.json();
    assert_eq!((&seen["status"], &seen["instance"], &seen["ownerLives"]), (&json!("COMPLETED"), &json!("b"), &json!(true)));
    assert_eq!(["drain", "move", "verify"].map(|stage| world.times(&format!("acme/{stage}"))), [1, 1, 2], "a touches nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_handed_over_and_taken_back_under_the_same_keys() {
    let redis = RedisServer::start();
    let (a, b, world) = two(&redis).await;
    world.script("acme/verify", &[How::Fails]);
    a.switch("p", &["acme"]).await;
    a.task_is("acme", "FAILED").await;
    for _ in 0..2 {
        let given = a.keyed("/v1/tenants/acme/hand-over", "k", json!({"reason": "this machine is taken down"})).await;
        assert_eq!(given.status, 200, "{}", given.text);
        let task = given.json();
        assert_eq!((task.get("instance"), &task["ownerLives"]), (None, &json!(false)), "nobody has it: {task}");
    }
    assert_eq!(a.get("/v1/runs/p/acme").await.json()["task"]["status"], "HANDED_OVER");
    // It is taken up by the one that gave it up, with a key that another verb had.
    world.script("acme/verify", &[How::Fails]);
    let retried = a.keyed("/v1/tenants/acme/retry", "k", json!({"reason": "it stays after all"})).await;
    assert_eq!(retried.status, 200, "{}", retried.text);
    until("it has failed again", async || world.times("acme/verify") == 2).await;
    a.task_is("acme", "FAILED").await;
    a.verb("/v1/tenants/acme/hand-over", "now it is").await;
    b.verb("/v1/tenants/acme/retry", "here").await;
    b.task_is("acme", "COMPLETED").await;
    assert_eq!(["drain", "move", "verify"].map(|stage| world.times(&format!("acme/{stage}"))), [1, 1, 3]);
    let again = a.keyed("/v1/tenants/acme/hand-over", "k", json!({"reason": "this machine is taken down"})).await;
    assert_eq!((again.status.as_u16(), &again.json()["instance"]), (200, &json!("b")), "{}", again.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_of_a_server_that_died_is_broken_at_another() {
    let redis = RedisServer::start();
    let (a, b, world) = two(&redis).await;
    world.script("acme/drain", &[How::Hangs]);
    a.switch("p", &["acme"]).await;
    until("it drains", async || world.times("acme/drain") == 1).await;
    let locks = a.get("/v1/locks").await.json();
    assert_eq!((&locks["items"][0]["instance"], &locks["items"][0]["tenantId"]), (&json!("a"), &json!("acme")));
    a.engine.shared().await;
    let _store = a.dies();
    until("the lock can be broken", async || b.delete("/v1/locks/acme?reason=a+is+gone").await.status == 204).await;
    assert_eq!(b.delete("/v1/locks/acme?reason=again").await.problem(404), "SF0127");
    b.switch("q", &["acme"]).await;
    b.task_is("acme", "COMPLETED").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_redis_says_so_and_what_it_still_does() {
    let mut redis = RedisServer::start();
    let (world, other) = (World::default(), Memory::new());
    let a = shared(sharing(&redis, "a"), Memory::new(), &world).await;
    let strict = shared(Sharing { fallback: Fallback::Refuse, ..sharing(&redis, "b") }, other, &world).await;
    assert!(a.redis().await["detail"].as_str().unwrap().contains("instance a: it can be used"));
    redis.kill();
    for site in [&a, &strict] {
        until("it is degraded", async || site.redis().await["status"] == "degraded").await;
        let ready = site.get("/readyz").await;
        assert_eq!((ready.status.as_u16(), &ready.json()["status"], &ready.json()["ready"]), (200, &json!("degraded"), &json!(true)));
        let unknown = site.get("/v1/tenants/acme/task").await;
        assert_eq!((unknown.problem(503).as_str(), unknown.header("retry-after")), ("SF0133", "1"), "nobody knows whether it has one");
        let page = site.get("/plans").await.text;
        assert!(page.contains("Redis is away") && page.contains("class=\"banner\""), "{page}");
    }
    assert!(strict.redis().await["detail"].as_str().unwrap().contains("no stage and no lock begins"), "{}", strict.redis().await);
    redis.restart();
    for site in [&a, &strict] {
        until("it is up", async || site.redis().await["status"] == "up").await;
        assert!(!site.get("/plans").await.text.contains("Redis is away"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_show_what_another_server_has_and_retry_it_once_that_is_gone() {
    let redis = RedisServer::start();
    let (a, b, world) = two(&redis).await;
    world.script("acme/verify", &[How::Hangs]);
    a.switch("p", &["acme"]).await;
    until("it verifies", async || world.times("acme/verify") == 1).await;
    a.engine.shared().await;
    let contains = |page: &str, parts: &[&str]| parts.iter().for_each(|part| assert!(page.contains(part), "{part} is not in {page}"));
    let plan = b.get("/plans/p").await.text;
    contains(&plan, &["Instance <code>a</code> has this plan", ">verify<", "Instance <code>b</code> · Redis is up"]);
    assert!(!plan.contains("What can be done"), "{plan}");
    let tenant = b.get("/tenants/acme").await.text;
    contains(&tenant, &["Instance <code>a</code> has this task", "at the stage <code>verify</code>", "which lives"]);
    assert!(!tenant.contains("<form"), "{tenant}");
    contains(&a.get("/locks").await.text, &["tasks of instance <code>a</code>"]);

    let _store = a.dies();
    until("a is gone", async || b.get("/tenants/acme").await.text.contains("and is gone")).await;
    contains(&b.get("/tenants/acme").await.text, &["Retry from checkpoint", "Roll back", "Break the lock"]);
    contains(&b.get("/plans/p").await.text, &["had this plan, and is gone"]);
    let form = "verb=retry&task=p%2Facme&reason=a+is+gone";
    let sent = b.request(Method::POST, "/tenants/acme").header("origin", b.url(""));
    let sent = sent.header("content-type", "application/x-www-form-urlencoded").body(form);
    assert_eq!(b.send(sent).await.status, 200, "the page, after what was done");
    b.task_is("acme", "COMPLETED").await;
    contains(&b.get("/tenants/acme").await.text, &["TASK_ADOPTED", "All of its stages are done."]);
}
