//! Redis has lost what it knew, while everybody was connected.
//!
//! Subject: `crates/runtime/src/commons/worker.rs`.

use super::super::GONE_AFTER;
use super::scene::Does;
use super::*;
use steadfast::TaskStatus;

#[tokio::test(flavor = "multi_thread")]
async fn what_lives_is_there_again_within_a_beat_and_nobody_is_alerted() {
    let (redis, store, scene) = (RedisServer::start(), Memory::new(), Scene::new());
    let engine = start(instance(&redis, "a", &store, &scene)).await;
    let alerts = Alerts::of(&engine).await;
    scene.script("acme/s3", Does::Holds);
    scene.script("broken/s2", Does::Breaks);
    let plan = engine.create_plan("switch").id("night").tenants(["acme", "broken", "done"]).await.unwrap();
    plan.start().await.unwrap();
    engine.create_plan("switch").id("made").tenants(["made"]).await.unwrap();
    until("it is in stage 3", async || scene.times("acme/s3") == 1).await;
    task_is(&engine, "broken", TaskStatus::Failed).await;
    task_is(&engine, "done", TaskStatus::Completed).await;
    engine.shared().await;
    let live = |redis: &RedisServer| {
        let is_live = |key: &String| !key.contains("done");
        redis.keys().into_iter().filter(is_live).collect::<Vec<_>>()
    };
    let before = live(&redis);
    for _ in 0..3 {
        redis.flush();
        let began = tokio::time::Instant::now();
        let missing = || before.iter().filter(|key| !live(&redis).contains(key)).cloned().collect::<Vec<_>>();
        let patience = began + 10 * GONE_AFTER;
        while !missing().is_empty() {
            assert!(tokio::time::Instant::now() < patience, "{:?} never came back", missing());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(began.elapsed() < GONE_AFTER, "within a beat, and not {:?}", began.elapsed());
        mirror_is_true(&engine, &redis).await;
    }
    scene.let_go("acme/s3");
    task_is(&engine, "acme", TaskStatus::Completed).await;
    engine.retry_task_by_tenant("broken", true).await.unwrap();
    task_is(&engine, "broken", TaskStatus::Completed).await;
    assert_eq!((scene.counts("acme"), scene.counts("broken")), ([1; 4], [1, 2, 1, 1]));
    assert_eq!(alerts.lines(), Vec::<String>::new());
    mirror_is_true(&engine, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_lock_is_given_before_the_others_could_say_what_they_have() {
    let (mut redis, scene) = (RedisServer::start(), Scene::new());
    let a = start(instance(&redis, "a", &Memory::new(), &scene)).await;
    let b = start(instance(&redis, "b", &Memory::new(), &scene)).await;
    until("they know of each other", async || a.sharing().unwrap().seen.is_some() && b.sharing().unwrap().seen.is_some()).await;
    // The plan of b is made and started while the tenant is free: only the lock is in its way.
    scene.script("first/s1", Does::Holds);
    let plan = b.create_plan("switch").id("day").tenants(["first", "acme"]).max_concurrency(1).await.unwrap();
    plan.start().await.unwrap();
    until("b is busy", async || scene.times("first/s1") == 1).await;
    scene.script("acme/s2", Does::Holds);
    a.create_plan("switch").id("night").tenants(["acme"]).await.unwrap().start().await.unwrap();
    until("a is in a stage", async || scene.times("acme/s2") == 1).await;
    for crashes in [false, true] {
        a.shared().await;
        match crashes {
            false => redis.flush(),
            true => {
                redis.kill();
                away(&a).await;
                redis.restart();
            }
        }
        scene.let_go("first/s1");
        until("a has its lock again", async || {
            truth::text(&redis, "lock:tenant:acme").is_some_and(|lock| lock.starts_with("night:night/acme:a:"))
        })
        .await;
        assert_eq!(scene.counts("acme"), [1, 1, 0, 0], "b has not begun");
    }
    back(&b).await;
    scene.let_go("acme/s2");
    until("a is done", async || a.run("night/acme").unwrap().view().await.unwrap().task.unwrap().status == TaskStatus::Completed).await;
    until("b is", async || {
        let _if_its_stage_was_not_begun = b.run("day/first").unwrap().retry().await;
        b.run("day/acme").unwrap().view().await.unwrap().task.unwrap().status == TaskStatus::Completed
    })
    .await;
    assert_eq!((scene.clashes().len(), scene.counts("acme")), (0, [2; 4]));
    mirror_is_true(&a, &redis).await;
    mirror_is_true(&b, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_new_owner_of_a_task_stays_its_owner_and_the_old_one_steps_back() {
    let (redis, scene) = (RedisServer::start(), Scene::new());
    let (store_a, store_b) = (Memory::new(), Memory::new());
    scene.script("acme/s2", Does::Holds);
    let a = start(instance(&redis, "a", &store_a, &scene)).await;
    a.create_plan("switch").id("night").tenants(["acme"]).await.unwrap().start().await.unwrap();
    until("it is in stage 2", async || scene.times("acme/s2") == 1).await;
    a.shared().await;
    drop(a);
    let b = start(instance(&redis, "b", &store_b, &scene)).await;
    task_is(&b, "acme", TaskStatus::Interrupted).await;
    scene.script("acme/s3", Does::Holds);
    b.retry_task_by_tenant("acme", true).await.unwrap();
    until("b is in stage 3", async || scene.times("acme/s3") == 1).await;
    b.shared().await;
    redis.flush();
    until("b has said what it has", async || truth::hash(&redis, "task:night/acme").get("owner").is_some_and(|owner| owner == "b")).await;
    let a = start(instance(&redis, "a", &store_a.reopen(), &scene)).await;
    until("a steps back", async || a.run("night/acme").unwrap().view().await.unwrap().task.unwrap().status == TaskStatus::HandedOver).await;
    scene.let_go("acme/s3");
    task_is(&b, "acme", TaskStatus::Completed).await;
    assert_eq!(scene.counts("acme"), [1, 2, 1, 1]);
    mirror_is_true(&b, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_higher_number_in_redis_is_believed_and_what_is_here_is_not() {
    let (redis, scene) = (RedisServer::start(), Scene::new());
    let engine = start(instance(&redis, "a", &Memory::new(), &scene)).await;
    scene.script("acme/s2", Does::Holds);
    engine.create_plan("switch").id("night").tenants(["acme"]).await.unwrap().start().await.unwrap();
    until("it is in stage 2", async || scene.times("acme/s2") == 1).await;
    engine.shared().await;
    redis.flush();
    redis.cli(&["SET", "executor:fence:tenant:acme", "9"]); // another had it, and has given it back
    task_is(&engine, "acme", TaskStatus::Interrupted).await;
    assert_eq!((truth::fence(&redis, "acme"), truth::text(&redis, "lock:tenant:acme")), (9, None));
    mirror_is_true(&engine, &redis).await;
    engine.retry_task_by_tenant("acme", true).await.unwrap();
    task_is(&engine, "acme", TaskStatus::Completed).await;
    assert_eq!((truth::fence(&redis, "acme"), scene.counts("acme")), (10, [1, 2, 1, 1]));
    mirror_is_true(&engine, &redis).await;
}
