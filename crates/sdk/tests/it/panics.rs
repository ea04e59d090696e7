//! Panics of user code become failures.
//!
//! Subject: `crates/runtime/src/host/workflow.rs`.
//! Subject: `crates/runtime/src/host/step.rs`.

use crate::support::{call, calls, engine, lines};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Class, Code, Ctx, Failure, Policy, workflow};

#[workflow]
async fn panics_once(ctx: Ctx, _input: ()) -> Result<u32, Failure> {
    ctx.step("shaky", || {
        let call = call(&ctx, "shaky");
        async move {
            assert!(call > 1, "the first time");
            Ok::<_, Failure>(call)
        }
    })
    .retry(Policy::constant(Duration::ZERO))
    .await
}

#[workflow]
async fn panics_before_the_future(ctx: Ctx, _input: ()) -> Result<u32, Failure> {
    ctx.step("shaky", || {
        assert!(call(&ctx, "shaky") > 1, "the first time");
        async { Ok::<_, Failure>(7) }
    })
    .retry(Policy::constant(Duration::ZERO))
    .await
}

#[workflow]
async fn panics_itself(ctx: Ctx, _input: ()) -> Result<u32, Failure> {
    ctx.step("fine", || async { Ok::<_, Failure>(()) }).await?;
    panic!("at the disco");
}

#[tokio::test(start_paused = true)]
async fn a_step_that_panics_has_failed_and_is_retried() {
    let engine = engine(&Memory::new())
        .register(panics_once)
        .register(panics_before_the_future)
        .start()
        .await
        .unwrap();
    let run = engine.start("panics_once", &()).id("panics-once").await.unwrap();
    assert_eq!(run.result::<u32>().await.unwrap(), 2);
    assert_eq!(lines(&run).await[1], "RETRY_SCHEDULED shaky#1 a2/5 INTERNAL");
    let run = engine.start("panics_before_the_future", &()).id("panics-before").await.unwrap();
    assert_eq!(run.result::<u32>().await.unwrap(), 7);
    assert_eq!(calls("panics-before", "shaky"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_workflow_that_panics_has_failed() {
    let engine = engine(&Memory::new()).register(panics_itself).start().await.unwrap();
    let run = engine.start("panics_itself", &()).await.unwrap();
    let error = run.result::<u32>().await.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!((failure.class, failure.code), (Class::Permanent, Code::Internal));
    assert_eq!(failure.message, "the workflow panicked: at the disco");
    assert_eq!(lines(&run).await, ["RUN_STARTED", "STEP_COMPLETED fine#1 a1", "RUN_FAILED INTERNAL"]);
}

#[workflow]
async fn catches_a_panic(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    let branch = ctx.branch("risky", async { panic!("not here") });
    let caught: Result<(), _> = AssertUnwindSafe(branch).catch_unwind().await;
    assert!(caught.is_err());
    ctx.step("after", || async { Ok::<_, Failure>(()) }).await
}

#[tokio::test(start_paused = true)]
async fn a_panic_that_the_code_catches_leaves_its_branch() {
    let engine = engine(&Memory::new()).register(catches_a_panic).start().await.unwrap();
    let run = engine.start("catches_a_panic", &()).await.unwrap();
    run.result::<()>().await.unwrap();
    assert_eq!(lines(&run).await[1], "STEP_COMPLETED after#1 a1", "not risky#1/after#1");
}
