//! A request that runs once was delivered: what the inbox says to it, and what follows for those who wait.

use super::held::{KnownRequests, Waiter};
use super::{CallOff, Caller, Cancellable, Refused};
use crate::envelope::Request;
use crate::inbox::{Kind, Seat, Ticket, Verdict};
use crate::node::{Connection, Inner};
use bytes::Bytes;
use hashbrown::HashMap;
use parking_lot::MutexGuard;
use std::hash::BuildHasher;
use std::sync::Arc;
use steadfast_kernel::{Code, Failure};
use tokio::time::Instant;

/// A request that was delivered.
pub(super) struct Delivery<'a> {
    connection: &'a Connection,
    caller: &'a Caller,
    kind: Kind,
    id: &'a Arc<str>,
    number: u64,
    attempt: u32,
    /// Of all that makes it another request.
    digest: u64,
    now: Instant,
}

impl Delivery<'_> {
    fn call(&self, seat: Seat, called_off: Option<CallOff>) -> Cancellable {
        Cancellable { attempt: self.attempt, name: (Arc::clone(&self.caller.scope), Arc::clone(self.id)), seat: Some(seat), called_off }
    }
}

/// What is locked while the inbox is asked: the calls of the connection before the inbox, so that nothing finishes in between.
struct Locked<'a> {
    calls: MutexGuard<'a, HashMap<u64, Cancellable>>,
    known: MutexGuard<'a, KnownRequests>,
}

impl Inner {
    pub(super) fn delivery<'a>(
        &self,
        connection: &'a Connection,
        caller: &'a Caller,
        kind: Kind,
        request: &Request,
        id: &'a Arc<str>,
        now: Instant,
    ) -> Delivery<'a> {
        let digest = self.hasher.hash_one((&request.route, &request.payload));
        Delivery { connection, caller, kind, id, number: request.number, attempt: request.attempt, digest, now }
    }

    fn locked<'a>(&'a self, delivery: &Delivery<'a>) -> Locked<'a> {
        Locked { calls: delivery.connection.calls.lock(), known: self.known.lock() }
    }

    /// Whether a request is to be run; nothing if it is dealt with. Who told a tell does not wait for it to run, and is handed back.
    pub(super) fn look_up(
        self: &Arc<Self>,
        delivery: &Delivery<'_>,
        waiter: Waiter,
        called_off: Option<&CallOff>,
    ) -> Result<Option<(Ticket, Option<Waiter>)>, Refused> {
        let &Delivery { caller, kind, id, digest, now, .. } = delivery;
        let mut locked = self.locked(delivery);
        let Locked { calls, known } = &mut locked;
        match known.inbox.check(&caller.scope, id, kind, digest, waiter, now) {
            Verdict::New(ticket, seat) => match called_off {
                Some(called_off) => {
                    calls.insert(delivery.number, delivery.call(seat, Some(called_off.clone())));
                    Ok(Some((ticket, None)))
                }
                None => Ok(Some((ticket, known.inbox.leave(seat).map(|left| left.waiter)))),
            },
            verdict => self.deal_with(delivery, verdict, locked).map(|()| None),
        }
    }

    /// The same where nothing new can be run: of a request that is not known nothing is noted, and whoever waits for it is handed back.
    pub(super) fn look_up_known(self: &Arc<Self>, delivery: &Delivery<'_>, waiter: Waiter) -> Result<Option<Waiter>, Refused> {
        let &Delivery { caller, kind, id, digest, now, .. } = delivery;
        let mut locked = self.locked(delivery);
        match locked.known.inbox.check_known(&caller.scope, id, kind, digest, waiter, now) {
            Ok(verdict) => self.deal_with(delivery, verdict, locked).map(|()| None),
            Err(waiter) => Ok(Some(waiter)),
        }
    }

    /// Deals with a request that is not to be run.
    fn deal_with(self: &Arc<Self>, delivery: &Delivery<'_>, verdict: Verdict<Waiter>, mut locked: Locked<'_>) -> Result<(), Refused> {
        match verdict {
            Verdict::New(..) => unreachable!("whoever asks whether a request is new runs it"),
            Verdict::Waits(_) if delivery.kind == Kind::Tell => {} // nobody has taken it yet: whoever does so answers
            Verdict::Waits(seat) => locked.sit_down(delivery, seat),
            Verdict::Dropped(waiter) => {
                drop(locked);
                waiter.answer(self, Ok(Bytes::new()));
            }
            Verdict::Known(outcome, waiter) => {
                drop(locked); // others need not wait until it is written
                waiter.answer(self, outcome);
            }
            Verdict::Different(waiter) => {
                let failure = Failure::new(Code::InvalidArgument, "another request of that id came before: an id stands for one request");
                return Err((waiter, failure));
            }
            Verdict::Full(waiter, retry_after) => {
                return Err((waiter, Failure::new(Code::ResourceExhausted, "the inbox is full").retry_after(retry_after)));
            }
        }
        Ok(())
    }
}

impl Locked<'_> {
    /// One seat for all attempts of a call: that of the newest, which is the one under way.
    fn sit_down(&mut self, delivery: &Delivery<'_>, seat: Seat) {
        let KnownRequests { inbox, deserted } = &mut *self.known;
        let called_off = match self.calls.get(&delivery.number) {
            Some(call) if call.attempt > delivery.attempt => {
                inbox.leave(seat);
                return;
            }
            Some(Cancellable { seat: Some(earlier), called_off, .. }) => {
                inbox.leave(*earlier);
                called_off.clone()
            }
            _ => deserted.remove(&(Arc::clone(&delivery.caller.scope), Arc::clone(delivery.id))),
        };
        self.calls.insert(delivery.number, delivery.call(seat, called_off));
    }
}
