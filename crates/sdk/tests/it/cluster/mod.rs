//! Several instances on one store: they share its shards, any of them can be asked for anything, and one that is lost is replaced.

mod feed;
mod leases;
mod line;
mod moves;
mod one;
mod random;
mod stays;
mod workers;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::cluster::{Carrier, Cluster, Member, Question};
use steadfast::memory::Memory;
use steadfast::{Clock, Engine, EngineBuilder, Failure, VirtualClock};
use steadfast_store::Leases;
use steadfast_store::memory::MemoryLeases;

const LEASE: Duration = Duration::from_secs(10);

/// A store, those who share it, and the network between them.
struct World {
    clock: VirtualClock,
    store: Memory,
    leases: MemoryLeases,
    network: Network,
}

/// Instances that can be reached, by id; nothing for one that hangs, and never answers.
#[derive(Clone, Default)]
struct Network(Arc<Mutex<BTreeMap<String, Option<Engine>>>>, Asked);

/// What was asked, by the id of the one who was.
type Asked = Arc<Mutex<Vec<(String, Bytes)>>>;

/// An instance, and the handle of the store that dies with it.
struct Instance {
    engine: Engine,
    store: Memory,
    id: String,
    network: Network,
}

impl World {
    fn new(shards: u32) -> Self {
        let (clock, store) = (VirtualClock::start(), Memory::of_shards(shards));
        let leases = MemoryLeases::new(&store, LEASE, move || clock.now());
        World { clock, store, leases, network: Network::default() }
    }

    /// Starts an instance, with the workflows that it is given.
    async fn start(&self, id: &str, with: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Instance {
        self.start_by(id, |leases| Arc::new(leases), with).await
    }

    /// The same, with what it has of leases made into something else.
    async fn start_by(
        &self,
        id: &str,
        by: impl FnOnce(MemoryLeases) -> Arc<dyn Leases>,
        with: impl FnOnce(EngineBuilder) -> EngineBuilder,
    ) -> Instance {
        self.start_on(id, self.store.another(), by, with).await
    }

    /// The same, on that handle of the store.
    async fn start_on(
        &self,
        id: &str,
        store: Memory,
        by: impl FnOnce(MemoryLeases) -> Arc<dyn Leases>,
        with: impl FnOnce(EngineBuilder) -> EngineBuilder,
    ) -> Instance {
        let member = Member { id: id.into(), name: "machine".into(), address: format!("there:{id}"), version: "1".into() };
        let leases = by(self.leases.of_another(&store));
        let cluster = Cluster { leases, member, carrier: Arc::new(self.network.clone()) };
        let engine = with(Engine::on(store.clone()).clock(self.clock).cluster(cluster)).start().await.unwrap();
        self.network.0.lock().unwrap().insert(id.into(), Some(engine.clone()));
        Instance { engine, store, id: id.into(), network: self.network.clone() }
    }
}

impl Carrier for Network {
    fn carry(&self, to: &Member, question: Question) -> BoxFuture<'static, Result<Bytes, Failure>> {
        let there = self.0.lock().unwrap().get(&to.id).cloned();
        self.1.lock().unwrap().push((to.id.clone(), question.bytes.clone()));
        async move {
            match there.ok_or_else(|| Failure::transient("nobody is there"))? {
                Some(there) => Ok(there.answer_instance(&question.bytes, false).await),
                None => std::future::pending().await,
            }
        }
        .boxed()
    }
}

impl Instance {
    /// Its process dies: nothing that it does counts any more, and nobody reaches it.
    fn crash(self) {
        self.store.crash();
        self.cut();
    }

    /// Its process is stopped and never goes on: who asks it gets no answer.
    fn hang(self) {
        self.store.crash();
        self.network.0.lock().unwrap().insert(self.id.clone(), None);
    }

    /// Nobody reaches it any more.
    fn cut(&self) {
        self.network.0.lock().unwrap().remove(&self.id);
    }

    /// It ends in good order.
    async fn stop(self) {
        self.cut();
        self.engine.shutdown().await;
    }

    /// The shards that it has, by the leases.
    async fn shards(&self) -> Vec<u32> {
        let view = self.engine.cluster().await.unwrap().unwrap();
        let mine = view
            .leases
            .into_iter()
            .filter(|lease| !lease.is_over && lease.holder.as_deref() == Some(self.id.as_str()));
        mine.map(|lease| lease.shard).collect()
    }

    async fn has(&self, count: usize) -> bool {
        self.shards().await.len() == count
    }
}

/// Waits until that many instances have an even share of the shards each.
async fn all_shared(engine: &Engine, instances: usize) {
    loop {
        let view = engine.cluster().await.unwrap().unwrap();
        let held = |id: &str| view.leases.iter().filter(|lease| !lease.is_over && lease.holder.as_deref() == Some(id)).count();
        let share = view.leases.len() / instances;
        if view.instances.len() == instances && view.instances.iter().all(|instance| held(&instance.member.id) >= share) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits for a fact that may take long, for that long at most.
async fn within(time: Duration, what: &str, mut fact: impl AsyncFnMut() -> bool) {
    let end = tokio::time::Instant::now() + time;
    while !fact().await {
        assert!(tokio::time::Instant::now() < end, "not within {time:?}: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
