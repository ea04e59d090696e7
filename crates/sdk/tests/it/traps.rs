//! What earlier systems got wrong with runs, as far as it is not shown elsewhere. (Backoff arithmetic and folds are tested in the kernel, restarts
//! in `crashes.rs`, failed appends in `faults.rs`, late results in `timing.rs`, chance in `determinism.rs`, siblings in `branches.rs`, those after a failed step in
//! `graphs.rs`, the order of undos in `undo.rs`.)

use crate::support::{call, engine, lines};
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Ctx, Failure, Policy, SECOND, Store, workflow};

/// Thirty steps side by side, each of which fails once.
#[workflow]
async fn thirty(ctx: Ctx, _input: ()) -> Result<u32, Failure> {
    let step = |i: u32| {
        let ctx = &ctx;
        let name = format!("step-{i}");
        ctx.step(&name.clone(), move || {
            let call = call(ctx, &name);
            async move { if call == 1 { Err(Failure::transient("down")) } else { Ok(call) } }
        })
        .retry(Policy::constant(Duration::ZERO).max_attempts(2))
    };
    Ok(futures_util::future::try_join_all((0..30).map(step)).await?.into_iter().sum())
}

#[tokio::test(start_paused = true)]
async fn thirty_steps_that_fail_once_without_delay_are_all_retried_at_once() {
    let engine = engine(&Memory::new()).register(thirty).start().await.unwrap();
    let begun = tokio::time::Instant::now();
    let run = engine.start("thirty", &()).id("thirty").await.unwrap();
    assert_eq!(run.result::<u32>().await.unwrap(), 60);
    assert!(begun.elapsed() < Duration::from_millis(10), "{:?}", begun.elapsed());
    assert_eq!(lines(&run).await.iter().filter(|line| line.starts_with("RETRY_SCHEDULED")).count(), 30);
}

/// Everything that fires at once: a sleep and a retry without any delay.
#[workflow]
async fn at_once(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    for _ in 0..20 {
        ctx.sleep(Duration::ZERO).await?;
    }
    let result: Result<(), Failure> = ctx
        .step("down", || async { Err(Failure::transient("down")) })
        .retry(Policy::constant(Duration::ZERO).max_attempts(20))
        .await;
    assert!(result.is_err(), "it always fails");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_fires_immediately_is_not_lost() {
    let store = Memory::new();
    let engine = engine(&store).register(at_once).start().await.unwrap();
    let run = engine.start("at_once", &()).await.unwrap();
    run.result::<()>().await.unwrap();
    let journal = lines(&run).await;
    assert_eq!(journal.iter().filter(|line| line.starts_with("TIMER_FIRED")).count(), 20);
    assert_eq!(journal.iter().filter(|line| line.starts_with("RETRY_SCHEDULED")).count(), 19, "equal failures are events of their own");
    assert_eq!(store.timers(0, None, 10).await.unwrap(), [], "no timer is left behind");
}

/// A journal from which a retry was taken away, as a damaged store would show it.
#[tokio::test(start_paused = true)]
async fn a_missing_retry_in_the_journal_is_a_clear_error_and_never_hangs() {
    use steadfast_store::{Append, Batch, Fence, RunRow};
    let whole = Memory::new();
    let first = engine(&whole).register(down_twice).start().await.unwrap();
    let run = first.start("down_twice", &()).id("damaged").await.unwrap();
    run.result::<()>().await.unwrap();
    let records = whole.journal(&run.id().into(), 0, 10).await.unwrap();
    assert_eq!(records.len(), 5);

    let damaged = Memory::new();
    let head = damaged.claim(0).await.unwrap();
    let keep = |seq: &u64| *seq != 2 && *seq != 5; // without the first retry and without the end
    let row = whole.run(run.id()).await.unwrap().unwrap();
    let batch = Batch {
        fences: vec![Fence { shard: 0, term: head.term, after: 0, upto: 1 }],
        events: records
            .iter()
            .filter(|record| keep(&record.seq))
            .map(|record| Append { shard: 0, entity: run.id().into(), record: record.clone() })
            .collect(),
        runs: vec![RunRow { status: steadfast::Status::Running, ended_at: None, ..row }],
        ..Batch::default()
    };
    damaged.commit(batch).await.unwrap();

    let engine = engine(&damaged).register(down_twice).start().await.unwrap();
    let error = engine.run("damaged").unwrap().result::<()>().await.unwrap_err();
    assert_eq!(error.code(), "SF0307");
    assert!(error.to_string().contains("event 2 is missing"), "{error}");
    assert_eq!(damaged.journal(&run.id().into(), 0, 10).await.unwrap().len(), 3, "the evidence is left as it is");
}

#[workflow]
async fn down_twice(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.step("down", || {
        let call = call(&ctx, "down");
        async move { if call <= 2 { Err(Failure::transient("down")) } else { Ok(()) } }
    })
    .retry(Policy::constant(SECOND))
    .await
}
