//! Mistakes that earlier systems made with roll-outs, one test each. Those that other files have: a last stage that leaves the task open, retries that run nothing or everything, a pause that
//! cannot be resumed because of its own lock (`flow`, `verbs`), releases and renewals by strangers (the kernel's tests of locks), look-ups after a restart (`flow`).

use super::{How, World, engine, plan_is, task_is};
use crate::support::until;
use std::collections::BTreeSet;
use std::future::IntoFuture;
use steadfast::memory::Memory;
use steadfast::{EntityId, Follow, HOUR, PlanStatus, Position, SECOND, Status, TaskStatus};

#[tokio::test(start_paused = true)]
async fn a_plan_that_ends_does_not_release_locks_that_other_plans_hold() {
    let (world, store) = (World::default(), Memory::new());
    world.script("shared", "s1", &[How::Hangs]);
    let engine = engine(&store).plan(world.plan(&["s1"])).start().await.unwrap();
    let other = engine.create_plan("switch").id("other").tenants(["a", "shared"]).await.unwrap();
    let holder = engine.create_plan("switch").id("holder").tenants(["shared"]).await.unwrap();
    let (one, two) = tokio::join!(holder.start().into_future(), other.start().into_future());
    one.unwrap();
    two.unwrap();
    until("one holds it and one waits", async || engine.locks().await.unwrap().iter().any(|lock| lock.waiting == 1)).await;
    let before = engine.locks().await.unwrap().into_iter().find(|lock| lock.waiting == 1).unwrap().lease;
    let waits = if before.plan == *holder.id() { &other } else { &holder };
    waits.cancel().await.unwrap();
    plan_is(waits, PlanStatus::Cancelled).await;
    let after = engine.locks().await.unwrap();
    assert_eq!(
        after.iter().map(|lock| (&lock.lease, lock.waiting)).collect::<Vec<_>>(),
        [(&before, 0)],
        "the same holding, and nobody waits"
    );
}

#[tokio::test(start_paused = true)]
async fn cancel_and_retry_are_seen_at_once_wherever_one_looks() {
    let (world, store) = (World::default(), Memory::new());
    world.script("a", "s1", &[How::Hangs, How::Hangs]);
    let engine = engine(&store).plan(world.plan(&["s1"])).start().await.unwrap();
    let plan = engine.create_plan("switch").id("seen").tenants(["a"]).await.unwrap();
    plan.start().await.unwrap();
    until("it is at it", async || world.times("a/s1") == 1).await;
    let task = engine.task_of("a").await.unwrap();
    task.cancel().await.unwrap();
    assert_eq!(engine.task_status_by_tenant("a").await.unwrap().status, TaskStatus::Cancelled);
    assert_eq!(task.view().await.unwrap().status, Status::Cancelled);
    assert_eq!(plan.info().await.unwrap().progress.keys().collect::<Vec<_>>(), [&TaskStatus::Cancelled], "no row says RUNNING any more");
    assert!(engine.list().status(Status::Running).await.unwrap().items.is_empty());
    engine.retry_task_by_tenant("a", true).await.unwrap();
    let status = engine.task_status_by_tenant("a").await.unwrap().status;
    assert!([TaskStatus::Pending, TaskStatus::Waiting, TaskStatus::Running].contains(&status), "{status:?}");
    assert_eq!(plan.info().await.unwrap().progress.get(&TaskStatus::Cancelled), None);
    until("it is at it again", async || world.times("a/s1") == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_was_given_back_is_not_renewed_any_more() {
    let (world, store) = (World::default(), Memory::new());
    world.script("a", "s2", &[How::Fails]);
    let engine = engine(&store).plan(world.plan(&["s1", "s2"]).lease(9 * SECOND)).start().await.unwrap();
    let plan = engine.create_plan("switch").id("over").tenants(["a"]).await.unwrap();
    plan.start().await.unwrap();
    task_is(&engine, "a", TaskStatus::Failed).await;
    tokio::time::sleep(10 * SECOND).await; // renewed meanwhile, because it is kept
    engine.task_of("a").await.unwrap().cancel().await.unwrap();
    until("it is free", async || engine.locks().await.unwrap().is_empty()).await;
    let kinds = async || {
        let entity = EntityId::from_stored("lock:a");
        let mut feed = engine.feed(Follow { after: Some(Position::default()), entity }).await.unwrap();
        feed.next().await.unwrap().iter().map(|fed| fed.entry.event.kind()).collect::<Vec<_>>()
    };
    let told = kinds().await;
    assert!(told.contains(&"LOCK_RENEWED") && told.last() == Some(&"LOCK_RELEASED"), "{told:?}");
    tokio::time::sleep(HOUR).await;
    assert_eq!(kinds().await, told);
}

#[tokio::test(start_paused = true)]
async fn ids_that_are_made_in_the_same_moment_do_not_collide() {
    let (world, store) = (World::default(), Memory::new());
    let engine = engine(&store).plan(world.plan(&["s1"])).start().await.unwrap();
    let (mut plans, mut tasks) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..200 {
        let plan = engine.create_plan("switch").tenants(["a", "b"]).await.unwrap();
        tasks.extend(plan.info().await.unwrap().tasks);
        plans.insert(plan.id().clone());
    }
    assert_eq!((plans.len(), tasks.len()), (200, 400));
}

#[tokio::test(start_paused = true)]
async fn nothing_says_running_for_ever_after_a_crash() {
    let (world, store) = (World::default(), Memory::new());
    world.script("a", "s1", &[How::Hangs]);
    let first = engine(&store).plan(world.plan(&["s1"])).start().await.unwrap();
    let plan = first.create_plan("switch").id("stale").tenants(["a", "b"]).max_concurrency(1).await.unwrap();
    plan.start().await.unwrap();
    until("it is at it", async || world.times("a/s1") == 1).await;
    drop((plan, first));
    let second = engine(&store.reopen()).plan(world.plan(&["s1"])).start().await.unwrap();
    task_is(&second, "a", TaskStatus::Interrupted).await;
    let info = plan_is(&second.plan("stale").unwrap(), PlanStatus::Paused).await;
    let expected = [(TaskStatus::Pending, 1), (TaskStatus::Interrupted, 1)];
    assert_eq!(info.progress.into_iter().collect::<Vec<_>>(), expected);
}

/// One of two tasks ends while the engine stops: the next one does not begin on record only to be cut off.
#[tokio::test(start_paused = true)]
async fn no_task_begins_while_an_engine_ends() {
    let (world, store) = (World::default(), Memory::new());
    world.script("a", "s1", &[How::Holds]);
    world.script("b", "s1", &[How::Holds]);
    let first = engine(&store).plan(world.plan(&["s1"])).start().await.unwrap();
    let plan = first.create_plan("switch").id("ending").tenants(["a", "b", "c"]).await.unwrap();
    plan.start().await.unwrap();
    until("both are at it", async || world.times("a/s1") + world.times("b/s1") == 2).await;
    let ends = tokio::spawn(first.clone().shutdown());
    tokio::time::sleep(SECOND).await;
    world.let_go("a/s1");
    tokio::time::sleep(SECOND).await;
    world.let_go("b/s1");
    ends.await.unwrap();
    drop((plan, first));
    let second = engine(&store).plan(world.plan(&["s1"])).start().await.unwrap();
    let progress = second.plan("ending").unwrap().info().await.unwrap().progress;
    assert!(!progress.contains_key(&TaskStatus::Interrupted), "{progress:?}");
    assert_eq!((world.times("a/s1"), world.times("b/s1")), (1, 1));
}
