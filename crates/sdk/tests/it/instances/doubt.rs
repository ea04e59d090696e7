//! Commits of which it was said that they failed, and that are there: what is shared says so as well, and nothing begins before it does.
//!
//! Subject: `crates/runtime/src/commons/locks.rs`.
//! Subject: `crates/runtime/src/commons/mirror.rs`.

use super::mirror::text;
use super::{begin, instance, mirror_is_true, start, until};
use crate::plans::{How, World};
use std::time::Duration;
use steadfast::memory::{Fault, Gate, Memory};
use steadfast::{Ctx, Engine, EntityId, Failure, HOUR, Status, workflow};
use steadfast_store::Store;
use steadfast_test_servers::RedisServer;

#[workflow]
async fn naps(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.sleep(HOUR).await
}

/// A lock is asked for, and granted; the answer to one of those commits gets lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_has_one_holder_whichever_of_its_commits_was_in_doubt() {
    for (nth, what) in ["asked for", "granted"].into_iter().enumerate() {
        let (redis, world, store) = (RedisServer::start(), World::default(), Memory::new());
        world.script("acme", "s2", &[How::Holds]);
        let a = start(instance(&redis, "a", &store).plan(world.plan(&["s1", "s2"]))).await;
        let b = start(instance(&redis, "b", &Memory::new()).plan(World::default().plan(&["s1", "s2"]))).await;
        let mut of_lock = 0;
        store.faults().rule(move |batch| {
            let is_of_lock = batch.events.iter().any(|append| matches!(append.entity, EntityId::Lock(_)));
            of_lock += usize::from(is_of_lock);
            (is_of_lock && of_lock == nth + 1).then_some(Fault::Doubt)
        });
        begin(&a, "night", &["acme"]).await;
        until(&format!("the task goes on, though its lock was {what} in doubt"), async || world.times("acme/s2") == 1).await;
        a.shared().await;
        let refused = b.create_plan("switch").id("day").tenants(["acme"]).await.err().map(|error| error.code());
        assert_eq!(refused, Some("SF0126"), "{what}: {:?}", text(&redis, "lock:tenant:acme"));
    }
}

/// A task in a stage, of which the end is put on record right behind a commit in doubt.
async fn ends_behind_a_doubt(redis: &RedisServer, world: &World, stage: &str) -> Engine {
    let store = Memory::new();
    ["s1", "s2"].into_iter().for_each(|stage| world.script("acme", stage, &[How::Holds]));
    let a = start(instance(redis, "a", &store).plan(world.plan(&["s1", "s2"])).register(naps)).await;
    begin(&a, "night", &["acme"]).await;
    if stage == "s2" {
        world.let_go("acme/s1");
    }
    until("it is in that stage", async || world.times(&format!("acme/{stage}")) == 1).await;
    a.shared().await;
    let gate = Gate::default();
    store.faults().after(0, Fault::Hold(gate.clone()));
    store.faults().after(0, Fault::Doubt);
    let commits = store.commits();
    let nap = |id: &'static str| {
        let a = a.clone();
        tokio::spawn(async move { a.start("naps", &()).id(id).await.is_err() })
    };
    let slow = nap("slow");
    until("one is on its way", async || store.commits() == commits + 1).await;
    let doubted = nap("doubted");
    until("and one behind it", async || store.commits() == commits + 2).await;
    world.let_go(&format!("acme/{stage}"));
    tokio::time::sleep(Duration::from_millis(200)).await; // until the end of the stage is in line
    gate.open();
    assert_eq!((slow.await.unwrap(), doubted.await.unwrap()), (false, true));
    a
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stage_waits_for_the_checkpoint_behind_a_commit_in_doubt() {
    let (redis, world) = (RedisServer::start(), World::default());
    let _a = ends_behind_a_doubt(&redis, &world, "s1").await;
    until("the next stage has begun", async || world.times("acme/s2") == 1).await;
    assert!(text(&redis, "ckpt:night/acme").is_some(), "a stage begins once the checkpoint before it is shared");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_task_behind_a_commit_in_doubt_is_shown_to_others() {
    let (redis, world) = (RedisServer::start(), World::default());
    let a = ends_behind_a_doubt(&redis, &world, "s2").await;
    until("it is done", async || a.run("night/acme").unwrap().view().await.unwrap().status == Status::Completed).await;
    a.shared().await;
    mirror_is_true(&a, &redis).await;
}
