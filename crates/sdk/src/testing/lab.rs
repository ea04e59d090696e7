//! The lab: an engine in virtual time whose process can die.

use super::crash::Crash;
use super::journal::Journal;
use super::meddler::{Book, Call, Mishap, is_meant, lock};
use super::world::{Crashes, Life, World, pause};
use crate::{Config, Engine, EngineBuilder, Entry, Error, Event, Expired, Run, Settings, Store, VirtualClock, Workflow};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use steadfast_kernel::{Failure, code};
use steadfast_store::RunFilter;
use steadfast_store::memory::Memory;
use tokio::sync::watch;

/// How long a result is waited for before somebody looks whether it can still come. Longer than any one attempt should take.
const PATIENCE: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// How often.
const YEARS_MAX: usize = 100;
/// The shortest time that tokio knows. It passes when everything that can move without it has moved.
const TICK: Duration = Duration::from_millis(1);

/// A lab that is being put together.
#[must_use = "a lab does nothing until it is opened"]
pub struct LabBuilder {
    template: EngineBuilder,
}

impl LabBuilder {
    /// Adds a workflow, as [`EngineBuilder::register`] does.
    ///
    /// # Panics
    /// If its name is taken.
    #[track_caller]
    pub fn register<W: Workflow>(self, workflow: W) -> Self {
        self.register_with(workflow, Settings::default())
    }

    /// Adds a workflow with settings, as [`EngineBuilder::register_with`] does.
    ///
    /// # Panics
    /// If its name is taken, or the settings cannot be.
    #[track_caller]
    pub fn register_with<W: Workflow>(mut self, workflow: W, settings: Settings) -> Self {
        self.template = self.template.register_with(workflow, settings);
        if let Some(wrong) = &self.template.wrong {
            panic!("{wrong}");
        }
        self
    }

    /// Adds code for the host itself, as [`EngineBuilder::register_code`] does.
    ///
    /// # Panics
    /// If the name is not allowed.
    #[track_caller]
    pub fn register_code(mut self, name: &str, registered: steadfast_runtime::Registered) -> Self {
        self.template = self.template.register_code(name, registered);
        if let Some(wrong) = &self.template.wrong {
            panic!("{wrong}");
        }
        self
    }

    /// Has code told of expiries, as [`EngineBuilder::on_expire`] does.
    ///
    /// # Panics
    /// If no key begins so.
    #[track_caller]
    pub fn on_expire<H, F>(mut self, prefix: &str, handler: H) -> Self
    where
        H: Fn(Expired) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        self.template = self.template.on_expire(prefix, handler);
        if let Some(wrong) = &self.template.wrong {
            panic!("{wrong}");
        }
        self
    }

    /// Sets the engine's limits.
    pub fn config(mut self, config: Config) -> Self {
        self.template = self.template.config(config);
        self
    }

    /// Opens the lab. From here on the time of the tokio runtime stands still unless everything waits.
    ///
    /// # Panics
    /// Outside of a tokio runtime, in one with several threads, or if the engine does not start.
    pub async fn open(&self) -> Lab {
        pause();
        self.open_in(Some(VirtualClock::start())).await
    }

    /// A lab for an engine that is put together already.
    pub(super) fn of(template: EngineBuilder) -> Self {
        LabBuilder { template }
    }

    /// Opens the lab in that time, or in real time.
    pub(super) async fn open_in(&self, clock: Option<VirtualClock>) -> Lab {
        let world = World::new(&self.template.inner, clock);
        let (book, crashes) = (Arc::clone(&world.book), Arc::clone(&world.crashes));
        let lives = watch::Sender::new(world.begin(Memory::new()).await);
        let supervisor = tokio::spawn(world.supervise(lives.clone()));
        Lab { lives, book, crashes, signals: AtomicU64::new(0), supervisor }
    }
}

/// Whether the signal of that id is on record.
async fn has_received(run: &Run, signal: &str) -> Result<bool, Error> {
    let is_it = |entry: &Entry| matches!(&entry.event, Event::SignalReceived { id: Some(id), .. } if id == signal);
    Ok(run.journal().await?.iter().any(is_it))
}

