//! Steps that must not be repeated: in doubt after a crash, until a probe or a person says what happened.
//!
//! Subject: `crates/runtime/src/host/doubt.rs`.

use crate::support::{call, calls, engine, lines, until};
use std::time::Duration;
use steadfast::memory::{Fault, Gate, Memory};
use steadfast::{Ctx, Engine, Failure, Policy, Resolution, SECOND, Status, Wait, workflow};

#[workflow]
async fn pay(ctx: Ctx, probe: String) -> Result<String, Failure> {
    let step = ctx
        .step("pay", || {
            let call = call(&ctx, "pay");
            async move { Ok::<_, Failure>(format!("paid by call {call}")) }
        })
        .not_repeatable();
    let paid = match probe.as_str() {
        "happened" => step.probe(|| async { Ok::<_, Failure>(Some("found".to_string())) }).await?,
        "did not" => step.probe(|| async { Ok::<_, Failure>(None) }).await?,
        "panics" => {
            let panics = || -> std::future::Ready<Result<Option<String>, Failure>> { panic!("no answer") };
            step.probe(panics).await?
        }
        "draws" => {
            let draws = || {
                let drawn = ctx.random();
                async move { Ok::<_, Failure>(Some(drawn.to_string())) }
            };
            step.probe(draws).await?
        }
        "does not know" => step.probe(|| async { Err(Failure::transient("no answer")) }).await?,
        _ => step.await?,
    };
    ctx.step("thank", || async { Ok::<_, Failure>(paid.clone()) }).await
}

#[workflow]
async fn pay_twice(ctx: Ctx, _input: ()) -> Result<u32, Failure> {
    ctx.step("pay", || {
        let call = call(&ctx, "pay");
        async move { if call == 1 { Err(Failure::transient("refused")) } else { Ok(call) } }
    })
    .not_repeatable()
    .retry(Policy::constant(SECOND))
    .await
}

async fn start(store: &Memory) -> Engine {
    engine(store).register(pay).register(pay_twice).start().await.unwrap()
}

/// Starts a payment and crashes while its outcome is being recorded.
async fn crashed(id: &str, probe: &str) -> Memory {
    let store = Memory::new();
    store.faults().after(2, Fault::CrashBefore); // the start and the beginning of the attempt are on record
    let engine = start(&store).await;
    engine.start("pay", &probe).id(id).await.unwrap();
    while !store.is_dead() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(calls(id, "pay"), 1);
    store.reopen()
}

