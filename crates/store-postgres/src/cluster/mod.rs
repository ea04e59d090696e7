//! Instances that share the database, and the leases by which they share its shards.
//!
//! Time is that of the database's clock, and nobody compares it with another one: an instance may work on a shard for the length of the lease, counted by its own
//! clock from before it sent the [beat](Leases::beat) or the [claim](Leases::claim) that gave it. A lease says who works; what keeps everybody else from writing
//! is the term of the shard, which each claim raises. So an instance that was paused for longer than its lease finds it gone, and what it still commits is
//! refused. And once an instance has [joined](Leases::join) by a store, that store claims only shards that the instance has a lease on.
//!
//! What concerns leases is told on the channel `steadfast_leases`: the number of a shard that has changed hands, or nothing for all else. On the channel
//! `steadfast_commits` instances say who they are when they have committed something, some time after it: a notification is never part of a commit, since
//! PostgreSQL lets only one transaction at a time commit that has one.

mod ear;
mod statements;
mod teller;

use crate::Postgres;
use crate::readers::{Abandoned, For, Readers};
use crate::tables::{Read, count, free, get, limit, parsed_if, small, time};
use crate::types::Free;
use async_trait::async_trait;
use ear::Ear;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use steadfast_store::{Beat, Error, Heard, Held, Instance, Lease, Leases, Member, ShardId};
use teller::Teller;
use tokio::task::JoinHandle;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// How many connections have what is asked of leases beside their renewal: one is enough unless two things are asked at once.
const CONNECTIONS: usize = 2;

/// The instances of a database, and who has which shard. Every call is one statement. Clones are the same.
#[derive(Clone)]
pub struct Cluster(Arc<Parts>);

struct Parts {
    store: Postgres,
    lease: Duration,
    /// Leases do not wait behind anything else that is read.
    asks: Readers,
    /// And that they are renewed does not wait behind what else is asked of them.
    beats: Readers,
    ear: OnceLock<Ear>,
    teller: OnceLock<Teller>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("store", &self.0.store).field("lease", &self.0.lease).finish()
    }
}

impl Postgres {
    /// The instances of this database, with leases of that length. It has a connection of its own from when somebody first waits for what is
    /// [heard](Leases::heard).
    pub fn leases(&self, lease: Duration) -> Cluster {
        let (ear, teller) = (OnceLock::new(), OnceLock::new());
        let asks = Readers::of(Arc::clone(&self.0.connector), CONNECTIONS, Abandoned::Alone);
        let beats = Readers::of(Arc::clone(&self.0.connector), 1, Abandoned::Alone);
        Cluster(Arc::new(Parts { store: self.clone(), lease, asks, beats, ear, teller }))
    }
}

impl Cluster {
    async fn ask<T>(&self, what: &str, sql: &str, params: &[&(dyn ToSql + Sync)], row: fn(&Row) -> Read<T>) -> Result<Vec<T>, Error> {
        self.0.store.list_by(&self.0.asks, For::Work, what, sql, params, row).await
    }

    /// The same, for what says that an instance is there.
    async fn tell<T>(&self, what: &str, sql: &str, params: &[&(dyn ToSql + Sync)], row: fn(&Row) -> Read<T>) -> Result<Vec<T>, Error> {
        self.0.store.list_by(&self.0.beats, For::Work, what, sql, params, row).await
    }

    fn millis(&self) -> i64 {
        i64::try_from(self.0.lease.as_millis()).unwrap_or(i64::MAX)
    }

    fn shards(&self) -> i32 {
        self.0.store.0.shards.cast_signed()
    }

    fn there_are(&self, others: u64) {
        self.0.store.0.writer.has_others().store(others > 0, Ordering::SeqCst);
    }
}

#[async_trait]
impl Leases for Cluster {
    fn lease(&self) -> Duration {
        self.0.lease
    }

    async fn join(&self, member: &Member) -> Result<(), Error> {
        let Member { id, name, address, version } = member;
        // Before it is known: whatever becomes of it, shards are claimed only as that instance from here on.
        *self.0.store.0.member.lock() = Some(id.clone());
        self.0.teller.get_or_init(|| Teller::start(self.0.store.clone()));
        let params: [&(dyn ToSql + Sync); 5] = [id, &Free(name), &Free(address), &Free(version), &self.millis()];
        let others = self.tell("join the other instances", statements::JOIN, &params, |row| count(row, "others")).await?;
        self.there_are(others.into_iter().sum());
        Ok(())
    }

