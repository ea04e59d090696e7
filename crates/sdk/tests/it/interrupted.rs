//! Manual recovery: a run whose process died with work under way does not go on by itself.
//!
//! Subject: `crates/runtime/src/shard/load.rs`.
//! Subject: `crates/kernel/src/run/interrupt.rs`.

use crate::support::{call, calls, engine, lines, until};
use steadfast::memory::{Fault, Gate, Memory};
use steadfast::{Code, Ctx, Engine, Failure, HOUR, MINUTE, Policy, SECOND, Settings, Status, workflow};

/// Three stages; the second takes an hour, or fails, or waits for a word.
#[workflow]
async fn rollout(ctx: Ctx, second: String) -> Result<String, Failure> {
    stage(&ctx, "drain", "").await?;
    if second == "asks" {
        ctx.signal::<String>("go").await?;
    } else {
        stage(&ctx, "switch", &second).await?;
    }
    stage(&ctx, "verify", "").await?;
    Ok("done".into())
}

async fn stage(ctx: &Ctx, name: &str, how: &str) -> Result<(), Failure> {
    ctx.step(name, || {
        let call = call(ctx, name);
        async move {
            match how {
                "hangs" if call == 1 => tokio::time::sleep(HOUR).await,
                "fails" if call == 1 => return Err(Failure::transient("down")),
                _ => {}
            }
            Ok(())
        }
    })
    .retry(Policy::constant(HOUR).max_attempts(3))
    .await
}

async fn start(store: &Memory) -> Engine {
    engine(store).register_with(rollout, Settings::new().manual_recovery()).start().await.unwrap()
}

/// Dies while the second stage is as it is said to be; the engine after that.
async fn died(how: &str, id: &str) -> Engine {
    let store = Memory::new();
    let first = start(&store).await;
    let run = first.start("rollout", how).id(id).await.unwrap();
    match how {
        "hangs" => until("it hangs", async || calls(id, "switch") == 1).await,
        _ => until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await,
    }
    drop((run, first));
    start(&store.reopen()).await
}

