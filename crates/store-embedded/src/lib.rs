//! The default store: one SQLite file in a data folder that only one process uses.
//!
//! ```text
//! steadfast.db    the tables of `tables/`; people may read it with `sqlite3` at any time
//! steadfast.lock  held for as long as the store is open
//! ```
//!
//! A writer thread applies batches in the order of their calls, one transaction each; `COMMIT` returns when the write-ahead log is on
//! disk. Two readers answer reads beside it and never wait for a commit. A checkpointer moves the log into the main file while
//! commits go on. While there is little to do, the writer gives free pages back to the disk. What is found at opening is checked before SQLite may touch it, see `header.rs` and `open.rs`.

mod checkpointer;
mod error;
mod header;
mod instance;
mod look;
mod open;
mod readers;
mod schema;
mod tables;
mod vacuum;
mod writer;

pub use instance::instance;
pub use look::{FORMAT, Look, look};

use async_trait::async_trait;
use checkpointer::Checkpointer;
use readers::Readers;
use rusqlite::Connection;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use steadfast_kernel::{EntityId, Envelope, KeyName, LetterId, PlanId, Record, RunId, Seq, Snapshot, TenantId, Timer};
use steadfast_store::{
    Backlog, Batch, CallbackCursor, CallbackFilter, CallbackRow, Commit, Definition, EndedCursor, EndedFilter, Error, Fed, Head, KeyRow,
    LetterCursor, LetterFilter, LetterRow, LockRow, PlanCursor, PlanFilter, PlanRow, Position, RunCursor, RunFilter, RunPage, RunRow,
    ShardId, Store, Sweep, Swept, TaskCount, TimerKey,
};
use tables::{callbacks, definitions, events, feed, keys, letters, locks, outbox, plans, runs, shards, snapshots, sweep, tasks, timers};
use writer::Writer;

/// A store in a folder of the local disk. Clones are the same store.
///
/// When the last clone is dropped, what is in line is committed, the log is moved into the main file and the folder is free again; all of it
/// before `drop` returns.
#[derive(Clone, Debug)]
pub struct Embedded(Arc<Threads>);

/// The parts in the order in which they have to stop: the checkpointer after all who use the log, the lock last.
#[derive(Debug)]
struct Threads {
    writer: Writer,
    readers: Readers,
    _checkpointer: Checkpointer,
    _lock: File,
}

impl Embedded {
    /// Opens the store in that folder, or makes it if there is none.
    ///
    /// # Errors
    /// [`Error::Locked`] if the folder is in use, [`Error::Foreign`], [`Error::Newer`] or [`Error::Corrupt`] if there is a file that must not be
    /// used, [`Error::Unavailable`] if the folder cannot be read or written. The database file is left as it is.
    pub fn open(dir: impl AsRef<Path>) -> Result<Embedded, Error> {
        let open::Opened { path, connection, lock } = open::open(dir.as_ref())?;
        let checkpointer = Checkpointer::start(&path)?;
        let readers = Readers::start(&path)?;
        let writer = Writer::start(&path, connection, checkpointer.bell())?;
        Ok(Embedded(Arc::new(Threads { writer, readers, _checkpointer: checkpointer, _lock: lock })))
    }
}

#[async_trait]
impl Store for Embedded {
    /// One writer, one file: there is nothing to divide.
    fn shards(&self) -> u32 {
        1
    }

    fn commit(&self, batch: Batch) -> Commit {
        self.0.writer.commit(batch)
    }

    async fn claim(&self, shard: ShardId) -> Result<Head, Error> {
        self.0.writer.claim(shard).await
    }

    async fn head(&self, shard: ShardId) -> Result<Head, Error> {
        self.0.readers.read("read where a shard stands", move |db| shards::head(db, shard)).await
    }

    async fn journal(&self, entity: &EntityId, after: Seq, limit: usize) -> Result<Vec<Record>, Error> {
        let entity = entity.clone();
        self.0.readers.read("read a journal", move |db| events::journal(db, &entity, after, limit)).await
    }

