//! The engine: where workflows are registered, started and waited for.

use crate::means::Means;
use crate::operate::{Act, Retry, Verb};
use crate::settings::Settings;
use crate::signal::SendSignal;
use crate::workflow::{Hosted, Workflow};
use crate::{Clock, Config, Error, Feed, Follow, Health, Replayed, Retention, Role, RunView, StepView, Store};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::limit::Limit;
use steadfast_kernel::{Answer, Entry, Failure, InstanceId, LimitKey, Origin, Payload, RunId, Status, Wait, WorkflowName};
use steadfast_runtime as runtime;
use steadfast_store::memory::Memory;
use tokio::sync::watch;

/// How many journal entries are read at once.
const PAGE: usize = 1000;

/// An engine that is being put together.
#[must_use = "an engine does nothing until it is started"]
pub struct EngineBuilder {
    pub(crate) inner: runtime::Builder,
    pub(crate) wrong: Option<runtime::Error>,
    /// Who this is, for others that share its tenants.
    pub(crate) instance: Option<InstanceId>,
    pub(crate) means: Means,
    #[cfg(feature = "messages")]
    pub(crate) messages: Option<crate::messages::Messages>,
}

impl EngineBuilder {
    /// Adds a workflow. Runs of workflows that are not registered wait until an engine has them.
    pub fn register<W: Workflow>(self, workflow: W) -> Self {
        self.register_with(workflow, Settings::default())
    }

    /// Adds a workflow, with what goes for all runs of it that are started here.
    pub fn register_with<W: Workflow>(mut self, _workflow: W, settings: Settings) -> Self {
        let (recovery, slots) = (settings.recovery(), settings.slots());
        if slots == Some(0) {
            self.wrong =
                Some(runtime::Error::InvalidSetting(format!("the limit of workflow {} is 0; it needs at least one slot", W::NAME)));
        }
        match WorkflowName::new(W::NAME) {
            Ok(name) if self.inner.registry.get(&name).is_some() => {
                self.wrong = Some(runtime::Error::InvalidSetting(format!("workflow {name} is registered twice")));
            }
            Ok(name) => {
                let code = Arc::new(Hosted::<W>::new(self.means.clone()));
                self.inner.registry.insert(name, runtime::Registered { code, recovery, slots, is_plan: false });
            }
            Err(invalid) => self.wrong = Some(invalid.into()),
        }
        self
    }

    /// Adds code that is not written with this library but for the host itself, such as that of definitions.
    pub fn register_code(mut self, name: &str, registered: runtime::Registered) -> Self {
        match WorkflowName::new(name) {
            Ok(name) => drop(self.inner.registry.insert(name, registered)),
            Err(invalid) => self.wrong = Some(invalid.into()),
        }
        self
    }

    /// Sets the limits.
    pub fn config(mut self, config: Config) -> Self {
        self.inner.config = config;
        self
    }

    /// Sets how long runs are kept after their end; a part of [`Config`].
    pub fn retention(mut self, retention: Retention) -> Self {
        self.inner.config.retention = retention;
        self
    }

    /// Sets where time comes from; for tests.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.inner.clock = Arc::new(clock);
        self
    }

    /// Sets who says whether this process may fire timers and tell of expiries, as it changes: only a leader does. Without it the process always leads, because the store is
    /// its own.
    pub fn leadership(mut self, role: watch::Receiver<Role>) -> Self {
        self.inner.leadership = Some(role);
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
        let clock = Arc::clone(&self.inner.clock);
        #[cfg(feature = "messages")]
        if let Some(messages) = self.messages {
            return messages.start(self.inner, clock, &self.means).await;
        }
        Ok(Engine { inner: self.inner.start().await?, clock, means: self.means })
    }
}

/// A running engine. Clones are the same one. It stops by [`shutdown`](Engine::shutdown), or as in a crash when the last clone is gone; nothing
/// that was acknowledged is lost either way.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: runtime::Engine,
    pub(crate) clock: Arc<dyn Clock>,
    #[cfg_attr(not(feature = "messages"), expect(dead_code, reason = "it is empty without messages"))]
    pub(crate) means: Means,
}

