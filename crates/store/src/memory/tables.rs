//! The tables, as plain maps: what a store means, without how.

use crate::{
    Backlog, Batch, CallbackChange, CallbackCursor, CallbackFilter, CallbackRow, Definition, Error, Fed, Fence, Forgotten, Head, KeyChange,
    KeyRow, LetterChange, LetterCursor, LetterFilter, LetterRow, LockChange, LockRow, OutboxChange, Place, PlanCursor, PlanFilter, PlanRow,
    Position, RunCursor, RunFilter, RunRow, ShardId, TaskCount, TimerChange, TimerKey,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use steadfast_kernel::{EntityId, Envelope, KeyName, LetterId, PlanId, Record, Revision, RunId, Seq, Snapshot, TenantId, Timer, TimerName};

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) heads: BTreeMap<ShardId, Head>,
    /// With the place of each in the order of writing.
    pub(super) events: BTreeMap<(EntityId, Seq), (u64, Record)>,
    /// The same by the number of that place over all shards, with the place in its own.
    pub(super) places: BTreeMap<u64, (Place, EntityId, Seq)>,
    /// How many were written.
    written: u64,
    /// The places that were given last; they are not given again, also when what stood there is gone.
    last: Position,
    definitions: BTreeMap<String, Definition>,
    pub(super) runs: BTreeMap<RunId, RunRow>,
    pub(super) timers: BTreeMap<(EntityId, TimerName), (ShardId, Timer)>,
    /// By the sender as text, and the sequence.
    pub(super) outbox: BTreeMap<(String, u64), (ShardId, Envelope)>,
    /// What was swept and is not gone yet.
    pub(super) half_swept: BTreeMap<EntityId, ShardId>,
    letters: BTreeMap<LetterId, LetterRow>,
    keys: BTreeMap<KeyName, KeyRow>,
    callbacks: BTreeMap<(KeyName, Revision), CallbackRow>,
    pub(super) plans: BTreeMap<PlanId, PlanRow>,
    locks: BTreeMap<TenantId, LockRow>,
    pub(super) snapshots: BTreeMap<EntityId, Snapshot>,
}

impl Tables {
    pub(super) fn apply(&mut self, batch: &Batch) -> Result<(), Error> {
        self.check(batch)?;
        self.put(batch);
        Ok(())
    }

    /// Applies a batch that has passed the check.
    pub(super) fn put(&mut self, batch: &Batch) {
        for fence in &batch.fences {
            self.heads.insert(fence.shard, Head { term: fence.term, seq: fence.upto });
        }
        for append in &batch.events {
            let (shard, seq) = (append.shard, append.record.seq);
            let place = Place { shard, number: self.last.number(shard) + 1 };
            self.last.advance(place);
            self.written += 1;
            self.places.insert(self.written, (place, append.entity.clone(), seq));
            self.events.insert((append.entity.clone(), seq), (self.written, append.record.clone()));
        }
        for row in &batch.runs {
            self.runs.insert(row.run.clone(), row.clone());
        }
        for change in &batch.timers {
            match change {
                TimerChange::Arm { shard, timer } => {
                    self.timers.insert((timer.entity.clone(), timer.name.clone()), (*shard, timer.clone()));
                }
                TimerChange::Disarm { entity, name } => {
                    self.timers.remove(&(entity.clone(), name.clone()));
                }
            }
        }
        for change in &batch.outbox {
            match change {
                OutboxChange::Add { shard, envelope } => {
                    self.outbox.insert((envelope.from.to_string(), envelope.seq), (*shard, envelope.clone()));
                }
                OutboxChange::Settle { from, seq } => drop(self.outbox.remove(&(from.to_string(), *seq))),
            }
        }
        for change in &batch.letters {
            match change {
                LetterChange::Put(row) => drop(self.letters.insert(row.letter.clone(), row.clone())),
                LetterChange::Fail(letter, failure) => {
                    self.letters.entry(letter.clone()).and_modify(|row| row.failure = failure.clone());
                }
                LetterChange::Remove(letter) => drop(self.letters.remove(letter)),
            }
        }
        for change in &batch.keys {
            match change {
                KeyChange::Put(row) => drop(self.keys.insert(row.key.clone(), (**row).clone())),
                KeyChange::Remove(key) => drop(self.keys.remove(key)),
            }
        }
        for change in &batch.callbacks {
            match change {
                CallbackChange::Put(row) => drop(self.callbacks.insert((row.key.clone(), row.revision), (**row).clone())),
                CallbackChange::Remove(key, revision) => drop(self.callbacks.remove(&(key.clone(), *revision))),
            }
        }
        for row in &batch.plans {
            self.plans.insert(row.plan.clone(), row.clone());
        }
        for change in &batch.locks {
            match change {
                LockChange::Put(row) => drop(self.locks.insert(row.tenant.clone(), (**row).clone())),
                LockChange::Remove(tenant) => drop(self.locks.remove(tenant)),
            }
        }
        for snapshot in &batch.snapshots {
            self.snapshots.insert(snapshot.entity.clone(), snapshot.clone());
        }
        for definition in &batch.definitions {
            self.definitions.entry(definition.hash.clone()).or_insert_with(|| definition.clone());
        }
        for Forgotten { entity, before } in &batch.forgotten {
            let range = (entity.clone(), 0)..(entity.clone(), before.unwrap_or(Seq::MAX));
            let gone: Vec<_> = self.events.range(range).map(|(key, (place, _))| (key.clone(), *place)).collect();
            for (key, place) in gone {
                self.events.remove(&key);
                self.places.remove(&place);
            }
            if before.is_none() {
                self.snapshots.remove(entity);
            }
        }
    }

