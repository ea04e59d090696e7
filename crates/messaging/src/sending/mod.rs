//! Sending: attempts with one id inside one deadline, over whichever connection there is.
//!
//! ```text
//!   connect? --> send --> wait --answer, also to an earlier attempt--> done
//!      ^                   |
//!      |     transient failure, connection cut, attempt too long: once more, after a delay that ends early when there is a new connection;
//!      |     whoever was too long and has no turn in the budget is waited for instead
//!      +-------------------+--permanent, poison, attempts used up, out of time--> failed
//! ```

mod budget;
mod slot;

pub(crate) use budget::Budget;
pub(crate) use slot::Slot;

use crate::envelope::{self, Body, Cancel, Request};
use crate::letters::{Direction, Letter, LetterKind};
use crate::limits::TRACE_MAX;
use crate::names;
use crate::node::{Connection, Known, Node, Peer, Registered, Turn, Untaken};
use crate::time;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use slot::News;
use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Class, Code, Failure, GaveUp, Policy, Timestamp, Verdict};
use tokio::time::Instant;

/// How long a call or a tell has if nobody says otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// The least that an attempt has of the time unless the policy says otherwise, however many there may be; but never more than a third of it.
const SHARE_MIN: Duration = Duration::from_secs(1);

/// What somebody is told whose retry the budget has no turn for.
const NO_TURN: &str = "too much of what was sent there is sent again already: there is no retry left in time";

/// A request that is going to be sent: awaited, it is. Made by [`Node::call`] and [`Node::tell`].
#[must_use = "it is sent when it is awaited"]
#[derive(Clone)]
pub struct Sending<Answer> {
    node: Node,
    peer: Peer,
    route: String,
    payload: Bytes,
    id: Option<String>,
    timeout: Duration,
    policy: Policy,
    trace: String,
    behalf: String,
    /// It is a dead letter if it is a tell and fails.
    posted: bool,
    /// Which attempt it is of whoever is going to send it again.
    attempt: Option<u32>,
    answer: PhantomData<fn() -> Answer>,
}

/// A request with an answer.
pub type Call = Sending<Bytes>;

/// A one-way message: it is over when the other side has taken it.
pub type Tell = Sending<()>;

impl<Answer> Sending<Answer> {
    pub(crate) fn new(node: Node, peer: Peer, route: String, payload: Bytes) -> Self {
        let (id, trace) = (None, String::new());
        Sending {
            node,
            peer,
            route,
            payload,
            id,
            timeout: TIMEOUT,
            policy: Policy::transient(),
            trace,
            behalf: String::new(),
            posted: true,
            attempt: None,
            answer: PhantomData,
        }
    }

    /// How long it may take in all: connecting, every attempt, the waits between them. 30 s unless said otherwise.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// What follows a failed attempt. [`Policy::transient`] unless said otherwise; without an attempt timeout, an attempt has its share of the time, and the last one all that is left. Who is asked by the other side to wait for
    /// longer than the policy's longest delay waits for so long, if there is the time.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// What tells it apart from all other requests of this node: the receiver runs a request of one id once. Made for it unless said.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The trace that it belongs to, as a W3C `traceparent`.
    pub fn trace(mut self, trace: impl Into<String>) -> Self {
        self.trace = trace.into();
        self
    }

    /// On whose behalf it is sent: requests of one id and one such name are one request, whichever node they come from. For several nodes that do the same work; if they have to prove
    /// who they are, they have to prove the same.
    pub fn on_behalf_of(mut self, name: impl Into<String>) -> Self {
        self.behalf = name.into();
        self
    }

    /// It is the attempt of that number, from 1, of whoever sends it again under the same id if it fails: that it is not waited for any more does not call it off at the other side, which goes on with it until its time is
    /// over if it runs it once.
    ///
    /// The number travels, so that the receiver sees it. From the second one on it counts as sent again, and costs a retry of the peer's budget; but it does not wait for a turn there, because
    /// whoever sends it has waited already.
    pub fn attempt(mut self, number: u32) -> Self {
        self.attempt = Some(number.max(1));
        self
    }

    /// It is no dead letter if it fails: whoever sends it keeps it.
    pub fn unposted(mut self) -> Self {
        self.posted = false;
        self
    }