impl Engine {
    /// An engine on the embedded store in that folder, which is made if it is not there. Opening takes a few milliseconds and blocks.
    ///
    /// # Errors
    /// If another process has the folder, or what is in it is damaged, newer than this program, or not a Steadfast store. Nothing is
    /// changed then.
    #[cfg(feature = "embedded")]
    pub fn open(folder: impl AsRef<std::path::Path>) -> Result<EngineBuilder, Error> {
        let store = steadfast_store_embedded::Embedded::open(&folder)?;
        Ok(EngineBuilder { instance: Some(steadfast_store_embedded::instance(folder)?), ..Engine::on(store) })
    }

    /// An engine that forgets everything when it ends; for tests.
    pub fn in_memory() -> EngineBuilder {
        Engine::on(Memory::new())
    }

    /// An engine on any store.
    pub fn on(store: impl Store) -> EngineBuilder {
        EngineBuilder {
            inner: runtime::Builder::new(Arc::new(store)),
            wrong: None,
            instance: None,
            means: Means::default(),
            #[cfg(feature = "messages")]
            messages: None,
        }
    }

    /// Starts a run of a registered workflow. Await it: when it returns, the run is durable.
    pub fn start<T: Serialize + ?Sized>(&self, workflow: &str, input: &T) -> StartRun {
        let input = serde_json::to_vec(input).map(Payload::json);
        StartRun { engine: self.clone(), workflow: workflow.into(), input, id: None, deadline: None, tenant: None, limits: Vec::new() }
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

    /// Why a run does not move now: the same as [`Run::why`].
    ///
    /// # Errors
    /// If there is no such run, or it cannot be read now.
    pub async fn why(&self, id: &str) -> Result<Why, Error> {
        self.run(id)?.why().await
    }

    /// Who holds a slot of the limit with that key, and who waits for one; nothing if nobody ever asked for one.
    ///
    /// # Errors
    /// If the key is not allowed, or it cannot be read now.
    pub async fn limit(&self, key: &str) -> Result<Option<Limit>, Error> {
        let key = LimitKey::of_key(key).map_err(runtime::Error::from)?;
        Ok(self.inner.limit(&key).await?)
    }

    /// The same of the limit of a workflow.
    ///
    /// # Errors
    /// If the name is not allowed, or it cannot be read now.
    pub async fn limit_of(&self, workflow: &str) -> Result<Option<Limit>, Error> {
        let workflow = WorkflowName::new(workflow).map_err(runtime::Error::from)?;
        Ok(self.inner.limit(&LimitKey::of_workflow(&workflow)).await?)
    }

    /// Follows what is written, in its order: of all runs, limits and letter boxes, or of one of them. Nothing is queued for who follows, and nobody waits for it: one that is
    /// slow falls behind, and can come back later with the [`position`](crate::Feed::position) it had.
    ///
    /// # Errors
    /// If the store cannot be read, or the engine has stopped.
    pub async fn feed(&self, follow: Follow) -> Result<Feed, Error> {
        Ok(self.inner.feed(follow).await?)
    }

    /// How many durable commits were made since the store was opened; zero once the engine has stopped.
    pub fn commits(&self) -> u64 {
        self.inner.commits()
    }

    /// Whether the store can be written now, and if it cannot, why and since when.
    pub fn health(&self) -> Health {
        self.inner.health()
    }

    /// Stops: begins nothing new, lets attempts in flight end within [`Config::shutdown_grace`], and makes what they did durable.
    pub async fn shutdown(self) {
        #[cfg(feature = "messages")]
        if let Some(node) = self.means.node.get() {
            let patience = self.inner.config().shutdown_grace;
            return node.close_after(self.inner.shutdown(), patience).await; // workers say what became of their attempts over its streams
        }
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
    tenant: Option<String>,
    limits: Vec<(String, u32)>,
}

impl StartRun {
    /// Names the run, which makes the start idempotent: the same id, workflow and input again give the same run, for as long as it is [kept](EngineBuilder::retention). Without
    /// it an id is made.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// How long the run may take in all. When that is over it has failed, whatever it was doing.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Whose work it is; [lists](Engine::list) can be asked for one tenant's runs.
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Has the run wait for a slot before it begins: of all runs that are started with that key, so many may be under way at once. What was said last about
    /// a key counts. Can be said for several keys.
    pub fn limit(mut self, key: impl Into<String>, slots: u32) -> Self {
        self.limits.push((key.into(), slots));
        self
    }

    async fn send(self) -> Result<Run, Error> {
        let input = self
            .input
            .map_err(|source| Error::Unreadable { what: format!("the input of {}", self.workflow), source })?;
        let start = runtime::Start {
            workflow: self.workflow,
            input,
            id: self.id,
            deadline: self.deadline,
            tenant: self.tenant,
            limits: self.limits,
        };
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
    pub(crate) engine: runtime::Engine,
    pub(crate) id: RunId,
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
        SendSignal::new(self.clone(), name, payload)
    }

    /// Calls the run off. Await it: when it returns, that is on record. What the run did is undone; wait for [`result`](Run::result) to see
    /// the end.
    pub fn cancel(&self) -> Act {
        Act::new(&self.engine, Ok(Verb::Cancel(self.id.clone())))
    }

    /// Ends the run at once; nothing is undone. For runs that cannot be cancelled: their code is gone, or their undo does not work.
    pub fn terminate(&self) -> Act {
        Act::new(&self.engine, Ok(Verb::Terminate(self.id.clone())))
    }

    /// Begins nothing new until the run is [resumed](Run::resume). Attempts in flight end and are recorded. Sleeps, backoffs and deadlines keep the time that
    /// is left.
    pub fn pause(&self) -> Act {
        Act::new(&self.engine, Ok(Verb::Pause(self.id.clone())))
    }

    /// Goes on after a [pause](Run::pause), with the time that was left.
    pub fn resume(&self) -> Act {
        Act::new(&self.engine, Ok(Verb::Resume(self.id.clone())))
    }

    /// Begins another life of a run that has failed, was cancelled or interrupted, waits, or has completed: at the step it failed at, unless something else
    /// is said. What was recorded before that is kept.
    pub fn retry(&self) -> Retry {
        Retry::new(self.clone())
    }

    /// Why the run does not move now.
    ///
    /// # Errors
    /// If there is no such run, or it cannot be read now.
    pub async fn why(&self) -> Result<Why, Error> {
        let RunView { id, status, waits, ended, note, .. } = self.view().await?;
        Ok(Why { run: id, status, waits, failure: ended.and_then(|ended| ended.outcome.err()), note })
    }

    /// Says what became of a step that is in doubt, or what to do about an undo that has failed.
    ///
    /// # Errors
    /// If there is no such run, it has ended, or what a step returned cannot be written as JSON.
    pub async fn resolve(&self, step: &str, resolution: Resolution) -> Result<(), Error> {
        let (name, payload) = resolution.signal(step);
        self.engine.signal(&self.id, &name, Payload::json(payload.to_string()), Origin::default()).await?;
        Ok(())
    }

    /// What the code did and does in its present life, step by step, each with its attempts.
    ///
    /// # Errors
    /// If there is no such run, or it cannot be read now.
    pub async fn steps(&self) -> Result<Vec<StepView>, Error> {
        Ok(self.engine.steps(&self.id).await?)
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

/// Why a run does not move now. Its text is meant for people.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Why {
    /// The run.
    pub run: RunId,
    /// Where it stands.
    pub status: Status,
    /// What it waits for: what a person has to see to first, then what ends first.
    pub waits: Vec<Wait>,
    /// Why it failed, if it has.
    pub failure: Option<Failure>,
    /// What the code said last of how far it has come.
    pub note: Option<String>,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {} is {}", self.run, self.status.as_str())?;
        if let Some(note) = &self.note {
            write!(f, " ({note})")?;
        }
        if let Some(failure) = &self.failure {
            write!(f, "\n  {failure}")?;
        }
        if self.status == Status::Interrupted {
            write!(f, "\n  its process died with work under way, and it does not go on by itself; retry it, or cancel it")?;
        }
        self.waits.iter().try_for_each(|wait| write!(f, "\n  {wait}"))
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
