//! How an engine is put together and started.

use super::{Engine, PAGE, Parts, SHARD, WeakEngine};
use crate::callbacks::{Caller, Courier, Handlers};
use crate::chance::Chance;
use crate::clock::{Clock, SystemClock};
use crate::committer::Committer;
use crate::commons::{self, Common, Gate, Notes, Sharing, SharingHealth, Worker};
use crate::config::Config;
use crate::error::Error;
use crate::feed::Followers;
use crate::health::Health;
use crate::host::{Host, Observer, Pool, Registry};
use crate::metrics::{OfCommits, OfShard, OfWorkers};
use crate::redeliver::{Post, Redeliver};
use crate::retention::Sweeper;
use crate::shard::{Ports, Shard, State, unsettled};
use crate::timers::{Leadership, Limits, Role, TimerKeeper};
use futures_util::FutureExt;
use std::sync::Arc;
use steadfast_kernel::random::Seed;
use steadfast_store::{Batch, Commit, RunCursor, RunRow, Store};
use tokio::sync::{mpsc, watch};

/// What an engine is made of.
pub struct Builder {
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// The workflows that this process has the code of.
    pub registry: Registry,
    /// Its limits.
    pub config: Config,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Whether this instance may fire timers, as it changes; always if there is none.
    pub leadership: Option<Leadership>,
    /// Who hears of attempts and ends, for traces.
    pub observer: Option<Arc<dyn Observer>>,
    /// What the seeds of runs follow from, together with their ids, so that chance is the same each time; for tests. They are drawn if there is none.
    pub seed: Option<Seed>,
    /// The handlers for the expiry of keys.
    pub handlers: Handlers,
    /// Who can reach addresses; without one, no key can have an address called at its end.
    pub caller: Option<Arc<dyn Caller>>,
    /// How tenants are shared with other instances; with nobody if there is nothing.
    pub sharing: Option<Sharing>,
    /// Who can send and handle messages; without one, no dead letter of a message can be redriven.
    pub redeliver: Option<Arc<dyn Redeliver>>,
}

