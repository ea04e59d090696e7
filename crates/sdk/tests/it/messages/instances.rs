//! A worker of a server that has several instances: it finds them, and hosts runs of all of them.

use super::{listen, node};
use crate::support::{call, calls, engine, until};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use steadfast::cluster::INSTANCES;
use steadfast::messages::memory::Memory as Network;
use steadfast::messages::wire::http2::ListenSettings;
use steadfast::messages::{Incoming, Node, wire};
use steadfast::worker::{Parted, Worker, WorkerBuilder};
use steadfast::{Code, Ctx, Engine, Failure, MINUTE, SECOND, VirtualClock, memory, workflow};
use tokio::sync::Notify;

#[workflow]
async fn ship(ctx: Ctx, order: String) -> Result<String, Failure> {
    ctx.step("send", || async { Ok::<_, Failure>(format!("sent {order}")) }).await
}

/// One step that is done when it may be.
#[workflow]
async fn hold(ctx: Ctx, _: ()) -> Result<u32, Failure> {
    ctx.step("hold", || async {
        let nth = call(&ctx, "hold");
        HOLDS.notify_one();
        LET_GO.notified().await;
        Ok::<_, Failure>(nth)
    })
    .await
}

/// One step that is never done.
#[workflow]
async fn stick(ctx: Ctx, _: ()) -> Result<(), Failure> {
    ctx.step("stick", || async {
        call(&ctx, "stick");
        std::future::pending::<Result<(), Failure>>().await
    })
    .await
}

static HOLDS: Notify = Notify::const_new();
static LET_GO: Notify = Notify::const_new();

/// The instances that are said to live, and how often somebody has asked for them.
#[derive(Clone, Default)]
struct List(Arc<Mutex<Vec<String>>>, Arc<AtomicU32>);

impl List {
    fn of(addresses: &[&str]) -> List {
        let list = List::default();
        list.set(addresses);
        list
    }

    fn set(&self, addresses: &[&str]) {
        *self.0.lock().unwrap() = addresses.iter().map(ToString::to_string).collect();
    }

    fn asked(&self) -> u32 {
        self.1.load(Ordering::SeqCst)
    }

