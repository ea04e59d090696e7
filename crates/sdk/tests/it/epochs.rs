//! Another life of a run: from the failed step, from a named one, from the start, with another input or supplied outputs.
//!
//! Subject: `crates/kernel/src/run/retry.rs`.

use crate::support::{call, calls, engine, lines};
use steadfast::memory::Memory;
use steadfast::{Ctx, Engine, Error, Failure, HOUR, Policy, Run, Status, workflow};

/// Three steps, of which the second fails in the first life of the run.
#[workflow]
async fn trip(ctx: Ctx, to: String) -> Result<String, Failure> {
    let flight = step(&ctx, "flight", false).await?;
    let hotel = step(&ctx, "hotel", true).await?;
    let car = step(&ctx, "car", false).await?;
    Ok(format!("{to}: {flight}, {hotel}, {car}"))
}

/// Tells which call it was; the first one fails if it is to.
async fn step(ctx: &Ctx, name: &str, fails: bool) -> Result<String, Failure> {
    ctx.step(name, || {
        let call = call(ctx, name);
        let key = ctx.idempotency_key().unwrap_or_default();
        async move { if fails && call == 1 { Err(Failure::permanent("no room")) } else { Ok(format!("{name} {call} {key}")) } }
    })
    .await
}

async fn start(store: &Memory) -> Engine {
    engine(store).register(trip).register(booked).register(patient).start().await.unwrap()
}

