//! A crash before or after every single commit: the next engine goes on, and the end is the same.

use crate::support::{call, calls, engine, lines};
use steadfast::memory::{Fault, Memory};
use steadfast::{Ctx, Engine, Entry, Event, Failure, HOUR, MINUTE, Policy, SECOND, workflow};

#[workflow]
async fn everything(ctx: Ctx, order: String) -> Result<String, Failure> {
    let charge = ctx
        .step("charge", || {
            let call = call(&ctx, "charge");
            async move { Ok::<_, Failure>(format!("charge {}", call.min(1))) }
        })
        .await?;
    let refused: Result<(), Failure> = ctx
        .step("notify", || {
            call(&ctx, "notify");
            async { Err(Failure::transient("no route")) }
        })
        .retry(Policy::exponential(SECOND).max_attempts(3))
        .await;
    let why = refused.expect_err("it always fails").message;
    ctx.sleep(24 * HOUR).await?;
    for _ in 0..2 {
        ctx.step("ship", || {
            call(&ctx, "ship");
            async { Ok::<_, Failure>(()) }
        })
        .await?;
    }
    Ok(format!("{order}: {charge}; {why}; {}", ctx.random()))
}

async fn start(store: &Memory) -> Engine {
    engine(store).register(everything).start().await.unwrap()
}

/// The steps that have their result on record.
fn recorded(journal: &[Entry]) -> usize {
    journal.iter().filter(|entry| matches!(entry.event, Event::StepCompleted { .. })).count()
}

/// Runs it to the end without a crash: what every other way must lead to.
async fn undisturbed() -> (Vec<String>, u64) {
    let engine = start(&Memory::new()).await;
    let run = engine.start("everything", &"order").id("undisturbed").await.unwrap();
    let result: String = run.result().await.unwrap();
    assert!(result.starts_with("order: charge 1; gave up after 3 of 3 attempts: no route; "), "{result}");
    (lines(&run).await, engine.commits())
}

#[tokio::test(start_paused = true)]
async fn a_crash_before_or_after_any_commit_changes_nothing_but_the_time() {
    let (expected, commits) = undisturbed().await;
    assert_eq!(commits, 8, "start; two retries; given up and slept; woken; two ships, the second with the end");
    for nth in 0..commits {
        for (name, fault) in [("before", Fault::CrashBefore), ("after", Fault::CrashAfter)] {
            let id = format!("crash-{name}-{nth}");
            let store = Memory::new();
            store.faults().after(nth as usize, fault);
            let engine = start(&store).await;
            let started = engine.start("everything", &"order").id(&id).await;
            while !store.is_dead() {
                tokio::time::sleep(10 * MINUTE).await;
            }
            drop((started, engine));

            let store = store.reopen();
            let engine = start(&store).await;
            let on_record = match engine.run(&id).unwrap().journal().await {
                Ok(journal) => recorded(&journal),
                Err(error) => {
                    assert_eq!((nth, name, error.code()), (0, "before", "SF0104"), "only an unacknowledged start may be gone");
                    0
                }
            };
            let before = [calls(&id, "charge"), calls(&id, "ship")];
            let run = engine.start("everything", &"order").id(&id).await.unwrap();
            run.result::<String>().await.unwrap();
            assert_eq!(lines(&run).await, expected, "{id}");
            let after = [calls(&id, "charge"), calls(&id, "ship")];
            assert_eq!((after[0] - before[0]) + (after[1] - before[1]), 3 - on_record as u32, "{id}: what is on record is not run again");
        }
    }
}

#[workflow]
async fn flaky(ctx: Ctx, max_attempts: u32) -> Result<(), Failure> {
    ctx.step("charge", || {
        call(&ctx, "charge");
        async { Err(Failure::transient("down")) }
    })
    .retry(Policy::constant(SECOND).max_attempts(max_attempts))
    .await
}

/// Journal 9, and the trap: after a restart with n attempts on record exactly `max_attempts − n` remain.
#[tokio::test(start_paused = true)]
async fn after_a_restart_with_n_attempts_on_record_exactly_the_rest_remains() {
    for max in 1..=5 {
        for on_record in 0..max {
            let id = format!("rest-{max}-{on_record}");
            let store = Memory::new();
            store.faults().after(1 + on_record as usize, Fault::CrashBefore); // after the start and n recorded failures
            let engine = engine(&store).register(flaky).start().await.unwrap();
            let run = engine.start("flaky", &max).id(&id).await.unwrap();
            while !store.is_dead() {
                tokio::time::sleep(SECOND).await;
            }
            drop((run, engine));
            let before = calls(&id, "charge");
            assert_eq!(before, on_record + 1, "the attempt whose failure was lost has been made");

            let engine = crate::support::engine(&store.reopen()).register(flaky).start().await.unwrap();
            let run = engine.run(&id).unwrap();
            let error = run.result::<()>().await.unwrap_err();
            assert_eq!(calls(&id, "charge") - before, max - on_record, "{id}");
            let failure = error.failure().unwrap();
            assert_eq!((failure.attempts, failure.exhausted().unwrap().max), (max, max));
            let retries = lines(&run).await.iter().filter(|line| line.starts_with("RETRY_SCHEDULED")).count();
            assert_eq!(retries, max as usize - 1, "attempts are consecutive: {:?}", lines(&run).await);
        }
    }
}

#[workflow]
async fn nap(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.sleep(HOUR).await
}

#[tokio::test(start_paused = true)]
async fn a_sleep_goes_on_over_a_restart_and_does_not_begin_anew() {
    let store = Memory::new();
    let clock = steadfast::VirtualClock::start();
    let first = Engine::on(store.clone()).clock(clock).register(nap).start().await.unwrap();
    let begun = tokio::time::Instant::now();
    first.start("nap", &()).id("nap").await.unwrap();
    tokio::time::sleep(SECOND * 1800).await;
    drop(first);
    let second = Engine::on(store.reopen()).clock(clock).register(nap).start().await.unwrap();
    second.run("nap").unwrap().result::<()>().await.unwrap();
    assert!((HOUR..HOUR + SECOND).contains(&begun.elapsed()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_was_firing_when_the_process_died_fires_again() {
    let store = Memory::new();
    store.faults().after(2, Fault::CrashBefore); // the commit of TIMER_FIRED
    let engine = engine(&store).register(nap).start().await.unwrap();
    engine.start("nap", &()).id("fires-again").await.unwrap();
    while !store.is_dead() {
        tokio::time::sleep(SECOND).await;
    }
    drop(engine);
    let engine = crate::support::engine(&store.reopen()).register(nap).start().await.unwrap();
    let run = engine.run("fires-again").unwrap();
    run.result::<()>().await.unwrap();
    assert_eq!(lines(&run).await, ["RUN_STARTED", "TIMER_SET sleep#1", "TIMER_FIRED sleep#1", "RUN_COMPLETED"]);
}
