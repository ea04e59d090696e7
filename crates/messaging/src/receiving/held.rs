//! What is held while a request runs or waits, and who waits for it: given back however it ends.

use super::again::Again;
use super::{CallOff, RETRY_AFTER};
use crate::envelope::{Body, Reply};
use crate::inbox::{Finish, Inbox, Kind, Settings, Ticket};
use crate::node::{Connection, Inner, Untaken};
use bytes::Bytes;
use hashbrown::HashMap;
use parking_lot::Mutex;
use prost::Message;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use steadfast_kernel::{Code, Failure};
use tokio::time::Instant;

/// The caller of a request, and its id.
pub(crate) type RequestName = (Arc<str>, Arc<str>);

/// Somebody who waits for an answer.
#[derive(Clone)]
pub(crate) struct Waiter {
    pub(super) connection: Arc<Connection>,
    pub(super) number: u64,
    pub(super) attempt: u32,
}

impl Waiter {
    /// Answers. What is short and finds no room among the rest has some of its own; only if that is full as well, nothing is said, and the request comes again.
    pub(super) fn answer(self, node: &Arc<Inner>, outcome: Result<Bytes, Failure>) {
        let Waiter { connection, number, attempt } = self;
        let outcome = outcome.and_then(|answer| fits(answer, connection.payload_bytes_max));
        let is_short = outcome.as_ref().map_or(true, Bytes::is_empty);
        let reply = Body::Reply(crate::node::reply(number, attempt, outcome));
        match connection.outgoing.try_push(&reply) {
            Err(Untaken::Full) if is_short => drop(connection.outgoing.push_small(&reply)),
            Err(Untaken::Full) => answer_later(node, connection, reply),
            Ok(()) | Err(Untaken::Closed) => {}
        }
    }
}

/// The requests of others that are known: one lock, because whoever looks for a request needs all of it.
pub(crate) struct KnownRequests {
    pub(crate) inbox: Inbox<Waiter>,
    /// Calls that run, and that whoever began them has left: it may come again, or others wait for the same. They can call them off then.
    pub(super) deserted: HashMap<RequestName, CallOff>,
}

impl KnownRequests {
    pub(crate) fn new(settings: Settings) -> Self {
        KnownRequests { inbox: Inbox::new(settings), deserted: HashMap::default() }
    }
}

/// What one connection may have, as a multiple of what is free: alone it gets four fifths, and whoever comes later always finds some.
pub(super) const SHARE: usize = 4;

/// A place among the requests that run or wait; free again when it is dropped.
pub(crate) struct Place {
    node: Arc<Inner>,
    /// Nothing if it came out of the dead letters.
    connection: Option<Arc<Connection>>,
    bytes: usize,
}

impl Place {
    pub(super) fn take(node: &Arc<Inner>, connection: Option<&Arc<Connection>>, bytes: usize) -> Option<Self> {
        let place = Place { node: Arc::clone(node), connection: connection.cloned(), bytes };
        let all = node.load.add(bytes);
        let mine = connection.map_or(Before { count: 0, bytes: 0 }, |connection| connection.load.add(bytes));
        let (count_max, bytes_max) = (node.limits.requests_max, node.limits.requests_bytes_max);
        let fits = all.count < count_max && all.bytes.saturating_add(bytes) <= bytes_max;
        let is_fair =
            mine.count <= SHARE * count_max.saturating_sub(all.count) && mine.bytes <= SHARE * bytes_max.saturating_sub(all.bytes);
        (fits && is_fair).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(connection) = &self.connection {
            connection.load.sub(self.bytes);
        }
        if self.node.load.sub(self.bytes).count == 1 {
            self.node.idle.notify_waiters();
        }
    }
}

/// Requests that run or wait, and their bytes: both in one number, because every request of every thread changes them.
#[derive(Default)]
pub(crate) struct Load {
    both: AtomicU64,
    /// When those were last let go whose time is over, because there was no place.
    looked_at: Mutex<Option<Instant>>,
}

/// How many bits of it the bytes have.
const BYTES: u32 = 40;

/// What there was before.
struct Before {
    count: usize,
    bytes: usize,
}

impl Before {
    fn of(both: u64) -> Self {
        Before { count: (both >> BYTES) as usize, bytes: (both & ((1 << BYTES) - 1)) as usize }
    }
}

impl Load {
    pub(crate) fn count(&self) -> usize {
        (self.both.load(Ordering::SeqCst) >> BYTES) as usize
    }

    /// Whether it is worth looking for those whose time is over: it was not done just now.
    pub(super) fn is_to_look(&self, now: Instant) -> bool {
        let mut looked_at = self.looked_at.lock();
        let is_to = looked_at.is_none_or(|at| now >= at + RETRY_AFTER);
        if is_to {
            *looked_at = Some(now);
        }
        is_to
    }

    fn add(&self, bytes: usize) -> Before {
        Before::of(self.both.fetch_add((1 << BYTES) + bytes as u64, Ordering::SeqCst))
    }

    fn sub(&self, bytes: usize) -> Before {
        Before::of(self.both.fetch_sub((1 << BYTES) + bytes as u64, Ordering::SeqCst))
    }
}

/// What is held for a request until it is over. Dropped before that, it is as if the request had never come, and those who wait may try again.
pub(crate) struct Held {
    pub(super) kind: Kind,
    pub(super) name: RequestName,
    pub(super) ticket: Option<Ticket>,
    /// Who waits, if the inbox does not know.
    pub(super) waiter: Option<Waiter>,
    pub(super) called_off: Option<CallOff>,
    pub(super) number: u64,
    /// It came out of the dead letters.
    pub(super) again: Option<Box<Again>>,
    /// It is a tell, and this side's.
    pub(super) taken: Option<Taken>,
    pub(super) place: Place,
}

