//! What the keeper asks: whether the instance lives and what it still has, and, apart from that, who has what and what is free. The one never waits for the other.
//!
//! Tested by `crates/sdk/tests/it/cluster/leases.rs`.

use super::Others;
use crate::clock::Clock;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use steadfast_store::{Beat, Error, Held, ShardId};
use tokio::time::Instant;

/// What came of a beat.
pub(super) struct Beaten {
    /// When it was asked.
    pub(super) asked_at: Instant,
    /// Nothing if the instance was taken for gone, and has joined again.
    pub(super) beat: Option<Beat>,
}

/// Says that the instance lives, and renews what it has.
pub(super) async fn beat(others: Arc<Others>, clock: Arc<dyn Clock>) -> Result<Beaten, Error> {
    let (leases, id) = (&others.leases, others.member.id.as_str());
    let limit = leases.lease() / 3;
    let asked_at = Instant::now();
    let beat = within(&*clock, limit, leases.beat(id)).await?;
    if beat.is_none() {
        tracing::warn!(instance = id, "this instance was taken for gone; it joins again");
        within(&*clock, limit, leases.join(&others.member)).await?;
    }
    Ok(Beaten { asked_at, beat })
}

/// How many shards an instance takes if they are free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Wants {
    /// It has its share, or does not take any.
    #[default]
    Nothing,
    /// So many are missing.
    Share(usize),
    /// That one, which nobody else takes, beyond its share.
    Rescue(ShardId),
}

impl Wants {
    /// How many it takes of those that are free.
    fn count_of(self, free: &BTreeSet<ShardId>) -> usize {
        match self {
            Wants::Nothing => 0,
            Wants::Share(count) => count.min(free.len()),
            Wants::Rescue(shard) => usize::from(free.contains(&shard)),
        }
    }
}

/// What came of a look.
#[derive(Default)]
pub(super) struct Looked {
    pub(super) wants: Wants,
    /// Those that were free.
    pub(super) free: BTreeSet<ShardId>,
    /// What was free and is this instance's now.
    pub(super) taken: Vec<Held>,
    /// When leases of another instance are over, unless it is heard of till then.
    pub(super) look_at: Option<Instant>,
    /// It did not work, or not all of it.
    pub(super) failed: bool,
}

/// Looks who has what, and takes so many shards if they are free, none of the exceptions. One that ends says so first: what it gives away is taken while the rest is still under way here.
pub(super) async fn look(others: Arc<Others>, clock: Arc<dyn Clock>, drain: bool, wants: Wants, except: Vec<ShardId>) -> Looked {
    let mut looked = Looked { wants, ..Looked::default() };
    if let Err(error) = follow(&others, &*clock, drain, &except, &mut looked).await {
        tracing::warn!(%error, code = error.code(), "it could not be looked who has which shard; trying again");
        looked.failed = true;
    }
    looked
}

async fn follow(others: &Others, clock: &dyn Clock, drain: bool, except: &[ShardId], looked: &mut Looked) -> Result<(), Error> {
    let (leases, id) = (&others.leases, others.member.id.as_str());
    let limit = leases.lease() / 3;
    if drain {
        within(clock, limit, leases.drain(id, true)).await?;
    }
    let seen = within(clock, limit, others.look()).await?;
    looked.free = seen.free;
    looked.look_at = seen.over_in.map(|over_in| Instant::now() + over_in);
    let missing = looked.wants.count_of(&looked.free);
    if missing == 0 {
        return Ok(());
    }
    looked.taken = within(clock, limit, leases.claim(id, missing, except)).await?;
    if !looked.taken.is_empty() {
        within(clock, limit, others.look()).await?;
    }
    Ok(())
}

/// How many shards an instance should have.
pub(super) fn share(shards: u32, beat: &Beat) -> usize {
    if beat.draining { 0 } else { (shards as usize).div_ceil(beat.instances.max(1)) }
}

/// What is asked, if it is answered within that time.
pub(super) async fn within<T>(clock: &dyn Clock, time: Duration, asked: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::select! {
        biased;
        answer = asked => answer,
        () = clock.sleep(time) => Err(Error::Unavailable { what: format!("the leases were not answered for within {time:?}"), source: None }),
    }
}
