//! Instances ask each other over real sockets.
//!
//! Subject: `crates/runtime/src/cluster/asked.rs`.

use super::{LEASE, all_shared};
use std::sync::Arc;
use steadfast::cluster::{Cluster, INSTANCES, Line, Member};
use steadfast::memory::Memory;
use steadfast::messages::Node;
use steadfast::{Clock, Ctx, Engine, Failure, SystemClock, workflow};
use steadfast_store::memory::MemoryLeases;

#[workflow]
async fn length(ctx: Ctx, text: String) -> Result<usize, Failure> {
    ctx.step("count", || {
        let length = text.len();
        async move { Ok::<_, Failure>(length) }
    })
    .await
}

async fn start(leases: &MemoryLeases, store: &Memory, id: &str) -> (Engine, Node) {
    let (store, node) = (store.another(), Node::bind("127.0.0.1:0").await.unwrap());
    let address = format!("http://{}", node.addr().unwrap());
    let member = Member { id: id.into(), name: "machine".into(), address, version: "1".into() };
    let cluster = Cluster { leases: Arc::new(leases.of_another(&store)), member, carrier: Arc::new(Line::new(node.clone())) };
    let engine = Engine::on(store).register(length).cluster(cluster).start().await.unwrap();
    engine.answer_instances(&node);
    (engine, node)
}

#[tokio::test(flavor = "multi_thread")]
async fn short_and_long_inputs_reach_the_shard_of_their_run() {
    let store = Memory::of_shards(8);
    let leases = MemoryLeases::new(&store, LEASE, || SystemClock.now());
    let (a, node) = start(&leases, &store, "a").await;
    let (b, _other) = start(&leases, &store, "b").await;
    all_shared(&a, 2).await;
    for number in 0..8 {
        for (size, engine, other) in [(10, &a, &b), (3 << 19, &b, &a)] {
            let id = format!("length-{number}-{size}");
            engine.start("length", &"\"".repeat(size)).id(&id).await.unwrap();
            assert_eq!(other.run(&id).unwrap().result::<usize>().await.unwrap(), size);
        }
    }
    let told = node.call(format!("http://{}", node.addr().unwrap()), INSTANCES, "").await.unwrap();
    let told: serde_json::Value = serde_json::from_slice(&told).unwrap();
    assert_eq!(told["instances"].as_array().unwrap().len(), 2, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_question_is_answered_and_nothing_happens() {
    let store = Memory::of_shards(8);
    let leases = MemoryLeases::new(&store, LEASE, || SystemClock.now());
    let (_a, node) = start(&leases, &store, "a").await;
    let answer = node.call(format!("http://{}", node.addr().unwrap()), "steadfast.shards", "nonsense").await.unwrap();
    assert_eq!(answer, r#"{"Err":"Unknown"}"#);
}
