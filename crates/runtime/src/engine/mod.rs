//! The engine: the handle that others ask through. `builder.rs` starts it, `look.rs` is what can be seen of runs and limits, `letters.rs` what can be done about dead letters, `redrive.rs` about many of them, `keys.rs` what can be done with keys, `plans.rs` with plans, their tasks and locks, `elsewhere.rs` is what can be seen of those that other instances have, `adopt.rs` how a task goes from one to another, `asking.rs` how a shard is asked, here or elsewhere, `workers.rs` is about other processes that host runs.
//!
//! Tested by `crates/sdk/tests/it/shutdown.rs`.

mod adopt;
mod asking;
mod builder;
mod elsewhere;
mod keys;
mod letters;
mod look;
mod open;
mod plans;
mod redrive;
mod ways;
mod weak;
mod workers;

pub use adopt::Wanted;
pub use builder::Builder;
pub use elsewhere::{Elsewhere, ElsewherePlan, Found, FoundPlan};
pub use keys::Put;
pub use look::Lag;
pub(crate) use open::{Opened, Opener};
pub use plans::CreatePlan;
pub use redrive::{RedriveLetters, RedrivenLetters};
pub(crate) use ways::Ways;
pub use weak::WeakEngine;

use crate::callbacks::{Caller, Handlers};
use crate::chance::Chance;
use crate::clock::Clock;
use crate::cluster::Order;
use crate::commons::{Common, Note};
use crate::config::Config;
use crate::error::Error;
use crate::feed::Followers;
use crate::health::Health;
use crate::host::{self, Pool, Registered, Registry, Terms};
use crate::redeliver::Post;
use crate::shard::{Control, Request};
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;
use steadfast_kernel::run::Preview;
use steadfast_kernel::{
    Answer, CancelRun, Code, Command, EntityId, LimitKey, Limiting, Origin, Payload, RetryRun, RunId, RunOptions, SendSignal, StartRun,
    WorkflowName,
};
use steadfast_store::Store;
use tokio::sync::{mpsc, oneshot};

/// How many rows or entries are read at once.
const PAGE: usize = 1000;

/// A running engine. Clones are the same one; it stops when it is told to, or when the last clone is gone.
#[derive(Clone)]
pub struct Engine {
    ways: Arc<Ways>,
    parts: Arc<Parts>,
}

/// What an engine consists of beside the ways to ask it: nothing of it keeps it running.
struct Parts {
    /// The shard and the committer own the store, so that a handle that is kept somewhere does not keep the data folder locked.
    store: Weak<dyn Store>,
    registry: Registry,
    config: Config,
    clock: Arc<dyn Clock>,
    chance: Chance,
    /// The shard owns it, so that those who follow hear of it when it stops.
    followers: Weak<Followers>,
    handlers: Handlers,
    caller: Option<Arc<dyn Caller>>,
    /// Those who host runs for it.
    pool: Arc<Pool>,
    /// What is shared with other instances.
    common: Option<Common>,
    /// What is known of letters that are being tried again.
    post: Post,
    tasks: tokio::sync::Mutex<Option<tokio::task::JoinHandle<()>>>,
    /// The keeper of its leases, if it shares its store with others.
    keeper: Option<mpsc::UnboundedSender<Order>>,
}

impl Parts {
    /// Waits until everything has ended, if it does within that time.
    async fn ended(&self, within: Duration) {
        let stopped = async {
            if let Some(tasks) = self.tasks.lock().await.take() {
                let _ended = tasks.await;
            }
        };
        tokio::select! {
            biased;
            () = stopped => {}
            () = self.clock.sleep(within) => tracing::error!("the store did not finish its last commits in time"),
        }
    }
}

/// What is to be started.
#[derive(Clone, Debug)]
pub struct Start {
    /// The registered name.
    pub workflow: String,
    /// What the code is given.
    pub input: Payload,
    /// The id; one is made if there is none. It makes the start idempotent.
    pub id: Option<String>,
    /// How long the run may take in all.
    pub deadline: Option<Duration>,
    /// Whose work it is.
    pub tenant: Option<String>,
    /// Keys that callers have agreed on, and how many runs of each may be under way at once.
    pub limits: Vec<(String, u32)>,
}

