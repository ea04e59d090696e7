//! What benchmarks need to see of the inside. It is no part of the interface and changes with what it shows.

use crate::clock::Clock;
use crate::committer::{Committer, Outcome};
use crate::timers::{Fired, Limits, Order, Role, TimerKeeper};
use std::collections::VecDeque;
use std::sync::Arc;
use steadfast_kernel::Timer;
use steadfast_store::memory::Memory;
use steadfast_store::{Batch, Commit, Fence};
use tokio::sync::{mpsc, oneshot, watch};

/// A timer keeper by itself, on a store without timers. It ends when this is dropped.
pub struct Keeper {
    orders: mpsc::UnboundedSender<Order>,
    fired: mpsc::UnboundedReceiver<Fired>,
    _role: watch::Sender<Role>,
}

impl Keeper {
    /// Starts it on the tokio runtime that this is called in.
    pub fn start(clock: Arc<dyn Clock>) -> Self {
        let (role, is_leader) = watch::channel(Role::Leader { term: 1 });
        let (orders, to_follow) = mpsc::unbounded_channel();
        let (sender, fired) = mpsc::unbounded_channel();
        tokio::spawn(TimerKeeper::new(clock, Arc::new(Memory::new()), 0, is_leader, to_follow, sender, Limits::default()).run());
        Keeper { orders, fired, _role: role }
    }

    /// Has it keep a timer.
    pub fn arm(&self, timer: Timer) {
        let _keeper_is_gone = self.orders.send(Order::Arm(timer));
    }

    /// Waits for the next one that is due.
    pub async fn fired(&mut self) -> Option<Timer> {
        self.fired.recv().await.map(|fired| fired.timer)
    }

    /// Says that it was dealt with.
    pub fn settle(&self, timer: Timer) {
        let _keeper_is_gone = self.orders.send(Order::Settle(timer));
    }
}

/// The group commit by itself, in front of whatever makes batches durable: what a shard would do if there were nothing to decide. It ends when the last
/// clone is dropped.
#[derive(Clone)]
pub struct GroupCommit(mpsc::UnboundedSender<Submitted>);

struct Submitted {
    batch: Batch,
    durable: oneshot::Sender<()>,
}

impl GroupCommit {
    /// Starts it on the tokio runtime that this is called in.
    pub fn start(commit: impl Fn(Batch) -> Commit + Send + 'static) -> Self {
        let (line, submitted) = mpsc::unbounded_channel();
        let (batches, to_commit) = mpsc::unbounded_channel();
        let (sender, outcomes) = mpsc::unbounded_channel();
        tokio::spawn(Committer { commit, batches: to_commit, outcomes: sender }.run());
        tokio::spawn(number(submitted, batches, outcomes));
        GroupCommit(line)
    }

    /// Waits until a batch is durable. False if it cannot be made so.
    pub async fn commit(&self, batch: Batch) -> bool {
        let (durable, is_durable) = oneshot::channel();
        self.0.send(Submitted { batch, durable }).is_ok() && is_durable.await.is_ok()
    }
}

async fn number(
    mut submitted: mpsc::UnboundedReceiver<Submitted>,
    batches: mpsc::UnboundedSender<Batch>,
    mut outcomes: mpsc::UnboundedReceiver<Outcome>,
) {
    let (mut seq, mut pending) = (0, VecDeque::new());
    loop {
        tokio::select! {
            biased;
            Some(Outcome { upto, result }) = outcomes.recv() => {
                while pending.front().is_some_and(|(seq, _)| *seq <= upto) {
                    if let Some((_, durable)) = pending.pop_front()
                        && result.is_ok()
                    {
                        let _client_is_gone = oneshot::Sender::send(durable, ());
                    }
                }
            }
            Some(Submitted { mut batch, durable }) = submitted.recv() => {
                batch.fences = vec![Fence { shard: 0, term: 1, after: seq, upto: seq + 1 }];
                seq += 1;
                pending.push_back((seq, durable));
                let _committer_is_gone = batches.send(batch);
            }
            else => return,
        }
    }
}
