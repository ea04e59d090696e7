//! The one who writes: a task that takes requests in the order of their calls. Batches that wait together are one transaction.

use crate::connect::Connector;
use crate::error::{OTHER_WRITER, again, is_broken, stopped};
use crate::line::{Answer, Group};
use crate::session::{Former, Session};
use crate::tables::{
    Steps, callbacks, definitions, events, keys, letters, limit, locks, outbox, plans, runs, shards, snapshots, sweep, timers,
};
use futures_util::FutureExt;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use steadfast_store::{Append, Batch, Commit, Error, Head, ShardId, Sweep, Swept};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::error::SqlState;

/// How long the next connect waits after one that has failed, at first and at most.
const BACKOFF: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// The line to the task. When it is dropped, what is in line is committed, and the task ends.
#[derive(Debug)]
pub(crate) struct Writer {
    line: mpsc::UnboundedSender<Request>,
    commits: Arc<AtomicU64>,
}

/// What stands in line. If the task ends the answers are dropped, and whoever waits for one is told.
enum Request {
    Commit(Box<Batch>, Answer),
    Claim(ShardId, oneshot::Sender<Result<Head, Error>>),
    Head(ShardId, oneshot::Sender<Result<Head, Error>>),
    Sweep { shard: ShardId, term: u64, ended: Vec<Sweep>, answer: oneshot::Sender<Result<Vec<Swept>, Error>> },
}

impl Writer {
    /// Connects, and starts the task.
    pub(crate) async fn start(connector: Arc<Connector>) -> Result<Self, Error> {
        let commits = Arc::new(AtomicU64::new(0));
        let (line, requests) = mpsc::unbounded_channel();
        let mut desk =
            Desk { connector, session: None, former: Vec::new(), known: BTreeSet::new(), failures: 0, commits: Arc::clone(&commits) };
        desk.connect().await?;
        tokio::spawn(desk.run(requests));
        Ok(Writer { line, commits })
    }

    /// Puts a batch in line, now.
    pub(crate) fn commit(&self, batch: Batch) -> Commit {
        let (answer, outcome) = oneshot::channel();
        self.send(Request::Commit(Box::new(batch), answer));
        outcome.map(|outcome| outcome.unwrap_or_else(|_| Err(stopped()))).boxed()
    }

    /// Puts a claim in line, behind the batches that are there.
    pub(crate) async fn claim(&self, shard: ShardId) -> Result<Head, Error> {
        let (answer, outcome) = oneshot::channel();
        self.send(Request::Claim(shard, answer));
        outcome.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Asks behind the batches that are there, and only when nothing that was sent before can arrive any more: the answer is final.
    pub(crate) async fn head(&self, shard: ShardId) -> Result<Head, Error> {
        let (answer, outcome) = oneshot::channel();
        self.send(Request::Head(shard, answer));
        outcome.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Puts one step of a sweep in line, behind the batches that are there.
    pub(crate) async fn sweep(&self, shard: ShardId, term: u64, ended: Vec<Sweep>) -> Result<Vec<Swept>, Error> {
        let (answer, outcome) = oneshot::channel();
        self.send(Request::Sweep { shard, term, ended, answer });
        outcome.await.unwrap_or_else(|_| Err(stopped()))
    }

    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }

    /// A request that nobody takes any more is dropped, and its answer with it.
    fn send(&self, request: Request) {
        let _dropped = self.line.send(request);
    }
}

/// What the task works with.
struct Desk {
    connector: Arc<Connector>,
    session: Option<Session>,
    /// Connections that are lost; something that was sent over them may still arrive.
    former: Vec<Former>,
    /// Shards whose rows have the id of our connection, unless somebody else has claimed them.
    known: BTreeSet<ShardId>,
    /// How often no connection could be made, in a row.
    failures: u32,
    commits: Arc<AtomicU64>,
}

/// Why something was not done.
enum Failed {
    /// Nothing was.
    Refused(tokio_postgres::Error),
    /// It is not known whether it was.
    Unknown(Error),
}

impl Desk {
    async fn run(mut self, mut requests: mpsc::UnboundedReceiver<Request>) {
        let mut next = None;
        loop {
            let request = match next.take() {
                Some(request) => request,
                None => match requests.recv().await {
                    Some(request) => request,
                    None => return,
                },
            };
            // The caller may be gone; the work is done all the same.
            match request {
                Request::Commit(batch, answer) => {
                    let mut group = Group::default();
                    group.add(batch, answer);
                    next = fill(&mut group, &mut requests);
                    self.commit(group).await;
                }
                Request::Claim(shard, answer) => drop(answer.send(self.claim(shard).await)),
                Request::Head(shard, answer) => drop(answer.send(self.head(shard).await)),
                Request::Sweep { shard, term, ended, answer } => drop(answer.send(self.sweep(shard, term, &ended).await)),
            }
        }
    }

