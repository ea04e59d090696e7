//! Undo and cancel: what a run did is taken back, newest outcome first, whatever happens meanwhile.
//!
//! Subject: `crates/runtime/src/host/undo.rs`.

use crate::support::{call, calls, engine, lines, until};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;
use steadfast::memory::{Fault, Gate, Memory};
use steadfast::{Code, Ctx, Engine, Error, Failure, HOUR, MINUTE, Policy, Resolution, SECOND, Status, Store, Wait, workflow};

/// What was undone, by run.
static UNDONE: LazyLock<Mutex<Vec<(String, String)>>> = LazyLock::new(Mutex::default);

fn undone(run: &str) -> Vec<String> {
    UNDONE.lock().unwrap().iter().filter(|(of, _)| of == run).map(|(_, what)| what.clone()).collect()
}

async fn take_back(run: String, what: String) -> Result<(), Failure> {
    UNDONE.lock().unwrap().push((run, what));
    Ok(())
}

/// Books three things, of which the slowest is booked last, and then does what it is told to.
#[workflow]
async fn book(ctx: Ctx, then: String) -> Result<String, Failure> {
    let book = |what: &'static str, ms: u64| {
        let (ctx, run) = (&ctx, ctx.run_id().to_string());
        async move {
            ctx.step(what, || async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Ok::<_, Failure>(format!("{what} booked"))
            })
            .undo(move |booked| take_back(run.clone(), booked))
            .await
        }
    };
    let (flight, hotel) = ctx.join((book("flight", 20), book("hotel", 10))).await;
    flight.and(hotel)?;
    book("car", 5).await?;
    match then.as_str() {
        "fail" => Err(Failure::permanent("no seats").code(Code::FailedPrecondition)),
        "sleep" => ctx.sleep(24 * HOUR).await.map(|()| "slept".into()),
        "hang" => ctx.step("hang", || async { std::future::pending::<Result<String, Failure>>().await }).await,
        _ => Ok("booked".into()),
    }
}

async fn start(store: &Memory) -> Engine {
    engine(store)
        .register(book)
        .register(stubborn)
        .register(undo_fails)
        .register(undo_in_time)
        .start()
        .await
        .unwrap()
}

const NEWEST_FIRST: [&str; 3] = ["car booked", "flight booked", "hotel booked"];

