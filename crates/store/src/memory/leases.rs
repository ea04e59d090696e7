//! Leases on the shards of a store in memory, for several instances in one process.

use super::Memory;
use super::tables::Tables;
use crate::{Beat, Error, Head, Heard, Hearing, Held, Instance, Lease, Leases, Member, ShardId, Store};
use async_trait::async_trait;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;
use steadfast_kernel::Timestamp;

/// How long nothing may be heard of an instance before it is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);

/// The instances that share a [`Memory`]. Each has a [handle of its own](MemoryLeases::of_another); clones are the same instance.
///
/// Time is what the caller says it is. So nothing is heard only because time has passed: whoever relies on it looks by itself, as the port demands.
#[derive(Clone, Debug)]
pub struct MemoryLeases {
    shared: Arc<Shared>,
    store: Memory,
    hearing: Arc<Hearing>,
}

/// What all instances share.
pub(super) struct Shared {
    lease: Duration,
    now: Box<dyn Fn() -> Timestamp + Send + Sync>,
    cluster: Mutex<Cluster>,
    ears: Mutex<Vec<Weak<Hearing>>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("lease", &self.lease)
            .field("cluster", &self.cluster)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Cluster {
    instances: BTreeMap<String, Known>,
    /// By shard.
    leases: Vec<Row>,
}

/// An instance.
#[derive(Debug)]
struct Known {
    member: Member,
    started_at: Timestamp,
    beat_at: Timestamp,
    draining: bool,
    /// Another one has come to its place, and it was not heard of since.
    replaced: bool,
}

/// A lease.
#[derive(Clone, Debug, Default)]
struct Row {
    holder: Option<String>,
    epoch: u64,
    until: Timestamp,
    was_lost: bool,
}

impl Row {
    fn held(&self, shard: ShardId) -> Held {
        Held { shard, epoch: self.epoch, was_lost: self.was_lost }
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.holder.is_none() || self.until <= now
    }

    fn is_of(&self, id: &str, now: Timestamp) -> bool {
        self.holder.as_deref() == Some(id) && !self.is_over(now)
    }

    /// Its holder stays: it counts as lost.
    fn lose(&mut self, now: Timestamp) {
        self.until = self.until.min(now);
    }
}

/// Who has joined by a handle of the store: it claims only shards that it has a lease on.
#[derive(Clone, Debug)]
pub(super) struct Joined {
    shared: Arc<Shared>,
    id: String,
}

impl Joined {
    pub(super) fn claim(&self, shard: ShardId, tables: &Mutex<Tables>) -> Result<Head, Error> {
        let cluster = self.shared.cluster.lock();
        let lease = cluster.leases.get(shard as usize);
        let has_it = lease.is_some_and(|row| row.is_of(&self.id, self.shared.now()));
        let mut tables = tables.lock();
        match has_it {
            true => Ok(tables.claim(shard)),
            false => Err(Error::Fenced { shard, term: tables.head(shard).term }),
        }
    }
}

impl Shared {
    fn now(&self) -> Timestamp {
        (self.now)()
    }

    fn lives(&self, instance: &Known, now: Timestamp) -> bool {
        !instance.replaced && instance.beat_at.saturating_add(self.lease) > now
    }
}

impl MemoryLeases {
    /// The leases of a store, for its first instance. `now` is asked for the time.
    pub fn new(store: &Memory, lease: Duration, now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let cluster = Cluster { instances: BTreeMap::new(), leases: vec![Row::default(); store.shards() as usize] };
        let shared = Shared { lease, now: Box::new(now), cluster: Mutex::new(cluster), ears: Mutex::default() };
        Self::handle(Arc::new(shared), store)
    }

    /// The same leases for another instance, which has a [handle of the store](Memory::another) of its own: what is done by one is heard by the others. All of it
    /// fails once that handle is dead.
    ///
    /// # Panics
    /// If that is another store.
    #[must_use]
    pub fn of_another(&self, store: &Memory) -> Self {
        assert!(Arc::ptr_eq(&self.store.tables, &store.tables), "these are leases on the shards of another store");
        Self::handle(Arc::clone(&self.shared), store)
    }

    fn handle(shared: Arc<Shared>, store: &Memory) -> Self {
        let hearing = Arc::new(Hearing::default());
        hearing.hear_all(); // as whoever begins to listen may have missed something
        shared.ears.lock().push(Arc::downgrade(&hearing));
        MemoryLeases { shared, store: store.clone(), hearing }
    }

    /// The last time that a shard has changed hands is lost, as after a failover to a standby that was behind: an instance that had it before has it again.
    pub fn forget_move(&self, shard: ShardId, to: &str) {
        let until = self.now().saturating_add(self.shared.lease);
        let mut cluster = self.shared.cluster.lock();
        if let Some(row) = cluster.leases.get_mut(shard as usize) {
            *row = Row { holder: Some(to.to_owned()), epoch: row.epoch - 1, until, was_lost: false };
        }
        if let Some(head) = self.store.tables.lock().heads.get_mut(&shard) {
            head.term -= 2; // by the lease and by the one who opened it
        }
    }

    /// The others hear of it.
    fn tell(&self, heard: Heard) {
        self.shared.ears.lock().retain(|ear| {
            let Some(ear) = ear.upgrade() else { return false };
            if !Arc::ptr_eq(&ear, &self.hearing) {
                ear.hear(heard);
            }
            true
        });
    }

    fn now(&self) -> Timestamp {
        self.shared.now()
    }
}

#[async_trait]
impl Leases for MemoryLeases {
    fn lease(&self) -> Duration {
        self.shared.lease
    }

