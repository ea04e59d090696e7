//! The store for more than one machine: a PostgreSQL database that several instances share.
//!
//! ```text
//! schema steadfast   the tables of `migrations/`; people may read them with `psql` at any time, beginning with workflow_state and workflow_events
//! ```
//!
//! One connection writes. A task of its own takes requests in the order of their calls; batches that wait together are one transaction, sent in one round trip. Its
//! first statement moves the rows of the shards on, and refuses the rest if somebody else has them or the batches do not follow on. A few other connections read.
//!
//! The outcome of a commit whose connection broke is unknown. The next connection puts an id of its own into the rows of the shards, waiting for what is still
//! under way; what arrives later over the former one is refused there. So what [`head`](Store::head) says after that is final.
//!
//! Tested by `crates/cli/tests/it/postgres.rs`.

pub mod cluster;
mod connect;
mod desk;
mod error;
mod line;
mod migrate;
mod readable;
mod readers;
mod session;
mod settings;
mod sweeping;
mod tables;
mod tls;
mod types;
mod writer;

pub use migrate::Look;
pub use settings::{Settings, SettingsError};

use async_trait::async_trait;
use connect::Connector;
use parking_lot::Mutex;
use readers::{For, Readers};
use session::Name;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use steadfast_kernel::{EntityId, Envelope, KeyName, LetterId, PlanId, Record, RunId, Seq, Snapshot, TenantId, Timer};
use steadfast_store::{
    Backlog, Batch, CallbackCursor, CallbackFilter, CallbackRow, Commit, Definition, EndedCursor, EndedFilter, Error, Fed, Head, KeyRow,
    LetterCursor, LetterFilter, LetterRow, LockRow, PlanCursor, PlanFilter, PlanRow, Position, RunCursor, RunFilter, RunPage, RunRow,
    ShardId, Store, Sweep, Swept, TaskCount, TimerKey,
};
use tables::{
    Query, Read, callbacks, definitions, events, feed, integer, keys, letters, limit as rows, locks, outbox, plans, runs, shards,
    snapshots, sweep, tasks, timers,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use types::Free;
use writer::Writer;

/// Looks at a database, and changes nothing: nothing if it has no tables of ours yet.
///
/// # Errors
/// As those of [`Postgres::open`].
pub async fn look(settings: Settings) -> Result<Option<Look>, Error> {
    migrate::look(&Connector::new(settings)?).await
}

/// A store in a PostgreSQL database. Clones are the same store.
///
/// When the last clone is dropped, what is in line is committed, by a task that goes on until then.
#[derive(Clone)]
pub struct Postgres(Arc<Parts>);

struct Parts {
    connector: Arc<Connector>,
    writer: Writer,
    readers: Readers,
    shards: u32,
    /// What tells this store from all others that are open.
    process: String,
    /// The id of the instance that has joined by it.
    member: Arc<Mutex<Option<String>>>,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("settings", self.0.connector.settings())
            .field("shards", &self.0.shards)
            .finish()
    }
}

type Params<'a> = [&'a (dyn ToSql + Sync)];

impl Postgres {
    /// Opens the store in that database, and makes its tables if there are none.
    ///
    /// # Errors
    /// [`Error::Newer`] or [`Error::Corrupt`] if there are tables that must not be used, [`Error::Unavailable`] if a setting cannot be, or the database cannot be
    /// reached or written.
    pub async fn open(settings: Settings) -> Result<Postgres, Error> {
        let connector = Arc::new(Connector::new(settings)?);
        let shards = migrate::migrate(&connector).await?;
        let (process, member) = (Name::new()?.to_string(), Arc::default());
        let writer = Writer::start(Arc::clone(&connector), Arc::clone(&member)).await?;
        let readers = Readers::new(Arc::clone(&connector));
        Ok(Postgres(Arc::new(Parts { connector, writer, readers, shards, process, member })))
    }

