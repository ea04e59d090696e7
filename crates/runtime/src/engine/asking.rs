//! How a shard is asked: the one that is here, or through the instance that has it.
//!
//! Tested by `crates/sdk/tests/it/cluster/one.rs`.
//! Tested by `crates/cli/tests/it/cluster/pair.rs`.

use super::{Engine, Ways};
use crate::cluster::{Asked, Beside, Brought, ClusterView, Failed, Others, Told, answered};
use crate::error::{Error, STORE_RETRY_AFTER};
use crate::host::Offer;
use crate::shard::{Reply, Request, RunView, Said, Waiter, look_afar};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::run::Ended;
use steadfast_kernel::{Answer, Command, EntityId, RunId, StartRun};
use steadfast_store::{Member, ShardId, Store};
use tokio::sync::{oneshot, watch};

/// Whoever waits for the end of a run whose holder does not answer looks again after this, or when another one has the shard.
const AWAIT_AGAIN: Duration = Duration::from_secs(2);

/// So often an id is drawn until it is one of a shard that is here: of 64 shards an instance may have few.
const DRAWS: usize = 200;

/// Why there is no answer.
enum Missed {
    /// The shard is not there, and nothing was done.
    Moved,
    /// Whether it was done is not known.
    Unsure,
    /// It cannot be done.
    Failed(Error),
}

/// What was awaited, by where the run has ended.
enum Awaited<T> {
    Here(T),
    There(Ended),
}

impl Engine {
    /// Begins a run in its shard, wherever that is.
    pub(super) async fn start_there(&self, command: StartRun, fresh: bool) -> Result<Answer, Error> {
        let Some(others) = self.ways.others() else {
            return self.request(|reply| Request::Start { command: Box::new(command), fresh, reply }).await;
        };
        let shard = self.ways.shard_of(&(&command.run).into());
        let asked = Asked::Start { command: Box::new(command), fresh };
        match self.seek(others, shard, asked).await.and_then(answer)? {
            Answer::Exists if fresh => Ok(Answer::Created), // nobody else knows the id: it was this start, asked again
            answer => Ok(answer),
        }
    }

    /// An id for a new run. If shards are shared, one of a shard that is here, if there is any: nobody else has to be asked to begin it.
    pub(super) fn fresh_id(&self) -> Result<RunId, Error> {
        let draw = || self.parts.chance.id(self.parts.clock.now());
        let is_near = |run: &RunId| self.ways.others().is_none() || self.ways.stays_here(self.ways.shard_of(&run.into()));
        for _ in 0..DRAWS {
            let run = draw()?;
            if is_near(&run) {
                return Ok(run);
            }
        }
        draw()
    }

    /// Asks something of any entity.
    pub(crate) async fn tell_entity(&self, entity: EntityId, command: Command) -> Result<Answer, Error> {
        let Some(others) = self.ways.others() else {
            return self.request(|reply| Request::Tell { entity, command: Box::new(command), reply }).await;
        };
        let shard = self.ways.shard_of(&entity);
        self.seek(others, shard, Asked::Tell { entity, command: Box::new(command) }).await.and_then(answer)
    }

    /// Looks at an entity, wherever it is.
    pub(super) async fn look<T>(&self, request: impl Fn(Reply<T>) -> Request) -> Result<T, Error> {
        match (self.request(&request).await, self.ways.others()) {
            (Err(Error::Stopped | Error::Store(_)), Some(others)) => self.look_afar(others, request).await,
            (answer, _) => answer,
        }
    }

