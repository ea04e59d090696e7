//! How a shard comes to rest, so that nothing of it is cut off when it is closed, and how it goes on if that takes too long.
//!
//! ```text
//!   at work --Drain--> coming to rest --nothing in flight--> over
//!      ^                     |
//!      +-------GoOn----------+
//! ```
//! While it comes to rest nothing begins: no attempt, no run, no callback. What is asked for and what entities tell each other is put on record as long as attempts are in flight, and so are the ends
//! of runs and the leases of locks, which others wait for. Whoever opens the shard next finds all of it; and so does the shard itself when it goes on: it reads what is under way, the outbox,
//! the ends of keys and the timers as if it were opened, beside the sessions that have been in flight all the time. Once nothing is in flight nothing is taken any more, or it would never be over.
//!
//! Tested by `crates/sdk/tests/it/cluster/stays.rs`.

use super::load::under_way;
use super::{Ask, Done, Health, Request, Shard, State};
use crate::error::{Error, STORE_RETRY_AFTER};
use crate::host::ToHost;
use crate::timers::Order;
use futures_util::FutureExt;
use std::sync::Arc;
use steadfast_kernel::{EntityId, Message, TimerName};
use steadfast_store::RunRow;
use tokio::sync::oneshot;

impl State {
    /// Whether attempts are in flight, or something that was cut off before is not on record yet.
    fn is_at_work(&self) -> bool {
        self.live.count() + self.lanes.unsettled() > 0 || !self.to_interrupt.is_empty()
    }
}

impl Shard {
    /// Begins nothing any more, and is over when nothing is in flight.
    pub(super) fn drain(&mut self, reply: oneshot::Sender<()>) {
        self.state.draining.get_or_insert_default().push(reply);
        if self.is_shut() {
            self.order(Order::Stop);
        }
        self.tell_or_not();
        for seat in self.state.seats.values_mut() {
            seat.tell(ToHost::Drain);
        }
    }

    /// Whether it is about to be over: nothing is put on record here any more.
    pub(super) fn is_shut(&self) -> bool {
        self.state.is_draining() && !self.state.is_at_work()
    }

    /// Whether its process ends: what would begin is not put on record, because it is cut off before it has.
    fn ends(&self) -> bool {
        self.state.is_draining() && (self.others.is_none() || self.ways.upgrade().is_none_or(|ways| ways.ends()))
    }

    /// Whether an entity hears what another one says. It may be the beginning of a task, so a process that ends lets them hear of leases only: whoever is in flight keeps its lock until the end.
    pub(super) fn hears(&self, message: &Message) -> bool {
        let is_of_lease = matches!(message, Message::ConfirmLock { .. } | Message::RenewLock { .. } | Message::DenyLock { .. });
        !self.is_shut() && (is_of_lease || !self.ends())
    }

    /// Whether a timer that is due is heard of. While the shard comes to rest, those are that begin nothing and that others wait for; the others have their rows, and fire later.
    pub(super) fn lets_fire(&self, name: &TimerName) -> bool {
        match name {
            _ if !self.state.is_draining() => true,
            TimerName::Lease => !self.is_shut(),
            TimerName::Deadline => !self.is_shut() && !self.ends(),
            _ => false,
        }
    }

    /// Whether a request has to be made of whoever has the shard next. What is asked for while attempts are in flight is put on record, though it begins only when the shard is open again.
    /// An engine that is about to stop does not take what it is not going to begin.
    pub(super) fn is_closing(&self, request: &Request) -> bool {
        self.state.is_draining()
            && match request {
                Request::Start { .. } => self.ends() || self.is_shut(),
                Request::Tell { .. } => self.others.is_some() && self.is_shut(),
                _ => false,
            }
    }

    /// Whether it has come to rest. Those who wait for that are told.
    pub(super) fn is_drained(&mut self) -> bool {
        if !self.state.is_draining() || self.state.is_at_work() || !self.state.pending.is_empty() {
            return false;
        }
        for reply in self.state.draining.take().into_iter().flatten() {
            let _nobody_waits = reply.send(());
        }
        true
    }

    /// Stays here after all. Those who wait for it to come to rest hear that it does not.
    pub(super) fn go_on(&mut self, reply: oneshot::Sender<()>) {
        if self.state.draining.take().is_none() {
            return;
        }
        for seat in self.state.seats.values_mut() {
            seat.tell(ToHost::GoOn);
        }
        self.state.unopened.clear();
        self.state.reads_after = Some(self.state.submitted); // what is on its way to the store may concern runs that nobody hosts
        self.go_on_once_settled();
        self.read_outbox();
        self.tell_or_not();
        self.order(Order::GoOn);
        let _nobody_waits = reply.send(());
    }

    /// Once the fate of everything is known that was submitted before the shard went on, and the store can be written, the store says what there is to be done.
    pub(super) fn go_on_once_settled(&mut self) {
        let Some(upto) = self.state.reads_after else { return };
        if self.state.pending.front().is_none_or(|pending| pending.seq > upto) && matches!(self.state.health, Health::Well) {
            self.state.reads_after = None;
            self.read_under_way();
        }
    }

    /// Asks the store what there is to be done, and is not hosted any more.
    fn read_under_way(&mut self) {
        let (store, clock, shard) = (Arc::clone(&self.store), Arc::clone(&self.clock), self.id);
        let read = async move {
            loop {
                match under_way(&*store, shard).await {
                    Err(error) if error.is_retryable() => clock.sleep(STORE_RETRY_AFTER).await,
                    result => return Done::UnderWay(result),
                }
            }
        };
        self.state.tasks.push(read.boxed());
    }

    pub(super) fn under_way_read(&mut self, result: Result<Vec<RunRow>, Error>) {
        let rows = match result {
            Ok(rows) => rows,
            Err(error) => {
                tracing::error!(shard = self.id, %error, "what is under way cannot be read; the shard is opened anew");
                return self.give_up(Arc::new(steadfast_store::Error::Fenced { shard: self.id, term: self.committed.term }));
            }
        };
        if !matches!(self.state.health, Health::Well) {
            self.state.reads_after = Some(0); // nobody can be hosted now
            return;
        }
        for RunRow { run, wait, .. } in rows {
            let id = EntityId::Run(run);
            let seat = self.seat(&id);
            if seat.session.is_none() {
                seat.row_says_blocked |= wait.is_some();
                self.ask(id, Ask::Resume);
            }
        }
    }
}
