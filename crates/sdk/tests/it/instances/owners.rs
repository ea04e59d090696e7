//! Who goes on with a task when its instance is gone, in every state in which that can happen.
//!
//! Subject: `crates/runtime/src/engine/adopt.rs`.

use super::mirror::{hash, text};
use super::{FIVE, begin, counts, instance, is_gone, mirror_is_true, start, task_is, until};
use crate::plans::{How, World};
use steadfast::memory::Memory;
use steadfast::{Engine, Plan, TaskStatus};
use steadfast_test_servers::RedisServer;

async fn named(redis: &RedisServer, name: &str, store: &Memory, world: &World) -> Engine {
    start(instance(redis, name, store).plan(world.plan(&FIVE))).await
}

async fn status_here(engine: &Engine, task: &str) -> TaskStatus {
    engine.run(task).unwrap().view().await.unwrap().task.unwrap().status
}

async fn steps_back(engine: &Engine, task: &str) {
    until("it steps back", async || status_here(engine, task).await == TaskStatus::HandedOver).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_three_goes_on_from_where_the_one_before_has_died() {
    let (redis, world) = (RedisServer::start(), World::default());
    let stores = [Memory::new(), Memory::new(), Memory::new()];
    world.script("acme", "s2", &[How::Hangs]);
    world.script("acme", "s4", &[How::Hangs]);
    let a = named(&redis, "a", &stores[0], &world).await;
    let b = named(&redis, "b", &stores[1], &world).await;
    let c = named(&redis, "c", &stores[2], &world).await;
    begin(&a, "night", &["acme"]).await;
    until("a is in stage 2", async || world.times("acme/s2") == 1).await;
    a.shared().await;
    drop(a);
    is_gone(&redis, "a").await;
    b.retry_task_by_tenant("acme", true).await.unwrap();
    until("b is in stage 4", async || world.times("acme/s4") == 1).await;
    b.shared().await;
    drop(b);
    is_gone(&redis, "b").await;
    c.retry_task_by_tenant("acme", true).await.unwrap();
    task_is(&c, "acme", TaskStatus::Completed).await;
    assert_eq!(counts(&world, "acme", &FIVE), [1, 2, 1, 2, 1], "only what was not done");

    let a = named(&redis, "a", &stores[0].reopen(), &world).await;
    let b = named(&redis, "b", &stores[1].reopen(), &world).await;
    steps_back(&a, "night/acme").await;
    steps_back(&b, "night/acme").await;
    for engine in [&a, &b, &c] {
        assert_eq!(engine.task_status_by_tenant("acme").await.unwrap().status, TaskStatus::Completed);
        mirror_is_true(engine, &redis).await;
    }
    assert_eq!(counts(&world, "acme", &FIVE), [1, 2, 1, 2, 1], "who comes back touches nothing");
    assert_eq!(hash(&redis, "task:night/acme")["owner"], "c");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_may_come_back_to_the_instance_that_has_lost_it() {
    let (redis, world) = (RedisServer::start(), World::default());
    let store = Memory::new();
    world.script("acme", "s2", &[How::Hangs]);
    world.script("acme", "s4", &[How::Hangs]);
    let a = named(&redis, "a", &store, &world).await;
    let b = named(&redis, "b", &Memory::new(), &world).await;
    begin(&a, "night", &["acme"]).await;
    until("a is in stage 2", async || world.times("acme/s2") == 1).await;
    a.shared().await;
    drop(a);
    is_gone(&redis, "a").await;
    b.retry_task_by_tenant("acme", true).await.unwrap();
    until("b is in stage 4", async || world.times("acme/s4") == 1).await;
    b.shared().await;
    let a = named(&redis, "a", &store.reopen(), &world).await;
    steps_back(&a, "night/acme").await;
    drop(b);
    is_gone(&redis, "b").await;
    a.retry_task_by_tenant("acme", true).await.unwrap();
    let done = task_is(&a, "acme", TaskStatus::Completed).await;
    assert_eq!(done.elsewhere, None);
    assert_eq!(counts(&world, "acme", &FIVE), [1, 2, 1, 2, 1]);
    mirror_is_true(&a, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_take_a_task_up_at_once_one_has_it_and_the_other_knows_who() {
    let (redis, world) = (RedisServer::start(), World::default());
    let tenants: Vec<String> = (0..20).map(|tenant| format!("t{tenant}")).collect();
    let names: Vec<&str> = tenants.iter().map(String::as_str).collect();
    for tenant in &names {
        world.script(tenant, "s2", &[How::Hangs, How::Holds]);
    }
    let a = named(&redis, "a", &Memory::new(), &world).await;
    let b = named(&redis, "b", &Memory::new(), &world).await;
    let c = named(&redis, "c", &Memory::new(), &world).await;
    let plan = a.create_plan("switch").id("night").tenants(names.clone()).max_concurrency(20).await.unwrap();
    plan.start().await.unwrap();
    until("all are in stage 2", async || names.iter().all(|tenant| world.times(&format!("{tenant}/s2")) == 1)).await;
    a.shared().await;
    drop((plan, a));
    is_gone(&redis, "a").await;
    for tenant in &names {
        let (of_b, of_c) = tokio::join!(b.retry_task_by_tenant(tenant, true), c.retry_task_by_tenant(tenant, true));
        let (winner, refused) = match (of_b, of_c) {
            (Ok(()), Err(refused)) => ("b", refused),
            (Err(refused), Ok(())) => ("c", refused),
            both => panic!("not one of them has {tenant}: {both:?}"),
        };
        assert!(refused.to_string().contains(&format!("instance {winner}")), "{refused} [{}]", refused.code());
        assert_eq!(refused.code(), "SF0132");
    }
    until("all are in stage 2 again", async || names.iter().all(|tenant| world.times(&format!("{tenant}/s2")) == 2)).await;
    names.iter().for_each(|tenant| world.let_go(&format!("{tenant}/s2")));
    for tenant in &names {
        task_is(&b, tenant, TaskStatus::Completed).await;
        assert_eq!(counts(&world, tenant, &FIVE), [1, 2, 1, 1, 1]);
    }
    mirror_is_true(&b, &redis).await;
    mirror_is_true(&c, &redis).await;
}

/// Two people press the button on the same instance.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_taken_up_twice_at_once_by_one_instance_keeps_its_lock() {
    let (redis, world) = (RedisServer::start(), World::default());
    world.script("acme", "s2", &[How::Hangs, How::Holds]);
    let a = named(&redis, "a", &Memory::new(), &world).await;
    let b = named(&redis, "b", &Memory::new(), &world).await;
    begin(&a, "night", &["acme"]).await;
    until("a is in stage 2", async || world.times("acme/s2") == 1).await;
    a.shared().await;
    drop(a);
    is_gone(&redis, "a").await;
    let twice = tokio::join!(b.retry_task_by_tenant("acme", true), b.retry_task_by_tenant("acme", true));
    assert!(twice.0.is_ok() || twice.1.is_ok(), "{twice:?}");
    until("b is in stage 2", async || world.times("acme/s2") == 2).await;
    for _ in 0..3 {
        let left = || redis.cli(&["PTTL", "executor:instance:b"]).number();
        until("b is to say that it lives", async || left() < 1500).await;
        until("b looks after its locks", async || left() > 1600).await;
    }
    assert!(text(&redis, "lock:tenant:acme").is_some_and(|holder| holder.contains(":b:")));
    world.let_go("acme/s2");
    task_is(&b, "acme", TaskStatus::Completed).await;
    assert_eq!(counts(&world, "acme", &FIVE), [1, 2, 1, 1, 1]);
    mirror_is_true(&b, &redis).await;
}

/// What a is to have come to, before it dies; then b retries from the checkpoint, and that many of each stage were executed in all.
async fn goes_on(script: &[(&str, &[How])], reached: impl AsyncFn(&Engine, &World), seen: TaskStatus, expected: [usize; 5]) {
    let (redis, world) = (RedisServer::start(), World::default());
    for (stage, how) in script {
        world.script("acme", stage, how);
    }
    let a = named(&redis, "a", &Memory::new(), &world).await;
    let b = named(&redis, "b", &Memory::new(), &world).await;
    reached(&a, &world).await;
    a.shared().await;
    drop(a);
    is_gone(&redis, "a").await;
    let there = b.task_status_by_tenant("acme").await.unwrap();
    assert_eq!((there.status, there.elsewhere.unwrap().as_str()), (seen, "a"));
    b.retry_task_by_tenant("acme", true).await.unwrap();
    task_is(&b, "acme", TaskStatus::Completed).await;
    assert_eq!(counts(&world, "acme", &FIVE), expected);
    mirror_is_true(&b, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_without_a_checkpoint_begins_from_its_start() {
    let reached = async |a: &Engine, world: &World| {
        begin(a, "night", &["acme"]).await;
        until("it is in stage 1", async || world.times("acme/s1") == 1).await;
    };
    goes_on(&[("s1", &[How::Hangs])], reached, TaskStatus::Interrupted, [2, 1, 1, 1, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_has_not_begun_begins_elsewhere() {
    let reached = async |a: &Engine, _: &World| {
        a.create_plan("switch").id("night").tenants(["acme"]).await.unwrap();
    };
    goes_on(&[], reached, TaskStatus::Pending, [1; 5]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_was_paused_goes_on_elsewhere() {
    let reached = async |a: &Engine, world: &World| {
        let plan = begin(a, "night", &["acme"]).await;
        until("it is in stage 2", async || world.times("acme/s2") == 1).await;
        plan.pause().await.unwrap();
        world.let_go("acme/s2");
        task_is(a, "acme", TaskStatus::Paused).await;
    };
    goes_on(&[("s2", &[How::Holds])], reached, TaskStatus::Interrupted, [1; 5]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_has_failed_and_keeps_its_lock_goes_on_elsewhere() {
    let reached = async |a: &Engine, _: &World| {
        begin(a, "night", &["acme"]).await;
        task_is(a, "acme", TaskStatus::Failed).await;
    };
    goes_on(&[("s3", &[How::Fails])], reached, TaskStatus::Failed, [1, 1, 2, 1, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_was_cancelled_goes_on_elsewhere() {
    let reached = async |a: &Engine, world: &World| {
        let plan = begin(a, "night", &["acme"]).await;
        until("it is in stage 3", async || world.times("acme/s3") == 1).await;
        plan.cancel().await.unwrap();
        task_is(a, "acme", TaskStatus::Cancelled).await;
    };
    goes_on(&[("s3", &[How::Hangs])], reached, TaskStatus::Cancelled, [1, 1, 2, 1, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_has_completed_is_retried_elsewhere_from_its_start_only() {
    let (redis, world) = (RedisServer::start(), World::default());
    let a = named(&redis, "a", &Memory::new(), &world).await;
    let b = named(&redis, "b", &Memory::new(), &world).await;
    begin(&a, "night", &["acme"]).await;
    task_is(&a, "acme", TaskStatus::Completed).await;
    let on_its_owner = a.retry_task_by_tenant("acme", true).await.unwrap_err().to_string();
    a.shared().await;
    drop(a);
    is_gone(&redis, "a").await;
    let before = hash(&redis, "task:night/acme");
    let refused = b.retry_task_by_tenant("acme", true).await.unwrap_err();
    assert_eq!(refused.to_string(), on_its_owner);
    assert_eq!(hash(&redis, "task:night/acme"), before, "nothing has changed");
    assert_eq!(text(&redis, "lock:tenant:acme"), None);
    b.retry_task_by_tenant("acme", false).await.unwrap();
    until("it has completed again", async || world.times("acme/s5") == 2).await;
    task_is(&b, "acme", TaskStatus::Completed).await;
    assert_eq!(counts(&world, "acme", &FIVE), [2; 5]);
    mirror_is_true(&b, &redis).await;
}

/// A definition that is missing, or of the same name and other stages.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_definition_is_not_here_is_left_alone() {
    let (redis, world) = (RedisServer::start(), World::default());
    world.script("acme", "s2", &[How::Hangs]);
    let a = named(&redis, "a", &Memory::new(), &world).await;
    let b = start(instance(&redis, "b", &Memory::new())).await;
    let c = start(instance(&redis, "c", &Memory::new()).plan(world.plan(&["s1", "s2", "other"]))).await;
    begin(&a, "night", &["acme"]).await;
    until("a is in stage 2", async || world.times("acme/s2") == 1).await;
    a.shared().await;
    drop(a);
    is_gone(&redis, "a").await;
    let there = |redis: &RedisServer| {
        let keys = ["lock:tenant:acme", "fence:tenant:acme", "ckpt:night/acme"];
        (hash(redis, "task:night/acme"), hash(redis, "plan:night"), keys.map(|key| text(redis, key)))
    };
    let before = there(&redis);
    for engine in [&b, &c] {
        let refused = engine.retry_task_by_tenant("acme", true).await.unwrap_err();
        assert_eq!(refused.code(), "SF0135", "{refused}");
        assert_eq!(there(&redis), before, "nothing has changed");
    }
    redis.cli(&["DEL", "executor:plan:night"]);
    let d = named(&redis, "d", &Memory::new(), &world).await;
    let refused = d.retry_task_by_tenant("acme", true).await.unwrap_err();
    assert!(refused.to_string().contains("night"), "{refused}");
    assert_eq!((there(&redis).0, there(&redis).2), (before.0, before.2), "nothing has changed");
    assert_eq!(counts(&world, "acme", &FIVE), [1, 1, 0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_tenant_another_plan_has_meanwhile_is_not_taken_up() {
    let (redis, world) = (RedisServer::start(), World::default());
    world.script("acme", "s2", &[How::Hangs, How::Holds]);
    let a = named(&redis, "a", &Memory::new(), &world).await;
    let b = named(&redis, "b", &Memory::new(), &world).await;
    let c = named(&redis, "c", &Memory::new(), &world).await;
    begin(&a, "night", &["acme"]).await;
    until("a is in stage 2", async || world.times("acme/s2") == 1).await;
    a.shared().await;
    drop(a);
    is_gone(&redis, "a").await;
    c.break_lock("acme").await.unwrap();
    begin(&c, "day", &["acme"]).await;
    until("c is in stage 2", async || world.times("acme/s2") == 2).await;
    c.shared().await;
    redis.cli(&["SET", "executor:index:tenant:acme", "night/acme"]);
    let refused = b.retry_task_by_tenant("acme", true).await.unwrap_err();
    assert!(refused.to_string().contains("day:day/acme:c:"), "{refused}");
    assert_eq!(hash(&redis, "task:night/acme")["owner"], "a", "nothing has changed");
    redis.cli(&["SET", "executor:index:tenant:acme", "day/acme"]);
    world.let_go("acme/s2");
    task_is(&c, "acme", TaskStatus::Completed).await;
    mirror_is_true(&c, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_in_backoff_goes_on_elsewhere_with_all_of_its_attempts() {
    use steadfast::{Failure, HOUR, Policy, Task};
    let (redis, tried) = (RedisServer::start(), std::sync::Arc::new(std::sync::Mutex::new(Vec::<String>::new())));
    let plan = |name: &'static str| {
        let tried = tried.clone();
        Plan::new("switch")
            .stage("s1", |_: Task| async { Ok::<_, Failure>(serde_json::json!({"seen": 7})) })
            .stage("s2", move |task: Task| {
                tried
                    .lock()
                    .unwrap()
                    .push(format!("{name} {} {}", task.attempt(), task.checkpoint::<u32>("seen").unwrap()));
                async move { if name == "a" { Err(Failure::transient("not yet")) } else { Ok(()) } }
            })
            .retry(Policy::constant(HOUR).max_attempts(3))
    };
    let a = start(instance(&redis, "a", &Memory::new()).plan(plan("a"))).await;
    let b = start(instance(&redis, "b", &Memory::new()).plan(plan("b"))).await;
    begin(&a, "night", &["acme"]).await;
    until("it was tried once", async || tried.lock().unwrap().len() == 1).await;
    task_is(&a, "acme", TaskStatus::Waiting).await;
    a.shared().await;
    drop(a);
    is_gone(&redis, "a").await;
    b.retry_task_by_tenant("acme", true).await.unwrap();
    task_is(&b, "acme", TaskStatus::Completed).await;
    assert_eq!(*tried.lock().unwrap(), ["a 1 7", "b 1 7"]);
    mirror_is_true(&b, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_waits_for_time_or_a_person_waits_elsewhere_when_it_is_retried() {
    use std::time::Duration;
    use steadfast::{Failure, Task};
    let redis = RedisServer::start();
    let plan = || {
        let nothing = |_: Task| async { Ok::<_, Failure>(()) };
        let waits = Plan::new("switch").stage("s1", nothing).wait("calm", Duration::from_millis(3500));
        waits.approve("yes", ["admin"], None).stage("s2", nothing)
    };
    let a = start(instance(&redis, "a", &Memory::new()).plan(plan())).await;
    let b = start(instance(&redis, "b", &Memory::new()).plan(plan())).await;
    let c = start(instance(&redis, "c", &Memory::new()).plan(plan())).await;
    begin(&a, "night", &["acme"]).await;
    until("it waits", async || !a.task_status_by_tenant("acme").await.unwrap().waits.is_empty()).await;
    a.shared().await;
    drop(a);
    is_gone(&redis, "a").await;
    b.retry_task_by_tenant("acme", true).await.unwrap();
    until("it waits for a person", async || {
        let task = b.task_status_by_tenant("acme").await.unwrap();
        task.waits
            .iter()
            .any(|wait| matches!(wait, steadfast::Wait::Approval { name, .. } if name == "yes"))
    })
    .await;
    b.shared().await;
    drop(b);
    is_gone(&redis, "b").await;
    c.retry_task_by_tenant("acme", true).await.unwrap();
    until("it waits for a person", async || !c.task_status_by_tenant("acme").await.unwrap().waits.is_empty()).await;
    c.run("night/acme").unwrap().signal("yes", &serde_json::json!({"approved": true})).await.unwrap();
    task_is(&c, "acme", TaskStatus::Completed).await;
    mirror_is_true(&c, &redis).await;
}