    fn check(&self) -> Result<(), Failure> {
        let refuse = |message: String| Err(Failure::new(Code::InvalidArgument, message));
        let longest = self.node.limits().payload_bytes_max;
        names::check_route(&self.route)?;
        names::check_peer(self.peer.text())?;
        self.id.as_deref().map(names::check_request).transpose()?;
        if !self.behalf.is_empty() {
            names::check_node(&self.behalf)?;
        }
        match () {
            () if self.payload.len() > longest => {
                refuse(format!("the payload has {} bytes, and {longest} are allowed", self.payload.len()))
            }
            () if self.trace.len() > TRACE_MAX => refuse(format!("a trace has at most {TRACE_MAX} bytes")),
            () if self.timeout.is_zero() => refuse("a timeout of 0 leaves no time for anything".into()),
            () => self.policy.validate().or_else(|error| refuse(error.to_string())),
        }
    }

    async fn send(self, is_call: bool) -> Result<Bytes, Failure> {
        self.check()?;
        let timeout = match self.policy.deadline_at(Timestamp::EPOCH) {
            Some(deadline) => self.timeout.min(deadline.saturating_since(Timestamp::EPOCH)),
            None => self.timeout,
        };
        let request = Request {
            number: 0,
            attempt: 0,
            route: self.route,
            id: self.id.unwrap_or_else(|| self.node.inner.request_id()),
            left_us: 0,
            trace: self.trace,
            payload: self.payload,
            behalf: self.behalf,
            queued_us: 0,
        };
        let is_letter = !is_call && self.posted;
        let before = self.attempt.map_or(0, |attempt| attempt - 1);
        let now = Instant::now();
        let registered = match self
            .node
            .inner
            .know(&self.peer)
            .and_then(|known| known.register(self.node.limits(), before == 0, now))
        {
            Ok(registered) => registered,
            Err(failure) => {
                if let Some(letter) = letter(&self.peer, &request, &failure).filter(|_| is_letter) {
                    self.node.inner.post(letter);
                }
                return Err(failure);
            }
        };
        let ends_at = time::from(now, timeout);
        let share = (timeout / self.policy.attempts_max().max(1)).max(SHARE_MIN.min(timeout / 3));
        let request = Request { number: registered.number, ..request };
        let mut errand = Errand {
            share,
            attempt_timeout: share,
            body: if is_call { Body::Call(request) } else { Body::Tell(request) },
            registered,
            policy: self.policy,
            ends_at,
            attempt: before,
            before,
            connection: None,
            over: false,
            unanswered: false,
            comes_again: self.attempt.is_some(),
            resent: false,
            turn: None,
        };
        match before {
            0 => self.node.inner.tally.sent(is_call),
            _ => self.node.inner.tally.retried(),
        }
        let outcome = errand.run(&self.node, now).await;
        if let Err(failure) = &outcome {
            if self.attempt.is_none() {
                self.node.inner.tally.failed(is_call); // else whoever makes the attempts knows whether it is for good
            }
            if let Some(letter) = letter(&self.peer, errand.request(), failure).filter(|_| is_letter) {
                self.node.inner.post_owed(letter, errand); // which stays open until it is kept, and so bounds how many there are
            }
        }
        outcome
    }
}

/// The dead letter of a tell that has failed, if it may succeed another time.
fn letter(peer: &Peer, request: &Request, failure: &Failure) -> Option<Letter> {
    if failure.class == Class::Poison || failure.class == Class::Permanent && failure.max_attempts.is_none() {
        return None;
    }
    let Request { route, id, payload, behalf, .. } = request.clone();
    let (direction, kind, peer) = (Direction::Sent, LetterKind::Tell, peer.in_letter(&behalf));
    Some(Letter { direction, kind, peer, route, id, payload, failure: failure.clone() })
}

/// Without the payload, which is nobody's business.
impl<Answer> fmt::Debug for Sending<Answer> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending")
            .field("peer", &self.peer)
            .field("route", &self.route)
            .field("id", &self.id)
            .field("bytes", &self.payload.len())
            .finish_non_exhaustive()
    }
}

impl IntoFuture for Call {
    type Output = Result<Bytes, Failure>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send(true))
    }
}

impl IntoFuture for Tell {
    type Output = Result<(), Failure>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.send(false).await.map(drop) })
    }
}

fn with_attempts(mut failure: Failure, attempts: u32) -> Failure {
    failure.attempts = attempts;
    failure
}