/// A small world to test workflows in: an engine in virtual time, whose process can die and whose steps can fail.
///
/// What is asked through the lab outlives the process: when that dies, the next one begins at once, and is asked again. What was planned for a lab, a
/// crash or a failure, has to come; if it does not, the lab panics when it is dropped, because then the test has shown nothing.
pub struct Lab {
    lives: watch::Sender<Life>,
    book: Arc<Book>,
    crashes: Arc<Crashes>,
    signals: AtomicU64,
    supervisor: tokio::task::JoinHandle<()>,
}

impl Lab {
    /// A lab without workflows.
    #[expect(clippy::new_ret_no_self, reason = "a lab is put together first")]
    pub fn new() -> LabBuilder {
        LabBuilder { template: Engine::in_memory() }
    }

    /// Starts a run. It is durable when this returns.
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn start<W: Workflow>(&self, _workflow: W, id: &str, input: &(impl Serialize + ?Sized)) {
        self.start_named(W::NAME, id, input).await;
    }

    /// Starts a run of the workflow of that name. It is durable when this returns.
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn start_named(&self, workflow: &str, id: &str, input: &(impl Serialize + ?Sized)) {
        self.must("cannot be started", id, async |engine| engine.start(workflow, input).id(id).await).await;
    }

    /// Tells a run something, once. It is durable when this returns.
    ///
    /// # Panics
    /// If there is no such run, or it has ended.
    pub async fn signal(&self, id: &str, name: &str, payload: &(impl Serialize + ?Sized)) {
        let signal = format!("lab-{}", self.signals.fetch_add(1, Ordering::SeqCst));
        let send = async |engine: Engine| {
            let run = engine.run(id)?;
            match run.signal(name, payload).id(&signal).await {
                Err(ended) if ended.code() == code::RUN_ENDED && has_received(&run, &signal).await? => Ok(()), // by the process before
                answer => answer.map(drop),
            }
        };
        self.must("cannot be told anything", id, send).await;
    }

    /// Waits for the end of a run, however long it takes in virtual time.
    ///
    /// # Errors
    /// Why it failed, if it did.
    ///
    /// # Panics
    /// If there is no such run, it returned something else than a `T`, or nothing can happen any more that would end it.
    pub async fn result<T: DeserializeOwned>(&self, id: &str) -> Result<T, Failure> {
        match self.ask(async |engine| self.patient(engine.run(id)?).await).await {
            Ok(result) => Ok(result),
            Err(Error::Failed { failure, .. }) => Err(failure),
            Err(error) => panic!("the result of run {id} cannot be had: {error:?}"),
        }
    }

    async fn patient<T: DeserializeOwned>(&self, run: Run) -> Result<T, Error> {
        let mut result = std::pin::pin!(run.result());
        for _ in 0..YEARS_MAX {
            if let Ok(result) = tokio::time::timeout(PATIENCE, result.as_mut()).await {
                return result;
            }
            if !self.expects_something().await {
                break;
            }
        }
        panic!("run {} has not ended, and nothing will happen any more.\n{}\n{}", run.id(), run.why().await?, Journal::of(&run).await);
    }

    /// True if some run has something to wait for that time brings.
    async fn expects_something(&self) -> bool {
        for id in self.runs().await {
            let view = self.ask(async |engine| engine.run(&id)?.view().await).await;
            if view.is_ok_and(|view| {
                view.ended.is_none() && (view.deadline_at.is_some() || view.waits.iter().any(|wait| wait.due_at().is_some()))
            }) {
                return true;
            }
        }
        false
    }

    /// Lets that much time pass, and everything happen that falls into it.
    pub async fn advance(&self, time: Duration) {
        #[expect(clippy::disallowed_methods, reason = "tokio's time is the clock of the lab")]
        tokio::time::sleep(time.saturating_add(TICK)).await;
    }

    /// Lets everything happen that needs no time.
    pub async fn settle(&self) {
        self.advance(Duration::ZERO).await;
    }

    /// Has the process die now. The next one has begun when this returns.
    pub async fn crash(&self) {
        self.life().await.store.crash();
        self.crashes.died.notify_one();
        self.life().await;
    }

