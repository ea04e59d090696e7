//! What waits in a shard, for people who look how far behind it is.

use crate::ShardId;
use steadfast_kernel::Timestamp;

/// What waits in a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// The shard.
    pub shard: ShardId,
    /// When its first timer is due; that is in the past if the shard is behind.
    pub first_due: Option<Timestamp>,
    /// How many messages of its entities are not settled, counted up to [`COUNTED_MAX`](Backlog::COUNTED_MAX).
    pub messages: u64,
}

impl Backlog {
    /// Up to which number messages are counted. Somebody looks whether there are none, a few or far too many; to count millions takes seconds, just when a shard has
    /// trouble.
    pub const COUNTED_MAX: u64 = 1_000;
}
