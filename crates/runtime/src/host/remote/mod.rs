//! Workers: other processes that have the code of workflows and host runs for this one.
//!
//! The pool knows who is there. A run whose code is not here is opened at the worker with the fewest sessions among those that have its code, have room and do not
//! drain. What a worker says counts only for sessions that it was given over this very line, and only until the line is over: then all of them are lost, and once the worker
//! has certainly let go of them (`hold.rs`) their runs are opened elsewhere from their journals.
//!
//! Tasks of plans are not hosted by workers. A stage begins when the gate says that what other instances share is up to date and that the task is still this instance's;
//! that is asked at the last moment, in this process. A worker would hear the answer when it is old, and what makes a worker let go of its runs does not know who
//! has a tenant's lock.

mod attach;
mod gone;
mod hold;
mod peer;

pub use gone::Gone;
pub(super) use peer::There;

use super::wire::{Down, Hello, Offer};
use super::{Opening, Report, SessionId};
use crate::clock::Clock;
use crate::engine::Ways;
use crate::metrics::OfWorkers;
use crate::shard::Control;
use bytes::Bytes;
use parking_lot::Mutex;
use peer::{Peer, Waiting};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;
use steadfast_kernel::{Timestamp, WorkflowName};
use steadfast_store::ShardId;
use tokio::sync::mpsc;

/// How many names of workflows are remembered of workers that were here.
const KNOWN_MAX: usize = 100_000;

/// What goes with a payload in a message is not longer.
const BESIDE_A_PAYLOAD: usize = 64 << 10;

/// One end of a line between a server and a worker: bytes in both directions, in order. Where a chunk ends means nothing. The end of either direction is the end of the line.
pub struct Duplex {
    /// What the other side says.
    pub incoming: mpsc::Receiver<Bytes>,
    /// What is said to the other side.
    pub outgoing: mpsc::Sender<Bytes>,
}

impl Duplex {
    /// Both ends of a line inside this process; so many chunks may be under way in each direction.
    pub fn pair(chunks: usize) -> (Duplex, Duplex) {
        let ((here, there_in), (there, here_in)) = (mpsc::channel(chunks), mpsc::channel(chunks));
        (Duplex { incoming: here_in, outgoing: here }, Duplex { incoming: there_in, outgoing: there })
    }
}

/// The limits of workers.
#[derive(Clone, Debug)]
pub struct Workers {
    /// Workflows that workers bring: a run of them may be started while none of these workers is here, and waits for one.
    pub workflows: BTreeSet<WorkflowName>,
    /// How many workers may be connected at once. One that comes beyond that tries again later.
    pub workers_max: usize,
    /// The longest heartbeat that a worker may have. After a start, runs that an earlier process may have given to a worker are held back for as long: nobody knows any more
    /// which worker that was, and it may not have noticed yet.
    pub heartbeat_max: Duration,
    /// How many runs one worker hosts at most, whatever it says itself.
    pub sessions_max: usize,
    /// How long a message may be. There is always room for a payload and what goes with it.
    pub message_bytes_max: usize,
    /// How much may wait to be sent to a worker. One that takes so long to read that there is more is given up.
    pub queued_bytes_max: usize,
}

impl Default for Workers {
    fn default() -> Self {
        Workers {
            workflows: BTreeSet::new(),
            workers_max: 1000,
            heartbeat_max: Duration::from_secs(15),
            sessions_max: 10_000,
            message_bytes_max: 32 << 20,
            queued_bytes_max: 64 << 20,
        }
    }
}

impl Workers {
    /// Checks that every limit lets something through.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let limits = [("workers_max", self.workers_max), ("sessions_max", self.sessions_max), ("queued_bytes_max", self.queued_bytes_max)];
        match limits.iter().find(|(_, limit)| *limit == 0) {
            Some((name, _)) => Err(format!("workers.{name} is 0, which lets nothing through; it must be at least 1")),
            None => Ok(()),
        }
    }
}

