//! A store that fails, is slow, or whose answers get lost: nothing is acknowledged that is not durable, and nothing that was done is lost.
//!
//! Subject: `crates/runtime/src/shard/heal.rs`.

use crate::support::{call, calls, engine, lines, until};
use std::time::Duration;
use steadfast::memory::{Fault, Gate, Memory};
use steadfast::{Code, Ctx, Engine, Failure, Follow, HOUR, MINUTE, Policy, Status, workflow};

#[workflow]
async fn work(ctx: Ctx, _input: ()) -> Result<u32, Failure> {
    ctx.step("flaky", || {
        let call = call(&ctx, "flaky");
        async move { if call == 1 { Err(Failure::transient("down")) } else { Ok(()) } }
    })
    .retry(Policy::constant(Duration::ZERO).max_attempts(3))
    .await?;
    ctx.sleep(HOUR).await?;
    ctx.step("charge", || {
        let call = call(&ctx, "charge");
        async move { Ok::<_, Failure>(call) }
    })
    .await
}

async fn start(store: &Memory) -> Engine {
    engine(store).register(work).start().await.unwrap()
}

const JOURNAL: [&str; 7] = [
    "RUN_STARTED",
    "RETRY_SCHEDULED flaky#1 a2/3 UNAVAILABLE",
    "STEP_COMPLETED flaky#1 a2",
    "TIMER_SET sleep#1",
    "TIMER_FIRED sleep#1",
    "STEP_COMPLETED charge#1 a1",
    "RUN_COMPLETED",
];

#[tokio::test(start_paused = true)]
async fn a_failed_commit_is_made_good_without_doing_the_work_again() {
    for nth in 1..5 {
        for failures in [1, 3] {
            let id = format!("failed-{nth}-{failures}");
            let store = Memory::new();
            (0..failures).for_each(|first| store.faults().after(if first == 0 { nth } else { 0 }, Fault::Fail));
            let engine = start(&store).await;
            let run = engine.start("work", &()).id(&id).await.unwrap();
            assert_eq!(run.result::<u32>().await.unwrap(), 1);
            assert_eq!(lines(&run).await, JOURNAL, "{id}");
            assert_eq!((calls(&id, "flaky"), calls(&id, "charge")), (2, 1), "{id}: no attempt more than without the fault");
        }
    }
}

/// The answer of the store got lost: the engine is told that a commit failed, but it is there.
#[tokio::test(start_paused = true)]
async fn a_commit_that_is_there_though_it_failed_is_found() {
    for nth in 0..5 {
        let id = format!("doubt-{nth}");
        let store = Memory::new();
        store.faults().after(nth, Fault::Doubt);
        let engine = start(&store).await;
        let started = engine.start("work", &()).id(&id).await;
        assert_eq!(started.is_err(), nth == 0, "{id}");
        let run = engine.run(&id).unwrap();
        let result = tokio::time::timeout(2 * HOUR, run.result::<u32>()).await;
        assert_eq!(result.expect("those who wait are told").unwrap(), 1, "{id}");
        assert_eq!(lines(&run).await, JOURNAL, "{id}");
        assert_eq!((calls(&id, "flaky"), calls(&id, "charge")), (2, 1), "{id}: what is on record is not done again");
        let begun = tokio::time::Instant::now();
        engine.shutdown().await;
        assert!(begun.elapsed() < Duration::from_secs(1), "{id}: nothing of the run is left in memory");
    }
}

