//! Runs whose code cannot go on wait, say why, and lose nothing.
//!
//! Subject: `crates/runtime/src/host/replay.rs`.
//! Subject: `crates/runtime/src/shard/evict.rs`.

use crate::support::{call, calls, engine, lines, until};
use steadfast::memory::{Fault, Memory};
use steadfast::{Code, Ctx, Failure, HOUR, SECOND, Status, Wait, Workflow, workflow};

mod before {
    use super::*;
    #[workflow]
    pub(super) async fn ship(ctx: Ctx, _input: ()) -> Result<u32, Failure> {
        ctx.step("pack", || {
            call(&ctx, "pack");
            async { Ok::<_, Failure>(()) }
        })
        .await?;
        ctx.sleep(HOUR).await?;
        ctx.step("send", || {
            let call = call(&ctx, "send");
            async move { Ok::<_, Failure>(call) }
        })
        .await
    }
}

mod renamed {
    use super::*;
    /// The first step has another name now.
    #[workflow]
    pub(super) async fn ship(ctx: Ctx, _input: ()) -> Result<u32, Failure> {
        ctx.step("wrap", || {
            call(&ctx, "wrap");
            async { Ok::<_, Failure>(()) }
        })
        .await?;
        Ok(0)
    }
}

mod shortened {
    use super::*;
    /// Ends before the journal does.
    #[workflow]
    pub(super) async fn ship(_ctx: Ctx, _input: ()) -> Result<u32, Failure> {
        Ok(0)
    }
}

mod without_sleep {
    use super::*;
    #[workflow]
    pub(super) async fn ship(ctx: Ctx, _input: ()) -> Result<u32, Failure> {
        ctx.step("pack", || {
            call(&ctx, "pack");
            async { Ok::<_, Failure>(()) }
        })
        .await?;
        ctx.step("send", || {
            let call = call(&ctx, "send");
            async move { Ok::<_, Failure>(call) }
        })
        .await
    }
}

/// Starts the run with the old code, stops while it sleeps, goes on with the new code until the timer has fired.
async fn upgraded(id: &str, new: impl Workflow) -> (Memory, Wait) {
    let store = Memory::new();
    let old = engine(&store).register(before::ship).start().await.unwrap();
    let run = old.start("ship", &()).id(id).await.unwrap();
    until("it sleeps", async || run.view().await.unwrap().status == Status::Waiting).await;
    old.shutdown().await;
    let store = store.reopen();
    let engine = engine(&store).register(new).start().await.unwrap();
    let run = engine.run(id).unwrap();
    tokio::time::sleep(2 * HOUR).await;
    let view = run.view().await.unwrap();
    assert_eq!(view.status, Status::Waiting);
    engine.shutdown().await;
    (store.reopen(), view.waits[0].clone())
}

