//! What the writer works with: a connection, and what is known of it.

use crate::connect::Connector;
use crate::error::{OTHER_WRITER, again, has_code, is_broken, is_of_one_batch, is_read_only, said, stopped};
use crate::line::{Answer, Group};
use crate::migrate;
use crate::session::{Name, Session};
use crate::sweeping::{self, Stopped};
use crate::tables::{
    Steps, callbacks, definitions, events, get, keys, letters, locks, outbox, plans, runs, shards, snapshots, time, timers,
};
use crate::types::At;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use steadfast_store::{Append, Batch, Error, Head, ShardId, Sweep, Swept};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

/// How long the next connect waits after one that has failed, at first and at most.
const BACKOFF: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// How often a claim is tried while others claim the same shard.
const CLAIMS_MAX: usize = 16;

pub(crate) struct Desk {
    connector: Arc<Connector>,
    name: Name,
    session: Option<Session>,
    /// How many connections there were; something that was sent over a former one may still arrive.
    opened: u64,
    /// Shards whose rows have the id of our connection, unless somebody else has claimed them.
    known: BTreeSet<ShardId>,
    outage: Option<Outage>,
    commits: Arc<AtomicU64>,
    member: Arc<Mutex<Option<String>>>,
}

/// No connection can be made.
struct Outage {
    /// How often it was tried, in a row.
    tries: u32,
    error: Error,
}

/// Why something was not done.
enum Failed {
    /// Nothing was.
    Refused(tokio_postgres::Error),
    /// It is not known whether it was.
    Unknown(Error),
}

impl Desk {
    /// Connects. If there is a `member`, shards are claimed only if that instance has a lease on them.
    pub(crate) async fn open(
        connector: Arc<Connector>,
        commits: Arc<AtomicU64>,
        member: Arc<Mutex<Option<String>>>,
    ) -> Result<Self, Error> {
        let (name, known) = (Name::new()?, BTreeSet::new());
        let mut desk = Desk { connector, name, session: None, opened: 0, known, outage: None, commits, member };
        desk.connect().await?;
        Ok(desk)
    }

    /// Why there is no connection, if the last try to make one has failed.
    pub(crate) fn outage(&self) -> Option<&Error> {
        self.outage.as_ref().map(|outage| &outage.error)
    }

    /// All in one transaction. If that is refused because of one of them, one by one, so that nobody fails because of somebody else.
    pub(crate) async fn commit(&mut self, group: Group) {
        let Group { batches, answers, .. } = group;
        match self.apply(&batches).await {
            Ok(()) => answers.into_iter().for_each(|answer| drop(answer.send(Ok(())))),
            Err(Failed::Refused(error)) if batches.len() > 1 && is_of_one_batch(&error) => self.commit_each(batches, answers).await,
            Err(failed) => {
                let error = self.failure(&batches, failed).await;
                answers.into_iter().for_each(|answer| drop(answer.send(Err(again(&error)))));
            }
        }
    }

    /// One by one, until something goes wrong that would go wrong with all of them.
    async fn commit_each(&mut self, batches: Vec<Batch>, answers: Vec<Answer>) {
        let mut stop = None;
        for (batch, answer) in batches.into_iter().zip(answers) {
            let outcome = match &stop {
                Some(error) => Err(again(error)),
                None => self.commit_alone(batch, &mut stop).await,
            };
            let _nobody_listens = answer.send(outcome);
        }
    }

    async fn commit_alone(&mut self, batch: Batch, stop: &mut Option<Error>) -> Result<(), Error> {
        let batches = [batch];
        let Err(failed) = self.apply(&batches).await else { return Ok(()) };
        let goes_on = matches!(&failed, Failed::Refused(error) if is_of_one_batch(error));
        let error = self.failure(&batches, failed).await;
        if !goes_on {
            *stop = Some(again(&error));
        }
        Err(error)
    }

