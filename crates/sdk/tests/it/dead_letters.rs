//! Poison lands in the letter box, with its bytes and the reason, until a person redrives or drops it.
//!
//! Subject: `crates/runtime/src/engine/letters.rs`.
//! Subject: `crates/kernel/src/letter/mod.rs`.

use crate::support::{call, calls, engine, until};
use steadfast::memory::Memory;
use steadfast::{Ctx, Engine, Failure, Status, workflow};

#[workflow]
async fn parse(ctx: Ctx, text: String) -> Result<u32, Failure> {
    ctx.step("parse", || {
        let call = call(&ctx, "parse");
        let text = text.clone();
        async move { if call > 1 { Ok(7) } else { text.parse::<u32>().map_err(|_| Failure::poison("not a number")) } }
    })
    .await
}

async fn poisoned(store: &Memory, id: &str) -> Engine {
    let engine = engine(store).register(parse).start().await.unwrap();
    let run = engine.start("parse", &"x").id(id).tenant("acme").await.unwrap();
    run.result::<u32>().await.unwrap_err();
    until("the letter is there", async || !engine.letters(None, 10).await.unwrap().items.is_empty()).await;
    engine
}

#[tokio::test(start_paused = true)]
async fn a_poison_step_lands_there_with_its_bytes_and_the_reason() {
    let engine = poisoned(&Memory::new(), "poison").await;
    let page = engine.letters(None, 10).await.unwrap();
    assert_eq!((page.items.len(), page.next), (1, None));
    let row = &page.items[0];
    let (run, step) = (row.about.run().unwrap(), row.about.step().unwrap());
    assert_eq!((row.letter.to_string().as_str(), run.as_str(), step.as_str()), ("parse.1", "poison", "parse#1"));
    assert_eq!((row.tenant.as_deref(), row.failure.message.as_str()), (Some("acme"), "not a number"));
    let letter = engine.letter("parse.1").await.unwrap();
    assert_eq!(&letter.payload.bytes[..], b"\"x\"");
    assert_eq!(calls("poison", "parse"), 1, "poison is not retried");
}

#[tokio::test(start_paused = true)]
async fn a_redriven_letter_has_its_step_executed_again_and_is_gone() {
    let store = Memory::new();
    let engine = poisoned(&store, "redriven").await;
    engine.redrive("parse.1").by("ada").why("the parser is fixed").id("c-1").await.unwrap();
    assert_eq!(engine.run("redriven").unwrap().result::<u32>().await.unwrap(), 7);
    until("the letter is gone", async || engine.letters(None, 10).await.unwrap().items.is_empty()).await;
    assert_eq!(engine.redrive("parse.1").await.unwrap_err().code(), "SF0115");
    engine.redrive("parse.1").id("c-1").await.unwrap();
    assert_eq!(engine.run("redriven").unwrap().view().await.unwrap().epoch, 2, "the same command again is one");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_letter_is_gone_and_its_run_is_not_touched() {
    let store = Memory::new();
    let engine = poisoned(&store, "dropped").await;
    engine.drop_letter("parse.1").by("ada").why("nonsense").id("c-1").await.unwrap();
    engine.drop_letter("parse.1").id("c-1").await.unwrap();
    assert!(engine.letters(None, 10).await.unwrap().items.is_empty());
    let refused = [engine.drop_letter("parse.1").await, engine.redrive("parse.1").await, engine.letter("parse.1").await.map(drop)];
    for refused in refused {
        assert_eq!(refused.unwrap_err().code(), "SF0115");
    }
    assert_eq!(engine.letter("nonsense").await.unwrap_err().code(), "SF0110");
    drop(engine);
    let engine = crate::support::engine(&store.reopen()).register(parse).start().await.unwrap();
    assert!(engine.letters(None, 10).await.unwrap().items.is_empty(), "nor does it come back");
    assert_eq!(engine.run("dropped").unwrap().view().await.unwrap().status, Status::Failed);
}

#[tokio::test(start_paused = true)]
async fn letters_come_in_pages_newest_first() {
    let engine = engine(&Memory::new()).register(parse).start().await.unwrap();
    for n in 0..5 {
        engine
            .start("parse", &"x")
            .id(format!("page-{n}"))
            .await
            .unwrap()
            .result::<u32>()
            .await
            .unwrap_err();
        until("the letter is there", async || engine.letters(None, 10).await.unwrap().items.len() == n + 1).await;
    }
    let (mut seen, mut next): (Vec<String>, Option<String>) = (Vec::new(), None);
    loop {
        let page = engine.letters(next.as_deref(), 2).await.unwrap();
        seen.extend(page.items.iter().map(|row| row.about.run().unwrap().to_string()));
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["page-4", "page-3", "page-2", "page-1", "page-0"]);
}

#[tokio::test(start_paused = true)]
async fn a_letter_about_a_past_that_the_run_no_longer_has_is_not_redriven() {
    /// Gives up what is poison and goes on with the next.
    #[workflow]
    async fn consume(ctx: Ctx, n: u32) -> Result<u32, Failure> {
        let read = ctx
            .step("read", || async move { if n == 1 { Err(Failure::poison("not a number")) } else { Ok(n) } })
            .await;
        if read.is_err() {
            return ctx.continue_as_new(&2);
        }
        ctx.signal("stop").await
    }
    let engine = engine(&Memory::new()).register(consume).start().await.unwrap();
    let run = engine.start("consume", &1).id("consume").await.unwrap();
    until("it goes on with the next", async || run.view().await.unwrap().status == Status::Waiting).await;
    until("the letter is there", async || !engine.letters(None, 10).await.unwrap().items.is_empty()).await;
    let refused = engine.redrive("consume.1").await.unwrap_err();
    assert_eq!((refused.code(), run.view().await.unwrap().epoch), ("SF0115", 2), "another input is being read: {refused}");
    assert_eq!(engine.letter("consume.1").await.unwrap().payload.bytes.as_ref(), b"1", "somebody has to see to it");
}
