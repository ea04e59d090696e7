//! How a shard is opened: claimed, read, and set to work, with its own keeper of timers, its own line to the store and its own sweeper.

use super::plans;
use super::ways::{Way, Ways};
use crate::callbacks::Courier;
use crate::clock::Clock;
use crate::cluster::Others;
use crate::committer::Committer;
use crate::commons::{Gate, Notes};
use crate::config::Config;
use crate::error::Error;
use crate::feed::Followers;
use crate::health::Health;
use crate::host::{Host, Observer, Registry, Staff};
use crate::metrics::{OfCommits, OfShard};
use crate::retention::Sweeper;
use crate::shard::{Crowd, Ports, Shard, State, under_way, unsettled};
use crate::timers::{Leadership, Limits, Role, TimerKeeper};
use futures_util::FutureExt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use steadfast_store::{Batch, Commit, ShardId, Store};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// What all shards of an instance are opened with.
pub(crate) struct Opener {
    pub(super) store: Arc<dyn Store>,
    pub(super) registry: Registry,
    pub(super) config: Config,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) leadership: Option<Leadership>,
    pub(super) observer: Option<Arc<dyn Observer>>,
    pub(super) followers: Arc<Followers>,
    pub(super) staff: Arc<Staff>,
    pub(super) sessions: Arc<AtomicU64>,
    pub(super) crowd: Arc<Crowd>,
    pub(super) gate: Option<Arc<Gate>>,
    pub(super) notes: Option<Notes>,
    pub(super) courier: Courier,
    pub(super) ways: Weak<Ways>,
    pub(super) others: Option<Arc<Others>>,
}

/// A shard that was opened.
pub(crate) struct Opened {
    /// The way to it: it ends when there is none.
    pub(crate) way: Way,
    /// Sets it to work. If that is dropped instead, it ends and has begun nothing.
    pub(crate) begin: oneshot::Sender<()>,
    /// Ends when it is over.
    pub(crate) over: JoinHandle<()>,
    /// Its term.
    pub(crate) term: u64,
}

impl Opener {
    /// How many shards there are.
    pub(crate) fn shards(&self) -> u32 {
        self.store.shards()
    }

    /// Opens a shard: it goes on with every run that was under way. If those were cut off, the ones that do not go on by themselves after that are interrupted.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) async fn open(&self, id: ShardId, cut_off: bool) -> Result<Opened, Error> {
        let committed = self.store.claim(id).await.map_err(Error::from_store)?;
        let term = committed.term;
        let under_way = under_way(&*self.store, id).await?;
        let plans = if cut_off { plans::under_way(&*self.store, id).await? } else { Vec::new() };
        let outbox = unsettled(&*self.store, id).await?;
        let half_swept = self.store.half_swept(id).await.map_err(Error::from_store)?;

        let (control, control_in) = mpsc::unbounded_channel();
        let (requests, requests_in) = mpsc::channel(self.config.requests_max);
        let (reports, reports_in) = mpsc::unbounded_channel();
        let (said, said_in) = mpsc::unbounded_channel();
        let (fired, fired_in) = mpsc::unbounded_channel();
        let (outcomes, outcomes_in) = mpsc::unbounded_channel();
        let (batches, batches_in) = mpsc::unbounded_channel();
        let (timers, timers_in) = mpsc::unbounded_channel();
        let (health, health_out) = watch::channel(Health::default());
        let always = || watch::channel(Role::Leader { term: committed.term }).1; // for as long as the shard is here, nobody else has it
        let role = self.leadership.clone().unwrap_or_else(always);
        let ports = Ports {
            control: control_in,
            requests: requests_in,
            reports: reports_in,
            said: said_in,
            fired: fired_in,
            outcomes: outcomes_in,
            batches,
            timers,
            health,
            followers: Arc::clone(&self.followers),
            role: role.clone(),
        };
        let host = Host {
            pool: Some(Arc::clone(&self.staff)),
            sessions: Arc::clone(&self.sessions),
            gate: self.gate.clone(),
            registry: self.registry.clone(),
            clock: Arc::clone(&self.clock),
            reports: reports.clone(),
            payload_bytes_max: self.config.payload_bytes_max,
            heartbeat_every: self.config.heartbeat_every,
            observer: self.observer.clone(),
            others: self.others.clone(),
        };
        let mut shard = Shard {
            id,
            config: self.config.clone(),
            clock: Arc::clone(&self.clock),
            store: Arc::clone(&self.store),
            host,
            courier: self.courier.clone(),
            ports,
            notes: self.notes.clone(),
            ways: Weak::clone(&self.ways),
            others: self.others.clone(),
            committed,
            metrics: OfShard::new(),
            state: State::new(&self.config, Arc::clone(&self.crowd)),
        };
        shard.finish_sweeping(half_swept);
        shard.resume(under_way, cut_off);
        shard.interrupt_all(plans);
        shard.relay_all(outbox);
        shard.change_role();

        let limits = Limits { expire_batch: self.config.expire_batch, retry_batch: self.config.retry_batch, ..Limits::default() };
        let keeper = TimerKeeper::new(Arc::clone(&self.clock), Arc::clone(&self.store), id, role, timers_in, fired, limits);
        let keeper = tokio::spawn(keeper.run());
        let commit = measured(Arc::clone(&self.store), Arc::clone(&self.clock));
        let committer = tokio::spawn(Committer { commit, batches: batches_in, outcomes }.run());
        let notes = self.notes.clone().inspect(|notes| notes.opened(id, term));
        let (begin, begins) = oneshot::channel();
        let load = shard.state.load();
        let shard = tokio::spawn(async move {
            if begins.await.is_ok() {
                shard.run().await;
            }
        });
        let (retention, clock, store) = (self.config.retention, Arc::clone(&self.clock), Arc::clone(&self.store));
        let sweeper = tokio::spawn(Sweeper { retention, clock, store, shard: id, ways: Weak::clone(&self.ways) }.run());
        let over = tokio::spawn(async move {
            let _ended = (shard.await, committer.await, keeper.await);
            notes.inspect(|notes| notes.closed(id, term));
            sweeper.abort();
            let _ended = sweeper.await; // it has let go of the store
        });
        Ok(Opened { way: Way { control, requests, reports, said, health: health_out, load }, begin, over, term })
    }
}

/// Commits to that store, and how long they took.
fn measured(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> impl Fn(Batch) -> Commit {
    let metrics = OfCommits::new();
    move |batch| {
        let (metrics, clock, began, events) = (metrics.clone(), Arc::clone(&clock), clock.now(), batch.events.len());
        let count = move |outcome: &Result<(), _>| metrics.count(clock.now().saturating_since(began), events, outcome.is_ok());
        store.commit(batch).inspect(count).boxed()
    }
}
