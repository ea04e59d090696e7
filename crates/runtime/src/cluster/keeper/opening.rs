//! How a shard that this instance has is opened, beside the keeper's other work, and set to work.

use super::{LeaseKeeper, News, Open, Opening};
use crate::engine::{Opened, Ways};
use crate::error::Error;
use crate::metrics;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use steadfast_store::{Held, ShardId};
use tokio::time::Instant;

/// A shard that cannot be read is tried again after this.
const OPEN_AGAIN: Duration = Duration::from_millis(200);

impl LeaseKeeper {
    /// Whether what was under way in a shard when it came here has been cut off.
    pub(super) fn was_cut_off(&self, held: &Held) -> bool {
        let is = |epochs: &BTreeMap<ShardId, u64>| epochs.get(&held.shard) == Some(&held.epoch);
        is(&self.worked) || held.was_lost && !is(&self.rested) || self.parts.others.was_moved_on(held.shard, held.epoch)
    }

    /// Opens a shard that is not open here, beside the keeper's other work.
    pub(super) fn begin(&mut self, held: Held) {
        let Held { shard, .. } = held;
        if self.has(shard) {
            return;
        }
        let cut_off = self.was_cut_off(&held);
        if self.ends {
            return self.give_back(held, !cut_off);
        }
        let (opener, clock, tell) = (Arc::clone(&self.opener), Arc::clone(&self.parts.clock), self.tell.clone());
        let lease = self.parts.others.leases.lease();
        self.openings += 1;
        let number = self.openings;
        let open = async move {
            let until = Instant::now() + lease; // whom the store does not answer for so long keeps the shard from others
            let opened = loop {
                match opener.open(shard, cut_off).await {
                    Err(error) if error.is_retryable() && Instant::now() < until => clock.sleep(OPEN_AGAIN).await,
                    opened => break opened,
                }
            };
            let _the_keeper_has_ended = tell.send(News::Opened { number, held, opened });
        };
        self.opening.insert(shard, Opening { number, held, task: tokio::spawn(open).abort_handle() });
    }

    /// Ends the opening of a shard, which has not begun to work.
    pub(super) fn forget_opening(&mut self, shard: ShardId) {
        if let Some(opening) = self.opening.remove(&shard) {
            self.rescued.remove(&shard);
            opening.task.abort();
        }
    }

    pub(super) fn has_opened(&mut self, held: Held, opened: Opened) {
        let Some(ways) = self.ways.upgrade() else { return };
        if self.sure_until.is_none_or(|sure| Instant::now() >= sure) {
            return; // another instance may have it by now; it is dropped before it begins to work
        }
        self.add(held, opened, &ways);
        if self.ends {
            self.leave(&ways, held.shard);
        }
    }

    /// Another instance may be able to open it, so this one does not keep it.
    pub(super) fn has_not_opened(&mut self, held: Held, error: Error) {
        let Held { shard, .. } = held;
        self.rescued.remove(&shard);
        if let Error::Store(error) = &error
            && matches!(**error, steadfast_store::Error::Fenced { .. })
        {
            return tracing::warn!(shard, %error, "another instance has taken the shard before it was open here");
        }
        tracing::error!(shard, %error, code = error.code(), "a shard could not be opened");
        self.left_to_others.insert(shard, Instant::now() + self.parts.others.leases.lease());
        self.give_back(held, !self.was_cut_off(&held));
        if self.is_alone
            && self.open.is_empty()
            && self.opening.is_empty()
            && let Some(ready) = self.ready.take()
        {
            let _nobody_waits = ready.send(Err(error)); // else the others are worked on, here or elsewhere, and this one is tried again
        }
    }

    /// Tells whoever waits for the start, once it is over.
    pub(super) fn is_ready(&mut self) {
        if self.has_looked
            && self.opening.is_empty()
            && let Some(ready) = self.ready.take()
        {
            let (instance, shards) = (&self.parts.others.member.id, self.open.len());
            tracing::info!(instance, shards, "taking part in the work on the store");
            let _nobody_waits = ready.send(Ok(()));
        }
    }

    /// Sets a shard to work.
    pub(super) fn add(&mut self, held: Held, Opened { way, begin, over, term }: Opened, ways: &Ways) {
        self.parts.others.is_here(held.shard, held.epoch, term);
        ways.add(held.shard, way); // before it begins, so that whatever it has others say is heard
        self.worked.insert(held.shard, held.epoch);
        self.rested.remove(&held.shard);
        let _it_waits_for_that = begin.send(());
        self.open.insert(held.shard, Open { held, over });
        self.parts.others.has_changed();
        metrics::shards(self.open.len());
    }
}
