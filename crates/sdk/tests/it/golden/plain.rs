//! Runs that nobody interferes with: finished ones, and ones that wait for each kind of thing.

use super::{Story, begin, comes_to, the_end};
use steadfast::memory::{Fault, Memory};
use steadfast::{DAY, Engine, HOUR, Resolution, Status};

pub(super) fn stories() -> Vec<Story> {
    vec![
        Story { name: "order", make: |store| Box::pin(ordered(store)), go_on: the_end },
        Story {
            name: "order-asleep",
            make: |store| Box::pin(asleep(store)),
            go_on: |engine| Box::pin(async move { approve(&engine, "order-asleep").await }),
        },
        Story {
            name: "upload-in-backoff",
            make: |store| Box::pin(in_backoff(store)),
            go_on: |engine| Box::pin(async move { assert_eq!(result::<u32>(&engine, "upload-in-backoff").await, 502) }),
        },
        Story { name: "errands", make: |store| Box::pin(errands(store)), go_on: the_end },
        Story { name: "words", make: |store| Box::pin(words(store)), go_on: |engine| Box::pin(more_words(engine)) },
        Story { name: "payment-in-doubt", make: |store| Box::pin(in_doubt(store)), go_on: |engine| Box::pin(resolved(engine)) },
        Story {
            name: "count",
            make: |store| Box::pin(counted(store)),
            go_on: |engine| {
                Box::pin(async move {
                    engine.run("count").unwrap().signal("more", &4).await.unwrap();
                    assert_eq!(result::<u32>(&engine, "count").await, 7);
                })
            },
        },
    ]
}

async fn result<T: serde::de::DeserializeOwned>(engine: &Engine, run: &str) -> T {
    engine.run(run).unwrap().result().await.unwrap()
}

async fn approve(engine: &Engine, run: &str) {
    engine.run(run).unwrap().signal("approve", "ada").id("yes").await.unwrap();
    let result: String = result(engine, run).await;
    assert!(result.starts_with("bag after 2 attempts, approved by ada, 1, "), "{result}");
}

async fn ordered(store: Memory) {
    let engine = begin(&store).await;
    let order = engine
        .start("order", "lamp")
        .id("order")
        .tenant("acme")
        .deadline(3 * DAY)
        .limit("shop", 2)
        .limit("till", 1);
    order.await.unwrap();
    approve(&engine, "order").await;
    engine.shutdown().await;
}

async fn asleep(store: Memory) {
    let engine = begin(&store).await;
    engine.start("order", "chair").id("order-asleep").deadline(3 * DAY).await.unwrap();
    tokio::time::sleep(HOUR / 2).await;
    comes_to(&engine, "order-asleep", Status::Waiting).await;
    engine.shutdown().await;
}

async fn in_backoff(store: Memory) {
    let engine = begin(&store).await;
    engine.start("upload", &5).id("upload-in-backoff").await.unwrap();
    comes_to(&engine, "upload-in-backoff", Status::Waiting).await;
    engine.shutdown().await;
}

/// One that is given up after its last attempt, and one whose retry nobody waits for any more.
async fn errands(store: Memory) {
    let engine = begin(&store).await;
    let hopeless = engine.start("errand", "is hopeless").id("errand-hopeless").await.unwrap();
    hopeless.result::<String>().await.unwrap_err();
    engine.start("errand", "takes too long").id("errand-too-long").await.unwrap();
    assert_eq!(result::<String>(&engine, "errand-too-long").await, "tired 1");
    engine.shutdown().await;
}

async fn words(store: Memory) {
    let engine = begin(&store).await;
    for id in ["words", "words-one", "words-none"] {
        engine.start("hand_in", &()).id(id).await.unwrap();
        comes_to(&engine, id, Status::Waiting).await;
    }
    engine.run("words").unwrap().signal("word", "early").await.unwrap();
    engine.run("words").unwrap().signal("other", "late").id("late").await.unwrap();
    assert_eq!(result::<(String, bool)>(&engine, "words").await, ("early".into(), true));
    engine.run("words-one").unwrap().signal("word", "alone").await.unwrap();
    assert_eq!(result::<(String, bool)>(&engine, "words-one").await, ("alone".into(), false));
    engine.shutdown().await;
}

async fn more_words(engine: Engine) {
    engine.run("words-none").unwrap().signal("word", "at last").await.unwrap();
    assert_eq!(result::<(String, bool)>(&engine, "words-none").await, ("at last".into(), false));
}

async fn in_doubt(store: Memory) {
    store.faults().after(2, Fault::CrashBefore); // the start and the beginning of the attempt are on record
    let engine = begin(&store).await;
    engine.start("pay", &()).id("payment-in-doubt").await.unwrap();
    crate::support::until("it has crashed", async || store.is_dead()).await;
    let store = store.reopen();
    let engine = begin(&store).await;
    comes_to(&engine, "payment-in-doubt", Status::Waiting).await;
    engine.shutdown().await;
}

async fn resolved(engine: Engine) {
    let run = engine.run("payment-in-doubt").unwrap();
    run.resolve("pay#1", Resolution::Completed("paid by hand".into())).await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "paid by hand");
}

async fn counted(store: Memory) {
    let engine = begin(&store).await;
    engine.start("count", &0).id("count").await.unwrap();
    comes_to(&engine, "count", Status::Waiting).await;
    engine.shutdown().await;
}
