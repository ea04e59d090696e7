//! Runs with several lives.

use super::{Story, begin, comes_to, the_end};
use crate::support::calls;
use steadfast::memory::Memory;
use steadfast::{Engine, Status};

pub(super) fn stories() -> Vec<Story> {
    vec![
        Story { name: "interrupted", make: |store| Box::pin(interrupted(store)), go_on: |engine| Box::pin(retried(engine)) },
        Story { name: "another-life", make: |store| Box::pin(another_life(store)), go_on: the_end },
    ]
}

/// The process dies with two runs under way; one is retried, with what was missing supplied.
async fn interrupted(store: Memory) {
    let engine = begin(&store).await;
    for id in ["interrupted-supplied", "interrupted"] {
        engine.start("rollout", "hangs at v2").id(id).await.unwrap();
        crate::support::until("it hangs", async || calls(id, "switch") == 1).await;
    }
    drop(engine);
    let engine = begin(&store.reopen()).await;
    for id in ["interrupted-supplied", "interrupted"] {
        comes_to(&engine, id, Status::Interrupted).await;
    }
    let run = engine.run("interrupted-supplied").unwrap();
    run.retry()
        .output("switch", "switched by hand")
        .by("ada")
        .why("it was done")
        .id("retry-1")
        .await
        .unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "drained, switched by hand, verified");
    engine.shutdown().await;
}

async fn retried(engine: Engine) {
    let run = engine.run("interrupted").unwrap();
    assert_eq!(run.view().await.unwrap().status, Status::Interrupted);
    run.retry().await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "drained, switched to hangs at v2, verified");
}

/// Retried where it failed, from a step in a branch, from the start, and with another input.
async fn another_life(store: Memory) {
    let engine = begin(&store).await;
    let run = engine.start("trip", "refused").id("another-life").await.unwrap();
    run.result::<String>().await.unwrap_err();
    run.retry().by("ada").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "paid");
    run.retry().from_step("join#1.0/flight#1").why("another day").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "paid");
    run.retry().from_start().id("retry-3").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "paid");
    run.retry().input("only books").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "flight booked, hotel booked, car booked");
    engine.shutdown().await;
}
