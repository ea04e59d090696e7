//! Signals: kept until the code asks for them, once, in order.
//!
//! Subject: `crates/runtime/src/host/signal.rs`.

use crate::support::{call, calls, engine, lines, until};
use steadfast::memory::Memory;
use steadfast::{Code, Ctx, Engine, Event, Failure, HOUR, SECOND, Status, Store, Wait, workflow};

#[workflow]
async fn approval(ctx: Ctx, _input: ()) -> Result<String, Failure> {
    ctx.step("prepare", || {
        call(&ctx, "prepare");
        async { Ok::<_, Failure>(()) }
    })
    .await?;
    match ctx.signal::<String>("approve").within(HOUR).await {
        Ok(who) => ctx.step("go", || async { Ok::<_, Failure>(format!("approved by {who}")) }).await,
        Err(failure) if failure.code == Code::DeadlineExceeded => Ok("nobody came".into()),
        Err(failure) => Err(failure),
    }
}

#[workflow]
async fn sum_of_three(ctx: Ctx, _input: ()) -> Result<Vec<u32>, Failure> {
    let mut numbers = Vec::new();
    for _ in 0..3 {
        numbers.push(ctx.signal::<u32>("number").await?);
    }
    Ok(numbers)
}

async fn start(store: &Memory) -> Engine {
    engine(store).register(approval).register(sum_of_three).start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_signal_wakes_the_code_that_waits_for_it() {
    let store = Memory::new();
    let engine = start(&store).await;
    let run = engine.start("approval", &()).id("approval").await.unwrap();
    until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
    let view = run.view().await.unwrap();
    let [Wait::Signal { name, until: Some(_) }] = &view.waits[..] else { panic!("{view:?}") };
    assert_eq!(name, "approve");
    assert!(run.signal("approve", &"ada").await.unwrap());
    assert_eq!(run.result::<String>().await.unwrap(), "approved by ada");
    let expected = [
        "RUN_STARTED",
        "STEP_COMPLETED prepare#1 a1",
        "SIGNAL_AWAITED signal:approve#1",
        "SIGNAL_RECEIVED approve",
        "SIGNAL_TAKEN signal:approve#1 4",
        "STEP_COMPLETED go#1 a1",
        "RUN_COMPLETED",
    ];
    assert_eq!(lines(&run).await, expected);
    assert_eq!(store.timers(0, None, 10).await.unwrap(), [], "the time limit is disarmed");
}

#[tokio::test(start_paused = true)]
async fn a_signal_that_does_not_come_in_time_is_a_failure_the_code_can_handle() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("approval", &()).await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "nobody came");
    assert_eq!(lines(&run).await[3..], ["TIMER_FIRED signal:approve#1", "RUN_COMPLETED"]);
    assert_eq!(run.replay().await.unwrap().mismatch, None);
    assert_eq!(run.signal("approve", &"late").await.unwrap_err().code(), "SF0105");
}

#[tokio::test(start_paused = true)]
async fn early_signals_are_kept_in_order_and_the_same_id_counts_once() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("sum_of_three", &()).id("early").await.unwrap();
    assert!(run.signal("number", &1).id("a").await.unwrap());
    assert!(run.signal("other", &9).await.unwrap());
    assert!(!run.signal("number", &1).id("a").await.unwrap(), "the same id again is dropped");
    assert!(run.signal("number", &2).id("b").await.unwrap());
    assert!(run.signal("number", &3).await.unwrap());
    assert_eq!(run.result::<Vec<u32>>().await.unwrap(), [1, 2, 3]);
    assert_eq!(run.replay().await.unwrap().mismatch, None);
}

#[tokio::test(start_paused = true)]
async fn a_signal_survives_a_crash_before_and_after_it_is_taken() {
    let store = Memory::new();
    let first = start(&store).await;
    let run = first.start("approval", &()).id("signal-crash").await.unwrap();
    until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
    run.signal("approve", &"ada").id("one").await.unwrap();
    run.result::<String>().await.unwrap();
    let expected = lines(&run).await;
    for commits in 1..=usize::try_from(store.commits()).unwrap() {
        let engine = start(&store.rewound(commits)).await;
        let run = engine.run("signal-crash").unwrap();
        tokio::time::sleep(SECOND).await;
        if run.view().await.unwrap().ended.is_none() {
            run.signal("approve", &"ada").id("one").await.unwrap(); // whoever got no answer sends it again
        }
        assert_eq!(run.result::<String>().await.unwrap(), "approved by ada", "after {commits} commits");
        assert_eq!(lines(&run).await, expected, "after {commits} commits");
    }
}

#[tokio::test(start_paused = true)]
async fn signals_that_nobody_takes_are_bounded() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("approval", &()).await.unwrap();
    for n in 0..1000 {
        run.signal("unknown", &n).await.unwrap();
    }
    let error = run.signal("unknown", &1000).await.unwrap_err();
    assert_eq!(error.code(), "SF0111");
    assert_eq!(run.signal("no spaces", &1).await.unwrap_err().code(), "SF0101");
    assert_eq!(engine.run("missing").unwrap().signal("approve", &1).await.unwrap_err().code(), "SF0104");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_a_signal_is_not_hosted_until_it_comes() {
    let store = Memory::new();
    let first = start(&store).await;
    let run = first.start("approval", &()).id("not-hosted").await.unwrap();
    until("it waits", async || run.view().await.unwrap().status == Status::Waiting).await;
    drop((run, first));
    let engine = start(&store.reopen()).await;
    let run = engine.run("not-hosted").unwrap();
    assert_eq!(run.view().await.unwrap().waits[0].reason(), "SIGNAL");
    run.signal("approve", &"ada").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "approved by ada");
    assert_eq!(calls("not-hosted", "prepare"), 1);
}

#[tokio::test(start_paused = true)]
async fn who_sent_a_signal_and_why_is_on_record() {
    let engine = start(&Memory::new()).await;
    let run = engine.start("approval", &()).id("signal-origin").await.unwrap();
    assert!(run.signal("approve", &"ada").id("yes").by("ada").why("it looks right").await.unwrap());
    run.result::<String>().await.unwrap();
    let received = run.journal().await.unwrap().into_iter().find_map(|entry| match entry.event {
        Event::SignalReceived { id, by, why, .. } => Some((id, by, why)),
        _ => None,
    });
    assert_eq!(received, Some((Some("yes".into()), Some("ada".into()), Some("it looks right".into()))));
}
