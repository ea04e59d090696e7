//! Code that says more about a step than it did when the run began: the journal says what holds.
//!
//! Subject: `crates/runtime/src/host/replay.rs`.

use crate::support::{call, calls, engine, lines, until};
use steadfast::memory::Memory;
use steadfast::{Code, Ctx, Failure, HOUR, Status, Wait, Workflow, workflow};

mod before {
    use super::*;
    #[workflow]
    pub(super) async fn order(ctx: Ctx, _input: ()) -> Result<(), Failure> {
        ctx.step("charge", || async { Ok::<_, Failure>(()) }).await?;
        ctx.sleep(HOUR).await?;
        Err(Failure::permanent("sold out").code(Code::FailedPrecondition))
    }
}

mod with_an_undo {
    use super::*;
    #[workflow]
    pub(super) async fn order(ctx: Ctx, _input: ()) -> Result<(), Failure> {
        let ctx2 = ctx.clone();
        ctx.step("charge", || async { Ok::<_, Failure>(()) })
            .undo(move |()| {
                call(&ctx2, "refund");
                async { Ok::<_, Failure>(()) }
            })
            .await?;
        ctx.sleep(HOUR).await?;
        Err(Failure::permanent("sold out").code(Code::FailedPrecondition))
    }
}

mod not_repeatable {
    use super::*;
    #[workflow]
    pub(super) async fn order(ctx: Ctx, _input: ()) -> Result<(), Failure> {
        ctx.step("charge", || async { Ok::<_, Failure>(()) }).not_repeatable().await?;
        ctx.sleep(HOUR).await?;
        Err(Failure::permanent("sold out").code(Code::FailedPrecondition))
    }
}

/// Begins with the old code and ends with the new; the journal.
async fn upgraded(id: &str, new: impl Workflow) -> Vec<String> {
    let store = Memory::new();
    let old = engine(&store).register(before::order).start().await.unwrap();
    let run = old.start("order", &()).id(id).await.unwrap();
    until("it sleeps", async || run.view().await.unwrap().status == Status::Waiting).await;
    old.shutdown().await;
    let new = engine(&store.reopen()).register(new).start().await.unwrap();
    let run = new.run(id).unwrap();
    until("it is no longer asleep", async || {
        tokio::time::advance(HOUR).await;
        run.view().await.unwrap().status == Status::Failed
    })
    .await;
    assert_eq!(run.replay().await.unwrap().mismatch, None);
    lines(&run).await
}

const AS_BEFORE: [&str; 5] =
    ["RUN_STARTED", "STEP_COMPLETED charge#1 a1", "TIMER_SET sleep#1", "TIMER_FIRED sleep#1", "RUN_FAILED FAILED_PRECONDITION"];

#[tokio::test(start_paused = true)]
async fn a_step_that_was_recorded_without_an_undo_is_not_undone() {
    assert_eq!(upgraded("undo-added", with_an_undo::order).await, AS_BEFORE);
    assert_eq!(calls("undo-added", "refund"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_done_does_not_begin_because_it_may_no_longer_be_repeated() {
    assert_eq!(upgraded("not-repeatable-added", not_repeatable::order).await, AS_BEFORE);
}

#[tokio::test(start_paused = true)]
async fn an_undo_that_was_promised_cannot_be_taken_out_of_the_code() {
    let store = Memory::new();
    let old = engine(&store).register(with_an_undo::order).start().await.unwrap();
    let run = old.start("order", &()).id("undo-removed").await.unwrap();
    until("it sleeps", async || run.view().await.unwrap().status == Status::Waiting).await;
    let store = store.reopen();
    let new = engine(&store).register(before::order).start().await.unwrap();
    let replayed = new.run("undo-removed").unwrap().replay().await.unwrap();
    let expected =
        Wait::Mismatch { at: 2, expected: "STEP_COMPLETED charge#1".into(), found: "the code no longer says how to undo it".into() };
    assert_eq!(replayed.mismatch, Some(expected));
}