    /// Everything that could fail is checked before anything is changed.
    fn check(&self, batch: &Batch) -> Result<(), Error> {
        let mut heads = BTreeMap::new(); // where earlier fences of this batch leave their shards
        for &Fence { shard, term, after, upto } in &batch.fences {
            let head = heads.entry(shard).or_insert_with(|| self.head(shard));
            if head.term != term {
                return Err(Error::Fenced { shard, term });
            }
            if head.seq != after {
                return Err(Error::Gap { shard, after });
            }
            head.seq = upto;
        }
        let mut seen = BTreeSet::new();
        for append in &batch.events {
            let key = (append.entity.clone(), append.record.seq);
            if self.events.contains_key(&key) || !seen.insert(key) {
                let what = format!("event {} of {} is there already", append.record.seq, append.entity);
                return Err(Error::Unavailable { what, source: None });
            }
        }
        Ok(())
    }

    pub(super) fn claim(&mut self, shard: ShardId) -> Head {
        let head = self.heads.entry(shard).or_insert(Head { term: 0, seq: 0 });
        head.term += 1;
        *head
    }

    pub(super) fn head(&self, shard: ShardId) -> Head {
        self.heads.get(&shard).copied().unwrap_or(Head { term: 0, seq: 0 })
    }

    pub(super) fn journal(&self, entity: &EntityId, after: Seq, limit: usize) -> Vec<Record> {
        if self.half_swept.contains_key(entity) {
            return Vec::new();
        }
        let range = (Bound::Excluded((entity.clone(), after)), Bound::Included((entity.clone(), Seq::MAX)));
        self.events.range(range).take(limit).map(|(_, (_, record))| record.clone()).collect()
    }

    pub(super) fn feed(&self, after: &Position, entity: Option<&EntityId>, limit: usize) -> Vec<Fed> {
        let later = self.places.values().filter(|(place, _, _)| !after.covers(*place));
        let wanted = later.filter(|(_, of, _)| entity.is_none_or(|entity| entity == of));
        let whole = wanted.filter(|(_, of, _)| !self.half_swept.contains_key(of));
        let fed = |(place, entity, seq): &(Place, EntityId, Seq)| {
            let row = entity.run().and_then(|run| self.runs.get(run));
            let (tenant, plan) = (row.and_then(|row| row.tenant.clone()), row.and_then(|row| Some(row.task.as_ref()?.plan.clone())));
            let (_, record) = self.events.get(&(entity.clone(), *seq))?;
            Some(Fed { place: *place, entity: entity.clone(), tenant, plan, record: record.clone() })
        };
        whole.filter_map(fed).take(limit).collect()
    }

