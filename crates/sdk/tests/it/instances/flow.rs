//! The way of an operator across instances: roll out on one, lose it, look and retry on another.
//!
//! Subject: `crates/runtime/src/engine/adopt.rs`.

use super::{counts, instance, start, task_is, until};
use crate::plans::{How, TEN, World};
use steadfast::memory::Memory;
use steadfast::{PlanStatus, TaskStatus};
use steadfast_test_servers::RedisServer;

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_instance_is_gone_goes_on_elsewhere_from_its_checkpoint() {
    let (redis, world) = (RedisServer::start(), World::default());
    let (store_a, store_b) = (Memory::new(), Memory::new());
    world.script("acme", "s5", &[How::Hangs]);
    let a = start(instance(&redis, "a", &store_a).plan(world.plan(&TEN))).await;
    let b = start(instance(&redis, "b", &store_b).plan(world.plan(&TEN))).await;
    let plan = a.create_plan("switch").id("night").tenants(["acme", "other"]).max_concurrency(1).await.unwrap();
    plan.start().await.unwrap();
    until("it is in stage 5", async || world.times("acme/s5") == 1).await;
    a.shared().await;

    let seen = b.task_status_by_tenant("acme").await.unwrap();
    assert_eq!((seen.status, seen.checkpoint.as_ref().unwrap().index), (TaskStatus::Running, 3));
    assert_eq!(seen.elsewhere.as_ref().map(|owner| owner.as_str()), Some("a"));
    let refused = b.retry_task_by_tenant("acme", true).await.unwrap_err();
    assert!(refused.to_string().contains("instance a"), "{refused}");
    assert_eq!(b.plan_status("night").await.unwrap().status, PlanStatus::Running);

    drop((plan, a));
    let seen = task_is(&b, "acme", TaskStatus::Interrupted).await; // once the heartbeat of a is gone
    assert_eq!(seen.elsewhere.as_ref().map(|owner| owner.as_str()), Some("a"));
    b.retry_task_by_tenant("acme", true).await.unwrap();
    let done = task_is(&b, "acme", TaskStatus::Completed).await;
    assert_eq!(done.elsewhere, None, "it is b's now");
    assert_eq!(counts(&world, "acme", &TEN), [1, 1, 1, 1, 2, 1, 1, 1, 1, 1], "only what was not done");

    let a = start(instance(&redis, "a", &store_a.reopen()).plan(world.plan(&TEN))).await;
    until("a steps back", async || {
        let task = a.run("night/acme").unwrap().view().await.unwrap().task.unwrap();
        task.status == TaskStatus::HandedOver
    })
    .await;
    let refused = a.run("night/acme").unwrap().retry().await.unwrap_err();
    assert!(refused.to_string().contains("HANDED_OVER"), "{refused}");
    assert_eq!(a.task_status_by_tenant("acme").await.unwrap().status, TaskStatus::Completed, "a knows what b has done");
    assert_eq!(counts(&world, "acme", &TEN), [1, 1, 1, 1, 2, 1, 1, 1, 1, 1], "a touches nothing");
}