async fn failed(engine: &Engine, id: &str) -> Run {
    let run = engine.start("trip", &"Rome").id(id).await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap_err().failure().unwrap().message, "no room");
    run
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_goes_on_from_its_failed_step_and_keeps_what_came_before() {
    let engine = start(&Memory::new()).await;
    let run = failed(&engine, "from-failed").await;
    run.retry().by("ada").why("there is room now").await.unwrap();
    let result: String = run.result().await.unwrap();
    assert_eq!(result, "Rome: flight 1 from-failed/flight#1/1, hotel 2 from-failed/hotel#1/1, car 1 from-failed/car#1/1");
    let view = run.view().await.unwrap();
    assert_eq!((view.status, view.epoch), (Status::Completed, 2));
    let journal = lines(&run).await;
    assert_eq!(
        journal[1..],
        [
            "STEP_COMPLETED flight#1 a1",
            "STEP_FAILED hotel#1 a1 FAILED_PRECONDITION",
            "RUN_FAILED FAILED_PRECONDITION",
            "RUN_RETRIED",
            "STEP_COMPLETED hotel#1 a1",
            "STEP_COMPLETED car#1 a1",
            "RUN_COMPLETED"
        ]
    );
    assert!(run.replay().await.unwrap().mismatch.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_completed_run_is_retried_from_a_named_step_with_new_keys_for_what_succeeded() {
    let engine = start(&Memory::new()).await;
    let run = failed(&engine, "from-named").await;
    run.retry().await.unwrap();
    run.result::<String>().await.unwrap();
    let refused = run.retry().await.unwrap_err();
    assert_eq!(refused.code(), "SF0113", "a completed run has no failed step: {refused}");
    run.retry().from_step("hotel").await.unwrap();
    let result: String = run.result().await.unwrap();
    assert_eq!(result, "Rome: flight 1 from-named/flight#1/1, hotel 3 from-named/hotel#1/2, car 2 from-named/car#1/2");
    let unknown = run.retry().from_step("train").await.unwrap_err();
    assert_eq!(unknown.code(), "SF0114", "{unknown}");
}

#[tokio::test(start_paused = true)]
async fn a_retry_from_the_start_with_another_input_keeps_nothing() {
    let engine = start(&Memory::new()).await;
    let run = failed(&engine, "from-start").await;
    run.retry().input("Oslo").await.unwrap();
    let result: String = run.result().await.unwrap();
    assert!(result.starts_with("Oslo: flight 2 from-start/flight#1/2, hotel 2 from-start/hotel#1/1, car 1"), "{result}");
}

#[tokio::test(start_paused = true)]
async fn a_step_with_a_supplied_output_is_not_executed() {
    let store = Memory::new();
    let engine = start(&store).await;
    let run = failed(&engine, "supplied").await;
    run.retry().output("hotel", "a tent").output("car", "a bike").await.unwrap();
    let result: String = run.result().await.unwrap();
    assert_eq!(result, "Rome: flight 1 supplied/flight#1/1, a tent, a bike");
    assert_eq!((calls("supplied", "hotel"), calls("supplied", "car")), (1, 0));
    assert!(run.replay().await.unwrap().mismatch.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_preview_says_what_would_happen_and_changes_nothing() {
    let engine = start(&Memory::new()).await;
    let run = failed(&engine, "preview").await;
    let before = lines(&run).await;
    let preview = run.retry().preview().await.unwrap();
    let names = |steps: &[steadfast::StepId]| steps.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!((names(&preview.runs_again), names(&preview.kept)), (vec!["hotel#1".into()], vec!["flight#1".to_string()]));
    assert_eq!(preview.repeated_keys, ["preview/hotel#1/1"], "no success was recorded under it");
    let preview = run.retry().from_start().preview().await.unwrap();
    assert_eq!(names(&preview.runs_again), ["flight#1", "hotel#1"]);
    assert_eq!((preview.new_keys, preview.repeated_keys), (vec!["preview/flight#1/2".into()], vec!["preview/hotel#1/1".to_string()]));
    assert_eq!(lines(&run).await, before);
}

#[tokio::test(start_paused = true)]
async fn the_same_command_again_is_one() {
    let engine = start(&Memory::new()).await;
    let run = failed(&engine, "command-id").await;
    for _ in 0..3 {
        run.retry().id("c-1").await.unwrap();
        run.result::<String>().await.unwrap();
    }
    assert_eq!(run.view().await.unwrap().epoch, 2);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_under_way_is_not_retried() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("patient", &()).id("under-way").await.unwrap();
    run.pause().await.unwrap();
    let error: Error = run.retry().await.unwrap_err();
    assert_eq!(error.code(), "SF0113", "{error}");
    run.resume().await.unwrap();
}

/// What was booked is taken back when the run fails.
#[workflow]
async fn booked(ctx: Ctx, (): ()) -> Result<String, Failure> {
    let room = ctx
        .step("book", || {
            let (call, key) = (call(&ctx, "book"), ctx.idempotency_key().unwrap_or_default());
            async move { Ok::<_, Failure>(format!("room {call} {key}")) }
        })
        .undo(|_: String| async { Ok::<_, Failure>(()) })
        .await?;
    let price = step(&ctx, "price", false).await?;
    step(&ctx, "pay", true).await?;
    Ok(format!("{room}; {price}"))
}

#[tokio::test(start_paused = true)]
async fn what_was_undone_is_never_carried_over() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("booked", &()).id("undone").await.unwrap();
    run.result::<String>().await.unwrap_err();
    run.retry().await.unwrap();
    let result: String = run.result().await.unwrap();
    assert_eq!(result, "room 2 undone/book#1/2; price 2 undone/price#1/2", "what was known of an undone room may be about that room");
}

/// Waits for a word, then for another.
#[workflow]
async fn patient(ctx: Ctx, (): ()) -> Result<String, Failure> {
    let first: String = ctx.signal("first").await?;
    let done = step(&ctx, "work", false).await?;
    let second: String = ctx.signal("second").within(HOUR).await?;
    Ok(format!("{first} {done} {second}"))
}

#[tokio::test(start_paused = true)]
async fn a_waiting_run_is_retried_and_asks_again_for_what_it_had_taken() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("patient", &()).id("waiting").await.unwrap();
    run.signal("first", "yes").id("s-1").await.unwrap();
    crate::support::until("it waits for the second word", async || calls("waiting", "work") == 1).await;
    crate::support::until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
    let preview = run.retry().from_start().preview().await.unwrap();
    assert_eq!(preview.signals_asked_again, ["first"]);
    run.retry().from_start().await.unwrap();
    assert!(run.signal("first", "no").id("s-1").await.unwrap(), "it was spent, so its id is free again");
    run.signal("second", "indeed").await.unwrap();
    let result: String = run.result().await.unwrap();
    assert_eq!(result, "no work 2 waiting/work#1/2 indeed");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_can_be_retried() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("patient", &()).id("cancelled").await.unwrap();
    run.cancel().await.unwrap();
    run.result::<String>().await.unwrap_err();
    run.retry().await.unwrap();
    run.signal("first", "yes").await.unwrap();
    run.signal("second", "yes").await.unwrap();
    assert!(run.result::<String>().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn attempts_begin_again_from_one_in_a_new_life() {
    #[workflow]
    async fn stubborn(ctx: Ctx, (): ()) -> Result<u32, Failure> {
        ctx.step("try", || {
            let call = call(&ctx, "try");
            async move { if call <= 3 { Err(Failure::transient("not yet")) } else { Ok(call) } }
        })
        .retry(Policy::constant(steadfast::SECOND).max_attempts(2))
        .await
    }
    let engine = engine(&Memory::new()).register(stubborn).start().await.unwrap();
    let run = engine.start("stubborn", &()).id("stubborn").await.unwrap();
    run.result::<u32>().await.unwrap_err();
    run.retry().await.unwrap();
    assert_eq!(run.result::<u32>().await.unwrap(), 4, "two attempts in each life");
}

#[tokio::test(start_paused = true)]
async fn who_and_why_have_a_bound_and_tenants_a_form() {
    let engine = start(&Memory::new()).await;
    let run = failed(&engine, "bounds").await;
    for wrong in [run.retry().by("").await, run.retry().why("x".repeat(5000)).await, run.retry().id("x".repeat(300)).await] {
        assert_eq!(wrong.unwrap_err().code(), "SF0110");
    }
    assert_eq!(run.view().await.unwrap().epoch, 1, "a refusal leaves no trace");
    assert_eq!(engine.start("trip", &"Rome").tenant("a b").await.err().unwrap().code(), "SF0101");
}

/// One branch per item; odd ones fail in the first life, and the later the number the sooner it is done.
#[workflow]
async fn fan_out(ctx: Ctx, items: u64) -> Result<u64, Failure> {
    let branches = (0..items).map(|n| {
        let ctx = ctx.clone();
        async move {
            let name = format!("item-{n}");
            let prepared = step(&ctx, &format!("prepare-{n}"), false).await?;
            ctx.sleep(steadfast::SECOND * (items - n) as u32).await?;
            step(&ctx, &name, n % 2 == 1).await.map(|done| (prepared, done))
        }
    });
    let results = ctx.all(branches).await;
    let done = results
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
        .map_err(|failure| Failure::permanent(format!("not all: {}", failure.message)))?;
    step(&ctx, "sum", false).await?;
    Ok(done.len() as u64)
}

#[tokio::test(start_paused = true)]
async fn what_other_branches_did_is_kept_and_all_that_failed_side_by_side_begins_again() {
    let store = Memory::new();
    let first = engine(&store).register(fan_out).start().await.unwrap();
    let run = first.start("fan_out", &6).id("fan-out").await.unwrap();
    run.result::<u64>().await.unwrap_err();
    let preview = run.retry().preview().await.unwrap();
    let again: Vec<_> = preview.runs_again.iter().map(ToString::to_string).collect();
    assert_eq!(again, ["all#1.1/item-1#1", "all#1.3/item-3#1", "all#1.5/item-5#1"]);
    run.retry().await.unwrap();
    assert_eq!(run.result::<u64>().await.unwrap(), 6);
    for n in 0..6 {
        assert_eq!((calls("fan-out", &format!("prepare-{n}")), calls("fan-out", &format!("item-{n}"))), (1, 1 + n % 2), "{n}");
    }
    assert!(run.replay().await.unwrap().mismatch.is_none());
    run.retry().from_step("all#1.2/item-2#1").await.unwrap();
    assert_eq!(run.result::<u64>().await.unwrap(), 6);
    assert_eq!(
        (calls("fan-out", "item-2"), calls("fan-out", "item-0"), calls("fan-out", "sum")),
        (2, 1, 2),
        "and what came after they met"
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_life_has_its_own_time() {
    #[workflow]
    async fn slow(ctx: Ctx, (): ()) -> Result<u64, Failure> {
        let begun = ctx.now();
        ctx.sleep(HOUR).await?;
        ctx.step("try", || {
            let call = call(&ctx, "try");
            async move {
                tokio::time::sleep(steadfast::MINUTE).await;
                if call == 1 { Err(Failure::permanent("down")) } else { Ok(()) }
            }
        })
        .retry(Policy::constant(steadfast::MINUTE).deadline(10 * steadfast::MINUTE))
        .await?;
        Ok(ctx.now().saturating_since(begun).as_secs())
    }
    let engine = engine(&Memory::new()).register(slow).start().await.unwrap();
    let run = engine.start("slow", &()).id("slow").await.unwrap();
    run.result::<u64>().await.unwrap_err();
    tokio::time::sleep(24 * HOUR).await;
    run.retry().await.unwrap();
    assert_eq!(run.result::<u64>().await.unwrap(), 25 * 3600 + 120, "the time that all attempts have counts from the retry");
    tokio::time::sleep(24 * HOUR).await;
    let begun = tokio::time::Instant::now();
    run.retry().from_start().await.unwrap();
    assert_eq!(run.result::<u64>().await.unwrap(), 3660, "from the start is from now");
    assert_eq!(begun.elapsed().as_secs(), 3660, "and the code sleeps again");
    assert!(run.replay().await.unwrap().mismatch.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_attempt_is_in_flight_after_a_delay_is_not_retried() {
    #[workflow]
    async fn slow_second(ctx: Ctx, (): ()) -> Result<u32, Failure> {
        ctx.step("try", || {
            let call = call(&ctx, "slow");
            async move {
                if call == 1 {
                    return Err(Failure::transient("not yet"));
                }
                tokio::time::sleep(HOUR).await;
                Ok(call)
            }
        })
        .retry(Policy::constant(steadfast::SECOND).max_attempts(3))
        .await
    }
    let engine = engine(&Memory::new()).register(slow_second).start().await.unwrap();
    let run = engine.start("slow_second", &()).id("busy-after-a-delay").await.unwrap();
    crate::support::until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
    run.retry().preview().await.unwrap();
    tokio::time::sleep(steadfast::MINUTE).await;
    let view = run.view().await.unwrap();
    assert_eq!((view.status, &view.waits[..]), (Status::Running, &[][..]), "its second attempt is in flight");
    assert_eq!(run.retry().await.unwrap_err().code(), "SF0113");
    assert_eq!(run.retry().preview().await.unwrap_err().code(), "SF0113");
    assert_eq!((run.result::<u32>().await.unwrap(), calls("busy-after-a-delay", "slow")), (2, 2));
}