/// Waits for something without which an attempt is not sent, unless an earlier one is answered before that. Nothing if neither comes by then.
async fn unless_answered<T>(slot: &Slot, ends_at: Instant, waiting: impl Future<Output = T>) -> Option<Result<T, Result<Bytes, Failure>>> {
    let either = async {
        tokio::select! {
            biased;
            answer = slot.outcome() => Err(answer),
            come = waiting => Ok(come),
        }
    };
    tokio::time::timeout_at(ends_at, either).await.ok()
}

/// How an attempt has failed.
enum Failed {
    /// The other side has said so.
    Said(Failure),
    /// Nothing was sent.
    Unsent(Failure),
    /// Nothing was sent, because nobody was reached until its time was over, or that of all.
    Unreached(Failure),
    /// It was lost with its connection.
    Cut(Failure),
    /// Nobody has said anything about it until its time was over, or that of all.
    Late(Failure),
}

/// A request under way.
struct Errand {
    body: Body,
    registered: Registered,
    policy: Policy,
    /// What an attempt has of the time unless the policy says otherwise.
    share: Duration,
    /// How long the attempt has that is under way, or was the last.
    attempt_timeout: Duration,
    ends_at: Instant,
    /// The number of the attempt that is under way, or was the last.
    attempt: u32,
    /// How many attempts others have made before.
    before: u32,
    /// The connection that it was sent on last.
    connection: Option<u64>,
    /// The other side does not work on it, as far as is known.
    over: bool,
    /// Of an attempt before the one that is under way nobody has said what became of it: whoever was asked may be at work, also if a later one was refused.
    unanswered: bool,
    /// Somebody is going to send it again.
    comes_again: bool,
    /// It was sent again for nothing, because its connection was cut.
    resent: bool,
    /// What it has of the budget for its next attempt: it keeps it until it is sent.
    turn: Option<Turn>,
}

/// Whoever does not wait any more says so, and the other side may stop, or at least need not answer.
impl Drop for Errand {
    fn drop(&mut self) {
        if let (false, Body::Call(_), Some(connection)) = (self.over, &self.body, self.connection)
            && let Some(connection) = self.known().connection_of(connection)
        {
            let cancel = Cancel { number: self.registered.number, comes_again: self.comes_again };
            let _it_ends_by_its_deadline = connection.outgoing.try_push(&Body::Cancel(cancel));
        }
    }
}

impl Errand {
    fn request(&self) -> &Request {
        match &self.body {
            Body::Call(request) | Body::Tell(request) => request,
            _ => unreachable!("an errand is a call or a tell"),
        }
    }

    fn known(&self) -> &Arc<Known> {
        &self.registered.known
    }

    /// How many attempts it has made itself: those that its policy counts.
    fn made(&self) -> u32 {
        self.attempt - self.before
    }

    /// Whatever it fails with, a success that has come by then counts.
    async fn run(&mut self, node: &Node, began: Instant) -> Result<Bytes, Failure> {
        let outcome = self.attempts(node, began).await;
        outcome.or_else(|failure| {
            let success = self.registered.slot.success().ok_or(failure)?;
            self.over = true;
            Ok(success)
        })
    }