    async fn snapshot(&self, entity: &EntityId) -> Result<Option<Snapshot>, Error> {
        let entity = entity.clone();
        self.0.readers.read("read a snapshot", move |db| snapshots::get(db, &entity)).await
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Error> {
        let run = run.clone();
        self.0.readers.read("read a run", move |db| runs::get(db, &run)).await
    }

    async fn runs(&self, filter: &RunFilter, after: Option<&RunCursor>, limit: usize) -> Result<Vec<RunRow>, Error> {
        let (filter, after) = (filter.clone(), after.cloned());
        self.0.readers.read("list runs", move |db| runs::list(db, &filter, after.as_ref(), limit)).await
    }

    async fn search(
        &self,
        filter: &RunFilter,
        text: &str,
        after: Option<&RunCursor>,
        limit: usize,
        examined_max: usize,
    ) -> Result<RunPage, Error> {
        let (filter, text, after) = (filter.clone(), text.to_owned(), after.cloned());
        self.0
            .readers
            .read("search runs", move |db| runs::search(db, &filter, &text, after.as_ref(), limit, examined_max))
            .await
    }

    async fn oldest(&self, shard: ShardId, after: Option<&RunCursor>, limit: usize) -> Result<Vec<RunRow>, Error> {
        let after = after.cloned();
        self.0
            .readers
            .read("list the oldest runs", move |db| runs::oldest(db, shard, after.as_ref(), limit))
            .await
    }

    async fn ended(&self, filter: &EndedFilter, after: Option<&EndedCursor>, limit: usize) -> Result<Vec<RunRow>, Error> {
        let (filter, after) = (filter.clone(), after.cloned());
        self.0
            .readers
            .read("list ended runs", move |db| runs::ended(db, &filter, after.as_ref(), limit))
            .await
    }

    async fn sweep(&self, shard: ShardId, term: u64, runs: &[Sweep]) -> Result<Vec<Swept>, Error> {
        self.0.writer.sweep(shard, term, runs.to_vec()).await
    }

    async fn half_swept(&self, shard: ShardId) -> Result<Vec<EntityId>, Error> {
        self.0.readers.read("list what is half swept", move |db| sweep::half(db, shard)).await
    }

    async fn to_recover(&self, shard: ShardId, after: Option<&RunCursor>, limit: usize) -> Result<Vec<RunRow>, Error> {
        let after = after.cloned();
        self.0
            .readers
            .read("list runs to recover", move |db| runs::to_recover(db, shard, after.as_ref(), limit))
            .await
    }

    async fn outbox(&self, shard: ShardId, after: Option<&(EntityId, u64)>, limit: usize) -> Result<Vec<Envelope>, Error> {
        let after = after.cloned();
        self.0.readers.read("list messages", move |db| outbox::list(db, shard, after.as_ref(), limit)).await
    }

    async fn letter(&self, letter: &LetterId) -> Result<Option<LetterRow>, Error> {
        let letter = letter.clone();
        self.0.readers.read("read a dead letter", move |db| letters::get(db, &letter)).await
    }

    async fn letters(&self, filter: &LetterFilter, after: Option<&LetterCursor>, limit: usize) -> Result<Vec<LetterRow>, Error> {
        let (filter, after) = (filter.clone(), after.cloned());
        self.0
            .readers
            .read("list dead letters", move |db| letters::list(db, &filter, letters::Order::NewestFirst, after.as_ref(), limit))
            .await
    }

    async fn oldest_letters(&self, filter: &LetterFilter, after: Option<&LetterCursor>, limit: usize) -> Result<Vec<LetterRow>, Error> {
        let (filter, after) = (filter.clone(), after.cloned());
        self.0
            .readers
            .read("list dead letters", move |db| letters::list(db, &filter, letters::Order::OldestFirst, after.as_ref(), limit))
            .await
    }

    async fn letters_count(&self, filter: &LetterFilter) -> Result<u64, Error> {
        let filter = filter.clone();
        self.0.readers.read("count dead letters", move |db| letters::count_of(db, &filter)).await
    }

    async fn keys(&self, names: &[KeyName]) -> Result<Vec<KeyRow>, Error> {
        let names = names.to_vec();
        self.0.readers.read("read keys", move |db| keys::get(db, &names)).await
    }

    async fn keys_below(&self, prefix: &str, after: Option<&KeyName>, limit: usize) -> Result<Vec<KeyRow>, Error> {
        let (prefix, after) = (prefix.to_string(), after.cloned());
        self.0.readers.read("list keys", move |db| keys::list(db, &prefix, after.as_ref(), limit)).await
    }

    async fn callbacks(&self, filter: &CallbackFilter, after: Option<&CallbackCursor>, limit: usize) -> Result<Vec<CallbackRow>, Error> {
        let (filter, after) = (filter.clone(), after.cloned());
        self.0
            .readers
            .read("list callbacks", move |db| callbacks::list(db, &filter, after.as_ref(), limit))
            .await
    }

    async fn callbacks_count(&self, shards: &[ShardId]) -> Result<u64, Error> {
        let shards = shards.to_vec();
        let count = move |db: &Connection| shards.iter().map(|shard| callbacks::count_of(db, *shard)).sum();
        self.0.readers.read("count callbacks", count).await
    }

    async fn backlogs(&self, shards: &[ShardId]) -> Result<Vec<Backlog>, Error> {
        let shards = shards.to_vec();
        let look = move |db: &Connection| {
            let of_one = |shard: &ShardId| {
                let (first_due, messages) = (timers::first_due(db, *shard)?, outbox::waiting(db, *shard, Backlog::COUNTED_MAX)?);
                Ok(Backlog { shard: *shard, first_due, messages })
            };
            shards.iter().map(of_one).collect()
        };
        self.0.readers.read("see what waits", look).await
    }

    async fn plan(&self, plan: &PlanId) -> Result<Option<PlanRow>, Error> {
        let plan = plan.clone();
        self.0.readers.read("read a plan", move |db| plans::get(db, &plan)).await
    }

    async fn plans(&self, filter: &PlanFilter, after: Option<&PlanCursor>, limit: usize) -> Result<Vec<PlanRow>, Error> {
        let (filter, after) = (filter.clone(), after.cloned());
        self.0.readers.read("list plans", move |db| plans::list(db, &filter, after.as_ref(), limit)).await
    }

    async fn task_counts(&self, plans: &[PlanId]) -> Result<Vec<TaskCount>, Error> {
        let plans = plans.to_vec();
        self.0.readers.read("count tasks", move |db| tasks::counts(db, &plans)).await
    }

    async fn tasks(&self, plan: &PlanId, after: Option<&RunId>, limit: usize) -> Result<Vec<RunRow>, Error> {
        let (plan, after) = (plan.clone(), after.cloned());
        self.0.readers.read("list tasks", move |db| tasks::of_plan(db, &plan, after.as_ref(), limit)).await
    }

    async fn latest_task(&self, tenant: &TenantId) -> Result<Option<RunRow>, Error> {
        let tenant = tenant.clone();
        self.0.readers.read("read the latest task", move |db| tasks::latest(db, &tenant)).await
    }

    async fn locks_of(&self, tenants: &[TenantId]) -> Result<Vec<LockRow>, Error> {
        let tenants = tenants.to_vec();
        self.0.readers.read("read locks", move |db| locks::get(db, &tenants)).await
    }

    async fn locks(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<LockRow>, Error> {
        let after = after.cloned();
        self.0.readers.read("list locks", move |db| locks::list(db, after.as_ref(), limit)).await
    }

    async fn timers(&self, shard: ShardId, after: Option<&TimerKey>, limit: usize) -> Result<Vec<Timer>, Error> {
        let after = after.cloned();
        self.0.readers.read("list timers", move |db| timers::list(db, shard, after.as_ref(), limit)).await
    }

    async fn feed(&self, after: &Position, entity: Option<&EntityId>, limit: usize) -> Result<Vec<Fed>, Error> {
        let (after, entity) = (after.clone(), entity.cloned());
        self.0
            .readers
            .read("read the feed", move |db| feed::after(db, &after, entity.as_ref(), limit))
            .await
    }

    async fn last(&self) -> Result<Position, Error> {
        self.0.readers.read("read the last place of the feed", feed::end).await
    }

    async fn definitions(&self) -> Result<Vec<Definition>, Error> {
        self.0.readers.read("read definitions", definitions::list).await
    }

    fn commits(&self) -> u64 {
        self.0.writer.commits()
    }
}
