//! Workers: processes that have the code of workflows, and host runs for a server that has the store.
//!
//! ```no_run
//! use steadfast::worker::Worker;
//! use steadfast::{Ctx, Failure, workflow};
//!
//! #[workflow]
//! async fn ship(ctx: Ctx, order: String) -> Result<String, Failure> {
//!     ctx.step("send", || async { Ok::<_, Failure>(format!("sent {order}")) }).await
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Failure> {
//! let worker = Worker::of("http://127.0.0.1:7373").name("shipper-1").register(ship).start().await?;
//! tokio::signal::ctrl_c().await?;
//! worker.drain().await; // attempts in flight end and are recorded; the runs go on at another worker
//! # Ok(()) }
//! ```
//!
//! A run is the same wherever it is hosted: its journal is the server's. A worker that is lost in the middle of a step is noticed within its heartbeat, and its runs are opened
//! elsewhere from their journals; it lets go of them by itself before that. While no worker has the code of a run, the run waits with the reason `NO_WORKER`.

mod instances;
mod line;
mod serve;
#[cfg(test)]
mod snapshot;
mod steps;
mod visit;
mod wire;
mod work;

pub use serve::{take_workers, take_workers_if};
pub use steadfast_runtime::host::{Attempted, Gone, Observer, Parted, RunEnded, Span, WorkerView, Workers};

use crate::means::Means;
use crate::messages::{Letters, Limits, Node, NodeBuilder, Peer, inbox};
use crate::workflow::{Hosted, Workflow};
use crate::{Clock, Engine, Settings};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Code, Failure};
use steadfast_runtime as runtime;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;
use visit::Hosting;
use work::Work;

/// A worker that is being put together.
#[must_use = "a worker does nothing until it is started"]
pub struct WorkerBuilder {
    servers: Vec<Peer>,
    node: NodeBuilder,
    worker: runtime::host::Worker,
    means: Means,
    token: Option<String>,
    wrong: Option<Failure>,
}

/// A worker that works, until it is drained or dropped.
#[derive(Debug)]
pub struct Worker {
    node: Node,
    drain: watch::Sender<bool>,
    working: JoinHandle<Parted>,
    patience: Duration,
}

impl Worker {
    /// A worker of the server at that address, which is where its API is. If the server has several instances on one database, the worker finds them by it, and hosts runs of all of them.
    pub fn of(server: impl Into<Peer>) -> WorkerBuilder {
        Worker::of_any([server])
    }

    /// The same, for a server that has several addresses: the first one that answers is gone to. Once the worker has found the instances of the server it knows their addresses itself; so several are
    /// of use when it starts while one of them is down.
    pub fn of_any(servers: impl IntoIterator<Item = impl Into<Peer>>) -> WorkerBuilder {
        WorkerBuilder {
            servers: servers.into_iter().map(Into::into).collect(),
            node: Node::builder(),
            worker: runtime::host::Worker::new(String::new(), runtime::Registry::default()),
            means: Means::default(),
            token: None,
            wrong: None,
        }
    }

    /// Its node: for routes that it answers, and for calls from outside of workflows.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Takes nothing more, waits for attempts in flight and for what its [node](Self::node) has taken, for as long as its patience lasts, and ends. How.
    pub async fn drain(mut self) -> Parted {
        let began = Instant::now();
        self.drain.send_replace(true);
        let parted = (&mut self.working).await;
        self.close(parted, self.patience.saturating_sub(began.elapsed())).await
    }

    /// Works until `stop` ends, and then [drains](Self::drain); or until it has ended by itself, because the server does not want it. How.
    pub async fn until(mut self, stop: impl Future<Output = ()>) -> Parted {
        tokio::select! {
            biased;
            parted = &mut self.working => self.close(parted, self.patience).await,
            () = stop => self.drain().await,
        }
    }

    /// Waits until it has ended by itself: the server does not want it.
    pub async fn ended(self) -> Parted {
        self.until(std::future::pending()).await
    }

    /// Lets routes of its own end what they have taken: nobody else knows of it.
    async fn close(&self, parted: Result<Parted, JoinError>, patience: Duration) -> Parted {
        self.node.close(patience).await;
        parted.unwrap_or(Parted::Ended)
    }
}

/// As in a crash: what it hosts goes on elsewhere.
impl Drop for Worker {
    fn drop(&mut self) {
        self.working.abort();
    }
}

