//! Nodes on a network in memory, and peers that say whatever a test likes.

use bytes::{Bytes, BytesMut};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use steadfast_messaging::envelope::{self, Body, Hello, Request};
use steadfast_messaging::wire::memory::Memory;
use steadfast_messaging::wire::{Link, Wire};
use steadfast_messaging::{Builder, Failure, Node};

/// A node of that name on that network, which listens there.
pub(crate) fn node(network: &Memory, name: &str) -> Node {
    node_by(network, name, |builder| builder)
}

/// The same, made otherwise.
pub(crate) fn node_by(network: &Memory, name: &str, make: impl FnOnce(Builder) -> Builder) -> Node {
    let node = deaf(network, name, make);
    let (mut listener, accepting) = (network.listen(name), node.clone());
    tokio::spawn(async move {
        loop {
            tokio::select! {
                biased;
                () = accepting.closed() => return,
                link = listener.accept() => {
                    let Some(link) = link else { return };
                    let node = accepting.clone();
                    tokio::spawn(async move { drop(node.accept(link).await) });
                }
            }
        }
    });
    node
}

/// A node that connects to others and does not listen.
pub(crate) fn deaf(network: &Memory, name: &str, make: impl FnOnce(Builder) -> Builder) -> Node {
    let builder = Node::builder().name(name).seed(network.seed()).wire(Arc::new(network.wire_of(name)));
    make(builder).build().unwrap()
}

/// Two of them, `a` and `b`.
pub(crate) fn two(seed: u64) -> (Memory, Node, Node) {
    let network = Memory::new(seed);
    let (a, b) = (node(&network, "a"), node(&network, "b"));
    (network, a, b)
}

/// Answers with what it is sent.
pub(crate) fn echo(node: &Node, route: &str) {
    node.route(route, |incoming| async move { Ok::<Bytes, _>(incoming.payload) });
}

/// Counts, in tests.
#[derive(Clone, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    /// One more; which one it is, from 1.
    pub(crate) fn add(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Counts how often it runs, and answers with what the closure says to that number.
pub(crate) fn counted(node: &Node, route: &str, answer: impl Fn(usize) -> Result<Bytes, Failure> + Send + Sync + 'static) -> Count {
    let count = Count::default();
    let runs = count.clone();
    node.route(route, move |_| {
        let outcome = answer(runs.add());
        async move { outcome }
    });
    count
}

/// Lets that time pass.
pub(crate) async fn pass(time: Duration) {
    let _it_is_over = tokio::time::timeout(time, pending::<()>()).await;
}

pub(crate) const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

pub(crate) const fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Waits until that is true; a minute of the test's time at the most.
pub(crate) async fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if is_true() {
            return;
        }
        pass(ms(1)).await;
    }
    panic!("it never came true: {what}");
}

/// The seed of a random test, from the environment if somebody repeats one.
pub(crate) fn seed_or(seed: u64) -> u64 {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(seed);
    println!("SEED={seed}");
    seed
}

/// The other end of a link, by hand.
pub(crate) struct Raw {
    pub(crate) link: Link,
    come: Vec<Body>,
}

impl Raw {
    /// Connects and says hello by that name.
    pub(crate) async fn connect(network: &Memory, to: &str, name: &str) -> Raw {
        let link = network.wire_of(name).connect(to).await.unwrap();
        Raw::greet(link, name).await
    }

    /// Says hello on a link that a listener got, or a wire made.
    pub(crate) async fn greet(link: Link, name: &str) -> Raw {
        let mut raw = Raw { link, come: Vec::new() };
        raw.say(&[Body::Hello(Hello { version: 1, node: name.into(), frame_bytes_max: 8 << 20, refused: None })])
            .await;
        assert!(matches!(raw.next().await, Some(Body::Hello(_))));
        raw
    }

    /// Says those things in one packet; false if the link is cut.
    pub(crate) async fn say(&mut self, bodies: &[Body]) -> bool {
        let mut packet = BytesMut::new();
        bodies.iter().for_each(|body| envelope::append(&mut packet, body));
        self.say_bytes(packet.freeze()).await
    }

    pub(crate) async fn say_bytes(&mut self, packet: Bytes) -> bool {
        self.link.outgoing.send(packet).await.is_ok()
    }

    /// What comes next, pings aside; nothing if the link is cut.
    pub(crate) async fn next(&mut self) -> Option<Body> {
        loop {
            while !self.come.is_empty() {
                match self.come.remove(0) {
                    Body::Ping(_) => {}
                    body => return Some(body),
                }
            }
            let packet = self.link.incoming.recv().await?.ok()?;
            self.come = envelope::packet(packet).unwrap().filter_map(|frame| envelope::frame(frame).unwrap()).collect();
        }
    }

    /// What comes within that time.
    pub(crate) async fn within(&mut self, time: Duration) -> Option<Body> {
        tokio::time::timeout(time, self.next()).await.ok().flatten()
    }

    /// The link ends within that time.
    pub(crate) async fn ends_within(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, async { while self.next().await.is_some() {} }).await.is_ok()
    }

    /// The error of the next reply, or its payload.
    pub(crate) async fn reply(&mut self) -> Result<Bytes, Failure> {
        match self.within(secs(60)).await {
            Some(Body::Reply(reply)) => reply.error.map_or(Ok(reply.payload), |error| Err(error.into())),
            other => panic!("no reply: {other:?}"),
        }
    }
}

/// A request with a minute left.
pub(crate) fn request(number: u64, id: &str, route: &str, payload: &str) -> Request {
    Request {
        number,
        attempt: 1,
        route: route.into(),
        id: id.into(),
        left_us: 60_000_000,
        trace: String::new(),
        payload: Bytes::copy_from_slice(payload.as_bytes()),
        behalf: String::new(),
        queued_us: 0,
    }
}
