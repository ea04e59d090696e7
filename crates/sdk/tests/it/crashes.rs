//! A crash before or after every single commit: the next engine goes on, and the end is the same.
//!
//! Subject: `crates/runtime/src/shard/load.rs`.

use steadfast::testing::{Crash, Lab};
use steadfast::{Ctx, Failure, HOUR, Policy, SECOND, workflow};

#[workflow]
async fn everything(ctx: Ctx, order: String) -> Result<String, Failure> {
    let charge = ctx.step("charge", || async { Ok::<_, Failure>("charged".to_string()) }).await?;
    let refused: Result<(), Failure> = ctx
        .step("notify", || async { Err(Failure::transient("no route")) })
        .retry(Policy::exponential(SECOND).max_attempts(3))
        .await;
    let why = refused.expect_err("it always fails").message;
    ctx.sleep(24 * HOUR).await?;
    for _ in 0..2 {
        ctx.step("ship", || async { Ok::<_, Failure>(()) }).await?;
    }
    Ok(format!("{order}: {charge}; {why}; {}", ctx.random()))
}

#[tokio::test]
async fn a_crash_before_or_after_any_commit_changes_nothing_but_the_time() {
    let scenario = async |lab: &Lab| {
        lab.start(everything, "e-1", "order").await;
        (lab.result::<String>("e-1").await.unwrap(), lab.journal("e-1").await.lines())
    };
    let report = Lab::new().register(everything).crash_everywhere(scenario).await;
    let result = &report.outcome.0;
    assert!(result.starts_with("order: charged; gave up after 3 of 3 attempts: no route; "), "{result}");
    assert_eq!(report.plays.len(), 16, "start; charged; two retries; given up and slept; woken; two ships, the second with the end");
    assert_eq!(report.undisturbed.len(), 6);
    for play in &report.plays {
        let loses_an_attempt = matches!(play.crash, Crash::BeforeCommit(2..=5 | 7..=8));
        assert_eq!(play.calls.len(), 6 + usize::from(loses_an_attempt), "{}: what is on record is not run again", play.crash);
    }
}

#[workflow]
async fn flaky(ctx: Ctx, max_attempts: u32) -> Result<(), Failure> {
    ctx.step("charge", || async { Err(Failure::transient("down")) })
        .retry(Policy::constant(SECOND).max_attempts(max_attempts))
        .await
}

/// Journal 9, and the trap: after a restart with n attempts on record exactly `max_attempts − n` remain.
#[tokio::test]
async fn after_a_restart_with_n_attempts_on_record_exactly_the_rest_remains() {
    for max in 1..=5 {
        for on_record in 0..max {
            let lab = Lab::new().register(flaky).open().await;
            lab.crash_at(Crash::BeforeCommit(2 + u64::from(on_record))); // after the start and n recorded failures
            lab.start(flaky, "f-1", &max).await;
            let failure = lab.result::<()>("f-1").await.unwrap_err();
            assert_eq!((failure.attempts, failure.exhausted().unwrap().max), (max, max));
            let attempts: Vec<_> = lab.calls("charge").iter().map(|call| call.attempt).collect();
            let expected: Vec<_> = (1..=on_record + 1).chain(on_record + 1..=max).collect();
            assert_eq!(attempts, expected, "the attempt whose failure was lost is made again, and those after it");
            lab.journal("f-1").await.step("charge").attempts(max);
        }
    }
}

#[workflow]
async fn nap(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.sleep(HOUR).await
}

#[tokio::test]
async fn a_sleep_goes_on_over_a_restart_and_does_not_begin_anew() {
    let lab = Lab::new().register(nap).open().await;
    let begun = tokio::time::Instant::now();
    lab.start(nap, "nap", &()).await;
    lab.advance(HOUR / 2).await;
    lab.crash().await;
    lab.result::<()>("nap").await.unwrap();
    assert!((HOUR..HOUR + SECOND).contains(&begun.elapsed()), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_timer_that_was_firing_when_the_process_died_fires_again() {
    let lab = Lab::new().register(nap).open().await;
    lab.crash_at(Crash::BeforeCommit(3)); // that of TIMER_FIRED
    lab.start(nap, "nap", &()).await;
    lab.result::<()>("nap").await.unwrap();
    lab.journal("nap").await.kinds(["RUN_STARTED", "TIMER_SET", "TIMER_FIRED", "RUN_COMPLETED"]);
}
