//! The keeper of durable timers: exact, without polling, never early.
//!
//! The rows in the store are the truth; the keeper holds them in memory in the order of their due times and tells the shard when one is
//! due. It does not settle anything: a timer whose firing leads to nothing durable is armed again from state.

use crate::clock::Clock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{RunId, Seq, Timer, TimerName, Timestamp};
use steadfast_store::TimerKey;
use tokio::sync::mpsc;

/// The longest nap: a wall clock that was set forward is noticed within this.
const NAP_MAX: Duration = Duration::from_secs(30);

/// How many timers are handed over before orders are heard again.
const FIRED_MAX: usize = 256;

/// What the keeper is told.
#[derive(Debug)]
pub(crate) enum Order {
    /// Keep it; it replaces one of the same run and name.
    Arm(Timer),
    /// Forget it.
    Disarm(RunId, TimerName),
}

pub(crate) struct TimerKeeper {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) orders: mpsc::UnboundedReceiver<Order>,
    pub(crate) fired: mpsc::UnboundedSender<Timer>,
    pub(crate) queue: DueQueue,
}

impl TimerKeeper {
    /// Runs until the shard is gone.
    pub(crate) async fn run(mut self) {
        loop {
            let now = self.clock.now();
            for timer in self.queue.take_due(now, FIRED_MAX) {
                if self.fired.send(timer).is_err() {
                    return;
                }
            }
            let nap = self.queue.next_due().map_or(NAP_MAX, |due| due.saturating_since(self.clock.now()).min(NAP_MAX));
            tokio::select! {
                biased;
                order = self.orders.recv() => match order {
                    Some(order) => self.queue.follow(order),
                    None => return,
                },
                () = self.clock.sleep(nap) => {}
            }
            while let Ok(order) = self.orders.try_recv() {
                self.queue.follow(order);
            }
        }
    }
}

/// Timers in the order of their due times, found by name too. Pure: time is an argument.
#[derive(Debug, Default)]
pub(crate) struct DueQueue {
    by_due: BTreeMap<TimerKey, Seq>,
    by_name: BTreeMap<(RunId, TimerName), Timestamp>,
}

impl DueQueue {
    pub(crate) fn follow(&mut self, order: Order) {
        match order {
            Order::Arm(timer) => self.arm(timer),
            Order::Disarm(run, name) => self.disarm(run, name),
        }
    }

    /// A timer of an older revision does not replace a newer one.
    fn arm(&mut self, timer: Timer) {
        let named = (timer.run.clone(), timer.name.clone());
        if let Some(due) = self.by_name.get(&named) {
            let key = TimerKey { due: *due, run: timer.run.clone(), name: timer.name.clone() };
            if self.by_due.get(&key).is_some_and(|revision| *revision > timer.revision) {
                return;
            }
            self.by_due.remove(&key);
        }
        self.by_name.insert(named, timer.due);
        self.by_due.insert(TimerKey::from(&timer), timer.revision);
    }

    fn disarm(&mut self, run: RunId, name: TimerName) {
        if let Some(due) = self.by_name.remove(&(run.clone(), name.clone())) {
            self.by_due.remove(&TimerKey { due, run, name });
        }
    }

    /// Takes what is due, earliest first, at most `limit`.
    fn take_due(&mut self, now: Timestamp, limit: usize) -> Vec<Timer> {
        let mut due = Vec::new();
        while due.len() < limit
            && let Some(first) = self.by_due.first_entry()
            && first.key().due <= now
        {
            let (TimerKey { due: at, run, name }, revision) = first.remove_entry();
            self.by_name.remove(&(run.clone(), name.clone()));
            due.push(Timer { run, name, due: at, revision });
        }
        due
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.by_due.first_key_value().map(|(key, _)| key.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_kernel::StepId;

    fn timer(run: &str, due: i64, revision: Seq) -> Timer {
        let name = TimerName::Sleep(StepId::new("", "sleep", 1).unwrap());
        Timer { run: RunId::new(run).unwrap(), name, due: Timestamp::from_micros(due), revision }
    }

    fn queue(timers: impl IntoIterator<Item = Timer>) -> DueQueue {
        let mut queue = DueQueue::default();
        timers.into_iter().for_each(|timer| queue.follow(Order::Arm(timer)));
        queue
    }

    #[test]
    fn due_timers_come_in_order_and_never_early() {
        let mut queue = queue([timer("b", 20, 1), timer("a", 10, 1), timer("c", 30, 1)]);
        assert_eq!(queue.take_due(Timestamp::from_micros(9), 10), []);
        assert_eq!(queue.take_due(Timestamp::from_micros(20), 10), [timer("a", 10, 1), timer("b", 20, 1)]);
        assert_eq!(queue.next_due(), Some(Timestamp::from_micros(30)));
    }

    #[test]
    fn one_pass_is_bounded_and_forgets_nothing() {
        let mut queue = queue((0..10).map(|i| timer(&format!("r{i}"), 1, 1)));
        let now = Timestamp::from_micros(1);
        assert_eq!([4, 4, 4].map(|limit| queue.take_due(now, limit).len()), [4, 4, 2]);
    }

    #[test]
    fn arming_again_replaces_and_an_older_revision_does_not() {
        let mut queue = queue([timer("a", 10, 5), timer("a", 50, 6), timer("a", 1, 4)]);
        assert_eq!(queue.take_due(Timestamp::from_micros(49), 10), []);
        assert_eq!(queue.take_due(Timestamp::from_micros(50), 10), [timer("a", 50, 6)]);
        assert_eq!(queue.next_due(), None);
    }

    #[test]
    fn a_disarmed_timer_does_not_fire() {
        let mut queue = queue([timer("a", 10, 1), timer("b", 10, 1)]);
        let gone = timer("a", 10, 1);
        queue.follow(Order::Disarm(gone.run.clone(), gone.name.clone()));
        queue.follow(Order::Disarm(gone.run, gone.name));
        assert_eq!(queue.take_due(Timestamp::MAX, 10), [timer("b", 10, 1)]);
    }
}
