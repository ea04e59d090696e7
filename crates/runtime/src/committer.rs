//! Group commit: whatever batches are waiting become one durable commit, while the shard prepares the next.
//!
//! A lone batch never waits for company. Two commits are under way at a time, so that the store finds the next one ready the moment it has
//! finished one; that is safe because a batch whose predecessor failed does not fit its fence and fails too.

use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use std::collections::VecDeque;
use std::sync::Arc;
use steadfast_store::{Batch, Error, Store};
use tokio::sync::mpsc;

/// How many commits are under way at once: one at the disk, one ready behind it.
const DEPTH: usize = 2;

/// A group ends at this size, so that one commit does not hold everybody up for long.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// The fate of everything up to that batch number.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) upto: u64,
    pub(crate) result: Result<(), Arc<Error>>,
}

pub(crate) struct Committer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) batches: mpsc::UnboundedReceiver<Batch>,
    pub(crate) outcomes: mpsc::UnboundedSender<Outcome>,
}

impl Committer {
    /// Runs until the shard is gone and everything it submitted is settled.
    pub(crate) async fn run(mut self) {
        let mut waiting = VecDeque::new();
        let mut under_way = FuturesOrdered::new();
        let mut open = true;
        while open || !waiting.is_empty() || !under_way.is_empty() {
            tokio::select! {
                biased;
                Some(outcome) = under_way.next(), if !under_way.is_empty() => {
                    let _shard_is_gone = self.outcomes.send(outcome);
                }
                batch = self.batches.recv(), if open => match batch {
                    Some(batch) => {
                        waiting.push_back(batch);
                        while let Ok(batch) = self.batches.try_recv() {
                            waiting.push_back(batch);
                        }
                    }
                    None => open = false,
                },
            }
            while under_way.len() < DEPTH
                && let Some(group) = take_group(&mut waiting)
            {
                let upto = group.fences.last().map_or(0, |fence| fence.upto);
                let outcome = move |result: Result<(), Error>| Outcome { upto, result: result.map_err(Arc::new) };
                under_way.push_back(self.store.commit(group).map(outcome));
            }
        }
    }
}

/// Merges what is waiting, in order, up to the size limit.
fn take_group(waiting: &mut VecDeque<Batch>) -> Option<Batch> {
    let mut group = waiting.pop_front()?;
    let mut size = group.size();
    while let Some(next) = waiting.front() {
        size += next.size();
        if size > GROUP_BYTES_MAX {
            break;
        }
        if let Some(next) = waiting.pop_front() {
            group.merge(next);
        }
    }
    Some(group)
}