#[tokio::test(start_paused = true)]
async fn with_an_attempt_in_flight_or_in_backoff_it_is_interrupted() {
    for how in ["hangs", "fails"] {
        let id = format!("interrupted-{how}");
        let engine = died(how, &id).await;
        let run = engine.run(&id).unwrap();
        until("it is interrupted", async || run.view().await.unwrap().status == Status::Interrupted).await;
        tokio::time::sleep(5 * HOUR).await;
        assert_eq!((calls(&id, "switch"), run.view().await.unwrap().status), (1, Status::Interrupted), "never by itself");
        assert_eq!(lines(&run).await.last().unwrap(), "RUN_INTERRUPTED");
        assert!(run.why().await.unwrap().to_string().contains("retry it, or cancel it"));
        for refused in [run.pause().await, run.resume().await] {
            assert_eq!(refused.unwrap_err().code(), "SF0113");
        }
        run.retry().by("ada").await.unwrap();
        assert_eq!(run.result::<String>().await.unwrap(), "done");
        assert_eq!((calls(&id, "drain"), calls(&id, "switch"), calls(&id, "verify")), (1, 2, 1), "only what was not done");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_only_waits_for_a_person_still_waits() {
    let engine = died("asks", "still-waits").await;
    let run = engine.run("still-waits").unwrap();
    tokio::time::sleep(MINUTE).await;
    assert_eq!(run.view().await.unwrap().status, Status::Waiting);
    run.signal("go", "yes").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "done");
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_run_can_be_called_off() {
    let engine = died("hangs", "called-off").await;
    let run = engine.run("called-off").unwrap();
    until("it is interrupted", async || run.view().await.unwrap().status == Status::Interrupted).await;
    run.cancel().by("ada").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap_err().failure().unwrap().code, Code::Cancelled);
    assert_eq!(calls("called-off", "switch"), 1, "nothing was begun for it");
}

#[workflow]
async fn quick(ctx: Ctx, (): ()) -> Result<(), Failure> {
    ctx.sleep(SECOND).await
}

/// An attempt hangs while a child is waited for.
#[workflow]
async fn beside_a_child(ctx: Ctx, (): ()) -> Result<(), Failure> {
    let (hung, child) = ctx.join((stage(&ctx, "switch", "hangs"), ctx.start_and_wait::<_, ()>("quick", &()))).await;
    hung.and(child)
}

async fn start_family(store: &Memory) -> Engine {
    let builder = engine(store).register(quick);
    builder.register_with(beside_a_child, Settings::new().manual_recovery()).start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_others_say_at_the_restart_does_not_make_it_go_on() {
    for commits in 0..12 {
        let id = format!("told-{commits}");
        let store = Memory::new();
        let first = start_family(&store).await;
        let run = first.start("beside_a_child", &()).id(&id).await.unwrap();
        until("it hangs", async || calls(&id, "switch") == 1).await;
        store.faults().after(commits, Fault::CrashAfter);
        tokio::time::sleep(MINUTE).await;
        drop((run, first));
        let second = start_family(&store.reopen()).await;
        let run = second.run(&id).unwrap();
        tokio::time::sleep(MINUTE).await;
        assert_eq!((calls(&id, "switch"), run.view().await.unwrap().status), (1, Status::Interrupted), "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_does_not_go_on_because_the_store_could_not_record_that_it_does_not() {
    for (fault, id) in [(Fault::Fail, "failed-interrupt"), (Fault::Doubt, "doubted-interrupt")] {
        let store = Memory::new();
        let first = start_family(&store).await;
        let run = first.start("beside_a_child", &()).id(id).await.unwrap();
        until("it hangs", async || calls(id, "switch") == 1).await;
        drop((run, first));
        let store = store.reopen();
        store.faults().after(0, fault);
        let second = start_family(&store).await;
        let run = second.run(id).unwrap();
        tokio::time::sleep(MINUTE).await;
        assert_eq!((calls(id, "switch"), run.view().await.unwrap().status), (1, Status::Interrupted), "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_was_called_off_before_its_process_died_goes_on_to_its_end() {
    let store = Memory::new();
    let first = start(&store).await;
    let run = first.start("rollout", "hangs").id("called-off-before").await.unwrap();
    until("it hangs", async || calls("called-off-before", "switch") == 1).await;
    store.faults().after(1, Fault::CrashBefore); // the request is on record, the end is not
    run.cancel().by("ada").await.unwrap();
    tokio::time::sleep(MINUTE).await;
    drop((run, first));
    let second = start(&store.reopen()).await;
    let run = second.run("called-off-before").unwrap();
    assert_eq!(run.result::<String>().await.unwrap_err().failure().unwrap().code, Code::Cancelled);
    assert_eq!(calls("called-off-before", "switch"), 1);
}

/// A restart has it on record that a run does not go on by itself; who calls the run off before that is there is not left waiting.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_called_off_while_its_interruption_is_being_recorded_ends() {
    let (store, gate, id) = (Memory::new(), Gate::default(), "called-off-early");
    let first = start(&store).await;
    first.start("rollout", "hangs").id(id).await.unwrap();
    until("it hangs", async || calls(id, "switch") == 1).await;
    drop(first);
    let store = store.reopen();
    store.faults().after(0, Fault::Hold(gate.clone()));
    let second = start(&store).await;
    let run = second.run(id).unwrap();
    let cancel = tokio::spawn({
        let cancel = run.cancel();
        async move { cancel.await }
    });
    tokio::time::sleep(SECOND).await;
    gate.open();
    cancel.await.unwrap().unwrap();
    let ended = tokio::time::timeout(MINUTE, run.result::<String>()).await;
    ended.expect("nobody has to do anything more").unwrap_err();
    assert_eq!(lines(&run).await, ["RUN_STARTED", "STEP_COMPLETED drain#1 a1", "RUN_INTERRUPTED", "RUN_CANCEL_REQUESTED", "RUN_CANCELLED"]);
}