    async fn beat(&self, id: &str) -> Result<Option<Beat>, Error> {
        let rows = self.tell("renew leases", statements::BEAT, &[&id, &self.millis()], beaten).await?;
        let Some(Beaten { draining, others, instances, .. }) = rows.first().copied() else { return Ok(None) };
        self.there_are(others);
        let held = rows.into_iter().filter_map(|row| row.held).collect();
        let [instances, others] = [instances, others].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        Ok(Some(Beat { draining, held, instances, others }))
    }

    async fn claim(&self, id: &str, most: usize, except: &[ShardId]) -> Result<Vec<Held>, Error> {
        let except: Vec<i32> = except.iter().map(|shard| shard.cast_signed()).collect();
        let params: [&(dyn ToSql + Sync); 5] = [&id, &self.millis(), &limit(most), &self.shards(), &except];
        self.ask("claim leases", statements::CLAIM, &params, held).await
    }

    async fn release(&self, id: &str, held: Held, in_good_order: bool) -> Result<(), Error> {
        let params: [&(dyn ToSql + Sync); 4] = [&id, &held.shard.cast_signed(), &held.epoch.cast_signed(), &in_good_order];
        self.ask("release leases", statements::RELEASE, &params, |_| Ok(())).await.map(drop)
    }

    async fn drain(&self, id: &str, draining: bool) -> Result<bool, Error> {
        let found = self.ask("drain an instance", statements::DRAIN, &[&id, &draining], |_| Ok(())).await?;
        Ok(!found.is_empty())
    }

    async fn leave(&self, id: &str) -> Result<(), Error> {
        self.ask("leave the other instances", statements::LEAVE, &[&id], |_| Ok(())).await.map(drop)
    }

    async fn instances(&self) -> Result<Vec<Instance>, Error> {
        self.ask("list instances", statements::INSTANCES, &[&self.millis()], instance).await
    }

    async fn leases(&self) -> Result<Vec<Lease>, Error> {
        self.ask("list leases", statements::LEASES, &[&self.shards()], lease).await
    }

    fn committed(&self) {
        if self.0.store.0.writer.has_others().load(Ordering::SeqCst)
            && let Some(teller) = self.0.teller.get()
        {
            teller.tell();
        }
    }

    async fn heard(&self) -> Heard {
        let Parts { store, lease, .. } = &*self.0;
        let start = || Ear::start(Arc::clone(&store.0.connector), store.0.process.clone(), *lease);
        self.0.ear.get_or_init(start).next().await
    }
}

/// Something that goes on until it is dropped.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn held(row: &Row) -> Read<Held> {
    Ok(Held { shard: small(row, "shard")?, epoch: count(row, "epoch")?, was_lost: get(row, "was_lost")? })
}

/// One row for each shard that is held, or one without.
#[derive(Clone, Copy)]
struct Beaten {
    draining: bool,
    others: u64,
    instances: u64,
    held: Option<Held>,
}

fn beaten(row: &Row) -> Read<Beaten> {
    let has_one = get::<Option<i32>>(row, "shard")?.is_some();
    let held = if has_one { Some(held(row)?) } else { None };
    Ok(Beaten { draining: get(row, "draining")?, others: count(row, "others")?, instances: count(row, "instances")?, held })
}

fn instance(row: &Row) -> Read<Instance> {
    Ok(Instance {
        member: Member { id: get(row, "id")?, name: free(row, "name")?, address: free(row, "address")?, version: free(row, "version")? },
        started_at: time(row, "started_at")?,
        silent: time(row, "now")?.saturating_since(time(row, "beat_at")?),
        draining: get(row, "draining")?,
        lives: get(row, "lives")?,
    })
}

fn lease(row: &Row) -> Read<Lease> {
    Ok(Lease {
        shard: small(row, "shard")?,
        holder: parsed_if(row, "holder", |id| Some(id.to_owned()))?,
        epoch: count(row, "epoch")?,
        is_over: get(row, "is_over")?,
    })
}
