//! What hosting elsewhere costs.

use super::world::World;
use bytes::{Buf, Bytes};
use futures_util::future::join_all;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use steadfast_runtime::Duplex;
use tokio::sync::mpsc;
use tokio::time::Instant;

const RUNS: usize = 500;

/// Runs of ten steps, all at once. How many there were in a second.
async fn rate(world: &World, prefix: &str) -> f64 {
    let began = Instant::now();
    join_all((0..RUNS).map(async |index| {
        let run = world.start("ten", &format!("{prefix}-{index}")).await;
        world.engine.ended(&run).await.unwrap();
    }))
    .await;
    RUNS as f64 / began.elapsed().as_secs_f64()
}

/// Passes chunks on, and counts them and the messages in them.
async fn count(mut from: mpsc::Receiver<Bytes>, to: mpsc::Sender<Bytes>, counts: Arc<(AtomicUsize, AtomicUsize)>) {
    while let Some(chunk) = from.recv().await {
        counts.0.fetch_add(1, Ordering::SeqCst);
        let mut rest = chunk.clone();
        while rest.has_remaining() {
            counts.1.fetch_add(1, Ordering::SeqCst);
            super::link::message(&mut rest);
        }
        if to.send(chunk).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_are_ready_together_travel_together() {
    let here = rate(&World::local().await, "rate-here").await;
    let world = World::new().await;
    let ((server, to_server), (there, to_worker)) = (Duplex::pair(16), Duplex::pair(16));
    let counts = Arc::<(AtomicUsize, AtomicUsize)>::default();
    let worker = world.worker("w1");
    tokio::spawn(world.engine.attach(worker.hello(), server));
    tokio::spawn(count(to_worker.incoming, to_server.outgoing, Arc::clone(&counts)));
    tokio::spawn(count(to_server.incoming, to_worker.outgoing, Arc::clone(&counts)));
    tokio::spawn(async move { worker.serve(there, std::future::pending()).await });
    while world.engine.workers().is_empty() {
        tokio::task::yield_now().await;
    }
    let there = rate(&world, "rate-there").await;
    let (chunks, messages) = (counts.0.load(Ordering::SeqCst), counts.1.load(Ordering::SeqCst));
    println!(
        "runs of ten steps in a second: {here:.0} here, {there:.0} there ({:.2}); {messages} messages in {chunks} chunks",
        there / here
    );
    assert!(messages > RUNS * 20 && chunks * 4 < messages, "{messages} messages in {chunks} chunks");
}
