//! Real sockets through a proxy that cuts every connection every second, stalls, and swallows answers.

use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use steadfast_messaging::{Incoming, Limits, Node, Peer, Policy};
use steadfast_test_servers::{Losses, Proxy};
use tokio::task::JoinSet;

const CALLS: usize = 10_000;
const SIDE_BY_SIDE: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_through_a_lossy_proxy_all_succeed_and_each_handler_ran_once() {
    let seed = crate::seed();
    let bank = Node::bind("127.0.0.1:0").await.unwrap();
    let runs: Arc<Vec<AtomicU32>> = Arc::new((0..CALLS).map(|_| AtomicU32::new(0)).collect());
    bank.route("count", {
        let runs = Arc::clone(&runs);
        move |incoming: Incoming| {
            let number: usize = std::str::from_utf8(&incoming.payload).unwrap().parse().unwrap();
            runs[number].fetch_add(1, Ordering::SeqCst);
            async move {
                let work = Duration::from_millis(20 + number as u64 % 40); // so that connections are cut while handlers run
                let _it_takes_so_long = tokio::time::timeout(work, std::future::pending::<()>()).await;
                Ok::<Bytes, _>(incoming.payload)
            }
        }
    });
    let proxy = Proxy::before(bank.addr().unwrap().port());
    let mut limits = Limits::default();
    (limits.ping_after, limits.dead_after) = (Duration::from_millis(500), Duration::from_millis(1500));
    let shop = Node::builder().name("shop").limits(limits).bind("127.0.0.1:0").await.unwrap();
    let peer = Peer::at(format!("http://127.0.0.1:{}", proxy.port()));
    proxy.lose(Some(Losses::new(seed)));

    let mut calls = JoinSet::new();
    for first in 0..SIDE_BY_SIDE {
        let (shop, peer) = (shop.clone(), peer.clone());
        calls.spawn(async move {
            for number in (first..CALLS).step_by(SIDE_BY_SIDE) {
                let policy = Policy::transient().max_attempts(100).attempt_timeout(Duration::from_secs(1));
                let call = shop.call(&peer, "count", number.to_string()).policy(policy).timeout(Duration::from_secs(120));
                assert_eq!(call.await.unwrap(), number.to_string());
            }
        });
    }
    while let Some(done) = calls.join_next().await {
        done.unwrap();
    }
    let wrong: Vec<_> = runs
        .iter()
        .map(|runs| runs.load(Ordering::SeqCst))
        .enumerate()
        .filter(|(_, runs)| *runs != 1)
        .collect();
    assert_eq!(wrong, [], "seed {seed}");
    let (connections, totals) = (proxy.connections(), shop.counts().totals);
    println!("{connections} connections, {totals:?}");
    assert!(connections >= 5 && totals.retries >= 100, "that was no bad network: {connections} connections, {totals:?}");
}
