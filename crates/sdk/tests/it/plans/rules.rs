//! How a plan goes about its tasks: how many at once, the canaries first, when it stops.
//!
//! Subject: `crates/kernel/src/plan/next.rs`.

use super::{How, World, engine, plan_is, task_is};
use crate::support::until;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use steadfast::memory::Memory;
use steadfast::{Cause, EntityId, Failure, Follow, HOUR, MINUTE, Plan, PlanStatus, Position, SECOND, StopWhen, Task, TaskStatus};

#[tokio::test(start_paused = true)]
async fn never_more_tasks_at_once_than_allowed() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (of_stages, peak) = (Arc::clone(&now), Arc::clone(&most));
    let work = move |_: Task| {
        let (now, most) = (Arc::clone(&of_stages), Arc::clone(&peak));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(SECOND).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, Failure>(())
        }
    };
    let engine = engine(&Memory::new())
        .plan(Plan::new("switch").max_concurrency(3).stage("s1", work.clone()).stage("s2", work))
        .start()
        .await
        .unwrap();
    let plan = engine.create_plan("switch").tenants((0..20).map(|n| format!("t{n}"))).await.unwrap();
    plan.start().await.unwrap();
    assert_eq!(plan.ended().await.unwrap().status, PlanStatus::Completed);
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn retries_of_many_tasks_do_not_stampede() {
    let (world, store) = (World::default(), Memory::new());
    let tenants: Vec<String> = (0..12).map(|n| format!("t{n}")).collect();
    tenants.iter().for_each(|tenant| world.script(tenant, "s1", &[How::Fails, How::Hangs]));
    let engine = engine(&store).plan(world.plan(&["s1"])).start().await.unwrap();
    let plan = engine.create_plan("switch").id("herd").tenants(&tenants).await.unwrap();
    plan.start().await.unwrap();
    plan_is(&plan, PlanStatus::Failed).await;
    for tenant in &tenants {
        engine.retry_task_by_tenant(tenant, true).await.unwrap();
    }
    until("two are at it", async || world.did().len() == 14).await;
    tokio::time::sleep(MINUTE).await;
    let info = plan.info().await.unwrap();
    assert_eq!((world.did().len(), info.progress[&TaskStatus::Running], info.progress[&TaskStatus::Pending]), (14, 2, 10));
    plan.cancel().await.unwrap();
    plan_is(&plan, PlanStatus::Cancelled).await;
}