    async fn attempts(&mut self, node: &Node, began: Instant) -> Result<Bytes, Failure> {
        let mut earlier: Option<Failure> = None;
        let mut outcome = self.next_attempt(began).await;
        loop {
            let is_late = matches!(outcome, Err(Failed::Late(_)));
            self.over = match outcome {
                Ok(_) => true,
                Err(Failed::Late(_) | Failed::Unreached(_)) => false,
                Err(Failed::Said(_) | Failed::Unsent(_) | Failed::Cut(_)) => !self.unanswered,
            };
            let costs = match outcome {
                Err(Failed::Unsent(_) | Failed::Unreached(_)) => false,
                Err(Failed::Cut(_)) => std::mem::replace(&mut self.resent, true),
                _ => true,
            };
            let failure = match outcome {
                Ok(answer) => return Ok(answer),
                Err(Failed::Said(failure) | Failed::Unsent(failure) | Failed::Cut(failure)) => failure,
                Err(Failed::Late(failure) | Failed::Unreached(failure)) if Instant::now() < self.ends_at => failure,
                Err(Failed::Late(late) | Failed::Unreached(late)) => {
                    // The end of all is no failure of this attempt's: what went wrong before says more.
                    let failure = earlier.map(|earlier| earlier.cause(&late.message));
                    return Err(with_attempts(failure.unwrap_or_else(|| late.code(Code::DeadlineExceeded)), self.made()));
                }
            };
            if node.inner.is_closed() && failure.class == Class::Transient {
                return Err(self.ended(node, failure));
            }
            let verdict = self.policy.after(self.made(), &failure, Timestamp::EPOCH, None, node.inner.draw());
            let delay = match verdict {
                Verdict::RetryIn { delay, .. } => delay,
                Verdict::GiveUp(GaveUp::MaxRetriesExceeded { max: 1 }) if self.made() == 1 => return Err(with_attempts(failure, 1)),
                Verdict::GiveUp(why) => return Err(why.failure(failure, self.made())),
            };
            let last = with_attempts(failure, self.made());
            let mut now = Instant::now();
            if now >= self.ends_at {
                return Err(last);
            }
            if costs && self.turn.is_none() {
                self.turn = self.known().reserve_retry(now, self.ends_at);
            }
            if costs && self.turn.is_none() {
                let heard = if is_late { Box::pin(self.wait_on()).await } else { None };
                let Some(heard) = heard else { return Err(last.cause(NO_TURN)) };
                earlier = Some(last);
                outcome = heard;
                continue;
            }
            // The policy caps its own delays, not what the other side asks for.
            let delay = delay.max(last.retry_after.unwrap_or_default());
            let until = time::from(now, delay);
            let turn_at = self.turn.as_ref().map_or(now, |turn| turn.at);
            let not_before = turn_at.max(last.retry_after.map_or(now, |_| until));
            if let Some(answer) = Box::pin(self.pause(node, until, not_before)).await {
                earlier = Some(last);
                outcome = answer.map_err(Failed::Said);
                continue;
            }
            if node.inner.is_closed() {
                return Err(self.ended(node, last));
            }
            now = Instant::now();
            if now >= self.ends_at {
                return Err(last);
            }
            earlier = Some(last);
            self.unanswered |= is_late;
            node.inner.tally.retried();
            outcome = self.next_attempt(now).await;
        }
    }

    async fn next_attempt(&mut self, now: Instant) -> Result<Bytes, Failed> {
        self.attempt = self.attempt.saturating_add(1);
        self.registered.slot.begin(self.attempt);
        self.over = false;
        self.attempt_once(now).await
    }

    /// Waits for the other side for as long as there is time: it was asked, it may be at work, and there is no turn to ask it once more. Nothing if it says nothing.
    async fn wait_on(&self) -> Option<Result<Bytes, Failed>> {
        let news = tokio::time::timeout_at(self.ends_at, self.registered.slot.news()).await.ok()?;
        Some(self.heard(news))
    }

    fn heard(&self, news: News) -> Result<Bytes, Failed> {
        match news {
            News::Answer(outcome) => outcome.map_err(Failed::Said),
            News::Lost => Err(Failed::Cut(self.cut("an answer came"))),
        }
    }

    /// Waits before the next attempt: until then, or until there is a new connection, but not for less than the budget and the other side say. An answer may
    /// come all the same, also that it never will work. Ends early when the node is closed.
    async fn pause(&self, node: &Node, until: Instant, not_before: Instant) -> Option<Result<Bytes, Failure>> {
        let until = until.max(not_before).min(self.ends_at);
        tokio::select! {
            biased;
            answer = self.registered.slot.outcome() => Some(answer),
            () = async {
                time::until(not_before).await;
                self.known().ready_again(self.connection).await;
            } => None,
            () = time::until(until) => None,
            () = node.closed() => None,
        }
    }

    /// How long the attempt has that begins then. A share leaves some of the time to those that may follow; the last one has all that is left.
    fn limit(&self, now: Instant) -> Duration {
        match self.policy.attempt_timeout_for() {
            Some(timeout) => timeout,
            None if self.is_last() => self.ends_at.saturating_duration_since(now),
            None => self.share,
        }
    }

    /// Nothing would follow this attempt if nobody answered it in time.
    fn is_last(&self) -> bool {
        let late = Failure::new(Code::DeadlineExceeded, "");
        matches!(self.policy.after(self.made(), &late, Timestamp::EPOCH, None, 0), Verdict::GiveUp(_))
    }