    /// Has the process die there. Can be said for several places.
    pub fn crash_at(&self, crash: Crash) {
        lock(&self.crashes.planned).push(crash);
    }

    /// Has that attempt of a step fail before the step's closure is called. The step is named as in the code (`charge`, all of that name), or by its whole id
    /// (`charge#2`); its undo is `charge/undo`.
    pub fn fail_attempt(&self, step: &str, attempt: u32, failure: Failure) {
        self.book.plan(Mishap { step: step.into(), attempt, failure, after: false, came: false });
    }

    /// Has the answer of that attempt get lost: the step's closure is called and does its work, and then the attempt has failed all the same. What
    /// comes of it shows whether the step can be repeated.
    pub fn lose_answer(&self, step: &str, attempt: u32, failure: Failure) {
        self.book.plan(Mishap { step: step.into(), attempt, failure, after: true, came: false });
    }

    /// The calls of the closures of a step so far, over all runs and processes. An attempt that was made to fail first is none.
    pub fn calls(&self, step: &str) -> Vec<Call> {
        self.all_calls().into_iter().filter(|call| is_meant(&call.step, step)).collect()
    }

    pub(super) fn all_calls(&self) -> Vec<Call> {
        self.book.calls()
    }

    /// How many commits were asked for so far, over all processes.
    pub fn commits(&self) -> u64 {
        self.crashes.commits.load(Ordering::SeqCst)
    }

    /// The journal of a run, to look at and to check.
    ///
    /// # Panics
    /// If there is no such run.
    pub async fn journal(&self, id: &str) -> Journal {
        let entries = self.must("has no journal", id, async |engine| engine.run(id)?.journal().await).await;
        Journal::new(id, entries)
    }

    /// The engine of the process that lives now, for everything else.
    pub async fn engine(&self) -> Engine {
        self.life().await.engine
    }

    /// Asks the engine something, and the next one again if the process dies meanwhile. What is asked should have an id then, so that it happens once.
    ///
    /// # Errors
    /// What was answered by a process that did not die.
    pub async fn ask<T>(&self, ask: impl AsyncFn(Engine) -> Result<T, Error>) -> Result<T, Error> {
        loop {
            let life = self.life().await;
            match ask(life.engine).await {
                Err(_) if life.store.is_dead() => {}
                answer => return answer,
            }
        }
    }

    async fn must<T>(&self, what: &str, id: &str, ask: impl AsyncFn(Engine) -> Result<T, Error>) -> T {
        self.ask(ask).await.unwrap_or_else(|error| panic!("run {id} {what}: {error:?}"))
    }

    /// The ids of all runs.
    pub(super) async fn runs(&self) -> Vec<String> {
        let rows = self.life().await.store.runs(&RunFilter::default(), None, usize::MAX).await;
        rows.unwrap_or_default().iter().map(|row| row.run.to_string()).collect()
    }

    async fn life(&self) -> Life {
        let mut lives = self.lives.subscribe();
        match lives.wait_for(|life| !life.store.is_dead()).await {
            Ok(life) => life.clone(),
            Err(_) => unreachable!("the lab has the sender"),
        }
    }

    /// Nothing of what was planned comes any more.
    pub(super) fn forget(&self) {
        self.book.forget();
        lock(&self.crashes.planned).clear();
    }

    /// What was planned and never came.
    fn missing(&self) -> Vec<String> {
        let crashes = lock(&self.crashes.planned)
            .iter()
            .map(|crash| format!("there was to be {crash}"))
            .collect::<Vec<_>>();
        crashes.into_iter().chain(self.book.missing()).collect()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.supervisor.abort();
        let last = self.lives.borrow();
        last.store.crash();
        last.engine.inner.abort();
        let missing = self.missing();
        if !missing.is_empty() && !std::thread::panicking() {
            let calls: std::collections::BTreeSet<_> = self.all_calls().into_iter().map(|call| call.step).collect();
            panic!("{}, but it never came to that; steps that were called: {calls:?}", missing.join(", "));
        }
    }
}
