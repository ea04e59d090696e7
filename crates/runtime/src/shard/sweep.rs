//! Runs and plans whose time is over are removed, beside the shard's other work.
//!
//! Such a one is in memory as if it was being read: whoever asks for it waits, and finds nothing when it is gone. So no command is decided on what is going, and what
//! a removed id begins with next comes after the last of it has gone.
//!
//! Tested by `crates/sdk/tests/it/retention.rs`.
//! Tested by `crates/sdk/tests/it/torture/lives/swept.rs`.
//! Tested by `crates/crash-test/tests/it/removed.rs`.

use super::{Done, Health, Memory, Shard};
use crate::error::STORE_RETRY_AFTER;
use futures_util::FutureExt;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{EntityId, Timestamp};
use steadfast_store::{Sweep, Swept};
use tokio::sync::oneshot;

/// Between two steps commits have their turn.
const PAUSE: Duration = Duration::from_millis(5);

/// A store that cannot remove anything is asked again after a while, at most this long.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// What became of those that were to be removed.
pub(super) struct Sweeping {
    outcomes: Vec<(EntityId, Swept)>,
    reply: Option<oneshot::Sender<usize>>,
}

impl Shard {
    /// Removes those that nobody has to do with right now; the others have their turn the next time. The reply is dropped if it is not the time for it.
    pub(super) fn sweep(&mut self, ended: Vec<Sweep>, reply: oneshot::Sender<usize>) {
        if self.state.is_draining() || !matches!(self.state.health, Health::Well) {
            return;
        }
        let free = ended.into_iter().filter(|sweep| !self.state.seats.contains(&sweep.entity)).collect();
        self.remove(free, Some(reply));
    }

    /// Goes on with what an earlier process has begun. Until it is done nobody may see what is left.
    pub(crate) fn finish_sweeping(&mut self, left: Vec<EntityId>) {
        if !left.is_empty() {
            let left = left.into_iter().map(|entity| Sweep { entity, ended_at: Timestamp::EPOCH }); // that was looked at when it was begun
            self.remove(left.collect(), None);
        }
    }

    fn remove(&mut self, ended: VecDeque<Sweep>, reply: Option<oneshot::Sender<usize>>) {
        for sweep in &ended {
            self.seat(&sweep.entity).memory = Memory::Loading(Vec::new());
        }
        let (store, clock, shard, term) = (Arc::clone(&self.store), Arc::clone(&self.clock), self.id, self.committed.term);
        let work = async move {
            let (mut left, mut outcomes, mut patience) = (ended, Vec::new(), STORE_RETRY_AFTER);
            while !left.is_empty() {
                match store.sweep(shard, term, left.make_contiguous()).await {
                    Ok(swept) => {
                        let done = swept
                            .into_iter()
                            .take_while(|swept| *swept != Swept::Half)
                            .map_while(|swept| Some((left.pop_front()?.entity, swept)));
                        outcomes.extend(done);
                        patience = STORE_RETRY_AFTER;
                        clock.sleep(PAUSE).await;
                    }
                    Err(error) if error.is_retryable() => {
                        tracing::warn!(shard, %error, code = error.code(), "what has ended could not be removed; trying again");
                        clock.sleep(patience).await;
                        patience = (patience * 2).min(PAUSE_MAX);
                    }
                    Err(error) => {
                        tracing::error!(shard, %error, code = error.code(), "what has ended cannot be removed");
                        outcomes.extend(left.drain(..).map(|sweep| (sweep.entity, Swept::Kept)));
                    }
                }
            }
            Done::Swept(Sweeping { outcomes, reply })
        };
        self.state.tasks.push(work.boxed());
    }

    /// Whoever asked meanwhile is answered.
    pub(super) fn swept(&mut self, Sweeping { outcomes, reply }: Sweeping) {
        let gone = outcomes.iter().filter(|(_, swept)| *swept == Swept::Gone).count();
        for (id, swept) in outcomes {
            match swept {
                Swept::Gone => self.loaded(&id, Ok(None)),
                Swept::Kept | Swept::Half => {
                    if let Memory::Loading(waiting) = std::mem::take(&mut self.seat(&id).memory) {
                        waiting.into_iter().for_each(|ask| self.ask(id.clone(), ask));
                    }
                    self.tidy(&id);
                }
            }
        }
        let _nobody_counts = reply.map(|reply| reply.send(gone));
    }
}
