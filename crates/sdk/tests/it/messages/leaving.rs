//! Workers that leave: what they have said is heard, what they have taken is done, and whoever is not wanted ends.

use super::workers::{server, worker};
use super::{listen, node, start};
use crate::support::{call, calls, engine, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use steadfast::messages::memory::{Faults, Memory as Network};
use steadfast::messages::wire::http2::ListenSettings;
use steadfast::messages::{Incoming, LetterKind, MemoryLetters, Node, Peer};
use steadfast::worker::{Parted, Worker};
use steadfast::{Code, Config, Ctx, Engine, Failure, MINUTE, SECOND, memory, workflow};
use tokio::sync::Notify;

/// One step that is done when it may be, and one after it.
#[workflow]
async fn hold(ctx: Ctx, _: ()) -> Result<u32, Failure> {
    let held = ctx
        .step("hold", || async {
            HOLDS.notify_one();
            LET_GO.notified().await;
            Ok::<_, Failure>(call(&ctx, "hold"))
        })
        .await?;
    ctx.step("note", || async { Ok::<_, Failure>(()) }).await?;
    Ok(held)
}

static HOLDS: Notify = Notify::const_new();
static LET_GO: Notify = Notify::const_new();

#[tokio::test(start_paused = true)]
async fn a_drain_ends_when_its_last_words_were_heard_however_long_the_way_is() {
    let (network, store) = (Network::new(11), memory::Memory::new());
    let server = server(&network, &store).await;
    let first = worker(&network, "w1").register(hold).start().await.unwrap();
    until("the worker is there", async || !server.workers().is_empty()).await;
    let run = server.start("hold", &()).id("hold-1").await.unwrap();
    HOLDS.notified().await;
    let _second = worker(&network, "w2").register(hold).start().await.unwrap();
    network.set_both("w1", "server", Faults { delay: Some(2 * SECOND..=2 * SECOND), ..Faults::default() });
    LET_GO.notify_one();
    assert_eq!(first.drain().await, Parted::Drained);

    let left_at = tokio::time::Instant::now();
    assert_eq!(run.result::<u32>().await.unwrap(), 1);
    assert!(left_at.elapsed() < SECOND, "nobody had to wait for its heartbeat to be over: {:?}", left_at.elapsed());
    assert_eq!(calls("hold-1", "hold"), 1);
}

/// A route of a worker that is done when it may be.
fn slow_route(node: &Node) -> (Arc<Notify>, Arc<Notify>, Arc<AtomicU32>) {
    let (taken, go_on, done) = (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(AtomicU32::new(0)));
    let ends = (Arc::clone(&taken), Arc::clone(&go_on), Arc::clone(&done));
    node.route("note", move |_: Incoming| {
        let (taken, go_on, done) = (Arc::clone(&taken), Arc::clone(&go_on), Arc::clone(&done));
        async move {
            taken.notify_one();
            go_on.notified().await;
            done.fetch_add(1, Ordering::SeqCst);
            Ok("")
        }
    });
    ends
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_drains_does_what_its_own_routes_have_taken() {
    let (network, store) = (Network::new(12), memory::Memory::new());
    let server = server(&network, &store).await;
    let letters = Arc::new(MemoryLetters::default());
    let worker = worker(&network, "w1").letters(Arc::clone(&letters) as Arc<_>).register(hold).start().await.unwrap();
    let (taken, go_on, done) = slow_route(worker.node());
    until("the worker is there", async || !server.workers().is_empty()).await;
    server.node().unwrap().tell(Peer::named("w1"), "note", "1").await.unwrap();
    taken.notified().await;
    let draining = tokio::spawn(worker.drain());
    tokio::time::sleep(5 * SECOND).await;
    assert!(!draining.is_finished(), "it waits for it");
    go_on.notify_one();
    assert_eq!(draining.await.unwrap(), Parted::Drained);
    assert_eq!((done.load(Ordering::SeqCst), letters.list().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn what_a_worker_has_no_patience_for_is_a_letter_of_whoever_keeps_them() {
    let (network, store) = (Network::new(13), memory::Memory::new());
    let server = server(&network, &store).await;
    let letters = Arc::new(MemoryLetters::default());
    let worker = worker(&network, "w1")
        .letters(Arc::clone(&letters) as Arc<_>)
        .patience(3 * SECOND)
        .register(hold)
        .start()
        .await
        .unwrap();
    let (taken, _go_on, done) = slow_route(worker.node());
    until("the worker is there", async || !server.workers().is_empty()).await;
    server.node().unwrap().tell(Peer::named("w1"), "note", "1").await.unwrap();
    taken.notified().await;
    let began = tokio::time::Instant::now();
    assert_eq!(worker.drain().await, Parted::Drained);
    assert!((3 * SECOND..10 * SECOND).contains(&began.elapsed()), "{:?}", began.elapsed());
    let [letter] = &letters.list()[..] else { panic!("one letter") };
    assert_eq!((&*letter.route, letter.kind, done.load(Ordering::SeqCst)), ("note", LetterKind::Tell, 0));
}

/// Steps with outcomes as long as they may be, all at once, which come when they may.
#[workflow]
async fn crate_of(ctx: Ctx, bytes: usize) -> Result<usize, Failure> {
    let crates = ctx
        .step("fill", || async {
            call(&ctx, "fill");
            FILLING.add_permits(1);
            drop(FILLED.acquire().await);
            Ok::<_, Failure>("7".repeat(bytes))
        })
        .await?;
    ctx.step("note", || async { Ok::<_, Failure>(()) }).await?;
    Ok(crates.len())
}

static FILLING: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(0);
static FILLED: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(0);

/// How many runs, and how much each of them has to say: with its quotes it is as much as a payload may have.
const CRATES: (u32, usize) = (8, (4 << 20) - 2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_as_long_as_they_may_be_are_recorded_when_a_worker_drains_over_http2() {
    let server = Engine::in_memory().messages(Node::builder().name("server")).workers().start().await.unwrap();
    let addr = server.node().unwrap().listen("127.0.0.1:0", ListenSettings::default()).await.unwrap();
    let worker = async |name: &str| Worker::of(format!("http://{addr}")).name(name).register(crate_of).start().await.unwrap();
    let there = async |name: &str| {
        while server.workers().iter().all(|worker| worker.name != name) {
            tokio::time::sleep(SECOND / 100).await;
        }
    };
    let first = worker("w1").await;
    there("w1").await;
    let (count, bytes) = CRATES;
    let mut runs = Vec::new();
    for number in 0..count {
        runs.push(server.start("crate_of", &bytes).id(format!("crate-{number}")).await.unwrap());
    }
    FILLING.acquire_many(count).await.unwrap().forget();
    FILLED.add_permits(count as usize);
    assert_eq!(first.drain().await, Parted::Drained);
    let second = worker("w2").await;
    for (number, run) in runs.iter().enumerate() {
        assert_eq!(run.result::<usize>().await.unwrap(), bytes);
        assert_eq!(calls(&format!("crate-{number}"), "fill"), 1, "it was recorded before the worker left");
    }
    assert_eq!(second.drain().await, Parted::Drained);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_the_server_does_not_take_any_more_ends_with_the_reason() {
    let (network, store) = (Network::new(14), memory::Memory::new());
    let first = server(&network, &store).await;
    let worker = worker(&network, "w1").register(hold).start().await.unwrap();
    until("the worker is there", async || !first.workers().is_empty()).await;
    drop(first); // as in a crash
    network.cut_off("server");
    let _takes_none = start(&network, engine(&store).messages(node(&network, "server"))).await;
    let parted = tokio::time::timeout(MINUTE, worker.ended()).await.expect("it ends");
    let Parted::Refused(failure) = &parted else { panic!("{parted}") };
    assert_eq!((failure.code, parted.may_come_again()), (Code::NotFound, false), "{parted}");
}

/// Somebody whom workers come to, and who does that with each of them.
fn doorman(network: &Network, does: impl Fn() -> Result<(), Failure> + Send + Sync + 'static) -> (Node, Arc<AtomicU32>) {
    let (node, came) = (node(network, "server").build().unwrap(), Arc::new(AtomicU32::new(0)));
    let (does, counted) = (Arc::new(does), Arc::clone(&came));
    node.route_streams("steadfast.worker", move |stream, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        drop(stream);
        std::future::ready(does())
    });
    listen(network, &node);
    (node, came)
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_may_not_host_ends_with_the_reason_though_its_line_was_opened() {
    let network = Network::new(15);
    let (_node, came) = doorman(&network, || Err(Failure::new(Code::PermissionDenied, "not you")));
    let worker = worker(&network, "w1").register(hold).start().await.unwrap();
    let parted = tokio::time::timeout(MINUTE, worker.ended()).await.expect("it ends");
    assert!(matches!(&parted, Parted::Refused(failure) if failure.message.contains("not you")), "{parted}");
    assert_eq!(came.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_sent_away_comes_again_more_and_more_seldom_and_drains_at_once() {
    let network = Network::new(16);
    let (_node, came) = doorman(&network, || Ok(()));
    let worker = worker(&network, "w1").register(hold).start().await.unwrap();
    tokio::time::sleep(MINUTE).await;
    let often = came.load(Ordering::SeqCst);
    assert!((12..=40).contains(&often), "it has come {often} times in a minute");
    let began = tokio::time::Instant::now();
    assert_eq!(worker.drain().await, Parted::Drained);
    assert!(began.elapsed() < SECOND, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_worker_heeds_when_it_is_asked_to_come_later() {
    let network = Network::new(17);
    let (_node, came) = doorman(&network, || Err(Failure::new(Code::ResourceExhausted, "later").retry_after(25 * SECOND)));
    let worker = worker(&network, "w1").register(hold).start().await.unwrap();
    tokio::time::sleep(MINUTE).await;
    assert_eq!(came.load(Ordering::SeqCst), 3, "at 0, 25 and 50 s");
    drop(worker);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_cannot_reach_its_server_drains_at_once() {
    let (network, store) = (Network::new(18), memory::Memory::new());
    let first = server(&network, &store).await;
    let worker = worker(&network, "w1").register(hold).start().await.unwrap();
    until("the worker is there", async || !first.workers().is_empty()).await;
    network.set_both("w1", "server", Faults { swallow: true, ..Faults::default() }); // connections neither succeed nor fail
    network.cut("w1", "server");
    tokio::time::sleep(SECOND).await; // by now it tries to connect
    let began = tokio::time::Instant::now();
    assert_eq!(worker.drain().await, Parted::Drained);
    assert!(began.elapsed() < SECOND, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn one_worker_too_many_is_taken_when_another_has_left() {
    let (network, store) = (Network::new(19), memory::Memory::new());
    let mut config = Config::default();
    config.workers.workers_max = 1;
    let server = start(&network, engine(&store).config(config).messages(node(&network, "server")).workers()).await;
    let first = worker(&network, "w1").register(hold).start().await.unwrap();
    until("the worker is there", async || !server.workers().is_empty()).await;
    let _second = worker(&network, "w2").register(hold).start().await.unwrap();
    tokio::time::sleep(MINUTE).await;
    assert_eq!(server.workers()[0].name, "w1");
    assert_eq!(first.drain().await, Parted::Drained);
    tokio::time::sleep(6 * SECOND).await; // it comes every five seconds by now
    assert_eq!(server.workers()[0].name, "w2");
}
