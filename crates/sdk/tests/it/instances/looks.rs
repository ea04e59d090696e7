//! What one instance shows of what another one has.
//!
//! Subject: `crates/runtime/src/engine/elsewhere.rs`.

use super::{FIVE, begin, instance, is_gone, mirror_is_true, start, task_is, until};
use crate::plans::{How, World};
use steadfast::memory::Memory;
use steadfast::{Engine, PlanStatus, TaskStatus};
use steadfast_test_servers::RedisServer;

async fn two(redis: &RedisServer, world: &World) -> (Engine, Engine) {
    let a = start(instance(redis, "a", &Memory::new()).plan(world.plan(&FIVE))).await;
    let b = start(instance(redis, "b", &Memory::new()).plan(world.plan(&FIVE))).await;
    (a, b)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_shows_the_plans_and_tasks_of_the_other() {
    let (redis, world) = (RedisServer::start(), World::default());
    let (a, b) = two(&redis, &world).await;
    world.script("t2", "s3", &[How::Hangs]);
    let tenants = ["t3", "t1", "t2", "t0"];
    let plan = a.create_plan("switch").id("night").tenants(tenants).max_concurrency(1).await.unwrap();
    plan.start().await.unwrap();
    until("it is in stage 3 of t2", async || world.times("t2/s3") == 1).await;
    a.shared().await;

    let (here, there) = (plan.info().await.unwrap(), b.plan_status("night").await.unwrap());
    assert_eq!(there.tasks.iter().map(|task| task.as_str()).collect::<Vec<_>>(), ["night/t3", "night/t1", "night/t2", "night/t0"]);
    assert_eq!((&there.tasks, &there.tenants, &there.progress), (&here.tasks, &here.tenants, &here.progress));
    assert_eq!((there.status, there.max_concurrency), (PlanStatus::Running, 1));
    assert_eq!((there.created_at, there.started_at), (here.created_at, here.started_at));
    assert_eq!(there.elsewhere.unwrap().as_str(), "a");
    for tenant in tenants {
        let (here, there) = (a.task_status_by_tenant(tenant).await.unwrap(), b.task_status_by_tenant(tenant).await.unwrap());
        assert_eq!((there.status, &there.task, &there.checkpoint), (here.status, &here.task, &here.checkpoint), "{tenant}");
        assert_eq!((there.started_at, there.stages), (here.started_at, here.stages));
        assert_eq!(there.lock.map(|lock| lock.fence), here.lock.map(|lock| lock.fence));
        assert_eq!(b.has_checkpoint(tenant).await.unwrap(), a.has_checkpoint(tenant).await.unwrap());
    }
    mirror_is_true(&a, &redis).await;

    drop((plan, a));
    is_gone(&redis, "a").await;
    let there = b.plan_status("night").await.unwrap();
    assert_eq!((there.status, there.progress.get(&TaskStatus::Interrupted)), (PlanStatus::Paused, Some(&1)), "{:?}", there.progress);
    assert!(there.why.unwrap().contains("instance a is gone"));
    assert_eq!(b.task_status_by_tenant("t2").await.unwrap().status, TaskStatus::Interrupted);
    assert_eq!(b.task_status_by_tenant("t1").await.unwrap().status, TaskStatus::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wanted_of_a_plan_of_another_names_that_one() {
    let (redis, world) = (RedisServer::start(), World::default());
    let (a, b) = two(&redis, &world).await;
    world.script("acme", "s3", &[How::Hangs]);
    begin(&a, "night", &["acme"]).await;
    until("it is in stage 3", async || world.times("acme/s3") == 1).await;
    a.shared().await;
    let there = b.plan("night").unwrap();
    for act in [there.start(), there.pause(), there.resume(), there.cancel(), there.roll_back()] {
        let refused = act.await.unwrap_err();
        assert_eq!((refused.code(), refused.to_string().contains("instance a")), ("SF0132", true), "{refused}");
    }
    let refused = b.break_lock("acme").await.unwrap_err();
    assert_eq!((refused.code(), refused.to_string().contains("instance a")), ("SF0132", true), "{refused}");
    let taken = b.create_plan("switch").id("night").tenants(["other"]).await.map(drop).unwrap_err();
    assert_eq!((taken.code(), taken.to_string().contains("instance a")), ("SF0132", true), "{taken}");
    let locked = b.create_plan("switch").id("day").tenants(["acme"]).await.map(drop).unwrap_err();
    assert!(locked.to_string().contains("night:night/acme:a:1"), "{locked}");
    for (unknown, code) in
        [(b.plan_status("nobody").await.map(drop), "SF0124"), (b.task_status_by_tenant("nobody").await.map(drop), "SF0128")]
    {
        assert_eq!(unknown.unwrap_err().code(), code);
    }
    assert_eq!(a.task_status_by_tenant("acme").await.unwrap().status, TaskStatus::Running);
    mirror_is_true(&a, &redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_task_that_was_made_last_is_a_tenants_wherever_it_is() {
    let (redis, world) = (RedisServer::start(), World::default());
    let (a, b) = two(&redis, &world).await;
    begin(&b, "first", &["acme"]).await;
    task_is(&b, "acme", TaskStatus::Completed).await;
    b.shared().await;
    assert_eq!(a.task_status_by_tenant("acme").await.unwrap().task.as_str(), "first/acme");
    world.script("acme", "s3", &[How::Works, How::Hangs]);
    world.script("acme", "s4", &[How::Hangs]);
    begin(&a, "second", &["acme"]).await;
    until("a is in stage 4", async || world.times("acme/s4") == 2).await;
    a.shared().await;
    for engine in [&a, &b] {
        let last = engine.task_status_by_tenant("acme").await.unwrap();
        assert_eq!((last.task.as_str(), last.status), ("second/acme", TaskStatus::Running));
    }
    mirror_is_true(&a, &redis).await;
    mirror_is_true(&b, &redis).await;
}

/// It is older than its record where it was taken up.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_was_taken_up_is_not_newer_because_of_that() {
    let (redis, world) = (RedisServer::start(), World::default());
    let (a, b) = two(&redis, &world).await;
    a.create_plan("switch").id("first").tenants(["acme"]).await.unwrap();
    a.shared().await;
    a.hand_over("acme").await.unwrap();
    a.create_plan("switch").id("second").tenants(["acme"]).await.unwrap();
    a.shared().await;
    redis.cli(&["SET", "executor:index:tenant:acme", "first/acme"]);
    b.retry_task_by_tenant("acme", true).await.unwrap();
    until("b has done it", async || world.times("acme/s5") == 1).await;
    b.shared().await;
    redis.cli(&["SET", "executor:index:tenant:acme", "second/acme"]);
    task_is(&b, "acme", TaskStatus::Pending).await;
    assert_eq!(b.task_status_by_tenant("acme").await.unwrap().task.as_str(), "second/acme");
    mirror_is_true(&a, &redis).await;
    mirror_is_true(&b, &redis).await;
}
