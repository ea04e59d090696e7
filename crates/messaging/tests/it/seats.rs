//! Places among the connections: those of a node's own that nobody needs make room, and leave some to those who come.

use crate::network::{Raw, echo, ms, node, node_by, pass, secs, until};
use std::future::{IntoFuture, pending};
use steadfast_messaging::wire::memory::Memory;
use steadfast_messaging::{Code, Failure, Limits, Node, Peer, Policy};
use tokio::time::Instant;

/// A node `a` with four places for connections, and six others that it can call.
fn four_places() -> (Memory, Node, Vec<Node>) {
    let network = Memory::new(1);
    let mut limits = Limits::default();
    limits.connections_max = 4;
    let a = node_by(&network, "a", |builder| builder.limits(limits));
    let others: Vec<_> = (1..=6).map(|number| node(&network, &number.to_string())).collect();
    for other in &others {
        echo(other, "echo");
        other.route("never", |_| pending::<Result<&str, Failure>>());
    }
    (network, a, others)
}

async fn call(from: &Node, to: usize) -> Result<(), Failure> {
    from.call(to.to_string(), "echo", "").policy(Policy::once()).await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn connections_that_nobody_uses_make_room_for_others() {
    let (network, a, _others) = four_places();
    let at = Instant::now();
    for to in (1..=6).chain(1..=6) {
        call(&a, to).await.unwrap();
        pass(ms(1)).await;
    }
    assert!(at.elapsed() < ms(20), "nobody waits, and one that was given up is made again at once: {:?}", at.elapsed());
    assert_eq!(a.counts().connections, 3);
    let _incoming = Raw::connect(&network, "a", "incoming").await;
    until("it has a place", || a.counts().connections == 4).await;
    call(&a, 1).await.unwrap();
    pass(ms(1)).await;
    assert!(a.connected().iter().any(|name| name == "incoming"), "those of others are not given up");
}

#[tokio::test(start_paused = true)]
async fn the_one_that_was_not_used_for_longest_goes_first() {
    let (_network, a, others) = four_places();
    for to in [1, 2, 3, 1] {
        call(&a, to).await.unwrap();
        pass(secs(20)).await; // in which they are asked whether they are alive
    }
    call(&a, 4).await.unwrap();
    pass(ms(1)).await;
    assert_eq!(a.connected(), ["1", "3", "4"]);
    drop(others[2].call(Peer::named("a"), "none", "").await.unwrap_err());
    pass(ms(1)).await;
    call(&a, 5).await.unwrap();
    pass(ms(1)).await;
    assert_eq!(a.connected(), ["3", "4", "5"], "what comes over it is a use as well");
}

#[tokio::test(start_paused = true)]
async fn connections_that_are_in_use_stay_and_leave_a_place_to_those_who_come() {
    let (network, a, others) = four_places();
    a.route("never", |_| pending::<Result<&str, Failure>>());
    others[1].route_streams("stream", |_stream, _| pending());
    let asks = tokio::spawn(a.call("1", "never", "").into_future());
    let stream = a.stream("2", "stream", "").await.unwrap();
    call(&a, 3).await.unwrap();
    let asked = tokio::spawn(others[2].call(Peer::named("a"), "never", "").into_future());
    until("both are asked", || a.counts().requests == 1 && others[0].counts().requests == 1).await;
    let failure = call(&a, 4).await.unwrap_err();
    assert_eq!((failure.code, failure.retry_after), (Code::ResourceExhausted, Some(secs(1))), "{failure:?}");
    let _incoming = Raw::connect(&network, "a", "incoming").await;
    until("it has the last place", || a.counts().connections == 4).await;
    asked.abort();
    until("nobody asks any more", || a.counts().requests == 0).await;
    call(&a, 4).await.unwrap();
    pass(ms(1)).await;
    let mut connected = a.connected();
    connected.sort();
    assert_eq!(connected, ["1", "2", "4", "incoming"]);
    drop((asks, stream));
}

#[tokio::test(start_paused = true)]
async fn who_comes_gets_the_place_of_a_connection_that_nobody_uses() {
    let (network, a, _others) = four_places();
    let mut come = Vec::new();
    for to in 1..=3 {
        call(&a, to).await.unwrap();
    }
    for number in 0..4 {
        come.push(Raw::connect(&network, "a", &format!("incoming-{number}")).await);
    }
    until("all have come", || a.connected().iter().filter(|name| name.starts_with("incoming")).count() == 4).await;
    assert_eq!(call(&a, 1).await.unwrap_err().code, Code::ResourceExhausted, "those of others are not given up");
    drop(come);
    pass(ms(1)).await;
    call(&a, 1).await.unwrap();
}
