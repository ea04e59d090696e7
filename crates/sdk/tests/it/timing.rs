//! Timeouts and deadlines.
//!
//! Subject: `crates/runtime/src/host/step.rs`.

use crate::support::{call, calls, engine, lines, until};
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Code, Ctx, Engine, Failure, HOUR, MINUTE, Policy, SECOND, Status, Wait, workflow};

/// The first attempt hangs, the second answers.
#[workflow]
async fn hangs_once(ctx: Ctx, _input: ()) -> Result<u32, Failure> {
    ctx.step("slow", || {
        let call = call(&ctx, "slow");
        async move {
            if call == 1 {
                tokio::time::sleep(HOUR).await;
            }
            Ok::<_, Failure>(call)
        }
    })
    .timeout(10 * SECOND)
    .retry(Policy::constant(SECOND))
    .await
}

#[workflow]
async fn always_down(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.step("down", || {
        call(&ctx, "down");
        async { Err(Failure::transient("down")) }
    })
    .retry(Policy::constant(10 * SECOND).max_attempts(1000).deadline(35 * SECOND))
    .await
}

#[workflow]
async fn stuck_until_the_deadline(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.step("stuck", || {
        call(&ctx, "stuck");
        async { std::future::pending::<Result<(), Failure>>().await }
    })
    .retry(Policy::constant(SECOND).deadline(30 * SECOND))
    .await
}

#[workflow]
async fn nap(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.sleep(HOUR).await
}

#[workflow]
async fn stuck(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.step("stuck", || async { std::future::pending::<Result<(), Failure>>().await }).await
}

#[workflow]
async fn backs_off(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.step("down", || async { Err(Failure::transient("down")) })
        .retry(Policy::constant(2 * MINUTE).max_attempts(9))
        .await
}

async fn start() -> Engine {
    let store = Memory::new();
    engine(&store)
        .register(hangs_once)
        .register(always_down)
        .register(stuck_until_the_deadline)
        .register(nap)
        .register(stuck)
        .register(backs_off)
        .start()
        .await
        .unwrap()
}

/// The trap: a late result of a timed-out attempt is discarded and does not appear in the journal.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_too_long_has_failed_and_its_late_result_is_nowhere() {
    let engine = start().await;
    let begun = tokio::time::Instant::now();
    let run = engine.start("hangs_once", &()).id("hangs-once").await.unwrap();
    assert_eq!(run.result::<u32>().await.unwrap(), 2);
    assert!((11 * SECOND..12 * SECOND).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    tokio::time::sleep(2 * HOUR).await;
    let expected = ["RUN_STARTED", "RETRY_SCHEDULED slow#1 a2/5 DEADLINE_EXCEEDED", "STEP_COMPLETED slow#1 a2", "RUN_COMPLETED"];
    assert_eq!(lines(&run).await, expected);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_policy_ends_the_attempts() {
    let engine = start().await;
    let run = engine.start("always_down", &()).id("always-down").await.unwrap();
    let error = run.result::<()>().await.unwrap_err();
    assert_eq!(error.failure().unwrap().code, Code::DeadlineExceeded);
    assert_eq!(calls("always-down", "down"), 4, "at 0, 10, 20 and 30 seconds; the next would be too late");
}

#[tokio::test(start_paused = true)]
async fn a_stuck_attempt_cannot_outlast_the_deadline_of_its_policy() {
    let engine = start().await;
    let begun = tokio::time::Instant::now();
    let run = engine.start("stuck_until_the_deadline", &()).id("stuck-1").await.unwrap();
    assert_eq!(run.result::<()>().await.unwrap_err().failure().unwrap().code, Code::DeadlineExceeded);
    assert_eq!(calls("stuck-1", "stuck"), 1);
    assert!((30 * SECOND..31 * SECOND).contains(&begun.elapsed()), "{:?}", begun.elapsed());
}

/// Journal 10: the deadline of a run ends whatever it is doing.
#[tokio::test(start_paused = true)]
async fn journal_10_the_deadline_of_a_run_ends_sleeps_and_stuck_attempts() {
    let engine = start().await;
    for (workflow, journal) in [
        ("nap", vec!["RUN_STARTED", "TIMER_SET sleep#1", "RUN_FAILED DEADLINE_EXCEEDED"]),
        ("stuck", vec!["RUN_STARTED", "RUN_FAILED DEADLINE_EXCEEDED"]),
    ] {
        let begun = tokio::time::Instant::now();
        let run = engine.start(workflow, &()).deadline(MINUTE).await.unwrap();
        let error = run.result::<()>().await.unwrap_err();
        assert_eq!(error.failure().unwrap().code, Code::DeadlineExceeded);
        assert!((MINUTE..MINUTE + SECOND).contains(&begun.elapsed()), "{:?}", begun.elapsed());
        tokio::time::sleep(2 * HOUR).await;
        assert_eq!(lines(&run).await, journal, "nothing comes after the end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_would_come_after_the_deadline_of_the_run_is_not_waited_for() {
    let engine = start().await;
    let begun = tokio::time::Instant::now();
    let run = engine.start("backs_off", &()).deadline(5 * MINUTE).await.unwrap();
    assert_eq!(run.result::<()>().await.unwrap_err().failure().unwrap().code, Code::DeadlineExceeded);
    assert!((4 * MINUTE..4 * MINUTE + SECOND).contains(&begun.elapsed()), "the code learns of it early: {:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_says_for_what() {
    let engine = start().await;
    let run = engine.start("backs_off", &()).await.unwrap();
    until("it backs off", async || run.view().await.unwrap().status == Status::Waiting).await;
    let view = run.view().await.unwrap();
    let [Wait::Backoff { step, attempt: 2, of: 9, due_at, failure }] = &view.waits[..] else { panic!("{view:?}") };
    assert_eq!((step.as_str(), &*failure.message), ("down#1", "down"));
    assert!(due_at.saturating_since(view.started_at) >= 2 * MINUTE);
    assert_eq!(view.retry_context.unwrap().last_backoff, 2 * MINUTE);
    let run = engine.start("nap", &()).await.unwrap();
    until("it sleeps", async || run.view().await.unwrap().status == Status::Waiting).await;
    assert!(matches!(run.view().await.unwrap().waits[..], [Wait::Timer { .. }]));
    let run = engine.start("stuck", &()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(run.view().await.unwrap().status, Status::Running);
}

/// Two steps side by side: one fails and backs off for an hour, the other fails too or is done.
#[workflow]
async fn side_by_side(ctx: Ctx, both: bool) -> Result<(), Failure> {
    let down = |name: &str, fails: bool| {
        ctx.step(name, move || async move { if fails { Err(Failure::transient("down")) } else { Ok(()) } })
            .retry(Policy::constant(HOUR).max_attempts(2))
    };
    let _ = futures_util::future::join(down("a", true), down("b", both)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_run_all_of_whose_steps_back_off_is_waiting() {
    for both in [false, true] {
        let engine = engine(&Memory::new()).register(side_by_side).start().await.unwrap();
        let run = engine.start("side_by_side", &both).await.unwrap();
        tokio::time::sleep(MINUTE).await;
        let view = run.view().await.unwrap();
        assert_eq!(view.status, Status::Waiting, "both fail: {both}");
    }
}