    async fn look_afar<T>(&self, others: &Arc<Others>, request: impl Fn(Reply<T>) -> Request) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let (request, store) = (request(reply), self.store()?);
        let beside = match &request {
            Request::View { run, .. } | Request::Preview { run, .. } => self.beside(others, &*store, run).await?,
            _ => Beside::default(),
        };
        look_afar(&*store, self.parts.config.snapshot_every, request, beside).await;
        answer.await.unwrap_or(Err(Error::Stopped))
    }

    /// What the holder of a run knows of it beside its journal. Of one that has ended there is nothing.
    async fn beside(&self, others: &Others, store: &dyn Store, run: &RunId) -> Result<Beside, Error> {
        match store.run(run).await.map_err(Error::from_store)? {
            Some(row) if row.ended_at.is_none() => Ok(others.beside(self.ways.shard_of(&run.into()), run).await),
            _ => Ok(Beside::default()),
        }
    }

    /// Waits for the end of a run, however long it takes.
    ///
    /// # Errors
    /// If there is no such run, or the engine stops.
    pub async fn ended(&self, run: &RunId) -> Result<Ended, Error> {
        match self.awaited(run, Waiter::End).await? {
            Awaited::Here(ended) | Awaited::There(ended) => Ok(ended),
        }
    }

    /// Waits for the end of a run, and shows it as it is then: what [`view`](Self::view) would have to read again.
    ///
    /// # Errors
    /// As [`ended`](Self::ended).
    pub async fn ended_view(&self, run: &RunId) -> Result<RunView, Error> {
        match self.awaited(run, Waiter::View).await? {
            Awaited::Here(view) => Ok(view),
            Awaited::There(_) => self.view(run).await,
        }
    }

    /// What the shard of a run tells of its end.
    async fn awaited<T>(&self, run: &RunId, waiter: impl Fn(Reply<T>) -> Waiter) -> Result<Awaited<T>, Error> {
        let shard = self.ways.shard_of(&run.into());
        loop {
            let answer = match self.ways.others() {
                Some(others) if !self.ways.is_here(shard) => match self.ended_afar(others, shard, run).await {
                    Ok(Some(ended)) => Ok(Awaited::There(ended)),
                    Ok(None) => continue,
                    Err(error) => Err(error),
                },
                _ => self
                    .request(|reply| Request::Await { run: run.clone(), waiter: waiter(reply) })
                    .await
                    .map(Awaited::Here),
            };
            match answer {
                Err(Error::Unavailable { retry_after, .. } | Error::Busy { retry_after, .. }) => self.parts.clock.sleep(retry_after).await,
                Err(Error::Stopped | Error::Store(_)) if self.may_have_moved() => self.parts.clock.sleep(STORE_RETRY_AFTER).await,
                answer => return answer,
            }
        }
    }

    /// Waits for a while for the end of a run that another instance has. If that does not answer, what it has written tells.
    async fn ended_afar(&self, others: &Arc<Others>, shard: ShardId, run: &RunId) -> Result<Option<Ended>, Error> {
        let changes = others.changes();
        let told = match others.holder(shard) {
            Some(holder) => others.ask_holder(shard, &holder, Asked::Await { run: run.clone() }).await.map_err(Missed::from),
            None => Err(Missed::Moved),
        };
        match told {
            Ok(Told::Ended(ended)) => return Ok(Some(*ended)),
            Err(Missed::Failed(error)) => return Err(error),
            Ok(_) | Err(Missed::Moved | Missed::Unsure) => {}
        }
        let ended = self.view(run).await?.ended;
        if ended.is_none() {
            self.found_within(others, changes, shard, AWAIT_AGAIN).await;
        }
        Ok(ended)
    }

    /// Ends when somebody has a shard, here or elsewhere, or that time is over. Many may wait for that while shards are taken over, and each would read the store again.
    async fn found_within(&self, others: &Others, mut changes: watch::Receiver<()>, shard: ShardId, time: Duration) {
        let found = async { while changes.changed().await.is_ok() && !self.ways.is_here(shard) && others.holder(shard).is_none() {} };
        tokio::select! {
            biased;
            () = found => {}
            () = self.parts.clock.sleep(time) => {}
        }
    }

    /// Shards go from instance to instance, and this one has not stopped.
    fn may_have_moved(&self) -> bool {
        self.ways.others().is_some() && self.store().is_ok()
    }

    /// Asks until somebody answers who has the shard. What may have been done is asked again only if that makes no difference.
    async fn seek(&self, others: &Arc<Others>, shard: ShardId, mut asked: Asked) -> Result<Told, Error> {
        let until = self.parts.clock.now().saturating_add(others.patience());
        loop {
            let changes = others.changes(); // before it is looked where it is
            let missed = match (self.ways.is_here(shard), others.holder(shard)) {
                (true, _) => self.here(asked.for_once()).await,
                (false, Some(holder)) => others.ask_holder(shard, &holder, asked.for_once()).await.map_err(Missed::from),
                (false, None) => Err(Missed::Moved),
            };
            let unavailable = Error::Unavailable { source: None, retry_after: STORE_RETRY_AFTER };
            match missed {
                Ok(told) => return Ok(told),
                Err(Missed::Failed(error)) => return Err(error),
                Err(Missed::Unsure) if matches!(&asked, Asked::Tell { command, .. } if !command.is_one_again()) => return Err(unavailable),
                Err(Missed::Moved | Missed::Unsure) => {}
            }
            self.store()?; // it has stopped
            if self.ways.ends() {
                return Err(Error::Stopped);
            }
            if self.parts.clock.now() >= until {
                return Err(unavailable);
            }
            others.moved(changes).await;
        }
    }

    /// Asks a shard of this instance.
    async fn here(&self, asked: Asked) -> Result<Told, Missed> {
        match asked {
            Asked::Start { command, fresh } => self.asked(|reply| Request::Start { command, fresh, reply }).await.map(Told::Answer),
            Asked::Tell { entity, command } => self.asked(|reply| Request::Tell { entity, command, reply }).await.map(Told::Answer),
            Asked::Await { run } => {
                let ended = self.asked(|reply| Request::Await { run, waiter: Waiter::End(reply) }).await?;
                Ok(Told::Ended(Box::new(ended)))
            }
            Asked::Beside { run } => self.asked(|reply| Request::Beside { run, reply }).await.map(Told::Beside),
            Asked::Hear { envelope, shard, term } => {
                let current = self.ways.others().is_some_and(|others| others.has_term(shard, term));
                let (heard, hears) = oneshot::channel();
                if !current || !self.ways.hear(Said { envelope: *envelope, heard }) {
                    return Err(Missed::Moved);
                }
                hears.await.map(|()| Told::Heard).map_err(|_| Missed::Unsure)
            }
            Asked::Offer { workflow } => {
                let brought = |Offer { recovery, slots, .. }| Brought { recovery, slots };
                Ok(Told::Offer(self.parts.pool.learnt(&workflow).map(brought)))
            }
            Asked::Sweep { shard, ended } => {
                let (reply, gone) = oneshot::channel();
                let requests = self.ways.requests_of(shard).ok_or(Missed::Moved)?;
                requests.send(Request::Sweep { ended, reply }).await.map_err(|_| Missed::Moved)?;
                gone.await.map(Told::Swept).map_err(|_| Missed::Unsure)
            }
        }
    }

    async fn asked<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, Missed> {
        let (reply, answer) = oneshot::channel();
        self.ways.ask(request(reply)).map_err(Missed::from)?;
        answer.await.map_err(|_| Missed::Unsure)?.map_err(Missed::from)
    }

    /// Answers what another instance asks by its [`Carrier`](crate::Carrier). It may have been delivered before, if that says so.
    pub async fn answer(&self, asked: &[u8], again: bool) -> Bytes {
        let told = match (Asked::decode(asked), self.ways.others()) {
            (Some((to, asked)), Some(others)) if to == others.member.id => self.here(asked).await.map_err(Failed::from),
            (Some(_), _) if again => Err(Failed::Unavailable), // the process that had it before at this address may have done it
            (Some(_), _) => Err(Failed::NotHere),
            (None, _) => Err(Failed::Unknown),
        };
        answered(&told)
    }

    /// Whether other instances may share the store.
    pub fn shares_store(&self) -> bool {
        self.ways.others().is_some()
    }

    /// The instances that share the store, and who has which shard; nothing if it is not shared.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn cluster(&self) -> Result<Option<ClusterView>, Error> {
        match self.ways.others() {
            Some(others) => others.view().await.map(Some),
            None => Ok(None),
        }
    }

    /// The instances that share the store and live, as was last seen; this one alone as long as nothing was, and none if the store is not shared.
    pub fn instances(&self) -> Vec<Arc<Member>> {
        self.ways.others().map(|others| others.members()).unwrap_or_default()
    }

    /// Says to the other instances that this one is about to stop: it takes no more shards, and whoever is started at its address does not take it for dead while it is still at
    /// work. To be called before it lets go of its address; without other instances there is nothing to say.
    pub async fn stops_soon(&self) {
        let Some(others) = self.ways.others() else { return };
        let said = async {
            while others.leases.drain(&others.member.id, true).await.is_err() {
                self.parts.clock.sleep(STORE_RETRY_AFTER).await;
            }
        };
        tokio::select! {
            biased;
            () = said => {}
            () = self.parts.clock.sleep(others.leases.lease() / 3) => {
                tracing::warn!("the other instances could not be told that this one stops; one that is started at its address now would cut it off");
            }
        }
    }

    /// How many shards this instance leads, and how many there are.
    pub fn shards(&self) -> (usize, u32) {
        (self.ways.here().len(), self.ways.shards())
    }

    /// Asks an instance to give away all its shards and take no more, or takes that back. False if there is no such instance.
    ///
    /// # Errors
    /// If the store is not shared, or cannot be used.
    pub async fn drain_instance(&self, id: &str, draining: bool) -> Result<bool, Error> {
        let alone = || Error::InvalidSetting("this engine does not share its store with others, so there is nothing to give away".into());
        let others = self.ways.others().ok_or_else(alone)?;
        others.leases.drain(id, draining).await.map_err(Error::from_store)
    }
}