impl Engine {
    /// Starts a run, or finds the one of that id. The run is durable when this returns.
    ///
    /// # Errors
    /// If the request cannot be carried out; see [`Error`]. After [`Error::Unavailable`] the run may exist: start it again with the same id.
    ///
    /// # Cancellation
    /// Dropping the future does not take the request back.
    pub async fn start(&self, start: Start) -> Result<(RunId, Answer), Error> {
        let workflow = WorkflowName::new(&start.workflow)?;
        self.check_size(&start.input)?;
        let (run, fresh) = match &start.id {
            Some(id) => (RunId::new(id)?, false),
            None => (self.fresh_id()?, true),
        };
        let (deadline, options) = match self.terms(&workflow, &start).await {
            Ok(terms) => terms,
            Err(_) if !fresh && self.is_there(&run).await => (None, RunOptions::default()), // it began when it could: the same again finds it
            Err(error) => return Err(error),
        };
        let seed = self.parts.chance.seed(&run);
        let command = StartRun { run: run.clone(), workflow, input: start.input, seed, deadline, options };
        let answer = self.start_there(command, fresh).await?;
        Ok((run, answer))
    }

    /// What goes for a run that is started so.
    async fn terms(&self, workflow: &WorkflowName, start: &Start) -> Result<(Option<Duration>, RunOptions), Error> {
        let Some(registered) = self.parts.registry.get(workflow) else { return self.terms_of_workers(workflow, start).await };
        let terms = taken(&registered, &start.input)?;
        if terms.plan.is_some() {
            return Err(Error::InvalidInput { why: format!("{workflow} is a plan: create a plan of it, with tenants, instead of a run") });
        }
        let deadline = start.deadline.into_iter().chain(terms.deadline).min();
        let slots = registered.slots;
        let terms = Terms { recovery: terms.recovery.or(Some(registered.recovery)), ..terms };
        let options = Self::options(workflow, slots, terms, start.tenant.clone(), start.limits.clone())?;
        Ok((deadline, options))
    }

    /// Whether another life could begin with that input, as far as can be said: the code of its version may be gone from here.
    async fn check_input(&self, run: &RunId, input: &Payload) -> Result<(), Error> {
        let workflow = self.view(run).await?.workflow;
        match self.parts.registry.get(&workflow).map(|registered| registered.code.terms(input)) {
            Some(Err(failure)) if failure.code != Code::NotFound => Err(Error::InvalidInput { why: failure.message }),
            _ => Ok(()),
        }
    }

    async fn is_there(&self, run: &RunId) -> bool {
        matches!(self.view(run).await, Ok(_) | Err(Error::JournalBroken { .. }))
    }

    /// Adds a workflow, or replaces the one of that name: runs that are opened from here on have the new code, and runs that waited for code of that name go on.
    pub fn register(&self, name: WorkflowName, registered: Registered) {
        self.parts.registry.insert(name.clone(), registered);
        self.ways.tell(|| Control::Registered([name.clone()].into()));
    }

    /// The workflows that this process has the code of, by name.
    pub fn workflows(&self) -> Vec<(WorkflowName, Registered)> {
        let names = self.parts.registry.names().into_iter();
        names
            .filter_map(|name| self.parts.registry.get(&name).map(|registered| (name, registered)))
            .collect()
    }

    /// Tells a run something. It is durable when this returns, and is kept until the code asks for it. The command's id tells the signal from others: false if it was
    /// there already.
    ///
    /// # Errors
    /// If there is no such run, it has ended, its name is not allowed, or too many signals wait already.
    pub async fn signal(&self, run: &RunId, name: &str, payload: Payload, origin: Origin) -> Result<bool, Error> {
        Self::check(&origin)?;
        steadfast_kernel::check_signal(name)?;
        host::check_answer(name, &payload).map_err(|how| Error::InvalidInput { why: how.into() })?;
        self.check_size(&payload)?;
        let command = Command::SendSignal(SendSignal { name: name.into(), payload, id: origin.command, by: origin.by, why: origin.why });
        Ok(self.tell(run, command).await? == Answer::SignalReceived)
    }

