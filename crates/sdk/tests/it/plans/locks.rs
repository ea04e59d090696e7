//! Tenant locks: one holder over all plans, leases, fences, and a person who breaks them.
//!
//! Subject: `crates/kernel/src/lock/mod.rs`.

use super::{How, World, engine, plan_is, task_is};
use crate::support::until;
use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::sync::{Arc, Mutex};
use steadfast::memory::Memory;
use steadfast::{
    Config, Conflict, Ctx, Engine, Failure, HOUR, OnFailure, Plan, PlanStatus, SECOND, Task, TaskStatus, VirtualClock, Wait, workflow,
};
use steadfast_kernel::EntityId;
use steadfast_store::shard_of;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_plan_over_a_locked_tenant_is_refused_as_a_whole_and_names_the_holder() {
    let (world, store) = (World::default(), Memory::new());
    world.script("b", "s1", &[How::Hangs]);
    let engine = engine(&store).plan(world.plan(&["s1", "s2"])).start().await.unwrap();
    let first = engine.create_plan("switch").id("first").tenants(["b"]).await.unwrap();
    let early = engine.create_plan("switch").id("early").tenants(["a", "b"]).await.unwrap(); // before anybody had it
    first.start().await.unwrap();
    until("it has the lock", async || world.times("b/s1") == 1).await;
    let refused = engine.create_plan("switch").id("second").tenants(["a", "b", "c"]).await.err().unwrap();
    assert_eq!(refused.code(), "SF0126");
    assert!(refused.to_string().contains("tenant b is locked by first:first/b"), "{refused}");
    assert_eq!(engine.plan("second").unwrap().info().await.unwrap_err().code(), "SF0124", "nothing half-done");
    assert_eq!(early.start().await.unwrap_err().code(), "SF0126");
    assert_eq!(early.info().await.unwrap().status, PlanStatus::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_plan_may_go_on_without_locked_tenants() {
    let (world, store) = (World::default(), Memory::new());
    world.script("b", "s1", &[How::Hangs]);
    let skips = world.plan(&["s1", "s2"]).conflict(Conflict::Skip);
    let engine = engine(&store).plan(skips).start().await.unwrap();
    let early = engine.create_plan("switch").id("early").tenants(["a", "b"]).await.unwrap();
    let first = engine.create_plan("switch").id("first").tenants(["b"]).await.unwrap();
    first.start().await.unwrap();
    until("it has the lock", async || world.times("b/s1") == 1).await;
    let second = engine.create_plan("switch").id("second").tenants(["b", "c"]).await.unwrap();
    let info = second.info().await.unwrap();
    assert_eq!(
        info.skipped.iter().map(|(tenant, holder)| (tenant.as_str(), holder.as_str())).collect::<Vec<_>>(),
        [("b", "first:first/b")]
    );
    assert_eq!(info.tenants.len(), 1);
    second.start().await.unwrap();
    assert_eq!(second.ended().await.unwrap().status, PlanStatus::Completed);
    early.start().await.unwrap(); // it finds out when it is the tenant's turn
    let info = early.ended().await.unwrap();
    assert_eq!((info.status, info.progress[&TaskStatus::Cancelled]), (PlanStatus::Completed, 1));
    assert_eq!(world.times("b/s1"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_waits_for_a_lock_that_was_taken_after_its_plan_began() {
    let (world, store) = (World::default(), Memory::new());
    world.script("b", "s1", &[How::Fails]);
    let engine = engine(&store).plan(world.plan(&["s1"])).start().await.unwrap();
    let plans = [("one", ["b"].as_slice()), ("two", &["b"])];
    let mut handles = Vec::new();
    for (id, tenants) in plans {
        handles.push(engine.create_plan("switch").id(id).tenants(tenants.iter().copied()).await.unwrap());
    }
    let (one, two) = tokio::join!(handles[0].start().into_future(), handles[1].start().into_future()); // nobody has it yet
    one.unwrap();
    two.unwrap();
    until("one has failed and the other waits", async || engine.locks().await.unwrap().iter().any(|lock| lock.waiting == 1)).await;
    let holder = engine.locks().await.unwrap().remove(0).lease;
    let waiter = handles.iter().find(|plan| *plan.id() != holder.plan).unwrap();
    plan_is(&engine.plan(holder.plan.as_str()).unwrap(), PlanStatus::Failed).await;
    let waits = engine.run(&format!("{}/b", waiter.id())).unwrap().view().await.unwrap();
    assert_eq!(waits.task.unwrap().status, TaskStatus::Waiting);
    assert!(matches!(&waits.waits[0], Wait::Lock { holder: Some(by), .. } if *by == holder.holder()), "{:?}", waits.waits);
    engine.run(holder.task.as_str()).unwrap().cancel().why("give it up").await.unwrap(); // a failed task that is cancelled gives its lock back
    assert_eq!(waiter.ended().await.unwrap().status, PlanStatus::Completed);
    until("it is free", async || engine.locks().await.unwrap().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn on_failure_release_frees_the_lock_and_a_retry_takes_it_again_or_is_refused() {
    let (world, store) = (World::default(), Memory::new());
    world.script("a", "s2", &[How::Fails]);
    world.script("a", "s1", &[How::Works, How::Hangs]);
    let engine = engine(&store).plan(world.plan(&["s1", "s2"]).on_failure(OnFailure::Release)).start().await.unwrap();
    let plan = engine.create_plan("switch").id("frees").tenants(["a"]).await.unwrap();
    plan.start().await.unwrap();
    plan_is(&plan, PlanStatus::Failed).await;
    until("it is free", async || engine.locks().await.unwrap().is_empty()).await;
    let other = engine.create_plan("switch").id("other").tenants(["a"]).await.unwrap();
    other.start().await.unwrap();
    until("another one has it", async || engine.locks().await.unwrap().len() == 1).await;
    for refused in [engine.run("frees/a").unwrap().retry().await, engine.run("frees/a").unwrap().roll_back().await] {
        let refused = refused.unwrap_err();
        assert!(refused.code() == "SF0126" && refused.to_string().contains("locked by other:other/a"), "{refused}");
    }
    other.cancel().await.unwrap();
    until("it is free again", async || engine.locks().await.unwrap().is_empty()).await;
    engine.run("frees/a").unwrap().retry().await.unwrap();
    plan_is(&plan, PlanStatus::Completed).await;
    assert_eq!((world.times("a/s1"), world.times("a/s2")), (2, 2), "once by the other plan");
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_broken_interrupts_its_holder_who_takes_it_again_on_retry() {
    let (world, store) = (World::default(), Memory::new());
    world.script("a", "s2", &[How::Hangs]);
    let engine = engine(&store).plan(world.plan(&["s1", "s2"])).start().await.unwrap();
    let plan = engine.create_plan("switch").id("broken").tenants(["a"]).await.unwrap();
    plan.start().await.unwrap();
    until("it is in stage 2", async || world.times("a/s2") == 1).await;
    engine.break_lock("a").by("ada").why("the machine is on fire").id("b1").await.unwrap();
    engine.break_lock("a").id("b1").await.unwrap(); // the same command
    let task = task_is(&engine, "a", TaskStatus::Interrupted).await;
    assert_eq!(task.lock, None);
    assert_eq!(engine.break_lock("a").await.unwrap_err().code(), "SF0127");
    let journal = engine.task_of("a").await.unwrap().journal().await.unwrap();
    assert!(format!("{journal:?}").contains("the machine is on fire"), "who did what and why is an event");
    engine.retry_task_by_tenant("a", true).await.unwrap();
    plan_is(&plan, PlanStatus::Completed).await;
    assert_eq!((world.times("a/s1"), world.times("a/s2")), (1, 2));
    let fences: Vec<u64> = engine
        .task_of("a")
        .await
        .unwrap()
        .journal()
        .await
        .unwrap()
        .iter()
        .filter_map(|entry| match &entry.event {
            steadfast::Event::Task(event) => match &**event {
                steadfast::TaskEvent::LockAcquired(lease) => Some(lease.fence),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(fences, [1, 2], "the fence rises");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_while_its_task_waits_is_paused_or_has_failed() {
    leases_are_renewed(Memory::new()).await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_though_its_task_lives_elsewhere() {
    let shards = ["lock:a", "long/a", "lock:b", "long/b"].map(|id| shard_of(&EntityId::try_from(id.to_owned()).unwrap(), 4));
    assert!(shards[0] != shards[1] || shards[2] != shards[3], "{shards:?}: a lock and its task live apart");
    leases_are_renewed(Memory::of_shards(4)).await;
}

async fn leases_are_renewed(store: Memory) {
    let world = World::default();
    world.script("b", "s2", &[How::Fails]);
    let plan = world.plan(&["s1", "s2"]).lease(9 * SECOND).approve("ok", [] as [&str; 0], None);
    let engine = engine(&store).plan(plan).start().await.unwrap();
    let plan = engine.create_plan("switch").id("long").tenants(["a", "b"]).await.unwrap();
    plan.start().await.unwrap();
    task_is(&engine, "a", TaskStatus::Waiting).await;
    task_is(&engine, "b", TaskStatus::Failed).await;
    tokio::time::sleep(HOUR).await;
    let locks = engine.locks().await.unwrap();
    assert_eq!(
        locks.iter().map(|lock| (lock.tenant.as_str(), lock.lease.fence)).collect::<Vec<_>>(),
        [("a", 1), ("b", 1)],
        "the same holding"
    );
    engine.task_of("a").await.unwrap().pause().await.unwrap();
    tokio::time::sleep(HOUR).await;
    assert_eq!(engine.locks().await.unwrap().len(), 2);
}

#[workflow]
async fn half_a_minute(ctx: Ctx, _: ()) -> Result<(), Failure> {
    let takes_long = async || {
        tokio::time::sleep(30 * SECOND).await;
        Ok::<_, Failure>(())
    };
    ctx.step("long", takes_long).await
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_until_its_process_has_ended() {
    let (world, store, clock) = (World::default(), Memory::new(), VirtualClock::start());
    let engine = |store: &Memory| {
        let plan = world.plan(&["s1"]).lease(9 * SECOND).approve("ok", [] as [&str; 0], None);
        let config = Config { shutdown_grace: HOUR, ..Config::default() };
        Engine::on(store.clone()).clock(clock).plan(plan).register(half_a_minute).config(config)
    };
    let first = engine(&store).start().await.unwrap();
    let plan = first.create_plan("switch").id("ends").tenants(["a", "b"]).await.unwrap();
    plan.start().await.unwrap();
    task_is(&first, "a", TaskStatus::Waiting).await;
    task_is(&first, "b", TaskStatus::Waiting).await;
    first.start("half_a_minute", &()).await.unwrap();
    tokio::time::sleep(SECOND).await;
    let begun = Instant::now();
    first.shutdown().await;
    assert!(begun.elapsed() > 20 * SECOND, "{:?}", begun.elapsed());
    let second = engine(&store.reopen()).start().await.unwrap();
    tokio::time::sleep(SECOND).await;
    let fences: Vec<_> = second.locks().await.unwrap().iter().map(|lock| lock.lease.fence).collect();
    assert_eq!(fences, [1, 1], "the same holding");
}

#[tokio::test(start_paused = true)]
async fn a_stage_that_hangs_without_a_sign_of_life_loses_its_lease() {
    let (world, store) = (World::default(), Memory::new());
    world.script("a", "s1", &[How::Hangs]);
    let engine = engine(&store).plan(world.plan(&["s1"]).lease(9 * SECOND)).start().await.unwrap();
    let plan = engine.create_plan("switch").id("hangs").tenants(["a"]).await.unwrap();
    plan.start().await.unwrap();
    until("it is in its stage", async || world.times("a/s1") == 1).await;
    tokio::time::sleep(30 * SECOND).await;
    assert_eq!(engine.task_status_by_tenant("a").await.unwrap().status, TaskStatus::Interrupted);
    assert!(engine.locks().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ran_out_while_the_process_was_away_is_lost_and_taken_again_on_retry() {
    let (world, store) = (World::default(), Memory::new());
    world.script("a", "s1", &[How::Hangs]);
    let of = |world: &World| world.plan(&["s1"]).lease(9 * SECOND);
    let clock = VirtualClock::start(); // time goes on while the process is away
    let engine = |store: &Memory| Engine::on(store.clone()).clock(clock);
    let first = engine(&store).plan(of(&world)).start().await.unwrap();
    let plan = first.create_plan("switch").id("away").tenants(["a"]).await.unwrap();
    plan.start().await.unwrap();
    until("it is in its stage", async || world.times("a/s1") == 1).await;
    drop((plan, first));
    tokio::time::sleep(HOUR).await;
    let second = engine(&store.reopen()).plan(of(&world)).start().await.unwrap();
    task_is(&second, "a", TaskStatus::Interrupted).await;
    until("it is lost", async || second.locks().await.unwrap().is_empty()).await;
    second.retry_task_by_tenant("a", true).await.unwrap();
    let task = task_is(&second, "a", TaskStatus::Completed).await;
    assert_eq!((task.lock, world.times("a/s1")), (None, 2));
}

#[tokio::test(start_paused = true)]
async fn no_two_tasks_ever_work_for_one_tenant() {
    let busy: Arc<Mutex<BTreeMap<String, u32>>> = Arc::default();
    let (of_stages, seen) = (Arc::clone(&busy), Arc::new(Mutex::new(0)));
    let counted = Arc::clone(&seen);
    let work = move |task: Task| {
        let (busy, counted, tenant) = (Arc::clone(&of_stages), Arc::clone(&counted), task.tenant().to_string());
        async move {
            let many = {
                let mut busy = busy.lock().unwrap();
                let many = busy.entry(tenant.clone()).or_default();
                *many += 1;
                *many
            };
            assert_eq!(many, 1, "{tenant} has two");
            *counted.lock().unwrap() += 1;
            tokio::time::sleep(SECOND).await;
            *busy.lock().unwrap().get_mut(&tenant).unwrap() -= 1;
            Ok::<_, Failure>(())
        }
    };
    let engine = engine(&Memory::new())
        .plan(Plan::new("switch").max_concurrency(10).stage("s1", work.clone()).stage("s2", work))
        .start()
        .await
        .unwrap();
    let mut plans = Vec::new();
    for n in 0..20 {
        plans.push(engine.create_plan("switch").id(format!("race-{n}")).tenants(["a", "b", "c"]).await.unwrap());
    }
    let mut refused = 0;
    for plan in &plans {
        refused += u32::from(plan.start().await.is_err()); // those who look when somebody has it already
    }
    let mut completed = 0;
    for plan in &plans {
        if plan.info().await.unwrap().started_at.is_some() {
            assert_eq!(plan.ended().await.unwrap().status, PlanStatus::Completed);
            completed += 1;
        }
    }
    assert_eq!((completed + refused, *seen.lock().unwrap()), (20, completed * 6));
    assert!(completed > 0);
    until("all are free", async || engine.locks().await.unwrap().is_empty()).await;
}
