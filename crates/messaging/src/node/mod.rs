//! A node: one end of conversations. It calls others, and others call it, over whichever connections there are.

mod builder;
mod closing;
mod connection;
#[cfg(feature = "http2")]
mod http2;
mod inner;
mod outgoing;
mod pauses;
mod peer;
mod seats;
mod tally;

pub use builder::Builder;
use connection::Greeted;
pub(crate) use connection::{Connection, reply};
pub(crate) use outgoing::Untaken;
pub use peer::Peer;
pub(crate) use peer::{Known, Registered, Turn};
pub(crate) use seats::Seat;
use seats::Seats;
use tally::Tally;
pub use tally::Totals;

use crate::envelope::Sample;
use crate::inbox::{self, Counts};
use crate::letters::{Direction, Letter, LetterKind, Letters, MemoryLetters};
use crate::limits::Limits;
use crate::names;
use crate::posting::Postings;
use crate::receiving::{Incoming, KnownRequests, Lane, Load, Route, Routed, SampleHandler, Samples, StreamHandler};
use crate::sending::{Call, Sending, Tell};
use crate::streams::{Opening, Stream};
use crate::wire::{Fingerprint, Link, Wire};
use bytes::Bytes;
use hashbrown::{DefaultHashBuilder, HashMap};
use parking_lot::{Mutex, RwLock};
use rand::rngs::ChaCha8Rng;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Weak};
use std::time::Duration;
use steadfast_kernel::{Code, Failure};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// One end of conversations. Clones are the same node.
#[derive(Clone)]
pub struct Node {
    pub(crate) inner: Arc<Inner>,
}

/// A node, for as long as somebody else has it: for what the node itself holds.
#[derive(Clone, Default)]
pub struct WeakNode {
    inner: Weak<Inner>,
}

impl WeakNode {
    /// The node, if somebody else still has it.
    pub fn upgrade(&self) -> Option<Node> {
        self.inner.upgrade().map(|inner| Node { inner })
    }
}

impl fmt::Debug for WeakNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.upgrade() {
            Some(node) => write!(f, "WeakNode({})", node.name()),
            None => f.write_str("WeakNode"),
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({})", self.inner.name)
    }
}

pub(crate) struct Inner {
    pub(crate) name: Arc<str>,
    pub(crate) limits: Limits,
    pub(crate) letters: Arc<dyn Letters>,
    pub(crate) routes: RwLock<HashMap<Arc<str>, Routed>>,
    pub(crate) known: Mutex<KnownRequests>,
    pub(crate) hasher: DefaultHashBuilder,
    /// Requests of others that run or wait.
    pub(crate) load: Load,
    /// Nothing of others runs or waits any more, or no letter is being posted.
    pub(crate) idle: Notify,
    /// Dead letters that are being kept.
    pub(crate) postings: Postings,
    /// Somebody looks after the inbox when no messages come.
    sweeping: AtomicBool,
    pub(crate) connections: Mutex<BTreeMap<u64, Arc<Connection>>>,
    /// Connections, with those whose other side has not said hello.
    seats: Arc<Seats>,
    peers: Mutex<HashMap<Peer, Arc<Known>>>,
    wire: Option<Arc<dyn Wire>>,
    /// Whether it takes requests over connections that it has made itself.
    answers_whom_it_calls: bool,
    chance: Mutex<ChaCha8Rng>,
    /// What the ids of this node's requests begin with.
    prefix: String,
    ids: AtomicU64,
    pub(crate) tally: Tally,
    closing: AtomicBool,
    /// The lanes that there are, also those of routes that were replaced or taken away.
    lanes: Mutex<Vec<Weak<Lane>>>,
    /// Tells that this side has taken and that run or wait.
    pub(crate) taken: AtomicUsize,
    /// Tells that were taken are not waited for any more.
    pub(crate) gives_up: CancellationToken,
    #[cfg(feature = "http2")]
    listening: Mutex<Vec<crate::wire::http2::Listening>>,
    /// Ends listeners, and connections that are made too late.
    closed: CancellationToken,
}

/// What a node has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// Connections that are open.
    pub connections: usize,
    /// Requests of others that run or wait.
    pub requests: usize,
    /// Its own calls and tells that wait for their answer.
    pub calls: usize,
    /// Streams that are open.
    pub streams: usize,
    /// What waits to be written, in bytes.
    pub outgoing_bytes: usize,
    /// What its inbox has.
    pub inbox: Counts,
    /// What it has done since it began.
    pub totals: Totals,
}

