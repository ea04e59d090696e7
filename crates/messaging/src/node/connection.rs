//! A connection: one link to another node, with a reader and a writer, kept alive and found dead.

use super::outgoing::Outgoing;
use super::peer::Known;
use super::{Connected, Inner, Seat};
use crate::envelope::{self, Body, Frames, Hello, Number, Reply, Request};
use crate::inbox::{AHEAD_MAX, Kind};
use crate::limits::FRAME_OVERHEAD;
use crate::receiving::{CallOff, Caller, Cancellable, Load};
use crate::streams::Streams;
use crate::time;
use crate::wire::{Closed, Gone, Link, Pulse, Queue, Remote};
use bytes::Bytes;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use steadfast_kernel::{Code, Failure};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Unreadable frames of one connection that are kept; the next one cuts it.
const UNREADABLE_MAX: u32 = 16;

/// How many bytes wait at the wire, unless a single packet is longer: enough for all that a wire takes at once. The time that they wait there is not counted for what is in them.
const WIRE_BYTES_MAX: usize = 2 << 20;

/// After so many requests that were run where they are read, others have their turn.
const RAN_AT_ONCE: u64 = 32;

/// After about so many frames, whatever they are, others have their turn: a packet of the length that nodes make has fewer, unless they say next to nothing, and one that somebody makes may have
/// millions. A frame takes up to a microsecond if it begins no handler.
const READ_AT_ONCE: usize = 1024;

/// So many answers of a packet are handed out together: enough that a lock is taken for few of them, and nothing beside the packet itself, which may have millions.
const REPLIES_MAX: usize = 256;

/// So many times as long as somebody may be silent, what goes to somebody who is heard may stand still. Linux says that there is room only when a third of its buffer is empty, and the buffer
/// grows to 4 MiB: a third of that takes a line of 12 KB/s the two minutes that this is by default.
const STANDS_STILL: u32 = 8;

/// No connection is silent for longer.
const LONG: Duration = Duration::from_secs(1 << 25);

/// A part of what came that is smaller than one in so many is copied, so that it does not keep all the rest in memory.
const KEPT_PART: usize = 4;

pub(crate) struct Connection {
    pub(crate) id: u64,
    pub(crate) outgoing: Outgoing,
    pub(crate) remote: Remote,
    caller: Arc<Caller>,
    /// Whose answers come here.
    pub(crate) known: Arc<Known>,
    pub(crate) streams: Streams,
    /// Calls of the other side that run and can be called off.
    pub(crate) calls: Mutex<HashMap<u64, Cancellable>>,
    /// Requests of the other side that run or wait.
    pub(crate) load: Load,
    /// The longest payload that the other side takes.
    pub(crate) payload_bytes_max: usize,
    ping_after: Duration,
    dead_after: Duration,
    cut: CancellationToken,
    began_at: Instant,
    /// Its place among the connections, until it is over: those who wait for what they asked for on it may remember it for longer. Handlers of its streams keep the place.
    seat: Mutex<Option<Arc<Seat>>>,
    /// When a packet came last, in microseconds since it began.
    heard: AtomicU64,
    /// When it was last good for something, likewise.
    used: AtomicU64,
    /// What moves though no packet is whole.
    pulse: Pulse,
    /// When nothing of its link is left.
    pub(super) gone: Gone,
}

impl Connection {
    /// Cuts it; whoever waits for something on it is told.
    pub(crate) fn cut(&self) {
        self.cut.cancel();
    }

    /// What the other side calls itself.
    pub(crate) fn caller_name(&self) -> &str {
        &self.caller.name
    }

    /// Whether the other side takes a payload of that length.
    ///
    /// # Errors
    /// If it is too long.
    pub(crate) fn takes(&self, length: usize) -> Result<(), Failure> {
        if length <= self.payload_bytes_max {
            return Ok(());
        }
        let message = format!("{} takes payloads of at most {} bytes", self.known.peer, self.payload_bytes_max);
        Err(Failure::new(Code::InvalidArgument, message))
    }

    /// What is known of the other side, for people.
    pub(super) fn shown(&self) -> Connected {
        let Remote { address, fingerprint, vouched, principal } = self.remote.clone();
        Connected { name: self.caller_name().to_owned(), address, principal, fingerprint, vouched, since: self.began_at.elapsed() }
    }

