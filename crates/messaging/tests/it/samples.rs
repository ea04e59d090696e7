//! Samples: the newest win, and nothing is sent again.

use crate::network::{Count, Raw, echo, ms, node, node_by, pass, secs, two, until};
use bytes::BytesMut;
use parking_lot::Mutex;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;
use steadfast_messaging::envelope::{self, Body, Hello, Sample};
use steadfast_messaging::wire::memory::{Faults, Memory};
use steadfast_messaging::{Code, Failure, Limits, Node};
use tokio::time::Instant;

/// What the handler of a route was given; it takes that long for each.
fn seen(node: &Node, route: &str, each: u64) -> Arc<Mutex<Vec<u32>>> {
    let seen: Arc<Mutex<Vec<u32>>> = Arc::default();
    let kept = Arc::clone(&seen);
    node.route_samples(route, move |incoming| {
        kept.lock().push(std::str::from_utf8(&incoming.payload).unwrap().parse().unwrap());
        async move { pass(ms(each)).await }
    });
    seen
}

#[tokio::test(start_paused = true)]
async fn the_first_sample_makes_a_connection_and_those_after_it_arrive_in_order() {
    let (network, a, b) = two(1);
    let seen = seen(&b, "s", 0);
    a.sample("b", "s", "0").unwrap();
    until("there is a connection", || a.counts().connections == 1).await;
    for number in 1..=50 {
        a.sample("b", "s", number.to_string()).unwrap();
    }
    until("all have come", || seen.lock().len() == 50).await;
    assert!(seen.lock().is_sorted());
    assert_eq!(network.counts().links, 1);
    assert_eq!(a.sample("b", "s", vec![0; 5 << 20]).unwrap_err().code, Code::InvalidArgument);
    a.sample("b", "nobody", "").unwrap();
}

