//! Ended runs are removed when their time is over: whole, not earlier, and never one that somebody has taken up again.
//!
//! Subject: `crates/runtime/src/retention.rs`.
//! Subject: `crates/runtime/src/shard/sweep.rs`.

use crate::support::{call, engine, lines, until};
use std::time::Duration;
use steadfast::memory::{Fault, Gate, Memory};
use steadfast::{Ctx, DAY, Engine, Failure, HOUR, MINUTE, Retention, SECOND, Status, Store, workflow};
use tempfile::tempdir;

#[workflow]
async fn add(ctx: Ctx, (a, b): (u32, u32)) -> Result<u32, Failure> {
    ctx.step("add", || async { Ok::<_, Failure>(a + b) }).await
}

#[workflow]
async fn fail_first(ctx: Ctx, _input: ()) -> Result<u32, Failure> {
    let call = call(&ctx, "run");
    if call == 1 { Err(Failure::permanent("no")) } else { Ok(call) }
}

#[workflow]
async fn wait(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.signal::<()>("go").await
}

#[workflow]
async fn parse(ctx: Ctx, text: String) -> Result<u32, Failure> {
    ctx.step("parse", || async { text.parse::<u32>().map_err(|_| Failure::poison("not a number")) })
        .await
}

#[workflow]
async fn many(ctx: Ctx, steps: u32) -> Result<(), Failure> {
    for _ in 0..steps {
        ctx.step("s", || async { Ok::<_, Failure>(()) }).await?;
    }
    Ok(())
}

#[workflow]
async fn parent(ctx: Ctx, fails: bool) -> Result<u32, Failure> {
    let sum: u32 = ctx.start_and_wait("add", &(1, 2)).await?;
    ctx.sleep(3 * HOUR).await?;
    if fails { Err(Failure::permanent("no")) } else { Ok(sum) }
}

#[workflow]
async fn next_of(ctx: Ctx, n: u32) -> Result<u32, Failure> {
    let next: Result<u32, Failure> = ctx.start_and_wait("add", &(n, 1)).await;
    Err(Failure::permanent(format!("{:?}", next.map_err(|failure| failure.code))))
}

async fn start(store: &Memory, retention: Retention) -> Engine {
    let engine = engine(store)
        .register(add)
        .register(fail_first)
        .register(wait)
        .register(parse)
        .register(many)
        .register(parent)
        .register(next_of);
    engine.retention(retention).start().await.unwrap()
}

async fn ids(engine: &Engine) -> Vec<String> {
    let mut ids: Vec<_> = engine.list().await.unwrap().items.iter().map(|row| row.run.to_string()).collect();
    ids.sort();
    ids
}

