//! Group commit: whatever batches are waiting become one durable commit, while the shard prepares the next.
//!
//! A lone batch never waits for company. Two commits are under way at a time, so that the store finds the next one ready the moment it has
//! finished one; that is safe because a batch whose predecessor failed does not fit its fence and fails too. If it succeeds, its predecessor is there as well, though
//! somebody was told that it failed: the shard takes both for failed then, and looks what there is, as after every commit whose outcome is not known.

use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use std::collections::VecDeque;
use std::sync::Arc;
use steadfast_store::{Batch, Commit, Error};
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

pub(crate) struct Committer<C> {
    /// Makes a batch durable, in the order of the calls.
    pub(crate) commit: C,
    pub(crate) batches: mpsc::UnboundedReceiver<Batch>,
    pub(crate) outcomes: mpsc::UnboundedSender<Outcome>,
}

impl<C: Fn(Batch) -> Commit> Committer<C> {
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
                under_way.push_back((self.commit)(group).map(outcome));
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
        if size > GROUP_BYTES_MAX || !group.takes(next) {
            break;
        }
        if let Some(next) = waiting.pop_front() {
            group.merge(next);
        }
    }
    Some(group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_store::memory::{Fault, Gate, Memory};
    use steadfast_store::{Fence, Head, Store};

    struct Bench {
        batches: mpsc::UnboundedSender<Batch>,
        outcomes: mpsc::UnboundedReceiver<Outcome>,
    }

    async fn start(store: &Memory) -> Bench {
        assert_eq!(store.claim(0).await.unwrap(), Head { term: 1, seq: 0 });
        let (batches, waiting) = mpsc::unbounded_channel();
        let (sender, outcomes) = mpsc::unbounded_channel();
        let store = store.clone();
        tokio::spawn(Committer { commit: move |batch| store.commit(batch), batches: waiting, outcomes: sender }.run());
        Bench { batches, outcomes }
    }

    fn batch(number: u64) -> Batch {
        Batch { fences: vec![Fence { shard: 0, term: 1, after: number - 1, upto: number }], ..Batch::default() }
    }

    #[tokio::test]
    async fn a_lone_batch_does_not_wait_for_company() {
        let store = Memory::new();
        let mut bench = start(&store).await;
        for number in 1..=3 {
            bench.batches.send(batch(number)).unwrap();
            assert_eq!(bench.outcomes.recv().await.unwrap().upto, number);
        }
        assert_eq!(store.commits(), 3);
    }

    #[tokio::test]
    async fn what_is_waiting_while_two_are_under_way_becomes_one_commit() {
        let (store, gate) = (Memory::new(), Gate::default());
        store.faults().after(0, Fault::Hold(gate.clone()));
        let mut bench = start(&store).await;
        for number in 1..=2 {
            bench.batches.send(batch(number)).unwrap();
            tokio::task::yield_now().await;
        }
        (3..=100).for_each(|number| bench.batches.send(batch(number)).unwrap());
        tokio::task::yield_now().await;
        assert_eq!(store.commits(), 2, "one at the disk, one ready behind it, the rest waits");
        assert!(bench.outcomes.try_recv().is_err(), "outcomes are told in order");
        gate.open();
        let mut upto = Vec::new();
        while upto.last() != Some(&100) {
            let outcome = bench.outcomes.recv().await.unwrap();
            assert!(outcome.result.is_ok());
            upto.push(outcome.upto);
        }
        assert_eq!(upto, [1, 2, 100]);
        assert_eq!(store.commits(), 3);
    }

    #[tokio::test]
    async fn what_was_built_on_a_failed_commit_fails_with_it() {
        let store = Memory::new();
        store.faults().after(1, Fault::Fail);
        let mut bench = start(&store).await;
        for number in 1..=4 {
            bench.batches.send(batch(number)).unwrap();
            tokio::task::yield_now().await;
        }
        let mut fates = Vec::new();
        while fates.last().is_none_or(|(upto, _)| *upto < 4) {
            let outcome = bench.outcomes.recv().await.unwrap();
            fates.push((outcome.upto, outcome.result.is_ok()));
        }
        assert_eq!(fates[0], (1, true));
        assert!(fates[1..].iter().all(|(_, ok)| !ok), "{fates:?}");
        assert_eq!(store.head(0).await.unwrap().seq, 1);
    }

    #[tokio::test]
    async fn everything_submitted_is_settled_before_the_committer_ends() {
        let store = Memory::new();
        let mut bench = start(&store).await;
        (1..=10).for_each(|number| bench.batches.send(batch(number)).unwrap());
        drop(bench.batches);
        let mut last = 0;
        while let Some(outcome) = bench.outcomes.recv().await {
            last = outcome.upto;
        }
        assert_eq!((last, store.head(0).await.unwrap().seq), (10, 10));
    }

    #[test]
    fn a_group_ends_at_its_size() {
        let big = |number| Batch { timers: vec![TIMER.clone(); GROUP_BYTES_MAX / 128 / 2 + 1], ..batch(number) };
        let mut waiting: VecDeque<_> = (1..=3).map(big).collect();
        let sizes: Vec<_> = std::iter::from_fn(|| take_group(&mut waiting)).map(|group| group.fences[0].upto).collect();
        assert_eq!(sizes, [1, 2, 3], "no two of them fit into one");
    }

    static TIMER: std::sync::LazyLock<steadfast_store::TimerChange> = std::sync::LazyLock::new(|| steadfast_store::TimerChange::Disarm {
        entity: steadfast_kernel::RunId::new("run").unwrap().into(),
        name: steadfast_kernel::TimerName::Deadline,
    });
}