    /// What the node of whoever serves this database is called, unless somebody says otherwise: the first name that was proposed, for ever.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the database cannot be reached or written.
    pub async fn node_name(&self, proposed: &str) -> Result<String, Error> {
        migrate::setting(&self.0.connector, "node", proposed).await
    }

    /// What tells this process from all others.
    pub fn process(&self) -> &str {
        self.0.process.trim_end_matches('.')
    }

    /// The address that the database sees this process at; nothing if it is on the same machine.
    ///
    /// # Errors
    /// If it cannot be asked.
    pub async fn seen_at(&self) -> Result<Option<IpAddr>, Error> {
        let seen = |row: &Row| tables::get::<Option<String>>(row, "seen");
        let seen = self
            .one("ask where the database sees us", "SELECT host(inet_client_addr()) AS seen", &[], seen)
            .await?;
        Ok(seen.flatten().and_then(|seen| seen.parse().ok()))
    }

    async fn list<T>(&self, who: For, what: &str, sql: &str, params: &Params<'_>, row: fn(&Row) -> Read<T>) -> Result<Vec<T>, Error> {
        self.list_by(&self.0.readers, who, what, sql, params, row).await
    }

    async fn list_by<T>(
        &self,
        readers: &Readers,
        who: For,
        what: &str,
        sql: &str,
        params: &Params<'_>,
        row: fn(&Row) -> Read<T>,
    ) -> Result<Vec<T>, Error> {
        let rows = readers.query(who, what, sql, params).await?;
        rows.iter()
            .map(row)
            .collect::<Read<_>>()
            .map_err(|wrong| self.0.connector.database.corrupt(wrong.0))
    }

    async fn one<T>(&self, what: &str, sql: &str, params: &Params<'_>, row: fn(&Row) -> Read<T>) -> Result<Option<T>, Error> {
        Ok(self.list(For::Work, what, sql, params, row).await?.into_iter().next())
    }

    async fn asked<T>(&self, who: For, what: &str, query: Query<'_>, row: fn(&Row) -> Read<T>) -> Result<Vec<T>, Error> {
        let params: Vec<&(dyn ToSql + Sync)> = query.params.iter().map(|param| &**param as &(dyn ToSql + Sync)).collect();
        self.list(who, what, &query.sql, &params, row).await
    }
}

/// The only column of a row that counts something.
fn counted(row: &Row) -> Read<u64> {
    row.try_get::<_, i64>(0)
        .map(i64::cast_unsigned)
        .map_err(|_| tables::Wrong("a count is no number".into()))
}

/// Shards, for SQL.
fn numbers(shards: &[ShardId]) -> Vec<i32> {
    shards.iter().map(|shard| shard.cast_signed()).collect()
}

#[async_trait]
impl Store for Postgres {
    fn shards(&self) -> u32 {
        self.0.shards
    }

    fn commit(&self, batch: Batch) -> Commit {
        self.0.writer.commit(batch)
    }

    async fn claim(&self, shard: ShardId) -> Result<Head, Error> {
        self.0.writer.claim(shard).await
    }

    async fn head(&self, shard: ShardId) -> Result<Head, Error> {
        self.0.writer.head(shard).await
    }

