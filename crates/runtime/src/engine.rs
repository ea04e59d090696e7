//! The engine: a store, a shard on it, and a handle to ask for things.

use crate::chance::Chance;
use crate::clock::{Clock, SystemClock};
use crate::committer::Committer;
use crate::config::Config;
use crate::error::Error;
use crate::health::Health;
use crate::host::{self, Host, Opening, Registered, Registry, Replayed};
use crate::retention::Sweeper;
use crate::shard::{Control, Ports, Request, RunView, Shard, State, unsettled};
use crate::timers::{Role, TimerKeeper};
use std::sync::{Arc, Weak};
use std::time::Duration;
use steadfast_kernel::limit::Limit;
use steadfast_kernel::random::Seed;
use steadfast_kernel::run::{self, Ended, Preview};
use steadfast_kernel::{
    Answer, CancelRun, Command, DropLetter, EntityId, Entry, Event, Letter, LetterId, LimitKey, Limiting, Origin, Payload, Recovery,
    Refusal, RetryFrom, RetryRun, Run, RunId, RunOptions, SendSignal, Seq, StartRun, Wait, WorkflowName,
};
use steadfast_store::{LetterCursor, LetterRow, RunCursor, RunFilter, RunRow, ShardId, Store};
use tokio::sync::{mpsc, oneshot, watch};

/// The one shard of a store that is not shared.
const SHARD: ShardId = 0;

/// How many rows are read at once while starting.
const PAGE: usize = 1000;

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
    pub leadership: Option<watch::Receiver<Role>>,
    /// What the seeds of runs follow from, together with their ids, so that chance is the same each time; for tests. They are drawn if there is none.
    pub seed: Option<Seed>,
}

impl Builder {
    /// An engine on that store, without workflows, with the default limits and the machine's clock.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Builder { store, registry: Registry::new(), config: Config::default(), clock: Arc::new(SystemClock), leadership: None, seed: None }
    }

    /// Starts the engine: takes the shard over, arms its timers, and goes on with every run that was under way.
    ///
    /// # Errors
    /// If the configuration cannot be used, or the store cannot be read.
    pub async fn start(self) -> Result<Engine, Error> {
        self.config.validate().map_err(Error::InvalidSetting)?;
        let committed = self.store.claim(SHARD).await.map_err(Error::from_store)?;
        let under_way = under_way(&*self.store).await?;
        let outbox = unsettled(&*self.store, SHARD).await?;
        let half_swept = self.store.half_swept(SHARD).await.map_err(Error::from_store)?;

        let chance = Arc::new(Chance::new(self.seed)?);

        let (control, control_in) = mpsc::unbounded_channel();
        let (requests, requests_in) = mpsc::channel(self.config.requests_max);
        let (reports, reports_in) = mpsc::unbounded_channel();
        let (fired, fired_in) = mpsc::unbounded_channel();
        let (outcomes, outcomes_in) = mpsc::unbounded_channel();
        let (batches, batches_in) = mpsc::unbounded_channel();
        let (timers, timers_in) = mpsc::unbounded_channel();
        let (health, health_out) = watch::channel(Health::default());

        let host = Host {
            registry: self.registry.clone(),
            clock: Arc::clone(&self.clock),
            reports,
            payload_bytes_max: self.config.payload_bytes_max,
            heartbeat_every: self.config.heartbeat_every,
        };
        let ports = Ports {
            control: control_in,
            requests: requests_in,
            reports: reports_in,
            fired: fired_in,
            outcomes: outcomes_in,
            batches,
            timers,
            health,
        };
        let (config, clock, store) = (self.config.clone(), Arc::clone(&self.clock), Arc::clone(&self.store));
        let mut shard = Shard { id: SHARD, config, clock, store, host, ports, committed, state: State::default() };
        shard.finish_sweeping(half_swept);
        shard.resume(under_way);
        shard.relay_all(outbox);

        let always = || watch::channel(Role::Leader { term: committed.term }).1; // the store belongs to this process alone
        let role = self.leadership.unwrap_or_else(always);
        let keeper = TimerKeeper::new(Arc::clone(&self.clock), Arc::clone(&self.store), SHARD, role, timers_in, fired);
        let keeper = tokio::spawn(keeper.run());
        let store = Arc::clone(&self.store);
        let committer = tokio::spawn(Committer { commit: move |batch| store.commit(batch), batches: batches_in, outcomes }.run());
        let shard = tokio::spawn(shard.run());
        let (retention, clock, store) = (self.config.retention, Arc::clone(&self.clock), Arc::clone(&self.store));
        let sweeper = tokio::spawn(Sweeper { retention, clock, store, shard: SHARD, requests: requests.downgrade() }.run());
        let tasks = tokio::spawn(async move {
            let _ended = (shard.await, committer.await, keeper.await);
            sweeper.abort();
            let _ended = sweeper.await; // it has let go of the store
        });
        Ok(Engine {
            control,
            requests,
            store: Arc::downgrade(&self.store),
            registry: Arc::new(self.registry),
            config: Arc::new(self.config),
            clock: self.clock,
            chance,
            health: health_out,
            tasks: Arc::new(tokio::sync::Mutex::new(Some(tasks))),
        })
    }
}