/// A worker that is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerView {
    /// Its name.
    pub name: String,
    /// The workflows that it has the code of.
    pub workflows: Vec<WorkflowName>,
    /// How many runs it hosts.
    pub sessions: usize,
    /// How many it may host, of all instances of the server together.
    pub sessions_max: usize,
    /// Since when it is connected.
    pub since: Timestamp,
    /// When it was last heard of.
    pub heard_at: Timestamp,
    /// It is given nothing more, and goes when it is done.
    pub draining: bool,
}

/// Why nobody hosts a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nobody {
    /// Nobody has its code.
    HasIt,
    /// Those who have its code have no room.
    HasRoom,
    /// Somebody may have it still, from before the start.
    MayHaveIt,
}

/// The workers that are there.
pub(crate) struct Pool {
    pub(crate) settings: Workers,
    pub(crate) payload_bytes_max: usize,
    pub(crate) heartbeat_every: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    /// The ways to the shards whose runs they host.
    pub(crate) ways: Weak<Ways>,
    pub(crate) metrics: OfWorkers,
    pub(crate) inner: Mutex<Inner>,
}

#[derive(Default)]
pub(crate) struct Inner {
    peers: Vec<Arc<Peer>>,
    /// Those who are gone and may not know it yet.
    held: Vec<Arc<Peer>>,
    holds_nothing: bool,
    /// The number of the last line.
    lines: u64,
    /// What workers that are here, or were since the start, have brought.
    known: BTreeMap<WorkflowName, Offer>,
    /// Workflows of runs that the store has, of which no worker has said anything since the start.
    remembered: BTreeSet<WorkflowName>,
    /// Workflows of runs that found no room.
    wanted: BTreeSet<WorkflowName>,
    stopped: bool,
}

impl Pool {
    /// How long a message may be.
    fn message_bytes_max(&self) -> usize {
        self.settings.message_bytes_max.max(self.payload_bytes_max.saturating_add(BESIDE_A_PAYLOAD))
    }

    /// Gives a run to a worker.
    pub(super) fn open(self: &Arc<Self>, session: SessionId, opening: Opening) -> Result<There, Nobody> {
        if opening.task.is_some() {
            return Err(Nobody::HasIt);
        }
        let mut inner = self.inner.lock();
        let has_it = |peer: &&Arc<Peer>| peer.takes(&opening.workflow, opening.definition.as_deref());
        let mut somebody = false;
        let least = inner.peers.iter().filter(has_it).inspect(|_| somebody = true).filter(|peer| peer.room() > 0);
        match least.min_by_key(|peer| peer.sessions()).map(Arc::clone) {
            Some(peer) => {
                peer.add(session, opening.run.clone());
                peer.send(Down::Open { session, opening: Box::new(opening) });
                Ok(There::new(Arc::clone(self), peer, session))
            }
            None if somebody => {
                inner.wanted.insert(opening.workflow);
                Err(Nobody::HasRoom)
            }
            None => Err(Nobody::HasIt),
        }
    }

    /// How many runs of that workflow could be opened at workers now.
    pub(super) fn room(&self, workflow: &WorkflowName) -> usize {
        let inner = self.inner.lock();
        let takes = inner.peers.iter().filter(|peer| peer.offers(workflow));
        takes.map(|peer| peer.room()).sum()
    }

    /// A run of that workflow still waits for room.
    pub(super) fn want(&self, workflow: &WorkflowName) {
        self.inner.lock().wanted.insert(workflow.clone());
    }

    /// A session is over: whoever waited for room may come.
    fn made_room(&self, peer: &Peer) {
        let mut inner = self.inner.lock();
        if inner.wanted.is_empty() || peer.room() < peer.worth_telling() {
            return; // the shard looks by itself once in a while
        }
        let offered: BTreeSet<_> = inner.wanted.extract_if(.., |workflow| peer.offers(workflow)).collect();
        if !offered.is_empty() {
            self.tell(offered);
        }
    }

    /// Has runs that only wait leave a worker that has more than it may have.
    fn leave_room(&self, peer: &Peer) {
        let runs = peer.too_many();
        if runs > 0
            && let (Some(ways), Some(workflow)) = (self.ways.upgrade(), peer.workflows().next())
        {
            ways.leave_room(ShardId::MAX, workflow, runs); // no shard is left out
        }
    }

