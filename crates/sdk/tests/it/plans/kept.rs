//! Plans and their tasks are kept together, and go together when the time of the plan is over.
//!
//! Subject: `crates/runtime/src/retention/plans.rs`.

use super::{How, World, engine, plan_is, task_is};
use steadfast::memory::{Fault, Gate, Memory};
use steadfast::{DAY, Engine, HOUR, MINUTE, OnFailure, Plan, PlanStatus, Retention, Store, TaskStatus};
use steadfast_kernel::EntityId;
use steadfast_store::shard_of;

/// What ended an hour ago goes.
fn an_hour() -> Retention {
    Retention::new().completed(HOUR).failed(HOUR).cancelled(HOUR)
}

async fn start(world: &World, store: &Memory, retention: Retention) -> Engine {
    start_with(world.plan(&["drain", "switch"]), store, retention).await
}

/// Tasks that fail do not keep their locks.
async fn start_releasing(world: &World, store: &Memory, retention: Retention) -> Engine {
    start_with(world.plan(&["drain", "switch"]).on_failure(OnFailure::Release), store, retention).await
}

async fn start_with(plan: Plan, store: &Memory, retention: Retention) -> Engine {
    engine(store).plan(plan).retention(retention).start().await.unwrap()
}

/// How many rows of runs there are.
async fn runs(store: &Memory) -> usize {
    let mut runs = 0;
    for shard in 0..store.shards() {
        runs += store.oldest(shard, None, usize::MAX).await.unwrap().len();
    }
    runs
}