/// A running engine. Clones are the same one; it stops when it is told to, or when the last clone is gone.
#[derive(Clone)]
pub struct Engine {
    control: mpsc::UnboundedSender<Control>,
    requests: mpsc::Sender<Request>,
    /// The shard and the committer own the store, so that a handle that is kept somewhere does not keep the data folder locked.
    store: Weak<dyn Store>,
    registry: Arc<Registry>,
    config: Arc<Config>,
    clock: Arc<dyn Clock>,
    chance: Arc<Chance>,
    health: watch::Receiver<Health>,
    tasks: Arc<tokio::sync::Mutex<Option<tokio::task::JoinHandle<()>>>>,
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
        let workflow = self.known(&start.workflow)?;
        self.check_size(&start.input)?;
        let options = self.options(&workflow, start.tenant, start.limits)?;
        let (run, fresh) = match &start.id {
            Some(id) => (RunId::new(id)?, false),
            None => (self.chance.id(self.clock.now())?, true),
        };
        let seed = self.chance.seed(&run);
        let command = StartRun { run: run.clone(), workflow, input: start.input, seed, deadline: start.deadline, options };
        let answer = self.request(|reply| Request::Start { command: Box::new(command), fresh, reply }).await?;
        Ok((run, answer))
    }

    /// Tells a run something. It is durable when this returns, and is kept until the code asks for it. False if a signal of that id was there
    /// already.
    ///
    /// # Errors
    /// If there is no such run, it has ended, its name is not allowed, or too many signals wait already.
    pub async fn signal(&self, run: &RunId, name: &str, payload: Payload, id: Option<String>) -> Result<bool, Error> {
        steadfast_kernel::check_signal(name)?;
        self.check_size(&payload)?;
        let command = Command::SendSignal(SendSignal { name: name.into(), payload, id });
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
        self.tell(run, Command::RetryRun(command)).await.map(drop)
    }

    /// What a retry would do; nothing changes.
    ///
    /// # Errors
    /// As the retry itself.
    pub async fn preview(&self, run: &RunId, command: RetryRun) -> Result<Preview, Error> {
        self.request(|reply| Request::Preview { run: run.clone(), command: Box::new(command), reply }).await
    }

    /// Who holds a slot of a limit, and who waits for one; nothing if nobody ever asked for one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn limit(&self, key: &LimitKey) -> Result<Option<Limit>, Error> {
        self.request(|reply| Request::Limit { key: key.clone(), reply }).await
    }

    /// Runs that the filter lets through, newest first, from the one after `after`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn list(&self, filter: &RunFilter, after: Option<&RunCursor>, limit: usize) -> Result<Vec<RunRow>, Error> {
        self.store()?.runs(filter, after, limit).await.map_err(Error::from_store)
    }

    /// Dead letters, newest first, from the one after `after`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn letters(&self, after: Option<&LetterCursor>, limit: usize) -> Result<Vec<LetterRow>, Error> {
        self.store()?.letters(after, limit).await.map_err(Error::from_store)
    }

    /// A dead letter, with its bytes.
    ///
    /// # Errors
    /// If there is no such letter, or it cannot be read.
    pub async fn letter(&self, letter: &LetterId) -> Result<(LetterRow, Letter), Error> {
        let found = self.store()?.letter(letter).await.map_err(Error::from_store)?;
        let row = found.ok_or_else(|| Refusal::LetterNotFound { letter: letter.clone() })?;
        Ok((row, self.letter_added(letter).await?.0))
    }

    /// A letter as it arrived, whatever became of it, and the number of the message that it came with.
    async fn letter_added(&self, letter: &LetterId) -> Result<(Letter, u64), Error> {
        let entity = EntityId::Letters(letter.workflow.clone());
        match self.entries(&entity, letter.seq - 1, 1).await?.pop() {
            Some(Entry { event: Event::LetterAdded(letter), heard, .. }) => Ok((*letter, heard.map_or(0, |heard| heard.seq))),
            _ => Err(Refusal::LetterNotFound { letter: letter.clone() }.into()),
        }
    }

    /// Has a dead letter tried again: its run is retried from its step.
    ///
    /// # Errors
    /// If there is no such letter, its run cannot be retried now, or has continued as new since; the letter stays then.
    pub async fn redrive(&self, letter: &LetterId, origin: Origin) -> Result<(), Error> {
        let is_there = self.store()?.letter(letter).await.map_err(Error::from_store)?.is_some();
        let (Letter { run, step, .. }, number) = self.letter_added(letter).await?;
        let from = RetryFrom::Letter { letter: letter.clone(), step, number: Some(number).filter(|_| is_there) };
        self.retry(&run, RetryRun { origin, from, ..RetryRun::default() }).await
    }

    /// Throws a dead letter away.
    ///
    /// # Errors
    /// If there is no such letter.
    pub async fn drop_letter(&self, letter: &LetterId, origin: Origin) -> Result<(), Error> {
        Self::check(&origin)?;
        let (entity, command) = (EntityId::Letters(letter.workflow.clone()), DropLetter { letter: letter.seq, origin });
        self.request(|reply| Request::Tell { entity, command: Box::new(Command::DropLetter(command)), reply })
            .await
            .map(drop)
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
        self.request(|reply| Request::Tell { entity: run.into(), command: Box::new(command), reply }).await
    }

    fn store(&self) -> Result<Arc<dyn Store>, Error> {
        self.store.upgrade().ok_or(Error::Stopped)
    }

    /// What goes for all runs of a workflow, and what the caller wants beside it. Slots are asked for in the order of their keys, so that no two runs
    /// wait for each other.
    fn options(&self, workflow: &WorkflowName, tenant: Option<String>, keys: Vec<(String, u32)>) -> Result<RunOptions, Error> {
        tenant.as_deref().map(steadfast_kernel::check_tenant).transpose()?;
        let registered = self.registry.get(workflow);
        let of_workflow = registered
            .and_then(|registered| registered.slots)
            .map(|slots| (LimitKey::of_workflow(workflow), slots));
        let mut limits: Vec<_> = of_workflow.into_iter().map(|(key, slots)| Limiting { key, slots }).collect();
        for (key, slots) in keys {
            if slots == 0 {
                return Err(Error::InvalidSetting(format!("the limit {key:?} has no slots; it needs at least one")));
            }
            limits.push(Limiting { key: LimitKey::of_key(&key)?, slots });
        }
        limits.sort_by(|a, b| a.key.cmp(&b.key));
        limits.dedup_by(|a, b| a.key == b.key);
        let recovery = registered.map_or(Recovery::Automatic, |registered| registered.recovery);
        Ok(RunOptions { tenant, recovery, limits, parent: None })
    }

    fn check_size(&self, payload: &Payload) -> Result<(), Error> {
        let (bytes, max) = (payload.len(), self.config.payload_bytes_max);
        if bytes > max { Err(Error::PayloadTooLarge { bytes, max }) } else { Ok(()) }
    }

    /// Replays the journal of a run against the code that is registered here, without carrying anything out.
    ///
    /// # Errors
    /// If there is no such run, its code is not here, or it cannot be read.
    pub async fn replay(&self, run: &RunId) -> Result<Replayed, Error> {
        let (mut state, mut journal): (Option<Run>, Vec<Entry>) = (None, Vec::new());
        loop {
            let page = self.journal(run, journal.last().map_or(0, |entry| entry.seq), PAGE).await?;
            let last = page.len() < PAGE;
            for entry in page {
                let broken =
                    |illegal: steadfast_kernel::IllegalTransition| Error::JournalBroken { entity: run.into(), why: illegal.to_string() };
                state = Some(run::evolve(run, state, &entry).map_err(broken)?);
                journal.push(entry);
            }
            if last {
                break;
            }
        }
        let Some(state) = state else { return Err(Refusal::RunNotFound { run: run.clone() }.into()) };
        let code = Arc::clone(&self.registered(&state.workflow)?.code);
        let (events, opening) = (journal.len(), Opening::of(&state, run::script(journal)));
        let mismatch = host::compare(&*code, opening, Arc::clone(&self.clock), self.config.payload_bytes_max).await;
        Ok(Replayed { events, mismatch })
    }

    /// Waits for the end of a run, however long it takes.
    ///
    /// # Errors
    /// If there is no such run, or the engine stops.
    pub async fn ended(&self, run: &RunId) -> Result<Ended, Error> {
        loop {
            match self.request(|reply| Request::Await { run: run.clone(), reply }).await {
                Err(Error::Unavailable { retry_after, .. } | Error::Busy { retry_after, .. }) => self.clock.sleep(retry_after).await,
                answer => return answer,
            }
        }
    }

    /// Looks at a run.
    ///
    /// # Errors
    /// If there is no such run, or it cannot be read.
    pub async fn view(&self, run: &RunId) -> Result<RunView, Error> {
        let mut view = self.request(|reply| Request::View { run: run.clone(), reply }).await?;
        for wait in &mut view.waits {
            if let Wait::Slot { key, position } = wait {
                *position = self.limit(key).await?.and_then(|limit| limit.position(run));
            }
        }
        Ok(view)
    }

    /// The journal of a run from the entry after that one, at most `limit` entries.
    ///
    /// # Errors
    /// If there is no such run, or it cannot be read.
    pub async fn journal(&self, run: &RunId, after: Seq, limit: usize) -> Result<Vec<Entry>, Error> {
        let entries = self.entries(&run.into(), after, limit).await?;
        if entries.is_empty() && self.store()?.run(run).await.map_err(Error::from_store)?.is_none() {
            return Err(Refusal::RunNotFound { run: run.clone() }.into());
        }
        Ok(entries)
    }

    /// The journal of any entity.
    async fn entries(&self, entity: &EntityId, after: Seq, limit: usize) -> Result<Vec<Entry>, Error> {
        let records = self.store()?.journal(entity, after, limit).await.map_err(Error::from_store)?;
        let broken = |why: String| Error::JournalBroken { entity: entity.clone(), why };
        records
            .iter()
            .map(|record| Entry::try_from(record).map_err(|unreadable| broken(unreadable.to_string())))
            .collect()
    }

    /// How many durable commits were made since the store was opened; zero once the engine has stopped.
    pub fn commits(&self) -> u64 {
        self.store.upgrade().map_or(0, |store| store.commits())
    }

    /// Whether the store can be written now, and if it cannot, why and since when.
    pub fn health(&self) -> Health {
        self.health.borrow().clone()
    }

    /// Stops: begins nothing new, lets attempts in flight end within the grace period, and makes what they did durable. What is not done
    /// by then is done again after the next start. A store that does not answer is given one grace period more, and is then left to itself.
    pub async fn shutdown(self) {
        let Engine { control, tasks, config, clock, .. } = self;
        let (reply, drained) = oneshot::channel();
        if control.send(Control::Drain { reply }).is_ok() {
            tokio::select! {
                biased;
                _ = drained => {}
                () = clock.sleep(config.shutdown_grace) => tracing::warn!("attempts were still in flight at the end of the grace period"),
            }
        }
        let _it_has_stopped = control.send(Control::Stop);
        let stopped = async {
            if let Some(tasks) = tasks.lock().await.take() {
                let _ended = tasks.await;
            }
        };
        tokio::select! {
            biased;
            () = stopped => {}
            () = clock.sleep(config.shutdown_grace) => tracing::error!("the store did not finish its last commits in time"),
        }
    }

    /// Stops at once, as a crash would: nothing that is under way is waited for.
    pub fn abort(&self) {
        let _it_has_stopped = self.control.send(Control::Stop);
    }

    async fn request<T>(&self, request: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Request) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.requests.try_send(request(reply)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Error::busy("requests_max"),
            mpsc::error::TrySendError::Closed(_) => Error::Stopped,
        })?;
        answer.await.unwrap_or(Err(Error::Stopped))
    }

    fn known(&self, name: &str) -> Result<WorkflowName, Error> {
        let name = WorkflowName::new(name)?;
        self.registered(&name)?;
        Ok(name)
    }

    fn registered(&self, name: &WorkflowName) -> Result<&Registered, Error> {
        let known = || self.registry.keys().map(ToString::to_string).collect();
        self.registry
            .get(name)
            .ok_or_else(|| Error::UnknownWorkflow { name: name.to_string(), known: known() })
    }
}

/// Every run that a restart has something to do with: those that only wait are opened when what they wait for happens.
async fn under_way(store: &dyn Store) -> Result<Vec<RunRow>, Error> {
    let mut runs: Vec<RunRow> = Vec::new();
    loop {
        let page = store
            .to_recover(SHARD, runs.last().map(RunCursor::from).as_ref(), PAGE)
            .await
            .map_err(Error::from_store)?;
        if page.is_empty() {
            return Ok(runs);
        }
        runs.extend(page);
    }
}
