//! An engine without code, and workers that have it.

use super::programs;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::random::Seed;
use steadfast_kernel::{Entry, Payload, RunId};
use steadfast_runtime::clock::VirtualClock;
use steadfast_runtime::{Builder, Config, Engine, Registry, RunView, Start, Worker};
use steadfast_store::memory::Memory;

/// How long a worker may be silent.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(9);

/// The longest time for which any may be, by the settings.
pub(crate) const HEARTBEAT_MAX: Duration = Duration::from_secs(15);

pub(crate) struct World {
    pub(crate) store: Memory,
    pub(crate) clock: VirtualClock,
    pub(crate) engine: Engine,
}

impl World {
    /// An engine without code.
    pub(crate) async fn new() -> World {
        World::with(Memory::new(), VirtualClock::start(), Registry::default(), |_| {}).await
    }

    /// An engine that has the code itself.
    pub(crate) async fn local() -> World {
        World::with(Memory::new(), VirtualClock::start(), programs::all(), |_| {}).await
    }

    pub(crate) async fn with(store: Memory, clock: VirtualClock, registry: Registry, set: impl FnOnce(&mut Config)) -> World {
        let mut config = Config::default();
        set(&mut config);
        let builder =
            Builder { registry, config, clock: Arc::new(clock), seed: Some(Seed([7; 32])), ..Builder::new(Arc::new(store.clone())) };
        World { engine: builder.start().await.unwrap(), store, clock }
    }

    /// The process of the engine dies, and another one takes its place.
    pub(crate) async fn restart(self) -> World {
        self.engine.abort();
        let store = self.store.reopen();
        World::with(store, self.clock, Registry::default(), |_| {}).await
    }

    /// A worker with all programs.
    pub(crate) fn worker(&self, name: &str) -> Worker {
        let clock = Arc::new(self.clock);
        Worker { clock, heartbeat: HEARTBEAT, patience: Duration::from_secs(60), ..Worker::new(name, programs::all()) }
    }

    pub(crate) async fn start(&self, workflow: &str, id: &str) -> RunId {
        self.try_start(workflow, id).await.unwrap()
    }

    pub(crate) async fn try_start(&self, workflow: &str, id: &str) -> Result<RunId, steadfast_runtime::Error> {
        let (workflow, id) = (workflow.to_string(), Some(id.to_string()));
        let start = Start { workflow, input: Payload::json("1"), id, deadline: None, tenant: None, limits: Vec::new() };
        self.engine.start(start).await.map(|(run, _)| run)
    }

    pub(crate) async fn view(&self, run: &RunId) -> RunView {
        self.engine.view(run).await.unwrap()
    }

    pub(crate) async fn journal(&self, run: &RunId) -> Vec<Entry> {
        self.engine.journal(run, 0, 10_000).await.unwrap()
    }

    /// Type and subject of every entry.
    pub(crate) async fn kinds(&self, run: &RunId) -> Vec<String> {
        let line = |entry: &Entry| match entry.event.subject() {
            Some(subject) => format!("{} {subject}", entry.event.kind()),
            None => entry.event.kind().to_string(),
        };
        self.journal(run).await.iter().map(line).collect()
    }

    /// The reasons for which a run waits.
    pub(crate) async fn waits(&self, run: &RunId) -> Vec<&'static str> {
        self.view(run).await.waits.iter().map(|wait| wait.reason()).collect()
    }

    /// How many runs each worker hosts, by name.
    pub(crate) fn sessions(&self) -> Vec<(String, usize)> {
        self.engine.workers().into_iter().map(|worker| (worker.name, worker.sessions)).collect()
    }
}

/// Waits for a fact, with a bound, without a second passing.
pub(crate) async fn until(what: &str, mut fact: impl AsyncFnMut() -> bool) {
    for _ in 0..5_000 {
        if fact().await {
            return;
        }
        tokio::time::advance(Duration::from_micros(100)).await;
        tokio::task::yield_now().await;
    }
    panic!("it never came to this: {what}");
}