fn answer(told: Told) -> Result<Answer, Error> {
    match told {
        Told::Answer(answer) => Ok(answer),
        other => Err(Error::InvalidSetting(format!("another instance has answered {other:?}; let all of them have the same version"))),
    }
}

impl Ways {
    /// Tells an entity what one of another shard says. False if its shard is not here.
    fn hear(&self, said: Said) -> bool {
        let here = self.is_here(self.shard_of(&said.envelope.to));
        if here {
            self.say(said, (0, 0));
        }
        here
    }
}

impl From<Error> for Missed {
    fn from(error: Error) -> Self {
        match error {
            Error::Stopped => Missed::Moved,
            Error::Store(error) if matches!(*error, steadfast_store::Error::Fenced { .. }) => Missed::Moved, // it was refused because somebody else has the shard
            error => Missed::Failed(error),
        }
    }
}

impl From<Failed> for Missed {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::NotHere => Missed::Moved,
            Failed::Unavailable | Failed::Unknown => Missed::Unsure, // an instance of another version does not know what this one asks
            Failed::Refused(refusal) => Missed::Failed(refusal.into()),
            Failed::Busy => Missed::Failed(Error::busy("requests_max")),
            Failed::Broken { entity, why } => Missed::Failed(Error::JournalBroken { entity, why }),
        }
    }
}

impl From<Missed> for Failed {
    fn from(missed: Missed) -> Self {
        match missed {
            Missed::Moved => Failed::NotHere,
            Missed::Unsure => Failed::Unavailable,
            Missed::Failed(error) => error.into(),
        }
    }
}