impl WorkerBuilder {
    /// What it is called: the same after a restart, and no other's. Whoever comes with the name of another takes its place.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.node = self.node.name(name.clone());
        self.worker.name = name;
        self
    }

    /// Adds a workflow.
    pub fn register<W: Workflow>(self, workflow: W) -> Self {
        self.register_with(workflow, Settings::default())
    }

    /// Adds a workflow, with what goes for all runs of it.
    pub fn register_with<W: Workflow>(self, _workflow: W, settings: Settings) -> Self {
        let code = Arc::new(Hosted::<W>::new(self.means.clone()));
        self.add(W::NAME, code, settings)
    }

    /// How many runs it hosts at once, of all instances of its server together; 1,000 unless said otherwise.
    ///
    /// The instances do not know of each other's runs, so each is told how many it may give: an equal part of what is free, and at least one. That way none waits while there is room, and what is not
    /// refused need not be opened twice. In return the limit may be exceeded for a while, by about a sixteenth and one run for each instance: what must never happen more often at once needs a lock
    /// of its own.
    pub fn runs_max(mut self, runs: u32) -> Self {
        self.worker.sessions_max = runs;
        self
    }

    /// How long it may be silent before the server gives its runs to others; 15 s unless said otherwise. The server takes none that is longer than its
    /// [`heartbeat_max`](Workers::heartbeat_max).
    pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.worker.heartbeat = heartbeat;
        self
    }

    /// How long [`drain`](Worker::drain) waits for attempts in flight, and for what its own routes have taken; 30 s unless said otherwise.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.worker.patience = patience;
        self
    }

    /// Who hears of the attempts that are made here, for traces. Their spans follow from the run, so they belong to the trace that the server sends of it; what is called from a step is told the
    /// span as well. That runs have ended is heard of by the server alone.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.worker.observer = Some(observer);
        self
    }

    /// Sets where time comes from; for tests.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.worker.clock = Arc::new(clock);
        self
    }

    /// The token of the server's API, if it asks for one. It is shown to that server and its instances alone, and to nobody whom workflows call; a worker with a
    /// [wire](Self::wire) of its own has it there.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// How it connects, with which certificates and tokens; over plain HTTP/2 unless said otherwise.
    pub fn wire(mut self, wire: Arc<dyn crate::messages::wire::Wire>) -> Self {
        self.node = self.node.wire(wire);
        self
    }

    /// Who keeps the dead letters of its node: messages that its own routes could not handle, and tells that it could not deliver. A box in memory unless said otherwise, which is lost with
    /// the process.
    pub fn letters(mut self, letters: Arc<dyn Letters>) -> Self {
        self.node = self.node.letters(letters);
        self
    }

    /// How much of everything its node takes.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.node = self.node.limits(limits);
        self
    }

    /// The bounds of the inbox of its own routes.
    pub fn inbox(mut self, settings: inbox::Settings) -> Self {
        self.node = self.node.inbox(settings);
        self
    }

    /// Connects, and hosts what the server gives it, or each of its instances. It connects again by itself whenever a line is lost, until the server says that it does not want it: if one instance
    /// says so, it leaves the others in good order, and ends.
    ///
    /// # Errors
    /// If something about it cannot be, or the server does not want it.
    pub async fn start(mut self) -> Result<Worker, Failure> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        if self.servers.is_empty() {
            return Err(wrong("a worker needs the address of its server, and was given none".into()));
        }
        let shown = wire::Shown::default();
        shown.set(&self.servers, []);
        if !self.node.has_wire() {
            self.node = self.node.wire(Arc::new(wire::Usual::new(shown.clone(), self.token.as_deref())?));
        } else if self.token.is_some() {
            return Err(wrong("a worker with a wire of its own has its token there: leave out one of the two".into()));
        }
        let node = self.node.build()?;
        if self.worker.name.is_empty() {
            self.worker.name = node.name().to_owned();
        }
        self.worker.hello().check().map_err(|broken| wrong(broken.to_string()))?;
        let _it_is_the_first = self.means.node.set(node.clone());
        let (drain, drained) = watch::channel(false);
        let patience = self.worker.patience;
        let hosting = Hosting { node: node.clone(), worker: self.worker, means: self.means, drained };
        let working = tokio::spawn(Work::begin(hosting, self.servers, shown).await?.run());
        Ok(Worker { node, drain, working, patience })
    }
}

fn wrong(message: String) -> Failure {
    Failure::new(Code::InvalidArgument, message)
}

impl Engine {
    /// The workers that are connected, by name.
    pub fn workers(&self) -> Vec<WorkerView> {
        self.inner.workers()
    }
}
