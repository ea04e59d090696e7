//! Time and chance are the same when a run is replayed, and have no limit.
//!
//! Subject: `crates/runtime/src/host/context.rs`.
//! Subject: `crates/kernel/src/random.rs`.

use crate::support::engine;
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Ctx, Failure, HOUR, Store, workflow};

/// Draws many values before and after a sleep; the last step tells what was seen.
#[workflow]
async fn chance(ctx: Ctx, draws: usize) -> Result<Vec<String>, Failure> {
    let draw = || format!("{} {} {}", ctx.random(), ctx.uuid(), ctx.now());
    let mut seen: Vec<String> = (0..draws).map(|_| draw()).collect();
    ctx.step("first", || async { Ok::<_, Failure>(()) }).await?;
    seen.push(draw());
    ctx.sleep(HOUR).await?;
    seen.push(draw());
    let noted = seen.clone();
    ctx.step("note", move || {
        let noted = noted.clone();
        async move { Ok::<_, Failure>(noted) }
    })
    .await?;
    Ok(seen)
}

/// The trap: recorded clock, random and uuid values have no silent limit (others drop them after 500).
#[tokio::test(start_paused = true)]
async fn time_and_chance_are_the_same_in_replay_without_a_limit() {
    let store = Memory::new();
    let clock = steadfast::VirtualClock::start();
    let build = |store: Memory| steadfast::Engine::on(store).clock(clock).register(chance);
    let first = build(store.clone()).start().await.unwrap();
    first.start("chance", &2000).id("chance").await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    drop(first); // it slept; the second engine replays it from the start
    let second = build(store.reopen()).start().await.unwrap();
    let run = second.run("chance").unwrap();
    let result: Vec<String> = run.result().await.unwrap();
    assert_eq!(result.len(), 2002);
    let distinct: std::collections::BTreeSet<_> = result.iter().map(|line| line.split(' ').next()).collect();
    assert_eq!(distinct.len(), 2002, "every draw is another one");

    let third = build(Memory::new()).start().await.unwrap();
    let other: Vec<String> = third.start("chance", &2000).id("chance").await.unwrap().result().await.unwrap();
    assert_ne!(other[0], result[0], "another run has another seed");

    // What the code saw before the restart stands in the journal, what it saw after it in the result.
    let steadfast::Event::StepCompleted { output, .. } = &run.journal().await.unwrap()[4].event else { panic!("note is the fifth event") };
    assert_eq!(serde_json::from_slice::<Vec<String>>(&output.bytes).unwrap(), result);
}

/// The trap: an idle process records nothing.
#[tokio::test(start_paused = true)]
async fn an_idle_process_records_nothing() {
    let store = Memory::new();
    let engine = engine(&store).register(chance).start().await.unwrap();
    engine.start("chance", &1).id("idle").await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let commits = engine.commits();
    tokio::time::sleep(Duration::from_secs(3000)).await;
    assert_eq!((engine.commits(), store.commits()), (commits, commits));
}