/// A tell that this side has taken and that is not made durable elsewhere.
pub(super) struct Taken(Arc<Inner>);

impl Taken {
    /// Nothing if the node is ending: then nobody waits for it.
    fn take(node: &Arc<Inner>) -> Option<Self> {
        node.taken.fetch_add(1, Ordering::SeqCst); // before it is looked whether the node is ending, so that whoever ends it sees this one
        let taken = Taken(Arc::clone(node));
        (!node.is_closing()).then_some(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.0.taken.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

impl Held {
    pub(super) fn node(&self) -> &Arc<Inner> {
        &self.place.node
    }

    /// The connection that it came by; 0 if it came out of the dead letters.
    pub(super) fn connection(&self) -> u64 {
        self.place.connection.as_ref().map_or(0, |connection| connection.id)
    }

    /// It is this side's from now on, if it is a tell; false if the node is ending and cannot take it.
    pub(super) fn taken(&mut self) -> bool {
        if self.kind == Kind::Tell {
            self.taken = Taken::take(self.node());
            if self.taken.is_none() {
                return false;
            }
            let repeats = self.ticket.as_ref().map(|ticket| self.node().known.lock().inbox.taken(ticket));
            for waiter in self.waiter.take().into_iter().chain(repeats.into_iter().flatten()) {
                waiter.answer(self.node(), Ok(Bytes::new()));
            }
        }
        true
    }

    /// It is a tell that this side has taken.
    pub(super) fn is_taken(&self) -> bool {
        self.taken.is_some()
    }

    /// It is a tell that this side has taken and does not wait for any more.
    pub(super) fn is_given_up(&self) -> bool {
        self.is_taken() && self.node().gives_up.is_cancelled()
    }

    /// It is not worth running any more at that time, though nobody has called it off. A tell that this side has taken gets its time when its turn comes, and so does a dead letter.
    pub(super) fn is_late(&self, ends_at: Instant, now: Instant) -> bool {
        ends_at <= now && !self.is_taken() && self.again.is_none()
    }

    /// It is not run after all.
    pub(super) fn refuse(mut self, failure: &Failure) {
        for waiter in self.finish(Finish::Forget) {
            waiter.answer(self.node(), Err(failure.clone()));
        }
    }

    /// The request is over: all who wait are told. An answer for which there is no room has a place of its own until there is, and holds up nobody of its route and nobody else who waits. If it
    /// finds no place, whoever waits is told to ask again.
    pub(super) fn settle(mut self, outcome: Result<Bytes, Failure>) {
        for waiter in self.finish(Finish::of(&outcome)) {
            waiter.answer(self.node(), outcome.clone());
        }
    }

    /// It is a tell that has come to nothing and is kept elsewhere.
    pub(super) fn give_up(mut self) {
        for waiter in self.finish(Finish::GiveUp) {
            waiter.answer(self.node(), Ok(Bytes::new()));
        }
    }

    /// It is over, however that came about: those who wait are to be told.
    fn finish(&mut self, finish: Finish) -> impl Iterator<Item = Waiter> + use<> {
        let waits = self.waiter.take().map(|waiter| self.newest(waiter));
        let waiters = self.ticket.take().map(|ticket| {
            let before = self.again.take().and_then(|again| again.before);
            let finish = match (finish, before) {
                (Finish::Forget, Some(before)) => before, // what is known of it stays if nothing new comes of it
                (finish, _) => finish,
            };
            let now = Instant::now();
            let mut known = self.node().known.lock();
            if self.kind == Kind::Call && !known.deserted.is_empty() {
                known.deserted.remove(&self.name);
            }
            known.inbox.finish(ticket, finish, now)
        });
        let is_call = self.kind == Kind::Call;
        let waiters = waiters.into_iter().flatten().inspect(move |waiter| {
            if is_call {
                waiter.connection.forget_call(waiter.number, waiter.attempt);
            }
        });
        waits.into_iter().chain(waiters)
    }

    /// Who waits for a call that the inbox does not know: the newest attempt of it, which may have come while it ran.
    fn newest(&self, waiter: Waiter) -> Waiter {
        let ended = self
            .called_off
            .as_ref()
            .and_then(|called_off| waiter.connection.end_call(waiter.number, called_off));
        Waiter { attempt: ended.unwrap_or(waiter.attempt), ..waiter }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for waiter in self.finish(Finish::Forget) {
            waiter.answer(self.node(), Err(Failure::transient(format!("{} let go of request {}", self.node().name, self.number))));
        }
    }
}

/// Answers when there is room, if there is a place to wait for that.
fn answer_later(node: &Arc<Inner>, connection: Arc<Connection>, body: Body) {
    let Body::Reply(reply @ Reply { number, attempt, .. }) = &body else { return };
    let Some(place) = Place::take(node, Some(&connection), reply.encoded_len()) else {
        let failure = Failure::new(Code::ResourceExhausted, "too many answers wait to be read").retry_after(RETRY_AFTER);
        let busy = Body::Reply(crate::node::reply(*number, *attempt, Err(failure)));
        let _it_comes_again_all_the_same = connection.outgoing.push_small(&busy);
        return;
    };
    tokio::spawn(async move {
        let _it_comes_again_if_it_is_cut = connection.outgoing.push(&body).await;
        drop(place);
    });
}

/// An answer, unless it is longer than it may be: it would be no shorter the next time.
pub(super) fn fits(answer: Bytes, longest: usize) -> Result<Bytes, Failure> {
    match answer.len() <= longest {
        true => Ok(answer),
        false => Err(Failure::permanent(format!("the answer has {} bytes, and {longest} are allowed", answer.len()))),
    }
}
