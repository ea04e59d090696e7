//! Whoever follows what is written sees all of it, whichever instance wrote it.
//!
//! Subject: `crates/runtime/src/feed.rs`.

use super::World;
use crate::support::until;
use std::collections::BTreeMap;
use steadfast::{Ctx, EngineBuilder, Failure, Follow, workflow};

#[workflow]
async fn note(ctx: Ctx, _nothing: ()) -> Result<(), Failure> {
    ctx.step("note", || async { Ok::<_, Failure>(()) }).await
}

fn all(builder: EngineBuilder) -> EngineBuilder {
    builder.register(note)
}

#[tokio::test(start_paused = true)]
async fn the_feed_of_one_instance_has_what_all_of_them_write_and_skips_nothing() {
    let world = World::new(8);
    let (a, b) = (world.start("a", all).await, world.start("b", all).await);
    until("they share", async || a.has(4).await && b.has(4).await).await;
    let mut feed = b.engine.feed(Follow::default()).await.unwrap();
    for number in 0..50 {
        a.engine.start("note", &()).id(format!("note-{number}")).await.unwrap();
    }
    let mut seen: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    while seen.values().map(Vec::len).sum::<usize>() < 150 {
        for fed in feed.next().await.unwrap() {
            seen.entry(fed.entity.to_string()).or_default().push(fed.entry.seq);
        }
    }
    assert_eq!(seen.len(), 50);
    assert!(seen.values().all(|seqs| *seqs == [1, 2, 3]), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn one_run_is_followed_from_an_instance_that_does_not_have_it() {
    let world = World::new(8);
    let (a, b) = (world.start("a", all).await, world.start("b", all).await);
    until("they share", async || a.has(4).await && b.has(4).await).await;
    for number in 0..8 {
        let id = format!("followed-{number}");
        let entity = Some(steadfast::EntityId::Run(steadfast::RunId::new(&id).unwrap()));
        let mut feeds = Vec::new();
        for engine in [&a.engine, &b.engine] {
            feeds.push(engine.feed(Follow { entity: entity.clone(), ..Follow::default() }).await.unwrap());
        }
        a.engine.start("note", &()).id(&id).await.unwrap();
        for mut feed in feeds {
            let mut seqs = Vec::new();
            while seqs.len() < 3 {
                seqs.extend(feed.next().await.unwrap().iter().map(|fed| fed.entry.seq));
            }
            assert_eq!(seqs, [1, 2, 3]);
        }
    }
}
