//! What benchmarks need to see of the inside. It is no part of the interface and changes with what it shows.

use crate::clock::Clock;
use crate::timers::{Fired, Order, Role, TimerKeeper};
use std::sync::Arc;
use steadfast_kernel::Timer;
use steadfast_store::memory::Memory;
use tokio::sync::{mpsc, watch};

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
        tokio::spawn(TimerKeeper::new(clock, Arc::new(Memory::new()), 0, is_leader, to_follow, sender).run());
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
