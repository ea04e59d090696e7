//! A peer: whom requests are sent to, over whichever connection there is. Connecting is done once for all who wait.

use super::Inner;
use super::connection::Connection;
use crate::limits::Limits;
use crate::sending::{Budget, Slot};
use crate::time;
use bytes::Bytes;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use steadfast_kernel::{Class, Code, Failure, Jitter, Policy};
use tokio::sync::watch;
use tokio::time::Instant;

/// Whom to send to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Peer {
    /// A node that listens there; connected to when there is something to send.
    At(Arc<str>),
    /// A node of that name that has connected to this one.
    Named(Arc<str>),
}

impl Peer {
    /// A node that listens at that address, for example `http://127.0.0.1:7401`.
    pub fn at(address: impl AsRef<str>) -> Self {
        Peer::At(address.as_ref().into())
    }

    /// A node of that name, which has connected to this one, or will.
    pub fn named(name: impl AsRef<str>) -> Self {
        Peer::Named(name.as_ref().into())
    }
}

impl From<&str> for Peer {
    fn from(address: &str) -> Self {
        Peer::at(address)
    }
}

impl From<String> for Peer {
    fn from(address: String) -> Self {
        Peer::at(address)
    }
}

impl From<&Peer> for Peer {
    fn from(peer: &Peer) -> Self {
        peer.clone()
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::At(address) => f.write_str(address),
            Peer::Named(name) => f.write_str(name),
        }
    }
}

/// What is known of a peer.
pub(crate) struct Known {
    pub(crate) peer: Peer,
    node: Weak<Inner>,
    state: Mutex<State>,
    /// How the last try to connect has ended.
    tried: watch::Sender<Tried>,
    /// Requests that wait for their answer.
    open: Mutex<HashMap<u64, Arc<Slot>>>,
    numbers: AtomicU64,
    pub(crate) budget: Mutex<Budget>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    connecting: bool,
}

#[derive(Clone)]
enum Tried {
    /// Not yet, or it has worked.
    Well,
    Failed(Failure),
}

/// A request that waits for its answer, until it is dropped.
pub(crate) struct Registered {
    known: Arc<Known>,
    pub(crate) number: u64,
    pub(crate) slot: Arc<Slot>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.known.open.lock().remove(&self.number);
    }
}

impl Known {
    pub(super) fn new(peer: Peer, node: Weak<Inner>) -> Self {
        Known {
            peer,
            node,
            state: Mutex::default(),
            tried: watch::Sender::new(Tried::Well),
            open: Mutex::default(),
            numbers: AtomicU64::new(1),
            budget: Mutex::new(Budget::new(Instant::now())),
        }
    }

    /// Registers a request that waits for its answer, once.
    ///
    /// # Errors
    /// If there are too many already.
    pub(crate) fn register(self: &Arc<Self>, limits: &Limits) -> Result<Registered, Failure> {
        let mut open = self.open.lock();
        if open.len() >= limits.calls_open_max {
            let message = format!("{} requests to {} wait for their answer already: send fewer at a time", open.len(), self.peer);
            return Err(Failure::new(Code::ResourceExhausted, message).retry_after(Duration::from_millis(100)));
        }
        let (number, slot) = (self.numbers.fetch_add(1, Ordering::Relaxed), Arc::new(Slot::default()));
        open.insert(number, Arc::clone(&slot));
        Ok(Registered { known: Arc::clone(self), number, slot })
    }

    /// An answer of this peer has come. Nobody may wait for it any more.
    pub(crate) fn answered(&self, number: u64, attempt: u32, outcome: Result<Bytes, Failure>) {
        let slot = self.open.lock().get(&number).cloned();
        if let Some(slot) = slot {
            slot.answer(attempt, outcome);
        }
    }

    /// The connection, if there is one.
    pub(crate) fn connected(&self) -> Option<Arc<Connection>> {
        self.state.lock().connection.clone()
    }

    /// True if nobody needs it to be remembered.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state.lock();
        state.connection.is_none() && !state.connecting && self.open.lock().is_empty()
    }

    /// A connection, as soon as there is one.
    ///
    /// # Errors
    /// If the try to connect that was under way, or was begun for this, has failed.
    pub(crate) async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, Failure> {
        if let Some(connection) = self.connected() {
            return Ok(connection);
        }
        let mut tried = self.tried.subscribe();
        loop {
            self.connect_if_need_be();
            if let Some(connection) = self.connected() {
                return Ok(connection);
            }
            if tried.changed().await.is_err() {
                return Err(Failure::transient("the node has ended"));
            }
            if let Tried::Failed(failure) = &*tried.borrow_and_update() {
                return Err(failure.clone());
            }
        }
    }

    /// Ends when there is a connection other than that one.
    pub(crate) async fn ready_again(&self, last: Option<u64>) {
        let mut tried = self.tried.subscribe();
        loop {
            if self.connected().is_some_and(|connection| Some(connection.id) != last) {
                return;
            }
            if tried.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Requests go over that connection from now on.
    pub(super) fn connect_by(&self, connection: &Arc<Connection>) {
        self.state.lock().connection = Some(Arc::clone(connection));
        self.tried.send_replace(Tried::Well);
    }

    /// That connection is cut: whoever waits for an answer on it is told at once, and another one is made if somebody does.
    pub(super) fn lost(self: &Arc<Self>, connection: u64) {
        {
            let mut state = self.state.lock();
            if state.connection.as_ref().is_some_and(|mine| mine.id == connection) {
                state.connection = None;
            }
        }
        let open: Vec<_> = self.open.lock().values().cloned().collect();
        for slot in &open {
            slot.lost(connection);
        }
        if !open.is_empty() {
            self.connect_if_need_be();
        }
    }

    /// Begins to connect, unless there is a connection or somebody does already.
    pub(super) fn connect_if_need_be(self: &Arc<Self>) {
        let Peer::At(address) = &self.peer else { return };
        let mut state = self.state.lock();
        if state.connection.is_none() && !state.connecting {
            state.connecting = true;
            drop(state);
            tokio::spawn(Connecting(Arc::clone(self)).run(Arc::clone(address)));
        }
    }
}

/// Connects, and tries again while somebody waits. However it ends, somebody else may begin anew.
struct Connecting(Arc<Known>);

impl Drop for Connecting {
    fn drop(&mut self) {
        self.0.state.lock().connecting = false;
    }
}

impl Connecting {
    async fn run(self, address: Arc<str>) {
        let pauses = Policy::exponential(Duration::from_millis(50))
            .max_delay(Duration::from_secs(1))
            .jitter(Jitter::Full);
        for attempt in 1.. {
            let Some(node) = self.0.node.upgrade() else { return };
            let draw = node.draw();
            match node.dial(&self.0, &address).await {
                Ok(()) => return,
                Err(failure) => {
                    drop(node);
                    tracing::debug!(peer = %self.0.peer, attempt, %failure, "could not connect");
                    let over = failure.class != Class::Transient;
                    self.0.tried.send_replace(Tried::Failed(failure));
                    if over || self.0.open.lock().is_empty() {
                        return;
                    }
                }
            }
            time::until(time::after(pauses.delay(attempt, draw))).await;
        }
    }
}