    async fn journal(&self, entity: &EntityId, after: Seq, limit: usize) -> Result<Vec<Record>, Error> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        self.list(For::Work, "read a journal", events::JOURNAL, &[&entity.to_string(), &after, &rows(limit)], events::record)
            .await
    }

    async fn snapshot(&self, entity: &EntityId) -> Result<Option<Snapshot>, Error> {
        self.one("read a snapshot", snapshots::GET, &[&entity.to_string()], snapshots::row).await
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Error> {
        self.one("read a run", runs::GET, &[&run.as_str()], runs::row).await
    }

    async fn runs(&self, filter: &RunFilter, after: Option<&RunCursor>, limit: usize) -> Result<Vec<RunRow>, Error> {
        self.asked(For::People, "list runs", runs::list(filter, after, limit), runs::row).await
    }

    async fn search(
        &self,
        filter: &RunFilter,
        text: &str,
        after: Option<&RunCursor>,
        limit: usize,
        examined_max: usize,
    ) -> Result<RunPage, Error> {
        let query = runs::search(filter, text, after, limit, examined_max);
        let examined = self.asked(For::People, "search runs", query, runs::examined).await?;
        Ok(runs::page(examined, limit, examined_max))
    }

    async fn oldest(&self, shard: ShardId, after: Option<&RunCursor>, limit: usize) -> Result<Vec<RunRow>, Error> {
        let (at, run) = runs::from(after);
        self.list(For::Work, "list the oldest runs", runs::OLDEST, &[&shard.cast_signed(), &at, &run, &rows(limit)], runs::row)
            .await
    }

    async fn ended(&self, filter: &EndedFilter, after: Option<&EndedCursor>, limit: usize) -> Result<Vec<RunRow>, Error> {
        self.asked(For::Work, "list ended runs", runs::ended(filter, after, limit), runs::row).await
    }

    async fn sweep(&self, shard: ShardId, term: u64, ended: &[Sweep]) -> Result<Vec<Swept>, Error> {
        self.0.writer.sweep(shard, term, ended.to_vec()).await
    }

    async fn half_swept(&self, shard: ShardId) -> Result<Vec<EntityId>, Error> {
        self.list(For::Work, "list what is half swept", sweep::HALF, &[&shard.cast_signed()], sweep::half)
            .await
    }

    async fn to_recover(&self, shard: ShardId, after: Option<&RunCursor>, limit: usize) -> Result<Vec<RunRow>, Error> {
        let (at, run) = runs::from(after);
        self.list(For::Work, "list runs to recover", runs::RECOVER, &[&shard.cast_signed(), &at, &run, &rows(limit)], runs::row)
            .await
    }

    async fn outbox(&self, shard: ShardId, after: Option<&(EntityId, u64)>, limit: usize) -> Result<Vec<Envelope>, Error> {
        let (from, seq) = after.map(|(from, seq)| (from.to_string(), integer(*seq))).unwrap_or_default();
        self.list(For::Work, "list messages", outbox::LIST, &[&shard.cast_signed(), &from, &seq, &rows(limit)], outbox::envelope)
            .await
    }

    async fn letter(&self, letter: &LetterId) -> Result<Option<LetterRow>, Error> {
        let (home, seq) = letters::key(letter);
        self.one("read a dead letter", letters::GET, &[&home, &seq], letters::row).await
    }

    async fn letters(&self, filter: &LetterFilter, after: Option<&LetterCursor>, limit: usize) -> Result<Vec<LetterRow>, Error> {
        self.asked(For::People, "list dead letters", letters::list(filter, letters::Order::NewestFirst, after, limit), letters::row)
            .await
    }

    async fn oldest_letters(&self, filter: &LetterFilter, after: Option<&LetterCursor>, limit: usize) -> Result<Vec<LetterRow>, Error> {
        self.asked(For::People, "list dead letters", letters::list(filter, letters::Order::OldestFirst, after, limit), letters::row)
            .await
    }

    async fn letters_count(&self, filter: &LetterFilter) -> Result<u64, Error> {
        let counts = self.asked(For::People, "count dead letters", letters::count_of(filter), counted).await?;
        Ok(counts.first().copied().unwrap_or_default())
    }

    async fn keys(&self, names: &[KeyName]) -> Result<Vec<KeyRow>, Error> {
        let names: Vec<_> = names.iter().map(KeyName::as_str).collect();
        self.list(For::Work, "read keys", keys::GET, &[&names], keys::row).await
    }

    async fn keys_below(&self, prefix: &str, after: Option<&KeyName>, limit: usize) -> Result<Vec<KeyRow>, Error> {
        if prefix.contains('\0') {
            return Ok(Vec::new()); // no name has that, and PostgreSQL has no such text
        }
        let after = after.map_or("", KeyName::as_str);
        self.list(For::People, "list keys", keys::LIST, &[&prefix.max(after), &keys::past(prefix), &after, &rows(limit)], keys::row)
            .await
    }

    async fn callbacks(&self, filter: &CallbackFilter, after: Option<&CallbackCursor>, limit: usize) -> Result<Vec<CallbackRow>, Error> {
        self.asked(For::Work, "list callbacks", callbacks::list(filter, after, limit), callbacks::row).await
    }

    async fn callbacks_count(&self, shards: &[ShardId]) -> Result<u64, Error> {
        let count = self.one("count callbacks", callbacks::COUNT, &[&numbers(shards)], counted).await?;
        Ok(count.unwrap_or_default())
    }

    async fn backlogs(&self, shards: &[ShardId]) -> Result<Vec<Backlog>, Error> {
        let params: [&(dyn ToSql + Sync); 2] = [&numbers(shards), &integer(Backlog::COUNTED_MAX)];
        self.list(For::People, "see what waits", shards::BACKLOGS, &params, shards::backlog).await
    }

    async fn plan(&self, plan: &PlanId) -> Result<Option<PlanRow>, Error> {
        self.one("read a plan", plans::GET, &[&plan.as_str()], plans::row).await
    }

    async fn plans(&self, filter: &PlanFilter, after: Option<&PlanCursor>, limit: usize) -> Result<Vec<PlanRow>, Error> {
        self.asked(For::People, "list plans", plans::list(filter, after, limit), plans::row).await
    }

    async fn task_counts(&self, plans: &[PlanId]) -> Result<Vec<TaskCount>, Error> {
        let plans: Vec<_> = plans.iter().map(PlanId::as_str).collect();
        self.list(For::People, "count tasks", tasks::COUNTS, &[&plans], tasks::count_row).await
    }

    async fn tasks(&self, plan: &PlanId, after: Option<&RunId>, limit: usize) -> Result<Vec<RunRow>, Error> {
        let after = after.map_or("", RunId::as_str);
        self.list(For::People, "list tasks", tasks::OF_PLAN, &[&plan.as_str(), &after, &rows(limit)], runs::row)
            .await
    }

    async fn latest_task(&self, tenant: &TenantId) -> Result<Option<RunRow>, Error> {
        self.one("read the latest task", tasks::LATEST, &[&Free(tenant.as_str())], runs::row).await
    }

    async fn locks_of(&self, tenants: &[TenantId]) -> Result<Vec<LockRow>, Error> {
        let tenants: Vec<_> = tenants.iter().map(TenantId::as_str).collect();
        self.list(For::Work, "read locks", locks::GET, &[&tenants], locks::row).await
    }

    async fn locks(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<LockRow>, Error> {
        self.list(For::People, "list locks", locks::LIST, &[&after.map_or("", TenantId::as_str), &rows(limit)], locks::row)
            .await
    }

    async fn timers(&self, shard: ShardId, after: Option<&TimerKey>, limit: usize) -> Result<Vec<Timer>, Error> {
        self.asked(For::Work, "list timers", timers::list(shard, after, limit), timers::timer).await
    }

    async fn feed(&self, after: &Position, entity: Option<&EntityId>, limit: usize) -> Result<Vec<Fed>, Error> {
        let (what, share) = ("read the feed", feed::share(limit, self.0.shards));
        let page = self.asked(For::People, what, feed::after(after, entity, share, limit), feed::fed).await?;
        if entity.is_some() || !feed::is_cut(&page, share, limit) {
            return Ok(page);
        }
        self.asked(For::People, what, feed::after(after, entity, limit, limit), feed::fed).await
    }

    async fn last(&self) -> Result<Position, Error> {
        let places = self.list(For::Work, "read the last place of the feed", feed::LAST, &[], feed::place).await?;
        Ok(places.into_iter().collect())
    }

    async fn definitions(&self) -> Result<Vec<Definition>, Error> {
        self.list(For::People, "read definitions", definitions::LIST, &[], definitions::row).await
    }

    fn commits(&self) -> u64 {
        self.0.writer.commits()
    }
}
