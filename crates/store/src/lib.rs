//! Defines the storage interface: one [`commit`](Store::commit) and a few reads.
//!
//! A store keeps journals, and rows that are folds of them. It makes no decision and never reads the content of a record.
//! This crate has the [`Store`] trait with the [`Batch`] that it commits, and the reference store in [`memory`].
//! The suites that every store must pass are in a crate for tests, `steadfast-storage-testkit`.
//!
//! Tested by `crates/storage-testkit/src/contract/mod.rs`.
//! Tested by `crates/storage-testkit/src/differential/mod.rs`.

mod backlog;
mod batch;
mod commons;
mod error;
mod feed;
mod filter;
mod hearing;
mod keys;
mod leases;
mod letters;
pub mod memory;
mod plans;
mod shards;
mod sweep;
mod text;

pub use backlog::Backlog;
pub use batch::{Append, Batch, Definition, Fence, Forgotten, LetterChange, LetterRow, OutboxChange, RunRow, TimerChange};
pub use commons::{
    AsOf, Commons, CommonsError, LockHolder, PlanField, SharedCheckpoint, SharedLock, SharedPlan, SharedTask, TaskField, Write, Wrote,
};
pub use error::Error;
pub use feed::{Fed, Place, Position};
pub use filter::{EXAMINED_MAX, EXAMINED_STEP, EndedCursor, EndedFilter, RunCursor, RunFilter, RunPage};
pub use hearing::Hearing;
pub use keys::{CallbackChange, CallbackCursor, CallbackFilter, CallbackRow, EndedBelow, KeyChange, KeyRow, key_changes};
pub use leases::{Beat, Heard, Held, Instance, Lease, Leases, Member};
pub use letters::{LetterCursor, LetterFilter, LetterKind};
pub use plans::{LockChange, LockRow, PlanCursor, PlanFilter, PlanRow, TaskCount, TaskRow};
pub use shards::shard_of;
pub use sweep::{Sweep, Swept};
pub use text::TEXT_MAX;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use steadfast_kernel::{
    EntityId, Envelope, KeyName, LetterId, PlanId, Record, RunId, Seq, Snapshot, TenantId, Timer, TimerName, Timestamp,
};

/// The number of a shard.
pub type ShardId = u32;

/// Where a shard stands: who may write it, and the number of its last commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Rises with every claim; only the last claim may write.
    pub term: u64,
    /// The number of the last batch that was applied.
    pub seq: u64,
}

/// The outcome of a commit, once it is known.
pub type Commit = BoxFuture<'static, Result<(), Error>>;

