//! The change feed: everything that is written, in its order, for as many as want to know.
//!
//! Subject: `crates/runtime/src/feed.rs`.

use crate::support::engine;
use std::sync::Arc;
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Ctx, Engine, EntityId, Error, Failure, Fed, Feed, Follow, Position, RunId, workflow};

#[workflow]
async fn two_steps(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.step("one", || async { Ok::<_, Failure>(1) }).await?;
    ctx.signal::<()>("go").await?;
    ctx.step("two", || async { Ok::<_, Failure>(2) }).await?;
    Ok(())
}

async fn start(store: &Memory) -> Engine {
    engine(store).register(two_steps).start().await.unwrap()
}

async fn run(engine: &Engine, id: &str) {
    let run = engine.start("two_steps", &()).id(id).await.unwrap();
    run.signal("go", &()).await.unwrap();
    run.result::<()>().await.unwrap();
}

fn of(id: &str) -> Option<EntityId> {
    Some((&RunId::new(id).unwrap()).into())
}

fn line(fed: &Arc<Fed>) -> String {
    format!("{} {} {}", fed.entity, fed.entry.seq, fed.entry.event.kind())
}

/// Reads until a run has ended.
async fn until_end(feed: &mut Feed, id: &str) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        lines.extend(feed.next().await.unwrap().iter().map(line));
        if lines.iter().any(|line| line.starts_with(&format!("{id} ")) && line.ends_with("RUN_COMPLETED")) {
            return lines;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_happens_to_a_run_is_fed_in_the_order_of_its_journal() {
    let engine = start(&Memory::new()).await;
    let mut all = engine.feed(Follow::default()).await.unwrap();
    let mut one = engine.feed(Follow { entity: of("feed-b"), ..Follow::default() }).await.unwrap();
    run(&engine, "feed-a").await;
    run(&engine, "feed-b").await;
    let kinds = ["RUN_STARTED", "STEP_COMPLETED", "SIGNAL_AWAITED", "SIGNAL_RECEIVED", "SIGNAL_TAKEN", "STEP_COMPLETED", "RUN_COMPLETED"];
    let b = until_end(&mut one, "feed-b").await;
    assert_eq!(b.len(), kinds.len());
    for (index, line) in b.iter().enumerate() {
        assert!(line.starts_with(&format!("feed-b {} ", index + 1)), "{b:?}");
    }
    let all = until_end(&mut all, "feed-b").await;
    for id in ["feed-a", "feed-b"] {
        let seqs: Vec<u64> = all
            .iter()
            .filter(|line| line.starts_with(id))
            .map(|line| line.split(' ').nth(1).unwrap().parse().unwrap())
            .collect();
        assert_eq!(seqs, (1..=7).collect::<Vec<u64>>(), "{all:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_back_with_its_place_misses_nothing() {
    let store = Memory::new();
    let engine = start(&store).await;
    run(&engine, "feed-before").await;
    let mut feed = engine.feed(Follow { after: Some(Position::default()), entity: None }).await.unwrap();
    let mut seen = feed.next().await.unwrap().iter().map(line).collect::<Vec<_>>();
    let place = feed.position().clone();
    drop(feed);
    run(&engine, "feed-meanwhile").await;
    engine.shutdown().await;
    let engine = start(&store.reopen()).await;
    run(&engine, "feed-after").await;
    let mut feed = engine.feed(Follow { after: Some(place), entity: None }).await.unwrap();
    seen.extend(until_end(&mut feed, "feed-after").await);
    for id in ["feed-before", "feed-meanwhile", "feed-after"] {
        let count = seen.iter().filter(|line| line.starts_with(id)).count();
        assert_eq!(count, 7, "{id}: {seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_follows_from_now_on_does_not_hear_what_was() {
    let engine = start(&Memory::new()).await;
    run(&engine, "feed-past").await;
    let mut feed = engine.feed(Follow::default()).await.unwrap();
    run(&engine, "feed-now").await;
    assert!(until_end(&mut feed, "feed-now").await.iter().all(|line| line.starts_with("feed-now")));
}

/// A follower that never reads keeps nobody waiting, and reads everything in the end.
#[tokio::test(start_paused = true)]
async fn a_follower_that_does_not_read_holds_nobody_up() {
    let engine = start(&Memory::new()).await;
    let mut lazy = engine.feed(Follow::default()).await.unwrap();
    for number in 0..200 {
        run(&engine, &format!("feed-lazy-{number}")).await;
    }
    let seen = until_end(&mut lazy, "feed-lazy-199").await;
    assert_eq!(seen.len(), 200 * 7);
}

#[tokio::test(start_paused = true)]
async fn followers_hear_that_the_engine_has_stopped() {
    let engine = start(&Memory::new()).await;
    let mut feeds =
        [engine.feed(Follow::default()).await.unwrap(), engine.feed(Follow { after: None, entity: of("feed-never") }).await.unwrap()];
    let waiting = tokio::spawn(async move { futures_util::future::join_all(feeds.iter_mut().map(Feed::next)).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!waiting.is_finished());
    engine.shutdown().await;
    for outcome in waiting.await.unwrap() {
        assert_eq!(Error::from(outcome.unwrap_err()).code(), "SF0202");
    }
}
