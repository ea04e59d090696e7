//! The line of a route: bounded, and nobody keeps a place in it who does not wait any more.

use crate::network::{Count, Raw, ms, node, node_by, pass, request, secs, two, until};
use bytes::Bytes;
use std::future::IntoFuture;
use steadfast_messaging::envelope::{Body, Request};
use steadfast_messaging::wire::memory::Memory;
use steadfast_messaging::{Code, Failure, Limits, Node, Policy, Route};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A route whose handlers run one at a time and wait to be let go, and how often one was called.
fn gate(node: &Node, make: impl FnOnce(Route) -> Route) -> (Count, watch::Sender<bool>) {
    let (called, open) = (Count::default(), watch::Sender::new(false));
    let (calls, opens) = (called.clone(), open.subscribe());
    let handler = move |_| {
        calls.add();
        let mut opens = opens.clone();
        async move {
            opens.wait_for(|open| *open).await.unwrap();
            Ok("")
        }
    };
    node.route_by("gate", make(Route::new(handler).side_by_side(1).in_line(3)));
    (called, open)
}

fn call(node: &Node, payload: &'static str) -> JoinHandle<Result<Bytes, Failure>> {
    tokio::spawn(node.call("b", "gate", payload).policy(Policy::once()).into_future())
}

/// Fills the line: the first runs, and three wait.
async fn fill(a: &Node, b: &Node) -> Vec<JoinHandle<Result<Bytes, Failure>>> {
    let mut calls = vec![call(a, "")];
    until("it runs", || b.counts().requests == 1).await;
    calls.extend((0..3).map(|_| call(a, "")));
    until("the others wait", || b.counts().requests == 4).await;
    calls
}

#[tokio::test(start_paused = true)]
async fn a_full_line_refuses_calls_and_tells_and_other_routes_go_on() {
    let (_network, a, b) = two(1);
    let (called, open) = gate(&b, |route| route);
    b.route("other", |_| async { Ok("other") });
    let calls = fill(&a, &b).await;
    let failure = call(&a, "").await.unwrap().unwrap_err();
    assert_eq!((failure.code, failure.retry_after), (Code::ResourceExhausted, Some(ms(100))), "{failure:?}");
    let failure = a.tell("b", "gate", "").policy(Policy::once()).unposted().await.unwrap_err();
    assert_eq!(failure.code, Code::ResourceExhausted, "it was not taken");
    assert_eq!(a.call("b", "other", "").await.unwrap(), "other");
    assert_eq!((b.counts().requests, b.counts().inbox.running), (4, 4), "nothing is left of what was refused");
    let patient = tokio::spawn(a.call("b", "gate", "").into_future());
    pass(ms(50)).await;
    open.send_replace(true);
    for call in calls.into_iter().chain([patient]) {
        call.await.unwrap().unwrap();
    }
    assert_eq!(called.get(), 5);
}

