//! When somebody who says nothing is taken for dead: over a wire that is moved by hand, to the millisecond.

use crate::network::{ms, pass, secs};
use bytes::{Bytes, BytesMut};
use std::future::IntoFuture;
use std::time::Duration;
use steadfast_messaging::envelope::{self, Body, Hello, Number};
use steadfast_messaging::wire::{Gone, Link, Pulse, Remote};
use steadfast_messaging::{Failure, Limits, Node, Peer};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// A payload of which a wire keeps one packet waiting.
const LONG: usize = 3 << 20;

fn packet(body: &Body) -> Bytes {
    let mut packet = BytesMut::new();
    envelope::append(&mut packet, body);
    packet.freeze()
}

/// Somebody who is connected to a node, and says what it is made to.
struct Hand {
    node: Node,
    says: mpsc::Sender<Result<Bytes, Failure>>,
    hears: mpsc::Receiver<Bytes>,
    pulse: Pulse,
    since: Instant,
}

impl Hand {
    async fn connected(ping_after: Duration, dead_after: Duration) -> Hand {
        let mut limits = Limits::default();
        (limits.ping_after, limits.dead_after) = (ping_after, dead_after);
        let node = Node::builder().limits(limits).build().unwrap();
        let ((outgoing, mut hears), (says, incoming), pulse) = (mpsc::channel(1000), mpsc::channel(4), Pulse::default());
        let hello = Hello { version: 1, node: "hand".into(), frame_bytes_max: 8 << 20, refused: None };
        says.send(Ok(packet(&Body::Hello(hello)))).await.unwrap();
        let link = Link { outgoing, incoming, remote: Remote::default(), pulse: pulse.clone(), gone: Gone::default() };
        node.accept(link).await.unwrap();
        hears.recv().await.expect("a hello");
        Hand { node, says, hears, pulse, since: Instant::now() }
    }

    /// Lets time pass until it has been connected for so long.
    async fn at(&self, age: Duration) {
        pass(age.saturating_sub(self.since.elapsed())).await;
    }

    /// A whole packet comes, as over a real wire: first its bytes, then itself.
    async fn says_something(&self) {
        self.pulse.came();
        self.says.send(Ok(packet(&Body::Pong(Number { number: 1 })))).await.unwrap();
    }

    /// How old the connection is when the node gives it up.
    async fn dies(mut self) -> Duration {
        while self.hears.recv().await.is_some() {}
        self.since.elapsed()
    }
}

#[tokio::test(start_paused = true)]
async fn who_has_said_a_whole_packet_is_dead_as_long_after_it_as_somebody_who_has_said_nothing() {
    let quiet = Hand::connected(secs(5), secs(15)).await;
    assert_eq!(quiet.dies().await.as_millis(), 15_000);
    let hand = Hand::connected(secs(5), secs(15)).await;
    for said in [4_900, 5_100] {
        hand.at(ms(said)).await;
        hand.says_something().await;
    }
    assert_eq!(hand.dies().await.as_millis(), 20_100);
}

#[tokio::test(start_paused = true)]
async fn parts_of_a_packet_are_life_until_they_stop() {
    let hand = Hand::connected(secs(5), secs(15)).await;
    for age in 1..60 {
        hand.at(secs(age)).await;
        hand.pulse.came();
    }
    assert_eq!(hand.node.counts().connections, 1, "a long packet is on its way");
    let age = hand.dies().await;
    assert!((secs(59 + 15)..=secs(59 + 15 + 5)).contains(&age), "{age:?}");
}

/// A slow line takes much at a time, and then nothing for long, though the other end reads as fast as it can.
#[tokio::test(start_paused = true)]
async fn who_is_heard_may_take_nothing_for_long_and_not_for_ever() {
    let mut hand = Hand::connected(secs(5), secs(15)).await;
    let call = |node: &Node| drop(tokio::spawn(node.call(Peer::named("hand"), "x", vec![0; LONG]).timeout(secs(600)).into_future()));
    (0..4).for_each(|_| call(&hand.node)); // all but the first find no room at the wire
    for (taken, until) in [(1, 60), (1, 120), (0, 235)] {
        while hand.since.elapsed() < secs(until) {
            hand.says_something().await;
            pass(secs(5)).await;
        }
        for _ in 0..taken {
            while hand.hears.recv().await.expect("it is heard").len() < LONG {}
        }
    }
    assert_eq!(hand.node.counts().connections, 1);
    hand.says_something().await;
    pass(secs(6)).await;
    assert_eq!(hand.node.counts().connections, 0, "two minutes after it took something");
}

#[tokio::test(start_paused = true)]
async fn who_takes_nothing_and_says_nothing_is_dead_as_soon_as_anybody() {
    let hand = Hand::connected(secs(5), secs(15)).await;
    let _it_is_long = (0..2)
        .map(|_| tokio::spawn(hand.node.call(Peer::named("hand"), "x", vec![0; LONG]).into_future()))
        .collect::<Vec<_>>();
    pass(secs(14)).await;
    assert_eq!(hand.node.counts().connections, 1);
    pass(secs(2)).await;
    assert_eq!(hand.node.counts().connections, 0);
}

/// Ends after that much real time; nothing that a runtime waits for.
fn in_real_time(time: Duration) -> oneshot::Receiver<()> {
    let (says, hears) = oneshot::channel();
    std::thread::spawn(move || {
        let (_kept, never) = std::sync::mpsc::channel::<()>();
        let _it_is_over = never.recv_timeout(time);
        says.send(())
    });
    hears
}

#[tokio::test(start_paused = true)]
async fn who_is_never_asked_before_it_is_dead_costs_nothing_meanwhile() {
    let hand = Hand::connected(secs(20), secs(15)).await;
    hand.at(secs(10)).await;
    hand.pulse.came();
    let age = tokio::select! {
        biased;
        age = hand.dies() => age,
        _ = in_real_time(secs(10)) => panic!("it looks again and again, and time stands still"),
    };
    assert_eq!(age.as_secs(), 30, "as long after it was seen to move");
}
