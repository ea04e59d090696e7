//! What the code says in the turn that it ends in is on record before its end, and replays.
//!
//! Subject: `crates/runtime/src/host/session.rs`.

use crate::support::{call, calls, engine, lines, until};
use steadfast::memory::Memory;
use steadfast::{Ctx, Engine, Failure, HOUR, MINUTE, Policy, Status, workflow};

#[workflow]
async fn quick(_ctx: Ctx, (): ()) -> Result<(), Failure> {
    Ok(())
}

/// Books, says its last words, and fails if it is told to.
#[workflow]
async fn speaks(ctx: Ctx, (word, fails): (String, bool)) -> Result<(), Failure> {
    let undone = ctx.clone();
    ctx.step("book", || async { Ok::<_, Failure>(()) })
        .undo(move |()| {
            let call = call(&undone, "undo");
            async move { if call == 1 { Err(Failure::transient("not yet")) } else { Ok(()) } }
        })
        .undo_retry(Policy::constant(HOUR).max_attempts(2))
        .await?;
    match word.as_str() {
        "note" => ctx.note("nearly there"),
        "version" => assert_eq!(ctx.version("change", 1..=2), 2),
        _ => drop(ctx.start("quick", &()).detached().await?),
    }
    if fails { Err(Failure::permanent("no")) } else { Ok(()) }
}

async fn start(store: &Memory) -> Engine {
    engine(store).register(speaks).register(quick).start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_run_that_has_completed_replays_with_its_last_words() {
    let engine = start(&Memory::new()).await;
    for word in ["note", "version", "child"] {
        let run = engine.start("speaks", &(word, false)).id(format!("said-{word}")).await.unwrap();
        run.result::<()>().await.unwrap();
        assert_eq!(lines(&run).await.len(), 4, "the step, the word and the end");
        assert_eq!(run.replay().await.unwrap().mismatch, None, "{word}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_undone_after_last_words_goes_on_after_a_restart() {
    for word in ["note", "version", "child"] {
        let (store, id) = (Memory::new(), format!("undone-{word}"));
        let first = start(&store).await;
        let run = first.start("speaks", &(word, true)).id(&id).await.unwrap();
        until("its undo has failed once", async || calls(&id, "undo") == 1).await;
        tokio::time::sleep(MINUTE).await;
        drop((run, first));
        let second = start(&store.reopen()).await;
        let run = second.run(&id).unwrap();
        let ended = tokio::time::timeout(5 * HOUR, run.result::<()>()).await;
        assert!(ended.is_ok(), "{word}: {}", run.why().await.unwrap());
        assert_eq!((run.view().await.unwrap().status, calls(&id, "undo")), (Status::Failed, 2), "{word}");
    }
}
