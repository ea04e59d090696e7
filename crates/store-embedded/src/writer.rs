//! The one who writes: takes batches in the order of their calls, one transaction each.
//!
//! Tested by `crates/crash-test/tests/it/main.rs`.

use crate::checkpointer::{self, Bell, Log};
use crate::error::{self, stopped};
use crate::tables::events::Failed;
use crate::tables::shards::Advance;
use crate::tables::{callbacks, definitions, events, feed, keys, letters, locks, outbox, plans, runs, shards, snapshots, sweep, timers};
use crate::vacuum::{QUIET, Vacuum};
use futures_util::FutureExt;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use steadfast_store::{Append, Batch, Commit, Error, Fence, Head, ShardId, Sweep, Swept};
use tokio::sync::oneshot;

/// The thread. Dropping it commits what is in line.
#[derive(Debug)]
pub(crate) struct Writer {
    line: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
    commits: Arc<AtomicU64>,
}

/// What stands in line. If the thread dies the answers are dropped, and whoever waits for one is told.
enum Request {
    Commit(Box<Batch>, oneshot::Sender<Result<(), Error>>),
    Claim(ShardId, oneshot::Sender<Result<Head, Error>>),
    Sweep { shard: ShardId, term: u64, runs: Vec<Sweep>, answer: oneshot::Sender<Result<Vec<Swept>, Error>> },
}

impl Writer {
    pub(crate) fn start(path: &Arc<Path>, mut connection: Connection, bell: Option<Bell>) -> Result<Self, Error> {
        let log = Log::default();
        checkpointer::watch(&mut connection, bell.clone(), &log).map_err(|error| error::sqlite(path, "watch the log", error))?;
        let commits = Arc::new(AtomicU64::new(0));
        let mut desk = Desk { path: Arc::clone(path), connection, log, bell, vacuum: Vacuum::new(), commits: Arc::clone(&commits) };
        let (line, requests) = channel();
        let thread = thread::Builder::new().name("steadfast-writer".into()).spawn(move || desk.run(&requests));
        let thread = thread.map_err(|error| error::io(path, "start the writer of", error))?;
        Ok(Writer { line: Some(line), thread: Some(thread), commits })
    }

    /// Puts a batch in line, now.
    pub(crate) fn commit(&self, batch: Batch) -> Commit {
        let (answer, outcome) = oneshot::channel();
        self.send(Request::Commit(Box::new(batch), answer));
        outcome.map(|outcome| outcome.unwrap_or_else(|_| Err(stopped("writer")))).boxed()
    }

    /// Puts a claim in line, behind the batches that are there.
    pub(crate) async fn claim(&self, shard: ShardId) -> Result<Head, Error> {
        let (answer, outcome) = oneshot::channel();
        self.send(Request::Claim(shard, answer));
        outcome.await.unwrap_or_else(|_| Err(stopped("writer")))
    }

    /// Puts one step of a sweep in line, behind the batches that are there.
    pub(crate) async fn sweep(&self, shard: ShardId, term: u64, runs: Vec<Sweep>) -> Result<Vec<Swept>, Error> {
        let (answer, outcome) = oneshot::channel();
        self.send(Request::Sweep { shard, term, runs, answer });
        outcome.await.unwrap_or_else(|_| Err(stopped("writer")))
    }

    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }

    /// A request that nobody takes any more is dropped, and its answer with it.
    fn send(&self, request: Request) {
        if let Some(line) = &self.line {
            let _dropped = line.send(request);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.line = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the writer of the store has panicked");
        }
    }
}

/// What the thread works with.
struct Desk {
    path: Arc<Path>,
    connection: Connection,
    log: Log,
    bell: Option<Bell>,
    vacuum: Vacuum,
    commits: Arc<AtomicU64>,
}

impl Desk {
    fn run(&mut self, requests: &Receiver<Request>) {
        while let Some(request) = self.next(requests) {
            self.serve(request);
            self.vacuum.after_request(&self.connection);
        }
    }

