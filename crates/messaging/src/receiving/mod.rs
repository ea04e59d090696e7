//! Receiving: what comes is checked, looked up in the inbox, run by its route, and answered.
//!
//! ```text
//!   request --route? allowed? in time?--> inbox --new--> lane --> handler --> outcome --> inbox, all who wait
//!                |                          |--runs: waits (call, and a tell that nobody has taken yet), dropped (tell)
//!                +--no: refused             |--finished: answered from there
//!                                           +--full, or other bytes: refused
//! ```
//! What is new needs a place in the node and is refused if there is none; what runs or has run already needs no other.
//!
//! A tell is answered as soon as it is taken: from then on it is this side's, which tries it again and keeps it as a dead letter if nothing helps.

mod again;
mod calloff;
mod delivery;
mod held;
mod lane;
mod line;
mod pace;
mod route;
mod samples;
mod taken;

pub(crate) use calloff::CallOff;
use delivery::Delivery;
pub(crate) use held::{Held, KnownRequests, Load};
use held::{Place, RequestName, Waiter, fits};
pub(crate) use lane::{Job, Lane};
pub use route::{Caller, Incoming, Route};
pub(crate) use route::{Routed, SampleHandler, StreamHandler};
pub(crate) use samples::Samples;
use taken::Later;

use crate::envelope::{Cancel, Request};
use crate::inbox::{Kind, Seat};
use crate::letters::{Direction, Letter, LetterKind};
use crate::limits::{NAME_MAX, TRACE_MAX};
use crate::names;
use crate::node::{Connection, Inner};
use crate::time;
use bytes::Bytes;
use futures_util::FutureExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Class, Code, Failure};
use tokio::time::Instant;

/// How long somebody waits who was refused because there is too much to do.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Somebody who is not going to be answered otherwise, and why.
type Refused = (Waiter, Failure);

/// A call that runs and that its caller may call off.
pub(crate) struct Cancellable {
    /// Which attempt of the caller's waits.
    pub(crate) attempt: u32,
    name: RequestName,
    seat: Option<Seat>,
    /// Nothing if it was begun over another connection.
    called_off: Option<CallOff>,
}

impl Cancellable {
    /// Whether it is called off by that.
    pub(crate) fn is_by(&self, called_off: &CallOff) -> bool {
        self.called_off.as_ref().is_some_and(|mine| mine.is(called_off))
    }
}

/// Whether an earlier attempt of that call, which runs as often as it comes, still runs or waits: that one goes on, and answers the newest attempt.
fn is_under_way(connection: &Connection, caller: &Caller, request: &Request) -> bool {
    let mut calls = connection.calls.lock();
    let is_it = |call: &&mut Cancellable| call.seat.is_none() && *call.name.0 == *caller.scope && *call.name.1 == *request.id;
    let Some(call) = calls.get_mut(&request.number).filter(is_it) else { return false };
    call.attempt = call.attempt.max(request.attempt);
    true
}

