//! A round of the keeper: it says that the instance lives, looks who has what, and takes what is free.

use super::Others;
use crate::clock::Clock;
use std::sync::Arc;
use std::time::Duration;
use steadfast_store::{Beat, Claimed, Error};
use tokio::time::Instant;

/// What a round is to do beside the beat.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Look who has what, and take what is free.
    pub(super) look: bool,
    /// The instance ends: it takes nothing, and the others need not leave it a share.
    pub(super) ends: bool,
}

/// What came of it.
pub(super) struct Round {
    /// When it began.
    pub(super) asked_at: Instant,
    /// Nothing if the instance was taken for gone, and has joined again.
    pub(super) beat: Option<Beat>,
    pub(super) claimed: Vec<Claimed>,
    /// It has to be looked again, because that did not work.
    pub(super) look: bool,
    /// When leases of another instance are over, unless it is heard of till then.
    pub(super) look_at: Option<Instant>,
}

/// Makes a round. What goes wrong after the beat does not make that undone.
pub(super) async fn round(others: Arc<Others>, clock: Arc<dyn Clock>, shards: u32, wanted: Wanted) -> Result<Round, Error> {
    let (leases, id) = (&others.leases, others.member.id.as_str());
    let limit = leases.lease() / 3;
    let asked_at = Instant::now();
    let Some(beat) = within(&*clock, limit, leases.beat(id)).await? else {
        tracing::warn!(instance = id, "this instance was taken for gone; it joins again");
        within(&*clock, limit, leases.join(&others.member)).await?;
        return Ok(Round { asked_at, beat: None, claimed: Vec::new(), look: true, look_at: None });
    };
    let mut done = Round { asked_at, claimed: Vec::new(), look: false, look_at: None, beat: None };
    if let Err(error) = follow(&others, &*clock, shards, wanted, &beat, &mut done).await {
        tracing::warn!(%error, code = error.code(), "it could not be looked who has which shard; trying again");
        done.look = true;
    }
    Ok(Round { beat: Some(beat), ..done })
}

async fn follow(others: &Others, clock: &dyn Clock, shards: u32, wanted: Wanted, beat: &Beat, done: &mut Round) -> Result<(), Error> {
    let (leases, id) = (&others.leases, others.member.id.as_str());
    let limit = leases.lease() / 3;
    if wanted.ends && !beat.draining {
        within(clock, limit, leases.drain(id, true)).await?; // what it gives away is taken while the rest is still under way here
    }
    if !wanted.look {
        return Ok(());
    }
    let seen = within(clock, limit, others.look()).await?;
    done.look_at = seen.over_in.map(|over_in| Instant::now() + over_in);
    let missing = share(shards, beat).saturating_sub(beat.held.len()).min(seen.free);
    if missing == 0 || wanted.ends {
        return Ok(());
    }
    done.claimed = within(clock, limit, leases.claim(id, missing)).await?;
    if !done.claimed.is_empty() {
        within(clock, limit, others.look()).await?;
    }
    Ok(())
}

/// How many shards an instance should have.
pub(super) fn share(shards: u32, beat: &Beat) -> usize {
    if beat.draining { 0 } else { (shards as usize).div_ceil(beat.instances.max(1)) }
}

async fn within<T>(clock: &dyn Clock, time: Duration, asked: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::select! {
        biased;
        answer = asked => answer,
        () = clock.sleep(time) => Err(Error::Unavailable { what: format!("the leases were not answered for within {time:?}"), source: None }),
    }
}
