//! How instances share the shards of one store: each has leases on some of them, and works only on those.
//!
//! Tested by `crates/storage-testkit/src/contract/leases.rs`.

use crate::{Error, ShardId};
use async_trait::async_trait;
use std::time::Duration;
use steadfast_kernel::Timestamp;

/// The instances of a store, and who has which shard.
///
/// A lease says who works; what keeps everybody else from writing is the term of the shard, which each claim raises. Its time is that of one clock, which nobody
/// compares with another one: an instance may work on a shard for the length of the lease, counted by its own clock from before it asked for it.
///
/// Every call may be made again if its outcome is unknown.
#[async_trait]
pub trait Leases: Send + Sync + 'static {
    /// How long a lease lasts without being renewed.
    fn lease(&self) -> Duration;

    /// Takes part from now on. What another instance of the same name and address had is lost to it at once: nobody else can be listening there, so it has died. One that
    /// drains is left alone: it has let go of its address and may still be at work.
    async fn join(&self, member: &Member) -> Result<(), Error>;

    /// Says that an instance lives, and renews all leases that it has. Nothing if it has not joined, or was taken out: it has no shard then.
    async fn beat(&self, id: &str) -> Result<Option<Beat>, Error>;

    /// Takes shards that nobody has, or whose lease is over, and no more than that; none of the exceptions. Whoever had them can write them no more. One that drains gets none.
    async fn claim(&self, id: &str, most: usize, except: &[ShardId]) -> Result<Vec<Held>, Error>;

    /// Gives a shard away at once, if it still has it as it took it: in good order if nothing of it was under way, as lost otherwise.
    async fn release(&self, id: &str, held: Held, in_good_order: bool) -> Result<(), Error>;

    /// Asks an instance to give away what it has, or takes that back. False if there is none of that id.
    async fn drain(&self, id: &str, draining: bool) -> Result<bool, Error>;

    /// Takes an instance out. What it still had is lost.
    async fn leave(&self, id: &str) -> Result<(), Error>;

    /// All instances, those that have been there for longest first.
    async fn instances(&self) -> Result<Vec<Instance>, Error>;

    /// All leases, by shard.
    async fn leases(&self) -> Result<Vec<Lease>, Error>;

    /// Lets the other instances know that something was committed here. It may be told later, and once for many commits.
    fn committed(&self);

    /// The next thing that another instance has done, for one who waits for it. What happens while nobody listens is not told twice, so whoever relies on it also
    /// looks from time to time.
    ///
    /// # Cancellation
    /// Nothing is lost if the future is dropped.
    async fn heard(&self) -> Heard;
}

/// Who takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// What tells it from all others; another one in each of its lives.
    pub id: String,
    /// For people: the machine.
    pub name: String,
    /// Where the others reach it.
    pub address: String,
    /// The version of its program.
    pub version: String,
}

/// A shard that an instance has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The shard.
    pub shard: ShardId,
    /// How often it has changed hands; another one means that somebody else had it meanwhile.
    pub epoch: u64,
    /// When it was taken, somebody had it who had not given it away: what was under way there has been cut off.
    pub was_lost: bool,
}

/// What an instance hears when it says that it lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Somebody wants it to give away what it has.
    pub draining: bool,
    /// What it still has, by number; all of it is renewed.
    pub held: Vec<Held>,
    /// How many instances live and do not drain, it itself among them.
    pub instances: usize,
    /// How many others live, those that drain among them.
    pub others: usize,
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
    /// It was heard of within the length of a lease.
    pub lives: bool,
}

/// A lease, for people, and for whoever looks for the holder.
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

/// What another instance has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Shards have changed hands, an instance is to drain, or something may have been missed because nobody could be heard.
    Leases,
    /// Something was committed, or nothing was heard for so long that it may have been missed.
    Commits,
}
