//! Starting a run: the id makes it idempotent.
//!
//! Subject: `crates/kernel/src/run/start.rs`.

use crate::support::{call, calls, engine};
use steadfast::memory::Memory;
use steadfast::{Ctx, Engine, Failure, workflow};

#[workflow]
async fn echo(ctx: Ctx, text: String) -> Result<String, Failure> {
    ctx.step("echo", || {
        call(&ctx, "echo");
        let text = text.clone();
        async { Ok::<_, Failure>(text) }
    })
    .await
}

#[workflow(name = "other/name")]
async fn named(_ctx: Ctx, text: String) -> Result<String, Failure> {
    Ok(text)
}

async fn start() -> Engine {
    engine(&Memory::new()).register(echo).register(named).start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_same_start_again_gives_the_same_run() {
    let engine = start().await;
    let first = engine.start("echo", &"hi").id("order-17").await.unwrap();
    let again = engine.start("echo", &"hi").id("order-17").await.unwrap();
    assert!(first.is_new() && !again.is_new());
    assert_eq!(first.result::<String>().await.unwrap(), "hi");
    let after_its_end = engine.start("echo", &"hi").id("order-17").await.unwrap();
    assert_eq!(after_its_end.result::<String>().await.unwrap(), "hi");
    assert_eq!(calls("order-17", "echo"), 1);
}

#[tokio::test(start_paused = true)]
async fn another_input_or_workflow_under_the_same_id_is_refused() {
    let engine = start().await;
    engine.start("echo", &"hi").id("order-18").await.unwrap();
    for start in [engine.start("echo", &"ho"), engine.start("other/name", &"hi")] {
        let Err(error) = start.id("order-18").await else { panic!("that is another run") };
        assert_eq!(error.code(), "SF0103");
    }
    assert_eq!(engine.run("order-18").unwrap().result::<String>().await.unwrap(), "hi");
}

#[tokio::test(start_paused = true)]
async fn many_starts_of_one_id_at_once_make_one_run() {
    let engine = start().await;
    let starts = (0..50).map(|_| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.start("echo", &"hi").id("rush").await.map(|run| run.is_new()) })
    });
    let mut created = 0;
    for start in starts.collect::<Vec<_>>() {
        created += u32::from(start.await.unwrap().unwrap());
    }
    assert_eq!(created, 1);
    assert_eq!(engine.run("rush").unwrap().result::<String>().await.unwrap(), "hi");
    assert_eq!(calls("rush", "echo"), 1);
}

#[tokio::test(start_paused = true)]
async fn ids_that_are_made_differ_also_within_a_microsecond() {
    let engine = start().await; // virtual time stands still
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..200 {
        ids.insert(engine.start("echo", &"hi").await.unwrap().id().clone());
    }
    assert_eq!(ids.len(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_workflow_can_have_another_name_than_its_function() {
    let engine = start().await;
    assert_eq!(engine.start("other/name", &"hi").await.unwrap().result::<String>().await.unwrap(), "hi");
}
