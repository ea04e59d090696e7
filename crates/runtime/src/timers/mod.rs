//! The keeper of durable timers: exact, without polling, never early.
//!
//! The rows in the store are the truth. The keeper holds those of the near future in memory, reads the next ones before their time comes, and tells the shard when
//! one is due. A timer that was told is pending until the shard has dealt with it: what the store was away for, or what nobody answered, is told again.
//!
//! Tested by `crates/crash-test/tests/it/facts/a_timer_never_fires_early.rs`.

mod name;
mod queues;

use crate::clock::Clock;
use crate::error::STORE_RETRY_AFTER;
use name::Name;
pub(crate) use queues::Limits;
use queues::{ExpiryQueues, Handed};
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Attempt, EntityId, Timer, TimerName, Timestamp};
use steadfast_store::{Error, ShardId, Store, TimerKey};
use tokio::sync::{mpsc, watch};

/// How far ahead timers are held in memory; the rest is in the store. The next ones are read half of it before the first of them is due.
const HORIZON: Duration = Duration::from_secs(10 * 60);

/// How many timers are read at once. Those that are due are told in between.
const PAGE: usize = 1000;

/// Whether this instance may fire the timers of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It may: it holds that claim of the shard.
    Leader {
        /// The number of the claim.
        term: u64,
    },
    /// Somebody else may.
    Follower,
}

/// The role of this instance for a shard, as it changes. A store that belongs to one process alone is always led by it.
pub type Leadership = watch::Receiver<Role>;

/// What the keeper is told.
#[derive(Debug)]
pub(crate) enum Order {
    /// Keep it; it replaces one of the same entity and name.
    Arm(Timer),
    /// Forget it.
    Disarm(EntityId, TimerName),
    /// What was told has been dealt with, or is left to whoever reads its row next.
    Settle(Timer),
    /// It could not be dealt with now: tell it again in a while.
    Again(Fired),
    /// The store may have timers that nobody has spoken of: look.
    Reread,
    /// Tell nothing any more; the shard is about to be closed.
    Stop,
    /// Tell again what is due: the shard is not closed after all.
    GoOn,
}

/// A timer that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fired {
    pub(crate) timer: Timer,
    /// How often it was told, this time included.
    attempt: Attempt,
}

pub(crate) struct TimerKeeper {
    clock: Arc<dyn Clock>,
    store: Arc<dyn Store>,
    shard: ShardId,
    role: Leadership,
    orders: mpsc::UnboundedReceiver<Order>,
    fired: mpsc::UnboundedSender<Fired>,
    queues: ExpiryQueues<Name>,
    horizon: Horizon,
}

/// What of the store's timers is in memory.
struct Horizon {
    /// Those that are due up to then are, or are being read.
    upto: Timestamp,
    /// Those that are due up to then were read, or were armed since.
    covered: Option<Timestamp>,
    /// The last one that was read.
    cursor: Option<TimerKey>,
    /// Not all of them are read yet.
    filling: bool,
    /// The store could not be read; it is left alone until then.
    read_again_at: Timestamp,
    /// When the first one beyond it is due, at the earliest.
    beyond: Option<Timestamp>,
}

impl Horizon {
    /// Nothing is known of what the store has.
    fn unread(now: Timestamp) -> Self {
        let upto = now.saturating_add(HORIZON);
        Horizon { upto, covered: None, cursor: None, filling: true, read_again_at: now, beyond: None }
    }

    fn is_to_be_read(&self, now: Timestamp) -> bool {
        self.filling && self.read_again_at <= now
    }
}