    /// Tells the shard of its run what a session says.
    fn report(&self, report: Report) {
        if let Some(ways) = self.ways.upgrade() {
            ways.report(report);
        }
    }

    /// Tells the shards that there is code of those names now.
    fn tell(&self, workflows: BTreeSet<WorkflowName>) {
        if let Some(ways) = self.ways.upgrade() {
            ways.tell(|| Control::Registered(workflows.clone()));
        }
    }

    /// What a worker has said that goes for runs of a workflow; nothing if none did since the start.
    pub(crate) fn learnt(&self, workflow: &WorkflowName) -> Option<Offer> {
        self.inner.lock().known.get(workflow).cloned()
    }

    /// What goes for runs of a workflow that workers bring; nothing if none ever did, as far as is known.
    pub(crate) fn known(&self, workflow: &WorkflowName) -> Option<Offer> {
        let inner = self.inner.lock();
        let is_named = inner.remembered.contains(workflow) || self.settings.workflows.contains(workflow);
        inner.known.get(workflow).cloned().or_else(|| is_named.then(|| Offer::new(workflow.clone())))
    }

    /// The workflows that workers bring, have brought since the start, or are said to bring, by name.
    pub(crate) fn brought(&self) -> Vec<Offer> {
        let inner = self.inner.lock();
        let mut offers = inner.known.clone();
        for workflow in inner.remembered.iter().chain(&self.settings.workflows) {
            offers.entry(workflow.clone()).or_insert_with(|| Offer::new(workflow.clone()));
        }
        offers.into_values().collect()
    }

    /// The store has a run of that workflow: somebody brought it once.
    pub(crate) fn remember(&self, workflow: &WorkflowName) {
        let mut inner = self.inner.lock();
        if inner.remembered.len() < KNOWN_MAX {
            inner.remembered.insert(workflow.clone());
        }
    }

    /// Who is there and was heard, by name.
    pub(crate) fn view(&self) -> Vec<WorkerView> {
        let inner = self.inner.lock();
        let ready = inner.peers.iter().filter(|peer| peer.is_ready());
        let mut views: Vec<_> = ready.map(|peer| peer.view()).collect();
        views.sort_by(|a, b| a.name.cmp(&b.name));
        views
    }

    /// The engine has stopped: everybody is told.
    pub(super) fn stop(&self) {
        let mut inner = self.inner.lock();
        inner.stopped = true;
        inner.peers.iter().for_each(|peer| peer.end(Gone::Stopped));
        drop(inner);
        self.hold_nothing();
    }

    /// Takes a worker in. One of the same name that was there before is gone.
    fn join(&self, hello: Hello, queue: mpsc::UnboundedSender<Waiting>) -> Result<Arc<Peer>, Gone> {
        let mut inner = self.inner.lock();
        if inner.stopped {
            return Err(Gone::Stopped);
        }
        if hello.heartbeat > self.settings.heartbeat_max {
            let (is, max) = (hello.heartbeat, self.settings.heartbeat_max);
            return Err(Gone::Refused(format!("its heartbeat is {is:?}, and at most {max:?} is allowed (workers.heartbeat_max)")));
        }
        self.replace(&mut inner, &hello);
        if inner.peers.len() >= self.settings.workers_max {
            return Err(Gone::TooMany(inner.peers.len()));
        }
        hello.offers.iter().for_each(|offer| inner.learn(offer.clone()));
        inner.lines += 1;
        let peer = Arc::new(Peer::new(self, inner.lines, hello, queue));
        inner.peers.push(Arc::clone(&peer));
        self.metrics.connected.set(inner.peers.len() as f64);
        Ok(peer)
    }

    /// A worker was heard for the first time: it may be given runs, and those that waited for its code are.
    fn ready(&self, peer: &Peer) {
        peer.ready();
        self.tell(peer.workflows().cloned().collect()); // all at once: whoever waits is looked for once
    }
}

impl Inner {
    fn learn(&mut self, offer: Offer) {
        if self.known.len() < KNOWN_MAX || self.known.contains_key(&offer.workflow) {
            self.known.insert(offer.workflow.clone(), offer);
        }
    }
}