#[tokio::test(start_paused = true)]
async fn a_failed_run_is_undone_newest_outcome_first() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("book", &"fail").id("undo-fail").await.unwrap();
    let error = run.result::<String>().await.unwrap_err();
    assert_eq!(error.failure().unwrap().message, "no seats");
    assert_eq!(undone("undo-fail"), NEWEST_FIRST, "by completion, not by start");
    let expected = [
        "RUN_STARTED",
        "STEP_COMPLETED join#1.1/hotel#1 a1",
        "STEP_COMPLETED join#1.0/flight#1 a1",
        "STEP_COMPLETED car#1 a1",
        "RUN_COMPENSATING FAILED_PRECONDITION",
        "UNDO_COMPLETED car#1 a1",
        "UNDO_COMPLETED join#1.0/flight#1 a1",
        "UNDO_COMPLETED join#1.1/hotel#1 a1",
        "RUN_FAILED FAILED_PRECONDITION",
    ];
    assert_eq!(lines(&run).await, expected);
    assert_eq!(run.replay().await.unwrap().mismatch, None);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_completes_is_not_undone() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("book", &"").id("undo-none").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "booked");
    assert_eq!(undone("undo-none"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn cancel_undoes_in_every_state() {
    for then in ["sleep", "hang"] {
        let id = format!("cancel-{then}");
        let engine = start(&Memory::new()).await;
        let run = engine.start("book", &then).id(&id).await.unwrap();
        tokio::time::sleep(SECOND).await;
        run.cancel().by("ada").why("changed her mind").await.unwrap();
        let again = run.cancel().by("ada").await; // again is the same, or it has ended by now
        assert!(again.is_ok() || again.unwrap_err().code() == "SF0105");
        let error = run.result::<String>().await.unwrap_err();
        assert_eq!(error.failure().unwrap().code, Code::Cancelled);
        assert_eq!(run.view().await.unwrap().status, Status::Cancelled);
        assert_eq!(undone(&id), NEWEST_FIRST);
        let journal = lines(&run).await;
        assert_eq!(journal.iter().filter(|line| *line == "RUN_CANCEL_REQUESTED").count(), 1);
        assert_eq!(journal.last().unwrap(), "RUN_CANCELLED");
        assert_eq!(run.replay().await.unwrap().mismatch, None);
        assert_eq!(run.cancel().await.unwrap_err().code(), "SF0105", "it has ended");
    }
}

#[tokio::test(start_paused = true)]
async fn cancel_before_anything_happened_ends_the_run_at_once() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("stubborn", &()).id("cancel-early").await.unwrap();
    until("it backs off", async || run.view().await.unwrap().status == Status::Waiting).await;
    run.cancel().await.unwrap();
    let Err(Error::Failed { failure, .. }) = run.result::<()>().await else { panic!("it was cancelled") };
    assert_eq!(failure.code, Code::Cancelled);
    let journal = lines(&run).await;
    assert_eq!(journal[2..], ["RUN_CANCEL_REQUESTED", "RUN_CANCELLED"]);
    tokio::time::sleep(2 * HOUR).await;
    assert_eq!(calls("cancel-early", "down"), 1, "a cancelled step is not retried");
}

#[workflow]
async fn stubborn(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.step("down", || {
        call(&ctx, "down");
        async { Err(Failure::transient("down")) }
    })
    .retry(Policy::constant(HOUR).max_attempts(99))
    .await
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_that_is_not_hosted_is_undone_after_a_restart() {
    let store = Memory::new();
    let first = start(&store).await;
    let run = first.start("book", &"sleep").id("cancel-restart").await.unwrap();
    until("it sleeps", async || run.view().await.unwrap().status == Status::Waiting).await;
    drop((run, first));
    let store = store.reopen();
    let second = start(&store).await;
    store.faults().after(0, Fault::CrashAfter); // the request is on record, and nothing else
    let refused = second.run("cancel-restart").unwrap().cancel().await;
    assert!(refused.is_err(), "the answer got lost");
    drop(second);
    let third = start(&store.reopen()).await;
    let run = third.run("cancel-restart").unwrap();
    assert_eq!(run.result::<String>().await.unwrap_err().failure().unwrap().code, Code::Cancelled);
    assert_eq!(undone("cancel-restart"), NEWEST_FIRST);
}

#[tokio::test(start_paused = true)]
async fn a_run_out_of_time_is_undone() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("book", &"sleep").id("undo-deadline").deadline(MINUTE).await.unwrap();
    let error = run.result::<String>().await.unwrap_err();
    assert_eq!(error.failure().unwrap().code, Code::DeadlineExceeded);
    assert_eq!(undone("undo-deadline"), NEWEST_FIRST);
    assert_eq!(lines(&run).await.last().unwrap(), "RUN_FAILED DEADLINE_EXCEEDED");
}

/// A crash at every place of the way down.
#[tokio::test(start_paused = true)]
async fn undo_interrupted_at_each_step_is_resumed() {
    let store = Memory::new();
    let first = start(&store).await;
    let run = first.start("book", &"fail").id("undo-crash").await.unwrap();
    run.result::<String>().await.unwrap_err();
    let expected = lines(&run).await;
    let commits = usize::try_from(store.commits()).unwrap();
    assert_eq!(commits, 7, "start, three bookings (the last with the failure), three undos (the last with the end)");
    for prefix in 4..commits {
        UNDONE.lock().unwrap().retain(|(of, _)| of != "undo-crash");
        let engine = start(&store.rewound(prefix)).await;
        let run = engine.run("undo-crash").unwrap();
        run.result::<String>().await.unwrap_err();
        assert_eq!(lines(&run).await, expected, "after {prefix} commits");
        assert_eq!(undone("undo-crash"), NEWEST_FIRST[prefix - 4..], "what is on record is not undone again");
    }
}

/// Its undo fails for good, until somebody has seen to it.
#[workflow]
async fn undo_fails(ctx: Ctx, heals: bool) -> Result<(), Failure> {
    let run = ctx.clone();
    ctx.step("first", || async { Ok::<_, Failure>(()) })
        .undo({
            let run = run.run_id().to_string();
            move |()| take_back(run.clone(), "first".into())
        })
        .await?;
    ctx.step("charge", || async { Ok::<_, Failure>(()) })
        .undo(move |()| {
            let call = call(&run, "undo");
            async move { if heals && call > 3 { Ok(()) } else { Err(Failure::transient("the bank is closed")) } }
        })
        .undo_retry(Policy::constant(SECOND).max_attempts(3))
        .await?;
    Err(Failure::permanent("changed my mind"))
}

#[tokio::test(start_paused = true)]
async fn an_undo_that_fails_for_good_waits_for_a_person() {
    for (heals, resolution) in [(true, Resolution::RetryUndo), (false, Resolution::SkipUndo)] {
        let id = format!("undo-stuck-{heals}");
        let engine = start(&Memory::new()).await;
        let run = engine.start("undo_fails", &heals).id(&id).await.unwrap();
        tokio::time::sleep(HOUR).await;
        let view = run.view().await.unwrap();
        assert_eq!(view.status, Status::Compensating);
        let [Wait::Signal { name, until: None }] = &view.waits[..] else { panic!("{view:?}") };
        assert_eq!(name, "undo:charge#1");
        assert_eq!(undone(&id), [""; 0], "what is older is not undone before it");
        run.resolve("charge#1", resolution).await.unwrap();
        assert_eq!(run.result::<()>().await.unwrap_err().failure().unwrap().message, "changed my mind");
        assert_eq!(undone(&id), ["first"]);
        let journal = lines(&run).await;
        assert!(journal.contains(&"UNDO_FAILED charge#1 a3 UNAVAILABLE".to_string()), "{journal:#?}");
        assert_eq!(journal.contains(&"UNDO_COMPLETED charge#1 a1".to_string()), heals);
        assert_eq!(run.replay().await.unwrap().mismatch, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_while_the_undoing_begins_leaves_all_of_it_to_the_next_start() {
    let (store, gate) = (Memory::new(), Gate::default());
    store.faults().after(3, Fault::Hold(gate.clone())); // the commit of the last booking, with which the run fails
    let first = start(&store).await;
    first.start("book", &"fail").id("undo-shutdown").await.unwrap();
    tokio::time::sleep(SECOND).await;
    let stopping = tokio::spawn(first.shutdown());
    tokio::time::sleep(SECOND).await;
    gate.open();
    stopping.await.unwrap();
    assert_eq!(undone("undo-shutdown"), [""; 0]);
    let second = start(&store).await;
    let run = second.run("undo-shutdown").unwrap();
    run.result::<String>().await.unwrap_err();
    assert_eq!(undone("undo-shutdown"), NEWEST_FIRST);
}

/// Waits for a day; what it did has to be undone within a minute.
#[workflow]
async fn undo_in_time(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    let run = ctx.run_id().to_string();
    ctx.step("book", || async { Ok::<_, Failure>("room".to_string()) })
        .undo(move |booked| {
            let run = run.clone();
            async move {
                tokio::time::sleep(SECOND).await;
                take_back(run, booked).await
            }
        })
        .undo_retry(Policy::constant(SECOND).deadline(MINUTE))
        .await?;
    ctx.sleep(24 * HOUR).await
}

#[tokio::test(start_paused = true)]
async fn the_time_of_an_undo_counts_from_when_the_undoing_begins() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("undo_in_time", &()).id("undo-in-time").await.unwrap();
    tokio::time::sleep(12 * HOUR).await;
    run.cancel().await.unwrap();
    until("it is undone", async || {
        tokio::time::sleep(SECOND).await;
        run.view().await.unwrap().status == Status::Cancelled
    })
    .await;
    assert_eq!(undone("undo-in-time"), ["room"]);
    assert!(!lines(&run).await.iter().any(|line| line.starts_with("UNDO_FAILED")));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_about_an_undo_leaves_the_question_open() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("undo_fails", &false).id("undo-no-answer").await.unwrap();
    tokio::time::sleep(HOUR).await;
    let before = lines(&run).await.iter().filter(|line| line.starts_with("UNDO_FAILED")).count();
    let wait = run.view().await.unwrap().waits[0].clone();
    let Wait::Signal { name, .. } = &wait else { panic!("{wait:?}") };
    assert_eq!(run.signal(name, &"what?").await.unwrap_err().code(), "SF0116");
    tokio::time::sleep(HOUR).await;
    assert_eq!(lines(&run).await.iter().filter(|line| line.starts_with("UNDO_FAILED")).count(), before, "nothing was tried again");
    assert_eq!(run.view().await.unwrap().waits, [wait]);
}

/// Two branches end in the same poll: one charges, the other takes the run down or wins the race.
#[workflow]
async fn in_the_same_moment(ctx: Ctx, how: String) -> Result<(), Failure> {
    let charge = async {
        let run = ctx.run_id().to_string();
        ctx.step("charge", || async { Ok::<_, Failure>("charge".to_string()) })
            .undo(move |what| take_back(run.clone(), what))
            .await
            .map(drop)
    };
    let other = async {
        ctx.step("other", || async { Ok::<_, Failure>(()) }).await?;
        assert!(how != "panic", "in the other branch");
        Ok::<_, Failure>(())
    };
    if how == "panic" {
        let (other, charge) = ctx.join((other, charge)).await;
        other.and(charge)?;
    } else {
        ctx.race((other, charge)).await.1?;
    }
    Err(Failure::permanent("changed my mind"))
}

#[tokio::test(start_paused = true)]
async fn a_success_that_nobody_waits_for_any_more_is_recorded_and_undone() {
    for how in ["panic", "race"] {
        let id = format!("same-moment-{how}");
        let store = Memory::new();
        let first = engine(&store).register(in_the_same_moment).start().await.unwrap();
        let run = first.start("in_the_same_moment", &how).id(&id).await.unwrap();
        run.result::<()>().await.unwrap_err();
        assert_eq!(undone(&id), ["charge"], "{how}: {:#?}", lines(&run).await);
        assert_eq!(run.replay().await.unwrap().mismatch, None);
        let expected = lines(&run).await;
        for prefix in 2..usize::try_from(store.commits()).unwrap() {
            let engine = engine(&store.rewound(prefix)).register(in_the_same_moment).start().await.unwrap();
            let run = engine.run(&id).unwrap();
            run.result::<()>().await.unwrap_err();
            assert_eq!(lines(&run).await, expected, "{how}, after {prefix} commits");
        }
    }
}
