//! The reference store: everything in memory, with faults on demand.
//!
//! It is the model that other stores are compared with and the store of tests. What it holds outlives the handle: [`Memory::reopen`] gives a
//! new handle on the same data, as a restart would, and the old one is dead from then on.

mod faults;
mod leases;
mod sweep;
mod tables;

pub use faults::{Fault, Faults, Gate};
pub use leases::MemoryLeases;

use crate::{
    Backlog, Batch, CallbackCursor, CallbackFilter, CallbackRow, Commit, Definition, EndedCursor, EndedFilter, Error, Fed, Head, KeyRow,
    LetterCursor, LetterFilter, LetterRow, LockRow, PlanCursor, PlanFilter, PlanRow, Position, RunCursor, RunFilter, RunPage, RunRow,
    ShardId, Store, Sweep, Swept, TaskCount, TimerKey,
};
use async_trait::async_trait;
use futures_util::FutureExt;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use steadfast_kernel::{EntityId, Envelope, KeyName, LetterId, PlanId, Record, RunId, Seq, Snapshot, TenantId, Timer};
use tables::Tables;

/// A store in memory. Clones are the same store.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    tables: Arc<Mutex<Tables>>,
    /// Everything that was applied, in order.
    history: Arc<Mutex<Vec<Past>>>,
    faults: Faults,
    life: Arc<Life>,
    /// One unless said otherwise.
    shards: Option<NonZeroU32>,
}

/// Something that was applied.
#[derive(Clone, Debug)]
enum Past {
    Batch(Box<Batch>),
    /// One step, with how many entries it removed at the most.
    Sweep(ShardId, Vec<Sweep>, usize),
}

/// What belongs to one opening of the store.
#[derive(Debug, Default)]
struct Life {
    dead: AtomicBool,
    commits: AtomicU64,
    entries_read: AtomicU64,
    rows_walked: AtomicU64,
    joined: Mutex<Option<leases::Joined>>,
}

impl Memory {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store of so many shards, at least one.
    pub fn of_shards(shards: u32) -> Self {
        Memory { shards: NonZeroU32::new(shards), ..Memory::default() }
    }

    /// Where to ask for faults.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// This handle is dead from here on, as after a crash of its process.
    pub fn crash(&self) {
        self.life.dead.store(true, Ordering::SeqCst);
    }

    /// What a restart finds: the same data behind a new handle without faults. This handle is dead from here on.
    #[must_use]
    pub fn reopen(&self) -> Self {
        self.crash();
        self.another()
    }

    /// What another process has that shares the data: a handle with a life and faults of its own. This one lives on.
    #[must_use]
    pub fn another(&self) -> Self {
        Memory { tables: Arc::clone(&self.tables), history: Arc::clone(&self.history), shards: self.shards, ..Memory::default() }
    }

    /// A store that has only the first so many of this one's commits, as if the machine had died after them.
    #[must_use]
    pub fn rewound(&self, commits: usize) -> Self {
        let (mut tables, mut history, mut left) = (Tables::default(), Vec::new(), commits);
        for past in self.history.lock().iter() {
            match past {
                Past::Batch(_) if left == 0 => break,
                Past::Batch(batch) => {
                    tables.put(batch);
                    left -= 1;
                }
                Past::Sweep(shard, runs, entries) => drop(tables.sweep_step(*shard, runs, *entries)),
            }
            history.push(past.clone());
        }
        Memory { tables: Arc::new(Mutex::new(tables)), history: Arc::new(Mutex::new(history)), shards: self.shards, ..Memory::default() }
    }

    /// The last so many commits are lost for everybody who shares the data, as after a failover to a standby that was behind. Who has which shard stays.
    pub fn lose(&self, commits: usize) {
        let count = self.history.lock().iter().filter(|past| matches!(past, Past::Batch(_))).count();
        let older = self.rewound(count.saturating_sub(commits));
        let mut tables = self.tables.lock();
        let lost = std::mem::replace(&mut *tables, std::mem::take(&mut *older.tables.lock()));
        for (shard, Head { term, .. }) in lost.heads {
            tables.heads.entry(shard).or_insert(Head { term, seq: 0 }).term = term;
        }
        *self.history.lock() = std::mem::take(&mut *older.history.lock());
    }

    /// True once a fault has crashed it or it was opened again elsewhere.
    pub fn is_dead(&self) -> bool {
        self.life.dead.load(Ordering::SeqCst)
    }

    /// Everything of which there is an entry or a snapshot, in the order of their ids.
    pub fn entities(&self) -> BTreeSet<EntityId> {
        let tables = self.tables.lock();
        tables.events.keys().map(|(entity, _)| entity).chain(tables.snapshots.keys()).cloned().collect()
    }

    /// How many journal entries were read since it was opened.
    pub fn entries_read(&self) -> u64 {
        self.life.entries_read.load(Ordering::SeqCst)
    }

    /// How many times a list of a shard's oldest or ended runs was asked for since it was opened, and how many rows that were, together.
    pub fn rows_walked(&self) -> u64 {
        self.life.rows_walked.load(Ordering::SeqCst)
    }

