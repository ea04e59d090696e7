//! Workers and engines that stop on purpose.

use super::link::{Link, Mode};
use super::programs::{calls, dropped, let_go};
use super::world::{HEARTBEAT_MAX, World, until};
use std::time::Duration;
use steadfast_kernel::{Origin, Payload, Status};
use steadfast_runtime::{Gone, Hello, Parted};

#[tokio::test(start_paused = true)]
async fn a_worker_that_drains_ends_what_is_in_flight_and_gives_the_rest_to_others() {
    let world = World::new().await;
    let mut first = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let (busy, idle) = (world.start("holds", "drain-busy").await, world.start("waits", "drain-idle").await);
    until("it holds", async || calls("drain-busy", "hold") == 1).await;
    until("it waits", async || world.waits(&idle).await == ["SIGNAL"]).await;
    let _second = Link::new(&world.engine, &world.worker("w2"));
    until("both are there", async || world.engine.workers().len() == 2).await;
    first.drain();
    until("only what is in flight is left", async || world.sessions() == [("w1".to_string(), 1), ("w2".to_string(), 1)]).await;
    assert!(world.engine.workers()[0].draining);
    let other = world.start("ten", "drain-new").await;
    world.engine.ended(&other).await.unwrap();
    let_go("drain-busy", "hold", 1);
    assert_eq!(first.parted.await.unwrap(), Parted::Drained);
    assert_eq!(first.gone.await.unwrap(), Gone::Left);
    world.engine.ended(&busy).await.unwrap();
    assert_eq!((calls("drain-busy", "hold"), calls("drain-busy", "after")), (1, 1), "nothing was done twice");
    world.engine.signal(&idle, "go", Payload::json("1"), Origin::default()).await.unwrap();
    world.engine.ended(&idle).await.unwrap();
    assert_eq!(calls("drain-idle", "before"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_drain_does_not_interrupt_a_run_that_does_not_go_on_by_itself() {
    let world = World::new().await;
    let mut first = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let run = world.start("manual", "drain-manual").await;
    until("it holds", async || calls("drain-manual", "hold") == 1).await;
    first.drain();
    let _second = Link::new(&world.engine, &world.worker("w2"));
    let_go("drain-manual", "hold", 1);
    world.engine.ended(&run).await.unwrap();
    assert_eq!(first.parted.await.unwrap(), Parted::Drained);
    assert_eq!(calls("drain-manual", "hold"), 1);
}

/// A run is on its way to a worker that goes: it has never begun there.
#[tokio::test(start_paused = true)]
async fn what_is_on_its_way_to_a_worker_that_drains_was_never_begun() {
    let world = World::new().await;
    let mut first = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    first.set(Mode::HoldDown);
    let run = world.start("manual", "drain-on-its-way").await;
    until("it was given away", async || world.sessions() == [("w1".to_string(), 1)]).await;
    first.drain();
    assert_eq!(first.gone.await.unwrap(), Gone::Left, "it is not lost");
    let _second = Link::new(&world.engine, &world.worker("w2"));
    let_go("drain-on-its-way", "hold", 1);
    world.engine.ended(&run).await.unwrap();
    assert_eq!(calls("drain-on-its-way", "hold"), 1);
}

/// Servers are replaced before workers.
#[tokio::test(start_paused = true)]
async fn a_worker_of_the_version_before_is_served() {
    let world = World::new().await;
    let worker = world.worker("w1");
    let hello = Hello { version: worker.hello().version - 1, ..worker.hello() };
    let mut link = Link::by(&world.engine, &worker, hello.clone(), usize::MAX);
    until("it is there", async || world.engine.workers().len() == 1).await;
    let run = world.start("ten", "of-before").await;
    world.engine.ended(&run).await.unwrap();
    link.drain();
    assert_eq!(link.parted.await.unwrap(), Parted::Drained);
    for version in [hello.version - 1, hello.version + 2] {
        let refused = Hello::decode(&Hello { version, ..hello.clone() }.encode()).unwrap_err();
        assert!(refused.to_string().contains(&format!("version {version}")), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_when_its_patience_does() {
    let world = World::new().await;
    let mut first = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let run = world.start("holds", "patience").await;
    until("it holds", async || calls("patience", "hold") == 1).await;
    let began = tokio::time::Instant::now();
    first.drain();
    assert_eq!(first.parted.await.unwrap(), Parted::OutOfPatience);
    assert!(began.elapsed() >= Duration::from_secs(60) && dropped("patience", "hold") == 1);
    assert_eq!(first.gone.await.unwrap(), Gone::GaveUp, "it says that nothing is left, so that nobody waits");
    let _second = Link::new(&world.engine, &world.worker("w2"));
    until("it is done again", async || calls("patience", "hold") == 2).await;
    let_go("patience", "hold", 1);
    world.engine.ended(&run).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_lets_attempts_of_workers_end() {
    let world = World::new().await;
    let link = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let run = world.start("holds", "shutdown").await;
    until("it holds", async || calls("shutdown", "hold") == 1).await;
    let stopping = tokio::spawn(world.engine.clone().shutdown());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!stopping.is_finished(), "it waits for the attempt");
    let_go("shutdown", "hold", 1);
    stopping.await.unwrap();
    assert_eq!(link.gone.await.unwrap(), Gone::Stopped);
    let parted = link.parted.await.unwrap();
    assert!(matches!(parted, Parted::Dismissed { for_good: false, .. } | Parted::Ended), "{parted}");
    let world = world.restart().await;
    let _link = Link::new(&world.engine, &world.worker("w1"));
    world.engine.ended(&run).await.unwrap();
    assert_eq!((calls("shutdown", "hold"), calls("shutdown", "after")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_dies_is_followed_by_one_that_the_worker_comes_back_to() {
    let world = World::new().await;
    let link = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let (run, idle) = (world.start("holds", "restart").await, world.start("sleeps", "restart-idle").await);
    until("it holds", async || calls("restart", "hold") == 1).await;
    let world = world.restart().await;
    assert!(link.parted.await.unwrap().may_come_again());
    assert_eq!(dropped("restart", "hold"), 1);
    until("it waits for a worker", async || world.waits(&run).await == ["NO_WORKER"]).await;
    let _link = Link::new(&world.engine, &world.worker("w1"));
    tokio::time::sleep(HEARTBEAT_MAX).await;
    until("it is done again", async || calls("restart", "hold") == 2).await;
    let_go("restart", "hold", 1);
    world.engine.ended(&run).await.unwrap();
    world.engine.ended(&idle).await.unwrap();
    assert_eq!(calls("restart-idle", "after"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_has_not_seen_the_end_of_its_engine_lets_go_before_another_has_its_runs() {
    let world = World::new().await;
    let first = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let (busy, idle) = (world.start("holds", "takeover").await, world.start("waits", "takeover-idle").await);
    until("it holds", async || calls("takeover", "hold") == 1).await;
    until("it waits", async || world.waits(&idle).await == ["SIGNAL"]).await;
    first.set(Mode::Lose);
    let world = world.restart().await;
    let began = tokio::time::Instant::now();
    let _second = Link::new(&world.engine, &world.worker("w2"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let other = world.start("ten", "takeover-new").await;
    world.engine.ended(&other).await.unwrap();
    world.engine.signal(&idle, "go", Payload::json("1"), Origin::default()).await.unwrap();
    world.engine.ended(&idle).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "what nobody can have begun does not wait");
    assert_eq!(first.parted.await.unwrap(), Parted::Silent);
    assert_eq!((calls("takeover", "hold"), dropped("takeover", "hold")), (1, 1), "nobody else has begun it");
    assert_eq!(world.waits(&busy).await, ["NO_WORKER"]);
    tokio::time::sleep(HEARTBEAT_MAX).await;
    until("the second has it", async || calls("takeover", "hold") == 2).await;
    let_go("takeover", "hold", 1);
    world.engine.ended(&busy).await.unwrap();
    assert_eq!(world.kinds(&busy).await, ["RUN_STARTED", "STEP_COMPLETED hold#1", "STEP_COMPLETED after#1", "RUN_COMPLETED"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_person_wants_of_a_run_goes_for_one_that_is_hosted_elsewhere() {
    let world = World::new().await;
    let link = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let cancelled = world.start("undoes", "op-cancel").await;
    until("it holds", async || calls("op-cancel", "hold") == 1).await;
    world.engine.cancel(&cancelled, Origin::default()).await.unwrap();
    world.engine.ended(&cancelled).await.unwrap();
    assert_eq!(world.view(&cancelled).await.status, Status::Cancelled);
    assert_eq!((dropped("op-cancel", "hold"), calls("op-cancel", "undo-reserve"), calls("op-cancel", "undo-pack")), (1, 1, 1));

    let ended = world.start("holds", "op-end").await;
    until("it holds", async || calls("op-end", "hold") == 1).await;
    world.engine.terminate(&ended, Origin::default()).await.unwrap();
    until("its attempt is dropped", async || dropped("op-end", "hold") == 1).await;

    let paused = world.start("holds", "op-pause").await;
    until("it holds", async || calls("op-pause", "hold") == 1).await;
    world.engine.pause(&paused, Origin::default()).await.unwrap();
    let_go("op-pause", "hold", 1);
    until("what was in flight is on record", async || world.kinds(&paused).await.len() == 3).await;
    assert_eq!((world.view(&paused).await.status, calls("op-pause", "after")), (Status::Paused, 0));
    link.set(Mode::Cut); // a paused run is lost, too
    link.gone.await.unwrap();
    world.engine.resume(&paused, Origin::default()).await.unwrap();
    let _link = Link::new(&world.engine, &world.worker("w1"));
    world.engine.ended(&paused).await.unwrap();
    assert_eq!((calls("op-pause", "hold"), calls("op-pause", "after")), (1, 1));
}
