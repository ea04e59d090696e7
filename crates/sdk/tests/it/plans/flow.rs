//! The way of an operator: roll out, crash, look, retry.
//!
//! Subject: `crates/kernel/src/run/task.rs`.

use super::{How, TEN, World, engine, plan_is, task_is};
use steadfast::memory::Memory;
use steadfast::{Cause, HOUR, PlanStatus, TaskStatus};

#[tokio::test(start_paused = true)]
async fn every_tenant_goes_through_every_stage_once() {
    let (world, store) = (World::default(), Memory::new());
    let engine = engine(&store).plan(world.plan(&["drain", "switch", "verify"])).start().await.unwrap();
    let plan = engine
        .create_plan("switch")
        .id("all")
        .tenants(["a", "b", "c"])
        .vars(&serde_json::json!({"to": "blue"}))
        .await
        .unwrap();
    let info = plan.info().await.unwrap();
    assert_eq!((info.status, info.progress[&TaskStatus::Pending]), (PlanStatus::Ready, 3));
    assert_eq!(info.tasks.iter().map(ToString::to_string).collect::<Vec<_>>(), ["all/a", "all/b", "all/c"]);
    assert_eq!(world.did(), [] as [&str; 0], "nothing begins before it is started");
    plan.start().by("ada").why("tonight").await.unwrap();
    let ended = plan.ended().await.unwrap();
    assert_eq!((ended.status, ended.progress[&TaskStatus::Completed]), (PlanStatus::Completed, 3));
    let mut did = world.did();
    did.sort();
    assert_eq!(did, ["a/drain", "a/switch", "a/verify", "b/drain", "b/switch", "b/verify", "c/drain", "c/switch", "c/verify"]);
    let task = engine.task_status_by_tenant("a").await.unwrap();
    assert_eq!(task.checkpoint.as_ref().map(|checkpoint| checkpoint.index), Some(1), "none after the last stage");
    assert_eq!(task.lock, None);
    crate::support::until("the locks are free", async || engine.locks().await.unwrap().is_empty()).await;
}

/// The whole flow of an operator: the process dies in stage 5 of 10.
#[tokio::test(start_paused = true)]
async fn after_a_crash_in_stage_5_of_10_a_person_finds_the_tenant_and_retries_from_the_checkpoint() {
    let (world, store) = (World::default(), Memory::new());
    world.script("acme", "s5", &[How::Hangs]);
    let first = engine(&store).plan(world.plan(&TEN)).start().await.unwrap();
    let plan = first
        .create_plan("switch")
        .id("night")
        .tenants(["acme", "b", "c", "d"])
        .max_concurrency(1)
        .await
        .unwrap();
    plan.start().await.unwrap();
    crate::support::until("it is in stage 5", async || world.times("acme/s5") == 1).await;
    drop((plan, first));

    let second = engine(&store.reopen()).plan(world.plan(&TEN)).start().await.unwrap();
    let task = task_is(&second, "acme", TaskStatus::Interrupted).await;
    assert_eq!((task.stage, task.checkpoint.as_ref().unwrap().index), (Some((4, "s5".into())), 3), "checkpoint after stage 4");
    assert!(second.has_checkpoint("acme").await.unwrap());
    assert_eq!(task.lock.as_ref().map(|lock| lock.fence), Some(1), "the lock is kept");
    assert!(!task.pause_requested, "that is how a crash is told from a pause");
    let plan = second.plan("night").unwrap();
    let info = plan_is(&plan, PlanStatus::Paused).await;
    assert_eq!(info.cause, Some(Cause::Restart));
    assert_eq!((info.tasks.len(), info.max_concurrency), (4, 1));
    tokio::time::sleep(HOUR).await;
    assert_eq!(world.did().len(), 5, "nothing goes on by itself");

    second.retry_task_by_tenant("acme", true).await.unwrap();
    task_is(&second, "acme", TaskStatus::Completed).await;
    let counts: Vec<usize> = TEN.iter().map(|stage| world.times(&format!("acme/{stage}"))).collect();
    assert_eq!(counts, [1, 1, 1, 1, 2, 1, 1, 1, 1, 1], "only what was not done");
    assert_eq!(world.did().iter().filter(|did| did.starts_with("b/")).count(), 0, "only this one task");
    assert_eq!(plan.info().await.unwrap().status, PlanStatus::Paused);
    plan.resume().await.unwrap();
    assert_eq!(plan.ended().await.unwrap().status, PlanStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_failed_task_keeps_its_lock_and_its_checkpoint_and_the_others_go_on() {
    let (world, store) = (World::default(), Memory::new());
    world.script("b", "s3", &[How::Fails]);
    let engine = engine(&store).plan(world.plan(&["s1", "s2", "s3", "s4"])).start().await.unwrap();
    let plan = engine.create_plan("switch").id("fails").tenants(["a", "b", "c"]).await.unwrap();
    plan.start().await.unwrap();
    let ended = plan.ended().await.unwrap();
    assert_eq!((ended.status, ended.why.as_deref()), (PlanStatus::Failed, Some("1 of 3 tasks have failed")));
    let task = engine.task_status_by_tenant("b").await.unwrap();
    assert_eq!(
        (task.status, task.stage.clone().unwrap().1.as_str(), task.checkpoint.as_ref().unwrap().index),
        (TaskStatus::Failed, "s3", 1)
    );
    assert_eq!(task.failure.unwrap().message, "b/s3 is broken");
    let locks = engine.locks().await.unwrap();
    assert_eq!(locks.iter().map(|lock| (lock.tenant.as_str(), lock.lease.holder())).collect::<Vec<_>>(), [("b", "fails:fails/b".into())]);

    engine.retry_task_by_tenant("b", true).await.unwrap();
    plan_is(&plan, PlanStatus::Completed).await;
    assert_eq!(["s1", "s2", "s3", "s4"].map(|stage| world.times(&format!("b/{stage}"))), [1, 1, 2, 1]);
    assert_eq!(engine.task_status_by_tenant("b").await.unwrap().status, TaskStatus::Completed);
    crate::support::until("its lock is free", async || engine.locks().await.unwrap().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_from_the_start_runs_every_stage() {
    let (world, store) = (World::default(), Memory::new());
    world.script("a", "s2", &[How::Fails]);
    let engine = engine(&store).plan(world.plan(&["s1", "s2", "s3"])).start().await.unwrap();
    let plan = engine.create_plan("switch").id("again").tenants(["a"]).await.unwrap();
    plan.start().await.unwrap();
    plan_is(&plan, PlanStatus::Failed).await;
    engine.retry_task_by_tenant("a", false).await.unwrap();
    plan_is(&plan, PlanStatus::Completed).await;
    assert_eq!(["s1", "s2", "s3"].map(|stage| world.times(&format!("a/{stage}"))), [2, 2, 1]);
}