impl TimerKeeper {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        store: Arc<dyn Store>,
        shard: ShardId,
        role: Leadership,
        orders: mpsc::UnboundedReceiver<Order>,
        fired: mpsc::UnboundedSender<Fired>,
        limits: Limits,
    ) -> Self {
        let horizon = Horizon::unread(clock.now());
        TimerKeeper { clock, store, shard, role, orders, fired, queues: ExpiryQueues::new(limits), horizon }
    }

    /// Runs until the shard is gone.
    pub(crate) async fn run(mut self) {
        self.change_role();
        loop {
            while let Ok(order) = self.orders.try_recv() {
                self.follow(order);
            }
            if self.role.has_changed().unwrap_or_default() {
                self.change_role(); // also while there is much to tell
            }
            let more = self.run_once().await;
            if self.orders.is_closed() && self.orders.is_empty() {
                return;
            }
            if more {
                tokio::task::yield_now().await;
                continue;
            }
            let nap = self.nap();
            tokio::select! {
                biased;
                order = self.orders.recv() => match order {
                    Some(order) => self.follow(order),
                    None => return,
                },
                Ok(()) = self.role.changed() => self.change_role(),
                () = self.clock.sleep(nap) => {}
            }
        }
    }

    /// Only a leader tells timers. What was told and not settled before is told again by whoever leads next, who does not know what was armed meanwhile.
    fn change_role(&mut self) {
        let role = *self.role.borrow_and_update();
        tracing::debug!(shard = self.shard, ?role, "the keeper's role has changed");
        match role {
            Role::Leader { .. } => {
                self.queues.follow(); // somebody else may have led in between
                self.queues.lead();
                self.horizon = Horizon::unread(self.clock.now());
            }
            Role::Follower => self.queues.follow(),
        }
    }

    /// One pass: reads a page if there is something to read, and tells what is due, whether or not it could be read. True if there is more to do now.
    async fn run_once(&mut self) -> bool {
        self.look_ahead();
        if self.horizon.is_to_be_read(self.clock.now())
            && let Err(error) = self.fill().await
        {
            tracing::warn!(shard = self.shard, %error, "timers cannot be read; trying again");
            self.horizon.read_again_at = self.clock.now().saturating_add(STORE_RETRY_AFTER);
        }
        let pass = self.queues.pass(self.clock.now());
        for Handed { key, revision, attempt, due } in pass.handed {
            let Some((entity, name)) = key.parts() else { continue };
            let _shard_is_gone = self.fired.send(Fired { timer: Timer { entity, name, due, revision }, attempt });
        }
        pass.again || self.horizon.is_to_be_read(self.clock.now())
    }

    /// Moves the horizon on before what is beyond it is due. From then on what is armed below it is kept; what was armed before is in the store, and is read.
    fn look_ahead(&mut self) {
        let now = self.clock.now();
        let near = self.horizon.beyond.is_some_and(|due| now.saturating_add(HORIZON / 2) >= due);
        if near && !self.horizon.filling {
            self.horizon.covered = Some(self.horizon.upto);
            self.horizon.upto = now.saturating_add(HORIZON);
            (self.horizon.filling, self.horizon.beyond) = (true, None);
        }
    }

    /// Reads the next page up to the horizon.
    async fn fill(&mut self) -> Result<(), Error> {
        let page = self.store.timers(self.shard, self.horizon.cursor.as_ref(), PAGE).await?;
        self.horizon.filling = page.len() == PAGE;
        for timer in page {
            if timer.due > self.horizon.upto {
                (self.horizon.filling, self.horizon.beyond) = (false, earlier(self.horizon.beyond, timer.due));
                break;
            }
            self.horizon.cursor = Some(TimerKey::from(&timer));
            if self.horizon.covered.is_none_or(|covered| timer.due > covered) {
                self.keep(timer);
            }
        }
        Ok(())
    }

    /// What is in memory already, or was told already, is newer than the row that was read.
    fn keep(&mut self, timer: Timer) {
        let name = Name::of(&timer);
        if !self.queues.holds(&name, timer.revision) {
            self.queues.update(name, timer.revision, timer.due);
        }
    }

    fn follow(&mut self, order: Order) {
        match order {
            Order::Arm(timer) if timer.due > self.horizon.upto => {
                self.queues.remove(&Name::of(&timer)); // an earlier time of it does not count any more
                self.horizon.beyond = earlier(self.horizon.beyond, timer.due);
            }
            Order::Arm(timer) => self.queues.update(Name::of(&timer), timer.revision, timer.due),
            Order::Disarm(entity, name) => drop(self.queues.remove(&Name::new(&entity, &name))),
            Order::Stop => self.queues.stop(),
            Order::GoOn => {
                self.queues.go_on();
                self.change_role();
            }
            Order::Reread => self.horizon = Horizon::unread(self.clock.now()),
            Order::Settle(timer) => drop(self.queues.settle(&Name::of(&timer), timer.revision)),
            Order::Again(Fired { timer, attempt }) => {
                let next_try = self.clock.now().saturating_add(STORE_RETRY_AFTER);
                self.queues.fail(&Name::of(&timer), timer.revision, attempt, next_try);
            }
        }
    }

    /// Until something is due, or the horizon has to move on, or the clock may have been set.
    fn nap(&self) -> Duration {
        let now = self.clock.now();
        let look_ahead = self.horizon.beyond.map(|due| due.saturating_since(now).saturating_sub(HORIZON / 2));
        let read_again = self.horizon.filling.then(|| self.horizon.read_again_at.saturating_since(now));
        let due = self.queues.next_at().map(|at| at.saturating_since(now));
        due.into_iter().chain(look_ahead).chain(read_again).fold(self.clock.steady_for(), Duration::min)
    }
}

fn earlier(known: Option<Timestamp>, due: Timestamp) -> Option<Timestamp> {
    Some(known.map_or(due, |known| known.min(due)))
}

#[cfg(test)]
mod tests;
