//! What people ask of plans and tasks: pause, resume, cancel, roll back.
//!
//! Subject: `crates/kernel/src/plan/operate.rs`.

use super::{How, World, engine, plan_is, task_is};
use crate::support::until;
use std::sync::Arc;
use steadfast::memory::Memory;
use steadfast::{Cause, Engine, Failure, HOUR, MINUTE, Plan, PlanHandle, PlanStatus, Task, TaskStatus, Wait};
use tokio::sync::Semaphore;

/// A plan whose second stage waits until it is let.
fn gated(world: &World, gate: &Arc<Semaphore>) -> Plan {
    let (world, gate) = (world.clone(), Arc::clone(gate));
    let work = move |task: Task| {
        let (gate, did) = (Arc::clone(&gate), world.clone().act(format!("{}/{}", task.tenant(), task.stage())));
        async move {
            did.await?;
            if task.stage() == "s2" {
                gate.acquire().await.map_err(Failure::transient)?.forget();
            }
            Ok::<_, Failure>(())
        }
    };
    Plan::new("switch").stage("s1", work.clone()).stage("s2", work.clone()).stage("s3", work)
}

async fn started(engine: &Engine, id: &str, tenants: &[&str]) -> PlanHandle {
    let plan = engine.create_plan("switch").id(id).tenants(tenants.iter().copied()).await.unwrap();
    plan.start().await.unwrap();
    plan
}

#[tokio::test(start_paused = true)]
async fn a_pause_takes_effect_at_the_end_of_the_stage_and_the_lock_stays() {
    let (world, store, gate) = (World::default(), Memory::new(), Arc::new(Semaphore::new(0)));
    let engine = engine(&store).plan(gated(&world, &gate)).start().await.unwrap();
    let plan = started(&engine, "boundary", &["a"]).await;
    until("it is in stage 2", async || world.times("a/s2") == 1).await;
    plan.pause().by("ada").why("lunch").await.unwrap();
    until("it is asked to", async || engine.task_status_by_tenant("a").await.unwrap().pause_requested).await;
    let task = engine.task_status_by_tenant("a").await.unwrap();
    assert_eq!(task.status, TaskStatus::Running, "the stage is not cut off");
    gate.add_permits(1);
    let task = task_is(&engine, "a", TaskStatus::Paused).await;
    assert_eq!(task.checkpoint.as_ref().map(|checkpoint| checkpoint.index), Some(1));
    assert!(task.lock.is_some() && engine.locks().await.unwrap().len() == 1, "{task:?}");
    tokio::time::sleep(HOUR).await;
    assert_eq!(world.times("a/s3"), 0);
    let info = plan.info().await.unwrap();
    assert_eq!((info.status, info.cause, info.why.as_deref()), (PlanStatus::Paused, Some(Cause::Person), Some("lunch")));
    plan.resume().await.unwrap(); // although the lock is held: by its own task
    assert_eq!(plan.ended().await.unwrap().status, PlanStatus::Completed);
    assert_eq!(world.did(), ["a/s1", "a/s2", "a/s3"], "each once");
}

