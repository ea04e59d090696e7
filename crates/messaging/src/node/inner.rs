//! What a node does for itself: it connects, knows peers, and deals with what others open.

use super::{Connection, Inner, Known, Peer, SWEEP, Seat, connection};
use crate::envelope::{Frames, Hello, Open, Sample};
use crate::limits::{RETRY_AFTER, TRACE_MAX};
use crate::receiving::{Incoming, Routed};
use crate::time;
use crate::wire::Link;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rand::Rng;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use steadfast_kernel::{Code, Failure};
use tokio::time::Instant;

impl Inner {
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Nothing is sent any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.load.count() == 0 && self.postings.count() == 0
    }

    /// A number of this node's own.
    pub(super) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// An id that no other request of this node has had, also before a restart.
    pub(crate) fn request_id(&self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let number = self.next_id();
        let mut id = String::with_capacity(self.prefix.len() + 16);
        id.push_str(&self.prefix);
        let digits = (64 - number.leading_zeros()).div_ceil(4).max(1);
        id.extend((0..digits).rev().map(|digit| char::from(DIGITS[(number >> (4 * digit)) as usize & 15])));
        id
    }

    /// Chance, for delays.
    pub(crate) fn draw(&self) -> u64 {
        self.chance.lock().next_u64()
    }

    /// What is known of a peer.
    pub(crate) fn know(self: &Arc<Self>, peer: &Peer) -> Result<Arc<Known>, Failure> {
        let mut peers = self.peers.lock();
        if let Some(known) = peers.get(peer) {
            return Ok(Arc::clone(known));
        }
        if peers.len() >= self.limits.peers_max {
            peers.retain(|_, known| Arc::strong_count(known) > 1 || !known.is_idle());
        }
        if peers.len() >= self.limits.peers_max {
            let message = format!("{} peers are known already", peers.len());
            return Err(Failure::new(Code::ResourceExhausted, message).retry_after(RETRY_AFTER));
        }
        let known = Arc::new(Known::new(peer.clone(), Arc::downgrade(self)));
        peers.insert(peer.clone(), Arc::clone(&known));
        Ok(known)
    }

    /// Hears who has come, if there is a place for it.
    pub(super) async fn hear(self: &Arc<Self>, link: &mut Link) -> Result<(Seat, Arc<Known>, Hello, Frames), Failure> {
        if self.is_closing() {
            return Err(self.is_ending()); // what this side has to say may still need a connection
        }
        let seat = Seat::take(self, Some(&link.remote.address))?;
        let late = || Failure::new(Code::DeadlineExceeded, "the other side did not say hello in time");
        let heard = tokio::time::timeout(self.limits.connect_timeout, connection::hear(link)).await;
        let (hello, rest) = heard.unwrap_or_else(|_| Err(late()))?;
        Ok((seat, self.know(&Peer::named(&hello.node))?, hello, rest))
    }

    /// Connects to an address once.
    pub(super) async fn dial(self: &Arc<Self>, known: &Arc<Known>, address: &str) -> Result<(), Failure> {
        let Some(wire) = &self.wire else {
            return Err(Failure::new(Code::FailedPrecondition, format!("{} has no wire to connect to others by", self.name)));
        };
        let seat = Seat::take(self, None)?;
        let dialing = async {
            let link = wire.connect(address).await?;
            connection::greet(self, link).await
        };
        let limit = self.limits.connect_timeout;
        let late = || Failure::transient(format!("no connection to {address} within {limit:?}"));
        let greeted = tokio::time::timeout(limit, dialing).await.unwrap_or_else(|_| Err(late()))?;
        connection::begin(self, greeted, Arc::clone(known), seat)
    }

    /// Looks after the inbox, so that it forgets also when no messages come. Begun with the first connection.
    pub(super) fn sweep(self: &Arc<Self>) {
        if self.sweeping.swap(true, Ordering::Relaxed) {
            return;
        }
        let node = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                time::until(time::after(SWEEP.0)).await;
                let Some(node) = node.upgrade() else { return };
                while node.known.lock().inbox.sweep(Instant::now(), SWEEP.1) == SWEEP.1 {
                    tokio::task::yield_now().await; // others want the inbox, too
                }
            }
        });
    }

    /// Whether the other side of a connection may ask for something here, as far as it depends on who has made the connection.
    pub(crate) fn lets(&self, connection: &Connection) -> Result<(), Failure> {
        if self.answers_whom_it_calls || matches!(connection.known.peer, Peer::Named(_)) {
            return Ok(());
        }
        let message = format!("{} takes nothing over a connection that it has made itself: connect to it", self.name);
        Err(Failure::new(Code::PermissionDenied, message))
    }

    /// The other side has opened a stream.
    pub(crate) fn opened(self: &Arc<Self>, connection: &Arc<Connection>, open: Open) {
        let routed = self.routes.read().get(&*open.route).cloned();
        let refuse = |failure: Failure| connection.streams.refuse(connection, open.number, &failure);
        if let Err(failure) = self.lets(connection) {
            return refuse(failure);
        }
        let handler = match routed {
            _ if self.is_closing() => return refuse(Failure::transient(format!("{} is ending", self.name))),
            Some(Routed::Streams(handler)) => handler,
            Some(_) => return refuse(Failure::new(Code::InvalidArgument, "that route takes no streams")),
            None => return refuse(Failure::new(Code::NotFound, format!("{} has no such route", self.name))),
        };
        if open.trace.len() > TRACE_MAX || open.payload.len() > self.limits.payload_bytes_max {
            return refuse(Failure::new(Code::InvalidArgument, "the trace or the first payload of the stream is too long"));
        }
        let (stream, handling) = match connection.streams.accept(connection, open.number, open.credit, open.payload.len()) {
            Ok(stream) => stream,
            Err(failure) => return refuse(failure),
        };
        let incoming = self.incoming(connection, open.route, open.trace, open.payload);
        let ending: BoxFuture<'static, _> = AssertUnwindSafe(async move { handler(stream, incoming).await }).catch_unwind().boxed();
        tokio::spawn(async move {
            let outcome = tokio::select! {
                biased;
                ended = ending => ended.unwrap_or_else(|_| Err(Failure::new(Code::Internal, "the handler of the stream panicked"))),
                () = handling.outlived() => Err(Failure::transient("the connection of the stream was cut, and its handler has not ended")),
            };
            if let Err(failure) = &outcome {
                tracing::debug!(%failure, "a handler of a stream has failed");
            }
            handling.over(outcome);
        });
    }

    /// A sample has come. One that is too long is lost, as all that nobody takes.
    pub(crate) fn sampled(&self, connection: &Arc<Connection>, sample: Sample) {
        if sample.payload.len() > self.limits.payload_bytes_max {
            return;
        }
        let routed = self.routes.read().get(&*sample.route).cloned();
        if let (Some(Routed::Samples(samples)), Ok(())) = (routed, self.lets(connection)) {
            samples.take(self.incoming(connection, sample.route, String::new(), sample.payload));
        }
    }

    fn incoming(&self, connection: &Connection, route: String, trace: String, payload: Bytes) -> Incoming {
        Incoming {
            route: route.into(),
            id: Arc::default(),
            caller: connection.caller(),
            wants_answer: false,
            attempt: 1,
            redelivered: false,
            ends_at: time::after(Duration::MAX),
            trace,
            payload,
        }
    }
}

/// The node is gone with its last clone, and so are its connections.
impl Drop for Inner {
    fn drop(&mut self) {
        self.closed.cancel();
        for connection in self.connections.get_mut().values() {
            connection.cut();
        }
    }
}