#[workflow]
async fn stuck(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.step("stuck", || async { std::future::pending::<Result<(), Failure>>().await }).await
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_is_there_though_its_commit_failed_is_found() {
    let store = Memory::new();
    store.faults().after(1, Fault::Doubt);
    let engine = engine(&store).register(stuck).start().await.unwrap();
    let run = engine.start("stuck", &()).id("doubtful-deadline").deadline(HOUR).await.unwrap();
    let result = tokio::time::timeout(2 * HOUR, run.result::<()>()).await;
    assert_eq!(result.expect("those who wait are told").unwrap_err().failure().unwrap().code, Code::DeadlineExceeded);
    let begun = tokio::time::Instant::now();
    engine.shutdown().await;
    assert!(begun.elapsed() < Duration::from_secs(1), "the stuck attempt was ended with its run");
}

#[tokio::test(start_paused = true)]
async fn a_start_that_cannot_be_recorded_is_refused_and_can_be_repeated() {
    let store = Memory::new();
    store.faults().after(0, Fault::Fail);
    let engine = start(&store).await;
    let Err(error) = engine.start("work", &()).id("refused-first").await else { panic!("nothing was recorded") };
    assert_eq!(error.code(), "SF0301");
    assert!(error.is_retryable() && error.retry_after().is_some());
    until("the store writes again", async || engine.start("work", &()).id("refused-first").await.is_ok()).await;
    let run = engine.run("refused-first").unwrap();
    assert_eq!(run.result::<u32>().await.unwrap(), 1);
    assert_eq!(lines(&run).await, JOURNAL);
}

/// The trap: a failed append of the retry event is not tolerated. No durable record, no retry, no acknowledgement.
#[tokio::test(start_paused = true)]
async fn without_a_durable_record_there_is_no_retry() {
    let store = Memory::new();
    for nth in 0..20 {
        store.faults().after(usize::from(nth == 0), Fault::Fail); // the start is let through, then the store is away
    }
    let engine = start(&store).await;
    let run = engine.start("work", &()).id("no-record").await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(calls("no-record", "flaky"), 1, "the second attempt waits for its record");
    assert_eq!(store_lines(&store, "no-record").await, ["RUN_STARTED"]);
    store.faults().clear();
    assert_eq!(run.result::<u32>().await.unwrap(), 1);
    assert_eq!(lines(&run).await, JOURNAL);
}

async fn store_lines(store: &Memory, id: &str) -> Vec<String> {
    use steadfast::Store;
    let id = steadfast::RunId::new(id).unwrap();
    store.journal(&id.into(), 0, 100).await.unwrap().into_iter().map(|record| record.kind).collect()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_acknowledged_and_nothing_begins_before_the_commit() {
    let store = Memory::new();
    let gate = Gate::default();
    store.faults().after(0, Fault::Hold(gate.clone()));
    let engine = start(&store).await;
    let starting = tokio::spawn(async move { (engine.start("work", &()).id("held").await.map(|run| run.id().to_string()), engine) });
    time_passes().await;
    assert!(!starting.is_finished(), "the start waits for its commit");
    assert_eq!(calls("held", "flaky"), 0, "so does the first step");
    gate.open();
    let (id, engine) = starting.await.unwrap();
    assert_eq!(id.unwrap(), "held");
    assert_eq!(engine.run("held").unwrap().result::<u32>().await.unwrap(), 1);
}

/// Gives everything that can move the time to move.
async fn time_passes() {
    tokio::time::sleep(Duration::from_secs(10)).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_decided_on_uncommitted_state_waits_for_its_commit() {
    let store = Memory::new();
    let gate = Gate::default();
    store.faults().after(0, Fault::Hold(gate.clone()));
    let engine = start(&store).await;
    let first = tokio::spawn({
        let engine = engine.clone();
        async move { engine.start("work", &()).id("twice").await.map(|run| run.is_new()) }
    });
    tokio::task::yield_now().await;
    let second = tokio::spawn({
        let engine = engine.clone();
        async move { engine.start("work", &()).id("twice").await.map(|run| run.is_new()) }
    });
    let other = tokio::spawn({
        let engine = engine.clone();
        async move { engine.start("work", &1).id("twice").await.map(|run| run.is_new()) }
    });
    time_passes().await;
    assert!(!first.is_finished() && !second.is_finished() && !other.is_finished(), "refusals wait too");
    gate.open();
    assert!(first.await.unwrap().unwrap());
    assert!(!second.await.unwrap().unwrap());
    assert_eq!(other.await.unwrap().unwrap_err().code(), "SF0103");
}

#[tokio::test(start_paused = true)]
async fn another_holder_of_the_shard_stops_this_one() {
    use steadfast::Store;
    let store = Memory::new();
    let engine = start(&store).await;
    let run = engine.start("work", &()).id("fenced").await.unwrap();
    until("it sleeps", async || run.view().await.unwrap().status == Status::Waiting).await;
    store.claim(0).await.unwrap();
    let error = run.result::<u32>().await.unwrap_err();
    assert_eq!(error.code(), "SF0306", "{error:?}");
    assert_eq!(calls("fenced", "charge"), 0, "the stale holder does nothing more");
    let Err(error) = engine.start("work", &()).await else { panic!("a stale holder cannot start anything") };
    assert_eq!(error.code(), "SF0306");
}

/// What arrives by a commit whose answer got lost is on record; the code has to hear of it all the same.
#[tokio::test(start_paused = true)]
async fn what_arrived_though_the_commit_was_said_to_have_failed_reaches_the_code() {
    #[workflow]
    async fn asks(ctx: Ctx, _input: ()) -> Result<String, Failure> {
        ctx.signal("word").await
    }
    for verb in ["signal", "cancel"] {
        let store = Memory::new();
        let engine = engine(&store).register(asks).start().await.unwrap();
        let run = engine.start("asks", &()).id(format!("arrived-{verb}")).await.unwrap();
        until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
        store.faults().after(0, Fault::Doubt);
        if verb == "signal" {
            assert!(run.signal("word", "hello").await.unwrap_err().is_retryable());
        } else {
            assert!(run.cancel().await.unwrap_err().is_retryable());
        }
        let result = tokio::time::timeout(HOUR, run.result::<String>()).await.expect("it hears of it");
        assert_eq!(result.is_ok(), verb == "signal");
    }
}

/// Waits for a word in its first life.
#[workflow]
async fn asks(ctx: Ctx, _input: ()) -> Result<u32, Failure> {
    let life = ctx
        .step("work", || {
            let call = call(&ctx, "work");
            async move { Ok::<_, Failure>(call) }
        })
        .await?;
    if life == 1 {
        ctx.signal::<()>("never").await?;
    }
    Ok(life)
}

#[workflow]
async fn naps(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.sleep(HOUR).await
}

#[tokio::test(start_paused = true)]
async fn a_life_that_has_begun_though_its_commit_failed_is_lived() {
    let store = Memory::new();
    let engine = engine(&store).register(asks).start().await.unwrap();
    let run = engine.start("asks", &()).id("doubted-retry").await.unwrap();
    until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
    store.faults().after(0, Fault::Doubt);
    assert!(run.retry().from_start().id("c-1").await.unwrap_err().is_retryable());
    let result = tokio::time::timeout(HOUR, run.result::<u32>()).await;
    assert_eq!(result.expect("nobody has to ask again").unwrap(), 2);
    run.retry().from_start().id("c-1").await.unwrap();
    assert_eq!(run.view().await.unwrap().epoch, 2);
}

/// Three commits at once: a slow one, one whose answer gets lost, and one behind it that the store takes.
async fn one_in_doubt_and_one_behind_it<A, B>(
    store: &Memory,
    engine: &Engine,
    doubted: impl Future<Output = A>,
    behind: impl Future<Output = B>,
) -> (A, B) {
    let gate = Gate::default();
    store.faults().after(0, Fault::Hold(gate.clone()));
    store.faults().after(0, Fault::Doubt);
    let after = |millis| tokio::time::sleep(Duration::from_millis(millis));
    let slow = async { drop(engine.start("naps", &()).await.unwrap()) };
    let doubted = async { (after(1).await, doubted.await).1 };
    let behind = async { (after(2).await, behind.await).1 };
    let opened = async { (after(3).await, gate.open()).1 };
    let ((), doubted, behind, ()) = tokio::join!(slow, doubted, behind, opened);
    (doubted, behind)
}

/// The store has both: whoever heard that only the second one is there would take the first one for told.
#[tokio::test(start_paused = true)]
async fn what_arrived_by_a_commit_in_doubt_is_heard_though_the_next_one_succeeded() {
    #[workflow]
    async fn listens(ctx: Ctx, _input: ()) -> Result<String, Failure> {
        let word = ctx.signal("word").await?;
        ctx.signal::<()>("noise").await?;
        Ok(word)
    }
    let store = Memory::new();
    let engine = engine(&store).register(listens).register(naps).start().await.unwrap();
    let run = engine.start("listens", &()).id("two-signals").await.unwrap();
    until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
    let (word, noise) = (run.signal("word", "hello").id("w"), run.signal("noise", &()).id("n"));
    let (word, noise) = one_in_doubt_and_one_behind_it(&store, &engine, word.into_future(), noise.into_future()).await;
    assert!(word.unwrap_err().is_retryable() && noise.unwrap_err().is_retryable(), "what is behind a doubt is in doubt");
    let result = tokio::time::timeout(HOUR, run.result::<String>()).await;
    assert_eq!(result.expect("the code hears of both").unwrap(), "hello");
    run.signal("noise", &()).id("n").await.expect("whoever insists hears that it is known");
}

/// Of one that was in doubt, and of one behind it.
#[tokio::test(start_paused = true)]
async fn who_follows_hears_of_what_is_there_though_its_commit_was_said_to_have_failed() {
    let store = Memory::new();
    let engine = engine(&store).register(naps).start().await.unwrap();
    let (one, other) =
        (engine.start("naps", &()).id("followed-1").await.unwrap(), engine.start("naps", &()).id("followed-2").await.unwrap());
    for run in [&one, &other] {
        until("it sleeps", async || run.view().await.unwrap().status == Status::Waiting).await;
    }
    let mut hear = Vec::new();
    for entity in [None, Some("followed-1"), Some("followed-2")] {
        let entity = entity.map(|id| steadfast::EntityId::from(&steadfast::RunId::new(id).unwrap()));
        let mut feed = engine.feed(Follow { entity, ..Follow::default() }).await.unwrap();
        hear.push(tokio::spawn(async move { tokio::time::timeout(MINUTE, feed.next()).await.is_ok() }));
    }
    let (doubted, behind) = (one.signal("word", &1).id("w"), other.signal("word", &2).id("w"));
    let (doubted, behind) = one_in_doubt_and_one_behind_it(&store, &engine, doubted.into_future(), behind.into_future()).await;
    assert!(doubted.is_err() && behind.is_err());
    for heard in hear {
        assert!(heard.await.unwrap(), "both are on record");
    }
}

#[tokio::test(start_paused = true)]
async fn a_life_that_begins_behind_a_commit_in_doubt_is_lived() {
    let store = Memory::new();
    let engine = engine(&store).register(asks).register(naps).start().await.unwrap();
    let other = engine.start("naps", &()).id("doubted-pause").await.unwrap();
    let run = engine.start("asks", &()).id("retry-behind").await.unwrap();
    until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
    let (pause, retry) = (other.pause().id("p"), run.retry().from_start().id("r"));
    let (pause, retry) = one_in_doubt_and_one_behind_it(&store, &engine, pause.into_future(), retry.into_future()).await;
    assert!(pause.unwrap_err().is_retryable() && retry.unwrap_err().is_retryable(), "what is behind a doubt is in doubt");
    let result = tokio::time::timeout(HOUR, run.result::<u32>()).await;
    assert_eq!(result.expect("nobody has to ask again").unwrap(), 2);
    run.retry().from_start().id("r").await.unwrap();
    assert_eq!((run.view().await.unwrap().epoch, other.view().await.unwrap().status), (2, Status::Paused));
}

mod changed {
    use super::*;
    #[workflow]
    pub(super) async fn naps(ctx: Ctx, _input: ()) -> Result<u32, Failure> {
        ctx.step("work", || async { Ok::<_, Failure>(7) }).await
    }
}

/// Why the code could not go on in its former life is no reason not to begin the next one.
#[tokio::test(start_paused = true)]
async fn a_life_that_has_begun_though_its_commit_failed_is_lived_after_a_mismatch() {
    let store = Memory::new();
    let old = engine(&store).register(naps).start().await.unwrap();
    let run = old.start("naps", &()).id("doubted-mismatch").await.unwrap();
    until("it sleeps", async || run.view().await.unwrap().status == Status::Waiting).await;
    old.shutdown().await;
    let store = store.reopen();
    let engine = engine(&store).register(changed::naps).start().await.unwrap();
    let run = engine.run("doubted-mismatch").unwrap();
    tokio::time::sleep(HOUR).await;
    until("its code does not fit", async || run.view().await.unwrap().waits.iter().any(|wait| wait.reason() == "MISMATCH")).await;
    store.faults().after(0, Fault::Doubt);
    assert!(run.retry().from_start().id("c-1").await.unwrap_err().is_retryable());
    let result = tokio::time::timeout(HOUR, run.result::<u32>()).await;
    assert_eq!(result.expect("nobody has to ask again").unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_is_over_though_its_commit_failed_is_over() {
    for nth in 0..2 {
        let store = Memory::new();
        let engine = engine(&store).register(naps).start().await.unwrap();
        let run = engine.start("naps", &()).id(format!("doubted-resume-{nth}")).await.unwrap();
        until("it sleeps", async || run.view().await.unwrap().status == Status::Waiting).await;
        store.faults().after(nth, Fault::Doubt);
        assert_eq!(run.pause().id("c-1").await.is_err(), nth == 0);
        tokio::time::sleep(HOUR).await;
        assert_eq!(run.view().await.unwrap().status, Status::Paused);
        assert_eq!(run.resume().id("c-2").await.is_err(), nth == 1);
        tokio::time::timeout(2 * HOUR, run.result::<()>()).await.expect("it wakes").unwrap();
    }
}

#[workflow]
async fn sleeper(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.sleep(10 * HOUR).await
}

/// Nobody hosts a run that waits for its slot, so nobody says again what its time is.
#[tokio::test(start_paused = true)]
async fn a_deadline_of_a_run_in_line_is_found_though_its_commit_failed() {
    let store = Memory::new();
    let engine = engine(&store).register(sleeper).start().await.unwrap();
    engine.start("sleeper", &()).id("has-the-slot").limit("one", 1).await.unwrap();
    tokio::time::sleep(MINUTE).await;
    store.faults().after(0, Fault::Doubt);
    assert!(engine.start("sleeper", &()).id("in-line").limit("one", 1).deadline(3 * MINUTE).await.is_err());
    let result = tokio::time::timeout(HOUR, engine.run("in-line").unwrap().result::<()>()).await;
    assert_eq!(result.expect("its time is over").unwrap_err().failure().unwrap().code, Code::DeadlineExceeded);
}