    async fn apply(&mut self, batches: &[Batch]) -> Result<(), Failed> {
        self.adopt(batches).await?;
        let outcome = match self.transact(batches, true).await {
            Err(Failed::Refused(error)) if has_code(&error, OTHER_WRITER) => {
                // Somebody has written with our term; whoever is right, the number of the batch tells.
                self.known
                    .retain(|shard| !batches.iter().flat_map(|batch| &batch.fences).any(|fence| fence.shard == *shard));
                self.adopt(batches).await?;
                self.transact(batches, true).await
            }
            // What is shown to people is never a reason to keep nothing.
            Err(Failed::Refused(error)) if error.code().is_some_and(|code| code.code().starts_with("22")) => {
                tracing::warn!(error = said(&error), "a payload cannot be shown in the database");
                self.transact(batches, false).await
            }
            outcome => outcome,
        };
        if outcome.is_ok() {
            self.commits.fetch_add(batches.len() as u64, Ordering::SeqCst);
        }
        outcome
    }

    async fn transact(&mut self, batches: &[Batch], shows_payloads: bool) -> Result<(), Failed> {
        let patience = self.connector.patience();
        let session = self.session().await.map_err(Failed::Unknown)?;
        let steps = steps(batches, &session.writer, shows_payloads);
        if steps.0.is_empty() {
            return Ok(());
        }
        let outcome = tokio::time::timeout(patience, session.transact(&steps.0)).await;
        drop(steps);
        self.settle("commit", outcome)
    }