    /// Calls a run off. It is on record when this returns; what the run did is undone after that.
    ///
    /// # Errors
    /// If there is no such run, or it has ended.
    pub async fn cancel(&self, run: &RunId, origin: Origin) -> Result<(), Error> {
        Self::check(&origin)?;
        self.tell(run, Command::CancelRun(CancelRun { origin, blocked: false })).await.map(drop)
    }

    /// Ends a run at once; nothing is undone.
    ///
    /// # Errors
    /// If there is no such run, or it has ended.
    pub async fn terminate(&self, run: &RunId, origin: Origin) -> Result<(), Error> {
        Self::check(&origin)?;
        self.tell(run, Command::TerminateRun(origin)).await.map(drop)
    }

    /// Has a run begin nothing new until it is resumed. Attempts in flight end and are recorded; its own time stands still.
    ///
    /// # Errors
    /// If there is no such run, it has ended, or it is interrupted.
    pub async fn pause(&self, run: &RunId, origin: Origin) -> Result<(), Error> {
        Self::check(&origin)?;
        self.tell(run, Command::PauseRun(origin)).await.map(drop)
    }

    /// Has a paused run go on, with the time that was left.
    ///
    /// # Errors
    /// If there is no such run, it has ended, or it is interrupted.
    pub async fn resume(&self, run: &RunId, origin: Origin) -> Result<(), Error> {
        Self::check(&origin)?;
        self.tell(run, Command::ResumeRun(origin)).await.map(drop)
    }

    /// Begins another life of a run that has ended, is interrupted, or waits.
    ///
    /// # Errors
    /// If there is no such run, it is under way, or it has no record of the step from which it is to be retried.
    pub async fn retry(&self, run: &RunId, command: RetryRun) -> Result<(), Error> {
        Self::check(&command.origin)?;
        command
            .input
            .iter()
            .chain(command.outputs.iter().map(|(_, output)| output))
            .try_for_each(|payload| self.check_size(payload))?;
        if let Some(input) = &command.input {
            self.check_input(run, input).await?;
        }
        self.may_have_its_lock(run).await?;
        self.tell(run, Command::RetryRun(command)).await.map(drop)
    }

    /// What a retry would do; nothing changes.
    ///
    /// # Errors
    /// As the retry itself.
    pub async fn preview(&self, run: &RunId, command: RetryRun) -> Result<Preview, Error> {
        self.look(|reply| Request::Preview { run: run.clone(), command: Box::new(command.clone()), reply })
            .await
    }

    /// Who, why and the command's id are kept for ever, so they have a bound.
    fn check(origin: &Origin) -> Result<(), Error> {
        for (what, text, max) in [("by", &origin.by, 256), ("why", &origin.why, 4096), ("the command id", &origin.command, 256)] {
            if let Some(text) = text
                && (text.is_empty() || text.len() > max)
            {
                return Err(Error::InvalidSetting(format!("{what} has {} bytes; use 1 to {max}, or leave it out", text.len())));
            }
        }
        Ok(())
    }

    async fn tell(&self, run: &RunId, command: Command) -> Result<Answer, Error> {
        self.tell_entity(run.into(), command).await
    }

    /// Has others know how an entity is.
    pub(crate) async fn share(&self, entity: EntityId) -> Result<(), Error> {
        self.request(|reply| Request::Share { entity, reply }).await
    }