#[tokio::test(start_paused = true)]
async fn without_a_crash_it_costs_one_commit_more() {
    let store = Memory::new();
    let engine = start(&store).await;
    let run = engine.start("pay", &"").id("pay-plain").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "paid by call 1");
    let expected = ["RUN_STARTED", "STEP_STARTED pay#1 a1", "STEP_COMPLETED pay#1 a1", "STEP_COMPLETED thank#1 a1", "RUN_COMPLETED"];
    assert_eq!(lines(&run).await, expected);
    assert_eq!(engine.commits(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_known_is_retried_and_each_attempt_recorded_first() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("pay_twice", &()).id("pay-twice").await.unwrap();
    assert_eq!(run.result::<u32>().await.unwrap(), 2);
    let expected = [
        "RUN_STARTED",
        "STEP_STARTED pay#1 a1",
        "RETRY_SCHEDULED pay#1 a2/5 UNAVAILABLE",
        "STEP_STARTED pay#1 a2",
        "STEP_COMPLETED pay#1 a2",
        "RUN_COMPLETED",
    ];
    assert_eq!(lines(&run).await, expected);
    assert_eq!(run.replay().await.unwrap().mismatch, None);
}

#[tokio::test(start_paused = true)]
async fn a_probe_tells_what_happened() {
    for (probe, result, payments) in [("happened", "found", 1), ("did not", "paid by call 2", 2)] {
        let id = format!("probe-{payments}");
        let engine = start(&crashed(&id, probe).await).await;
        let run = engine.run(&id).unwrap();
        assert_eq!(run.result::<String>().await.unwrap(), result);
        assert_eq!(calls(&id, "pay"), payments);
        assert_eq!(run.replay().await.unwrap().mismatch, None);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_word_the_step_is_in_doubt_and_a_person_says_what_happened() {
    let said = [
        (Resolution::Completed("by hand".into()), Ok("by hand"), 1),
        (Resolution::Failed("it bounced".into()), Err("it bounced"), 1),
        (Resolution::Repeat, Ok("paid by call 2"), 2),
    ];
    for (index, (resolution, result, payments)) in said.into_iter().enumerate() {
        let id = format!("doubt-{index}");
        let probe = if index == 0 { "does not know" } else { "" };
        let store = crashed(&id, probe).await;
        let engine = start(&store).await;
        let run = engine.run(&id).unwrap();
        until("it is in doubt", async || run.view().await.unwrap().status == Status::Waiting).await;
        let view = run.view().await.unwrap();
        let [Wait::InDoubt { step, attempt: 1 }] = &view.waits[..] else { panic!("{view:?}") };
        assert_eq!((step.as_str(), calls(&id, "pay")), ("pay#1", 1), "it is not simply paid again");
        drop((run, engine));

        let store = store.reopen(); // the doubt outlasts another restart
        let engine = start(&store).await;
        let run = engine.run(&id).unwrap();
        assert_eq!(run.view().await.unwrap().waits[0].reason(), "IN_DOUBT");
        assert_eq!(run.signal("in-doubt:pay#1", &"what?").await.unwrap_err().code(), "SF0116"); // not an answer: the question stands
        tokio::time::sleep(SECOND).await;
        assert_eq!(run.view().await.unwrap().waits[0].reason(), "IN_DOUBT");
        run.resolve("pay#1", resolution).await.unwrap();
        match (run.result::<String>().await, result) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(error), Err(expected)) => assert_eq!(error.failure().unwrap().message, expected),
            (found, expected) => panic!("{found:?} is not {expected:?}"),
        }
        assert_eq!(calls(&id, "pay"), payments);
        assert_eq!(run.replay().await.unwrap().mismatch, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_panics_or_asks_for_something_durable_does_not_know() {
    for probe in ["panics", "draws"] {
        let id = format!("probe-{probe}");
        let engine = start(&crashed(&id, probe).await).await;
        let run = engine.run(&id).unwrap();
        until("it is in doubt", async || run.view().await.unwrap().status == Status::Waiting).await;
        assert_eq!(run.view().await.unwrap().waits[0].reason(), "IN_DOUBT");
        run.resolve("pay#1", Resolution::Completed("by hand".into())).await.unwrap();
        assert_eq!(run.result::<String>().await.unwrap(), "by hand");
        assert_eq!(run.replay().await.unwrap().mismatch, None);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_not_kept_for_the_next_doubt() {
    let store = crashed("answered-twice", "").await;
    let engine = start(&store).await;
    let run = engine.run("answered-twice").unwrap();
    until("it is in doubt", async || run.view().await.unwrap().status == Status::Waiting).await;
    store.faults().after(2, Fault::CrashBefore); // the answer, and that the attempt begins again, are on record
    run.resolve("pay#1", Resolution::Repeat).await.unwrap();
    run.resolve("pay#1", Resolution::Repeat).await.unwrap_err();
    while !store.is_dead() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let engine = start(&store.reopen()).await;
    let run = engine.run("answered-twice").unwrap();
    tokio::time::sleep(SECOND).await;
    assert_eq!(run.view().await.unwrap().waits[0].reason(), "IN_DOUBT");
    assert_eq!(calls("answered-twice", "pay"), 2, "it is paid once for each time that a person said so");
}

/// The first attempt pays and then hangs, or panics.
#[workflow]
async fn pay_and_vanish(ctx: Ctx, (how, probe): (String, String)) -> Result<String, Failure> {
    let step = ctx
        .step("pay", || {
            let (call, hangs) = (call(&ctx, "pay"), how == "hangs");
            async move {
                match (call, hangs) {
                    (1, true) => std::future::pending().await,
                    (1, false) => panic!("after it was paid"),
                    _ => Ok::<_, Failure>(format!("paid by call {call}")),
                }
            }
        })
        .not_repeatable()
        .timeout(SECOND)
        .retry(Policy::constant(SECOND));
    match probe.as_str() {
        "happened" => step.probe(|| async { Ok::<_, Failure>(Some("found".to_string())) }).await,
        "did not" => step.probe(|| async { Ok::<_, Failure>(None) }).await,
        _ => step.await,
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_was_cut_off_is_in_doubt_and_not_simply_made_again() {
    let engine = engine(&Memory::new()).register(pay_and_vanish).start().await.unwrap();
    for how in ["hangs", "panics"] {
        let start = async |probe: &str| engine.start("pay_and_vanish", &(how, probe)).id(format!("{how}-{}", probe.len())).await.unwrap();

        let run = start("happened").await;
        assert_eq!(run.result::<String>().await.unwrap(), "found");
        assert_eq!(calls(run.id().as_str(), "pay"), 1);
        assert_eq!(run.replay().await.unwrap().mismatch, None);

        let run = start("did not").await;
        assert_eq!(run.result::<String>().await.unwrap(), "paid by call 2");
        assert!(lines(&run).await[2].starts_with("RETRY_SCHEDULED pay#1 a2/5"), "it was an attempt: {:?}", lines(&run).await);
        assert_eq!(run.replay().await.unwrap().mismatch, None);

        let run = start("").await;
        tokio::time::sleep(2 * SECOND).await;
        until("it is in doubt", async || run.view().await.unwrap().status == Status::Waiting).await;
        assert_eq!((run.view().await.unwrap().waits[0].reason(), calls(run.id().as_str(), "pay")), ("IN_DOUBT", 1));
        run.resolve("pay#1", Resolution::Repeat).await.unwrap();
        assert_eq!(run.result::<String>().await.unwrap(), "paid by call 2");
        assert_eq!(run.replay().await.unwrap().mismatch, None);
    }
}

/// Books a room, which can be undone, and pays, which takes an hour the first time.
#[workflow]
async fn book_and_pay(ctx: Ctx, probe: bool) -> Result<String, Failure> {
    ctx.step("book", || async { Ok::<_, Failure>(()) })
        .undo(|()| async { Ok::<_, Failure>(()) })
        .await?;
    let paying = ctx
        .step("pay", || {
            let call = call(&ctx, "pay");
            async move {
                if call == 1 {
                    tokio::time::sleep(steadfast::HOUR).await;
                }
                Ok::<_, Failure>(format!("paid by call {call}"))
            }
        })
        .not_repeatable();
    if probe { paying.probe(|| async { Ok::<_, Failure>(Some("found".to_string())) }).await } else { paying.await }
}

/// A run that ended, or was interrupted, while it paid.
async fn cut_off(how: &str, probe: bool) -> (Engine, steadfast::Run) {
    let start = async |store: &Memory| {
        let builder = engine(store).register_with(book_and_pay, steadfast::Settings::new().manual_recovery());
        builder.start().await.unwrap()
    };
    let (store, id) = (Memory::new(), format!("{how}-{probe}"));
    let first = start(&store).await;
    let run = first.start("book_and_pay", &probe).id(&id).await.unwrap();
    until("it pays", async || calls(&id, "pay") == 1).await;
    match how {
        "terminated" => run.terminate().await.unwrap(),
        "interrupted" => {
            drop((run, first));
            let second = start(&store.reopen()).await;
            let run = second.run(&id).unwrap();
            until("it is interrupted", async || run.view().await.unwrap().status == Status::Interrupted).await;
            return (second, run);
        }
        _ => {
            run.cancel().await.unwrap();
            run.result::<String>().await.unwrap_err();
        }
    }
    (first, run)
}

#[tokio::test(start_paused = true)]
async fn what_may_have_happened_is_still_in_doubt_in_the_next_life() {
    for how in ["terminated", "interrupted"] {
        let (_engine, run) = cut_off(how, true).await;
        let preview = run.retry().preview().await.unwrap();
        assert_eq!((preview.runs_again.len(), preview.in_doubt[0].as_str(), preview.kept[0].as_str()), (0, "pay#1", "book#1"), "{how}");
        run.retry().await.unwrap();
        assert_eq!(run.result::<String>().await.unwrap(), "found", "{how}");

        let (_engine, run) = cut_off(how, false).await;
        run.retry().await.unwrap();
        until("it asks", async || run.view().await.unwrap().status == Status::Waiting).await;
        assert!(matches!(&run.view().await.unwrap().waits[..], [Wait::InDoubt { attempt: 1, .. }]), "{how}");
        run.retry().await.unwrap();
        tokio::time::sleep(SECOND).await;
        assert_eq!(calls(run.id().as_str(), "pay"), 1, "{how}: a retry is no answer");
        run.resolve("pay#1", Resolution::Completed("by hand".into())).await.unwrap();
        assert_eq!(run.result::<String>().await.unwrap(), "by hand", "{how}");
        assert!(run.replay().await.unwrap().mismatch.is_none(), "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_names_the_step_or_supplies_its_output_has_no_doubt() {
    let (_engine, run) = cut_off("interrupted-named", false).await;
    run.retry().from_step("pay").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "paid by call 2");
    let (_engine, run) = cut_off("supplied", false).await;
    run.retry().output("pay", "by card").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "by card");
    assert_eq!(calls(run.id().as_str(), "pay"), 1);
}

/// A slow step, and then one that must not be repeated.
#[workflow]
async fn pack_and_pay(ctx: Ctx, _input: ()) -> Result<u32, Failure> {
    ctx.step("pack", || {
        call(&ctx, "pack");
        async {
            tokio::time::sleep(5 * SECOND).await;
            Ok::<_, Failure>(())
        }
    })
    .await?;
    ctx.step("pay", || {
        let call = call(&ctx, "pay");
        async move { Ok::<_, Failure>(call) }
    })
    .not_repeatable()
    .await
}

/// An engine that packs for that run.
async fn packing(store: &Memory, id: &str) -> Engine {
    let engine = engine(store).register(pack_and_pay).start().await.unwrap();
    engine.start("pack_and_pay", &()).id(id).await.unwrap();
    until("it packs", async || calls(id, "pack") == 1).await;
    engine
}

/// What would be in doubt is not said to begin while nothing begins.
#[tokio::test(start_paused = true)]
async fn an_end_in_good_order_leaves_nothing_in_doubt() {
    let store = Memory::new();
    packing(&store, "packed").await.shutdown().await;
    assert_eq!((calls("packed", "pack"), calls("packed", "pay")), (1, 0));
    let engine = engine(&store).register(pack_and_pay).start().await.unwrap();
    assert_eq!(engine.run("packed").unwrap().result::<u32>().await.unwrap(), 1);
    assert_eq!(calls("packed", "pack"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_a_run_is_paused_leaves_nothing_in_doubt() {
    let store = Memory::new();
    let first = packing(&store, "paused").await;
    first.run("paused").unwrap().pause().await.unwrap();
    tokio::time::sleep(6 * SECOND).await;
    assert_eq!(calls("paused", "pay"), 0);
    store.crash();
    let engine = engine(&store.another()).register(pack_and_pay).start().await.unwrap();
    let run = engine.run("paused").unwrap();
    run.resume().await.unwrap();
    assert_eq!(run.result::<u32>().await.unwrap(), 1);
    drop(first);
}

#[tokio::test(start_paused = true)]
async fn what_is_on_record_to_begin_begins_though_the_run_is_paused_or_the_engine_ends() {
    for (id, pauses) in [("recorded-and-paused", true), ("recorded-and-ended", false)] {
        let (store, gate) = (Memory::new(), Gate::default());
        let (held, says) = (gate.clone(), "STEP_STARTED");
        store.faults().rule(move |batch| {
            let begins = batch.events.iter().any(|append| append.record.kind == says);
            begins.then(|| Fault::Hold(held.clone()))
        });
        let first = packing(&store, id).await;
        tokio::time::sleep(6 * SECOND).await; // what says that it begins is on its way to the store
        assert_eq!(calls(id, "pay"), 0);
        let run = first.run(id).unwrap();
        let ends = async {
            match pauses {
                true => drop(run.pause().await),
                false => first.clone().shutdown().await,
            }
        };
        let opens = async {
            tokio::time::sleep(SECOND).await;
            gate.open();
        };
        tokio::join!(ends, opens);
        tokio::time::sleep(SECOND).await;
        assert_eq!(calls(id, "pay"), 1, "{id}");
        store.faults().clear();
        if pauses {
            assert_eq!(run.result::<u32>().await.unwrap(), 1, "what was in flight has ended, and nothing came after it");
        } else {
            let engine = engine(&store).register(pack_and_pay).start().await.unwrap();
            assert_eq!(engine.run(id).unwrap().result::<u32>().await.unwrap(), 1, "it has ended with the engine, and is on record");
        }
    }
}

/// The store cannot write that the step begins; before the host says so again, the run is paused.
#[tokio::test(start_paused = true)]
async fn what_is_not_on_record_to_begin_waits_for_the_end_of_a_pause() {
    for (id, calls_off) in [("unrecorded-and-paused", false), ("unrecorded-and-called-off", true)] {
        let (store, mut fails) = (Memory::new(), true);
        store.faults().rule(move |batch| {
            let begins = batch.events.iter().any(|append| append.record.kind == "STEP_STARTED");
            (begins && std::mem::take(&mut fails)).then_some(Fault::Fail)
        });
        let engine = packing(&store, id).await;
        let run = engine.run(id).unwrap();
        tokio::time::sleep(5 * SECOND).await;
        until("the store writes again", async || run.pause().await.is_ok()).await;
        if calls_off {
            run.cancel().await.unwrap();
            run.pause().await.unwrap();
        }
        tokio::time::sleep(6 * SECOND).await;
        let journal = lines(&run).await;
        assert!(journal.iter().any(|line| line.contains("STEP_COMPLETED pack#1")), "what was in flight is on record: {journal:#?}");
        assert_eq!((calls(id, "pack"), calls(id, "pay")), (1, 0), "{id}: {journal:#?}");
        run.resume().await.unwrap();
        let result = run.result::<u32>().await;
        if calls_off {
            assert_eq!((run.view().await.unwrap().status, calls(id, "pay")), (Status::Cancelled, 0));
        } else {
            assert_eq!((result.unwrap(), calls(id, "pay")), (1, 1));
        }
    }
}