    async fn join(&self, member: &Member) -> Result<(), Error> {
        self.store.alive()?;
        *self.store.life.joined.lock() = Some(Joined { shared: Arc::clone(&self.shared), id: member.id.clone() });
        let now = self.now();
        let mut cluster = self.shared.cluster.lock();
        let Cluster { instances, leases } = &mut *cluster;
        let is_same = |known: &Known| known.member.name == member.name && known.member.address == member.address && !known.draining;
        for known in instances.values_mut().filter(|known| known.member.id != member.id && is_same(known)) {
            known.replaced = true;
            leases.iter_mut().filter(|row| row.is_of(&known.member.id, now)).for_each(|row| row.lose(now));
        }
        instances.retain(|id, known| {
            let is_forgotten = now.saturating_since(known.beat_at) > FORGOTTEN_AFTER.max(self.lease());
            !is_forgotten || leases.iter().any(|row| row.is_of(id, now))
        });
        let known = Known { member: member.clone(), started_at: now, beat_at: now, draining: false, replaced: false };
        instances.insert(member.id.clone(), known);
        drop(cluster);
        self.tell(Heard::Leases);
        Ok(())
    }

    async fn beat(&self, id: &str) -> Result<Option<Beat>, Error> {
        self.store.alive()?;
        let now = self.now();
        let mut cluster = self.shared.cluster.lock();
        let Cluster { instances, leases } = &mut *cluster;
        let Some(me) = instances.get_mut(id) else { return Ok(None) };
        (me.beat_at, me.replaced) = (now, false);
        let draining = me.draining;
        let mut held = Vec::new();
        for (row, shard) in leases.iter_mut().zip(0..).filter(|(row, _)| row.is_of(id, now)) {
            row.until = now.saturating_add(self.lease());
            held.push(row.held(shard));
        }
        let counted = instances.values().filter(|known| !known.draining && self.shared.lives(known, now));
        let others = instances.values().filter(|known| known.member.id != id && self.shared.lives(known, now));
        Ok(Some(Beat { draining, held, instances: counted.count(), others: others.count() }))
    }

    async fn claim(&self, id: &str, most: usize, except: &[ShardId]) -> Result<Vec<Held>, Error> {
        self.store.alive()?;
        let now = self.now();
        let mut cluster = self.shared.cluster.lock();
        let Cluster { instances, leases } = &mut *cluster;
        if instances.get(id).is_none_or(|known| known.draining) {
            return Ok(Vec::new());
        }
        let mut claimed = Vec::new();
        let is_free = |(row, shard): &(&mut Row, ShardId)| row.is_over(now) && !except.contains(shard);
        for (row, shard) in leases.iter_mut().zip(0..).filter(is_free).take(most) {
            let was_lost = row.holder.is_some();
            *row = Row { holder: Some(id.to_owned()), epoch: row.epoch + 1, until: now.saturating_add(self.lease()), was_lost };
            self.store.tables.lock().claim(shard);
            claimed.push(row.held(shard));
        }
        drop(cluster);
        if !claimed.is_empty() {
            self.tell(Heard::Leases);
        }
        Ok(claimed)
    }

    async fn release(&self, id: &str, held: Held, in_good_order: bool) -> Result<(), Error> {
        self.store.alive()?;
        let now = self.now();
        let mut cluster = self.shared.cluster.lock();
        let row = cluster.leases.get_mut(held.shard as usize);
        let released = row.filter(|row| row.holder.as_deref() == Some(id) && row.epoch == held.epoch).map(|row| {
            row.lose(now);
            row.holder = row.holder.take().filter(|_| !in_good_order);
        });
        drop(cluster);
        if released.is_some() {
            self.tell(Heard::Leases);
        }
        Ok(())
    }

    async fn drain(&self, id: &str, draining: bool) -> Result<bool, Error> {
        self.store.alive()?;
        let found = self.shared.cluster.lock().instances.get_mut(id).map(|known| known.draining = draining).is_some();
        if found {
            self.tell(Heard::Leases);
        }
        Ok(found)
    }

    async fn leave(&self, id: &str) -> Result<(), Error> {
        self.store.alive()?;
        let now = self.now();
        let mut cluster = self.shared.cluster.lock();
        cluster.instances.remove(id);
        cluster.leases.iter_mut().filter(|row| row.is_of(id, now)).for_each(|row| row.lose(now));
        drop(cluster);
        self.tell(Heard::Leases);
        Ok(())
    }

    async fn instances(&self) -> Result<Vec<Instance>, Error> {
        self.store.alive()?;
        let now = self.now();
        let cluster = self.shared.cluster.lock();
        let instance = |known: &Known| Instance {
            member: known.member.clone(),
            started_at: known.started_at,
            silent: now.saturating_since(known.beat_at),
            draining: known.draining,
            lives: self.shared.lives(known, now),
        };
        let mut instances: Vec<_> = cluster.instances.values().map(instance).collect();
        instances.sort_by_key(|instance| instance.started_at); // of those that came at once, the lower id is first as it was
        Ok(instances)
    }

    async fn leases(&self) -> Result<Vec<Lease>, Error> {
        self.store.alive()?;
        let now = self.now();
        let cluster = self.shared.cluster.lock();
        let lease =
            |(row, shard): (&Row, ShardId)| Lease { shard, holder: row.holder.clone(), epoch: row.epoch, is_over: row.is_over(now) };
        Ok(cluster.leases.iter().zip(0..).map(lease).collect())
    }

    fn committed(&self) {
        self.tell(Heard::Commits);
    }

    async fn heard(&self) -> Heard {
        self.hearing.next().await
    }
}
