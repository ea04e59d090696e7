//! Long steps say that they live, and how far they have come.
//!
//! Subject: `crates/runtime/src/host/heartbeat.rs`.
//! Subject: `crates/runtime/src/host/board/beats.rs`.

use crate::support::{call, calls, engine, lines, until};
use std::future::pending;
use steadfast::memory::Memory;
use steadfast::{Ctx, Failure, MINUTE, Policy, SECOND, Status, workflow};

/// Copies rows; the first attempt fails at row 4.
#[workflow]
async fn copy(ctx: Ctx, rows: u32) -> Result<Vec<u32>, Failure> {
    ctx.step("copy", || {
        let (call, ctx) = (call(&ctx, "copy"), ctx.clone());
        async move {
            let mut done = ctx.last_heartbeat::<Vec<u32>>()?.unwrap_or_default();
            let heartbeat = ctx.heartbeat();
            let from = done.last().copied().unwrap_or_default();
            for row in from + 1..=rows {
                if call == 1 && row == 4 {
                    return Err(Failure::transient("cut off"));
                }
                if call == 1 {
                    done.push(row);
                } else {
                    done.push(row * 100);
                }
                heartbeat.beat(&done)?;
                tokio::time::sleep(SECOND).await;
            }
            Ok(done)
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn the_next_attempt_reads_what_the_one_before_it_said_last() {
    let engine = engine(&Memory::new()).register(copy).start().await.unwrap();
    let run = engine.start("copy", &5).id("reads").await.unwrap();
    assert_eq!(run.result::<Vec<u32>>().await.unwrap(), [1, 2, 3, 400, 500]);
    let beats = lines(&run).await.iter().filter(|line| line.starts_with("STEP_HEARTBEAT")).count();
    assert!((1..=3).contains(&beats), "not every word is worth a record: {beats}");
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_the_attempt_reads_the_last_word_on_record() {
    #[workflow]
    async fn long(ctx: Ctx, (): ()) -> Result<u32, Failure> {
        ctx.step("long", || {
            let (call, ctx) = (call(&ctx, "long"), ctx.clone());
            async move {
                if let Some(done) = ctx.last_heartbeat::<u32>()? {
                    return Ok(done + 1000 * call);
                }
                let heartbeat = ctx.heartbeat();
                let told = tokio::spawn(async move {
                    for done in 1_u32.. {
                        heartbeat.beat(&done).unwrap(); // from another task
                        tokio::time::sleep(SECOND).await;
                    }
                });
                let _never = told.await;
                Ok::<u32, Failure>(0)
            }
        })
        .await
    }
    let store = Memory::new();
    let first = engine(&store).register(long).start().await.unwrap();
    let run = first.start("long", &()).id("long").await.unwrap();
    tokio::time::sleep(12 * SECOND).await;
    assert_eq!(calls("long", "long"), 1);
    assert_eq!(lines(&run).await[1..], ["STEP_HEARTBEAT long#1 a1", "STEP_HEARTBEAT long#1 a1", "STEP_HEARTBEAT long#1 a1"]);
    drop((run, first));
    let second = engine(&store.reopen()).register(long).start().await.unwrap();
    let done: u32 = second.run("long").unwrap().result().await.unwrap();
    assert!((2006..=2011).contains(&done), "{done}");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_silent_for_too_long_is_stuck() {
    #[workflow]
    async fn stuck(ctx: Ctx, (): ()) -> Result<u32, Failure> {
        ctx.step("stuck", || {
            let (call, heartbeat) = (call(&ctx, "stuck"), ctx.heartbeat());
            async move {
                if call == 1 {
                    return pending::<Result<u32, Failure>>().await;
                }
                for n in 0..20 {
                    heartbeat.beat(&n)?;
                    tokio::time::sleep(20 * SECOND).await; // in all far longer than the silence that is allowed
                }
                Ok(call)
            }
        })
        .retry(Policy::constant(SECOND).max_attempts(2))
        .heartbeat_timeout(30 * SECOND)
        .await
    }
    let engine = engine(&Memory::new()).register(stuck).start().await.unwrap();
    let run = engine.start("stuck", &()).id("stuck").await.unwrap();
    tokio::time::sleep(25 * SECOND).await;
    assert_eq!(calls("stuck", "stuck"), 1);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(calls("stuck", "stuck"), 2, "the first one was dropped");
    assert_eq!(run.result::<u32>().await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn notes_are_shown_and_cost_no_commit() {
    #[workflow]
    async fn noted(ctx: Ctx, (): ()) -> Result<(), Failure> {
        for n in 1..=3 {
            ctx.note(format!("{n} of 3"));
            ctx.step("work", || async { Ok::<_, Failure>(()) }).await?;
        }
        ctx.sleep(MINUTE).await
    }
    let store = Memory::new();
    let engine = engine(&store).register(noted).start().await.unwrap();
    let run = engine.start("noted", &()).id("noted").await.unwrap();
    until("it sleeps", async || run.view().await.unwrap().status == Status::Waiting).await;
    assert_eq!(run.view().await.unwrap().note.as_deref(), Some("3 of 3"));
    assert_eq!(engine.commits(), 5, "start; the first note; three steps with what follows each");
    run.result::<()>().await.unwrap();
    assert!(run.replay().await.unwrap().mismatch.is_none());
}

#[tokio::test(start_paused = true)]
async fn another_life_reads_how_far_the_one_before_it_had_come() {
    #[workflow]
    async fn in_parts(ctx: Ctx, (): ()) -> Result<u32, Failure> {
        ctx.step("parts", || {
            let (call, ctx) = (call(&ctx, "parts"), ctx.clone());
            async move {
                let done = ctx.last_heartbeat::<u32>()?.unwrap_or_default();
                ctx.heartbeat().beat(&(done + 10))?;
                if call < 3 { Err(Failure::permanent("the disk is full")) } else { Ok(done) }
            }
        })
        .await
    }
    let engine = engine(&Memory::new()).register(in_parts).start().await.unwrap();
    let run = engine.start("in_parts", &()).id("in-parts").await.unwrap();
    for _ in 0..2 {
        run.result::<u32>().await.unwrap_err();
        run.retry().await.unwrap();
    }
    assert_eq!(run.result::<u32>().await.unwrap(), 20);
    run.retry().from_start().await.unwrap();
    assert_eq!(run.result::<u32>().await.unwrap(), 0, "what has succeeded begins from nothing");
}