impl Builder {
    /// An engine on that store, without workflows, with the default limits and the machine's clock.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Builder {
            store,
            registry: Registry::default(),
            config: Config::default(),
            clock: Arc::new(SystemClock),
            leadership: None,
            observer: None,
            seed: None,
            handlers: Handlers::default(),
            caller: None,
            sharing: None,
            redeliver: None,
        }
    }

    /// Starts the engine: takes the shard over, arms its timers, and goes on with every run that was under way.
    ///
    /// # Errors
    /// If the configuration cannot be used, or the store cannot be read.
    pub async fn start(self) -> Result<Engine, Error> {
        let unusable = |why| Error::InvalidSetting(format!("the configuration cannot be used: {why}"));
        self.config.validate().map_err(unusable)?;
        let committed = self.store.claim(SHARD).await.map_err(Error::from_store)?;
        let under_way = under_way(&*self.store).await?;
        let plans = super::plans::under_way(&*self.store).await?;
        let outbox = unsettled(&*self.store, SHARD).await?;
        let half_swept = self.store.half_swept(SHARD).await.map_err(Error::from_store)?;

        let chance = Chance::new(self.seed)?;

        let (control, control_in) = mpsc::unbounded_channel();
        let (requests, requests_in) = mpsc::channel(self.config.requests_max);
        let (reports, reports_in) = mpsc::unbounded_channel();
        let (fired, fired_in) = mpsc::unbounded_channel();
        let (outcomes, outcomes_in) = mpsc::unbounded_channel();
        let (batches, batches_in) = mpsc::unbounded_channel();
        let (timers, timers_in) = mpsc::unbounded_channel();
        let (health, health_out) = watch::channel(Health::default());

        let followers = Arc::new(Followers::default());
        let shared = self.sharing.map(|sharing| shared(sharing, &self.clock));
        let pool = Arc::new(Pool {
            settings: self.config.workers.clone(),
            payload_bytes_max: self.config.payload_bytes_max,
            heartbeat_every: self.config.heartbeat_every,
            clock: Arc::clone(&self.clock),
            reports: reports.clone(),
            control: control.downgrade(),
            metrics: OfWorkers::new(),
            inner: parking_lot::Mutex::default(),
        });
        let host = Host {
            pool: Some(Arc::clone(&pool)),
            gate: shared.as_ref().map(|(common, _, _)| Arc::clone(&common.gate)),
            registry: self.registry.clone(),
            clock: Arc::clone(&self.clock),
            reports,
            payload_bytes_max: self.config.payload_bytes_max,
            heartbeat_every: self.config.heartbeat_every,
            observer: self.observer,
        };
        let always = || watch::channel(Role::Leader { term: committed.term }).1; // the store belongs to this process alone
        let role = self.leadership.unwrap_or_else(always);
        let ports = Ports {
            control: control_in,
            requests: requests_in,
            reports: reports_in,
            fired: fired_in,
            outcomes: outcomes_in,
            batches,
            timers,
            health,
            followers: Arc::clone(&followers),
            role: role.clone(),
        };
        let parts = Parts {
            store: Arc::downgrade(&self.store),
            registry: self.registry,
            config: self.config.clone(),
            clock: Arc::clone(&self.clock),
            chance,
            health: health_out,
            followers: Arc::downgrade(&followers),
            handlers: self.handlers.clone(),
            caller: self.caller.clone(),
            pool,
            common: shared.as_ref().map(|(common, _, _)| common.clone()),
            post: Post::new(self.redeliver),
            tasks: tokio::sync::Mutex::new(None),
        };
        let engine = Engine { control, requests: requests.clone(), parts: Arc::new(parts) };
        let settings = self.config.callbacks.clone();
        let courier = Courier {
            engine: WeakEngine::of(&engine),
            handlers: self.handlers,
            caller: self.caller,
            clock: Arc::clone(&self.clock),
            settings,
        };
        let says = engine.parts.chance.id(self.clock.now())?.to_string();
        let (notes, worker) = match shared {
            Some((common, notes, ports)) => {
                let worker = Worker::new(common.sharing, Arc::clone(&self.clock), WeakEngine::of(&engine), says, ports);
                (Some(notes), Some(worker))
            }
            None => (None, None),
        };
        let limits = Limits { expire_batch: self.config.expire_batch, retry_batch: self.config.retry_batch, ..Limits::default() };
        let (retention, state) = (self.config.retention, State::new(&self.config));
        let (config, clock, store) = (self.config, Arc::clone(&self.clock), Arc::clone(&self.store));
        let metrics = OfShard::new();
        let mut shard = Shard { id: SHARD, config, clock, store, host, courier, ports, notes, committed, metrics, state };
        shard.finish_sweeping(half_swept);
        shard.resume(under_way);
        shard.interrupt_all(plans);
        shard.relay_all(outbox);
        shard.change_role();

        let (clock, store) = (Arc::clone(&self.clock), Arc::clone(&self.store));
        let keeper = TimerKeeper::new(clock, store, SHARD, role, timers_in, fired, limits);
        let keeper = tokio::spawn(keeper.run());
        let commit = measured(Arc::clone(&self.store), Arc::clone(&self.clock));
        let committer = tokio::spawn(Committer { commit, batches: batches_in, outcomes }.run());
        let shard = tokio::spawn(shard.run());
        let (clock, store) = (Arc::clone(&self.clock), Arc::clone(&self.store));
        let sweeper = tokio::spawn(Sweeper { retention, clock, store, shard: SHARD, requests: requests.downgrade() }.run());
        let worker = tokio::spawn(async move {
            if let Some(worker) = worker {
                worker.run().await;
            }
        });
        let all = tokio::spawn(async move {
            let _ended = (shard.await, committer.await, keeper.await, worker.await);
            sweeper.abort();
            let _ended = sweeper.await; // it has let go of the store
        });
        *engine.parts.tasks.lock().await = Some(all);
        Ok(engine)
    }
}

/// What the engine, the shard and the worker have of what is shared.
fn shared(sharing: Sharing, clock: &Arc<dyn Clock>) -> (Common, Notes, commons::Ports) {
    let (sender, notes) = mpsc::unbounded_channel();
    let gate = Arc::new(Gate::new(Arc::clone(clock), sharing.patience));
    let (health, health_out) = watch::channel(SharingHealth::starting(sharing.instance.clone()));
    let own = sender.downgrade();
    let common = Common { sharing, gate: Arc::clone(&gate), health: health_out, notes: own.clone(), adopting: Arc::default() };
    (common, Notes { sender, gate: Arc::clone(&gate) }, commons::Ports { notes, own, gate, health })
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

/// Every run that a restart has something to do with: those that only wait are opened when what they wait for happens.
async fn under_way(store: &dyn Store) -> Result<Vec<RunRow>, Error> {
    let mut runs: Vec<RunRow> = Vec::new();
    loop {
        let page = store
            .to_recover(SHARD, runs.last().map(RunCursor::from).as_ref(), PAGE)
            .await
            .map_err(Error::from_store)?;
        if page.is_empty() {
            return Ok(runs);
        }
        runs.extend(page);
    }
}
