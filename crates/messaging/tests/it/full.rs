//! A node that has no place for anything new: what it runs and what it has done, it knows all the same.

use crate::network::{Count, Raw, counted, ms, node, node_by, pass, request, secs, until};
use bytes::Bytes;
use std::future::{IntoFuture, pending};
use std::sync::Arc;
use std::time::Duration;
use steadfast_messaging::envelope::{Body, Request};
use steadfast_messaging::wire::memory::{Faults, Memory};
use steadfast_messaging::{Code, Failure, Limits, MemoryLetters, Node, Policy};
use tokio::time::Instant;

/// A node with ten places, of which one caller gets nine.
fn small(network: &Memory) -> Node {
    let mut limits = Limits::default();
    limits.requests_max = 10;
    node_by(network, "b", |builder| builder.limits(limits))
}

/// A handler that takes so long, and how often it ran.
fn takes(node: &Node, route: &str, time: Duration) -> Count {
    let ran = Count::default();
    let runs = ran.clone();
    node.route(route, move |_| {
        runs.add();
        async move {
            pass(time).await;
            Ok("done")
        }
    });
    ran
}

/// Fills the node, and waits until nothing more is let in.
async fn fill(network: &Memory, b: &Node) -> Vec<Raw> {
    b.route("never", |_| pending::<Result<Bytes, Failure>>());
    let mut raws = Vec::new();
    for name in ["one", "two", "three"] {
        let mut raw = Raw::connect(network, "b", name).await;
        let calls: Vec<_> = (0..10).map(|number| Body::Call(request(number, &number.to_string(), "never", ""))).collect();
        raw.say(&calls).await;
        pass(ms(10)).await;
        raws.push(raw);
    }
    assert_eq!(b.counts().requests, 10, "it is full");
    raws
}

/// An attempt has ten seconds, so each call comes twice.
async fn calls_are_answered(b: Node, network: &Memory, count: usize, bytes: usize) {
    let (a, ran) = (node(network, "a"), takes(&b, "slow", secs(15)));
    let at = Instant::now();
    let call = |_| tokio::spawn(a.call("b", "slow", vec![0; bytes]).into_future());
    let calls: Vec<_> = (0..count).map(call).collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), "done");
    }
    assert_eq!((ran.get(), at.elapsed(), a.counts().totals.retries), (count, secs(15), count as u64));
}

#[tokio::test(start_paused = true)]
async fn calls_that_fill_a_node_by_their_number_are_answered_when_they_come_again() {
    let network = Memory::new(1);
    calls_are_answered(small(&network), &network, 9, 0).await;
}

#[tokio::test(start_paused = true)]
async fn calls_that_fill_a_node_by_their_bytes_are_answered_when_they_come_again() {
    let network = Memory::new(1);
    calls_are_answered(node(&network, "b"), &network, 52, 1 << 20).await;
}

#[tokio::test(start_paused = true)]
async fn a_full_node_answers_what_it_has_done_and_refuses_what_is_new() {
    let network = Memory::new(1);
    let b = small(&network);
    let (called, told) = (counted(&b, "call", |_| Ok("done".into())), counted(&b, "tell", |_| Ok(Bytes::new())));
    let mut raw = Raw::connect(&network, "b", "raw").await;
    let (call, tell) = (Body::Call(request(1, "x", "call", "p")), Body::Tell(request(2, "y", "tell", "p")));
    for said in [&call, &tell] {
        raw.say(std::slice::from_ref(said)).await;
        raw.reply().await.unwrap();
    }
    let _full = fill(&network, &b).await;
    let known = b.counts().inbox;
    raw.say(&[call]).await;
    assert_eq!(raw.reply().await.unwrap(), "done");
    raw.say(&[tell]).await;
    assert_eq!(raw.reply().await.unwrap(), "", "it was taken");
    raw.say(&[Body::Call(request(3, "x", "call", "q"))]).await;
    assert_eq!(raw.reply().await.unwrap_err().code, Code::InvalidArgument, "an id stands for one request");
    for new in [Body::Call(request(4, "z", "call", "p")), Body::Tell(request(5, "z", "tell", "p"))] {
        raw.say(&[new]).await;
        let failure = raw.reply().await.unwrap_err();
        assert_eq!((failure.code, failure.retry_after), (Code::ResourceExhausted, Some(ms(100))));
    }
    assert_eq!((called.get(), told.get()), (1, 1));
    assert_eq!((b.counts().inbox, b.counts().requests), (known, 10), "nothing is left of those that were refused");
}

#[tokio::test(start_paused = true)]
async fn a_tell_that_was_taken_is_no_dead_letter_because_its_receiver_is_full_when_it_comes_again() {
    let network = Memory::new(1);
    let letters = Arc::new(MemoryLetters::default());
    let (a, b) = (node_by(&network, "a", |builder| builder.letters(letters.clone())), small(&network));
    let ran = takes(&b, "slow", secs(60));
    a.tell("b", "slow", "").await.unwrap();
    network.set("b", "a", Faults { drop: 1.0, ..Faults::default() });
    let policy = Policy::constant(ms(100)).max_attempts(3).attempt_timeout(secs(1));
    let tell = tokio::spawn(a.tell("b", "slow", "").policy(policy).into_future());
    until("it was taken", || ran.get() == 2).await;
    let _full = fill(&network, &b).await;
    network.heal();
    tell.await.unwrap().unwrap();
    assert_eq!((ran.get(), letters.list().len()), (2, 0));
}

/// One that waits over another connection is not the first of its request, and may be the last.
#[tokio::test(start_paused = true)]
async fn a_repeat_that_waits_at_a_full_node_can_call_it_off() {
    let network = Memory::new(1);
    let b = small(&network);
    let mut raws = fill(&network, &b).await;
    let mut again = Raw::connect(&network, "b", "one").await;
    again.say(&[Body::Call(Request { attempt: 2, ..request(100, "0", "never", "") })]).await;
    assert!(again.within(ms(100)).await.is_none(), "it waits");
    drop(raws.remove(0));
    pass(ms(10)).await;
    assert_eq!(b.counts().requests, 10, "its caller may come again");
    again
        .say(&[Body::Cancel(steadfast_messaging::envelope::Cancel { number: 100, comes_again: false })])
        .await;
    until("its place is free", || b.counts().requests == 9).await;
}