/// A durable store. Calls may come from any thread; reads see every commit whose outcome was known before they began, and never half of one. A list has as many
/// as its limit allows, fewer only if there are no more. Texts are compared by their bytes.
///
/// The contract suite of `steadfast-storage-testkit` has a case for each of these promises.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// How many shards there are, numbered from 0. It is fixed when the store is made: [`shard_of`] says where everything is.
    fn shards(&self) -> u32;

    /// Applies a batch, whole or not at all. `Ok` means durable: it survives the process and the machine's power.
    ///
    /// The batch takes its place in line when this is called, not when the future is polled, and batches are applied in that order. A
    /// caller need not wait for one outcome before the next call: a batch whose fence does not follow on from the last one applied fails, so
    /// whatever was built on a failed batch fails with it. Dropping the future does not take the batch back.
    ///
    /// # Errors
    /// [`Error::Fenced`] if another claim has the shard, [`Error::Gap`] if the fence's `after` is not the number of the last batch; nothing
    /// was applied. After any other error it is unknown until [`head`](Store::head) tells.
    fn commit(&self, batch: Batch) -> Commit;

    /// Takes a shard over: its term rises by one, durably, and every earlier holder's commits fail from here on.
    async fn claim(&self, shard: ShardId) -> Result<Head, Error>;

    /// Where a shard stands.
    async fn head(&self, shard: ShardId) -> Result<Head, Error>;

    /// The journal of an entity in order, from the entry after that one, at most `limit` entries.
    async fn journal(&self, entity: &EntityId, after: Seq, limit: usize) -> Result<Vec<Record>, Error>;

    /// The last saved fold of an entity.
    async fn snapshot(&self, entity: &EntityId) -> Result<Option<Snapshot>, Error>;

    /// The row of a run.
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Error>;

    /// The rows of runs that the filter lets through, newest first: by the time of their beginning and then by id, both descending. From the one
    /// after `after`, at most `limit`.
    async fn runs(&self, filter: &RunFilter, after: Option<&RunCursor>, limit: usize) -> Result<Vec<RunRow>, Error>;

    /// The same, of those runs that [have](RunRow::has) that text. No more than `examined_max` runs that the filter lets through are looked at, so a page may have
    /// fewer than `limit` though there are more: it goes on at the last one that was looked at.
    async fn search(
        &self,
        filter: &RunFilter,
        text: &str,
        after: Option<&RunCursor>,
        limit: usize,
        examined_max: usize,
    ) -> Result<RunPage, Error>;

    /// The rows of a shard's runs, oldest first: by the time of their beginning and then by id. From the one after `after`, at most `limit`.
    async fn oldest(&self, shard: ShardId, after: Option<&RunCursor>, limit: usize) -> Result<Vec<RunRow>, Error>;

    /// The rows of ended runs that the filter lets through, by the time of their end and then by id. From the one after `after`, at most `limit`.
    async fn ended(&self, filter: &EndedFilter, after: Option<&EndedCursor>, limit: usize) -> Result<Vec<RunRow>, Error>;

    /// Removes ended runs and plans, in their order, as far as it can be done in one short step: what became of each that was looked at, at least one. One is kept
    /// if it is of another shard, has not ended at the time that is given, or has messages that are not settled; and a plan if there is a row of a task of it.
    /// Of one that is not there nothing is left.
    ///
    /// The caller sees to it that nobody writes them meanwhile. A step is whole or absent, but it is no batch: it does not move the shard on, and it is not
    /// counted.
    ///
    /// # Errors
    /// [`Error::Fenced`] if another claim than `term` has the shard; nothing was removed. After any other error it is unknown, and may be asked for again.
    async fn sweep(&self, shard: ShardId, term: u64, ended: &[Sweep]) -> Result<Vec<Swept>, Error>;

    /// What of a shard was swept and is not gone yet, in the order (entity as text).
    async fn half_swept(&self, shard: ShardId) -> Result<Vec<EntityId>, Error>;

    /// The rows of a shard's runs that a restart has something to do with, oldest first: by the time of their beginning and then by id. From the one
    /// after `after`, at most `limit`.
    async fn to_recover(&self, shard: ShardId, after: Option<&RunCursor>, limit: usize) -> Result<Vec<RunRow>, Error>;

    /// The messages of a shard's entities that are not settled, in the order (sender as text, sequence), from the one after `after`, at
    /// most `limit`.
    async fn outbox(&self, shard: ShardId, after: Option<&(EntityId, u64)>, limit: usize) -> Result<Vec<Envelope>, Error>;

    /// A dead letter.
    async fn letter(&self, letter: &LetterId) -> Result<Option<LetterRow>, Error>;

    /// Dead letters that the filter lets through, newest first: by the time of their arrival and then by id (home as text, then sequence), all descending.
    /// From the one after `after`, at most `limit`.
    async fn letters(&self, filter: &LetterFilter, after: Option<&LetterCursor>, limit: usize) -> Result<Vec<LetterRow>, Error>;

    /// The same, oldest first: in exactly the other order.
    async fn oldest_letters(&self, filter: &LetterFilter, after: Option<&LetterCursor>, limit: usize) -> Result<Vec<LetterRow>, Error>;

    /// How many dead letters the filter lets through.
    async fn letters_count(&self, filter: &LetterFilter) -> Result<u64, Error>;

    /// The rows of those keys that there are, in the order of their names. One that is named twice is there once.
    async fn keys(&self, names: &[KeyName]) -> Result<Vec<KeyRow>, Error>;

    /// The rows of keys whose names begin so, in the order of their names, from the one after `after`, at most `limit`.
    async fn keys_below(&self, prefix: &str, after: Option<&KeyName>, limit: usize) -> Result<Vec<KeyRow>, Error>;

    /// The ends of keys that are to be told and that the filter lets through, those that have waited for longest first: by the time of their end, by name
    /// and by revision. From the one after `after`, at most `limit`.
    async fn callbacks(&self, filter: &CallbackFilter, after: Option<&CallbackCursor>, limit: usize) -> Result<Vec<CallbackRow>, Error>;

    /// How many ends of these shards' keys are to be told, together. No shard is named twice.
    async fn callbacks_count(&self, shards: &[ShardId]) -> Result<u64, Error>;

    /// The row of a plan.
    async fn plan(&self, plan: &PlanId) -> Result<Option<PlanRow>, Error>;

    /// The rows of plans that the filter lets through, newest first: by the time of their creation and then by id, both descending. From the one after
    /// `after`, at most `limit`.
    async fn plans(&self, filter: &PlanFilter, after: Option<&PlanCursor>, limit: usize) -> Result<Vec<PlanRow>, Error>;

    /// How many tasks of these plans there are of each status, in the order (plan, name of the status); statuses that no task has are left out.
    async fn task_counts(&self, plans: &[PlanId]) -> Result<Vec<TaskCount>, Error>;

    /// The rows of a plan's tasks, in the order of their ids, from the one after `after`, at most `limit`.
    async fn tasks(&self, plan: &PlanId, after: Option<&RunId>, limit: usize) -> Result<Vec<RunRow>, Error>;

    /// The row of a tenant's task that began last; of several that began at once, the one with the highest id.
    async fn latest_task(&self, tenant: &TenantId) -> Result<Option<RunRow>, Error>;

    /// The locks of those tenants that somebody has, in the order of the tenants. One that is named twice is there once.
    async fn locks_of(&self, tenants: &[TenantId]) -> Result<Vec<LockRow>, Error>;

    /// The locks that somebody has, in the order of their tenants, from the one after `after`, at most `limit`.
    async fn locks(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<LockRow>, Error>;

    /// The timers of a shard in the order (due, entity as text, name), from the one after `after`, at most `limit`.
    async fn timers(&self, shard: ShardId, after: Option<&TimerKey>, limit: usize) -> Result<Vec<Timer>, Error>;

    /// What waits in each of these shards, in their order. No shard is named twice.
    async fn backlogs(&self, shards: &[ShardId]) -> Result<Vec<Backlog>, Error>;

    /// What was written after that position, in every shard in the order of writing, at most `limit` entries; of one entity, if one is named.
    ///
    /// The entries of an entity come in the order of its journal, and a place is never given twice, also when what stood there was swept: whoever goes on from
    /// the [position](Position::advance) that it has come to misses nothing that is still kept.
    async fn feed(&self, after: &Position, entity: Option<&EntityId>, limit: usize) -> Result<Vec<Fed>, Error>;

    /// The position of what was written last.
    async fn last(&self) -> Result<Position, Error>;

    /// The texts of all definitions that were ever kept, by the time at which they were first seen and then by hash.
    async fn definitions(&self) -> Result<Vec<Definition>, Error>;

    /// How many batches were made durable since the store was opened; claims are not counted.
    fn commits(&self) -> u64;
}

/// The place of a timer in the order of a shard's timers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerKey {
    /// When it is due.
    pub due: Timestamp,
    /// Whose it is.
    pub entity: EntityId,
    /// Which one.
    pub name: TimerName,
}

impl From<&Timer> for TimerKey {
    fn from(timer: &Timer) -> Self {
        TimerKey { due: timer.due, entity: timer.entity.clone(), name: timer.name.clone() }
    }
}
