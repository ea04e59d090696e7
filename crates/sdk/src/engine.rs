//! The engine: where workflows are registered, started and waited for.

use crate::workflow::{Hosted, Workflow};
use crate::{Clock, Config, Error, RunView, Store};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Answer, Entry, Payload, RunId, WorkflowName};
use steadfast_runtime as runtime;
use steadfast_store::memory::Memory;
use steadfast_store_embedded::Embedded;

/// How many journal entries are read at once.
const PAGE: usize = 1000;

/// An engine that is being put together.
#[must_use = "an engine does nothing until it is started"]
pub struct EngineBuilder {
    inner: runtime::Builder,
    wrong: Option<runtime::Error>,
}

impl EngineBuilder {
    /// Adds a workflow. Runs of workflows that are not registered wait until an engine has them.
    pub fn register<W: Workflow>(mut self, _workflow: W) -> Self {
        match WorkflowName::new(W::NAME) {
            Ok(name) if self.inner.registry.contains_key(&name) => {
                self.wrong = Some(runtime::Error::InvalidSetting(format!("workflow {name} is registered twice")));
            }
            Ok(name) => drop(self.inner.registry.insert(name, Arc::new(Hosted::<W>(PhantomData)))),
            Err(invalid) => self.wrong = Some(invalid.into()),
        }
        self
    }

    /// Sets the limits.
    pub fn config(mut self, config: Config) -> Self {
        self.inner.config = config;
        self
    }

    /// Sets where time comes from; for tests.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.inner.clock = Arc::new(clock);
        self
    }

    /// Starts the engine, on the tokio runtime this is called in, and goes on with every run that was under way.
    ///
    /// # Errors
    /// If a workflow's name is taken, a limit cannot be, or the store cannot be read.
    pub async fn start(self) -> Result<Engine, Error> {
        if let Some(wrong) = self.wrong {
            return Err(wrong.into());
        }
        Ok(Engine { inner: self.inner.start().await? })
    }
}

/// A running engine. Clones are the same one. It stops by [`shutdown`](Engine::shutdown), or as in a crash when the last clone is gone; nothing
/// that was acknowledged is lost either way.
#[derive(Clone)]
pub struct Engine {
    inner: runtime::Engine,
}

impl Engine {
    /// An engine on the embedded store in that folder, which is made if it is not there. Opening takes a few milliseconds and blocks.
    ///
    /// # Errors
    /// If another process has the folder, or what is in it is damaged, newer than this program, or not a Steadfast store. Nothing is
    /// changed then.
    pub fn open(folder: impl AsRef<Path>) -> Result<EngineBuilder, Error> {
        Ok(Engine::on(Embedded::open(folder)?))
    }

    /// An engine that forgets everything when it ends; for tests.
    pub fn in_memory() -> EngineBuilder {
        Engine::on(Memory::new())
    }

    /// An engine on any store.
    pub fn on(store: impl Store) -> EngineBuilder {
        EngineBuilder { inner: runtime::Builder::new(Arc::new(store)), wrong: None }
    }

    /// Starts a run of a registered workflow. Await it: when it returns, the run is durable.
    pub fn start<T: Serialize + ?Sized>(&self, workflow: &str, input: &T) -> StartRun {
        let input = serde_json::to_vec(input).map(Payload::json);
        StartRun { engine: self.clone(), workflow: workflow.into(), input, id: None, deadline: None }
    }

    /// The run of that id, which may have been started by an earlier process. Whether it exists shows when it is asked for something.
    ///
    /// # Errors
    /// If that cannot be an id.
    pub fn run(&self, id: &str) -> Result<Run, Error> {
        let id = RunId::new(id).map_err(runtime::Error::from)?;
        Ok(Run { engine: self.inner.clone(), id, is_new: false })
    }

    /// How many durable commits were made since the store was opened; zero once the engine has stopped.
    pub fn commits(&self) -> u64 {
        self.inner.commits()
    }

    /// Stops: begins nothing new, lets attempts in flight end within [`Config::shutdown_grace`], and makes what they did durable.
    pub async fn shutdown(self) {
        self.inner.shutdown().await;
    }
}

/// A start that is being put together. Await it.
#[must_use = "a run is started when this is awaited"]
pub struct StartRun {
    engine: Engine,
    workflow: String,
    input: Result<Payload, serde_json::Error>,
    id: Option<String>,
    deadline: Option<Duration>,
}

impl StartRun {
    /// Names the run, which makes the start idempotent: the same id, workflow and input again give the same run. Without it an id is made.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// How long the run may take in all. When that is over it has failed, whatever it was doing.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    async fn send(self) -> Result<Run, Error> {
        let input = self
            .input
            .map_err(|source| Error::Unreadable { what: format!("the input of {}", self.workflow), source })?;
        let start = runtime::Start { workflow: self.workflow, input, id: self.id, deadline: self.deadline };
        let engine = self.engine.inner;
        let (id, answer) = engine.start(start).await?;
        Ok(Run { engine, id, is_new: answer == Answer::Created })
    }
}

impl IntoFuture for StartRun {
    type Output = Result<Run, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.send().boxed()
    }
}

/// A handle to a run.
#[derive(Clone)]
pub struct Run {
    engine: runtime::Engine,
    id: RunId,
    is_new: bool,
}

impl Run {
    /// The id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// True if this handle came from the start that created the run; false if the run was there already.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Waits for the result, however long it takes.
    ///
    /// # Errors
    /// [`Error::Failed`] if the run failed; otherwise if there is no such run, the result is of another type, or the engine stops.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing for the run; ask again at any time.
    pub async fn result<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let ended = self.engine.ended(&self.id).await?;
        let output = ended.outcome.map_err(|failure| Error::Failed { run: self.id.clone(), failure })?;
        serde_json::from_slice(&output.bytes).map_err(|source| Error::Unreadable { what: format!("the result of run {}", self.id), source })
    }

    /// Where the run stands, and what it waits for.
    ///
    /// # Errors
    /// If there is no such run, or it cannot be read now.
    pub async fn view(&self) -> Result<RunView, Error> {
        Ok(self.engine.view(&self.id).await?)
    }

    /// The whole journal.
    ///
    /// # Errors
    /// If there is no such run, or it cannot be read now.
    pub async fn journal(&self) -> Result<Vec<Entry>, Error> {
        let mut journal: Vec<Entry> = Vec::new();
        loop {
            let after = journal.last().map_or(0, |entry| entry.seq);
            let page = self.engine.journal(&self.id, after, PAGE).await?;
            let last = page.len() < PAGE;
            journal.extend(page);
            if last {
                return Ok(journal);
            }
        }
    }
}