    pub(super) fn last(&self) -> Position {
        self.last.clone()
    }

    pub(super) fn definitions(&self) -> Vec<Definition> {
        let mut all: Vec<_> = self.definitions.values().cloned().collect();
        all.sort_by(|a, b| (a.kept_at, &a.hash).cmp(&(b.kept_at, &b.hash)));
        all
    }

    pub(super) fn snapshot(&self, entity: &EntityId) -> Option<Snapshot> {
        self.snapshots.get(entity).cloned()
    }

    pub(super) fn run(&self, run: &RunId) -> Option<RunRow> {
        self.runs.get(run).cloned()
    }

    pub(super) fn runs(&self, filter: &RunFilter, after: Option<&RunCursor>, limit: usize) -> Vec<RunRow> {
        let follows = |row: &&RunRow| after.is_none_or(|after| RunCursor::from(*row) < *after);
        let mut rows: Vec<_> = self.runs.values().filter(|row| filter.lets_through(row)).filter(follows).cloned().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(RunCursor::from(row)));
        rows.truncate(limit);
        rows
    }

    pub(super) fn to_recover(&self, shard: ShardId, after: Option<&RunCursor>, limit: usize) -> Vec<RunRow> {
        let follows = |row: &&RunRow| after.is_none_or(|after| RunCursor::from(*row) > *after);
        let concerned = |row: &&RunRow| row.shard == shard && row.recover.is_some();
        let mut rows: Vec<_> = self.runs.values().filter(concerned).filter(follows).cloned().collect();
        rows.sort_by_key(|row| RunCursor::from(row));
        rows.truncate(limit);
        rows
    }

    pub(super) fn outbox(&self, shard: ShardId, after: Option<&(EntityId, u64)>, limit: usize) -> Vec<Envelope> {
        let from = after.map_or(Bound::Unbounded, |(from, seq)| Bound::Excluded((from.to_string(), *seq)));
        let mine = self.outbox.range((from, Bound::Unbounded)).map(|(_, row)| row).filter(|(of, _)| *of == shard);
        mine.take(limit).map(|(_, envelope)| envelope.clone()).collect()
    }

    pub(super) fn letter(&self, letter: &LetterId) -> Option<LetterRow> {
        self.letters.get(letter).cloned()
    }

    pub(super) fn letters(&self, filter: &LetterFilter, after: Option<&LetterCursor>, limit: usize) -> Vec<LetterRow> {
        let follows = |row: &&LetterRow| after.is_none_or(|after| LetterCursor::from(*row) < *after);
        let mut rows: Vec<_> = self.letters.values().filter(|row| filter.lets_through(row)).filter(follows).cloned().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(LetterCursor::from(row)));
        rows.truncate(limit);
        rows
    }

    pub(super) fn oldest_letters(&self, filter: &LetterFilter, after: Option<&LetterCursor>, limit: usize) -> Vec<LetterRow> {
        let follows = |row: &&LetterRow| after.is_none_or(|after| LetterCursor::from(*row) > *after);
        let mut rows: Vec<_> = self.letters.values().filter(|row| filter.lets_through(row)).filter(follows).cloned().collect();
        rows.sort_by_key(|row| LetterCursor::from(row));
        rows.truncate(limit);
        rows
    }

    pub(super) fn letters_count(&self, filter: &LetterFilter) -> u64 {
        self.letters.values().filter(|row| filter.lets_through(row)).count() as u64
    }

    pub(super) fn timers(&self, shard: ShardId, after: Option<&TimerKey>, limit: usize) -> Vec<Timer> {
        let mine = self.timers.values().filter(|(of, _)| *of == shard).map(|(_, timer)| timer);
        let mut timers: Vec<_> = mine.filter(|timer| after.is_none_or(|after| TimerKey::from(*timer) > *after)).cloned().collect();
        timers.sort_by_key(|timer| TimerKey::from(timer));
        timers.truncate(limit);
        timers
    }

    pub(super) fn keys(&self, names: &[KeyName]) -> Vec<KeyRow> {
        let names: BTreeSet<_> = names.iter().collect();
        names.into_iter().filter_map(|name| self.keys.get(name)).cloned().collect()
    }

    pub(super) fn keys_below(&self, prefix: &str, after: Option<&KeyName>, limit: usize) -> Vec<KeyRow> {
        let wanted = |row: &&KeyRow| row.key.as_str().starts_with(prefix) && after.is_none_or(|after| row.key > *after);
        self.keys.values().filter(wanted).take(limit).cloned().collect()
    }

    pub(super) fn callbacks(&self, filter: &CallbackFilter, after: Option<&CallbackCursor>, limit: usize) -> Vec<CallbackRow> {
        let follows = |row: &&CallbackRow| after.is_none_or(|after| CallbackCursor::from(*row) > *after);
        let mut rows: Vec<_> = self.callbacks.values().filter(|row| filter.lets_through(row)).filter(follows).cloned().collect();
        rows.sort_by_key(|row| CallbackCursor::from(row));
        rows.truncate(limit);
        rows
    }

    pub(super) fn callbacks_count(&self, shards: &[ShardId]) -> u64 {
        self.callbacks.values().filter(|row| shards.contains(&row.shard)).count() as u64
    }

    pub(super) fn backlog(&self, shard: ShardId) -> Backlog {
        let first_due = self.timers.values().filter(|(of, _)| *of == shard).map(|(_, timer)| timer.due).min();
        let messages = self.outbox.values().filter(|(of, _)| *of == shard).count() as u64;
        Backlog { shard, first_due, messages: messages.min(Backlog::COUNTED_MAX) }
    }

    pub(super) fn plan(&self, plan: &PlanId) -> Option<PlanRow> {
        self.plans.get(plan).cloned()
    }

    pub(super) fn plans(&self, filter: &PlanFilter, after: Option<&PlanCursor>, limit: usize) -> Vec<PlanRow> {
        let follows = |row: &&PlanRow| after.is_none_or(|after| PlanCursor::from(*row) < *after);
        let mut rows: Vec<_> = self.plans.values().filter(|row| filter.lets_through(row)).filter(follows).cloned().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(PlanCursor::from(row)));
        rows.truncate(limit);
        rows
    }

    pub(super) fn task_counts(&self, plans: &[PlanId]) -> Vec<TaskCount> {
        let mut counts = BTreeMap::<_, (_, u64)>::new();
        for task in self.runs.values().filter_map(|row| row.task.as_ref()).filter(|task| plans.contains(&task.plan)) {
            counts.entry((task.plan.clone(), task.status.as_str())).or_insert((task.status, 0)).1 += 1;
        }
        counts.into_iter().map(|((plan, _), (status, tasks))| TaskCount { plan, status, tasks }).collect()
    }

    pub(super) fn tasks(&self, plan: &PlanId, after: Option<&RunId>, limit: usize) -> Vec<RunRow> {
        let wanted = |row: &&RunRow| row.task.as_ref().is_some_and(|task| task.plan == *plan) && after.is_none_or(|after| row.run > *after);
        self.runs.values().filter(wanted).take(limit).cloned().collect()
    }

    pub(super) fn latest_task(&self, tenant: &TenantId) -> Option<RunRow> {
        let wanted = |row: &&RunRow| row.task.is_some() && row.tenant.as_deref() == Some(tenant.as_str());
        self.runs.values().filter(wanted).max_by_key(|row| RunCursor::from(*row)).cloned()
    }

    pub(super) fn locks_of(&self, tenants: &[TenantId]) -> Vec<LockRow> {
        let tenants: BTreeSet<_> = tenants.iter().collect();
        tenants.into_iter().filter_map(|tenant| self.locks.get(tenant)).cloned().collect()
    }

    pub(super) fn locks(&self, after: Option<&TenantId>, limit: usize) -> Vec<LockRow> {
        let follows = |row: &&LockRow| after.is_none_or(|after| row.tenant > *after);
        self.locks.values().filter(follows).take(limit).cloned().collect()
    }
}
