//! One instance, and nobody else was seen: whatever becomes of Redis, and wherever its tasks are, they go on and nothing is refused.
//!
//! Subject: `crates/runtime/src/commons/alone.rs`.

use super::scene::Does;
use super::*;
use steadfast::{PlanStatus, TaskStatus};

/// What becomes of Redis.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outage {
    Stops,
    Crashes,
    LosesAll,
}

impl Outage {
    fn begin(self, redis: &mut RedisServer) {
        match self {
            Outage::Stops => redis.pause(),
            Outage::Crashes => redis.kill(),
            Outage::LosesAll => redis.kill_and_forget(),
        }
    }

    fn end(self, redis: &mut RedisServer) {
        match self {
            Outage::Stops => redis.go_on(),
            Outage::Crashes | Outage::LosesAll => redis.restart(),
        }
    }
}

/// A plan of that name for one tenant.
async fn plan(engine: &Engine, name: &str, tenant: &str) -> steadfast::PlanHandle {
    engine.create_plan("switch").id(name).tenants([tenant]).await.unwrap()
}

async fn run_is(engine: &Engine, run: &str, status: TaskStatus) {
    until(&format!("{run} is {}", status.as_str()), async || engine.run(run).unwrap().view().await.unwrap().task.unwrap().status == status)
        .await;
}

/// Tasks at every point: made, in a stage, waiting for its lock, in backoff, paused, failed with its lock, in the last stage, being undone.
async fn everywhere(engine: &Engine, scene: &Scene) {
    for (what, does) in [
        ("warm/s1", Does::Holds),
        ("stage/s2", Does::Holds),
        ("backoff/s2", Does::Stumbles),
        ("paused/s2", Does::Holds),
        ("failed/s2", Does::Breaks),
        ("end/s4", Does::Holds),
        ("undo/s3", Does::Breaks),
        ("undo/s2/undo", Does::Holds),
    ] {
        scene.script(what, does);
    }
    plan(engine, "made", "made").await;
    let second = engine.create_plan("switch").id("second").tenants(["warm", "stage"]).max_concurrency(1);
    second.await.unwrap().start().await.unwrap();
    for name in ["stage", "paused", "failed", "end", "undo", "backoff"] {
        plan(engine, name, name).await.start().await.unwrap();
    }
    until("it is in a stage", async || scene.times("stage/s2") == 1 && scene.times("end/s4") == 1).await;
    scene.let_go("warm/s1");
    run_is(engine, "second/stage", TaskStatus::Waiting).await;
    until("it is about to pause", async || scene.times("paused/s2") == 1).await;
    engine.run("paused/paused").unwrap().pause().await.unwrap();
    scene.let_go("paused/s2");
    run_is(engine, "paused/paused", TaskStatus::Paused).await;
    run_is(engine, "failed/failed", TaskStatus::Failed).await;
    run_is(engine, "undo/undo", TaskStatus::Failed).await;
    engine.run("undo/undo").unwrap().roll_back().await.unwrap();
    until("it is being undone", async || scene.times("undo/s2/undo") == 1).await;
}

async fn open_plans(engine: &Engine) -> Vec<&'static str> {
    let mut open = Vec::new();
    for name in ["made", "stage", "second", "backoff", "paused", "failed", "end", "undo", "new"] {
        if engine.plan_status(name).await.is_ok_and(|plan| !plan.status.is_final()) {
            open.push(name);
        }
    }
    open
}

async fn everything_goes_on(outage: Outage) {
    let (mut redis, store, scene) = (lasting(), Memory::new(), Scene::new());
    let engine = start(instance(&redis, "a", &store, &scene)).await;
    let alerts = Alerts::of(&engine).await;
    everywhere(&engine, &scene).await;
    let numbers = truth::fence(&redis, "failed");
    engine.shared().await;

    let mut degraded = open_plans(&engine).await;
    outage.begin(&mut redis);
    scene.script("new/s3", Does::Holds);
    plan(&engine, "new", "new").await.start().await.unwrap();
    assert_eq!(away(&engine).await, None, "{outage:?}: nobody else is there, so all goes on");
    degraded.push("new");
    let why = alerts.are("DEGRADED", &degraded).await;
    assert!(why.contains("there is nobody else, so tasks go on by themselves"), "{why}");
    for what in ["stage/s2", "end/s4", "undo/s2/undo"] {
        scene.let_go(what);
    }
    for (run, status) in [
        ("stage/stage", TaskStatus::Completed),
        ("second/stage", TaskStatus::Completed),
        ("end/end", TaskStatus::Completed),
        ("undo/undo", TaskStatus::RolledBack),
        ("backoff/backoff", TaskStatus::Completed),
        ("paused/paused", TaskStatus::Paused),
        ("failed/failed", TaskStatus::Failed),
    ] {
        run_is(&engine, run, status).await;
    }
    until("a new plan has come to its third stage", async || scene.times("new/s3") == 1).await;
    let health = engine.sharing().unwrap();
    assert!(health.pending > 0 && health.behind_since.is_some() && matches!(health.state, SharingState::Away { .. }), "{health:?}");

    outage.end(&mut redis);
    back(&engine).await;
    let health = engine.sharing().unwrap();
    assert_eq!((health.pending, health.behind_since), (0, None));
    alerts.are("RESTORED", &degraded).await; // also those that have ended meanwhile
    mirror_is_true(&engine, &redis).await;
    assert!(truth::fence(&redis, "failed") >= numbers && truth::fence(&redis, "new") >= 1);

    scene.let_go("new/s3");
    engine.plan("made").unwrap().start().await.unwrap();
    engine.run("paused/paused").unwrap().resume().await.unwrap();
    engine.retry_task_by_tenant("failed", true).await.unwrap();
    for run in ["new/new", "made/made", "paused/paused", "failed/failed"] {
        run_is(&engine, run, TaskStatus::Completed).await;
    }
    mirror_is_true(&engine, &redis).await;
    for (tenant, counts) in [
        ("made", [1, 1, 1, 1]),
        ("stage", [2, 2, 2, 2]), // two tasks of it
        ("backoff", [1, 2, 1, 1]),
        ("paused", [1, 1, 1, 1]),
        ("failed", [1, 2, 1, 1]),
        ("end", [1, 1, 1, 1]),
        ("undo", [1, 1, 1, 0]),
        ("new", [1, 1, 1, 1]),
    ] {
        assert_eq!(scene.counts(tenant), counts, "{tenant}");
    }
    assert_eq!((scene.times("undo/s1/undo"), scene.times("undo/s2/undo")), (1, 1));
    assert_eq!(engine.plan_status("new").await.unwrap().status, PlanStatus::Completed);
    assert_eq!(alerts.lines().len(), 2 * degraded.len(), "each is told once: {:?}", alerts.lines());
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_one_who_is_alone_go_on_while_redis_is_stopped() {
    everything_goes_on(Outage::Stops).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_one_who_is_alone_go_on_while_redis_is_gone() {
    everything_goes_on(Outage::Crashes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_one_who_is_alone_go_on_when_redis_comes_back_empty() {
    everything_goes_on(Outage::LosesAll).await;
}