    /// The next in line. While nobody is there, free pages are given back to the disk.
    fn next(&mut self, requests: &Receiver<Request>) -> Option<Request> {
        while self.vacuum.is_due() {
            match requests.recv_timeout(QUIET) {
                Ok(request) => return Some(request),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    if !self.vacuum.when_quiet(&self.connection) {
                        self.bell.iter().for_each(Bell::ring); // the file becomes shorter when the log is moved
                    }
                }
            }
        }
        requests.recv().ok()
    }

    /// The caller may be gone; the work is done all the same.
    fn serve(&mut self, request: Request) {
        match request {
            Request::Commit(batch, answer) => drop(answer.send(self.commit(&batch))),
            Request::Claim(shard, answer) => drop(answer.send(self.claim(shard))),
            Request::Sweep { shard, term, runs, answer } => drop(answer.send(self.sweep(shard, term, &runs))),
        }
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), Error> {
        self.transact("commit", |transaction, path| apply(transaction, path, batch))?;
        if !batch.forgotten.is_empty() {
            self.vacuum.something_was_removed();
        }
        self.commits.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn claim(&mut self, shard: ShardId) -> Result<Head, Error> {
        let what = "claim a shard";
        self.transact(what, |transaction, path| shards::claim(transaction, shard).map_err(|error| error::sqlite(path, what, error)))
    }

    fn sweep(&mut self, shard: ShardId, term: u64, runs: &[Sweep]) -> Result<Vec<Swept>, Error> {
        let what = "remove ended runs";
        let step = |db: &Transaction<'_>, path: &Path| sweep::step(db, shard, term, runs).map_err(|error| error::sqlite(path, what, error));
        let swept = self.transact(what, step)?.ok_or(Error::Fenced { shard, term })?;
        if swept.iter().any(|swept| *swept != Swept::Kept) {
            self.vacuum.something_was_removed();
        }
        Ok(swept)
    }

    /// Does something whole or not at all. Any error rolls back, and the next transaction finds the connection as if nothing had been.
    fn transact<T>(&mut self, what: &str, work: impl FnOnce(&Transaction<'_>, &Path) -> Result<T, Error>) -> Result<T, Error> {
        let path = &self.path;
        let trouble = |error| error::sqlite(path, what, error);
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK").map_err(trouble)?; // an earlier one could not be rolled back when it failed
        }
        if !self.log.has_room(&self.connection).map_err(trouble)? {
            let why = "the log cannot be moved into the main file: somebody reads an old state of it, or the main file cannot grow";
            return Err(Error::Full { what: what.into(), source: why.into() });
        }
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(trouble)?;
        let result = work(&transaction, path)?;
        transaction.commit().map_err(trouble)?;
        Ok(result)
    }
}

fn apply(db: &Connection, path: &Path, batch: &Batch) -> Result<(), Error> {
    let trouble = |error| error::sqlite(path, "commit", error);
    for fence in &batch.fences {
        check(fence, shards::advance(db, fence).map_err(trouble)?)?;
    }
    events::append(db, &batch.events).map_err(|failed| append_error(path, failed))?;
    let begun = batch
        .events
        .iter()
        .filter(|append| append.record.seq == 1)
        .filter_map(|append| append.entity.run())
        .collect();
    runs::put(db, &batch.runs, &begun).map_err(trouble)?;
    for change in &batch.timers {
        timers::change(db, change).map_err(trouble)?;
    }
    for change in &batch.outbox {
        outbox::change(db, change).map_err(trouble)?;
    }
    for change in &batch.letters {
        letters::change(db, change).map_err(trouble)?;
    }
    for change in &batch.keys {
        keys::change(db, change).map_err(trouble)?;
    }
    for change in &batch.callbacks {
        callbacks::change(db, change).map_err(trouble)?;
    }
    for row in &batch.plans {
        plans::put(db, row).map_err(trouble)?;
    }
    for change in &batch.locks {
        locks::change(db, change).map_err(trouble)?;
    }
    for snapshot in &batch.snapshots {
        snapshots::put(db, snapshot).map_err(trouble)?;
    }
    for definition in &batch.definitions {
        definitions::keep(db, definition).map_err(trouble)?;
    }
    if !batch.forgotten.is_empty() {
        feed::remember(db).map_err(trouble)?;
    }
    for forgotten in &batch.forgotten {
        events::forget(db, forgotten).map_err(trouble)?;
        if forgotten.before.is_none() {
            snapshots::remove(db, &forgotten.entity).map_err(trouble)?;
        }
    }
    Ok(())
}

fn check(&Fence { shard, term, after, .. }: &Fence, advance: Advance) -> Result<(), Error> {
    match advance {
        Advance::Done => Ok(()),
        Advance::Fenced => Err(Error::Fenced { shard, term }),
        Advance::Gap => Err(Error::Gap { shard, after }),
    }
}

fn append_error(path: &Path, Failed { there, error }: Failed<'_>) -> Error {
    match there {
        Some(Append { entity, record, .. }) => Error::unavailable(format!("event {} of {entity} is there already", record.seq), error),
        None => error::sqlite(path, "commit", error),
    }
}

#[cfg(test)]
mod tests;
