//! What the budget of a peer is for, and what it is not: a cut brings all that was under way again.

use crate::network::{Count, ms, pass, secs, two, until};
use bytes::Bytes;
use std::future::IntoFuture;
use steadfast_messaging::wire::memory::Faults;
use steadfast_messaging::{Failure, Node};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// More than the budget has turns for in the time of a call.
const MANY: usize = 2000;

type Calls = Vec<JoinHandle<Result<Bytes, Failure>>>;

fn calls(from: &Node, route: &str) -> Calls {
    (0..MANY).map(|_| tokio::spawn(from.call("b", route, "").into_future())).collect()
}

async fn succeed(calls: Calls) {
    for call in calls {
        call.await.unwrap().unwrap();
    }
}

/// A handler that waits to be let go, and how often it ran.
fn gate(node: &Node, route: &str) -> (Count, watch::Sender<bool>) {
    let (ran, open) = (Count::default(), watch::Sender::new(false));
    let (runs, opens) = (ran.clone(), open.subscribe());
    node.route(route, move |_| {
        runs.add();
        let mut opens = opens.clone();
        async move {
            opens.wait_for(|open| *open).await.unwrap();
            Ok("")
        }
    });
    (ran, open)
}

#[tokio::test(start_paused = true)]
async fn all_that_was_under_way_when_the_connection_was_cut_comes_again_and_runs_once() {
    let (network, a, b) = two(1);
    let (ran, open) = gate(&b, "gate");
    let calls = calls(&a, "gate");
    until("all have come", || b.counts().requests == MANY).await;
    network.cut_all();
    until("all have come again", || b.counts().totals.calls_received == 2 * MANY as u64).await;
    open.send_replace(true);
    succeed(calls).await;
    assert_eq!((ran.get(), a.counts().totals.retries), (MANY, MANY as u64));
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_sent_does_not_ask_the_budget() {
    let (network, a, b) = two(1);
    let (ran, open) = gate(&b, "gate");
    open.send_replace(true);
    network.set("a", "b", Faults { refuse: true, ..Faults::default() });
    let calls = calls(&a, "gate");
    pass(ms(500)).await;
    assert_eq!(ran.get(), 0);
    network.heal();
    succeed(calls).await;
    assert_eq!(ran.get(), MANY);
}

#[tokio::test(start_paused = true)]
async fn who_is_cut_off_again_and_again_waits_for_a_turn() {
    let (network, a, b) = two(1);
    let (_ran, open) = gate(&b, "gate");
    let calls = calls(&a, "gate");
    for cut in 1..=2 {
        until("all have come", || b.counts().totals.calls_received == cut * MANY as u64).await;
        network.cut_all();
    }
    pass(secs(3)).await;
    let again = b.counts().totals.calls_received as usize - 2 * MANY;
    assert!((100..=100 + MANY / 10 + 40).contains(&again), "the floor, a tenth, and ten a second: {again}");
    open.send_replace(true);
    drop(calls);
}
