//! Every bound refuses clearly and says what to do.
//!
//! Subject: `crates/runtime/src/config.rs`.
//! Subject: `crates/runtime/src/shard/crowd.rs`.

use crate::support::{engine, lines};
use std::future::IntoFuture;
use steadfast::memory::{Fault, Gate, Memory};
use steadfast::{Code, Config, Ctx, Engine, Failure, HOUR, workflow};

#[workflow]
async fn grow(ctx: Ctx, bytes: usize) -> Result<String, Failure> {
    ctx.step("grow", || async move { Ok::<_, Failure>("x".repeat(bytes)) }).await
}

#[workflow]
async fn grow_at_the_end(_ctx: Ctx, bytes: usize) -> Result<String, Failure> {
    Ok("x".repeat(bytes))
}

#[workflow]
async fn take(_ctx: Ctx, text: String) -> Result<usize, Failure> {
    Ok(text.len())
}

#[workflow]
async fn nap(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.sleep(HOUR).await
}

#[workflow]
async fn badly_named(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.step("not a name", || async { Ok::<_, Failure>(()) }).await
}

async fn start(store: &Memory, config: Config) -> Engine {
    engine(store)
        .config(config)
        .register(grow)
        .register(grow_at_the_end)
        .register(take)
        .register(nap)
        .register(badly_named)
        .start()
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_and_says_when_to_come_back() {
    let store = Memory::new();
    let engine = start(&store, Config { requests_max: 2, ..Config::default() }).await;
    // On one thread the shard does not move until we wait, so the queue fills up.
    let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(engine.start("nap", &()).into_future())).collect();
    let mut refused = Vec::new();
    for start in &mut waiting {
        if let Some(answer) = futures_util::FutureExt::now_or_never(start) {
            refused.push(answer.err().expect("only a refusal comes at once"));
        }
    }
    let [error] = &refused[..] else { panic!("two fit, one does not: {refused:?}") };
    assert_eq!(error.code(), "SF0201");
    tokio::time::sleep(error.retry_after().unwrap()).await;
    engine.start("nap", &()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn more_live_runs_than_allowed_are_refused_until_some_have_ended() {
    let engine = start(&Memory::new(), Config { runs_live_max: 2, ..Config::default() }).await;
    let first = engine.start("nap", &()).await.unwrap();
    engine.start("nap", &()).await.unwrap();
    let Err(error) = engine.start("nap", &()).await else { panic!("there is no room for a third") };
    assert_eq!(error.code(), "SF0201");
    assert!(error.retry_after().is_some());
    first.result::<()>().await.unwrap();
    tokio::task::yield_now().await;
    engine.start("nap", &()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn payloads_that_are_too_large_are_refused_where_they_arise() {
    let engine = start(&Memory::new(), Config { payload_bytes_max: 100, ..Config::default() }).await;
    let Err(error) = engine.start("take", &"x".repeat(99)).await else { panic!("with its quotes it has 101 bytes") };
    assert_eq!(error.code(), "SF0106");
    assert_eq!(engine.start("take", &"x".repeat(98)).await.unwrap().result::<usize>().await.unwrap(), 98);

    let run = engine.start("grow", &99).await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap_err().failure().unwrap().code, Code::ResourceExhausted);
    assert_eq!(lines(&run).await[1], "STEP_FAILED grow#1 a1 RESOURCE_EXHAUSTED", "it is not tried again");

    let run = engine.start("grow_at_the_end", &99).await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap_err().failure().unwrap().code, Code::ResourceExhausted);
}

#[tokio::test(start_paused = true)]
async fn bad_requests_are_refused_and_leave_no_trace() {
    let store = Memory::new();
    let engine = start(&store, Config::default()).await;
    let Err(error) = engine.start("nap", &()).id("no spaces").await else { panic!() };
    assert_eq!(error.code(), "SF0101");
    let Err(error) = engine.start("nope", &()).await else { panic!() };
    assert_eq!(error.code(), "SF0102");
    assert!(error.to_string().contains("registered: badly_named, grow, grow_at_the_end, nap, take"), "{error}");
    assert_eq!(engine.run("missing").unwrap().result::<()>().await.unwrap_err().code(), "SF0104");
    assert_eq!(engine.run("missing").unwrap().view().await.unwrap_err().code(), "SF0104");
    assert_eq!(engine.run("missing").unwrap().journal().await.unwrap_err().code(), "SF0104");
    assert_eq!(engine.commits(), 0);
}

#[tokio::test(start_paused = true)]
async fn settings_that_cannot_be_are_refused() {
    let Err(error) = engine(&Memory::new()).config(Config { requests_max: 0, ..Config::default() }).start().await else { panic!() };
    assert_eq!(error.code(), "SF0110");
    assert!(error.to_string().contains("requests_max is 0"), "{error}");
    let Err(error) = engine(&Memory::new()).register(nap).register(nap).start().await else { panic!() };
    assert!(error.to_string().contains("registered twice"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_step_with_a_bad_name_fails_clearly() {
    let engine = start(&Memory::new(), Config::default()).await;
    let error = engine.start("badly_named", &()).await.unwrap().result::<()>().await.unwrap_err();
    assert_eq!(error.failure().unwrap().code, Code::InvalidArgument);
    assert!(error.to_string().contains("step name \"not a name\""), "{error}");
}

#[tokio::test(start_paused = true)]
async fn values_of_another_type_are_refused_without_showing_them() {
    let engine = start(&Memory::new(), Config::default()).await;
    let run = engine.start("take", &4711).await.unwrap(); // not a string
    let error = run.result::<usize>().await.unwrap_err();
    assert_eq!(error.failure().unwrap().code, Code::DecodeFailure);
    assert!(!error.to_string().contains("4711"), "payloads are not shown: {error}");
    let run = engine.start("take", &"four").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap_err().code(), "SF0107");
}

#[tokio::test(start_paused = true)]
async fn starts_that_wait_for_a_slow_store_are_bounded_too() {
    let (store, gate) = (Memory::new(), Gate::default());
    store.faults().after(0, Fault::Hold(gate.clone()));
    let engine = start(&store, Config { requests_max: 10, ..Config::default() }).await;
    let mut starts = Vec::new();
    for _ in 0..100 {
        starts.push(tokio::spawn(engine.start("nap", &()).into_future()));
        tokio::time::sleep(std::time::Duration::from_millis(1)).await; // the shard has taken it up
    }
    let refused = starts.iter().filter(|start| start.is_finished()).count();
    assert!((80..=90).contains(&refused), "{refused} of 100 were refused");
    gate.open();
    for start in starts {
        match start.await.unwrap() {
            Ok(_) => {}
            Err(error) => assert_eq!(error.code(), "SF0201"),
        }
    }
    engine.start("nap", &()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_slow_store_holds_answers_back_and_still_takes_a_bounded_queue() {
    let (store, gate) = (Memory::new(), Gate::default());
    store.faults().after(0, Fault::Hold(gate.clone()));
    let engine = start(&store, Config::default()).await;
    let starts: Vec<_> = (0..100).map(|_| tokio::spawn(engine.start("nap", &()).into_future())).collect();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!(starts.iter().all(|start| !start.is_finished()), "the first commit is held, and nothing overtakes it");
    gate.open();
    for start in starts {
        start.await.unwrap().unwrap();
    }
    assert!(engine.commits() <= 103, "{} commits for 100 starts and their sleeps", engine.commits());
}

#[tokio::test(start_paused = true)]
async fn a_start_that_only_finds_its_run_is_answered_though_there_is_no_room() {
    let engine = start(&Memory::new(), Config { runs_live_max: 1, ..Config::default() }).await;
    engine.start("nap", &()).id("there").await.unwrap();
    assert!(!engine.start("nap", &()).id("there").await.unwrap().is_new());
    let Err(error) = engine.start("nap", &()).id("another").await else { panic!("there is no room") };
    assert_eq!(error.code(), "SF0201");
}