impl Inner {
    /// These requests were read, and are going to be received.
    pub(crate) fn expect<'a>(&self, connection: &Connection, requests: impl Iterator<Item = &'a Request>) {
        let is_likely = |request: &&Request| request.behalf.is_empty() && request.id.len() <= NAME_MAX;
        let mut requests = requests.filter(is_likely).peekable();
        if requests.peek().is_some() && self.lets(connection).is_ok() {
            let scope = &connection.caller().scope;
            self.known.lock().inbox.fetch(requests.map(|request| (&**scope, &*request.id)));
        }
    }

    /// A request has come. True if its handler was begun here.
    pub(crate) fn receive(self: &Arc<Self>, connection: &Arc<Connection>, kind: Kind, request: Request, now: Instant) -> bool {
        self.tally.received(kind == Kind::Call);
        let waiter = Waiter { connection: Arc::clone(connection), number: request.number, attempt: request.attempt };
        self.take_in(connection, kind, request, waiter, now).unwrap_or_else(|(waiter, failure)| {
            waiter.answer(self, Err(failure));
            false
        })
    }

    fn take_in(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        kind: Kind,
        request: Request,
        waiter: Waiter,
        now: Instant,
    ) -> Result<bool, Refused> {
        let lane = match self.lets(connection).and_then(|()| self.lane(&request)) {
            Ok(lane) => lane,
            Err(failure) => return Err((waiter, failure)),
        };
        let caller = connection.caller_on_behalf_of(&request.behalf);
        if let Err(failure) = lane.route.allows(&caller) {
            return Err((waiter, failure));
        }
        if request.left_us == 0 {
            return Err((waiter, Failure::new(Code::DeadlineExceeded, "its time was over when it came")));
        }
        if kind == Kind::Call && !lane.route.once && is_under_way(connection, &caller, &request) {
            return Ok(false);
        }
        let ending = self.is_closing() && !lane.route.taken_when_done; // those who make requests durable see to it themselves
        if ending && !lane.route.once {
            return Err((waiter, self.is_ending()));
        }
        let id: Arc<str> = request.id.as_str().into();
        let delivery = lane.route.once.then(|| self.delivery(connection, &caller, kind, &request, &id, now));
        let Some((place, waiter)) = self.place_for(connection, &request, delivery.as_ref(), waiter, now)? else { return Ok(false) };
        let ends_at = match kind {
            Kind::Tell if !lane.route.taken_when_done => time::from(now, lane.route.timeout),
            Kind::Call | Kind::Tell => time::from(now, Duration::from_micros(request.left_us).min(lane.route.timeout)),
        };
        let called_off = (kind == Kind::Call).then(CallOff::default);
        let (ticket, first) = match delivery {
            None => {
                if called_off.is_some() {
                    let call = Cancellable {
                        attempt: request.attempt,
                        name: (Arc::clone(&caller.scope), Arc::clone(&id)),
                        seat: None,
                        called_off: called_off.clone(),
                    };
                    let other = connection.calls.lock().insert(request.number, call);
                    other.and_then(|other| other.called_off).iter().for_each(CallOff::call_off); // whose number is taken cannot be answered
                }
                (None, Some(waiter))
            }
            Some(delivery) => match self.look_up(&delivery, waiter, called_off.as_ref())? {
                Some((ticket, taken)) => (Some(ticket), taken),
                None => return Ok(false),
            },
        };
        let incoming = Incoming {
            route: Arc::clone(&lane.name),
            id: Arc::clone(&id),
            caller,
            wants_answer: kind == Kind::Call,
            attempt: request.attempt,
            redelivered: false,
            ends_at,
            trace: request.trace,
            payload: request.payload,
        };
        let name = (Arc::clone(&incoming.caller.scope), id);
        let mut held = Held { kind, name, ticket, waiter: first, called_off, number: request.number, again: None, taken: None, place };
        if ending {
            held.refuse(&self.is_ending()); // what runs already is waited for, and so is who repeats it
            return Ok(false);
        }
        match lane.route.key_of(&incoming) {
            Ok(key) if !lane.has_room(&key, connection.id, now) => held.refuse(&lane.is_full()),
            Ok(_) if !lane.route.taken_when_done && !held.taken() => held.refuse(&self.is_ending()),
            Ok(key) => return Ok(lane.run(key, Box::new(Job { incoming, held, attempts: 0 }))),
            Err(failure) => held.refuse(&failure),
        }
        Ok(false)
    }

    /// A place for a request that is to be run, and who waits for it; nothing if it needs none, because it runs or has run, and is dealt with. A node that is full would refuse its callers what
    /// fills it otherwise: they come again when they are not answered in time.
    fn place_for(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        request: &Request,
        once: Option<&Delivery<'_>>,
        mut waiter: Waiter,
        now: Instant,
    ) -> Result<Option<(Place, Waiter)>, Refused> {
        let bytes = request.payload.len();
        if let Some(place) = Place::take(self, Some(connection), bytes) {
            return Ok(Some((place, waiter)));
        }
        if let Some(delivery) = once {
            match self.look_up_known(delivery, waiter)? {
                Some(new) => waiter = new,
                None => return Ok(None),
            }
        }
        match self.place(Some(connection), bytes, now) {
            Ok(place) => Ok(Some((place, waiter))),
            Err(failure) => Err((waiter, failure)),
        }
    }

    /// A place for a request. Those who wait for their turn, and whose time is over, keep none from it.
    fn place(self: &Arc<Self>, connection: Option<&Arc<Connection>>, bytes: usize, now: Instant) -> Result<Place, Failure> {
        let place = Place::take(self, connection, bytes).or_else(|| {
            self.let_go_of_the_late(now);
            Place::take(self, connection, bytes)
        });
        place.ok_or_else(|| Failure::new(Code::ResourceExhausted, "too many requests run or wait here").retry_after(RETRY_AFTER))
    }

    /// Lets those go whose time is over, of all routes; not for everybody who finds no place.
    fn let_go_of_the_late(&self, now: Instant) {
        if !self.load.is_to_look(now) {
            return;
        }
        let lane_of = |routed: &Routed| match routed {
            Routed::Requests(lane) => Some(Arc::clone(lane)),
            Routed::Streams(_) | Routed::Samples(_) => None,
        };
        let lanes: Vec<_> = self.routes.read().values().filter_map(lane_of).collect();
        lanes.iter().for_each(|lane| lane.let_go_of_the_late(now));
    }

    pub(crate) fn is_ending(&self) -> Failure {
        Failure::transient(format!("{} is ending", self.name))
    }

    fn lane(&self, request: &Request) -> Result<Arc<Lane>, Failure> {
        let refuse = |message: String| Failure::new(Code::InvalidArgument, message);
        match () {
            () if request.trace.len() > TRACE_MAX => return Err(refuse(format!("a trace has at most {TRACE_MAX} bytes"))),
            () if request.payload.len() > self.limits.payload_bytes_max => {
                return Err(refuse(format!("a payload has at most {} bytes", self.limits.payload_bytes_max)));
            }
            () => {}
        }
        names::check_request(&request.id)?;
        if !request.behalf.is_empty() {
            names::check_node(&request.behalf)?;
        }
        match self.routes.read().get(&*request.route) {
            Some(Routed::Requests(lane)) => Ok(Arc::clone(lane)),
            Some(_) => Err(refuse(format!("{} takes no calls and tells", short(&request.route)))),
            None => Err(Failure::new(Code::NotFound, format!("{} has no route {}", self.name, short(&request.route)))),
        }
    }

    /// The caller of a call does not wait any more.
    pub(crate) fn called_off(&self, connection: &Connection, Cancel { number, comes_again }: Cancel) {
        let call = connection.calls.lock().remove(&number);
        if let Some(call) = call {
            self.leave(call, comes_again);
        }
    }

    /// A connection is cut: nobody waits on it any more. Their callers may come again.
    pub(crate) fn nobody_waits(&self, connection: &Connection) {
        let calls = std::mem::take(&mut *connection.calls.lock());
        calls.into_values().for_each(|call| self.leave(call, true));
    }

    /// Somebody does not wait for a call any more. What runs once goes on if they may come again or others wait for it, who can call it off after them; what is run as
    /// often as it comes is called off, because its answer would reach nobody.
    fn leave(&self, call: Cancellable, comes_again: bool) {
        let Some(seat) = call.seat else {
            return call.called_off.iter().for_each(CallOff::call_off);
        };
        let mut known = self.known.lock(); // until it is noted, so that it does not finish in between
        let Some(left) = known.inbox.leave(seat) else { return };
        let called_off = call.called_off.or_else(|| known.deserted.remove(&call.name));
        if left.nobody && !comes_again {
            drop(known);
            called_off.iter().for_each(CallOff::call_off);
        } else if let Some(called_off) = called_off {
            known.deserted.insert(call.name, called_off);
        }
    }

    /// Bytes have come that cannot be read. Their letter has no more of them than a message may have: whoever keeps letters need not take what is longer.
    pub(crate) fn unreadable(self: &Arc<Self>, connection: &Connection, bytes: &[u8], mut failure: Failure) {
        let (length, longest) = (bytes.len(), self.limits.payload_bytes_max);
        if length > longest {
            failure.message = format!("{}; here are the first {longest} of {length} bytes", failure.message);
        }
        let payload = Bytes::copy_from_slice(&bytes[..length.min(longest)]);
        let (direction, kind, peer) = (Direction::Received, LetterKind::Frame, connection.caller().scope.to_string());
        self.post(Letter { direction, kind, peer, route: String::new(), id: String::new(), payload, failure });
    }
}