    /// Who is at the other end.
    pub(crate) fn caller(&self) -> Arc<Caller> {
        Arc::clone(&self.caller)
    }

    /// Who sends something on behalf of that name; on its own behalf if it is empty.
    pub(crate) fn caller_on_behalf_of(&self, name: &str) -> Arc<Caller> {
        if name.is_empty() {
            return self.caller();
        }
        Arc::new(Caller { scope: scope(&name.into(), &self.remote), ..Caller::clone(&self.caller) })
    }

    /// A call has ended for that attempt. If it was forgotten, a later attempt of it may run by now, and stays.
    pub(crate) fn forget_call(&self, number: u64, attempt: u32) {
        let mut calls = self.calls.lock();
        if calls.get(&number).is_some_and(|call| call.attempt <= attempt) {
            calls.remove(&number);
        }
    }

    /// A call that runs as often as it comes has ended, which is called off by that: the newest attempt of it. Nothing if it was called off, or another one has its number by now.
    pub(crate) fn end_call(&self, number: u64, called_off: &CallOff) -> Option<u32> {
        let mut calls = self.calls.lock();
        let newest = calls.get(&number).filter(|call| call.is_by(called_off))?.attempt;
        calls.remove(&number);
        Some(newest)
    }

    /// Says something small without which the other side does not go on. Whoever makes this side say so much without reading it is cut.
    pub(crate) fn say(&self, body: &Body) {
        if !self.outgoing.push_small(body) {
            self.cut();
        }
    }

    /// Ends when it is cut.
    pub(crate) async fn ended(&self) {
        self.cut.cancelled().await;
    }

    /// Its place among the connections, unless it is over.
    pub(crate) fn seat(&self) -> Option<Arc<Seat>> {
        self.seat.lock().clone()
    }

    /// How long it has been there.
    pub(crate) fn age(&self) -> Duration {
        self.began_at.elapsed()
    }

    fn hear(&self, now: Instant) {
        self.heard.store(self.since(now), Ordering::Relaxed);
    }

    fn heard_at(&self) -> Instant {
        self.began_at + Duration::from_micros(self.heard.load(Ordering::Relaxed))
    }

    /// Something is sent on it, or has come, that is more than a sign of life.
    pub(crate) fn use_at(&self, now: Instant) {
        self.used.store(self.since(now), Ordering::Relaxed);
    }

    pub(super) fn used_at(&self) -> Instant {
        self.began_at + Duration::from_micros(self.used.load(Ordering::Relaxed))
    }

    /// Gives it up, and its place at once, if nothing is under way on it. What comes over it in just that moment is lost with it, as by every cut.
    pub(super) fn give_up_if_unused(&self) -> bool {
        let is_unused =
            self.load.count() == 0 && self.calls.lock().is_empty() && self.streams.are_over() && self.outgoing.is_almost_empty();
        if !is_unused || !self.known.let_go(self) {
            return false;
        }
        tracing::debug!(peer = %self.known.peer, "a connection that nobody uses makes room");
        drop(self.seat.lock().take());
        self.outgoing.close(); // it is cut when the rest is written
        true
    }

    fn since(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.began_at).as_micros()).unwrap_or(u64::MAX)
    }
}

/// What tells requests of that name from those of others: the name, and what it has proved.
fn scope(name: &Arc<str>, remote: &Remote) -> Arc<str> {
    match remote.proof() {
        Some(proof) => format!("{name}@{proof}").into(),
        None => Arc::clone(name),
    }
}

/// The answer to a request.
pub(crate) fn reply(number: u64, attempt: u32, outcome: Result<Bytes, Failure>) -> Reply {
    match outcome {
        Ok(payload) => Reply { number, attempt, payload, error: None },
        Err(failure) => Reply { number, attempt, payload: Bytes::new(), error: Some((&failure).into()) },
    }
}

/// A link whose other side has said hello.
pub(super) struct Greeted {
    pub(super) hello: Hello,
    pub(super) link: Link,
    /// What came in one packet with the other side's hello.
    pub(super) rest: Frames,
    /// This side has said hello as well. Whoever has come is answered when it is taken, or refused.
    pub(super) answered: bool,
}

