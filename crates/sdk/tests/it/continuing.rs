//! Loops without end: the code begins again with another input, under the same id.

use crate::support::{call, calls, engine, until};
use std::collections::BTreeSet;
use steadfast::memory::{Fault, Memory};
use steadfast::{Ctx, Failure, MINUTE, Status, workflow};

/// Counts to five, a life each; what it is told on the way is added.
#[workflow]
async fn count(ctx: Ctx, (n, keys): (u32, Vec<String>)) -> Result<(u32, Vec<String>), Failure> {
    let key = ctx
        .step("count", || {
            call(&ctx, "count");
            let key = ctx.idempotency_key().unwrap_or_default();
            async { Ok::<_, Failure>(key) }
        })
        .await?;
    let keys = [keys, vec![format!("{key} {}", ctx.random() % 1000)]].concat();
    ctx.sleep(MINUTE).await?;
    if n < 5 { ctx.continue_as_new(&(n + 1, keys)) } else { Ok((n, keys)) }
}

#[tokio::test(start_paused = true)]
async fn every_life_has_its_own_input_keys_and_chance() {
    let engine = engine(&Memory::new()).register(count).start().await.unwrap();
    let run = engine.start("count", &(1, Vec::<String>::new())).id("count").await.unwrap();
    let (n, keys): (u32, Vec<String>) = run.result().await.unwrap();
    assert_eq!((n, calls("count", "count"), run.view().await.unwrap().epoch), (5, 5, 5));
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), 5, "{keys:?}");
    assert!(keys[0].starts_with("count/count#1/1 ") && keys[4].starts_with("count/count#1/5 "), "{keys:?}");
    assert!(run.replay().await.unwrap().mismatch.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_crash_before_or_after_any_commit_changes_nothing() {
    let engine = engine(&Memory::new()).register(count).start().await.unwrap();
    let run = engine.start("count", &(1, Vec::<String>::new())).id("undisturbed-count").await.unwrap();
    run.result::<(u32, Vec<String>)>().await.unwrap();
    let commits = engine.commits();
    for nth in 0..commits {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
            let (store, id) = (Memory::new(), format!("count-{nth}-{fault:?}").replace(' ', ""));
            store.faults().after(nth as usize, fault);
            let engine = crate::support::engine(&store).register(count).start().await.unwrap();
            let _crashed = engine.start("count", &(1, Vec::<String>::new())).id(&id).await;
            while !store.is_dead() {
                tokio::time::sleep(MINUTE).await;
            }
            drop(engine);
            let engine = crate::support::engine(&store.reopen()).register(count).start().await.unwrap();
            let run = engine.start("count", &(1, Vec::<String>::new())).id(&id).await.unwrap();
            let (n, keys): (u32, Vec<String>) = run.result().await.unwrap();
            assert_eq!((n, keys.len(), run.view().await.unwrap().epoch), (5, 5, 5), "{id}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn signals_that_were_not_taken_are_there_in_the_next_life() {
    #[workflow]
    async fn listen(ctx: Ctx, heard: Vec<String>) -> Result<Vec<String>, Failure> {
        let word: String = ctx.signal("word").await?;
        let heard = [heard, vec![word]].concat();
        if heard.len() < 3 { ctx.continue_as_new(&heard) } else { Ok(heard) }
    }
    let engine = engine(&Memory::new()).register(listen).start().await.unwrap();
    let run = engine.start("listen", &Vec::<String>::new()).id("listen").await.unwrap();
    for (word, id) in [("one", "1"), ("two", "2"), ("one", "1"), ("three", "3")] {
        let _repeats_are_dropped = run.signal("word", word).id(id).await;
    }
    assert_eq!(run.result::<Vec<String>>().await.unwrap(), ["one", "two", "three"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_continues_can_be_cancelled_and_retried() {
    let engine = engine(&Memory::new()).register(count).start().await.unwrap();
    let run = engine.start("count", &(1, Vec::<String>::new())).id("called-off-count").await.unwrap();
    until("its third life", async || {
        tokio::time::sleep(MINUTE / 2).await;
        run.view().await.unwrap().epoch == 3
    })
    .await;
    run.cancel().await.unwrap();
    run.result::<(u32, Vec<String>)>().await.unwrap_err();
    assert_eq!(run.view().await.unwrap().status, Status::Cancelled);
    run.retry().await.unwrap();
    let (n, keys): (u32, Vec<String>) = run.result().await.unwrap();
    assert_eq!((n, keys.len()), (5, 5), "it goes on in the life that it was in");
}
