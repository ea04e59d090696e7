//! Poison lands in the letter box, with its bytes and the reason, until a person redrives or drops it.

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
    assert_eq!((row.letter.to_string().as_str(), row.run.as_str(), row.step.as_str()), ("parse.1", "poison", "parse#1"));
    assert_eq!((row.tenant.as_deref(), row.failure.message.as_str()), (Some("acme"), "not a number"));
    let letter = engine.letter("parse.1").await.unwrap();
    assert_eq!(&letter.payload.bytes[..], b"\"x\"");
    assert_eq!(calls("poison", "parse"), 1, "poison is not retried");
}

#[tokio::test(start_paused = true)]
async fn a_redriven_letter_has_its_step_executed_again_and_is_gone() {
    let store = Memory::new();
    let engine = poisoned(&store, "redriven").await;
    engine.redrive("parse.1", Some("ada"), Some("the parser is fixed")).await.unwrap();
    assert_eq!(engine.run("redriven").unwrap().result::<u32>().await.unwrap(), 7);
    until("the letter is gone", async || engine.letters(None, 10).await.unwrap().items.is_empty()).await;
    assert_eq!(engine.redrive("parse.1", None, None).await.unwrap_err().code(), "SF0115");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_letter_is_gone_and_its_run_is_not_touched() {
    let store = Memory::new();
    let engine = poisoned(&store, "dropped").await;
    engine.drop_letter("parse.1", Some("ada"), Some("nonsense")).await.unwrap();
    assert!(engine.letters(None, 10).await.unwrap().items.is_empty());
    for code in [engine.drop_letter("parse.1", None, None).await.unwrap_err().code(), engine.letter("parse.1").await.unwrap_err().code()] {
        assert_eq!(code, "SF0115");
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
        seen.extend(page.items.iter().map(|row| row.run.to_string()));
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["page-4", "page-3", "page-2", "page-1", "page-0"]);
}