fn hello(node: &Inner, refused: Option<&Failure>) -> Body {
    let frame_bytes_max = (node.limits.payload_bytes_max + FRAME_OVERHEAD) as u64;
    Body::Hello(Hello { version: envelope::VERSION, node: node.name.to_string(), frame_bytes_max, refused: refused.map(Into::into) })
}

/// Answers somebody who has come: with a hello, or with why there is no connection.
fn answer(node: &Inner, outgoing: &mpsc::Sender<Bytes>, refused: Option<&Failure>) {
    let mut packet = bytes::BytesMut::new();
    envelope::append(&mut packet, &hello(node, refused));
    let _it_has_gone = outgoing.try_send(packet.freeze());
}

/// Says why there is no connection, to somebody who has come; gives that back.
pub(super) fn refuse(node: &Inner, link: &Link, failure: Failure) -> Failure {
    answer(node, &link.outgoing, Some(&failure));
    failure
}

/// Says hello, and waits for the other side's.
///
/// # Errors
/// If the other side speaks otherwise, or ends.
pub(super) async fn greet(node: &Inner, mut link: Link) -> Result<Greeted, Failure> {
    let mut packet = bytes::BytesMut::new();
    envelope::append(&mut packet, &hello(node, None));
    let ended = || Failure::transient(format!("{} ended before it said hello", link.remote.address));
    link.outgoing.send(packet.freeze()).await.map_err(|_| ended())?;
    let (hello, rest) = hear(&mut link).await?;
    Ok(Greeted { hello, link, rest, answered: true })
}

/// Waits for the other side's hello, and what came in one packet with it.
///
/// # Errors
/// If the other side speaks otherwise, or ends.
pub(super) async fn hear(link: &mut Link) -> Result<(Hello, Frames), Failure> {
    let ended = || Failure::transient(format!("{} ended before it said hello", link.remote.address));
    let bytes = link.incoming.recv().await.ok_or_else(ended)??;
    let strange =
        |why: &str| Failure::new(Code::FailedPrecondition, format!("{} is no node that can be spoken to: {why}", link.remote.address));
    let mut frames = envelope::packet(bytes).map_err(|error| strange(&error.to_string()))?;
    let first = frames.next().ok_or_else(|| strange("it sent an empty packet"))?;
    match envelope::frame(first).map_err(|error| strange(&error.to_string()))? {
        Some(Body::Hello(hello)) if hello.version == 0 => Err(strange("it speaks no version of this protocol")),
        Some(Body::Hello(hello)) if !crate::names::is_node(&hello.node) => {
            Err(strange("its name is empty, too long, or has characters that are not allowed"))
        }
        Some(Body::Hello(Hello { refused: Some(error), .. })) => {
            let mut failure = Failure::from(error);
            failure.message = format!("{} refuses the link: {}", link.remote.address, failure.message);
            Err(failure)
        }
        Some(Body::Hello(hello)) => Ok((hello, frames)),
        _ => Err(Failure::transient(format!("{} did not say hello first", link.remote.address))),
    }
}