/// What there is an entry of beside locks, whose fences outlive everything.
fn left(store: &Memory) -> Vec<String> {
    store.entities().iter().map(ToString::to_string).filter(|id| !id.starts_with("lock:")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_plan_and_its_tasks_go_when_the_time_of_the_plan_is_over() {
    a_plan_goes_with_its_tasks(Memory::new()).await;
}

#[tokio::test(start_paused = true)]
async fn a_plan_and_its_tasks_go_wherever_they_live() {
    let store = Memory::of_shards(4);
    let shards = ["plan:all", "all/a", "all/b", "all/c"].map(|id| shard_of(&EntityId::try_from(id.to_owned()).unwrap(), 4));
    assert!(shards[1..].iter().any(|shard| *shard != shards[0]), "{shards:?}: not all of them live together");
    a_plan_goes_with_its_tasks(store).await;
}

async fn a_plan_goes_with_its_tasks(store: Memory) {
    let world = World::default();
    let engine = start(&world, &store, Retention::new().completed(HOUR)).await;
    for round in 1..=2 {
        let plan = engine.create_plan("switch").id("all").tenants(["a", "b", "c"]).await.unwrap();
        assert!(plan.is_new(), "its id is free");
        plan.start().await.unwrap();
        assert_eq!(plan.ended().await.unwrap().status, PlanStatus::Completed);
        assert_eq!(world.times("a/drain"), round);
        tokio::time::sleep(HOUR - MINUTE).await;
        assert_eq!((runs(&store).await, plan.info().await.unwrap().tasks.len()), (3, 3));
        tokio::time::sleep(3 * MINUTE).await;
        assert_eq!(plan.info().await.unwrap_err().code(), "SF0124");
        assert_eq!(engine.task_status_by_tenant("a").await.unwrap_err().code(), "SF0128");
        assert_eq!((runs(&store).await, left(&store)), (0, vec![]));
    }
}

/// The tasks of a plan that waits for a person stay, however long ago they ended.
#[tokio::test(start_paused = true)]
async fn tasks_stay_for_as_long_as_their_plan() {
    let (world, store) = (World::default(), Memory::new());
    world.script("b", "switch", &[How::Hangs]);
    let first = start(&world, &store, an_hour()).await;
    let plan = first.create_plan("switch").id("all").tenants(["a", "b"]).await.unwrap();
    plan.start().await.unwrap();
    task_is(&first, "a", TaskStatus::Completed).await;
    tokio::time::sleep(5 * HOUR).await;
    assert_eq!(runs(&store).await, 2, "one is under way");
    drop((plan, first));
    let store = store.reopen();
    let second = start(&world, &store, an_hour()).await;
    task_is(&second, "b", TaskStatus::Interrupted).await;
    tokio::time::sleep(5 * HOUR).await;
    assert_eq!(runs(&store).await, 2, "one is interrupted");
    second.retry_task_by_tenant("b", true).await.unwrap();
    let plan = second.plan("all").unwrap();
    plan_is(&plan, PlanStatus::Completed).await;
    tokio::time::sleep(2 * HOUR).await;
    assert_eq!((runs(&store).await, left(&store)), (0, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_plan_stays_while_a_task_of_it_keeps_its_lock() {
    let (world, store) = (World::default(), Memory::new());
    world.script("b", "switch", &[How::Fails]);
    let engine = start(&world, &store, an_hour()).await;
    let plan = engine.create_plan("switch").id("all").tenants(["a", "b"]).await.unwrap();
    plan.start().await.unwrap();
    assert_eq!(plan.ended().await.unwrap().status, PlanStatus::Failed);
    tokio::time::sleep(DAY).await;
    assert_eq!(engine.locks().await.unwrap().len(), 1, "it is kept until a person decides");
    assert_eq!((runs(&store).await, plan.info().await.unwrap().status), (2, PlanStatus::Failed));
    engine.task_of("b").await.unwrap().cancel().await.unwrap();
    tokio::time::sleep(HOUR - MINUTE).await;
    assert_eq!(runs(&store).await, 2, "it has ended anew");
    tokio::time::sleep(HOUR).await;
    assert_eq!((engine.locks().await.unwrap(), runs(&store).await, left(&store)), (vec![], 0, vec![]));
}

/// Other plans, runs and the retention of other ends have nothing to do with it.
#[tokio::test(start_paused = true)]
async fn every_end_of_a_plan_has_its_own_time() {
    let (world, store) = (World::default(), Memory::new());
    world.script("b", "drain", &[How::Fails]);
    let engine = start_releasing(&world, &store, Retention::new().completed(HOUR)).await;
    for (id, tenants) in [("good", ["a", "c"]), ("bad", ["b", "d"])] {
        let plan = engine.create_plan("switch").id(id).tenants(tenants).await.unwrap();
        plan.start().await.unwrap();
        plan.ended().await.unwrap();
    }
    let off = engine.create_plan("switch").id("off").tenants(["e"]).await.unwrap();
    off.cancel().await.unwrap();
    plan_is(&off, PlanStatus::Cancelled).await;
    tokio::time::sleep(DAY).await;
    assert_eq!(left(&store), ["bad/b", "bad/d", "off/e", "plan:bad", "plan:off"]);
}

/// More tasks than are removed at once, and a process that dies before, in and after each step.
#[tokio::test(start_paused = true)]
async fn what_a_crash_has_left_of_a_plan_goes_later() {
    let tenants: Vec<_> = (0..60).map(|number| format!("t{number}")).collect();
    for step in (0..15).step_by(3) {
        for fault in [Fault::CrashBefore, Fault::CrashAfter, Fault::Fail, Fault::Doubt] {
            let (world, store) = (World::default(), Memory::new());
            let engine = start(&world, &store, Retention::new()).await;
            let plan = engine.create_plan("switch").id("all").tenants(&tenants).max_concurrency(60).await.unwrap();
            plan.start().await.unwrap();
            plan.ended().await.unwrap();
            drop((plan, engine));
            let store = store.reopen();
            let (mut steps, dies) = (0, fault.clone());
            store.faults().sweep_rule(move |_| {
                steps += 1;
                (steps == step + 1).then(|| dies.clone())
            });
            let engine = start(&world, &store, an_hour()).await;
            tokio::time::sleep(2 * HOUR).await;
            drop(engine);
            let store = store.reopen();
            store.faults().clear();
            let is_there = store.plan(&steadfast::PlanId::new("all").unwrap()).await.unwrap().is_some();
            assert!(is_there || runs(&store).await == 0, "the plan goes last: {fault:?} in step {step}");
            let engine = start(&world, &store, an_hour()).await;
            tokio::time::sleep(2 * HOUR).await;
            assert_eq!((runs(&store).await, left(&store)), (0, vec![]), "{fault:?} in step {step}");
            assert!(store.half_swept(0).await.unwrap().is_empty());
            drop(engine);
        }
    }
}

/// Tasks go a few at a time, and nobody is kept from those that are still there: what somebody takes up again is kept, and its plan with it.
#[tokio::test(start_paused = true)]
async fn a_task_that_is_taken_up_again_while_others_go_is_kept() {
    let (world, store, gate) = (World::default(), Memory::new(), Gate::default());
    let tenants: Vec<_> = (10..70).map(|number| format!("t{number}")).collect();
    tenants.iter().for_each(|tenant| world.script(tenant, "switch", &[How::Fails]));
    let engine = start_releasing(&world, &store, an_hour()).await;
    let plan = engine.create_plan("switch").id("all").tenants(&tenants).max_concurrency(60).await.unwrap();
    plan.start().await.unwrap();
    assert_eq!(plan.ended().await.unwrap().status, PlanStatus::Failed);
    let held = gate.clone();
    store.faults().sweep_rule(move |_| Some(Fault::Hold(held.clone())));
    tokio::time::sleep(HOUR + 2 * MINUTE).await;
    assert!((1..60).contains(&runs(&store).await), "some are going");
    engine.retry_task_by_tenant("t69", true).await.unwrap();
    gate.open();
    task_is(&engine, "t69", TaskStatus::Completed).await;
    tokio::time::sleep(HOUR - MINUTE).await;
    assert_eq!(task_is(&engine, "t69", TaskStatus::Completed).await.stage, Some((1, "switch".into())));
    assert!(plan.info().await.unwrap().status.is_final());
    tokio::time::sleep(HOUR).await;
    assert_eq!((runs(&store).await, left(&store)), (0, vec![]));
}
