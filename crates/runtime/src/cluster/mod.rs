//! Several instances on one store: each has leases on some of its shards, works on those, and has what concerns other shards asked of the instance that has them.
//!
//! ```text
//!   LeaseKeeper: join --> beat, every third of a lease --> held less than a fair share: claim, open
//!                           |                              held more: drain, release
//!                           |                              not held any more: stop, whatever is in flight
//!                           +--- not heard for a lease: stop all of them
//! ```
//!
//! `keeper/` keeps the leases, `others.rs` knows who has which shard, `asked.rs` is what instances ask each other.
//!
//! Tested by `crates/sdk/tests/it/cluster/random.rs`.
//! Tested by `crates/cli/tests/it/cluster/storm.rs`.

mod asked;
mod keeper;
mod others;
mod round;

pub(crate) use asked::{Asked, Beside, Brought, Failed, Told};
pub(crate) use keeper::{LeaseKeeper, Order, Parts as KeeperParts};
pub(crate) use others::{Others, answered};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::Failure;
use steadfast_store::{Instance, Lease, Leases, Member};

/// How an engine shares the shards of its store with other instances.
pub struct Cluster {
    /// Who has which shard.
    pub leases: Arc<dyn Leases>,
    /// Who this is, and where the others reach it.
    pub member: Member,
    /// The way to the others.
    pub carrier: Arc<dyn Carrier>,
}

/// Who carries what is asked of a shard to the instance that has it. [`Engine::answer`](crate::Engine::answer) answers it there.
pub trait Carrier: Send + Sync + 'static {
    /// Has an instance asked, and gives what it answers.
    ///
    /// # Errors
    /// If there is no answer within the time that it has. It may have been heard all the same.
    fn carry(&self, to: &Member, question: Question) -> BoxFuture<'static, Result<Bytes, Failure>>;
}

/// What an instance is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// For [`Engine::answer`](crate::Engine::answer) there.
    pub bytes: Bytes,
    /// How long the answer may take.
    pub within: Duration,
    /// It waits for something that may take as long as that: nothing else is to wait behind it.
    pub waits: bool,
    /// It must not be delivered a second time: whoever asks again asks something else.
    pub once: bool,
}

/// The instances of a store, and who has which shard.
#[derive(Clone, Debug)]
pub struct ClusterView {
    /// The id of the instance that was asked.
    pub here: String,
    /// How long a lease lasts without being renewed.
    pub lease: Duration,
    /// All instances, those that have been there for longest first.
    pub instances: Vec<Instance>,
    /// All leases, by shard.
    pub leases: Vec<Lease>,
}