/// Makes a connection of a link and keeps it until it is cut.
///
/// # Errors
/// If its name is somebody else's, who is connected.
pub(super) fn begin(node: &Arc<Inner>, greeted: Greeted, known: Arc<Known>, seat: Seat) -> Result<(), Failure> {
    let Greeted { hello, link, rest, answered } = greeted;
    let Link { outgoing, incoming, remote, pulse, gone } = link;
    let name: Arc<str> = hello.node.as_str().into();
    let scope = scope(&name, &remote);
    let Remote { fingerprint, vouched, principal, .. } = remote.clone();
    let caller = Arc::new(Caller { name, scope, fingerprint, vouched, principal, peer: known.peer.clone() });
    let connection = Arc::new(Connection {
        id: node.next_id(),
        outgoing: Outgoing::new(node.limits.outgoing_bytes_max, node.limits.samples()),
        remote,
        caller,
        known,
        streams: Streams::new(&node.limits),
        calls: Mutex::default(),
        load: Load::default(),
        payload_bytes_max: usize::try_from(hello.frame_bytes_max).unwrap_or(usize::MAX).saturating_sub(FRAME_OVERHEAD),
        ping_after: node.limits.ping_after.clamp(Duration::from_millis(1), LONG),
        dead_after: node.limits.dead_after.clamp(Duration::from_millis(1), LONG),
        cut: CancellationToken::new(),
        began_at: Instant::now(),
        seat: Mutex::new(Some(Arc::new(seat))),
        heard: AtomicU64::new(0),
        used: AtomicU64::new(0),
        pulse,
        gone,
    });
    let taken = connection.known.connect_by(&connection);
    if !answered {
        answer(node, &outgoing, taken.as_ref().err());
    }
    for unproved in taken? {
        unproved.cut(); // when it comes again, it is told why it is not taken
    }
    node.connections.lock().insert(connection.id, Arc::clone(&connection));
    if node.is_closed() {
        connection.cut(); // whoever closed the node may have looked before it was there
    }
    node.sweep();
    tokio::spawn(write(Arc::clone(&connection), outgoing));
    tokio::spawn(read(Arc::downgrade(node), connection, incoming, rest));
    Ok(())
}

async fn write(connection: Arc<Connection>, wire: mpsc::Sender<Bytes>) {
    let mut wire = Queue::new(wire, WIRE_BYTES_MAX);
    let writing = async {
        while let Some(packet) = connection.outgoing.next().await {
            let length = packet.len();
            if !goes_out(&connection, wire.send(packet, length)).await {
                break;
            }
        }
    };
    tokio::select! {
        biased;
        () = connection.cut.cancelled() => {}
        () = writing => connection.cut(),
    }
}

/// Waits for a packet to be taken, for as long as those before it move. Nodes always read: one that has not done so for very long is dead, whatever it says, and holds up those who answer it. One
/// that says nothing is found earlier, by whoever listens to it.
async fn goes_out(connection: &Connection, sending: impl Future<Output = Result<(), Closed>>) -> bool {
    let mut sending = pin!(sending);
    loop {
        let gone = connection.pulse.gone();
        match tokio::time::timeout(connection.dead_after * STANDS_STILL, &mut sending).await {
            Ok(sent) => return sent.is_ok(),
            Err(_) if connection.pulse.gone() != gone => {}
            Err(_) => return false,
        }
    }
}

async fn read(node: Weak<Inner>, connection: Arc<Connection>, mut wire: mpsc::Receiver<Result<Bytes, Failure>>, rest: Frames) {
    let mut ending = Ending { node: Weak::clone(&node), connection: Arc::clone(&connection), why: None };
    let mut reader = Reader { node, connection, unreadable: 0, pings: 0, ran: 0, read: 0 };
    let length = rest.len();
    ending.why = Some(match reader.take_in(rest, length, Instant::now()).await {
        Ok(()) => reader.listen(&mut wire).await,
        Err(why) => why,
    });
}

/// However reading ends, whoever waits for something on the connection is told.
struct Ending {
    node: Weak<Inner>,
    connection: Arc<Connection>,
    why: Option<Failure>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let connection = &self.connection;
        let why = self.why.take().unwrap_or_else(|| Failure::transient("the connection was given up here"));
        tracing::debug!(peer = %connection.known.peer, remote = %connection.remote.address, %why, "connection ended");
        connection.cut();
        connection.outgoing.close();
        connection.streams.lost(&why);
        drop(connection.seat.lock().take());
        if let Some(node) = self.node.upgrade() {
            node.connections.lock().remove(&connection.id);
            node.nobody_waits(connection);
        }
        connection.known.lost(connection);
    }
}

struct Reader {
    /// The node may end while its connections are being closed.
    node: Weak<Inner>,
    connection: Arc<Connection>,
    unreadable: u32,
    pings: u64,
    /// How many requests were run where they were read.
    ran: u64,
    /// How many frames were read since others had their turn.
    read: usize,
}