    /// Has a node answer with it.
    fn answer_at(&self, node: &Node) {
        let list = self.clone();
        node.route(INSTANCES, move |_: Incoming| {
            list.1.fetch_add(1, Ordering::SeqCst);
            let one = |address: &String| format!(r#"{{"id":"id of {address}","address":"{address}"}}"#);
            let all: Vec<_> = list.0.lock().unwrap().iter().map(one).collect();
            std::future::ready(Ok(format!(r#"{{"instances":[{}]}}"#, all.join(","))))
        });
    }
}

/// An instance without any code.
async fn instance(network: &Network, name: &str, store: &memory::Memory, list: &List) -> Engine {
    let builder = engine(store).messages(node(network, name)).workers();
    let builder = ["ship", "hold", "stick"]
        .iter()
        .fold(builder, |builder, workflow| builder.brought_by_workers(workflow));
    let engine = builder.start().await.unwrap();
    list.answer_at(engine.node().unwrap());
    listen(network, engine.node().unwrap());
    engine
}

fn worker<const N: usize>(network: &Network, of: [&str; N]) -> WorkerBuilder {
    let wire: Arc<dyn wire::Wire> = Arc::new(network.wire_of("w1"));
    Worker::of_any(of)
        .name("w1")
        .wire(wire)
        .clock(VirtualClock::start())
        .register(ship)
        .register(hold)
        .register(stick)
}

/// Starts a run there, and waits for what comes of it.
async fn ships(engine: &Engine, order: &str) {
    let run = engine.start("ship", order).id(order).await.unwrap();
    let result = tokio::time::timeout(MINUTE, run.result::<String>()).await.expect("a worker comes");
    assert_eq!(result.unwrap(), format!("sent {order}"));
}

/// Ends an instance, as in a crash.
fn crash(network: &Network, name: &str, engine: Engine) {
    drop(engine);
    network.cut_off(name);
    drop(network.listen(name)); // nobody takes its place
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_pointed_at_one_instance_hosts_runs_of_all() {
    let (network, list) = (Network::new(31), List::of(&["one", "two"]));
    let stores = [memory::Memory::new(), memory::Memory::new(), memory::Memory::new()];
    let one = instance(&network, "one", &stores[0], &list).await;
    let two = instance(&network, "two", &stores[1], &list).await;
    let worker = worker(&network, ["one"]).start().await.unwrap();
    ships(&one, "i-1").await;
    ships(&two, "i-2").await;

    crash(&network, "two", two);
    let run = one.start("ship", "i-3").id("i-3").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "sent i-3", "the other one goes on");
    let two = instance(&network, "two", &stores[1], &list).await;
    ships(&two, "i-4").await;

    list.set(&["one", "two", "three"]);
    let three = instance(&network, "three", &stores[2], &list).await;
    ships(&three, "i-5").await;
    assert_eq!(worker.drain().await, Parted::Drained);
    for engine in [&one, &two, &three] {
        until("it has left", async || engine.workers().is_empty()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn it_goes_on_with_those_that_it_knows_when_the_one_that_it_was_given_is_gone() {
    let (network, list) = (Network::new(32), List::of(&["one", "two"]));
    let stores = [memory::Memory::new(), memory::Memory::new(), memory::Memory::new()];
    let one = instance(&network, "one", &stores[0], &list).await;
    let two = instance(&network, "two", &stores[1], &list).await;
    let _worker = worker(&network, ["one"]).start().await.unwrap();
    ships(&two, "k-1").await;
    crash(&network, "one", one);
    list.set(&["two", "three"]);
    let three = instance(&network, "three", &stores[2], &list).await;
    ships(&three, "k-2").await; // it was told by the second
    crash(&network, "two", two);
    list.set(&["three"]);
    ships(&three, "k-3").await;
}

#[tokio::test(start_paused = true)]
async fn the_first_address_that_answers_is_enough_to_begin() {
    let (network, list) = (Network::new(33), List::of(&["two", "three"]));
    let stores = [memory::Memory::new(), memory::Memory::new()];
    let two = instance(&network, "two", &stores[0], &list).await;
    let three = instance(&network, "three", &stores[1], &list).await;
    let _worker = worker(&network, ["one", "two"]).start().await.unwrap();
    ships(&three, "f-1").await;
    ships(&two, "f-2").await;
    let wire: Arc<dyn wire::Wire> = Arc::new(network.wire_of("w2"));
    let none: [&str; 0] = [];
    let failure = Worker::of_any(none).wire(wire).register(ship).start().await.unwrap_err();
    assert_eq!(failure.code, Code::InvalidArgument, "{failure}");
}

#[tokio::test(start_paused = true)]
async fn all_addresses_may_be_down_when_it_begins_and_when_all_instances_have_moved() {
    let (network, list) = (Network::new(34), List::of(&["two"]));
    let stores = [memory::Memory::new(), memory::Memory::new()];
    let _worker = worker(&network, ["one", "door"]).start().await.unwrap();
    let two = instance(&network, "two", &stores[0], &list).await;
    let door = node(&network, "door").build().unwrap(); // in front of them, and none itself
    list.answer_at(&door);
    listen(&network, &door);
    ships(&two, "m-1").await;
    crash(&network, "two", two);
    list.set(&["three"]);
    let three = instance(&network, "three", &stores[1], &list).await;
    ships(&three, "m-2").await; // nobody of those that it knew could tell
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_is_gone_from_the_list_is_let_go_of_in_good_order() {
    let (network, list) = (Network::new(35), List::of(&["one", "two"]));
    let stores = [memory::Memory::new(), memory::Memory::new()];
    let one = instance(&network, "one", &stores[0], &list).await;
    let two = instance(&network, "two", &stores[1], &list).await;
    let _worker = worker(&network, ["one"]).start().await.unwrap();
    let run = two.start("hold", &()).id("gone-1").await.unwrap();
    HOLDS.notified().await;
    list.set(&["one"]);
    tokio::time::sleep(7 * SECOND).await; // it has asked at least once, and not three times
    assert!(!two.workers()[0].draining, "that may be a mistake");
    tokio::time::sleep(20 * SECOND).await;
    assert!(two.workers()[0].draining, "it takes nothing more, and what is in flight ends");
    LET_GO.notify_one();
    assert_eq!(run.result::<u32>().await.unwrap(), 1);
    until("it has left", async || two.workers().is_empty()).await;
    assert_eq!(calls("gone-1", "hold"), 1);

    list.set(&["one", "two"]);
    ships(&two, "gone-2").await; // it is there again
    ships(&one, "gone-3").await;
}

/// The list forgets the only instance for so long that the worker drains there, and names it again before that is over.
#[tokio::test(start_paused = true)]
async fn a_worker_whose_last_instance_is_let_go_of_begins_again() {
    let (network, list) = (Network::new(40), List::of(&["one"]));
    let one = instance(&network, "one", &memory::Memory::new(), &list).await;
    let _worker = worker(&network, ["one"]).start().await.unwrap();
    let _run = one.start("stick", &()).id("last-1").await.unwrap();
    until("it is in flight", async || calls("last-1", "stick") == 1).await;
    list.set(&["two"]);
    while !one.workers()[0].draining {
        tokio::time::sleep(SECOND).await;
    }
    list.set(&["one"]);
    ships(&one, "last-2").await;
}

#[tokio::test(start_paused = true)]
async fn one_instance_that_does_not_want_it_for_good_ends_it_after_the_others_were_left_in_good_order() {
    let (network, list) = (Network::new(36), List::of(&["one"]));
    let store = memory::Memory::new();
    let one = instance(&network, "one", &store, &list).await;
    let worker = worker(&network, ["one"]).start().await.unwrap();
    ships(&one, "r-1").await;
    let refuses = node(&network, "two").build().unwrap();
    refuses.route_streams("steadfast.worker", |stream, _| {
        drop(stream);
        std::future::ready(Err(Failure::new(Code::PermissionDenied, "not you")))
    });
    listen(&network, &refuses);
    list.set(&["one", "two"]);
    let parted = tokio::time::timeout(MINUTE, worker.ended()).await.expect("it ends");
    assert!(matches!(&parted, Parted::Refused(failure) if failure.message.contains("not you")), "{parted}");
    until("the other one knows", async || one.workers().is_empty()).await;

    match super::instances::worker(&network, ["one"]).start().await {
        Err(failure) => assert_eq!(failure.code, Code::PermissionDenied, "{failure}"),
        Ok(worker) => assert!(matches!(worker.ended().await, Parted::Refused(_))),
    }
}

#[tokio::test(start_paused = true)]
async fn another_worker_of_its_name_at_one_instance_ends_it() {
    let (network, list) = (Network::new(37), List::of(&["one", "two"]));
    let stores = [memory::Memory::new(), memory::Memory::new()];
    let one = instance(&network, "one", &stores[0], &list).await;
    let two = instance(&network, "two", &stores[1], &list).await;
    let first = worker(&network, ["one"]).start().await.unwrap();
    ships(&one, "n-1").await;
    ships(&two, "n-2").await;
    let second = worker(&network, ["two"]).start().await.unwrap();
    let parted = tokio::time::timeout(MINUTE, first.ended()).await.expect("it ends");
    assert!(matches!(&parted, Parted::Dismissed { for_good: true, .. }), "{parted}");
    ships(&one, "n-3").await;
    ships(&two, "n-4").await;
    assert_eq!(second.drain().await, Parted::Drained);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_others_is_asked_once_for_each_connection() {
    let (network, list) = (Network::new(38), List::default());
    let store = memory::Memory::new();
    let first = instance(&network, "one", &store, &list).await;
    let _worker = worker(&network, ["one"]).start().await.unwrap();
    ships(&first, "s-1").await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(list.asked(), 1);
    crash(&network, "one", first);
    let again = instance(&network, "one", &store, &list).await;
    ships(&again, "s-2").await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(list.asked(), 2);

    list.set(&["one", "two"]); // by now it shares its database
    let two = instance(&network, "two", &memory::Memory::new(), &list).await;
    crash(&network, "one", again);
    let _one = instance(&network, "one", &store, &list).await;
    ships(&two, "s-3").await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_is_one_for_all_instances() {
    let (network, list) = (Network::new(39), List::of(&["one", "two"]));
    let stores = [memory::Memory::new(), memory::Memory::new()];
    let one = instance(&network, "one", &stores[0], &list).await;
    let two = instance(&network, "two", &stores[1], &list).await;
    let worker = worker(&network, ["one"]).patience(3 * SECOND).start().await.unwrap();
    ships(&one, "d-1").await;
    let began = tokio::time::Instant::now();
    let _run = two.start("stick", &()).id("d-2").await.unwrap();
    until("it is in flight", async || calls("d-2", "stick") == 1).await;
    assert_eq!(worker.drain().await, Parted::OutOfPatience, "one of two could not wait for what was in flight");
    assert!((3 * SECOND..10 * SECOND).contains(&began.elapsed()), "{:?}", began.elapsed());
    assert!(one.workers().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_are_found_over_http2() {
    let list = List::default();
    let listening = async || {
        let builder = Engine::in_memory().messages(Node::builder().name("server")).workers().brought_by_workers("ship");
        let engine = builder.start().await.unwrap();
        list.answer_at(engine.node().unwrap());
        let address = engine.node().unwrap().listen("127.0.0.1:0", ListenSettings::default()).await.unwrap();
        (engine, format!("http://{address}"))
    };
    let ((one, first), (two, second)) = (listening().await, listening().await);
    list.set(&[&first, &second]);
    let worker = Worker::of(first).name("w1").register(ship).start().await.unwrap();
    ships(&one, "h-1").await;
    ships(&two, "h-2").await;
    assert_eq!(worker.drain().await, Parted::Drained);
}