    fn walked(&self, rows: Vec<RunRow>) -> Vec<RunRow> {
        self.life.rows_walked.fetch_add(1 + rows.len() as u64, Ordering::SeqCst);
        rows
    }

    fn alive(&self) -> Result<(), Error> {
        if self.is_dead() {
            return Err(crashed());
        }
        Ok(())
    }

    fn apply(&self, batch: &Batch) -> Result<(), Error> {
        self.alive()?;
        self.tables.lock().apply(batch)?;
        self.history.lock().push(Past::Batch(Box::new(batch.clone())));
        self.life.commits.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn sweep_step(&self, shard: ShardId, term: u64, runs: &[Sweep], entries: usize) -> Result<Vec<Swept>, Error> {
        self.alive()?;
        let swept = self.tables.lock().sweep(shard, term, runs, entries)?;
        self.history.lock().push(Past::Sweep(shard, runs.to_vec(), entries));
        Ok(swept)
    }

    /// Does it unless the fault says otherwise. The outcome is decided at once; only its announcement may be held back.
    fn with<T>(&self, fault: Option<&Fault>, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let crash = || {
            self.crash();
            Err(crashed())
        };
        match fault {
            None | Some(Fault::Hold(_) | Fault::Late(_)) => work(),
            Some(Fault::Fail) => Err(asked_for()),
            Some(Fault::Doubt) => work().and_then(|_| Err(asked_for())),
            Some(Fault::CrashBefore) => crash(),
            Some(Fault::CrashAfter) => work().and_then(|_| crash()),
        }
    }
}

fn crashed() -> Error {
    Error::Unavailable { what: "the store has crashed".into(), source: None }
}

fn asked_for() -> Error {
    Error::Unavailable { what: "a fault was asked for".into(), source: None }
}

#[async_trait]
impl Store for Memory {
    fn shards(&self) -> u32 {
        self.shards.map_or(1, NonZeroU32::get)
    }

    fn commit(&self, batch: Batch) -> Commit {
        let fault = self.faults.next(&batch);
        if let Some(Fault::Late(gate)) = fault {
            let store = self.clone();
            let late = async move {
                gate.opened().await;
                store.apply(&batch)
            };
            return late.boxed();
        }
        let outcome = self.with(fault.as_ref(), || self.apply(&batch));
        async move {
            if let Some(Fault::Hold(gate)) = fault {
                gate.opened().await;
            }
            outcome
        }
        .boxed()
    }

    async fn claim(&self, shard: ShardId) -> Result<Head, Error> {
        self.alive()?;
        let joined = self.life.joined.lock().clone();
        match joined {
            Some(joined) => joined.claim(shard, &self.tables),
            None => Ok(self.tables.lock().claim(shard)),
        }
    }

    async fn head(&self, shard: ShardId) -> Result<Head, Error> {
        self.alive()?;
        Ok(self.tables.lock().head(shard))
    }

    async fn journal(&self, entity: &EntityId, after: Seq, limit: usize) -> Result<Vec<Record>, Error> {
        self.alive()?;
        let journal = self.tables.lock().journal(entity, after, limit);
        self.life.entries_read.fetch_add(journal.len() as u64, Ordering::SeqCst);
        Ok(journal)
    }