impl Reader {
    /// Takes in what comes until the connection is over. Why it is.
    async fn listen(&mut self, wire: &mut mpsc::Receiver<Result<Bytes, Failure>>) -> Failure {
        let (ping_after, dead_after) = (self.connection.ping_after, self.connection.dead_after);
        let mut look_at = Instant::now() + ping_after.min(dead_after);
        let (mut come, mut moved_at) = (0, self.connection.began_at); // parts of packets, and when they were last seen to become more
        loop {
            tokio::select! {
                biased;
                () = self.connection.cut.cancelled() => return Failure::transient("the connection was closed here"),
                packet = wire.recv() => match packet {
                    None => return Failure::transient("the connection was cut"),
                    Some(Err(failure)) => return failure,
                    Some(Ok(packet)) => {
                        let now = Instant::now();
                        self.connection.hear(now);
                        come = self.connection.pulse.come(); // its own parts are no life beyond it
                        if let Err(why) = self.packet(packet, now).await {
                            return why;
                        }
                    }
                },
                () = time::until(look_at) => {
                    let (now, heard_at) = (Instant::now(), self.connection.heard_at());
                    if std::mem::replace(&mut come, self.connection.pulse.come()) != come {
                        moved_at = now;
                    }
                    let dead_at = heard_at.max(moved_at) + dead_after;
                    if now >= dead_at {
                        return Failure::transient(format!("nothing was heard of {} for {dead_after:?}", self.connection.remote.address));
                    }
                    if now >= heard_at + ping_after {
                        self.pings += 1;
                        self.connection.say(&Body::Ping(Number { number: self.pings }));
                        look_at = (now + ping_after).min(dead_at);
                    } else {
                        look_at = (heard_at + ping_after).min(dead_at);
                    }
                }
            }
        }
    }

    async fn packet(&mut self, packet: Bytes, now: Instant) -> Result<(), Failure> {
        match envelope::packet(packet.clone()) {
            Ok(frames) => self.take_in(frames, packet.len(), now).await,
            Err(error) => Err(self.unreadable(packet, Failure::poison(format!("a packet cannot be read: {error}")))),
        }
    }

    fn unreadable(&mut self, bytes: Bytes, failure: Failure) -> Failure {
        self.unreadable += 1;
        if let Some(node) = self.node.upgrade() {
            node.unreadable(&self.connection, &bytes, failure.clone());
        }
        failure
    }

    /// Takes in the frames of a packet of that length that came then.
    ///
    /// # Errors
    /// If the connection is to be cut.
    async fn take_in(&mut self, frames: Frames, length: usize, now: Instant) -> Result<(), Failure> {
        let Some(node) = self.node.upgrade() else { return Err(Failure::transient("the node has ended")) };
        let (connection, sent_us) = (Arc::clone(&self.connection), frames.sent_us());
        let mut replies = Replies::new(|replies| connection.known.answered(connection.id, replies));
        let (mut frames, mut read) = (frames, Vec::new());
        loop {
            read.extend(frames.by_ref().take(AHEAD_MAX).map(|bytes| (envelope::frame(bytes.clone()), bytes)));
            if read.is_empty() {
                return Ok(());
            }
            if read.iter().any(|(frame, _)| is_use(frame.as_ref().ok().and_then(Option::as_ref))) {
                connection.use_at(now);
            }
            node.expect(&connection, read.iter().filter_map(|(frame, _)| request(frame.as_ref().ok()?.as_ref()?)));
            self.read += read.len();
            for (frame, bytes) in read.drain(..) {
                match frame {
                    Ok(Some(mut body)) => {
                        if let Body::Call(request) | Body::Tell(request) = &mut body {
                            request.was_sent(sent_us);
                        }
                        self.frame(&node, &mut replies, body, length, now).await;
                    }
                    Ok(None) => {} // of a newer version
                    Err(error) => {
                        let failure = self.unreadable(bytes, Failure::poison(format!("a frame cannot be read: {error}")));
                        if self.unreadable >= UNREADABLE_MAX {
                            return Err(failure);
                        }
                    }
                }
            }
            if self.read >= READ_AT_ONCE {
                self.let_others().await;
            }
        }
    }

