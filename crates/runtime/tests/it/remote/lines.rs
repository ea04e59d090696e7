//! What a server does with lines: limits, nonsense, and worthless promises.

use super::link::{Link, Mode};
use super::programs::{calls, dropped, let_go, only};
use super::world::{HEARTBEAT, HEARTBEAT_MAX, World, until};
use bytes::Bytes;
use std::time::Duration;
use steadfast_kernel::{EntityId, Origin, Payload, RunId};
use steadfast_runtime::clock::VirtualClock;
use steadfast_runtime::{Duplex, Gone, Hello, Parted, Registry, Worker};
use steadfast_store::memory::Memory;
use steadfast_store::shard_of;

#[tokio::test(start_paused = true)]
async fn nonsense_ends_the_line_and_nothing_else() {
    let world = World::new().await;
    for nonsense in [&[0xff; 9][..], &[3, 1, 2, 3], &[0], &[2, 0x08, 0xff]] {
        let (server, mut there) = Duplex::pair(8);
        let gone = tokio::spawn(world.engine.attach(world.worker("w1").hello(), server));
        assert!(there.incoming.recv().await.is_some(), "it is welcome");
        there.outgoing.send(Bytes::copy_from_slice(nonsense)).await.unwrap();
        let Gone::Broken(why) = gone.await.unwrap() else { panic!("{nonsense:?} was understood") };
        println!("{nonsense:?}: {why}");
        assert!(there.incoming.recv().await.is_some() && there.incoming.recv().await.is_none(), "it is told why, and that is the end");
    }
    let _link = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let run = world.start("ten", "sense").await;
    world.engine.ended(&run).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hello_that_cannot_be_is_refused_for_good() {
    let world = World::new().await;
    let longer = HEARTBEAT_MAX + Duration::from_millis(1);
    for (worker, reason) in [
        (Worker { sessions_max: 0, ..world.worker("w1") }, "sessions_max"),
        (Worker { heartbeat: longer, ..world.worker("w1") }, "workers.heartbeat_max"),
    ] {
        let (server, there) = Duplex::pair(8);
        let gone = tokio::spawn(world.engine.attach(worker.hello(), server));
        let parted = worker.serve(there, std::future::pending()).await;
        assert!(matches!(gone.await.unwrap(), Gone::Refused(_)));
        assert!(matches!(&parted, Parted::Dismissed { for_good: true, why } if why.contains(reason)), "{parted}");
        assert!(!parted.may_come_again());
    }
}

#[tokio::test(start_paused = true)]
async fn one_worker_too_many_may_come_later() {
    let few = |config: &mut steadfast_runtime::Config| config.workers.workers_max = 2;
    let world = World::with(Memory::new(), VirtualClock::start(), Registry::default(), few).await;
    let one = Link::new(&world.engine, &world.worker("w1"));
    let two = Link::new(&world.engine, &world.worker("w2"));
    until("both are there", async || world.engine.workers().len() == 2).await;
    let (server, there) = Duplex::pair(8);
    let gone = tokio::spawn(world.engine.attach(world.worker("w3").hello(), server));
    let parted = world.worker("w3").serve(there, std::future::pending()).await;
    assert_eq!(gone.await.unwrap(), Gone::TooMany(2));
    assert!(matches!(&parted, Parted::Dismissed { for_good: false, why } if why.contains("workers.max")), "{parted}");
    let _again = Link::new(&world.engine, &world.worker("w2")); // takes the place of the other
    assert_eq!(two.gone.await.unwrap(), Gone::Replaced);
    one.set(Mode::Cut);
    one.gone.await.unwrap();
    let _third = Link::new(&world.engine, &world.worker("w3"));
    until("there is room for it", async || world.engine.workers().iter().any(|worker| worker.name == "w3")).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_says_nothing_at_all_is_given_nothing() {
    let world = World::new().await;
    let (server, mut there) = Duplex::pair(8);
    let gone = tokio::spawn(world.engine.attach(world.worker("mute").hello(), server));
    assert!(there.incoming.recv().await.is_some(), "it is welcome");
    let run = world.start("ten", "mute").await;
    until("it waits", async || world.waits(&run).await == ["NO_WORKER"]).await;
    assert!(there.incoming.try_recv().is_err());
    assert!(matches!(gone.await.unwrap(), Gone::Silent(time) if time >= HEARTBEAT));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_does_not_read_is_given_up() {
    let small = |config: &mut steadfast_runtime::Config| config.workers.queued_bytes_max = 1 << 20;
    let world = World::with(Memory::new(), VirtualClock::start(), Registry::default(), small).await;
    let link = Link::new(&world.engine, &world.worker("slow"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let run = world.start("holds", "slow").await;
    until("it holds", async || calls("slow", "hold") == 1).await;
    link.set(Mode::HoldDown);
    let large = Payload::json(vec![b'1'; 64 << 10]);
    for _ in 0..200 {
        world.engine.signal(&run, "any", large.clone(), Origin::default()).await.unwrap();
    }
    let gone = link.gone.await.unwrap();
    let Gone::Slow(bytes) = gone else { panic!("{gone}") };
    assert!((1 << 20..2 << 20).contains(&bytes), "{bytes}");
    let _other = Link::new(&world.engine, &world.worker("quick"));
    link.parted.await.unwrap(); // it does not know that it is given up, and lets go by itself
    assert_eq!((calls("slow", "hold"), dropped("slow", "hold")), (1, 1));
    tokio::time::sleep(HEARTBEAT).await;
    until("it goes on elsewhere", async || calls("slow", "hold") == 2).await;
    let_go("slow", "hold", 1);
    world.engine.ended(&run).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_longer_than_a_message_may_be_makes_its_run_wait() {
    let small = |config: &mut steadfast_runtime::Config| {
        config.payload_bytes_max = 2 << 20;
        config.workers.message_bytes_max = (2 << 20) + (64 << 10);
    };
    let world = World::with(Memory::new(), VirtualClock::start(), Registry::default(), small).await;
    let _link = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let fits = world.start("large", "fits").await;
    world.engine.ended(&fits).await.unwrap();
    let run = world.start("huge", "huge").await;
    until("it waits", async || world.waits(&run).await == ["MISMATCH"]).await;
    assert_eq!(world.sessions(), [("w1".to_string(), 0)], "the line stands");
}

#[tokio::test(start_paused = true)]
async fn a_worker_hosts_no_more_than_it_wants_to_and_waiting_runs_make_room() {
    waiting_runs_make_room(1).await;
}

#[tokio::test(start_paused = true)]
async fn waiting_runs_make_room_for_those_of_other_shards() {
    waiting_runs_make_room(4).await;
}

async fn waiting_runs_make_room(shards: u32) {
    let world = World::with(Memory::of_shards(shards), VirtualClock::start(), Registry::default(), |_| {}).await;
    let worker = Worker { sessions_max: 2, ..world.worker("w1") };
    let _link = Link::new(&world.engine, &worker);
    until("it is there", async || world.engine.workers().len() == 1).await;
    let ids: Vec<_> = (0..6).map(|index| format!("room-{shards}-{index}")).collect();
    let mut runs = Vec::new();
    for id in &ids {
        runs.push(world.start("holds", id).await);
    }
    until("two hold", async || ids.iter().map(|id| calls(id, "hold")).sum::<u32>() == 2).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(ids.iter().map(|id| calls(id, "hold")).sum::<u32>(), 2);
    ids.iter().for_each(|id| let_go(id, "hold", 1));
    for run in &runs {
        world.engine.ended(run).await.unwrap();
    }
    let shard = |id: &str| shard_of(&EntityId::Run(RunId::new(id).unwrap()), shards);
    let (a, b) = (format!("room-{shards}-a"), format!("room-{shards}-b"));
    let mut others = (0..).map(|n| format!("room-{shards}-c{n}"));
    let c = others.find(|c| shards == 1 || ![&a, &b].iter().any(|id| shard(id) == shard(c))).unwrap();
    let (one, two) = (world.start("sleeps", &a).await, world.start("sleeps", &b).await);
    until("both are hosted", async || world.sessions() == [("w1".to_string(), 2)]).await;
    let run = world.start("ten", &c).await;
    world.engine.ended(&run).await.unwrap();
    assert!(world.view(&one).await.ended.is_none() && world.view(&two).await.ended.is_none());
    world.engine.ended(&one).await.unwrap();
    world.engine.ended(&two).await.unwrap();
    assert_eq!((calls(&a, "after"), calls(&b, "after")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn two_workers_share_runs_by_what_they_have() {
    let world = World::new().await;
    let (one, two) = (world.worker("w1"), Worker { registry: only(&["holds"]), ..world.worker("w2") });
    let _links = (Link::new(&world.engine, &one), Link::new(&world.engine, &two));
    until("both are there", async || world.engine.workers().len() == 2).await;
    let mut runs = Vec::new();
    for index in 0..4 {
        runs.push(world.start("holds", &format!("share-{index}")).await);
    }
    let waits = world.start("waits", "share-w").await;
    until("all are hosted", async || world.sessions() == [("w1".to_string(), 3), ("w2".to_string(), 2)]).await;
    let views = world.engine.workers();
    assert!(views[0].workflows.len() > 5 && views[1].workflows.len() == 1 && !views[0].draining);
    assert!(views.iter().all(|view| view.heard_at >= view.since));
    (0..4).for_each(|index| let_go(&format!("share-{index}"), "hold", 1));
    for run in &runs {
        world.engine.ended(run).await.unwrap();
    }
    world.engine.signal(&waits, "go", Payload::json("1"), Origin::default()).await.unwrap();
    world.engine.ended(&waits).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn only_a_worker_with_the_version_of_the_definition_is_given_a_run() {
    let world = World::new().await;
    let mut hello: Hello = world.worker("w1").hello();
    hello.offers.iter_mut().for_each(|offer| offer.versions = Some(["abc".to_string()].into()));
    let (server, there) = Duplex::pair(64);
    let worker = world.worker("w1");
    let _gone = tokio::spawn(world.engine.attach(hello, server));
    tokio::spawn(async move { worker.serve(there, std::future::pending()).await });
    until("it is there", async || world.engine.workers().len() == 1).await;
    let run = world.start("ten", "version").await; // it has no version
    until("it waits", async || world.waits(&run).await == ["NO_WORKER"]).await;
    assert_eq!(world.sessions(), [("w1".to_string(), 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_clock_is_wrong_follows_that_of_the_server() {
    let world = World::new().await;
    let wrong = VirtualClock::start_at(steadfast_kernel::Timestamp::from_micros(1_000_000_000_000));
    let worker = Worker { clock: std::sync::Arc::new(wrong), ..world.worker("w1") };
    let _link = Link::new(&world.engine, &worker);
    until("it is there", async || world.engine.workers().len() == 1).await;
    let (began, run) = (tokio::time::Instant::now(), world.start("sleeps", "skewed").await);
    world.engine.ended(&run).await.unwrap();
    let day = Duration::from_secs(24 * 3600);
    assert!((day..day + Duration::from_secs(2)).contains(&began.elapsed()), "{:?}", began.elapsed());
    let journal = world.journal(&run).await;
    assert!(journal.windows(2).all(|pair| pair[0].at <= pair[1].at));
}
