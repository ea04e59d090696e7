//! Watching keys.

use super::{Told, down_for, pass, put, seen_next, told_by};
use crate::support::engine;
use steadfast::memory::Memory;
use steadfast::{Change, Engine, Failure, HOUR, Position, SECOND, Watch};

fn kind(change: &Change) -> &'static str {
    match change {
        Change::Put(_) => "put",
        Change::Renewed { .. } => "renewed",
        Change::Deleted { .. } => "deleted",
        Change::Expired { .. } => "expired",
        Change::Told { .. } => "told",
        Change::NotTold { .. } => "not told",
        Change::DeadLetter { .. } => "dead letter",
        Change::Redriven { .. } => "redriven",
        Change::Dropped { .. } => "dropped",
        _ => "something else",
    }
}

async fn next(watch: &mut Watch, count: usize) -> Vec<String> {
    let mut seen = Vec::new();
    for _ in 0..count {
        let watched = seen_next(watch).await;
        seen.push(format!("{} {}", watched.key, kind(&watched.change)));
    }
    seen
}

async fn live(engine: &Engine, key: &str) {
    put(engine, key, HOUR).await;
    engine.renew(key, SECOND).await.unwrap();
    pass(3 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_watches_sees_what_becomes_of_the_keys_that_begin_so() {
    let told = Told::new();
    let engine = told_by(&Memory::new(), told.answering(down_for(1))).start().await.unwrap();
    let mut watch = engine.watch("a:").await.unwrap();
    live(&engine, "b:1").await;
    live(&engine, "a:1").await;
    put(&engine, "a:2", HOUR).await;
    engine.delete("a:2").await.unwrap();
    let seen = next(&mut watch, 7).await;
    assert_eq!(seen, ["a:1 put", "a:1 renewed", "a:1 expired", "a:1 not told", "a:1 told", "a:2 put", "a:2 deleted"]);
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_back_with_its_place_misses_nothing_and_sees_nothing_twice() {
    let (told, store) = (Told::new(), Memory::new());
    let first = told_by(&store, told.handler()).start().await.unwrap();
    live(&first, "a:1").await;
    let mut watch = first.watch("a:").after(Position::default()).await.unwrap();
    let mut seen = next(&mut watch, 2).await;
    let place = watch.position();
    drop(watch);
    live(&first, "b:1").await;
    first.shutdown().await;
    let second = told_by(&store.reopen(), told.handler()).start().await.unwrap();
    live(&second, "a:2").await;
    let mut watch = second.watch("a:").after(place).await.unwrap();
    seen.extend(next(&mut watch, 6).await);
    let one = ["put", "renewed", "expired", "told"];
    let all: Vec<_> = ["a:1", "a:2"].iter().flat_map(|key| one.map(|kind| format!("{key} {kind}"))).collect();
    assert_eq!(seen, all);
}

#[tokio::test(start_paused = true)]
async fn dead_letters_and_what_becomes_of_them_are_seen() {
    let told = Told::new();
    let broken = told.answering(|_| Err(Failure::permanent("no")));
    let engine = told_by(&Memory::new(), broken).start().await.unwrap();
    let mut watch = engine.watch("").await.unwrap();
    put(&engine, "k", SECOND).await;
    next(&mut watch, 2).await;
    let Change::DeadLetter { letter, failure } = seen_next(&mut watch).await.change else { panic!("there is a letter") };
    assert_eq!((letter.as_str(), failure.message.as_str()), ("key:k.3", "no"));
    engine.redrive(&letter).await.unwrap();
    assert_eq!(seen_next(&mut watch).await.change, Change::Redriven { letter });
    let Change::DeadLetter { letter, .. } = seen_next(&mut watch).await.change else { panic!("it failed again") };
    engine.drop_letter(&letter).await.unwrap();
    assert_eq!(seen_next(&mut watch).await.change, Change::Dropped { letter });
}

#[tokio::test(start_paused = true)]
async fn whoever_watches_hears_that_the_engine_has_stopped() {
    let engine = engine(&Memory::new()).start().await.unwrap();
    let mut watch = engine.watch("").await.unwrap();
    engine.shutdown().await;
    assert_eq!(watch.next().await.unwrap_err().code(), "SF0202");
}