#[tokio::test(start_paused = true)]
async fn every_status_is_kept_for_its_own_time() {
    let engine = start(&Memory::new(), Retention::new().completed(HOUR).failed(DAY)).await;
    let done = engine.start("add", &(1, 2)).id("done").await.unwrap();
    done.result::<u32>().await.unwrap();
    engine.start("fail_first", &()).id("failed").await.unwrap().result::<u32>().await.unwrap_err();
    let cancelled = engine.start("wait", &()).id("cancelled").await.unwrap();
    cancelled.cancel().await.unwrap();
    cancelled.result::<()>().await.unwrap_err();
    engine.start("wait", &()).id("open").await.unwrap();

    tokio::time::sleep(HOUR - SECOND).await;
    assert_eq!(ids(&engine).await, ["cancelled", "done", "failed", "open"]);
    assert_eq!(done.result::<u32>().await.unwrap(), 3);
    tokio::time::sleep(2 * MINUTE).await;
    assert_eq!(ids(&engine).await, ["cancelled", "failed", "open"]);
    for refused in [done.result::<u32>().await.map(drop), done.view().await.map(drop), done.journal().await.map(drop), done.retry().await] {
        assert_eq!(refused.unwrap_err().code(), "SF0104", "it is as if it had never been");
    }
    tokio::time::sleep(2 * DAY).await;
    assert_eq!(ids(&engine).await, ["cancelled", "open"]);
    let again = engine.start("add", &(3, 4)).id("done").await.unwrap();
    assert!(again.is_new(), "another input is no conflict: the id was free");
    assert_eq!(again.result::<u32>().await.unwrap(), 7);
    assert_eq!(lines(&again).await, ["RUN_STARTED", "STEP_COMPLETED add#1 a1", "RUN_COMPLETED"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_removed_unless_it_is_asked_for() {
    let engine = start(&Memory::new(), Retention::new()).await;
    engine.start("add", &(1, 2)).id("kept").await.unwrap().result::<u32>().await.unwrap();
    tokio::time::sleep(10 * DAY).await;
    assert_eq!(ids(&engine).await, ["kept"]);
}

#[tokio::test(start_paused = true)]
async fn runs_go_however_many_stand_before_them() {
    let engine = start(&Memory::new(), Retention::new().completed(HOUR)).await;
    for _ in 0..600 {
        engine.start("wait", &()).await.unwrap();
    }
    for n in 0..700 {
        engine.start("add", &(n, 1)).await.unwrap().result::<u32>().await.unwrap();
    }
    tokio::time::sleep(HOUR + 3 * MINUTE).await;
    assert!(engine.list().status(Status::Completed).await.unwrap().items.is_empty());
}

/// However many there are, and however long it lasts.
#[tokio::test(start_paused = true)]
async fn what_stays_is_not_read_again_and_again() {
    let store = Memory::new();
    let engine = start(&store, Retention::new().completed(HOUR)).await;
    for _ in 0..300 {
        engine.start("fail_first", &()).await.unwrap().result::<u32>().await.unwrap_err();
    }
    engine.start("add", &(1, 2)).await.unwrap().result::<u32>().await.unwrap();
    tokio::time::sleep(2 * DAY).await;
    assert!(engine.list().status(Status::Completed).await.unwrap().items.is_empty());
    assert!(store.rows_walked() < 300, "{} rows and questions in 48 hours", store.rows_walked());
}

/// What lets the second run of an id be heard: who remembers the first does not take it for that.
#[tokio::test(start_paused = true)]
async fn a_run_with_the_id_of_a_removed_one_is_heard() {
    let engine = start(&Memory::new(), Retention::new().failed(HOUR)).await;
    for letters in 1..=3 {
        let run = engine.start("parse", "x").id("poison-again").await.unwrap();
        assert!(run.is_new());
        run.result::<u32>().await.unwrap_err();
        until("the letter is there", async || engine.letters(None, 10).await.unwrap().items.len() == letters).await;
        tokio::time::sleep(2 * HOUR).await;
        assert_eq!(run.view().await.unwrap_err().code(), "SF0104");
        assert_eq!(engine.letters(None, 10).await.unwrap().items.len(), letters, "letters have a life of their own");
    }
    assert_eq!(engine.redrive("parse.1").await.unwrap_err().code(), "SF0104", "there is nothing to be retried");
    engine.drop_letter("parse.1").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_may_go_before_its_parent() {
    let engine = start(&Memory::new(), Retention::new().completed(HOUR)).await;
    let run = engine.start("parent", &false).id("elder").await.unwrap();
    tokio::time::sleep(2 * HOUR).await;
    assert_eq!(ids(&engine).await, ["elder"]);
    assert_eq!(run.result::<u32>().await.unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_parent_may_go_before_its_child_and_come_again() {
    let engine = start(&Memory::new(), Retention::new().failed(HOUR)).await;
    for _ in 0..2 {
        let run = engine.start("parent", &true).id("again").await.unwrap();
        assert!(run.is_new());
        let ended = tokio::time::timeout(4 * HOUR, run.result::<u32>()).await;
        ended.expect("the child that is kept tells its end again").unwrap_err();
        tokio::time::sleep(2 * HOUR).await;
        assert_eq!(ids(&engine).await, ["again/add.1"]);
    }
}

/// A child that outlives its parent is no child of the next run of that id, unless it was given the same work.
#[tokio::test(start_paused = true)]
async fn the_result_of_a_child_that_is_kept_is_not_taken_for_that_of_other_work() {
    let engine = start(&Memory::new(), Retention::new().failed(HOUR)).await;
    for (n, heard) in [(1, "Ok(2)"), (1, "Ok(2)"), (5, "Err(FailedPrecondition)")] {
        let run = engine.start("next_of", &n).id("next").await.unwrap();
        assert!(run.is_new());
        let failed = run.result::<u32>().await.unwrap_err();
        assert_eq!(failed.failure().unwrap().message, heard, "of {n}");
        tokio::time::sleep(2 * HOUR).await;
    }
}

/// A retry that comes while the sweeper is at it finds the run, whole, or finds nothing.
#[tokio::test(start_paused = true)]
async fn a_retry_that_races_with_the_sweep_finds_all_of_the_run_or_nothing() {
    let (mut found, mut gone) = (0, 0);
    for offset in 0..60 {
        let engine = start(&Memory::new(), Retention::new().failed(30 * SECOND)).await;
        let id = format!("raced-{offset}");
        let run = engine.start("fail_first", &()).id(&id).await.unwrap();
        run.result::<u32>().await.unwrap_err();
        tokio::time::sleep(MINUTE - Duration::from_millis(3)).await;
        tokio::time::sleep(Duration::from_micros(200 * offset)).await;
        match run.retry().await {
            Ok(()) => {
                assert_eq!(run.result::<u32>().await.unwrap(), 2);
                assert_eq!(lines(&run).await, ["RUN_STARTED", "RUN_FAILED FAILED_PRECONDITION", "RUN_RETRIED", "RUN_COMPLETED"], "{id}");
                tokio::time::sleep(HOUR).await;
                assert_eq!(run.view().await.unwrap().status, Status::Completed, "{id}: it has no time any more");
                found += 1;
            }
            Err(error) => {
                assert_eq!(error.code(), "SF0104", "{id}");
                assert!(ids(&engine).await.is_empty());
                gone += 1;
            }
        }
    }
    assert!(found > 5 && gone > 5, "{found} found it, {gone} found nothing");
}

/// The sweep does not wait in line with the commits: a run whose retry is on its way to the store is left alone.
#[tokio::test(start_paused = true)]
async fn a_retry_that_the_store_has_not_seen_yet_is_not_overtaken_by_the_sweep() {
    let (store, gate) = (Memory::new(), Gate::default());
    let engine = start(&store, Retention::new().failed(SECOND)).await;
    let run = engine.start("fail_first", &()).id("overtaken").await.unwrap();
    run.result::<u32>().await.unwrap_err();
    tokio::time::sleep(MINUTE - SECOND).await;
    let mut waiting = Vec::new();
    for _ in 0..2 {
        store.faults().after(0, Fault::Hold(gate.clone())); // as many as are under way at once
        let start = engine.start("wait", &());
        waiting.push(tokio::spawn(async move { start.await.map(drop) }));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let retry = run.retry();
    let retried = tokio::spawn(async move { retry.await });
    tokio::time::sleep(2 * SECOND).await;
    assert!(!retried.is_finished(), "the sweep came first");
    gate.open();
    retried.await.unwrap().unwrap();
    assert_eq!(run.result::<u32>().await.unwrap(), 2);
    assert_eq!(lines(&run).await, ["RUN_STARTED", "RUN_FAILED FAILED_PRECONDITION", "RUN_RETRIED", "RUN_COMPLETED"]);
}

/// Who asks for a run that is going waits until it is gone: a start begins a new one.
#[tokio::test(start_paused = true)]
async fn a_start_while_a_long_journal_goes_begins_a_new_run() {
    let store = Memory::new();
    let engine = start(&store, Retention::new().completed(HOUR)).await;
    engine.start("many", &500).id("long").await.unwrap().result::<()>().await.unwrap();
    tokio::time::sleep(HOUR).await;
    half_swept(&store).await;
    assert!(engine.list().await.unwrap().items.is_empty());
    assert_eq!(engine.run("long").unwrap().journal().await.unwrap_err().code(), "SF0104");
    let run = engine.start("many", &1).id("long").await.unwrap();
    run.result::<()>().await.unwrap();
    assert_eq!(lines(&run).await, ["RUN_STARTED", "STEP_COMPLETED s#1 a1", "RUN_COMPLETED"]);
}

/// Waits until a run has gone in part.
async fn half_swept(store: &Memory) {
    for _ in 0..1_000_000 {
        if !store.half_swept(0).await.unwrap().is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("no run was half swept");
}

#[tokio::test(start_paused = true)]
async fn what_a_crash_has_left_of_a_run_goes_after_the_next_start() {
    for asked in [true, false] {
        let store = Memory::new();
        let engine = start(&store, Retention::new().completed(HOUR)).await;
        engine.start("many", &500).id("long").await.unwrap().result::<()>().await.unwrap();
        tokio::time::sleep(HOUR).await;
        half_swept(&store).await;
        let store = store.reopen(); // as a crash would
        drop(engine);
        let engine = start(&store, Retention::new()).await; // it goes on though nothing is to be removed any more
        if asked {
            let run = engine.start("many", &1).id("long").await.unwrap();
            run.result::<()>().await.unwrap();
            assert_eq!(lines(&run).await, ["RUN_STARTED", "STEP_COMPLETED s#1 a1", "RUN_COMPLETED"]);
        } else {
            tokio::time::sleep(SECOND).await;
            assert_eq!(engine.run("long").unwrap().view().await.unwrap_err().code(), "SF0104");
        }
        assert!(store.half_swept(0).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_sweeper_that_sleeps_does_not_keep_the_folder() {
    let dir = tempdir().unwrap();
    for _ in 0..2 {
        let engine = Engine::open(dir.path())
            .unwrap()
            .register(add)
            .retention(Retention::new().completed(DAY))
            .start()
            .await
            .unwrap();
        engine.start("add", &(1, 2)).await.unwrap().result::<u32>().await.unwrap();
        engine.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_retention_of_nothing_is_refused() {
    for retention in
        [Retention::new().completed(Duration::ZERO), Retention::new().failed(Duration::ZERO), Retention::new().cancelled(Duration::ZERO)]
    {
        let Err(error) = engine(&Memory::new()).retention(retention).start().await else { panic!("{retention:?}") };
        assert_eq!(error.code(), "SF0110");
    }
}

#[tokio::test(start_paused = true)]
async fn a_letter_of_a_run_that_is_gone_is_not_taken_for_one_of_the_next_run_of_that_id() {
    let engine = start(&Memory::new(), Retention::new().failed(HOUR)).await;
    engine.start("parse", &"first").id("p").await.unwrap().result::<u32>().await.unwrap_err();
    tokio::time::sleep(2 * HOUR).await;
    assert!(ids(&engine).await.is_empty());
    let again = engine.start("parse", &"second").id("p").await.unwrap();
    again.result::<u32>().await.unwrap_err();
    assert_eq!(engine.redrive("parse.1").await.unwrap_err().code(), "SF0115", "that run is gone");
    assert_eq!(again.view().await.unwrap().epoch, 1, "and this one is left alone");
    again.retry().await.unwrap();
    tokio::time::sleep(SECOND).await;
    let letters = engine.letters(None, 9).await.unwrap();
    let letters: Vec<_> = letters.items.iter().map(|row| row.letter.to_string()).collect();
    assert_eq!(letters, ["parse.4", "parse.1"], "the second is settled by the retry, which posts another one; the first stays");
    engine.drop_letter("parse.1").await.unwrap();
}
