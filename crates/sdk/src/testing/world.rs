//! The world of a lab: its time, and the processes that follow each other in it.

use super::crash::Crash;
use super::meddler::{Book, Mortal, OfLab, lock};
use crate::{Config, Engine, VirtualClock};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use steadfast_kernel::random::Seed;
use steadfast_runtime as runtime;
use steadfast_runtime::host::Registry;
use steadfast_runtime::{Handlers, Registered};
use steadfast_store::Batch;
use steadfast_store::memory::Memory;
use tokio::sync::{Notify, watch};

/// What every process of a lab begins with.
pub(super) struct World {
    registry: Registry,
    handlers: Handlers,
    config: Config,
    /// Real time without it.
    clock: Option<VirtualClock>,
    pub(super) book: Arc<Book>,
    pub(super) crashes: Arc<Crashes>,
}

/// A process.
#[derive(Clone)]
pub(super) struct Life {
    pub(super) engine: Engine,
    pub(super) store: Memory,
}

impl World {
    pub(super) fn new(builder: &runtime::Builder, clock: Option<VirtualClock>) -> Self {
        let (registry, handlers, config) = (builder.registry.clone(), builder.handlers.clone(), builder.config.clone());
        World { registry, handlers, config, clock, book: Arc::default(), crashes: Arc::default() }
    }

    /// Has another process begin whenever one has died.
    pub(super) async fn supervise(self, lives: watch::Sender<Life>) {
        loop {
            self.crashes.died.notified().await;
            let last = lives.borrow().clone();
            last.engine.inner.abort();
            lives.send_replace(self.begin(last.store.reopen()).await);
        }
    }

    /// The next process, on what the store has.
    pub(super) async fn begin(&self, store: Memory) -> Life {
        let crashes = Arc::clone(&self.crashes);
        store.faults().rule(move |batch| crashes.next(batch).map(|crash| crash.fault()));
        let meddler = OfLab { store: store.clone(), book: Arc::clone(&self.book) };
        let mut builder = Engine::on(store.clone()).config(self.config.clone());
        builder = match self.clock {
            Some(clock) => builder.clock(clock),
            None => builder,
        };
        builder.inner.handlers = self.handlers.clone();
        builder.inner.seed = Some(Seed([7; 32])); // chance is the same in every lab
        for name in self.registry.names() {
            let Some(registered) = self.registry.get(&name) else { continue };
            let code = Arc::new(Mortal { code: Arc::clone(&registered.code), meddler: meddler.clone() });
            builder.inner.registry.insert(name.clone(), Registered { code, ..registered });
        }
        let engine = builder
            .start()
            .await
            .unwrap_or_else(|error| panic!("the engine of the lab does not start: {error:?}"));
        Life { engine, store }
    }
}

/// When processes are to die.
#[derive(Default)]
pub(super) struct Crashes {
    pub(super) planned: Mutex<Vec<Crash>>,
    /// Commits that were asked for, over all processes.
    pub(super) commits: AtomicU64,
    pub(super) died: Notify,
}

impl Crashes {
    /// Whether the process is to die at its next commit, which is this one.
    fn next(&self, batch: &Batch) -> Option<Crash> {
        let before = self.commits.fetch_add(1, Ordering::SeqCst);
        let mut planned = lock(&self.planned);
        let at = planned.iter().position(|crash| crash.is_at(before, batch))?;
        self.died.notify_one();
        Some(planned.remove(at))
    }
}

/// Stops the time of the runtime, unless it stands still already.
pub(super) fn pause() {
    #[expect(clippy::disallowed_methods, reason = "whether tokio's time stands still shows only beside real time")]
    let real = std::time::Instant::now;
    let (before, begun) = (tokio::time::Instant::now(), real());
    while real() == begun {}
    if tokio::time::Instant::now() != before {
        tokio::time::pause();
    }
}
