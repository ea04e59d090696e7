//! The instances that share a store, and who has which shard of it.

use super::Time;
use serde::{Deserialize, Serialize};
use steadfast_runtime::{ClusterView, Lag};
use utoipa::ToSchema;

/// The instances that share a store, and who has which shard of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Cluster)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// The id of the instance that answers.
    pub instance: String,
    /// How long an instance keeps its shards without being heard of.
    pub lease_seconds: u64,
    /// How many shards the store has.
    pub shards: u64,
    /// Those that have been there for longest come first.
    pub instances: Vec<Instance>,
    /// Of every shard, by number.
    pub leases: Vec<ShardLease>,
    /// How many shards nobody has now. What is in them waits until somebody takes them.
    pub unheld: u64,
}

/// A process that shares the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Instance)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    /// Who it is; every start of a server has another one.
    pub id: String,
    /// The machine that it is on.
    pub name: String,
    /// Where the others reach it.
    pub address: String,
    /// Its version.
    pub version: String,
    /// Since when it is there.
    pub started_at: Time,
    /// How long nothing was heard of it.
    pub silent_seconds: u64,
    /// It gives away its shards, and takes none.
    pub draining: bool,
    /// It was heard of within the length of a lease.
    pub lives: bool,
    /// How many shards it has.
    pub shards: u64,
    /// How far it is behind: the lag of that of its shards which has the longest; 0 if nothing is late.
    #[serde(default)]
    pub lag_ms: u64,
    /// How many messages of its shards wait; of each shard up to 1,000 are counted.
    #[serde(default)]
    pub messages: u64,
    /// It is the one that answers.
    pub here: bool,
}

/// Who has a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ShardLease)]
#[serde(rename_all = "camelCase")]
pub struct ShardLease {
    /// Its number.
    pub shard: u32,
    /// The id of the instance that has it, or had it last if that is over; none if nobody ever had it, or it was given back.
    pub instance: Option<String>,
    /// How often it has changed hands.
    pub epoch: u64,
    /// Nobody has it: the next one may take it.
    pub over: bool,
    /// For how long the timer has waited that is overdue for longest: a sleep, a retry or a deadline whose time has come, and that nobody has acted on; 0 if nothing is
    /// late.
    #[serde(default)]
    pub lag_ms: u64,
    /// How many messages of what is in it wait to be heard by others; up to 1,000 are counted.
    #[serde(default)]
    pub messages: u64,
}

impl Instance {
    /// How it is, in one word: `LIVES`, `SILENT` or `DRAINING`.
    pub fn state(&self) -> &'static str {
        match self {
            Instance { lives: false, .. } => "SILENT",
            Instance { draining: true, .. } => "DRAINING",
            _ => "LIVES",
        }
    }

    /// It lives, and takes what others give away.
    pub fn takes_shards(&self) -> bool {
        self.lives && !self.draining
    }
}

/// How much of an id people see at the least, in characters.
const SHORT: usize = 8;

impl Cluster {
    /// As much of an instance's id as tells it from all others.
    pub fn short<'a>(&self, id: &'a str) -> &'a str {
        let in_common = |other: &str| id.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
        let others = self.instances.iter().filter(|other| other.id != id);
        let enough = others.map(|other| in_common(&other.id) + 1).max().unwrap_or_default().max(SHORT);
        id.char_indices().nth(enough).map_or(id, |(end, _)| &id[..end])
    }
}

impl Cluster {
    /// What the store knows of instances and leases, and of how far shards are behind.
    pub(crate) fn of(view: &ClusterView, lags: &[Lag]) -> Self {
        let lag = |shard: u32| lags.iter().find(|lag| lag.shard == shard);
        let lag_ms = |shard| lag(shard).map_or(0, |lag| u64::try_from(lag.overdue.as_millis()).unwrap_or(u64::MAX));
        let messages = |shard| lag(shard).map_or(0, |lag| lag.messages);
        let held_by = |id: &str| {
            let held = view.leases.iter().filter(|lease| !lease.is_over && lease.holder.as_deref() == Some(id));
            held.map(|lease| lease.shard).collect::<Vec<_>>()
        };
        let instances = view.instances.iter().map(|instance| Instance {
            id: instance.member.id.clone(),
            name: instance.member.name.clone(),
            address: instance.member.address.clone(),
            version: instance.member.version.clone(),
            started_at: Time(instance.started_at),
            silent_seconds: instance.silent.as_secs(),
            draining: instance.draining,
            lives: instance.lives,
            shards: held_by(&instance.member.id).len() as u64,
            lag_ms: held_by(&instance.member.id).into_iter().map(lag_ms).max().unwrap_or_default(),
            messages: held_by(&instance.member.id).into_iter().map(messages).sum(),
            here: instance.member.id == view.here,
        });
        let leases = view.leases.iter().map(|lease| ShardLease {
            shard: lease.shard,
            instance: lease.holder.clone(),
            epoch: lease.epoch,
            over: lease.is_over,
            lag_ms: lag_ms(lease.shard),
            messages: messages(lease.shard),
        });
        Cluster {
            instance: view.here.clone(),
            lease_seconds: view.lease.as_secs(),
            shards: view.leases.len() as u64,
            instances: instances.collect(),
            leases: leases.collect(),
            unheld: view.leases.iter().filter(|lease| lease.is_over).count() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_kernel::Timestamp;

    fn instance(id: &str) -> Instance {
        let started_at = Time(Timestamp::EPOCH);
        let (name, address, version) = ("m".into(), "http://m:1".into(), "1".into());
        Instance {
            id: id.into(),
            name,
            address,
            version,
            started_at,
            silent_seconds: 0,
            draining: false,
            lives: true,
            shards: 0,
            lag_ms: 0,
            messages: 0,
            here: false,
        }
    }

    #[test]
    fn short_ids_tell_instances_apart() {
        let instances = ["0197aaaa-1111-x", "0197aaaa-1122-y", "ffff0000-1234", "small", "ü-ü-ü-ü-ü-ü"].map(instance).into();
        let cluster = Cluster { instance: "small".into(), lease_seconds: 10, shards: 0, instances, leases: Vec::new(), unheld: 0 };
        let short = cluster.instances.iter().map(|instance| cluster.short(&instance.id)).collect::<Vec<_>>();
        assert_eq!(short, ["0197aaaa-111", "0197aaaa-112", "ffff0000", "small", "ü-ü-ü-ü-"]);
    }

    #[test]
    fn who_is_silent_is_not_called_draining() {
        let (silent, draining) = (Instance { lives: false, draining: true, ..instance("a") }, Instance { draining: true, ..instance("a") });
        assert_eq!([instance("a"), draining, silent].map(|instance| instance.state()), ["LIVES", "DRAINING", "SILENT"]);
    }
}
