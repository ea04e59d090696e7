//! Lines that are slow: who has much to say is not taken for dead.

use super::link::{Link, Mode};
use super::programs::{calls, let_go};
use super::world::{HEARTBEAT, World, until};
use bytes::Bytes;
use std::time::Duration;
use steadfast_kernel::RunId;
use steadfast_runtime::clock::VirtualClock;
use steadfast_runtime::{Duplex, Gone, Parted, Registry, Worker};
use steadfast_store::memory::Memory;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How much a slow line carries in a second, in each direction.
const RATE: usize = 100 << 10;

/// Connects a worker over a slow line, on which little is under way at once.
fn connect(world: &World, worker: Worker) -> (JoinHandle<Gone>, JoinHandle<Parted>) {
    let ((server, to_server), (there, to_worker)) = (Duplex::pair(2), Duplex::pair(2));
    let gone = tokio::spawn(world.engine.attach(worker.hello(), server));
    tokio::spawn(trickle(to_worker.incoming, to_server.outgoing));
    tokio::spawn(trickle(to_server.incoming, to_worker.outgoing));
    (gone, tokio::spawn(async move { worker.serve(there, std::future::pending()).await }))
}

async fn trickle(mut from: mpsc::Receiver<Bytes>, to: mpsc::Sender<Bytes>) {
    while let Some(chunk) = from.recv().await {
        tokio::time::sleep(Duration::from_secs_f64(chunk.len() as f64 / RATE as f64)).await;
        if to.send(chunk).await.is_err() {
            return;
        }
    }
}

async fn world() -> World {
    let large = |config: &mut steadfast_runtime::Config| config.payload_bytes_max = 2 << 20;
    World::with(Memory::new(), VirtualClock::start(), Registry::default(), large).await
}

async fn hold(world: &World, id: &str) -> RunId {
    let run = world.start("heavy", id).await;
    for _ in 0..1000 {
        if calls(id, "hold") == 1 {
            return run;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("{id} never holds: {:?}", world.kinds(&run).await);
}

/// Sees a run to its end. A worker that is given up again and again never comes to it.
async fn end(world: &World, run: &RunId) {
    tokio::time::timeout(100 * HEARTBEAT, world.engine.ended(run)).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_has_much_to_say_is_heard() {
    let world = world().await;
    let (gone, parted) = connect(&world, world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let began = tokio::time::Instant::now();
    let run = hold(&world, "slow-up").await;
    assert!(began.elapsed() > 3 * HEARTBEAT, "each outcome takes longer than a heartbeat");
    let_go("slow-up", "hold", 1);
    end(&world, &run).await;
    assert_eq!(calls("slow-up", "small"), 1, "nothing was lost");
    assert!(!gone.is_finished() && !parted.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_has_much_to_hear_is_answered() {
    let world = world().await;
    let first = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let mut runs = Vec::new();
    for id in ["slow-1", "slow-2", "slow-3"] {
        runs.push(hold(&world, id).await);
    }
    let (gone, parted) = connect(&world, world.worker("w2"));
    until("both are there", async || world.engine.workers().len() == 2).await;
    first.set(Mode::Cut);
    tokio::time::sleep(HEARTBEAT).await;
    let began = tokio::time::Instant::now();
    for run in &runs {
        let_go(run.as_str(), "hold", 1);
        end(&world, run).await;
        assert_eq!((calls(run.as_str(), "hold"), calls(run.as_str(), "small")), (2, 1), "it was opened once more, and not again");
    }
    assert!(began.elapsed() > 5 * HEARTBEAT, "the journals are long");
    assert!(!gone.is_finished() && !parted.is_finished());
}