    /// All in one transaction. If that is refused, one by one, so that nobody fails because of somebody else.
    async fn commit(&mut self, group: Group) {
        let Group { batches, answers, .. } = group;
        match self.apply(&batches).await {
            Ok(()) => {
                self.commits.fetch_add(batches.len() as u64, Ordering::SeqCst);
                answers.into_iter().for_each(|answer| drop(answer.send(Ok(()))));
            }
            Err(Failed::Unknown(error)) => answers.into_iter().for_each(|answer| drop(answer.send(Err(again(&error))))),
            Err(Failed::Refused(_)) if batches.len() > 1 => {
                for (batch, answer) in batches.into_iter().zip(answers) {
                    let outcome = self.commit_alone(batch).await;
                    let _nobody_listens = answer.send(outcome);
                }
            }
            Err(Failed::Refused(error)) => {
                let error = self.refusal(&batches, error).await;
                answers.into_iter().for_each(|answer| drop(answer.send(Err(again(&error)))));
            }
        }
    }

    async fn commit_alone(&mut self, batch: Batch) -> Result<(), Error> {
        let batches = [batch];
        match self.apply(&batches).await {
            Ok(()) => {
                self.commits.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
            Err(Failed::Unknown(error)) => Err(error),
            Err(Failed::Refused(error)) => Err(self.refusal(&batches, error).await),
        }
    }

    async fn apply(&mut self, batches: &[Batch]) -> Result<(), Failed> {
        self.adopt(batches).await?;
        match self.transact(batches, true).await {
            Err(Failed::Refused(error)) if has_code(&error, OTHER_WRITER) => {
                // Somebody has written with our term; whoever is right, the number of the batch tells.
                self.known
                    .retain(|shard| !batches.iter().flat_map(|batch| &batch.fences).any(|fence| fence.shard == *shard));
                self.adopt(batches).await?;
                self.transact(batches, true).await
            }
            // What is shown to people is never a reason to keep nothing.
            Err(Failed::Refused(error)) if error.code().is_some_and(|code| code.code().starts_with("22")) => {
                tracing::warn!(%error, "a payload cannot be shown in the database");
                self.transact(batches, false).await
            }
            outcome => outcome,
        }
    }

    async fn transact(&mut self, batches: &[Batch], shows_payloads: bool) -> Result<(), Failed> {
        let patience = self.connector.patience();
        let session = self.session().await.map_err(Failed::Unknown)?;
        let steps = steps(batches, &session.id.writer, shows_payloads);
        if steps.0.is_empty() {
            return Ok(());
        }
        let outcome = tokio::time::timeout(patience, session.transact(&steps.0)).await;
        drop(steps);
        self.settle("commit", outcome)
    }

    /// Says what an outcome means. A connection that failed is given up.
    fn settle<T>(&mut self, what: &str, outcome: Result<Result<T, tokio_postgres::Error>, impl Sized>) -> Result<T, Failed> {
        let error = match outcome {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(error)) if !is_broken(&error) => return Err(Failed::Refused(error)),
            Ok(Err(error)) => self.connector.database.trouble(what, error),
            Err(_) => self.connector.database.too_slow(what),
        };
        self.lose();
        Err(Failed::Unknown(error))
    }

    fn lose(&mut self) {
        self.former.extend(self.session.take().map(|session| session.id));
    }

    /// What is to be said of a batch that was refused.
    async fn refusal(&mut self, batches: &[Batch], error: tokio_postgres::Error) -> Error {
        if has_code(&error, SqlState::UNIQUE_VIOLATION.code())
            && let Some(Append { entity, record, .. }) = self.first_there(batches).await
        {
            return Error::unavailable(format!("event {} of {entity} is there already", record.seq), error);
        }
        self.connector.database.trouble("commit", error)
    }

