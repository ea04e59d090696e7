//! How a shard comes to rest and is given away, and how one is stopped that is this instance's no longer.

use super::super::round::within;
use super::{LeaseKeeper, News, Open};
use crate::engine::Ways;
use crate::metrics;
use crate::shard::Control;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;
use steadfast_store::{Held, ShardId};
use tokio::time::Instant;

/// So often it is tried to give a shard away; after that it is opened again.
const RELEASES: u32 = 5;

/// A shard that moves only because others have less has so many times the grace period to come to rest, ten minutes by default: nothing of it should be cut off for that, but all else in it
/// waits meanwhile, and an attempt may hang for ever.
const MOVES: u32 = 60;

/// After a try that has failed.
const AGAIN: Duration = Duration::from_millis(200);

impl LeaseKeeper {
    /// So many of the shards that are open here: those first in which the least is under way, since all that is in a shard waits while it comes to rest.
    pub(super) fn idlest(&self, ways: &Ways, count: usize) -> Vec<ShardId> {
        let mut shards: Vec<_> = self.open.keys().map(|shard| (ways.load_of(*shard), Reverse(*shard))).collect();
        shards.sort_unstable();
        shards.into_iter().map(|(_, Reverse(shard))| shard).take(count).collect()
    }

    /// Lets a shard come to rest, and gives it away: however long that takes if somebody wants it, for as long as others can wait if it is only to be shared, and within the grace
    /// period if the instance ends.
    pub(super) fn leave(&mut self, ways: &Ways, shard: ShardId) {
        let Some(Open { over, held }) = self.open.remove(&shard) else { return };
        let (drained, control) = (ways.drain_one(shard), ways.control_of(shard));
        self.leaving.insert(shard, control.clone());
        let (clock, release, grace) = (Arc::clone(&self.parts.clock), self.release(held), self.parts.grace);
        let (tell, mut hurry) = (self.tell.clone(), self.hurry.subscribe());
        let most = if self.drains { Duration::MAX } else { grace * MOVES };
        drop(tokio::spawn(async move {
            let in_good_order = tokio::select! {
                biased;
                drained = drained => drained,
                () = async {
                    drop(hurry.wait_for(|hurry| *hurry).await); // also if nobody can tell any more
                    clock.sleep(grace).await;
                } => false,
                () = clock.sleep(most) => false,
            };
            if let Some(control) = control.filter(|_| !in_good_order) {
                tracing::warn!(shard, "attempts were still in flight when the shard had to be given away; they are made again elsewhere");
                let _it_has_stopped = control.send(Control::Stop);
            }
            let _ended = over.await;
            let released = release(in_good_order).await;
            let _the_keeper_has_ended = tell.send(News::Left { held, in_good_order, released });
        }));
    }

    /// Gives a shard away that is not open here.
    pub(super) fn give_back(&mut self, held: Held, in_good_order: bool) {
        self.leaving.insert(held.shard, None);
        let (release, tell) = (self.release(held), self.tell.clone());
        drop(tokio::spawn(async move {
            let released = release(in_good_order).await;
            let _the_keeper_has_ended = tell.send(News::Left { held, in_good_order, released });
        }));
    }

    /// How a shard is given away; false if that does not work.
    pub(super) fn release(&self, held: Held) -> impl FnOnce(bool) -> BoxFuture<'static, bool> + Send + use<> {
        let (others, clock) = (Arc::clone(&self.parts.others), Arc::clone(&self.parts.clock));
        move |in_good_order| {
            let release = async move {
                for _ in 0..RELEASES {
                    let limit = others.leases.lease() / 3;
                    match within(&*clock, limit, others.leases.release(&others.member.id, held, in_good_order)).await {
                        Ok(()) => return true,
                        Err(error) => tracing::warn!(shard = held.shard, %error, "a shard could not be given away; trying again"),
                    }
                    clock.sleep(AGAIN).await;
                }
                false
            };
            release.boxed()
        }
    }

    pub(super) fn has_left(&mut self, Held { shard, epoch, .. }: Held, in_good_order: bool, released: bool) {
        self.leaving.remove(&shard);
        self.ways.upgrade().iter().for_each(|ways| drop(ways.remove(shard)));
        if in_good_order {
            self.worked.remove(&shard);
            self.rested.insert(shard, epoch);
        }
        if released {
            self.left.insert(shard); // else it is opened again after the next beat
        }
        self.parts.others.has_changed();
    }

    /// Stops a shard, whatever is in flight.
    pub(super) fn stop(&mut self, ways: &Ways, shard: ShardId) {
        if let Some(way) = ways.remove(shard) {
            let _it_has_stopped = way.control.send(Control::Stop);
        }
        self.open.remove(&shard);
        self.parts.others.has_changed();
    }

    /// Nobody knows who has them: the leases could not be renewed in time.
    pub(super) fn lose_all(&mut self) {
        tracing::error!(shards = self.open.len(), "the leases could not be renewed in time: everything is stopped here until they can be");
        self.sure_until = None;
        let Some(ways) = self.ways.upgrade() else { return };
        for shard in self.opening.keys().copied().collect::<Vec<_>>() {
            self.forget_opening(shard);
        }
        for shard in self.open.keys().copied().collect::<Vec<_>>() {
            self.stop(&ways, shard);
        }
        for control in self.leaving.values().flatten() {
            let _it_has_stopped = control.send(Control::Stop);
        }
        metrics::shards(0);
    }

    /// Gives everything away. What is being opened is given away once it is open.
    pub(super) fn end(&mut self) {
        (self.ends, self.next) = (true, Instant::now());
        self.hurry.send_replace(true);
        let Some(ways) = self.ways.upgrade() else { return };
        for shard in self.open.keys().copied().collect::<Vec<_>>() {
            self.leave(&ways, shard);
        }
    }
}
