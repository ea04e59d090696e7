//! The engine: where workflows are registered, started and waited for.

use crate::workflow::{Hosted, Workflow};
use crate::{Clock, Config, Error, Replayed, RunView, Store};
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

    /// Replays the journal of a run against the code that is registered here, without carrying anything out: the same as [`Run::replay`].
    ///
    /// # Errors
    /// If there is no such run, its code is not registered, or it cannot be read now.
    pub async fn replay(&self, id: &str) -> Result<Replayed, Error> {
        self.run(id)?.replay().await
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

    /// Tells the run something. Await it: when it returns, the signal is durable, and is kept until the code asks for it. The answer is
    /// false if a signal of that [`id`](SendSignal::id) was there already.
    pub fn signal<T: Serialize + ?Sized>(&self, name: &str, payload: &T) -> SendSignal {
        SendSignal { run: self.clone(), name: name.into(), payload: serde_json::to_vec(payload).map(Payload::json), id: None }
    }

    /// Calls the run off. Await it: when it returns, that is on record. What the run did is undone; wait for [`result`](Run::result) to see
    /// the end.
    pub fn cancel(&self) -> Cancel {
        Cancel { run: self.clone(), by: None, why: None }
    }

    /// Says what became of a step that is in doubt, or what to do about an undo that has failed.
    ///
    /// # Errors
    /// If there is no such run, it has ended, or what a step returned cannot be written as JSON.
    pub async fn resolve(&self, step: &str, resolution: Resolution) -> Result<(), Error> {
        let (name, payload) = resolution.signal(step);
        self.engine.signal(&self.id, &name, Payload::json(payload.to_string()), None).await?;
        Ok(())
    }

    /// Replays the journal against the code that is registered here, without carrying anything out.
    ///
    /// # Errors
    /// If there is no such run, its code is not registered, or it cannot be read now.
    pub async fn replay(&self) -> Result<Replayed, Error> {
        Ok(self.engine.replay(&self.id).await?)
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

/// A signal that is being put together. Await it.
#[must_use = "a signal is sent when this is awaited"]
pub struct SendSignal {
    run: Run,
    name: String,
    payload: Result<Payload, serde_json::Error>,
    id: Option<String>,
}

impl SendSignal {
    /// What tells this signal from others: the same again is dropped, so that it can be sent until it is acknowledged.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }
}

impl IntoFuture for SendSignal {
    type Output = Result<bool, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        async move {
            let payload = self
                .payload
                .map_err(|source| Error::Unreadable { what: format!("the signal {}", self.name), source })?;
            Ok(self.run.engine.signal(&self.run.id, &self.name, payload, self.id).await?)
        }
        .boxed()
    }
}

/// A cancellation that is being put together. Await it.
#[must_use = "a run is cancelled when this is awaited"]
pub struct Cancel {
    run: Run,
    by: Option<String>,
    why: Option<String>,
}

impl Cancel {
    /// Who wants it; kept on record.
    pub fn by(mut self, who: impl Into<String>) -> Self {
        self.by = Some(who.into());
        self
    }

    /// Why; kept on record.
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }
}

impl IntoFuture for Cancel {
    type Output = Result<(), Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        async move { Ok(self.run.engine.cancel(&self.run.id, self.by, self.why).await?) }.boxed()
    }
}

/// What a person says about something that the engine cannot know.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Resolution {
    /// A step in doubt: it happened, and this is what it returned.
    Completed(serde_json::Value),
    /// A step in doubt: it has failed for good, and this is why.
    Failed(String),
    /// A step in doubt: it did not happen; make the attempt again.
    Repeat,
    /// An undo that has failed: try it again.
    RetryUndo,
    /// An undo that has failed: leave it, somebody has seen to it.
    SkipUndo,
}

impl Resolution {
    fn signal(self, step: &str) -> (String, serde_json::Value) {
        match self {
            Resolution::Completed(output) => (format!("in-doubt:{step}"), serde_json::json!({ "completed": output })),
            Resolution::Failed(why) => (format!("in-doubt:{step}"), serde_json::json!({ "failed": why })),
            Resolution::Repeat => (format!("in-doubt:{step}"), "repeat".into()),
            Resolution::RetryUndo => (format!("undo:{step}"), "retry".into()),
            Resolution::SkipUndo => (format!("undo:{step}"), "skip".into()),
        }
    }
}