/// Somebody who is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connected {
    /// What it calls itself.
    pub name: String,
    /// Where it is, as far as the wire knows.
    pub address: String,
    /// Who it is by its token, if it was asked for one.
    pub principal: Option<Arc<str>>,
    /// The certificate that it has shown, if it has one.
    pub fingerprint: Option<Fingerprint>,
    /// The name that an authority vouches for by that certificate.
    pub vouched: Option<Arc<str>>,
    /// For how long it has been connected.
    pub since: Duration,
}

/// How often the inbox is looked after when no messages come, and how much of it at a time.
const SWEEP: (Duration, usize) = (Duration::from_secs(10), 4096);

impl Node {
    /// A node that is yet to be put together.
    pub fn builder() -> Builder {
        Builder {
            name: None,
            limits: Limits::default(),
            inbox: inbox::Settings::default(),
            letters: Arc::new(MemoryLetters::default()),
            wire: None,
            seed: None,
            answers_whom_it_calls: true,
        }
    }

    /// A handle that does not keep it.
    pub fn downgrade(&self) -> WeakNode {
        WeakNode { inner: Arc::downgrade(&self.inner) }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// A number by chance, to spread delays with.
    pub fn draw(&self) -> u64 {
        self.inner.draw()
    }

    /// How much of everything it takes.
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// What it has.
    pub fn counts(&self) -> NodeCounts {
        let inner = &self.inner;
        let connections: Vec<_> = inner.connections.lock().values().cloned().collect();
        NodeCounts {
            connections: connections.len(),
            requests: inner.load.count(),
            calls: inner.peers.lock().values().map(|known| known.open()).sum(),
            streams: connections.iter().map(|connection| connection.streams.count()).sum(),
            outgoing_bytes: connections.iter().map(|connection| connection.outgoing.bytes()).sum(),
            inbox: inner.known.lock().inbox.counts(),
            totals: inner.tally.totals(),
        }
    }

    /// Those that are connected, by what they call themselves.
    pub fn connected(&self) -> Vec<String> {
        self.inner
            .connections
            .lock()
            .values()
            .map(|connection| connection.caller_name().to_owned())
            .collect()
    }

    /// Those that are connected, with what is known of them, the longest first.
    pub fn connections(&self) -> Vec<Connected> {
        self.inner.connections.lock().values().map(|connection| connection.shown()).collect()
    }

    /// The routes that it has, by name.
    pub fn routes(&self) -> Vec<String> {
        let mut names: Vec<_> = self.inner.routes.read().keys().map(ToString::to_string).collect();
        names.sort();
        names
    }

    /// Takes a route away: what runs or waits by it goes on, what comes then is refused.
    pub fn remove_route(&self, name: &str) {
        self.inner.routes.write().remove(name);
    }

    /// Gives calls and tells of that route to a handler: each once, up to 256 side by side. Replaces what was there.
    ///
    /// # Panics
    /// If that can be no name of a route.
    #[track_caller]
    pub fn route<F, Fut, Answer>(&self, name: &str, handler: F)
    where
        F: Fn(Incoming) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Answer, Failure>> + Send + 'static,
        Answer: Into<Bytes>,
    {
        self.route_by(name, Route::new(handler));
    }

    /// Deals with calls and tells of that name as the route says. Replaces what was there; what runs or waits by the older one goes on.
    ///
    /// # Panics
    /// If that can be no name of a route.
    #[track_caller]
    pub fn route_by(&self, name: &str, route: Route) {
        let lane = Arc::new(Lane::new(name, route));
        let mut lanes = self.inner.lanes.lock();
        lanes.retain(|lane| lane.strong_count() > 0);
        lanes.push(Arc::downgrade(&lane));
        drop(lanes);
        self.add(name, Routed::Requests(lane));
    }

    /// Gives streams of that route to a handler. When the connection is cut, the handler finds out as soon as it reads or sends; it has a minute to do so and to come to its end, then it is
    /// dropped. Until it has ended, it keeps the place of its connection, so that whoever connects again and again has no more handlers run than somebody who stays.
    ///
    /// # Panics
    /// If that can be no name of a route.
    #[track_caller]
    pub fn route_streams<F, Fut>(&self, name: &str, handler: F)
    where
        F: Fn(Stream, Incoming) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        let handler: StreamHandler = Arc::new(move |stream, incoming| Box::pin(handler(stream, incoming)));
        self.add(name, Routed::Streams(handler));
    }