    /// What waits for long is boxed: everybody who waits for an answer keeps room for all that may follow.
    async fn attempt_once(&mut self, now: Instant) -> Result<Bytes, Failed> {
        self.attempt_timeout = self.limit(now);
        let attempt_ends_at = time::from(now, self.attempt_timeout).min(self.ends_at);
        let (connection, now) = match self.registered.connection.take().or_else(|| self.known().connected()) {
            Some(connection) => (connection, now),
            None => match Box::pin(self.reach(attempt_ends_at)).await {
                Ok(connection) => (connection, Instant::now()),
                Err(outcome) => return outcome,
            },
        };
        self.connection = Some(connection.id);
        connection.takes(self.request().payload.len()).map_err(Failed::Unsent)?;
        self.registered.slot.sent_on(connection.id);
        match self.push(&connection, now) {
            Ok(()) => {}
            Err(Untaken::Closed) => return Err(Failed::Unsent(self.cut("the request was sent"))),
            Err(Untaken::Full) => match Box::pin(self.push_later(&connection, attempt_ends_at)).await {
                Ok(()) => {}
                Err(outcome) => return outcome,
            },
        }
        drop(connection);
        if self.made() > 1 {
            self.registered.slot.sent();
        }
        self.turn.take().into_iter().for_each(Turn::used);
        match tokio::time::timeout_at(attempt_ends_at, self.registered.slot.news()).await {
            Ok(news) => self.heard(news),
            Err(_) => Err(Failed::Late(self.late("did not answer"))),
        }
    }

    /// A connection, once there is one; or what became of the attempt without it.
    async fn reach(&mut self, ends_at: Instant) -> Result<Arc<Connection>, Result<Bytes, Failed>> {
        match unless_answered(&self.registered.slot, ends_at, self.known().connection()).await {
            Some(Ok(connected)) => connected.map_err(|failure| Err(Failed::Unsent(failure))),
            Some(Err(answer)) => Err(self.of_earlier(answer)),
            None => Err(Err(Failed::Unreached(self.late("could not be reached").code(Code::Unavailable)))),
        }
    }

    /// An earlier attempt was answered before this one was sent, which therefore was none.
    fn of_earlier(&mut self, answer: Result<Bytes, Failure>) -> Result<Bytes, Failed> {
        self.attempt -= 1;
        answer.map_err(Failed::Said)
    }

    /// Sends it once there is room; or what became of the attempt if it is not sent.
    async fn push_later(&mut self, connection: &Connection, ends_at: Instant) -> Result<(), Result<Bytes, Failed>> {
        let slot = Arc::clone(&self.registered.slot);
        let pushing = connection.outgoing.push_by(|_| self.push(connection, Instant::now()));
        match unless_answered(&slot, ends_at, pushing).await {
            Some(Ok(true)) => Ok(()),
            Some(Ok(false)) => Err(Err(Failed::Unsent(self.cut("the request was sent")))),
            Some(Err(answer)) => Err(self.of_earlier(answer)),
            None => Err(Err(Failed::Unreached(self.late("took nothing more")))),
        }
    }

    /// Sends it, if there is room, with the time that is left by now, and what the clock says by which that goes on.
    fn push(&mut self, connection: &Connection, now: Instant) -> Result<(), Untaken> {
        let left = self.ends_at.saturating_duration_since(now);
        if let Body::Call(request) | Body::Tell(request) = &mut self.body {
            (request.attempt, request.left_us, request.queued_us) = (self.attempt, envelope::micros(left), connection.outgoing.clock(now));
        }
        connection.outgoing.try_push(&self.body)
    }

    /// There is no next attempt, because this node is closed.
    fn ended(&self, node: &Node, last: Failure) -> Failure {
        let ending = node.inner.is_ending();
        let ending = if last.message == ending.message { ending } else { ending.cause(&last.message) };
        with_attempts(ending, self.made())
    }

    fn late(&self, what: &str) -> Failure {
        let (peer, attempt, limit) = (&self.known().peer, self.attempt, self.attempt_timeout);
        Failure::new(Code::DeadlineExceeded, format!("{peer} {what} in time (attempt {attempt}, {limit:?})"))
    }

    fn cut(&self, before: &str) -> Failure {
        Failure::transient(format!("the connection to {} was cut before {before}", self.known().peer))
    }
}
