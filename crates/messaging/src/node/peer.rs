//! A peer: whom requests are sent to, over whichever connection there is. Connecting is done once for all who wait.

use super::Inner;
use super::connection::Connection;
use super::pauses::Pauses;
use crate::envelope::Reply;
use crate::limits::Limits;
use crate::sending::{Budget, Slot};
use crate::time;
use crate::wire::Remote;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;
use steadfast_kernel::{Class, Code, Failure};
use tokio::runtime::Handle;
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

/// In dead letters that are to be sent, what stands before a name: no name has it, and no address begins with it.
const NAMED: char = '@';

/// In dead letters that are to be sent, what stands behind the name on whose behalf they are.
const ON_BEHALF: &str = "@@";

impl Peer {
    /// As dead letters have it, for a message on behalf of that name; of the node itself if it is empty.
    pub(crate) fn in_letter(&self, behalf: &str) -> String {
        let on_behalf = if behalf.is_empty() { "" } else { ON_BEHALF };
        match self {
            Peer::At(address) => format!("{behalf}{on_behalf}{address}"),
            Peer::Named(name) => format!("{behalf}{on_behalf}{NAMED}{name}"),
        }
    }

    /// Whom a dead letter was to go to, and on whose behalf.
    pub(crate) fn of_letter(peer: &str) -> (Self, &str) {
        let (behalf, peer) = peer.split_once(ON_BEHALF).unwrap_or(("", peer));
        (peer.strip_prefix(NAMED).map_or_else(|| Peer::at(peer), Peer::named), behalf)
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

impl Peer {
    /// Its address or its name.
    pub(crate) fn text(&self) -> &str {
        match self {
            Peer::At(text) | Peer::Named(text) => text,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// What is known of a peer.
pub(crate) struct Known {
    pub(crate) peer: Peer,
    node: Weak<Inner>,
    state: Mutex<State>,
    /// How the last try to connect has ended.
    tried: watch::Sender<Tried>,
}

/// All of it behind one lock, because every request needs most of it.
struct State {
    /// Requests that wait for their answer.
    open: HashMap<u64, Arc<Slot>>,
    /// How many there ever were.
    requests: u64,
    budget: Budget,
    /// Those that are there, the newest last: requests go over that one.
    connections: Vec<Arc<Connection>>,
    connecting: bool,
    pauses: Pauses,
}

/// A connection that has lived for less is like one that could not be made: the next one is not made at once.
const SHORT: Duration = Duration::from_secs(1);

#[derive(Clone)]
enum Tried {
    /// Not yet, or it has worked.
    Well,
    Failed(Failure),
}

/// A request that waits for its answer, until it is dropped.
pub(crate) struct Registered {
    pub(crate) known: Arc<Known>,
    pub(crate) number: u64,
    pub(crate) slot: Arc<Slot>,
    /// The connection that there was then.
    pub(crate) connection: Option<Arc<Connection>>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.known.state.lock().open.remove(&self.number);
    }
}

/// When a request may be sent again. Given back to the budget if that does not come to pass.
pub(crate) struct Turn {
    pub(crate) at: Instant,
    of: Option<Arc<Known>>,
}

impl Turn {
    /// The request is sent.
    pub(crate) fn used(mut self) {
        self.of = None;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(known) = &self.of {
            known.state.lock().budget.give_back();
        }
    }
}

impl State {
    /// True if it was there.
    fn remove(&mut self, connection: &Connection) -> bool {
        let before = self.connections.len();
        self.connections.retain(|mine| mine.id != connection.id);
        self.connections.len() < before
    }

    /// Takes out those who are connected by a name and have proved nothing, for somebody who has come by that name and has proved something. At an address it is the other side that has proved
    /// who it is, or need not.
    fn others(&mut self, peer: &Peer, remote: &Remote) -> Result<Vec<Arc<Connection>>, Failure> {
        let proof = remote.proof();
        let is_other = |connection: &Arc<Connection>| connection.remote.proof() != proof;
        let Peer::Named(name) = peer else { return Ok(Vec::new()) };
        let mut others = self.connections.iter().filter(|connection| is_other(connection));
        if others.any(|other| proof.is_none() || other.remote.proof().is_some()) {
            let message = format!("a node {name} is connected that has proved to be somebody else");
            return Err(Failure::new(Code::PermissionDenied, message));
        }
        Ok(self.connections.extract_if(.., |connection| is_other(connection)).collect())
    }
}

impl Known {
    pub(super) fn new(peer: Peer, node: Weak<Inner>) -> Self {
        Known {
            peer,
            node,
            state: Mutex::new(State {
                open: HashMap::new(),
                requests: 0,
                budget: Budget::new(Instant::now()),
                connections: Vec::new(),
                connecting: false,
                pauses: Pauses::default(),
            }),
            tried: watch::Sender::new(Tried::Well),
        }
    }

    /// Registers a request that is about to be sent and waits for its answer, once: for the first time, or again by somebody who does not wait for a turn.
    ///
    /// # Errors
    /// If there are too many already.
    pub(crate) fn register(self: &Arc<Self>, limits: &Limits, is_first: bool, now: Instant) -> Result<Registered, Failure> {
        let slot = Arc::new(Slot::default());
        let mut state = self.state.lock();
        let open = state.open.len();
        if open >= limits.calls_open_max {
            let message = format!("{open} requests to {} wait for their answer already: send fewer at a time", self.peer);
            return Err(Failure::new(Code::ResourceExhausted, message).retry_after(Duration::from_millis(100)));
        }
        state.requests += 1;
        let number = state.requests;
        state.open.insert(number, Arc::clone(&slot));
        match is_first {
            true => state.budget.sent(),
            false => state.budget.spend(now),
        }
        let connection = state.connections.last().cloned();
        drop(state);
        Ok(Registered { known: Arc::clone(self), number, slot, connection })
    }

    /// A retry for a request whose time ends then; nothing if that would be too late.
    pub(crate) fn reserve_retry(self: &Arc<Self>, now: Instant, ends_at: Instant) -> Option<Turn> {
        let at = self.state.lock().budget.reserve(now, ends_at)?;
        Some(Turn { at, of: Some(Arc::clone(self)) })
    }

    /// Answers of this peer have come, in one packet: all who wait for one are looked for at once. Nobody may wait for it any more.
    pub(crate) fn answered(&self, connection: u64, replies: Vec<Reply>) {
        let state = self.state.lock();
        let slots: Vec<_> = replies.iter().map(|reply| state.open.get(&reply.number).cloned()).collect();
        drop(state);
        for (slot, Reply { attempt, payload, error, .. }) in slots.into_iter().zip(replies) {
            if let Some(slot) = slot {
                slot.answer(connection, attempt, error.map_or(Ok(payload), |error| Err(error.into())));
            }
        }
    }

    /// How many requests wait for their answer.
    pub(super) fn open(&self) -> usize {
        self.state.lock().open.len()
    }

    /// The connection, if there is one.
    pub(crate) fn connected(&self) -> Option<Arc<Connection>> {
        self.state.lock().connections.last().cloned()
    }

    /// That connection, if it is still there.
    pub(crate) fn connection_of(&self, id: u64) -> Option<Arc<Connection>> {
        self.state.lock().connections.iter().find(|connection| connection.id == id).cloned()
    }

    /// True if nobody needs it to be remembered.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state.lock();
        state.connections.is_empty() && !state.connecting && state.open.is_empty()
    }

    /// A connection, as soon as there is one.
    ///
    /// # Errors
    /// If the try to connect that was under way, or was begun for this, has failed, or the node is closed.
    pub(crate) async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, Failure> {
        if let Some(connection) = self.connected() {
            return Ok(connection);
        }
        let ended = || Failure::transient("the node has ended");
        let closed = self.node.upgrade().ok_or_else(ended)?.closed.clone();
        match closed.run_until_cancelled(self.next_connection()).await {
            Some(outcome) => outcome,
            None => Err(self.node.upgrade().map_or_else(ended, |node| node.is_ending())),
        }
    }

    async fn next_connection(self: &Arc<Self>) -> Result<Arc<Connection>, Failure> {
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

    /// Requests go over that connection from now on, until it is cut. Those that lose their place to it are given back: who has proved nothing makes way for who has.
    ///
    /// # Errors
    /// If somebody is connected by this name who has proved to be somebody else.
    pub(super) fn connect_by(&self, connection: &Arc<Connection>) -> Result<Vec<Arc<Connection>>, Failure> {
        let others = {
            let mut state = self.state.lock();
            let others = state.others(&self.peer, &connection.remote)?;
            state.connections.push(Arc::clone(connection));
            state.connecting = false;
            others
        };
        self.tried.send_replace(Tried::Well);
        Ok(others)
    }

    /// Nothing is sent over that connection any more, if no request needs it.
    pub(super) fn let_go(&self, connection: &Connection) -> bool {
        let mut state = self.state.lock();
        state.open.is_empty() && state.remove(connection)
    }

    /// That connection is cut: whoever waits for an answer on it is told at once, and another one is made if somebody does.
    pub(super) fn lost(self: &Arc<Self>, connection: &Connection) {
        let draw = self.node.upgrade().map_or(0, |node| node.draw());
        let open: Vec<_> = {
            let mut state = self.state.lock();
            match state.remove(connection) {
                false => {} // it was let go
                true if connection.age() < SHORT => state.pauses.failed(None, Instant::now(), draw),
                true => state.pauses = Pauses::default(),
            }
            state.open.values().cloned().collect()
        };
        for slot in &open {
            slot.lost(connection.id);
        }
        if !open.is_empty() {
            self.connect_if_need_be();
        }
    }

    /// Connects for something that does not wait for it: not before the pause after the last failure is over.
    pub(super) fn connect_if_it_is_time(self: &Arc<Self>) {
        let is_time = self.state.lock().pauses.are_over(Instant::now());
        if is_time {
            self.connect_if_need_be();
        }
    }

    /// Begins to connect, unless there is a connection or somebody does already.
    fn connect_if_need_be(self: &Arc<Self>) {
        let Peer::At(address) = &self.peer else { return };
        let Ok(runtime) = Handle::try_current() else { return }; // it ends, and this with it
        let mut state = self.state.lock();
        if state.connections.is_empty() && !state.connecting {
            state.connecting = true;
            drop(state);
            runtime.spawn(Connecting { known: Arc::clone(self), over: false }.run(Arc::clone(address)));
        }
    }
}

/// Connects, and tries again while somebody waits. However it ends, somebody else may begin anew.
struct Connecting {
    known: Arc<Known>,
    over: bool,
}

impl Drop for Connecting {
    fn drop(&mut self) {
        self.end();
    }
}

impl Connecting {
    /// Somebody else may connect from now on. Said before those who wait are told how it went, so that whoever comes after that begins anew.
    fn end(&mut self) {
        if !std::mem::replace(&mut self.over, true) {
            self.known.state.lock().connecting = false;
        }
    }

    async fn run(mut self, address: Arc<str>) {
        loop {
            let not_before = self.known.state.lock().pauses.not_before();
            if let Some(at) = not_before {
                time::until(at).await;
            }
            let Some(node) = self.known.node.upgrade() else { return };
            let Err(failure) = node.dial(&self.known, &address).await else {
                self.over = true; // the connection has said so
                return;
            };
            tracing::debug!(peer = %self.known.peer, %failure, "could not connect");
            let over = self.failed(&node, &failure);
            drop(node);
            if over {
                self.end();
            }
            self.known.tried.send_replace(Tried::Failed(failure));
            if over {
                return;
            }
        }
    }

    /// A try has failed. True if it was the last: it would not help, or nobody waits.
    fn failed(&self, node: &Inner, failure: &Failure) -> bool {
        let draw = node.draw();
        let mut state = self.known.state.lock();
        state.pauses.failed(failure.retry_after, Instant::now(), draw);
        failure.class != Class::Transient || node.is_closing() || state.open.is_empty()
    }
}
