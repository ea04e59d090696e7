//! Cases have one shard or several, and what must hold does so for all shards together.

use super::script::Chance;
use futures_util::FutureExt;
use std::future::Future;
use steadfast::memory::Memory;
use steadfast_kernel::{EntityId, Envelope, Timer};
use steadfast_store::{Error, RunRow, ShardId, Store, TimerKey};

/// A store for a case: half of them have one shard, the others two to four.
pub(super) fn store(chance: &mut Chance) -> Memory {
    Memory::of_shards(1 + (chance.below(2) * (1 + chance.below(3))) as u32)
}

pub(super) fn at_once<T>(read: impl Future<Output = Result<T, Error>>) -> T {
    read.now_or_never().expect("memory does not wait").expect("it is not dead")
}

pub(super) fn shard_of(store: &Memory, entity: &EntityId) -> ShardId {
    steadfast_store::shard_of(entity, store.shards())
}

/// In the order in which they are due.
pub(super) fn timers(store: &Memory) -> Vec<Timer> {
    let mut timers: Vec<_> = (0..store.shards()).flat_map(|shard| at_once(store.timers(shard, None, 10_000))).collect();
    timers.sort_by_key(|timer| TimerKey::from(timer));
    timers
}

pub(super) fn outbox(store: &Memory) -> Vec<Envelope> {
    (0..store.shards()).flat_map(|shard| at_once(store.outbox(shard, None, 10_000))).collect()
}

pub(super) fn half_swept(store: &Memory) -> Vec<EntityId> {
    (0..store.shards()).flat_map(|shard| at_once(store.half_swept(shard))).collect()
}

pub(super) fn runs(store: &Memory) -> Vec<RunRow> {
    (0..store.shards()).flat_map(|shard| at_once(store.oldest(shard, None, 10_000))).collect()
}