async fn goes_on_with_the_old_code(id: &str, store: Memory) {
    let engine = engine(&store).register(before::ship).start().await.unwrap();
    let run = engine.run(id).unwrap();
    assert_eq!(run.result::<u32>().await.unwrap(), 1);
    assert_eq!((calls(id, "pack"), calls(id, "send")), (1, 1));
    assert_eq!(lines(&run).await.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn code_that_asks_for_another_step_waits_with_both_sides_named() {
    let (store, wait) = upgraded("mismatch-renamed", renamed::ship).await;
    let expected =
        Wait::Mismatch { at: 2, expected: "STEP_COMPLETED pack#1".into(), found: "the code waits for wrap#1 (since event 1)".into() };
    assert_eq!(wait, expected);
    assert_eq!(calls("mismatch-renamed", "wrap"), 0, "nothing of the other code is carried out");
    goes_on_with_the_old_code("mismatch-renamed", store).await;
}

#[tokio::test(start_paused = true)]
async fn code_that_ends_too_early_waits() {
    let (store, wait) = upgraded("mismatch-short", shortened::ship).await;
    let expected = Wait::Mismatch { at: 2, expected: "STEP_COMPLETED pack#1".into(), found: "the code has ended".into() };
    assert_eq!(wait, expected);
    goes_on_with_the_old_code("mismatch-short", store).await;
}

#[tokio::test(start_paused = true)]
async fn code_that_no_longer_sleeps_waits() {
    let (store, wait) = upgraded("mismatch-sleep", without_sleep::ship).await;
    let expected =
        Wait::Mismatch { at: 3, expected: "TIMER_SET sleep#1".into(), found: "the code waits for send#1 (since event 2)".into() };
    assert_eq!(wait, expected);
    assert_eq!(calls("mismatch-sleep", "send"), 0);
    goes_on_with_the_old_code("mismatch-sleep", store).await;
}

#[workflow]
async fn other(_ctx: Ctx, _input: ()) -> Result<(), Failure> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_run_without_its_code_waits_for_it() {
    let (store, wait) = upgraded("no-worker", other).await;
    let Wait::NoWorker { workflow, version: None } = &wait else { panic!("{wait:?}") };
    assert_eq!(workflow.as_str(), "ship");
    goes_on_with_the_old_code("no-worker", store).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_code_cannot_go_on_can_be_called_off() {
    for id in ["blocked-mismatch", "blocked-no-worker"] {
        let matches = id.ends_with("mismatch");
        let (store, _) = if matches { upgraded(id, renamed::ship).await } else { upgraded(id, other).await };
        let builder = engine(&store);
        let builder = if matches { builder.register(renamed::ship) } else { builder.register(other) };
        let engine = builder.start().await.unwrap();
        let run = engine.run(id).unwrap();
        run.cancel().await.unwrap();
        let error = tokio::time::timeout(HOUR, run.result::<u32>()).await.expect("it ends").unwrap_err();
        assert_eq!(error.failure().unwrap().code, Code::Cancelled);
        let expected = ["RUN_STARTED", "STEP_COMPLETED pack#1 a1", "TIMER_SET sleep#1", "RUN_CANCEL_REQUESTED", "RUN_CANCELLED"];
        assert_eq!(lines(&run).await, expected);
        assert_eq!(run.view().await.unwrap().waits, []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_called_off_before_its_code_could_end_fits_its_code() {
    let store = Memory::new();
    store.faults().after(1, Fault::CrashBefore); // only the start is on record
    let first = engine(&store).register(shortened::ship).start().await.unwrap();
    first.start("ship", &()).id("off-before-end").await.unwrap();
    until("the process is dead", async || store.is_dead()).await;
    let store = store.reopen();
    let without_code = engine(&store).register(other).start().await.unwrap();
    without_code.run("off-before-end").unwrap().cancel().await.unwrap();
    without_code.shutdown().await;
    let store = store.reopen();
    let with_code = engine(&store).register(shortened::ship).start().await.unwrap();
    let run = with_code.run("off-before-end").unwrap();
    assert_eq!(lines(&run).await, ["RUN_STARTED", "RUN_CANCEL_REQUESTED", "RUN_CANCELLED"]);
    assert_eq!(run.replay().await.unwrap().mismatch, None);
}

/// Waits for a word, twice, and counts how often its code was begun.
#[workflow]
async fn listener(ctx: Ctx, (): ()) -> Result<String, Failure> {
    call(&ctx, "begun");
    let first: String = ctx.signal("word").await?;
    let second: String = ctx.signal("word").within(24 * HOUR).await.unwrap_or_else(|_| "nothing".into());
    Ok(format!("{first} {second}"))
}

#[tokio::test(start_paused = true)]
async fn runs_that_only_wait_are_let_go_and_come_back_when_something_arrives() {
    let config = steadfast::Config { runs_idle_max: 3, ..steadfast::Config::default() };
    let engine = engine(&Memory::new()).config(config).register(listener).start().await.unwrap();
    let mut runs = Vec::new();
    for n in 0..20 {
        let run = engine.start("listener", &()).id(format!("listener-{n}")).await.unwrap();
        until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
        runs.push(run);
        tokio::time::sleep(2 * SECOND).await;
    }
    let begun = |n: usize| calls(&format!("listener-{n}"), "begun");
    runs[19].signal("word", "one").await.unwrap();
    runs[0].signal("word", "one").await.unwrap();
    until("both have heard", async || runs[0].journal().await.unwrap().len() == 5 && runs[19].journal().await.unwrap().len() == 5).await;
    assert_eq!((begun(19), begun(0)), (1, 2), "the last was still there, the first had been let go");
    for run in &runs {
        let _some_have_it = run.signal("word", "one").id("w").await;
    }
    for (n, run) in runs.iter().enumerate() {
        let result: String = run.result().await.unwrap();
        assert_eq!(result, if n % 19 == 0 { "one one" } else { "one nothing" }, "{n}");
    }
}

#[tokio::test(start_paused = true)]
async fn runs_of_a_burst_are_let_go_though_nothing_happens_after_it() {
    let config = steadfast::Config { runs_idle_max: 3, ..steadfast::Config::default() };
    let engine = engine(&Memory::new()).config(config).register(listener).start().await.unwrap();
    for n in 0..20 {
        engine.start("listener", &()).id(format!("burst-{n}")).await.unwrap();
    }
    tokio::time::sleep(HOUR).await;
    let first = engine.run("burst-0").unwrap();
    first.signal("word", "one").await.unwrap();
    until("it has heard", async || first.journal().await.unwrap().len() == 5).await;
    assert_eq!(calls("burst-0", "begun"), 2, "it had been let go");
}