    /// Gives samples of that route to a handler, one at a time and for a minute at the most; when too many wait, the newest win.
    ///
    /// # Panics
    /// If that can be no name of a route.
    #[track_caller]
    pub fn route_samples<F, Fut>(&self, name: &str, handler: F)
    where
        F: Fn(Incoming) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let handler: SampleHandler = Arc::new(move |incoming| Box::pin(handler(incoming)));
        self.add(name, Routed::Samples(Arc::new(Samples::new(handler, self.limits().samples()))));
    }

    #[track_caller]
    fn add(&self, name: &str, routed: Routed) {
        assert!(names::is_route(name), "{name:?} is no name for a route: use 1 to 128 characters of A-Z a-z 0-9 . _ - /");
        self.inner.routes.write().insert(name.into(), routed);
    }

    /// A request with an answer.
    pub fn call(&self, peer: impl Into<Peer>, route: impl Into<String>, payload: impl Into<Bytes>) -> Call {
        Sending::new(self.clone(), peer.into(), route.into(), payload.into())
    }

    /// A one-way message. It is over when the other side has taken it; what it does then is its own affair.
    pub fn tell(&self, peer: impl Into<Peer>, route: impl Into<String>, payload: impl Into<Bytes>) -> Tell {
        Sending::new(self.clone(), peer.into(), route.into(), payload.into())
    }

    /// A stream of pieces, both ways. The payload is what the other side knows from the start.
    ///
    /// # Errors
    /// If the peer cannot be reached within 30 s, or does not take the stream. Streams are not tried again.
    pub fn stream(&self, peer: impl Into<Peer>, route: impl Into<String>, payload: impl Into<Bytes>) -> Opening {
        Opening::new(self.clone(), peer.into(), route.into(), payload.into())
    }

    /// Sends something of which only the newest matters, if there is a connection. It may be lost; the oldest goes if too many wait.
    ///
    /// # Errors
    /// If it is too long for this side or the other. That there is no connection, or that it is lost on the way, is no error; a connection is made for the next one, with pauses if that fails.
    pub fn sample(&self, peer: impl Into<Peer>, route: impl Into<String>, payload: impl Into<Bytes>) -> Result<(), Failure> {
        let (route, payload) = (route.into(), payload.into());
        let peer = peer.into();
        names::check_route(&route)?;
        names::check_peer(peer.text())?;
        if payload.len() > self.limits().payload_bytes_max {
            return Err(Failure::new(Code::InvalidArgument, "the payload of a sample is too long"));
        }
        let known = self.inner.know(&peer)?;
        match known.connected() {
            Some(connection) => {
                connection.takes(payload.len())?;
                connection.use_at(Instant::now());
                let _it_is_cut = connection.outgoing.push_sample(Sample { route, payload });
            }
            None => known.connect_if_it_is_time(),
        }
        Ok(())
    }

    /// Takes what a listener got. Over when the other side has said hello, and been answered: with a hello, or with the reason why not.
    ///
    /// # Errors
    /// If the other side speaks otherwise or says nothing, has a name that somebody else has who is connected and has proved who it is, or if there are too many connections. Who is connected by
    /// that name and has proved nothing makes way for somebody who has.
    pub async fn accept(&self, mut link: Link) -> Result<(), Failure> {
        let inner = &self.inner;
        match inner.hear(&mut link).await {
            Ok((seat, known, hello, rest)) => connection::begin(inner, Greeted { hello, link, rest, answered: false }, known, seat),
            Err(failure) => Err(connection::refuse(inner, &link, failure)),
        }
    }

    /// Tries a dead letter again: one that came here is given to its handler, one that was to go from here is sent.
    ///
    /// One that came here is run in its turn and by the rules of its route, as if it came once more: those of its key come one after the other, and who may send requests is asked about its
    /// caller as far as the letter knows it. The inbox knows it while it runs, and what it came to afterwards: a duplicate that comes late gets that.
    ///
    /// # Errors
    /// If it fails again, or cannot be tried.
    pub async fn redrive(&self, letter: &Letter) -> Result<(), Failure> {
        match (letter.kind, letter.direction) {
            (LetterKind::Frame, _) => Err(Failure::permanent("bytes that are no message cannot be tried again: drop them")),
            (_, Direction::Received) => self.inner.deliver_again(letter).await,
            (_, Direction::Sent) => {
                let (peer, behalf) = Peer::of_letter(&letter.peer);
                let tell = self.tell(peer, letter.route.clone(), letter.payload.clone());
                tell.id(letter.id.clone()).on_behalf_of(behalf).unposted().await
            }
        }
    }
}