#[tokio::test(start_paused = true)]
async fn those_of_another_key_run_though_the_line_of_one_is_full() {
    let (_network, a, b) = two(1);
    let (called, _open) = gate(&b, |route| route.side_by_side(2).serial_by(|incoming| incoming.payload.clone()));
    let _calls = fill(&a, &b).await;
    assert_eq!(called.get(), 1);
    assert_eq!(call(&a, "").await.unwrap().unwrap_err().code, Code::ResourceExhausted);
    let _other = call(&a, "another key");
    until("it runs", || called.get() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_called_off_leaves_the_line_at_once_and_is_never_begun() {
    for once in [true, false] {
        let (_network, a, b) = two(1);
        let (called, open) = gate(&b, |route| if once { route } else { route.every_time() });
        let calls = fill(&a, &b).await;
        calls[1..].iter().for_each(JoinHandle::abort);
        until("they have left", || b.counts().requests == 1).await;
        let rest: Vec<_> = (0..3).map(|_| call(&a, "")).collect();
        until("there is room for others", || b.counts().requests == 4).await;
        open.send_replace(true);
        for call in rest {
            call.await.unwrap().unwrap();
        }
        assert_eq!((called.get(), b.counts().requests, b.counts().inbox.running), (4, 0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn who_comes_again_while_the_first_is_called_off_in_line_may_ask_again() {
    let (network, _a, b) = two(1);
    let (called, open) = gate(&b, |route| route);
    let mut raw = Raw::connect(&network, "b", "raw").await;
    raw.say(&[Body::Call(request(1, "x", "gate", "")), Body::Call(request(2, "y", "gate", ""))]).await;
    until("one waits", || b.counts().requests == 2).await;
    let off = Body::Cancel(steadfast_messaging::envelope::Cancel { number: 2, comes_again: false });
    raw.say(&[off, Body::Call(request(3, "y", "gate", ""))]).await;
    pass(ms(10)).await;
    open.send_replace(true);
    assert!(raw.reply().await.is_ok() && raw.reply().await.is_ok());
    assert_eq!(called.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn those_whose_time_is_over_make_room_when_the_line_is_full() {
    let (network, a, b) = two(1);
    let (called, open) = gate(&b, |route| route);
    let first = call(&a, "");
    until("it runs", || called.get() == 1).await;
    let mut raw = Raw::connect(&network, "b", "raw").await;
    for number in 1..=3 {
        let short = steadfast_messaging::envelope::Request { left_us: 1_000_000, ..request(number, &number.to_string(), "gate", "") };
        raw.say(&[Body::Call(short)]).await; // and it is never called off
    }
    until("they wait", || b.counts().requests == 4).await;
    assert_eq!(call(&a, "").await.unwrap().unwrap_err().code, Code::ResourceExhausted);
    pass(secs(2)).await;
    let rest: Vec<_> = (0..3).map(|_| call(&a, "")).collect();
    for _ in 0..3 {
        assert_eq!(raw.reply().await.unwrap_err().code, Code::DeadlineExceeded);
    }
    open.send_replace(true);
    for call in rest.into_iter().chain([first]) {
        call.await.unwrap().unwrap();
    }
    assert_eq!(called.get(), 4);
}

#[tokio::test(start_paused = true)]
async fn who_fills_the_line_of_a_route_leaves_a_fifth_of_it_to_others() {
    let (network, a, b) = two(1);
    let (called, open) = gate(&b, |route| route.in_line(50));
    let mut raw = Raw::connect(&network, "b", "raw").await;
    let calls: Vec<_> = (0..100).map(|number| Body::Call(request(number, &number.to_string(), "gate", ""))).collect();
    raw.say(&calls).await;
    for _ in 0..58 {
        assert_eq!(raw.reply().await.unwrap_err().code, Code::ResourceExhausted);
    }
    let others: Vec<_> = (0..8).map(|_| call(&a, "")).collect();
    until("they wait", || b.counts().requests == 1 + 41 + 8).await;
    open.send_replace(true);
    for call in others {
        call.await.unwrap().unwrap();
    }
    assert_eq!(called.get(), 1 + 41 + 8);
}

/// Their line has room, but the node has none: whoever comes to any of its routes takes the places of those whose time is over.
#[tokio::test(start_paused = true)]
async fn those_whose_time_is_over_keep_no_places_of_the_node() {
    let (network, mut limits) = (Memory::new(1), Limits::default());
    limits.requests_max = 4;
    let (a, b) = (node(&network, "a"), node_by(&network, "b", |builder| builder.limits(limits)));
    let (called, _open) = gate(&b, |route| route.in_line(50).timeout(secs(3600)));
    b.route("other", |_| async { Ok("other") });
    let mut raw = Raw::connect(&network, "b", "raw").await;
    let call = |number, left_us| Body::Call(Request { left_us, ..request(number, &number.to_string(), "gate", "") });
    raw.say(&[call(1, 3_600_000_000), call(2, 1_000_000), call(3, 1_000_000), call(4, 1_000_000)]).await;
    until("three wait", || (called.get(), b.counts().requests) == (1, 4)).await;
    let other = || a.call("b", "other", "").policy(Policy::once());
    assert_eq!(other().await.unwrap_err().code, Code::ResourceExhausted);
    pass(secs(2)).await;
    assert_eq!(other().await.unwrap(), "other");
    assert_eq!(b.counts().requests, 1, "the one that runs has its time");
}