/// A name of the other side in a message: not longer than it may be.
fn short(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_MAX)]
}

/// Runs a request to its end, unless it has to wait and need not keep its turn for so long: then it is given back. What is not a call is boxed: a task is copied
/// several times, and most are calls.
async fn run(lane: &Lane, job: Box<Job>, keeps_its_turn: bool) -> Option<Later> {
    match &job.held {
        held if held.again.is_some() => Box::pin(again::run(&lane.route, job)).await,
        held if held.kind == Kind::Tell && !lane.route.taken_when_done => return Box::pin(taken::run(lane, job, keeps_its_turn)).await,
        _ => run_once(lane, job).await,
    }
    None
}

async fn run_once(lane: &Lane, job: Box<Job>) {
    let Job { incoming, held, .. } = *job;
    let payload = incoming.payload.clone();
    let outcome = attempt(&lane.route, incoming, held.called_off.clone()).await;
    let outcome = outcome.and_then(|answer| fits(answer, held.node().limits.payload_bytes_max));
    if let Err(failure) = &outcome
        && failure.class == Class::Poison
    {
        let kind = if held.kind == Kind::Call { LetterKind::Call } else { LetterKind::Tell };
        held.node().post(letter(kind, lane, &held, payload, failure.clone()));
    }
    held.settle(outcome);
}