#[tokio::test(start_paused = true)]
async fn the_canaries_come_first_and_one_that_fails_stops_the_others() {
    let (world, store) = (World::default(), Memory::new());
    world.script("b", "s1", &[How::Fails]);
    let engine = engine(&store).plan(world.plan(&["s1"]).canary(2).max_concurrency(10)).start().await.unwrap();
    let plan = engine.create_plan("switch").id("canaries").tenants(["a", "b", "c", "d"]).await.unwrap();
    plan.start().await.unwrap();
    let info = plan_is(&plan, PlanStatus::Paused).await;
    assert_eq!(info.cause, Some(Cause::Canary));
    assert!(info.why.unwrap().contains('b'));
    assert_eq!(world.did(), ["a/s1", "b/s1"]);
    assert_eq!(plan.resume().await.unwrap_err().code(), "SF0125", "a canary is not skipped by chance");
    engine.retry_task_by_tenant("b", true).await.unwrap();
    task_is(&engine, "b", TaskStatus::Completed).await;
    assert_eq!(plan.info().await.unwrap().status, PlanStatus::Paused, "a person decides");
    plan.resume().await.unwrap();
    assert_eq!(plan.ended().await.unwrap().status, PlanStatus::Completed);
    assert_eq!(world.did().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn it_stops_when_too_many_have_failed_and_goes_on_if_a_person_says_so() {
    let (world, store) = (World::default(), Memory::new());
    ["a", "b", "d", "e"].iter().for_each(|tenant| world.script(tenant, "s1", &[How::Fails]));
    let engine = engine(&store)
        .plan(world.plan(&["s1"]).max_concurrency(1).stop_when(StopWhen::Failed(2)))
        .start()
        .await
        .unwrap();
    let plan = engine.create_plan("switch").id("stops").tenants(["a", "b", "c", "d", "e", "f"]).await.unwrap();
    plan.start().await.unwrap();
    let info = plan_is(&plan, PlanStatus::Paused).await;
    assert_eq!((info.cause, world.did().len()), (Some(Cause::StopWhen), 2));
    plan.resume().why("known").await.unwrap();
    until("it goes on", async || world.did().len() > 2).await;
    plan_is(&plan, PlanStatus::Paused).await;
    assert_eq!(world.did(), ["a/s1", "b/s1", "c/s1", "d/s1", "e/s1"], "two more");
    plan.resume().await.unwrap();
    assert_eq!(plan.ended().await.unwrap().status, PlanStatus::Failed);
}

#[tokio::test(start_paused = true)]
async fn at_its_deadline_it_pauses_and_a_person_may_go_on() {
    let (world, store) = (World::default(), Memory::new());
    let plan = Plan::new("switch").max_concurrency(1).deadline(HOUR).wait("s1", 40 * MINUTE).stage("s2", {
        let world = world.clone();
        move |task: Task| world.clone().act(format!("{}/s2", task.tenant()))
    });
    let engine = engine(&store).plan(plan).start().await.unwrap();
    let plan = engine.create_plan("switch").id("late").tenants(["a", "b"]).await.unwrap();
    plan.start().await.unwrap();
    let info = plan.until(|info| info.status == PlanStatus::Paused).await.unwrap();
    assert_eq!((info.cause, world.did()), (Some(Cause::Deadline), vec!["a/s2".to_string()]));
    task_is(&engine, "b", TaskStatus::Paused).await;
    tokio::time::sleep(HOUR).await;
    assert_eq!(world.did().len(), 1, "its own time stands still");
    plan.resume().await.unwrap();
    assert_eq!(plan.ended().await.unwrap().status, PlanStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_plans_at_once_lose_nothing() {
    let (world, store) = (World::default(), Memory::new());
    let engine = engine(&store).plan(world.plan(&["s1", "s2", "s3"])).start().await.unwrap();
    let mut plans = Vec::new();
    for n in 0..100 {
        let plan = engine
            .create_plan("switch")
            .id(format!("p{n}"))
            .tenants((0..10).map(|t| format!("p{n}-t{t}")))
            .await
            .unwrap();
        plan.start().await.unwrap();
        plans.push(plan);
    }
    for plan in &plans {
        let info = plan.ended().await.unwrap();
        assert_eq!((info.status, info.progress[&TaskStatus::Completed]), (PlanStatus::Completed, 10));
    }
    let mut counts = BTreeMap::<String, u32>::new();
    world.did().into_iter().for_each(|did| *counts.entry(did).or_default() += 1);
    assert_eq!((counts.len(), counts.values().all(|count| *count == 1)), (3000, true));
    until("all locks are free", async || engine.locks().await.unwrap().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn the_feed_has_every_event_of_a_task_in_order() {
    let (world, store) = (World::default(), Memory::new());
    let engine = engine(&store).plan(world.plan(&["s1", "s2"])).start().await.unwrap();
    let plan = engine.create_plan("switch").id("told").tenants(["a", "b"]).await.unwrap();
    plan.start().await.unwrap();
    plan.ended().await.unwrap();
    let mut feed = engine.feed(Follow { after: Some(Position::default()), entity: None }).await.unwrap();
    let told = feed.next().await.unwrap();
    let of = |id: &str| {
        let id = EntityId::from_stored(id).unwrap();
        told.iter().filter(|fed| fed.entity == id).map(|fed| fed.entry.event.kind()).collect::<Vec<_>>()
    };
    let stage = ["STAGE_STARTED", "STEP_COMPLETED", "STAGE_COMPLETED"];
    let task =
        [&["RUN_STARTED", "TASK_ADMITTED", "LOCK_ACQUIRED", "TASK_STARTED"], &stage[..], &["CHECKPOINT_SAVED"], &stage, &["RUN_COMPLETED"]];
    assert_eq!(of("told/a"), task.concat());
    assert_eq!(of("told/b"), task.concat());
    assert_eq!(of("lock:a"), ["LOCK_REQUESTED", "LOCK_ACQUIRED", "LOCK_RELEASED"]);
    let plan = of("plan:told");
    assert_eq!(
        (plan[0], plan[plan.len() - 1], plan.iter().filter(|kind| **kind == "TASK_ADMITTED").count()),
        ("PLAN_CREATED", "PLAN_COMPLETED", 2)
    );
}