    pub(crate) fn store(&self) -> Result<Arc<dyn Store>, Error> {
        self.parts.store.upgrade().ok_or(Error::Stopped)
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.parts.clock)
    }

    pub(crate) fn weak_store(&self) -> Weak<dyn Store> {
        Weak::clone(&self.parts.store)
    }

    pub(crate) fn followers(&self) -> Result<Arc<Followers>, Error> {
        self.parts.followers.upgrade().ok_or(Error::Stopped)
    }

    /// What goes for all runs of a workflow, and what the caller wants beside it. Slots are asked for in the order of their keys, so that no two runs
    /// wait for each other.
    fn options(
        workflow: &WorkflowName,
        slots: Option<u32>,
        terms: Terms,
        tenant: Option<String>,
        keys: Vec<(String, u32)>,
    ) -> Result<RunOptions, Error> {
        tenant.as_deref().map(steadfast_kernel::check_tenant).transpose()?;
        let of_workflow = slots.map(|slots| Limiting { key: LimitKey::of_workflow(workflow), slots });
        let mut limits: Vec<_> = of_workflow.into_iter().collect();
        for (key, slots) in terms.limits.into_iter().chain(keys) {
            if slots == 0 {
                return Err(Error::InvalidSetting(format!("the limit {key:?} has no slots; it needs at least one")));
            }
            limits.push(Limiting { key: LimitKey::of_key(&key)?, slots });
        }
        limits.sort_by(|a, b| a.key.cmp(&b.key));
        limits.dedup_by(|a, b| a.key == b.key);
        let recovery = terms.recovery.unwrap_or_default();
        Ok(RunOptions { tenant, recovery, limits, parent: None, definition: terms.definition, task: None })
    }

    fn check_size(&self, payload: &Payload) -> Result<(), Error> {
        let (bytes, max) = (payload.len(), self.parts.config.payload_bytes_max);
        if bytes > max { Err(Error::PayloadTooLarge { bytes, max }) } else { Ok(()) }
    }

    /// How many durable commits were made since the store was opened; zero once the engine has stopped.
    pub fn commits(&self) -> u64 {
        self.parts.store.upgrade().map_or(0, |store| store.commits())
    }

    /// Its limits.
    pub fn config(&self) -> &Config {
        &self.parts.config
    }

    /// Whether the store can be written now, and if it cannot, why and since when.
    pub fn health(&self) -> Health {
        self.ways.health()
    }

    /// Stops: begins nothing new, lets attempts in flight end within the grace period, and makes what they did durable. What is not done
    /// by then is done again after the next start. A store that does not answer is given one grace period more, and is then left to itself.
    pub async fn shutdown(self) {
        let Engine { ways, parts } = self;
        let Parts { config, clock, .. } = &*parts;
        if let Some(keeper) = &parts.keeper {
            ways.end(); // what a worker may still have is held back, as always: others host it once the shard is theirs
            let _it_has_ended = keeper.send(Order::Leave);
            return parts.ended(config.shutdown_grace * 2).await;
        }
        let drained = ways.drain();
        parts.pool.hold_nothing();
        tokio::select! {
            biased;
            () = drained => {}
            () = clock.sleep(config.shutdown_grace) => tracing::warn!("attempts were still in flight at the end of the grace period"),
        }
        if let Some(notes) = parts.common.as_ref().and_then(|common| common.notes.upgrade()) {
            let _it_has_stopped = notes.send(Note::Leaving);
        }
        ways.tell(|| Control::Stop);
        parts.ended(config.shutdown_grace).await;
    }

    /// Stops at once, as a crash would: nothing that is under way is waited for.
    pub fn abort(&self) {
        if let Some(keeper) = &self.parts.keeper {
            let _it_has_ended = keeper.send(Order::Abort);
        }
        self.ways.tell(|| Control::Stop);
    }

    async fn request<T>(&self, request: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Request) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.ways.ask(request(reply))?;
        answer.await.unwrap_or(Err(Error::Stopped))
    }

    fn registered(&self, name: &WorkflowName) -> Result<Registered, Error> {
        self.parts.registry.get(name).ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &WorkflowName) -> Error {
        let names: BTreeSet<WorkflowName> = self
            .parts
            .registry
            .names()
            .into_iter()
            .chain(self.brought().into_iter().map(|offer| offer.workflow))
            .collect();
        let known = names.iter().map(ToString::to_string).collect();
        Error::UnknownWorkflow { name: name.to_string(), known }
    }
}

/// What the code says of an input, if it takes it.
fn taken(registered: &Registered, input: &Payload) -> Result<Terms, Error> {
    registered.code.terms(input).map_err(|failure| Error::InvalidInput { why: failure.message })
}
