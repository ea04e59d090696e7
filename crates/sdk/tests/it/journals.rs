//! The ten journals of `docs/decisions/0001-the-turn.md`, live: the same events, and the number of commits that is promised.

use crate::support::{engine, lines};
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Code, Ctx, Engine, Failure, HOUR, Policy, SECOND, workflow};

#[workflow]
async fn one_step(ctx: Ctx, input: u32) -> Result<u32, Failure> {
    ctx.step("charge", || async { Ok::<_, Failure>(input + 1) }).await
}

#[workflow]
async fn ten_steps(ctx: Ctx, offset: u32) -> Result<u32, Failure> {
    let mut sum = 0;
    for i in 0..10 {
        sum += ctx.step("add", || async move { Ok::<_, Failure>(i + offset) }).await?;
    }
    Ok(sum)
}

/// Fails `failures` times, then succeeds; at most three attempts.
#[workflow]
async fn flaky(ctx: Ctx, failures: u32) -> Result<u32, Failure> {
    let mut calls = 0;
    ctx.step("charge", move || {
        calls += 1;
        async move { if calls <= failures { Err(Failure::transient("connection timeout")) } else { Ok(calls) } }
    })
    .retry(Policy::exponential(SECOND).max_attempts(3))
    .await
}

#[workflow]
async fn permanent(ctx: Ctx, _input: ()) -> Result<u32, Failure> {
    ctx.step("charge", || async { Err(Failure::permanent("card refused").code(Code::PermissionDenied)) })
        .await
}

#[workflow]
async fn handled(ctx: Ctx, _input: ()) -> Result<String, Failure> {
    let charged: Result<u32, Failure> = ctx.step("charge", || async { Err(Failure::permanent("card refused")) }).await;
    match charged {
        Ok(_) => Ok("charged".into()),
        Err(failure) => ctx.step("apologise", || async { Ok::<_, Failure>(format!("sorry: {}", failure.message)) }).await,
    }
}

#[workflow]
async fn nap(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.sleep(24 * HOUR).await
}

#[workflow]
async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> {
    let charge = ctx.step("charge", || async { Ok::<_, Failure>(format!("charged {order}")) }).await?;
    ctx.sleep(24 * HOUR).await?;
    ctx.step("receipt", || async { Ok::<_, Failure>(format!("{charge}, sent")) }).await
}

async fn start() -> Engine {
    engine(&Memory::new())
        .register(one_step)
        .register(ten_steps)
        .register(flaky)
        .register(permanent)
        .register(handled)
        .register(nap)
        .register(checkout)
        .start()
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn journal_1_a_lone_step_costs_two_commits() {
    let engine = start().await;
    let run = engine.start("one_step", &41).await.unwrap();
    assert_eq!(run.result::<u32>().await.unwrap(), 42);
    assert_eq!(engine.commits(), 2);
    assert_eq!(lines(&run).await, ["RUN_STARTED", "STEP_COMPLETED charge#1 a1", "RUN_COMPLETED"]);
}

#[tokio::test(start_paused = true)]
async fn journal_2_ten_lone_steps_cost_eleven_commits() {
    let engine = start().await;
    let run = engine.start("ten_steps", &7).await.unwrap();
    assert_eq!(run.result::<u32>().await.unwrap(), 115);
    assert_eq!(engine.commits(), 11);
    let journal = lines(&run).await;
    assert_eq!(journal.len(), 12);
    assert_eq!(journal[10..], ["STEP_COMPLETED add#10 a1", "RUN_COMPLETED"]);
}

#[tokio::test(start_paused = true)]
async fn journal_3_a_retry_is_recorded_and_waited_for() {
    let engine = start().await;
    let begun = tokio::time::Instant::now();
    let run = engine.start("flaky", &1).await.unwrap();
    assert_eq!(run.result::<u32>().await.unwrap(), 2);
    assert!((SECOND..SECOND * 3 / 2 + Duration::from_millis(5)).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    assert_eq!(engine.commits(), 3);
    let expected = ["RUN_STARTED", "RETRY_SCHEDULED charge#1 a2/3 UNAVAILABLE", "STEP_COMPLETED charge#1 a2", "RUN_COMPLETED"];
    assert_eq!(lines(&run).await, expected);
}

#[tokio::test(start_paused = true)]
async fn journal_4_attempts_that_are_used_up_fail_the_step() {
    let engine = start().await;
    let run = engine.start("flaky", &99).await.unwrap();
    let error = run.result::<u32>().await.unwrap_err();
    let failure = error.failure().unwrap();
    let exhausted = failure.exhausted().unwrap();
    assert_eq!((exhausted.max, exhausted.reason, failure.attempts), (3, "connection timeout", 3));
    assert_eq!(engine.commits(), 4);
    let expected = [
        "RUN_STARTED",
        "RETRY_SCHEDULED charge#1 a2/3 UNAVAILABLE",
        "RETRY_SCHEDULED charge#1 a3/3 UNAVAILABLE",
        "STEP_FAILED charge#1 a3 UNAVAILABLE",
        "RUN_FAILED UNAVAILABLE",
    ];
    assert_eq!(lines(&run).await, expected);
}

#[tokio::test(start_paused = true)]
async fn journal_5_a_permanent_failure_is_not_retried() {
    let engine = start().await;
    let run = engine.start("permanent", &()).await.unwrap();
    let error = run.result::<u32>().await.unwrap_err();
    assert_eq!(error.failure().unwrap().code, Code::PermissionDenied);
    assert_eq!(lines(&run).await, ["RUN_STARTED", "STEP_FAILED charge#1 a1 PERMISSION_DENIED", "RUN_FAILED PERMISSION_DENIED"]);
    assert_eq!(engine.commits(), 2);
}

#[tokio::test(start_paused = true)]
async fn journal_6_code_can_handle_a_failure() {
    let engine = start().await;
    let run = engine.start("handled", &()).await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "sorry: card refused");
    let expected = ["RUN_STARTED", "STEP_FAILED charge#1 a1 FAILED_PRECONDITION", "STEP_COMPLETED apologise#1 a1", "RUN_COMPLETED"];
    assert_eq!(lines(&run).await, expected);
}

#[tokio::test(start_paused = true)]
async fn journal_7_a_sleep_is_set_and_fires() {
    let engine = start().await;
    let begun = tokio::time::Instant::now();
    let run = engine.start("nap", &()).await.unwrap();
    run.result::<()>().await.unwrap();
    assert!(begun.elapsed() >= 24 * HOUR, "never early");
    assert!(begun.elapsed() < 24 * HOUR + Duration::from_millis(5), "{:?}", begun.elapsed());
    assert_eq!(lines(&run).await, ["RUN_STARTED", "TIMER_SET sleep#1", "TIMER_FIRED sleep#1", "RUN_COMPLETED"]);
    assert_eq!(engine.commits(), 3);
}

#[tokio::test(start_paused = true)]
async fn journal_8_a_sleep_between_steps() {
    let engine = start().await;
    let run = engine.start("checkout", &"order-17").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "charged order-17, sent");
    let expected = [
        "RUN_STARTED",
        "STEP_COMPLETED charge#1 a1",
        "TIMER_SET sleep#1",
        "TIMER_FIRED sleep#1",
        "STEP_COMPLETED receipt#1 a1",
        "RUN_COMPLETED",
    ];
    assert_eq!(lines(&run).await, expected);
    assert_eq!(engine.commits(), 4);
}