#[tokio::test(start_paused = true)]
async fn when_too_many_wait_the_newest_win_on_either_side() {
    let (network, a, b) = two(1);
    let seen = seen(&b, "slow", 1000);
    a.sample("b", "slow", "0").unwrap();
    until("there is a connection", || a.counts().connections == 1).await;
    for number in 1..=1000 {
        a.sample("b", "slow", number.to_string()).unwrap();
    }
    pass(secs(100)).await;
    let came = seen.lock().clone();
    assert!(came.len() <= 65 && came.is_sorted() && came.last() == Some(&1000), "{came:?}");
    assert!(came[came.len() - 60..].iter().all(|number| *number > 900), "{came:?}");
    for number in 1001..=2000 {
        a.sample("b", "slow", number.to_string()).unwrap();
        pass(ms(1)).await; // each travels by itself: it is the handler that is too slow
    }
    pass(secs(100)).await;
    let came = seen.lock().clone();
    assert!(came.len() <= 65 + 66 && came.last() == Some(&2000), "{came:?}");
    assert_eq!((network.counts().dropped, b.counts().requests), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_lost_sample_is_not_sent_again_and_a_handler_that_panics_gets_the_next_one() {
    let (network, a, b) = two(1);
    let first = seen(&b, "s", 0);
    a.sample("b", "s", "0").unwrap();
    until("there is a connection", || a.counts().connections == 1).await;
    network.set("a", "b", Faults { drop: 1.0, ..Faults::default() });
    a.sample("b", "s", "1").unwrap();
    pass(secs(2)).await;
    network.heal();
    a.sample("b", "s", "2").unwrap();
    pass(secs(20)).await;
    assert_eq!(*first.lock(), [2]);
    let runs = Count::default();
    let run = runs.clone();
    b.route_samples("panics", move |_| {
        assert!(run.add() != 1, "the first one, on purpose");
        async {}
    });
    a.sample("b", "panics", "").unwrap();
    a.sample("b", "panics", "").unwrap();
    until("both were given to it", || runs.get() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_does_not_end_is_dropped_after_a_minute_and_the_newest_follow() {
    let (_network, a, b) = two(1);
    let seen: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let kept = Arc::clone(&seen);
    b.route_samples("stuck", move |incoming| {
        kept.lock().push(incoming.left());
        std::future::pending()
    });
    a.sample("b", "stuck", "").unwrap();
    until("there is a connection", || a.counts().connections == 1).await;
    let at = Instant::now();
    for _ in 0..2 {
        a.sample("b", "stuck", "").unwrap();
    }
    pass(secs(59)).await;
    assert_eq!(seen.lock().len(), 1);
    until("the second has its turn", || seen.lock().len() == 2).await;
    assert!((secs(60)..secs(61)).contains(&at.elapsed()), "{:?}", at.elapsed());
    assert_eq!(*seen.lock(), [secs(60), secs(60)]);
}

/// A hundred samples a second for ten seconds.
async fn a_thousand(from: &Node, to: &str) {
    for number in 0..1000 {
        from.sample(to, "s", number.to_string()).unwrap();
        pass(ms(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn samples_to_a_peer_that_is_down_dial_it_with_pauses() {
    let (network, a, b) = two(1);
    let seen = seen(&b, "s", 0);
    network.set("a", "b", Faults { refuse: true, ..Faults::default() });
    a_thousand(&a, "b").await;
    let dialled = network.counts().links;
    assert!((10..=35).contains(&dialled), "{dialled} times in ten seconds");
    network.heal();
    a_thousand(&a, "b").await;
    assert!(seen.lock().len() > 850, "the next dial is a second away at the most: {}", seen.lock().len());
    assert!(network.counts().links <= dialled + 2);
}

/// A listener that asks everybody to come again after that time, and how many came.
fn asks_to_wait(network: &Memory, name: &str, time: Duration) -> Count {
    let (mut listener, came) = (network.listen(name), Count::default());
    let (comes, node) = (came.clone(), name.to_owned());
    tokio::spawn(async move {
        while let Some(link) = listener.accept().await {
            comes.add();
            let full = Failure::new(Code::ResourceExhausted, "full").retry_after(time);
            let mut packet = BytesMut::new();
            let refused = Some((&full).into());
            envelope::append(&mut packet, &Body::Hello(Hello { version: 1, node: node.clone(), frame_bytes_max: 1 << 20, refused }));
            drop(link.outgoing.send(packet.freeze()).await);
        }
    });
    came
}

#[tokio::test(start_paused = true)]
async fn who_is_asked_to_wait_does_not_dial_before_that_neither_for_samples_nor_for_streams() {
    let network = Memory::new(1);
    let a = node(&network, "a");
    let came = asks_to_wait(&network, "full", secs(4));
    a_thousand(&a, "full").await;
    assert_eq!(came.get(), 3, "at once, after four seconds and after eight");
    let at = Instant::now();
    let failure = a.stream("full", "s", "").into_future().await.unwrap_err();
    assert_eq!((failure.code, came.get()), (Code::ResourceExhausted, 4));
    assert!((ms(1900)..ms(2100)).contains(&at.elapsed()), "{:?}", at.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_samples_found_out_does_not_hold_up_a_peer_that_is_back() {
    let (network, a, b) = two(1);
    echo(&b, "echo");
    network.set("a", "b", Faults { refuse: true, ..Faults::default() });
    a_thousand(&a, "b").await;
    network.heal();
    a.call("b", "echo", "").await.unwrap();
    pass(secs(2)).await;
    network.cut_all();
    let at = Instant::now();
    a.call("b", "echo", "").await.unwrap();
    assert_eq!(at.elapsed(), ms(0), "there was a connection that lived, so the next is made at once");
}

/// A node of that name that takes payloads of a thousand bytes.
fn narrow(network: &Memory, name: &str) -> Node {
    let mut limits = Limits::default();
    limits.payload_bytes_max = 1000;
    node_by(network, name, |builder| builder.limits(limits))
}

#[tokio::test(start_paused = true)]
async fn a_sample_that_is_longer_than_the_other_side_takes_is_refused_where_it_is_sent() {
    let network = Memory::new(1);
    let (a, b) = (node(&network, "a"), narrow(&network, "b"));
    let seen = seen(&b, "s", 0);
    a.sample("b", "s", "0").unwrap();
    until("there is a connection", || a.counts().connections == 1).await;
    let failure = a.sample("b", "s", "0".repeat(1001)).unwrap_err();
    assert_eq!((failure.code, &*failure.message), (Code::InvalidArgument, "b takes payloads of at most 1000 bytes"));
    a.sample("b", "s", "0".repeat(1000)).unwrap();
    until("the one that is short enough has come", || seen.lock().len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_sample_that_is_too_long_is_dropped_where_it_comes_and_others_follow() {
    let network = Memory::new(1);
    let b = narrow(&network, "b");
    let seen = seen(&b, "s", 0);
    let mut raw = Raw::connect(&network, "b", "raw").await;
    let sample = |payload: String| Body::Sample(Sample { route: "s".into(), payload: payload.into() });
    raw.say(&[sample("0".repeat(1001)), sample("7".into())]).await;
    until("the short one has come", || seen.lock().contains(&7)).await;
    assert_eq!(*seen.lock(), [7]);
}