    /// Takes in a frame of a packet of that length.
    async fn frame<F: FnMut(Vec<Reply>)>(
        &mut self,
        node: &Arc<Inner>,
        replies: &mut Replies<F>,
        mut body: Body,
        length: usize,
        now: Instant,
    ) {
        own(&mut body, length);
        let ran = match body {
            Body::Reply(reply) => {
                replies.add(reply);
                false
            }
            body => dispatch(node, &self.connection, body, now),
        };
        self.ran += u64::from(ran);
        if ran && self.ran.is_multiple_of(RAN_AT_ONCE) {
            self.let_others().await; // what they have answered goes out while the next are read
        }
    }

    async fn let_others(&mut self) {
        self.read = 0;
        tokio::task::yield_now().await;
    }
}

/// Whether a frame is more than a sign of life.
fn is_use(body: Option<&Body>) -> bool {
    body.is_some_and(|body| !matches!(body, Body::Ping(_) | Body::Pong(_)))
}

/// The request of a frame, if it has one.
fn request(body: &Body) -> Option<&Request> {
    match body {
        Body::Call(request) | Body::Tell(request) => Some(request),
        _ => None,
    }
}

/// Copies a small part of a packet. Whoever keeps it would keep the whole packet otherwise, and only its own length is counted.
fn own(body: &mut Body, packet: usize) {
    let payload = match body {
        Body::Call(request) | Body::Tell(request) => &mut request.payload,
        Body::Reply(reply) => &mut reply.payload,
        Body::Open(open) => &mut open.payload,
        Body::Chunk(chunk) => &mut chunk.payload,
        Body::Sample(sample) => &mut sample.payload,
        Body::Hello(_) | Body::Cancel(_) | Body::Credit(_) | Body::Close(_) | Body::Ping(_) | Body::Pong(_) => return,
    };
    if payload.len() < packet / KEPT_PART {
        *payload = Bytes::copy_from_slice(payload);
    }
}

/// The answers of a packet, which are handed out many at a time, however it ends.
struct Replies<F: FnMut(Vec<Reply>)> {
    hand_out: F,
    waiting: Vec<Reply>,
}

impl<F: FnMut(Vec<Reply>)> Replies<F> {
    fn new(hand_out: F) -> Self {
        Replies { hand_out, waiting: Vec::new() }
    }

    fn add(&mut self, reply: Reply) {
        self.waiting.push(reply);
        if self.waiting.len() >= REPLIES_MAX {
            (self.hand_out)(std::mem::take(&mut self.waiting));
        }
    }
}

impl<F: FnMut(Vec<Reply>)> Drop for Replies<F> {
    fn drop(&mut self) {
        if !self.waiting.is_empty() {
            (self.hand_out)(std::mem::take(&mut self.waiting));
        }
    }
}

/// Does what a frame asks for. True if a handler was begun for it here.
fn dispatch(node: &Arc<Inner>, connection: &Arc<Connection>, body: Body, now: Instant) -> bool {
    match body {
        Body::Reply(reply) => connection.known.answered(connection.id, vec![reply]),
        Body::Call(request) => return node.receive(connection, Kind::Call, request, now),
        Body::Tell(request) => return node.receive(connection, Kind::Tell, request, now),
        Body::Cancel(cancel) => node.called_off(connection, cancel),
        Body::Open(open) => node.opened(connection, open),
        Body::Chunk(chunk) => connection.streams.chunk(connection, chunk),
        Body::Credit(credit) => connection.streams.credit(credit),
        Body::Close(close) => connection.streams.closed(connection, close),
        Body::Sample(sample) => node.sampled(connection, sample),
        Body::Ping(ping) => drop(connection.outgoing.try_push(&Body::Pong(ping))), // if there is no room, there is life enough
        Body::Pong(_) => {}
        Body::Hello(_) => {} // it was said
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest answer has four bytes in a packet, and a hundred and more here.
    #[test]
    fn however_many_answers_a_packet_has_few_wait_to_be_handed_out() {
        let (mut numbers, mut most) = (Vec::new(), 0);
        let mut replies = Replies::new(|replies: Vec<Reply>| {
            most = most.max(replies.capacity());
            numbers.extend(replies.iter().map(|reply| reply.number));
        });
        (0..100_000).for_each(|number| replies.add(Reply { number, ..Reply::default() }));
        drop(replies);
        assert!(numbers.into_iter().eq(0..100_000), "all of them, in order");
        assert!(most <= REPLIES_MAX, "{most} at a time");
    }
}
