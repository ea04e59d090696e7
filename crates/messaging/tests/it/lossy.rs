//! Real sockets through a proxy that cuts every connection every second, stalls, and swallows answers.

use crate::network::{echo, until};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use steadfast_messaging::{Call, Class, Failure, Incoming, Limits, Node, Peer, Policy};
use steadfast_test_servers::{Losses, Proxy};
use tokio::task::JoinSet;

const SIDE_BY_SIDE: usize = 64;

/// A bank whose every request takes a while, a shop, and a bad network between them.
struct World {
    bank: Node,
    shop: Node,
    proxy: Proxy,
    /// How often each request ran.
    runs: Arc<Vec<AtomicU32>>,
    seed: u64,
}

impl World {
    async fn new(requests: usize, seed: u64) -> Self {
        let bank = Node::bind("127.0.0.1:0").await.unwrap();
        let runs: Arc<Vec<AtomicU32>> = Arc::new((0..requests).map(|_| AtomicU32::new(0)).collect());
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
        World { bank, shop, proxy, runs, seed }
    }

    fn peer(&self) -> Peer {
        Peer::at(format!("http://127.0.0.1:{}", self.proxy.port()))
    }

    /// All requests, so many at a time: what came of each. The first of them lose their answers.
    async fn call(&self, make: fn(Call) -> Call) -> Vec<(usize, Result<Bytes, Failure>)> {
        let (mut calls, count, peer) = (JoinSet::new(), self.runs.len(), self.peer());
        echo(&self.bank, "echo");
        self.shop.call(&peer, "echo", "").await.unwrap(); // so that there is a connection
        self.proxy.swallow_answers();
        for first in 0..SIDE_BY_SIDE {
            let (shop, peer) = (self.shop.clone(), peer.clone());
            calls.spawn(async move {
                let mut ended = Vec::new();
                for number in (first..count).step_by(SIDE_BY_SIDE) {
                    ended.push((number, make(shop.call(&peer, "count", number.to_string())).await));
                }
                ended
            });
        }
        self.swallowed().await;
        calls.join_all().await.concat()
    }

    /// All that were begun have run, their answers have vanished, and their connection is cut. From now on chance rules.
    async fn swallowed(&self) {
        until("they have run", || (0..SIDE_BY_SIDE).all(|number| self.runs(number) == 1) && self.bank.counts().requests == 0).await;
        let nobody_has_gone_on = (SIDE_BY_SIDE..2 * SIDE_BY_SIDE).all(|number| self.runs(number) == 0);
        assert!(nobody_has_gone_on, "an answer has come through");
        self.proxy.lose(Some(Losses::new(self.seed)));
        self.proxy.cut();
        self.proxy.let_go();
    }

    fn runs(&self, number: usize) -> u32 {
        self.runs[number].load(Ordering::SeqCst)
    }

    /// The network was bad indeed: of the first requests at the least each was asked for again, and connections were cut beside that of theirs.
    fn was_bad(&self, retries: u64) {
        let (connections, totals) = (self.proxy.connections(), self.shop.counts().totals);
        println!("{connections} connections, {totals:?}");
        assert!(connections >= 4 && totals.retries >= retries, "that was no bad network: {connections} connections, {totals:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_through_a_lossy_proxy_all_succeed_and_each_handler_ran_once() {
    let seed = crate::seed();
    let world = World::new(10_000, seed).await;
    let patient = |call: Call| {
        let policy = Policy::transient().max_attempts(100).attempt_timeout(Duration::from_secs(1));
        call.policy(policy).timeout(Duration::from_secs(120))
    };
    for (number, outcome) in world.call(patient).await {
        assert_eq!(outcome.unwrap(), number.to_string());
    }
    let wrong: Vec<_> = (0..10_000).map(|number| (number, world.runs(number))).filter(|(_, runs)| *runs != 1).collect();
    assert_eq!(wrong, [], "seed {seed}");
    assert!(world.proxy.connections() >= 5);
    world.was_bad(100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_the_policy_that_is_usual_no_call_runs_twice_and_one_that_fails_says_that_it_may_work_later() {
    let seed = crate::seed();
    let world = World::new(5_000, seed).await;
    let (mut succeeded, mut failed) = (0, 0);
    for (number, outcome) in world.call(|call| call).await {
        match outcome {
            Ok(answer) => {
                assert_eq!((answer, world.runs(number)), (number.to_string().into(), 1), "seed {seed}");
                succeeded += 1;
            }
            Err(failure) => {
                let may_work_later = failure.class == Class::Transient || failure.max_attempts.is_some();
                assert!(may_work_later && failure.attempts <= 3 && world.runs(number) <= 1, "seed {seed}: {failure:?}");
                failed += 1;
            }
        }
    }
    println!("{succeeded} succeeded, {failed} failed");
    assert!(succeeded > 2_500, "seed {seed}: {failed} failed");
    world.was_bad(SIDE_BY_SIDE as u64);
}
