//! Runs that start others, and runs that wait for a slot.

use super::{Story, begin, comes_to, the_end};
use steadfast::memory::Memory;
use steadfast::{Engine, Status};

pub(super) fn stories() -> Vec<Story> {
    vec![
        Story { name: "family", make: |store| Box::pin(family(store)), go_on: the_end },
        Story { name: "family-waits", make: |store| Box::pin(family_waits(store)), go_on: |engine| Box::pin(family_goes_on(engine)) },
        Story { name: "family-called-off", make: |store| Box::pin(family_called_off(store)), go_on: the_end },
        Story { name: "line", make: |store| Box::pin(line(store)), go_on: |engine| Box::pin(line_moves(engine)) },
    ]
}

async fn family(store: Memory) {
    let engine = begin(&store).await;
    let run = engine.start("family", "milk").id("family").await.unwrap();
    assert_eq!(run.result::<Vec<String>>().await.unwrap(), ["bread", "closed", "milk"]);
    engine.run("family-stamps").unwrap().result::<String>().await.unwrap();
    engine.shutdown().await;
}

/// The child of a parent that waits for it waits itself.
async fn waiting(engine: &Engine, id: &str) {
    engine.start("family", "waits").id(id).await.unwrap();
    comes_to(engine, &format!("{id}/errand.4"), Status::Waiting).await;
    comes_to(engine, id, Status::Waiting).await;
}

async fn family_waits(store: Memory) {
    let engine = begin(&store).await;
    waiting(&engine, "family-waits").await;
    engine.shutdown().await;
}

async fn family_goes_on(engine: Engine) {
    engine.run("family-waits/errand.4").unwrap().signal("done", "tea").await.unwrap();
    let run = engine.run("family-waits").unwrap();
    assert_eq!(run.result::<Vec<String>>().await.unwrap(), ["bread", "closed", "tea"]);
}

async fn family_called_off(store: Memory) {
    let engine = begin(&store).await;
    waiting(&engine, "family-called-off").await;
    let run = engine.run("family-called-off").unwrap();
    run.cancel().why("it rains").await.unwrap();
    run.result::<Vec<String>>().await.unwrap_err();
    engine.run("family-called-off/errand.4").unwrap().result::<String>().await.unwrap_err();
    engine.shutdown().await;
}

/// One was served, one is, two wait, of which one has left.
async fn line(store: Memory) {
    let engine = begin(&store).await;
    for id in ["served", "being-served", "left", "next"] {
        engine.start("queued", &()).id(id).await.unwrap();
    }
    comes_to(&engine, "served", Status::Waiting).await;
    engine.run("served").unwrap().signal("next", "served").await.unwrap();
    comes_to(&engine, "being-served", Status::Waiting).await;
    engine.run("left").unwrap().cancel().await.unwrap();
    comes_to(&engine, "left", Status::Cancelled).await;
    comes_to(&engine, "next", Status::Ready).await;
    engine.shutdown().await;
}

async fn line_moves(engine: Engine) {
    let limit = engine.limit_of("queued").await.unwrap().unwrap();
    assert_eq!((limit.held(), limit.line.len()), (1, 1));
    for id in ["being-served", "next"] {
        let run = engine.run(id).unwrap();
        run.signal("next", id).await.unwrap();
        assert_eq!(run.result::<String>().await.unwrap(), id);
    }
}
