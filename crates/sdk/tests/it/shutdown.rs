//! A shutdown lets attempts in flight end and begins nothing new; what is not done goes on after the next start.
//!
//! Subject: `crates/runtime/src/engine/mod.rs`.

use crate::support::{call, calls, engine, until};
use std::time::Duration;
use steadfast::memory::{Fault, Gate, Memory};
use steadfast::{Config, Ctx, Engine, Failure, SECOND, workflow};

#[workflow]
async fn two_steps(ctx: Ctx, seconds: u32) -> Result<u32, Failure> {
    ctx.step("slow", || {
        call(&ctx, "slow");
        async move {
            tokio::time::sleep(seconds * SECOND).await;
            Ok::<_, Failure>(())
        }
    })
    .await?;
    ctx.step("after", || {
        let call = call(&ctx, "after");
        async move { Ok::<_, Failure>(call) }
    })
    .await
}

async fn start(store: &Memory) -> Engine {
    engine(store)
        .config(Config { shutdown_grace: 10 * SECOND, ..Config::default() })
        .register(two_steps)
        .start()
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn attempts_in_flight_end_and_are_recorded() {
    let store = Memory::new();
    let engine = start(&store).await;
    let run = engine.start("two_steps", &5).id("drained").await.unwrap();
    until("the first step runs", async || calls("drained", "slow") == 1).await;
    let begun = tokio::time::Instant::now();
    engine.clone().shutdown().await;
    assert!((4 * SECOND..6 * SECOND).contains(&begun.elapsed()), "it waited for the attempt: {:?}", begun.elapsed());
    assert_eq!((calls("drained", "slow"), calls("drained", "after")), (1, 0), "nothing new was begun");
    assert_eq!(run.result::<u32>().await.unwrap_err().code(), "SF0202");
    let Err(error) = engine.start("two_steps", &5).await else { panic!("it has stopped") };
    assert_eq!(error.code(), "SF0202");

    let engine = start(&store).await;
    assert_eq!(engine.run("drained").unwrap().result::<u32>().await.unwrap(), 1);
    assert_eq!(calls("drained", "slow"), 1, "what was recorded is not done again");
}

#[tokio::test(start_paused = true)]
async fn the_grace_period_is_a_bound() {
    let store = Memory::new();
    let engine = start(&store).await;
    engine.start("two_steps", &3600).id("too-slow").await.unwrap();
    until("the first step runs", async || calls("too-slow", "slow") == 1).await;
    let begun = tokio::time::Instant::now();
    engine.shutdown().await;
    assert!((9 * SECOND..11 * SECOND).contains(&begun.elapsed()), "{:?}", begun.elapsed());

    let engine = start(&store).await;
    assert_eq!(engine.run("too-slow").unwrap().result::<u32>().await.unwrap(), 1);
    assert_eq!(calls("too-slow", "slow"), 2, "the attempt that was cut off is made again");
}

#[tokio::test(start_paused = true)]
async fn an_idle_engine_stops_at_once() {
    let engine = start(&Memory::new()).await;
    let begun = tokio::time::Instant::now();
    engine.shutdown().await;
    assert!(begun.elapsed() < Duration::from_millis(100));
}

/// Its start was said to have failed, so nobody hosts it; that it is there shows while the engine waits for an attempt of another run.
#[tokio::test(start_paused = true)]
async fn a_run_that_turns_up_while_stopping_is_left_for_the_next_start() {
    let store = Memory::new();
    let engine = start(&store).await;
    engine.start("two_steps", &5).id("in-flight").await.unwrap();
    until("the first step runs", async || calls("in-flight", "slow") == 1).await;
    store.faults().after(0, Fault::Doubt);
    assert!(engine.start("two_steps", &1).id("turns-up").await.is_err());
    let begun = tokio::time::Instant::now();
    engine.shutdown().await;
    assert!((4 * SECOND..6 * SECOND).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    assert_eq!(calls("turns-up", "slow"), 0);

    let engine = start(&store).await;
    assert_eq!(engine.run("turns-up").unwrap().result::<u32>().await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_does_not_hold_a_shutdown_up_for_ever() {
    let (store, gate) = (Memory::new(), Gate::default());
    let engine = start(&store).await;
    engine.start("two_steps", &1).id("never-answered").await.unwrap();
    store.faults().after(0, Fault::Hold(gate.clone()));
    until("the step was made", async || calls("never-answered", "slow") == 1).await;
    let begun = tokio::time::Instant::now();
    engine.shutdown().await;
    assert!((19 * SECOND..21 * SECOND).contains(&begun.elapsed()), "two grace periods: {:?}", begun.elapsed());
    gate.open();
}