#[tokio::test(start_paused = true)]
async fn a_paused_task_survives_a_restart_as_paused() {
    let (world, store, gate) = (World::default(), Memory::new(), Arc::new(Semaphore::new(0)));
    let first = engine(&store).plan(gated(&world, &gate)).start().await.unwrap();
    let plan = started(&first, "asleep", &["a"]).await;
    until("it is in stage 2", async || world.times("a/s2") == 1).await;
    first.task_of("a").await.unwrap().pause().await.unwrap();
    gate.add_permits(1);
    task_is(&first, "a", TaskStatus::Paused).await;
    let done = world.did();
    drop((plan, first));
    let second = engine(&store.reopen()).plan(gated(&world, &gate)).start().await.unwrap();
    tokio::time::sleep(MINUTE).await;
    let task = second.task_status_by_tenant("a").await.unwrap();
    assert_eq!((task.status, task.pause_requested), (TaskStatus::Paused, true));
    assert_eq!(world.did(), done);
    second.task_of("a").await.unwrap().resume().await.unwrap();
    task_is(&second, "a", TaskStatus::Completed).await;
    assert_eq!(world.did(), ["a/s1", "a/s2", "a/s3"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_paused_before_its_turn_takes_it_and_does_nothing_until_it_is_resumed() {
    let (world, store) = (World::default(), Memory::new());
    let first = engine(&store).plan(world.plan(&["s1"])).start().await.unwrap();
    let plan = first.create_plan("switch").id("early").tenants(["a"]).await.unwrap();
    first.task_of("a").await.unwrap().pause().await.unwrap();
    plan.start().await.unwrap();
    until("it has its lock", async || first.locks().await.unwrap().len() == 1).await;
    assert_eq!(task_is(&first, "a", TaskStatus::Paused).await.stage, None);
    drop((plan, first));
    let second = engine(&store.reopen()).plan(world.plan(&["s1"])).start().await.unwrap();
    tokio::time::sleep(MINUTE).await;
    assert_eq!(second.task_status_by_tenant("a").await.unwrap().status, TaskStatus::Paused);
    second.task_of("a").await.unwrap().resume().await.unwrap();
    task_is(&second, "a", TaskStatus::Completed).await;
    assert_eq!(world.did(), ["a/s1"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_plan_begins_before_it_is_started() {
    let (world, store) = (World::default(), Memory::new());
    let engine = engine(&store).plan(world.plan(&["s1"])).start().await.unwrap();
    let plan = engine.create_plan("switch").id("not-yet").tenants(["a"]).await.unwrap();
    engine.task_of("a").await.unwrap().cancel().await.unwrap();
    engine.retry_task_by_tenant("a", true).await.unwrap();
    tokio::time::sleep(MINUTE).await;
    assert_eq!((world.did().len(), engine.task_status_by_tenant("a").await.unwrap().status), (0, TaskStatus::Pending));
    plan.start().await.unwrap();
    assert_eq!(plan.ended().await.unwrap().status, PlanStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_crash_before_a_pause_has_taken_effect_is_a_crash() {
    let (world, store, gate) = (World::default(), Memory::new(), Arc::new(Semaphore::new(0)));
    let first = engine(&store).plan(gated(&world, &gate)).start().await.unwrap();
    let plan = started(&first, "too-late", &["a"]).await;
    until("it is in stage 2", async || world.times("a/s2") == 1).await;
    first.task_of("a").await.unwrap().pause().await.unwrap();
    drop((plan, first));
    let second = engine(&store.reopen()).plan(gated(&world, &gate)).start().await.unwrap();
    let task = task_is(&second, "a", TaskStatus::Interrupted).await;
    assert_eq!(task.checkpoint.unwrap().index, 0);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_was_resumed_and_dies_is_interrupted() {
    let (world, store, gate) = (World::default(), Memory::new(), Arc::new(Semaphore::new(0)));
    world.script("a", "s3", &[How::Hangs]);
    let first = engine(&store).plan(gated(&world, &gate)).start().await.unwrap();
    let plan = started(&first, "resumed", &["a"]).await;
    until("it is in stage 2", async || world.times("a/s2") == 1).await;
    let task = first.task_of("a").await.unwrap();
    task.pause().await.unwrap();
    gate.add_permits(1);
    task_is(&first, "a", TaskStatus::Paused).await;
    task.resume().await.unwrap();
    until("it is in stage 3", async || world.times("a/s3") == 1).await;
    assert_eq!(first.task_status_by_tenant("a").await.unwrap().status, TaskStatus::Running);
    drop((plan, first, task));
    let second = engine(&store.reopen()).plan(gated(&world, &gate)).start().await.unwrap();
    task_is(&second, "a", TaskStatus::Interrupted).await;
    assert_eq!(world.times("a/s3"), 1, "nothing goes on by itself");
}

#[tokio::test(start_paused = true)]
async fn one_that_waits_for_a_person_still_waits_after_a_restart() {
    let store = Memory::new();
    let ask = || {
        Plan::new("switch")
            .stage("s1", |_| async { Ok::<_, Failure>(()) })
            .approve("ok", ["operator"], None)
            .wait("cool-down", HOUR)
    };
    let first = engine(&store).plan(ask()).start().await.unwrap();
    let plan = started(&first, "asks", &["a"]).await;
    task_is(&first, "a", TaskStatus::Waiting).await;
    drop((plan, first));
    let second = engine(&store.reopen()).plan(ask()).start().await.unwrap();
    plan_is(&second.plan("asks").unwrap(), PlanStatus::Paused).await;
    let task = task_is(&second, "a", TaskStatus::Waiting).await;
    assert!(matches!(&task.waits[0], Wait::Approval { name, roles, .. } if name == "ok" && roles == &["operator"]), "{task:?}");
    second
        .task_of("a")
        .await
        .unwrap()
        .signal("ok", &serde_json::json!({"approved": true}))
        .await
        .unwrap();
    assert_eq!(second.plan("asks").unwrap().ended().await.unwrap().status, PlanStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_no_fails_the_stage() {
    let store = Memory::new();
    let engine = engine(&store).plan(Plan::new("switch").approve("ok", [] as [&str; 0], None)).start().await.unwrap();
    let plan = started(&engine, "no", &["a"]).await;
    task_is(&engine, "a", TaskStatus::Waiting).await;
    engine
        .task_of("a")
        .await
        .unwrap()
        .signal("ok", &serde_json::json!({"approved": false}))
        .await
        .unwrap();
    assert_eq!(plan.ended().await.unwrap().status, PlanStatus::Failed);
    let task = engine.task_status_by_tenant("a").await.unwrap();
    assert_eq!(task.failure.unwrap().message, "ok was not approved");
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_plan_ends_every_task_undoes_nothing_and_frees_the_locks() {
    let (world, store) = (World::default(), Memory::new());
    world.script("a", "s2", &[How::Fails]);
    world.script("b", "s2", &[How::Hangs]);
    let engine = engine(&store).plan(world.plan(&["s1", "s2"])).start().await.unwrap();
    let plan = started(&engine, "off", &["a", "b", "c", "d"]).await;
    task_is(&engine, "c", TaskStatus::Completed).await;
    plan.cancel().by("ada").why("wrong gateway").await.unwrap();
    let ended = plan.ended().await.unwrap();
    assert_eq!(ended.status, PlanStatus::Cancelled);
    for (tenant, status) in [("a", TaskStatus::Cancelled), ("b", TaskStatus::Cancelled), ("c", TaskStatus::Completed)] {
        assert_eq!(engine.task_status_by_tenant(tenant).await.unwrap().status, status, "{tenant}");
    }
    assert!(!world.did().iter().any(|did| did.ends_with("undo")), "{:?}", world.did());
    until("the locks are free", async || engine.locks().await.unwrap().is_empty()).await;
    assert_eq!(plan.cancel().await.unwrap_err().code(), "SF0125");
    assert_eq!(plan.start().await.unwrap_err().code(), "SF0125");
}

#[tokio::test(start_paused = true)]
async fn a_roll_back_undoes_completed_stages_newest_first() {
    let (world, store) = (World::default(), Memory::new());
    world.script("a", "s3", &[How::Fails]);
    let engine = engine(&store).plan(world.plan(&["s1", "s2", "s3"])).start().await.unwrap();
    let plan = started(&engine, "back", &["a"]).await;
    plan_is(&plan, PlanStatus::Failed).await;
    engine.task_of("a").await.unwrap().roll_back().by("ada").await.unwrap();
    let task = task_is(&engine, "a", TaskStatus::RolledBack).await;
    assert_eq!(world.did(), ["a/s1", "a/s2", "a/s3", "a/s2/undo", "a/s1/undo"]);
    assert_eq!((task.checkpoint, task.lock), (None, None), "there is nothing to go on from");
    until("the lock is free", async || engine.locks().await.unwrap().is_empty()).await;
    plan_is(&plan, PlanStatus::Cancelled).await;
    assert_eq!(engine.task_of("a").await.unwrap().roll_back().await.unwrap_err().code(), "SF0113", "once is enough");
    engine.retry_task_by_tenant("a", true).await.unwrap();
    plan_is(&plan, PlanStatus::Completed).await;
    assert_eq!(world.did()[5..], ["a/s1", "a/s2", "a/s3"], "from the start, since nothing is done any more");
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_rolled_back_as_a_whole_and_those_that_completed_too() {
    let (world, store) = (World::default(), Memory::new());
    world.script("b", "s2", &[How::Fails]);
    world.script("c", "s2", &[How::Hangs]);
    let engine = engine(&store).plan(world.plan(&["s1", "s2"])).start().await.unwrap();
    let plan = started(&engine, "all-back", &["a", "b", "c", "d", "e"]).await;
    task_is(&engine, "e", TaskStatus::Completed).await;
    plan.roll_back().why("it does not work").await.unwrap();
    assert_eq!(plan.ended().await.unwrap().status, PlanStatus::Cancelled);
    for tenant in ["a", "b", "c", "d", "e"] {
        assert_eq!(engine.task_status_by_tenant(tenant).await.unwrap().status, TaskStatus::RolledBack, "{tenant}");
        let undone: Vec<_> = world.did().into_iter().filter(|did| did.starts_with(tenant) && did.ends_with("undo")).collect();
        let expected: &[&str] = if ["b", "c"].contains(&tenant) { &["s1"] } else { &["s2", "s1"] };
        assert_eq!(undone, expected.iter().map(|stage| format!("{tenant}/{stage}/undo")).collect::<Vec<_>>(), "{tenant}");
    }
    until("the locks are free", async || engine.locks().await.unwrap().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn an_undo_that_fails_is_seen_in_the_status_and_can_be_tried_again() {
    let (world, store) = (World::default(), Memory::new());
    world.script("a", "s3", &[How::Fails]);
    world.script("a", "s1/undo", &[How::Fails]);
    let engine = engine(&store).plan(world.plan(&["s1", "s2", "s3"])).start().await.unwrap();
    let plan = started(&engine, "stuck", &["a"]).await;
    plan_is(&plan, PlanStatus::Failed).await;
    let task = engine.task_of("a").await.unwrap();
    task.roll_back().await.unwrap();
    let info = task_is(&engine, "a", TaskStatus::RollbackFailed).await;
    assert_eq!(info.failure.unwrap().message, "a/s1/undo is broken");
    assert!(info.lock.is_some(), "a person has to look at it");
    plan_is(&plan, PlanStatus::Failed).await;
    task.roll_back().await.unwrap();
    task_is(&engine, "a", TaskStatus::RolledBack).await;
    assert_eq!(world.did()[3..], ["a/s2/undo", "a/s1/undo", "a/s1/undo"], "what is undone is not undone again");
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_it_is_being_rolled_back_leaves_it_to_a_person() {
    let (world, store) = (World::default(), Memory::new());
    world.script("a", "s3", &[How::Fails]);
    world.script("a", "s1/undo", &[How::Hangs]);
    let first = engine(&store).plan(world.plan(&["s1", "s2", "s3"])).start().await.unwrap();
    let plan = started(&first, "back-crash", &["a"]).await;
    plan_is(&plan, PlanStatus::Failed).await;
    first.task_of("a").await.unwrap().roll_back().await.unwrap();
    until("it is being undone", async || world.times("a/s1/undo") == 1).await;
    assert_eq!(first.task_status_by_tenant("a").await.unwrap().status, TaskStatus::RollingBack);
    drop((plan, first));
    let second = engine(&store.reopen()).plan(world.plan(&["s1", "s2", "s3"])).start().await.unwrap();
    task_is(&second, "a", TaskStatus::Interrupted).await;
    let refused = second.retry_task_by_tenant("a", true).await.unwrap_err();
    assert!(refused.code() == "SF0113" && refused.to_string().contains("roll it back again"), "half of it may be undone: {refused}");
    second.task_of("a").await.unwrap().roll_back().await.unwrap();
    task_is(&second, "a", TaskStatus::RolledBack).await;
    assert_eq!((world.times("a/s2/undo"), world.times("a/s1/undo")), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_is_being_rolled_back_does_not_go_on_by_itself_after_a_restart() {
    let (world, store) = (World::default(), Memory::new());
    world.script("a", "s1/undo", &[How::Hangs]);
    let first = engine(&store).plan(world.plan(&["s1"]).max_concurrency(1)).start().await.unwrap();
    let plan = started(&first, "back-stop", &["a", "b", "c"]).await;
    plan_is(&plan, PlanStatus::Completed).await;
    plan.roll_back().await.unwrap();
    until("one is being undone", async || world.times("a/s1/undo") == 1).await;
    drop((plan, first));
    let second = engine(&store.reopen()).plan(world.plan(&["s1"]).max_concurrency(1)).start().await.unwrap();
    let plan = second.plan("back-stop").unwrap();
    let info = plan_is(&plan, PlanStatus::Paused).await;
    assert_eq!(info.cause, Some(Cause::Restart));
    task_is(&second, "a", TaskStatus::Interrupted).await;
    tokio::time::sleep(HOUR).await;
    assert_eq!(world.did().iter().filter(|did| did.ends_with("undo")).count(), 1, "{:?}", world.did());
    second.task_of("a").await.unwrap().roll_back().await.unwrap();
    task_is(&second, "a", TaskStatus::RolledBack).await;
    plan.resume().await.unwrap();
    assert_eq!(plan.ended().await.unwrap().status, PlanStatus::Cancelled);
    assert_eq!((world.times("b/s1/undo"), world.times("c/s1/undo")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_waited_for_its_turn_when_the_process_died_is_asked_for_again() {
    let (world, store) = (World::default(), Memory::new());
    ["a", "b"].iter().for_each(|tenant| world.script(tenant, "s1", &[How::Fails, How::Hangs]));
    let first = engine(&store).plan(world.plan(&["s1"]).max_concurrency(1)).start().await.unwrap();
    let plan = started(&first, "queue", &["a", "b"]).await;
    plan_is(&plan, PlanStatus::Failed).await;
    first.retry_task_by_tenant("a", true).await.unwrap();
    first.retry_task_by_tenant("b", true).await.unwrap();
    until("one is at it", async || world.did().len() == 3).await;
    drop((plan, first));
    let second = engine(&store.reopen()).plan(world.plan(&["s1"]).max_concurrency(1)).start().await.unwrap();
    task_is(&second, "a", TaskStatus::Interrupted).await;
    tokio::time::sleep(HOUR).await;
    assert_eq!((world.did().len(), second.task_status_by_tenant("b").await.unwrap().status), (3, TaskStatus::Pending), "nothing by itself");
    second.retry_task_by_tenant("b", true).await.unwrap();
    until("it is at it", async || world.times("b/s1") == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_paused_in_its_backoff_survives_a_restart_as_paused() {
    let store = Memory::new();
    let sick = || {
        let fails = |task: Task| async move { if task.attempt() == 1 { Err(Failure::transient("down")) } else { Ok(()) } };
        Plan::new("switch")
            .stage("s1", fails)
            .retry(steadfast::Policy::constant(HOUR).max_attempts(3))
            .stage("s2", |_| async { Ok::<_, Failure>(()) })
    };
    let first = engine(&store).plan(sick()).start().await.unwrap();
    let plan = started(&first, "backoff", &["a"]).await;
    task_is(&first, "a", TaskStatus::Waiting).await;
    plan.pause().await.unwrap();
    task_is(&first, "a", TaskStatus::Paused).await;
    drop((plan, first));
    let second = engine(&store.reopen()).plan(sick()).start().await.unwrap();
    tokio::time::sleep(3 * HOUR).await;
    assert_eq!(second.task_status_by_tenant("a").await.unwrap().status, TaskStatus::Paused);
    second.plan("backoff").unwrap().resume().await.unwrap();
    assert_eq!(second.plan("backoff").unwrap().ended().await.unwrap().status, PlanStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn what_a_task_does_not_allow_is_refused_with_its_own_status() {
    let (world, store) = (World::default(), Memory::new());
    let engine = engine(&store).plan(world.plan(&["s1"])).start().await.unwrap();
    let plan = started(&engine, "named", &["a"]).await;
    plan_is(&plan, PlanStatus::Completed).await;
    let task = engine.task_of("a").await.unwrap();
    for refused in [task.pause().await, task.resume().await, task.cancel().await, engine.retry_task_by_tenant("a", true).await] {
        let refused = refused.unwrap_err();
        assert!(refused.code() == "SF0113" && refused.to_string().contains("task named/a is COMPLETED"), "{refused}");
    }
    task.roll_back().await.unwrap();
    task_is(&engine, "a", TaskStatus::RolledBack).await;
    assert!(task.roll_back().await.unwrap_err().to_string().contains("is ROLLED_BACK"));
}

#[tokio::test(start_paused = true)]
async fn the_same_command_again_is_one() {
    let (world, store) = (World::default(), Memory::new());
    let engine = engine(&store).plan(world.plan(&["s1"])).start().await.unwrap();
    let create = || engine.create_plan("switch").id("once").tenants(["a", "a", "b"]);
    let plan = create().await.unwrap();
    assert!(plan.is_new());
    assert!(!create().await.unwrap().is_new());
    assert_eq!(plan.info().await.unwrap().tasks.len(), 2, "one who is named twice is one");
    for other in
        [engine.create_plan("switch").id("once").tenants(["a"]), create().max_concurrency(7), create().vars(&serde_json::json!({"x": 1}))]
    {
        assert_eq!(other.await.err().unwrap().code(), "SF0123");
    }
    plan.start().id("go").await.unwrap();
    plan_is(&plan, PlanStatus::Completed).await;
    plan.start().id("go").await.unwrap();
    assert_eq!(plan.start().id("another").await.unwrap_err().code(), "SF0125");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_is_refused_and_says_what_to_do() {
    let (world, store) = (World::default(), Memory::new());
    let engine = engine(&store).plan(world.plan(&["s1"])).start().await.unwrap();
    for (create, code) in [
        (engine.create_plan("other").tenants(["a"]), "SF0131"),
        (engine.create_plan("switch"), "SF0130"),
        (engine.create_plan("switch").tenants(["a b"]), "SF0101"),
        (engine.create_plan("switch").tenants(["a"]).id(".."), "SF0101"),
        (engine.create_plan("switch").tenants(["a"]).max_concurrency(0), "SF0130"),
        (engine.create_plan("switch").tenants(["a"]).vars(&[1]), "SF0116"),
        (engine.create_plan("switch").tenants((0..10_001).map(|n| format!("t{n}"))), "SF0130"),
    ] {
        assert_eq!(create.await.err().unwrap().code(), code);
    }
    assert_eq!(engine.start("switch", &serde_json::json!({})).await.err().unwrap().code(), "SF0116", "a plan is no workflow");
    assert_eq!(engine.task_status_by_tenant("nobody").await.unwrap_err().code(), "SF0128");
    assert_eq!(engine.plan("nothing").unwrap().info().await.unwrap_err().code(), "SF0124");
    assert_eq!(engine.plan("nothing").unwrap().start().await.unwrap_err().code(), "SF0124");
    assert_eq!(engine.break_lock("nobody").await.unwrap_err().code(), "SF0127");
    let twice = World::default();
    assert!(super::engine(&Memory::new()).plan(twice.plan(&["s1", "s1"])).start().await.is_err());
    assert!(super::engine(&Memory::new()).plan(twice.plan(&[])).start().await.is_err());
    assert!(
        super::engine(&Memory::new())
            .plan(Plan::new("x").retry(steadfast::Policy::default()))
            .start()
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_is_retried_from_its_checkpoint_or_its_start_and_from_nowhere_else() {
    let (world, store) = (World::default(), Memory::new());
    world.script("a", "s2", &[How::Fails]);
    let engine = engine(&store).plan(world.plan(&["s1", "s2"])).start().await.unwrap();
    let plan = started(&engine, "elsewhere", &["a"]).await;
    plan_is(&plan, PlanStatus::Failed).await;
    let task = engine.task_of("a").await.unwrap();
    for refused in [task.retry().from_step("s1"), task.retry().input(&serde_json::json!({})), task.retry().output("s2", &())] {
        assert_eq!(refused.await.unwrap_err().code(), "SF0113");
    }
}