    /// The first event that is there already, or twice.
    async fn first_there<'a>(&mut self, batches: &'a [Batch]) -> Option<&'a Append> {
        let appends: Vec<_> = batches.iter().flat_map(|batch| &batch.events).collect();
        let entities: Vec<_> = appends.iter().map(|append| append.entity.to_string()).collect();
        let seqs: Vec<_> = appends.iter().map(|append| append.record.seq.cast_signed()).collect();
        let rows = self.query("look for an event", events::THERE, &[&entities, &seqs]).await.ok()?;
        let mut there: BTreeSet<(String, i64)> = rows.iter().filter_map(|row| Some((row.try_get(0).ok()?, row.try_get(1).ok()?))).collect();
        let keys = entities.into_iter().zip(seqs);
        appends.iter().zip(keys).find(|(_, key)| !there.insert(key.clone())).map(|(append, _)| *append)
    }

    /// Puts our id in the rows of shards that are written for the first time and were not claimed here. That is known before anything is sent that relies on it.
    async fn adopt(&mut self, batches: &[Batch]) -> Result<(), Failed> {
        let new: Vec<_> = shards::fences(batches).into_iter().filter(|fence| !self.known.contains(&fence.shard)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = new.iter().map(|fence| fence.shard.cast_signed()).collect();
        let terms: Vec<_> = new.iter().map(|fence| fence.term.cast_signed()).collect();
        let writer = self.session().await.map_err(Failed::Unknown)?.id.writer.clone();
        self.ask("begin to write a shard", shards::ADOPT, &[&writer, &ids, &terms]).await?;
        self.known.extend(new.iter().map(|fence| fence.shard));
        Ok(())
    }

    async fn claim(&mut self, shard: ShardId) -> Result<Head, Error> {
        let writer = self.session().await?.id.writer.clone();
        let rows = self.query("claim a shard", shards::CLAIM, &[&writer, &shard.cast_signed()]).await?;
        let head = shards::head(rows.first().ok_or_else(stopped)?).map_err(|wrong| self.connector.database.corrupt(wrong.0))?;
        self.known.insert(shard);
        Ok(head)
    }

    async fn head(&mut self, shard: ShardId) -> Result<Head, Error> {
        let rows = self.query("read where a shard stands", shards::HEAD, &[&shard.cast_signed()]).await?;
        let head = rows
            .first()
            .map(shards::head)
            .transpose()
            .map_err(|wrong| self.connector.database.corrupt(wrong.0))?;
        Ok(head.unwrap_or(Head { term: 0, seq: 0 }))
    }

    async fn sweep(&mut self, shard: ShardId, term: u64, ended: &[Sweep]) -> Result<Vec<Swept>, Error> {
        let what = "remove ended runs";
        self.say(what, "BEGIN").await?;
        let outcome = self.sweep_step(shard, term, &ended[..ended.len().min(sweep::MOST)]).await;
        if outcome.is_err() && self.session.is_some() && self.say(what, "ROLLBACK").await.is_err() {
            self.lose();
        }
        outcome
    }

    /// One step, in a transaction that has begun.
    async fn sweep_step(&mut self, shard: ShardId, term: u64, ended: &[Sweep]) -> Result<Vec<Swept>, Error> {
        let (what, database) = ("remove ended runs", self.connector.database.clone());
        let corrupt = |wrong: crate::tables::Wrong| database.corrupt(wrong.0);
        let rows = self.query(what, sweep::LOCK, &[&shard.cast_signed()]).await?;
        let head = rows.first().map(shards::head).transpose().map_err(corrupt)?;
        if head.is_none_or(|head| head.term != term) {
            return Err(Error::Fenced { shard, term });
        }
        let (ids, runs, plans) = sweep::asked(ended);
        let (tasks, entries) = (limit(ended.len() + 1), limit(sweep::ROWS + 1));
        let rows = self
            .query(what, sweep::LOOK, &[&ids, &runs, &plans, &shard.cast_signed(), &tasks, &entries])
            .await?;
        let found = rows
            .iter()
            .zip(ended)
            .map(|(row, sweep)| sweep::found(row, sweep))
            .collect::<Result<Vec<_>, _>>()
            .map_err(corrupt)?;
        let removal = sweep::Removal::of(shard, ended, &found);
        let (patience, session) = (self.connector.patience(), self.session().await?);
        let outcome = tokio::time::timeout(patience, session.finish(&removal.steps(shard).0)).await;
        match self.settle(what, outcome) {
            Ok(()) => Ok(removal.swept),
            Err(Failed::Unknown(error)) => Err(error),
            Err(Failed::Refused(error)) => Err(database.trouble(what, error)),
        }
    }

    async fn say(&mut self, what: &str, sql: &str) -> Result<(), Error> {
        let (patience, database) = (self.connector.patience(), self.connector.database.clone());
        let session = self.session().await?;
        let outcome = tokio::time::timeout(patience, session.connection.client.batch_execute(sql)).await;
        match self.settle(what, outcome) {
            Ok(()) => Ok(()),
            Err(Failed::Unknown(error)) => Err(error),
            Err(Failed::Refused(error)) => Err(database.trouble(what, error)),
        }
    }

    async fn query(
        &mut self,
        what: &str,
        sql: &str,
        params: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, Error> {
        match self.ask(what, sql, params).await {
            Ok(rows) => Ok(rows),
            Err(Failed::Unknown(error)) => Err(error),
            Err(Failed::Refused(error)) => Err(self.connector.database.trouble(what, error)),
        }
    }

    async fn ask(
        &mut self,
        what: &str,
        sql: &str,
        params: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, Failed> {
        let patience = self.connector.patience();
        let session = self.session().await.map_err(Failed::Unknown)?;
        let outcome = tokio::time::timeout(patience, session.connection.query(sql, params)).await;
        self.settle(what, outcome)
    }

    /// The connection. If there is none it is made, after a while if that has failed before; whoever asks is told if it cannot be.
    async fn session(&mut self) -> Result<&Session, Error> {
        if self.session.as_ref().is_some_and(|session| session.connection.is_closed()) {
            self.lose();
        }
        if self.session.is_none() {
            if let Some(failures) = self.failures.checked_sub(1) {
                pause(BACKOFF.saturating_mul(1 << failures.min(10)).min(BACKOFF_MAX)).await;
            }
            let connected = self.connect().await;
            self.failures = if connected.is_ok() { 0 } else { self.failures.saturating_add(1) };
            connected?;
        }
        self.session.as_ref().ok_or_else(stopped)
    }

    /// Makes a connection, which takes the place of all former ones.
    async fn connect(&mut self) -> Result<(), Error> {
        let session = Session::open(&self.connector).await?;
        for former in self.former.clone() {
            let taken = tokio::time::timeout(self.connector.patience(), session.take_over(&former)).await;
            let error = match taken {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => self.connector.database.trouble("begin to write again", error),
                Err(_) => self.connector.database.too_slow("begin to write again"),
            };
            self.former.push(session.id); // some rows may have its id
            return Err(error);
        }
        self.former.clear();
        self.session = Some(session);
        Ok(())
    }
}

/// Takes what waits already, as far as it can be one transaction; what comes after it if that cannot be.
fn fill(group: &mut Group, requests: &mut mpsc::UnboundedReceiver<Request>) -> Option<Request> {
    loop {
        match requests.try_recv() {
            Ok(Request::Commit(batch, answer)) if group.takes(&batch) => group.add(batch, answer),
            Ok(other) => return Some(other),
            Err(_) => return None,
        }
    }
}

/// The transaction of some batches.
fn steps<'a>(batches: &'a [Batch], writer: &'a str, shows_payloads: bool) -> Steps<'a> {
    let mut steps = Steps::default();
    shards::fence(batches, writer, &mut steps);
    events::append(batches, shows_payloads, &mut steps);
    runs::put(batches, &mut steps);
    timers::change(batches, &mut steps);
    outbox::change(batches, &mut steps);
    letters::change(batches, &mut steps);
    keys::change(batches, shows_payloads, &mut steps);
    callbacks::change(batches, &mut steps);
    plans::put(batches, &mut steps);
    locks::change(batches, &mut steps);
    snapshots::put(batches, &mut steps);
    definitions::keep(batches, &mut steps);
    events::forget(batches, &mut steps);
    snapshots::forget(batches, &mut steps);
    steps
}

fn has_code(error: &tokio_postgres::Error, code: &str) -> bool {
    error.code().is_some_and(|found| found.code() == code)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a server that is away is another machine's business, which knows nothing of a clock of ours"
)]
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
