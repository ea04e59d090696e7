//! `ctx.redelivered()`: whether an attempt may have begun before and left no record.
//!
//! Subject: `crates/runtime/src/host/board.rs`.
//! Subject: `crates/runtime/src/host/board/replaying.rs`.

use crate::messages::{node, start};
use crate::support::{call, calls, engine, until};
use std::sync::{Arc, LazyLock, Mutex};
use steadfast::memory::Memory;
use steadfast::messages::memory::Memory as Network;
use steadfast::worker::{Parted, Worker, WorkerBuilder};
use steadfast::{Config, Ctx, Failure, HOUR, MINUTE, Policy, SECOND, Settings, Status, VirtualClock, Wait, workflow};

/// What attempts were told: run, step, attempt, redelivered.
type Told = (String, &'static str, u32, bool);

static TOLD: LazyLock<Mutex<Vec<Told>>> = LazyLock::new(Mutex::default);

fn says(ctx: &Ctx, step: &'static str) -> Result<(), Failure> {
    tell(ctx, step);
    Ok(())
}

fn tell(ctx: &Ctx, step: &'static str) {
    TOLD.lock().unwrap().push((ctx.run_id().to_string(), step, ctx.attempt(), ctx.redelivered()));
}

/// What the attempts of that run were told, in order.
fn told(run: &str) -> Vec<(&'static str, u32, bool)> {
    let told = TOLD.lock().unwrap();
    told.iter()
        .filter(|(of, ..)| of == run)
        .map(|(_, step, attempt, again)| (*step, *attempt, *again))
        .collect()
}

/// A first step that passes, one that hangs when it is first made, and one after it.
#[workflow]
async fn hangs_once(ctx: Ctx, fails_then: bool) -> Result<(), Failure> {
    assert!(!ctx.redelivered(), "outside of a step it is false");
    ctx.step("first", || async { says(&ctx, "first") }).await?;
    ctx.step("second", || async {
        tell(&ctx, "second");
        match told(ctx.run_id().as_str()).iter().filter(|(step, ..)| *step == "second").count() {
            1 => std::future::pending().await,
            2 if fails_then => Err(Failure::transient("not yet")),
            _ => Ok::<_, Failure>(()),
        }
    })
    .retry(Policy::constant(SECOND))
    .await?;
    ctx.step("third", || async { says(&ctx, "third") }).await
}

async fn until_second_hangs(run: &str) {
    until("the second step is under way", async || told(run).len() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_the_middle_of_a_step_shows_in_that_attempt_alone() {
    let store = Memory::new();
    let first = engine(&store).register(hangs_once).start().await.unwrap();
    first.start("hangs_once", &true).id("crash-1").await.unwrap();
    until_second_hangs("crash-1").await;
    drop(first); // as in a crash

    let second = engine(&store).register(hangs_once).start().await.unwrap();
    second.run("crash-1").unwrap().result::<()>().await.unwrap();
    assert_eq!(
        told("crash-1"),
        [
            ("first", 1, false),
            ("second", 1, false),
            ("second", 1, true),  // the same attempt: it left no record
            ("second", 2, false), // after a failure on record
            ("third", 1, false),
        ]
    );
}

fn worker(network: &Network, name: &str) -> WorkerBuilder {
    Worker::of("server").name(name).wire(Arc::new(network.wire_of(name))).clock(VirtualClock::start())
}

#[tokio::test(start_paused = true)]
async fn a_lost_worker_shows_in_the_attempt_that_is_made_again() {
    let (network, store) = (Network::new(11), Memory::new());
    let server = start(&network, engine(&store).messages(node(&network, "server")).workers()).await;
    let first = worker(&network, "w1").register(hangs_once).start().await.unwrap();
    until("the worker is there", async || !server.workers().is_empty()).await;
    let run = server.start("hangs_once", &false).id("lost-1").await.unwrap();
    until_second_hangs("lost-1").await;
    drop(first);
    network.cut_off("w1");
    tokio::time::sleep(15 * SECOND).await; // its heartbeat
    until("it waits", async || matches!(run.view().await.unwrap().waits[..], [Wait::NoWorker { .. }])).await;

    let _second = worker(&network, "w2").register(hangs_once).start().await.unwrap();
    run.result::<()>().await.unwrap();
    assert_eq!(told("lost-1"), [("first", 1, false), ("second", 1, false), ("second", 1, true), ("third", 1, false)]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_has_waited_for_its_first_worker_begins_for_the_first_time() {
    let (network, store) = (Network::new(12), Memory::new());
    let server = start(&network, engine(&store).messages(node(&network, "server")).workers()).await;
    let first = worker(&network, "w1").register(naps).start().await.unwrap();
    until("the worker is there", async || !server.workers().is_empty()).await;
    assert_eq!(first.drain().await, Parted::Drained);
    until("it is gone", async || server.workers().is_empty()).await;
    let run = server.start("naps", &()).id("first-worker").await.unwrap();
    until("it waits", async || matches!(run.view().await.unwrap().waits[..], [Wait::NoWorker { .. }])).await;
    let _second = worker(&network, "w2").register(naps).start().await.unwrap();
    run.result::<()>().await.unwrap();
    assert_eq!(told("first-worker"), [("fails", 1, false), ("fails", 2, false), ("last", 1, false)]);
}

/// A step that fails once and is made again much later; and one after it.
#[workflow]
async fn naps(ctx: Ctx, (): ()) -> Result<(), Failure> {
    call(&ctx, "begun");
    ctx.step("fails", || async {
        tell(&ctx, "fails");
        if ctx.attempt() == 1 { Err(Failure::transient("busy")) } else { Ok(()) }
    })
    .retry(Policy::constant(HOUR))
    .await?;
    ctx.step("last", || async { says(&ctx, "last") }).await
}

#[tokio::test(start_paused = true)]
async fn a_drained_worker_has_begun_nothing_that_it_gives_back() {
    let (network, store) = (Network::new(13), Memory::new());
    let server = start(&network, engine(&store).messages(node(&network, "server")).workers()).await;
    let first = worker(&network, "w1").register(naps).start().await.unwrap();
    until("the worker is there", async || !server.workers().is_empty()).await;
    let run = server.start("naps", &()).id("drained").await.unwrap();
    until("it has failed once", async || run.view().await.unwrap().status == Status::Waiting).await;
    let _second = worker(&network, "w2").register(naps).start().await.unwrap();
    until("both are there", async || server.workers().len() == 2).await;
    assert_eq!(first.drain().await, Parted::Drained);
    run.result::<()>().await.unwrap();
    assert_eq!(told("drained"), [("fails", 1, false), ("fails", 2, false), ("last", 1, false)]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_had_left_memory_has_begun_nothing() {
    let config = Config { runs_idle_max: 0, ..Config::default() };
    let store = Memory::new();
    let first = engine(&store).config(config.clone()).register(naps).start().await.unwrap();
    let run = first.start("naps", &()).id("evicted").await.unwrap();
    tokio::time::sleep(30 * MINUTE).await; // it has left in the first seconds
    run.result::<()>().await.unwrap();
    assert_eq!(told("evicted"), [("fails", 1, false), ("fails", 2, false), ("last", 1, false)]);

    assert_eq!(calls("evicted", "begun"), 2, "it had left");
    drop(run);

    drop(first.start("naps", &()).id("evicted-then-crashed").await.unwrap());
    tokio::time::sleep(30 * MINUTE).await;
    drop(first); // nobody knows any more that it had left
    let second = engine(&store).config(config).register(naps).start().await.unwrap();
    tokio::time::sleep(10 * MINUTE).await; // it leaves here, too
    second.run("evicted-then-crashed").unwrap().result::<()>().await.unwrap();
    assert_eq!(told("evicted-then-crashed"), [("fails", 1, false), ("fails", 2, true), ("last", 1, false)]);
}

/// Begins again with one less.
#[workflow]
async fn counts_down(ctx: Ctx, left: u32) -> Result<(), Failure> {
    ctx.step("count", || async { says(&ctx, "count") }).await?;
    if left == 0 {
        return Ok(());
    }
    ctx.continue_as_new(&(left - 1))
}

#[tokio::test(start_paused = true)]
async fn a_run_that_begins_again_or_has_waited_for_its_slot_begins_for_the_first_time() {
    let engine = engine(&Memory::new())
        .register_with(counts_down, Settings::default().limit(1))
        .start()
        .await
        .unwrap();
    let first = engine.start("counts_down", &2).id("down-1").await.unwrap();
    let second = engine.start("counts_down", &1).id("down-2").await.unwrap();
    first.result::<()>().await.unwrap();
    second.result::<()>().await.unwrap();
    assert_eq!(told("down-1"), [("count", 1, false); 3]);
    assert_eq!(told("down-2"), [("count", 1, false); 2]);
}

#[workflow]
async fn waits_for_go(ctx: Ctx, (): ()) -> Result<(), Failure> {
    ctx.signal::<()>("go").await
}

/// Whoever was to be hosted meanwhile is hosted when the store writes again, and the list says no longer that nobody has its code.
#[tokio::test(start_paused = true)]
async fn a_run_whose_worker_comes_while_the_store_fails_is_listed_as_what_it_is() {
    listed_as_what_it_is(true).await;
}

/// What fails is the row of that run.
#[tokio::test(start_paused = true)]
async fn a_run_whose_worker_comes_before_it_is_known_that_the_store_fails_is_listed_as_what_it_is() {
    listed_as_what_it_is(false).await;
}

async fn listed_as_what_it_is(known: bool) {
    let (network, store) = (Network::new(13), Memory::new());
    let server = start(&network, engine(&store).messages(node(&network, "server")).workers()).await;
    let first = worker(&network, "w1").register(waits_for_go).start().await.unwrap();
    until("the worker is there", async || !server.workers().is_empty()).await;
    let run = server.start("waits_for_go", &()).id("blocked-row").await.unwrap();
    let listed = async |wait: &str| server.list().wait(wait).await.unwrap().items.len() == 1;
    until("it waits", async || listed("SIGNAL").await).await;
    drop(first);
    network.cut_off("w1");
    tokio::time::sleep(15 * SECOND).await; // its heartbeat
    run.signal("other", &()).await.unwrap();
    until("nobody has its code", async || listed("NO_WORKER").await).await;
    store.faults().rule(|_| Some(steadfast::memory::Fault::Fail));
    if known {
        assert!(run.signal("other", &()).await.is_err());
    }
    let _second = worker(&network, "w2").register(waits_for_go).start().await.unwrap();
    until("the worker is there", async || !server.workers().is_empty()).await;
    until("a commit has failed", async || !server.health().is_well()).await;
    tokio::time::sleep(SECOND / 10).await;
    store.faults().clear();
    until("it waits again", async || listed("SIGNAL").await).await;
    assert_eq!(run.view().await.unwrap().waits[0].reason(), "SIGNAL");
}
