//! Instances that share the database, and the leases by which they share its shards.
//!
//! Time is that of the database's clock, and nobody compares it with another one: an instance may work on a shard for the length of the lease, counted by its own
//! clock from before it sent the [beat](Cluster::beat) or the [claim](Cluster::claim) that gave it. A lease says who works; what keeps everybody else from writing
//! is the term of the shard, which each claim raises. So an instance that was paused for longer than its lease finds it gone, and what it still commits is
//! refused.
//!
//! Every change of a holder is told on the channel [`CHANNEL`], with the number of the shard.

mod statements;

use crate::Postgres;
use crate::readers::For;
use crate::tables::{Read, count, free, get, parsed_if, small, time};
use crate::types::Free;
use std::time::Duration;
use steadfast_kernel::Timestamp;
use steadfast_store::{Error, ShardId};
use tokio_postgres::Row;

/// Where changes of holders are told.
pub const CHANNEL: &str = "steadfast_leases";

/// The instances of a database, and who has which shard. Every call is one statement, and may be made again if its outcome is unknown.
#[derive(Clone, Debug)]
pub struct Cluster(Postgres);

/// Who takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// What tells it from all others.
    pub id: String,
    /// For people.
    pub name: String,
    /// Where the others reach it.
    pub address: String,
    /// The version of its program.
    pub version: String,
}

/// A shard that an instance has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The shard.
    pub shard: ShardId,
    /// How often it has changed hands; another one means that somebody else had it meanwhile.
    pub epoch: u64,
    /// By when it has to be renewed.
    pub until: Timestamp,
}

/// What an instance hears when it says that it lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Somebody wants it to give away what it has.
    pub draining: bool,
    /// What it still has, by number; all of it is renewed.
    pub held: Vec<Held>,
}

/// An instance, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Who it is.
    pub member: Member,
    /// Since when.
    pub started_at: Timestamp,
    /// How long nothing was heard of it.
    pub silent: Duration,
    /// It gives away what it has.
    pub draining: bool,
}

/// A lease, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The shard.
    pub shard: ShardId,
    /// The id of the instance that has it, or had it last if the lease is over.
    pub holder: Option<String>,
    /// How often it has changed hands.
    pub epoch: u64,
    /// Others may take it.
    pub is_over: bool,
}

impl Postgres {
    /// The instances of this database.
    pub fn cluster(&self) -> Cluster {
        Cluster(self.clone())
    }
}

impl Cluster {
    /// Takes part from now on.
    pub async fn join(&self, member: &Member) -> Result<(), Error> {
        let Member { id, name, address, version } = member;
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 4] = [id, &Free(name), &Free(address), &Free(version)];
        self.ask("join the other instances", statements::JOIN, &params, |_| Ok(())).await.map(drop)
    }

    /// Says that an instance lives, and renews all leases that it has for that long. Nothing if it has not joined, or was taken out: it has no shard then.
    pub async fn beat(&self, id: &str, lease: Duration) -> Result<Option<Beat>, Error> {
        let rows = self.ask("renew leases", statements::BEAT, &[&id, &millis(lease)], beaten).await?;
        let draining = rows.first().map(|(draining, _)| *draining);
        let held = rows.into_iter().filter_map(|(_, held)| held).collect();
        Ok(draining.map(|draining| Beat { draining, held }))
    }

    /// Takes shards that nobody has, or whose lease is over, and no more than that. Whoever had them can write them no more. One that drains gets none.
    pub async fn claim(&self, id: &str, lease: Duration, most: usize) -> Result<Vec<Held>, Error> {
        let most = crate::tables::limit(most);
        self.ask("claim leases", statements::CLAIM, &[&id, &millis(lease), &most], held).await
    }

    /// Gives shards away at once; those that it had.
    pub async fn release(&self, id: &str, shards: &[ShardId]) -> Result<Vec<ShardId>, Error> {
        let shards: Vec<_> = shards.iter().map(|shard| shard.cast_signed()).collect();
        self.ask("release leases", statements::RELEASE, &[&id, &shards], |row| small(row, "shard")).await
    }

    /// Asks an instance to give away what it has, or takes that back. False if there is none of that id.
    pub async fn drain(&self, id: &str, draining: bool) -> Result<bool, Error> {
        let found = self.ask("drain an instance", statements::DRAIN, &[&id, &draining], |_| Ok(())).await?;
        Ok(!found.is_empty())
    }

    /// Takes an instance out, and gives away what it had.
    pub async fn leave(&self, id: &str) -> Result<Vec<ShardId>, Error> {
        self.ask("leave the other instances", statements::LEAVE, &[&id], |row| small(row, "shard")).await
    }

    /// All instances, those that have been there for longest first.
    pub async fn instances(&self) -> Result<Vec<Instance>, Error> {
        self.ask("list instances", statements::INSTANCES, &[], instance).await
    }

    /// All leases, by shard.
    pub async fn leases(&self) -> Result<Vec<Lease>, Error> {
        self.ask("list leases", statements::LEASES, &[], lease).await
    }

    async fn ask<T>(
        &self,
        what: &str,
        sql: &str,
        params: &[&(dyn tokio_postgres::types::ToSql + Sync)],
        row: fn(&Row) -> Read<T>,
    ) -> Result<Vec<T>, Error> {
        self.0.list(For::Work, what, sql, params, row).await
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn held(row: &Row) -> Read<Held> {
    Ok(Held { shard: small(row, "shard")?, epoch: count(row, "epoch")?, until: time(row, "until")? })
}

fn beaten(row: &Row) -> Read<(bool, Option<Held>)> {
    let has_one = get::<Option<i32>>(row, "shard")?.is_some();
    Ok((get(row, "draining")?, if has_one { Some(held(row)?) } else { None }))
}

fn instance(row: &Row) -> Read<Instance> {
    let (now, beat_at) = (time(row, "now")?, time(row, "beat_at")?);
    Ok(Instance {
        member: Member { id: get(row, "id")?, name: free(row, "name")?, address: free(row, "address")?, version: free(row, "version")? },
        started_at: time(row, "started_at")?,
        silent: Duration::from_micros(now.as_micros().saturating_sub(beat_at.as_micros()).try_into().unwrap_or_default()),
        draining: get(row, "draining")?,
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
