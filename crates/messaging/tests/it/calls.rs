//! Calls: sent again within the deadline, executed once.

use crate::network::{echo, seed_or, two};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use steadfast_messaging::wire::memory::Faults;

#[tokio::test(start_paused = true)]
async fn a_call_is_answered_and_either_side_may_call_the_other() {
    let (_network, a, b) = two(1);
    echo(&b, "echo");
    a.route("who", |_| async { Ok("a") });
    b.route("back", {
        let b = b.clone();
        move |incoming| {
            let b = b.clone();
            async move { b.call(&incoming.caller.peer, "who", "").await }
        }
    });
    assert_eq!(a.call("b", "echo", "hello").await.unwrap(), "hello");
    assert_eq!(a.call("b", "back", "").await.unwrap(), "a", "over the connection that a has made");
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_calls_on_a_bad_network_run_once_each_and_all_succeed() {
    let seed = seed_or(7);
    let (network, a, b) = two(seed);
    let runs: Arc<Vec<AtomicU32>> = Arc::new((0..10_000).map(|_| AtomicU32::new(0)).collect());
    b.route("count", {
        let runs = Arc::clone(&runs);
        move |incoming| {
            let number: usize = std::str::from_utf8(&incoming.payload).unwrap().parse().unwrap();
            runs[number].fetch_add(1, Ordering::Relaxed);
            async move { Ok::<Bytes, _>(incoming.payload) }
        }
    });
    let ms = Duration::from_millis;
    network.set_everywhere(Faults {
        drop: 0.02,
        duplicate: 0.02,
        reorder: 0.02,
        delay: Some(ms(0)..=ms(20)),
        cut_after: Some(ms(500)..=ms(2000)),
        ..Faults::default()
    });
    let mut calls = tokio::task::JoinSet::new();
    for worker in 0..64 {
        let a = a.clone();
        calls.spawn(async move {
            for number in (worker..10_000).step_by(64) {
                let policy = steadfast_messaging::Policy::transient().max_attempts(20).attempt_timeout(ms(500));
                let call = a.call("b", "count", number.to_string()).timeout(Duration::from_secs(600)).policy(policy);
                assert_eq!(call.await.unwrap(), number.to_string());
            }
        });
    }
    while let Some(done) = calls.join_next().await {
        done.unwrap();
    }
    let wrong: Vec<_> = runs
        .iter()
        .map(|runs| runs.load(Ordering::Relaxed))
        .enumerate()
        .filter(|(_, runs)| *runs != 1)
        .collect();
    assert_eq!(wrong, [], "seed {seed}");
    println!("{:?} {:?}", network.counts(), b.counts());
}
