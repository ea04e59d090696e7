//! How an engine is put together and started.

use super::open::{Opened, Opener};
use super::{Engine, Parts, Ways, WeakEngine};
use crate::callbacks::{Caller, Courier, Handlers};
use crate::chance::Chance;
use crate::clock::{Clock, SystemClock};
use crate::cluster::{Cluster, KeeperParts, LeaseKeeper, Others};
use crate::commons::{self, Common, Gate, Notes, Sharing, SharingHealth};
use crate::config::Config;
use crate::error::Error;
use crate::feed::Followers;
use crate::host::{Observer, Pool, Registry, Staff};
use crate::metrics::OfWorkers;
use crate::redeliver::{Post, Redeliver};
use crate::timers::Leadership;
use futures_util::FutureExt;
use std::sync::Arc;
use steadfast_kernel::random::Seed;
use steadfast_store::Store;
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
    /// How the shards of the store are shared with other instances; all of them are this engine's if there is nothing.
    pub cluster: Option<Cluster>,
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
            cluster: None,
            redeliver: None,
        }
    }

    /// Starts the engine: takes the shards over, arms their timers, and goes on with every run that was under way.
    ///
    /// # Errors
    /// If the configuration cannot be used, or the store cannot be read.
    pub async fn start(self) -> Result<Engine, Error> {
        let unusable = |why| Error::InvalidSetting(format!("the configuration cannot be used: {why}"));
        self.config.validate().map_err(unusable)?;
        let chance = Chance::new(self.seed)?;
        let others = self.cluster.map(|cluster| Arc::new(Others::new(cluster, Arc::clone(&self.clock))));
        let followers = Arc::new(Followers::new(others.as_ref().map(|others| Arc::clone(&others.leases))));
        let (keeper, orders) = mpsc::unbounded_channel();
        let shared = self.sharing.map(|sharing| shared(sharing, &self.clock));
        let ways = Arc::new(Ways::new(self.store.shards(), others.as_ref().map(Arc::clone)));
        let pool = Arc::new(Pool {
            settings: self.config.workers.clone(),
            payload_bytes_max: self.config.payload_bytes_max,
            heartbeat_every: self.config.heartbeat_every,
            clock: Arc::clone(&self.clock),
            ways: Arc::downgrade(&ways),
            metrics: OfWorkers::new(),
            inner: parking_lot::Mutex::default(),
        });
        let parts = Parts {
            store: Arc::downgrade(&self.store),
            registry: self.registry.clone(),
            config: self.config.clone(),
            clock: Arc::clone(&self.clock),
            chance,
            followers: Arc::downgrade(&followers),
            handlers: self.handlers.clone(),
            caller: self.caller.clone(),
            pool: Arc::clone(&pool),
            common: shared.as_ref().map(|(common, _, _)| common.clone()),
            post: Post::new(self.redeliver),
            tasks: tokio::sync::Mutex::new(None),
            keeper: others.is_some().then_some(keeper),
        };
        let engine = Engine { ways: Arc::clone(&ways), parts: Arc::new(parts) };
        let courier = Courier {
            engine: WeakEngine::of(&engine),
            handlers: self.handlers,
            caller: self.caller,
            clock: Arc::clone(&self.clock),
            settings: self.config.callbacks.clone(),
        };
        let says = engine.parts.chance.id(self.clock.now())?.to_string();
        let gate = shared.as_ref().and_then(|(_, notes, _)| notes.gate.clone());
        let (notes, worker) = match shared {
            Some((common, notes, ports)) => {
                let (clock, weak, life) = (Arc::clone(&self.clock), WeakEngine::of(&engine), (says, self.store.shards()));
                let worker = commons::speak(common.sharing, clock, weak, life, ports);
                (Some(notes), Some(worker))
            }
            None => (None, None),
        };
        let opener = Opener {
            registry: self.registry,
            config: per_shard(self.config, self.store.shards()),
            clock: self.clock,
            leadership: self.leadership,
            observer: self.observer,
            followers,
            staff: Arc::new(Staff(pool)),
            sessions: Arc::default(),
            crowd: Arc::default(),
            gate,
            notes,
            courier,
            ways: Arc::downgrade(&ways),
            others: others.clone(),
            store: self.store,
        };
        let shards = match others {
            Some(others) => {
                let (followers, clock, grace) = (Arc::clone(&opener.followers), Arc::clone(&opener.clock), opener.config.shutdown_grace);
                let parts = KeeperParts { others, followers, clock, grace, orders };
                let (keeper, opened) = LeaseKeeper::join(parts, opener, &ways).await?;
                let keeper = tokio::spawn(keeper.run());
                if let Err(error) = opened.await.unwrap_or(Err(Error::Stopped)) {
                    engine.shutdown().await;
                    return Err(error);
                }
                keeper.map(drop).boxed()
            }
            None => {
                let mut shards = Vec::new();
                for shard in 0..opener.shards() {
                    let Opened { way, begin, over, .. } = opener.open(shard, true).await?;
                    ways.add(shard, way);
                    let _it_waits_for_that = begin.send(());
                    shards.push(over);
                }
                futures_util::future::join_all(shards).map(drop).boxed()
            }
        };
        let worker = tokio::spawn(async move {
            if let Some(worker) = worker {
                worker.await;
            }
        });
        let all = tokio::spawn(async move {
            shards.await;
            let _ended = worker.await;
        });
        *engine.parts.tasks.lock().await = Some(all);
        Ok(engine)
    }
}

/// The limits of one of so many shards: what is kept in memory because it may be needed soon is divided among them, and so is how many call a target at once.
fn per_shard(mut config: Config, shards: u32) -> Config {
    for limit in [&mut config.runs_idle_max, &mut config.callbacks.in_flight_max] {
        *limit = limit.div_ceil(shards as usize);
    }
    config
}

/// What the engine, the shards and the worker have of what is shared.
fn shared(sharing: Sharing, clock: &Arc<dyn Clock>) -> (Common, Notes, commons::Ports) {
    let (sender, notes) = mpsc::unbounded_channel();
    let gate = Arc::new(Gate::new(Arc::clone(clock), sharing.patience));
    let (health, health_out) = watch::channel(SharingHealth::starting(&sharing));
    let own = sender.downgrade();
    let asked = (!sharing.mirror_only).then(|| Arc::clone(&gate));
    let common = Common { sharing, health: health_out, notes: own.clone(), adopting: Arc::default() };
    (common, Notes { sender, gate: asked }, commons::Ports { notes, own, gate, health })
}