    /// Says what an outcome means. A connection that failed is given up, and so is one to a server that may not be written: it may have another place by now.
    fn settle<T>(&mut self, what: &str, outcome: Result<Result<T, tokio_postgres::Error>, impl Sized>) -> Result<T, Failed> {
        let error = match outcome {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(error)) if !is_broken(&error) => {
                if is_read_only(&error) {
                    self.lose();
                }
                return Err(Failed::Refused(error));
            }
            Ok(Err(error)) => self.connector.database.trouble(what, error),
            Err(_) => self.connector.database.too_slow(what),
        };
        self.lose();
        Err(Failed::Unknown(error))
    }

    /// Gives the connection up. The next one takes its place.
    pub(crate) fn lose(&mut self) {
        self.session = None;
    }

    /// What is to be said of batches that were not committed.
    async fn failure(&mut self, batches: &[Batch], failed: Failed) -> Error {
        let error = match failed {
            Failed::Unknown(error) => return error,
            Failed::Refused(error) => error,
        };
        if has_code(&error, SqlState::UNIQUE_VIOLATION.code())
            && let Some(Append { entity, record, .. }) = self.first_there(batches).await
        {
            return Error::unavailable(format!("event {} of {entity} is there already", record.seq), said(&error));
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
        let writer = self.session().await.map_err(Failed::Unknown)?.writer.clone();
        self.ask("begin to write a shard", shards::ADOPT, &[&writer, &ids, &terms]).await?;
        self.known.extend(new.iter().map(|fence| fence.shard));
        Ok(())
    }

    /// Takes a shard from whoever has it now. If this arrives when we have given up waiting for it, or when somebody else has claimed the shard meanwhile, it
    /// does nothing. So it is if the instance that we are has no lease on it any more: then the shard is another one's, or will be.
    pub(crate) async fn claim(&mut self, shard: ShardId) -> Result<Head, Error> {
        let (what, database) = ("claim a shard", self.connector.database.clone());
        let patience = i64::try_from(self.connector.patience().as_millis()).unwrap_or(i64::MAX);
        let member = self.member.lock().clone();
        for _ in 0..CLAIMS_MAX {
            let rows = self.query(what, shards::BEFORE_CLAIM, &[&shard.cast_signed(), &patience, &member]).await?;
            let Some(row) = rows.first() else {
                self.query(what, shards::MAKE, &[&shard.cast_signed()]).await?;
                continue;
            };
            let found = shards::head(row).and_then(|head| Ok((head.term, time(row, "until")?, get::<bool>(row, "is_ours")?)));
            let (term, until, is_ours) = found.map_err(|wrong| database.corrupt(wrong.0))?;
            if !is_ours {
                return Err(Error::Fenced { shard, term });
            }
            let writer = self.session().await?.writer.clone();
            let rows = self
                .query(what, shards::CLAIM, &[&writer, &shard.cast_signed(), &term.cast_signed(), &At(until), &member])
                .await?;
            if let Some(row) = rows.first() {
                self.known.insert(shard);
                return shards::head(row).map_err(|wrong| database.corrupt(wrong.0));
            }
        }
        Err(Error::Unavailable { what: format!("others claim shard {shard} at the same time"), source: None })
    }

    pub(crate) async fn head(&mut self, shard: ShardId) -> Result<Head, Error> {
        let rows = self.query("read where a shard stands", shards::HEAD, &[&shard.cast_signed()]).await?;
        let head = rows
            .first()
            .map(shards::head)
            .transpose()
            .map_err(|wrong| self.connector.database.corrupt(wrong.0))?;
        Ok(head.unwrap_or(Head { term: 0, seq: 0 }))
    }

    pub(crate) async fn sweep(&mut self, shard: ShardId, term: u64, ended: &[Sweep]) -> Result<Vec<Swept>, Error> {
        let (what, patience) = ("remove ended runs", self.connector.patience());
        let session = self.session().await?;
        let outcome = tokio::time::timeout(patience, sweeping::step(session, shard, term, ended)).await;
        match self.settle(what, outcome) {
            Ok(Ok(swept)) => Ok(swept),
            Ok(Err(Stopped::Fenced)) => Err(Error::Fenced { shard, term }),
            Ok(Err(Stopped::Newer(found))) => Err(self.connector.database.newer(found)),
            Ok(Err(Stopped::Wrong(wrong))) => Err(self.connector.database.corrupt(wrong.0)),
            Err(Failed::Unknown(error)) => Err(error),
            Err(Failed::Refused(error)) => Err(self.connector.database.trouble(what, error)),
        }
    }

    async fn query(&mut self, what: &str, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        match self.ask(what, sql, params).await {
            Ok(rows) => Ok(rows),
            Err(Failed::Unknown(error)) => Err(error),
            Err(Failed::Refused(error)) => Err(self.connector.database.trouble(what, error)),
        }
    }

    async fn ask(&mut self, what: &str, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Failed> {
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
            let tries = self.outage.as_ref().map_or(0, |outage| outage.tries);
            if let Some(before) = tries.checked_sub(1) {
                pause(BACKOFF.saturating_mul(1 << before.min(10)).min(BACKOFF_MAX)).await;
            }
            if let Err(error) = self.connect().await {
                self.outage = Some(Outage { tries: tries.saturating_add(1), error: again(&error) });
                return Err(error);
            }
            self.outage = None;
        }
        self.session.as_ref().ok_or_else(stopped)
    }

    /// Makes a connection, which takes the place of all former ones. Meanwhile a newer program may have changed the tables, and another server may be the one to be
    /// written: those who read follow.
    async fn connect(&mut self) -> Result<(), Error> {
        self.opened += 1;
        let session = Session::open(&self.connector, &self.name, self.opened).await?;
        if self.opened > 1 {
            migrate::verify(&self.connector, &session.connection).await?;
            let taken = tokio::time::timeout(self.connector.patience(), session.take_over(&self.name)).await;
            taken
                .map_err(|_| self.connector.database.too_slow("begin to write again"))?
                .map_err(|error| self.connector.database.trouble("begin to write again", error))?;
            self.connector.leave_all();
        }
        self.session = Some(session);
        Ok(())
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

#[expect(
    clippy::disallowed_methods,
    reason = "a server that is away is another machine's business, which knows nothing of a clock of ours"
)]
pub(crate) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