fn letter(kind: LetterKind, lane: &Lane, held: &Held, payload: Bytes, failure: Failure) -> Letter {
    let (scope, id) = &held.name;
    let (peer, route, id) = (scope.to_string(), lane.name.to_string(), id.to_string());
    Letter { direction: Direction::Received, kind, peer, route, id, payload, failure }
}

/// Whoever called it off does not hear of it; somebody who has asked for the same meanwhile may ask again.
fn nobody_waits() -> Failure {
    Failure::transient("its caller does not wait any more").code(Code::Cancelled)
}

fn too_late() -> Failure {
    Failure::new(Code::DeadlineExceeded, "its time was over before its turn came")
}

/// One attempt of a handler, until its time is over or it is called off.
fn attempt(route: &Route, incoming: Incoming, called_off: Option<CallOff>) -> impl Future<Output = Result<Bytes, Failure>> {
    let ends_at = incoming.ends_at;
    let panicked = |_what_it_said_may_be_secret| Failure::new(Code::Internal, "the handler panicked");
    let begun = match () {
        () if called_off.as_ref().is_some_and(CallOff::is_off) => Err(nobody_waits()),
        () if Instant::now() >= ends_at => Err(too_late()),
        () => catch_unwind(AssertUnwindSafe(|| (route.handler)(incoming))).map_err(panicked),
    };
    async move {
        let handling = AssertUnwindSafe(begun?).catch_unwind();
        let off = async {
            match called_off {
                Some(called_off) => called_off.called_off().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = off => Err(nobody_waits()),
            outcome = handling => outcome.unwrap_or_else(|said| Err(panicked(said))),
            () = time::until(ends_at) => Err(Failure::new(Code::DeadlineExceeded, "the handler did not end in time")),
        }
    }
}
