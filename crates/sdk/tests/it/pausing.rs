//! Pause and resume with the run's own time standing still; terminate.
//!
//! Subject: `crates/runtime/src/host/board/time.rs`.
//! Subject: `crates/kernel/src/run/pause.rs`.

use crate::support::{call, calls, engine, lines, until};
use std::time::Duration;
use steadfast::memory::{Fault, Memory};
use steadfast::{Clock, Code, Ctx, Engine, Failure, HOUR, MINUTE, Policy, SECOND, Status, VirtualClock, Wait, workflow};

#[workflow]
async fn nap(ctx: Ctx, (): ()) -> Result<i64, Failure> {
    let begun = ctx.now();
    ctx.sleep(HOUR).await?;
    call(&ctx, "woken");
    Ok(ctx.now().saturating_since(begun).as_secs() as i64)
}

async fn pass(duration: Duration) {
    tokio::time::sleep(duration).await;
}

#[tokio::test(start_paused = true)]
async fn a_sleep_keeps_the_time_that_is_left() {
    let engine = engine(&Memory::new()).register(nap).start().await.unwrap();
    let run = engine.start("nap", &()).id("nap").await.unwrap();
    until("it sleeps", async || run.view().await.unwrap().status == Status::Waiting).await;
    pass(40 * MINUTE).await;
    run.pause().by("ada").why("the disk is full").await.unwrap();
    let view = run.view().await.unwrap();
    assert_eq!(view.status, Status::Paused);
    assert!(matches!(&view.waits[0], Wait::Paused { by: Some(by), why: Some(why), .. } if by == "ada" && why == "the disk is full"));
    pass(10 * HOUR).await;
    assert_eq!(calls("nap", "woken"), 0, "its time stands still");
    run.resume().by("bob").await.unwrap();
    pass(19 * MINUTE).await;
    assert_eq!(calls("nap", "woken"), 0, "a minute is left");
    let slept: i64 = run.result().await.unwrap();
    assert!((39_600..39_700).contains(&slept), "{slept}");
    assert_eq!(
        lines(&run).await,
        ["RUN_STARTED", "TIMER_SET sleep#1", "RUN_PAUSED", "RUN_RESUMED", "TIMER_FIRED sleep#1", "RUN_COMPLETED"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_paused_run_stays_paused_over_a_restart() {
    let store = Memory::new();
    let first = engine(&store).register(nap).start().await.unwrap();
    let run = first.start("nap", &()).id("nap-restart").await.unwrap();
    until("it sleeps", async || run.view().await.unwrap().status == Status::Waiting).await;
    run.pause().await.unwrap();
    drop((run, first));
    pass(5 * HOUR).await;
    let clock = VirtualClock::start_at(VirtualClock::start().now().saturating_add(9 * HOUR));
    let second = Engine::on(store.reopen()).clock(clock).register(nap).start().await.unwrap();
    let run = second.run("nap-restart").unwrap();
    pass(HOUR).await;
    assert_eq!((run.view().await.unwrap().status, calls("nap-restart", "woken")), (Status::Paused, 0));
    run.resume().await.unwrap();
    run.result::<i64>().await.unwrap();
    assert_eq!(calls("nap-restart", "woken"), 1);
}

#[workflow]
async fn two_steps(ctx: Ctx, (): ()) -> Result<(), Failure> {
    for name in ["first", "second"] {
        ctx.step(name, || {
            call(&ctx, name);
            async {
                tokio::time::sleep(10 * SECOND).await;
                Ok::<_, Failure>(())
            }
        })
        .await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_is_in_flight_ends_and_is_recorded_and_nothing_new_begins() {
    let engine = engine(&Memory::new()).register(two_steps).start().await.unwrap();
    let run = engine.start("two_steps", &()).id("in-flight-when-paused").await.unwrap();
    until("the first step runs", async || calls("in-flight-when-paused", "first") == 1).await;
    run.pause().await.unwrap();
    pass(HOUR).await;
    assert_eq!(lines(&run).await, ["RUN_STARTED", "RUN_PAUSED", "STEP_COMPLETED first#1 a1"]);
    assert_eq!(calls("in-flight-when-paused", "second"), 0);
    for _ in 0..2 {
        run.resume().id("r-1").await.unwrap();
    }
    run.result::<()>().await.unwrap();
    assert_eq!((calls("in-flight-when-paused", "first"), calls("in-flight-when-paused", "second")), (1, 1));
    assert_eq!(lines(&run).await.iter().filter(|line| *line == "RUN_RESUMED").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_backoff_that_begins_in_a_pause_counts_from_its_end() {
    #[workflow]
    async fn flaky(ctx: Ctx, (): ()) -> Result<u32, Failure> {
        ctx.step("try", || {
            let call = call(&ctx, "try");
            async move {
                tokio::time::sleep(10 * SECOND).await;
                if call == 1 { Err(Failure::transient("down")) } else { Ok(call) }
            }
        })
        .retry(Policy::constant(30 * SECOND).max_attempts(2))
        .await
    }
    let engine = engine(&Memory::new()).register(flaky).start().await.unwrap();
    let run = engine.start("flaky", &()).id("flaky").await.unwrap();
    until("it runs", async || calls("flaky", "try") == 1).await;
    run.pause().await.unwrap();
    pass(HOUR).await;
    assert_eq!((calls("flaky", "try"), lines(&run).await.len()), (1, 3), "the failure is recorded, and the delay has not begun");
    run.resume().await.unwrap();
    pass(29 * SECOND).await;
    assert_eq!(calls("flaky", "try"), 1);
    assert_eq!(run.result::<u32>().await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_stands_still_and_a_signal_waits_for_the_end_of_the_pause() {
    #[workflow]
    async fn asks(ctx: Ctx, (): ()) -> Result<String, Failure> {
        let said = ctx.signal::<String>("word").await?;
        call(&ctx, "heard");
        Ok(said)
    }
    let engine = engine(&Memory::new()).register(asks).start().await.unwrap();
    let run = engine.start("asks", &()).id("asks").deadline(HOUR).await.unwrap();
    until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
    run.pause().await.unwrap();
    run.signal("word", "hello").await.unwrap();
    pass(5 * HOUR).await;
    assert_eq!((run.view().await.unwrap().status, calls("asks", "heard")), (Status::Paused, 0));
    run.resume().await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "hello");

    let late = engine.start("asks", &()).id("asks-late").deadline(HOUR).await.unwrap();
    late.pause().await.unwrap();
    pass(5 * HOUR).await;
    late.resume().await.unwrap();
    pass(59 * MINUTE).await;
    assert_eq!(late.view().await.unwrap().status, Status::Waiting);
    assert_eq!(late.result::<String>().await.unwrap_err().failure().unwrap().code, Code::DeadlineExceeded);
}

#[tokio::test(start_paused = true)]
async fn a_paused_run_can_be_cancelled_and_terminated() {
    let engine = engine(&Memory::new()).register(nap).register(undone).start().await.unwrap();
    let run = engine.start("nap", &()).id("nap-cancel").await.unwrap();
    run.pause().await.unwrap();
    run.cancel().await.unwrap();
    assert_eq!(run.result::<i64>().await.unwrap_err().failure().unwrap().code, Code::Cancelled);
    let run = engine.start("nap", &()).id("nap-terminate").await.unwrap();
    run.pause().await.unwrap();
    run.terminate().by("ada").await.unwrap();
    assert_eq!(run.view().await.unwrap().status, Status::Cancelled);
    assert_eq!(run.pause().await.unwrap_err().code(), "SF0105");
}

#[workflow]
async fn undone(ctx: Ctx, (): ()) -> Result<(), Failure> {
    let id = ctx.run_id().clone();
    ctx.step("book", || async { Ok::<_, Failure>(()) })
        .undo(move |()| {
            let undone = id.to_string();
            async move {
                UNDONE.lock().unwrap().push(undone);
                Ok::<_, Failure>(())
            }
        })
        .await?;
    ctx.sleep(HOUR).await
}

static UNDONE: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

#[tokio::test(start_paused = true)]
async fn terminate_undoes_nothing_and_cancel_does() {
    let engine = engine(&Memory::new()).register(undone).start().await.unwrap();
    for id in ["terminated", "called-off"] {
        let run = engine.start("undone", &()).id(id).await.unwrap();
        until("it sleeps", async || run.view().await.unwrap().status == Status::Waiting).await;
        if id == "terminated" {
            run.terminate().by("ada").why("nobody needs it").id("t-1").await.unwrap();
            run.terminate().id("t-1").await.unwrap();
            assert_eq!(run.terminate().await.unwrap_err().code(), "SF0105");
        } else {
            run.cancel().await.unwrap();
        }
        run.result::<()>().await.unwrap_err();
        assert_eq!(run.view().await.unwrap().status, Status::Cancelled);
    }
    assert_eq!(*UNDONE.lock().unwrap(), ["called-off"]);
}

#[tokio::test(start_paused = true)]
async fn the_time_that_all_attempts_have_stands_still_too() {
    #[workflow]
    async fn bounded(ctx: Ctx, (): ()) -> Result<u32, Failure> {
        ctx.step("try", || {
            let call = call(&ctx, "try");
            async move { if call < 3 { Err(Failure::transient("down")) } else { Ok(call) } }
        })
        .retry(Policy::constant(MINUTE).max_attempts(5).deadline(10 * MINUTE))
        .await
    }
    for restarts in [false, true] {
        let (store, id) = (Memory::new(), format!("bounded-{restarts}"));
        let mut engine = engine(&store).register(bounded).start().await.unwrap();
        engine.start("bounded", &()).id(&id).await.unwrap();
        until("it waits", async || engine.run(&id).unwrap().view().await.unwrap().status == Status::Waiting).await;
        engine.run(&id).unwrap().pause().await.unwrap();
        if restarts {
            engine.shutdown().await;
            let clock = VirtualClock::start_at(VirtualClock::start().now().saturating_add(MINUTE));
            engine = Engine::on(store.reopen()).clock(clock).register(bounded).start().await.unwrap();
        }
        pass(HOUR).await;
        engine.run(&id).unwrap().resume().await.unwrap();
        assert_eq!(engine.run(&id).unwrap().result::<u32>().await.unwrap(), 3, "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_id_for_another_verb_is_another_command() {
    let engine = engine(&Memory::new()).register(nap).start().await.unwrap();
    let run = engine.start("nap", &()).id("nap-ids").await.unwrap();
    run.pause().id("c-1").await.unwrap();
    run.resume().id("c-1").await.unwrap();
    assert_ne!(run.view().await.unwrap().status, Status::Paused, "what is acknowledged has happened");
    run.cancel().id("c-1").await.unwrap();
    assert_eq!(run.result::<i64>().await.unwrap_err().failure().unwrap().code, Code::Cancelled);
    run.retry().id("c-1").await.unwrap();
    run.terminate().id("c-1").await.unwrap();
    assert_eq!((run.view().await.unwrap().status, run.view().await.unwrap().epoch), (Status::Cancelled, 2));
}

/// What was done is undone in a minute, at the second attempt.
#[workflow]
async fn slowly_undone(ctx: Ctx, (): ()) -> Result<(), Failure> {
    for name in ["a", "b"] {
        let undoing = ctx.clone();
        ctx.step(name, || async { Ok::<_, Failure>(()) })
            .undo(move |()| {
                let call = call(&undoing, &format!("undo-{name}"));
                async move {
                    tokio::time::sleep(MINUTE).await;
                    if call == 1 { Err(Failure::transient("later")) } else { Ok(()) }
                }
            })
            .await?;
    }
    Err(Failure::permanent("no"))
}

#[tokio::test(start_paused = true)]
async fn undoing_pauses_and_goes_on_and_is_terminated_whatever_the_store_does() {
    for (fault, id) in [(None, "undoing"), (Some(Fault::Fail), "undoing-2"), (Some(Fault::Doubt), "undoing-3")] {
        let store = Memory::new();
        let ill = || fault.iter().for_each(|fault| store.faults().after(0, fault.clone()));
        let engine = engine(&store).register(slowly_undone).start().await.unwrap();
        let run = engine.start("slowly_undone", &()).id(id).await.unwrap();
        until("it is undone", async || calls(id, "undo-b") == 1).await;
        ill();
        while run.pause().id("c-1").await.is_err() {
            pass(SECOND).await;
        }
        pass(5 * HOUR).await;
        assert_eq!((run.view().await.unwrap().status, calls(id, "undo-b"), calls(id, "undo-a")), (Status::Paused, 1, 0), "{id}");
        ill();
        while run.resume().id("c-2").await.is_err() {
            pass(SECOND).await;
        }
        tokio::time::timeout(HOUR, run.result::<()>()).await.expect("it ends").unwrap_err();
        assert_eq!((calls(id, "undo-b"), calls(id, "undo-a")), (2, 2), "{id}");
        run.retry().from_start().await.unwrap();
        until("it is undone again", async || calls(id, "undo-b") == 3).await;
        ill();
        while run.terminate().id("c-3").await.is_err() {
            pass(SECOND).await;
        }
        assert_eq!((run.view().await.unwrap().status, calls(id, "undo-a")), (Status::Cancelled, 2), "{id}");
        assert!(run.replay().await.unwrap().mismatch.is_none(), "{id}");
    }
}