    async fn snapshot(&self, entity: &EntityId) -> Result<Option<Snapshot>, Error> {
        self.alive()?;
        Ok(self.tables.lock().snapshot(entity))
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Error> {
        self.alive()?;
        Ok(self.tables.lock().run(run))
    }

    async fn runs(&self, filter: &RunFilter, after: Option<&RunCursor>, limit: usize) -> Result<Vec<RunRow>, Error> {
        self.alive()?;
        Ok(self.tables.lock().runs(filter, after, limit))
    }

    async fn search(
        &self,
        filter: &RunFilter,
        text: &str,
        after: Option<&RunCursor>,
        limit: usize,
        examined_max: usize,
    ) -> Result<RunPage, Error> {
        self.alive()?;
        let rows = self.tables.lock().runs(filter, after, examined_max);
        RunPage::search(rows.into_iter().map(Ok), text, limit, examined_max)
    }

    async fn oldest(&self, shard: ShardId, after: Option<&RunCursor>, limit: usize) -> Result<Vec<RunRow>, Error> {
        self.alive()?;
        Ok(self.walked(self.tables.lock().oldest(shard, after, limit)))
    }

    async fn ended(&self, filter: &EndedFilter, after: Option<&EndedCursor>, limit: usize) -> Result<Vec<RunRow>, Error> {
        self.alive()?;
        Ok(self.walked(self.tables.lock().ended(filter, after, limit)))
    }

    async fn sweep(&self, shard: ShardId, term: u64, runs: &[Sweep]) -> Result<Vec<Swept>, Error> {
        let (fault, entries) = self.faults.next_sweep(runs);
        let step = || self.sweep_step(shard, term, runs, entries.unwrap_or(sweep::STEP));
        let outcome = self.with(fault.as_ref(), step);
        if let Some(Fault::Hold(gate) | Fault::Late(gate)) = fault {
            gate.opened().await;
        }
        outcome
    }

    async fn half_swept(&self, shard: ShardId) -> Result<Vec<EntityId>, Error> {
        self.alive()?;
        Ok(self.tables.lock().half_swept(shard))
    }

    async fn to_recover(&self, shard: ShardId, after: Option<&RunCursor>, limit: usize) -> Result<Vec<RunRow>, Error> {
        self.alive()?;
        if self.faults.is_unreadable(shard) {
            return Err(Error::Corrupt { path: "memory".into(), why: "a fault was asked for".into() });
        }
        Ok(self.tables.lock().to_recover(shard, after, limit))
    }

    async fn outbox(&self, shard: ShardId, after: Option<&(EntityId, u64)>, limit: usize) -> Result<Vec<Envelope>, Error> {
        self.alive()?;
        Ok(self.tables.lock().outbox(shard, after, limit))
    }

    async fn letter(&self, letter: &LetterId) -> Result<Option<LetterRow>, Error> {
        self.alive()?;
        Ok(self.tables.lock().letter(letter))
    }

    async fn letters(&self, filter: &LetterFilter, after: Option<&LetterCursor>, limit: usize) -> Result<Vec<LetterRow>, Error> {
        self.alive()?;
        Ok(self.tables.lock().letters(filter, after, limit))
    }

    async fn oldest_letters(&self, filter: &LetterFilter, after: Option<&LetterCursor>, limit: usize) -> Result<Vec<LetterRow>, Error> {
        self.alive()?;
        Ok(self.tables.lock().oldest_letters(filter, after, limit))
    }

    async fn letters_count(&self, filter: &LetterFilter) -> Result<u64, Error> {
        self.alive()?;
        Ok(self.tables.lock().letters_count(filter))
    }

    async fn keys(&self, names: &[KeyName]) -> Result<Vec<KeyRow>, Error> {
        self.alive()?;
        Ok(self.tables.lock().keys(names))
    }

    async fn keys_below(&self, prefix: &str, after: Option<&KeyName>, limit: usize) -> Result<Vec<KeyRow>, Error> {
        self.alive()?;
        Ok(self.tables.lock().keys_below(prefix, after, limit))
    }

    async fn callbacks(&self, filter: &CallbackFilter, after: Option<&CallbackCursor>, limit: usize) -> Result<Vec<CallbackRow>, Error> {
        self.alive()?;
        Ok(self.tables.lock().callbacks(filter, after, limit))
    }

    async fn callbacks_count(&self, shards: &[ShardId]) -> Result<u64, Error> {
        self.alive()?;
        Ok(self.tables.lock().callbacks_count(shards))
    }

    async fn plan(&self, plan: &PlanId) -> Result<Option<PlanRow>, Error> {
        self.alive()?;
        Ok(self.tables.lock().plan(plan))
    }

    async fn plans(&self, filter: &PlanFilter, after: Option<&PlanCursor>, limit: usize) -> Result<Vec<PlanRow>, Error> {
        self.alive()?;
        Ok(self.tables.lock().plans(filter, after, limit))
    }

    async fn task_counts(&self, plans: &[PlanId]) -> Result<Vec<TaskCount>, Error> {
        self.alive()?;
        Ok(self.tables.lock().task_counts(plans))
    }

    async fn tasks(&self, plan: &PlanId, after: Option<&RunId>, limit: usize) -> Result<Vec<RunRow>, Error> {
        self.alive()?;
        Ok(self.tables.lock().tasks(plan, after, limit))
    }

    async fn latest_task(&self, tenant: &TenantId) -> Result<Option<RunRow>, Error> {
        self.alive()?;
        Ok(self.tables.lock().latest_task(tenant))
    }

    async fn locks_of(&self, tenants: &[TenantId]) -> Result<Vec<LockRow>, Error> {
        self.alive()?;
        Ok(self.tables.lock().locks_of(tenants))
    }

    async fn locks(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<LockRow>, Error> {
        self.alive()?;
        Ok(self.tables.lock().locks(after, limit))
    }

    async fn timers(&self, shard: ShardId, after: Option<&TimerKey>, limit: usize) -> Result<Vec<Timer>, Error> {
        self.alive()?;
        Ok(self.tables.lock().timers(shard, after, limit))
    }

    async fn backlogs(&self, shards: &[ShardId]) -> Result<Vec<Backlog>, Error> {
        self.alive()?;
        let tables = self.tables.lock();
        Ok(shards.iter().map(|shard| tables.backlog(*shard)).collect())
    }

    async fn feed(&self, after: &Position, entity: Option<&EntityId>, limit: usize) -> Result<Vec<Fed>, Error> {
        self.alive()?;
        Ok(self.tables.lock().feed(after, entity, limit))
    }

    async fn last(&self) -> Result<Position, Error> {
        self.alive()?;
        Ok(self.tables.lock().last())
    }

    async fn definitions(&self) -> Result<Vec<Definition>, Error> {
        self.alive()?;
        Ok(self.tables.lock().definitions())
    }

    fn commits(&self) -> u64 {
        self.life.commits.load(Ordering::SeqCst)
    }
}
