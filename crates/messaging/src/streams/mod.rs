//! Streams: pieces in order, both ways, with back-pressure. They are not sent again: a stream ends with its connection.
//!
//! ```text
//!   opener                      acceptor
//!     Open(credit) -----------> route known? -- no --> Close(error)
//!     <------------ Credit      yes: it may send
//!     Chunk 0, 1, … <---------> Chunk 0, 1, …      each costs credit, which comes back as pieces are taken
//!     Close <-----------------> Close              either side ends for itself; with an error, for both
//! ```

mod opening;
mod room;

pub use opening::Opening;

use crate::envelope::{Body, Chunk, Close, Credit, StreamId};
use crate::limits::{Limits, RETRY_AFTER};
use crate::node::{Connection, Seat};
use crate::time;
use bytes::Bytes;
use hashbrown::HashMap;
use parking_lot::Mutex;
use room::{Kept, Promise, Room};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use steadfast_kernel::{Code, Failure};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::Instant;

/// What one unit of credit is good for, in bytes.
const UNIT: usize = 64 << 10;

/// How long a handler may outlive its connection: it has to find out, and may have something to put in order.
const OUTLIVES: Duration = Duration::from_secs(60);

/// The streams of one connection.
pub(crate) struct Streams {
    open: Mutex<HashMap<StreamId, Arc<Ends>>>,
    /// Handlers that run, also of streams that are over: they count as well.
    handlers: AtomicUsize,
    numbers: AtomicU64,
    room: Arc<Room>,
    count_max: usize,
    piece_bytes_max: usize,
}

/// What the connection has of a stream.
struct Ends {
    /// How much may be sent.
    credit: Semaphore,
    /// What the other side granted at first: what it counts a long piece by.
    window: AtomicU32,
    accepted: watch::Sender<Accepted>,
    /// What this side has granted at first.
    promise: Promise,
    state: Mutex<State>,
}

/// Whether the other side has taken a stream. What it does with it then is another matter: it may have ended already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Accepted {
    NotYet,
    Yes,
    No,
}

struct State {
    /// Where pieces go that come; nothing once the other side has ended.
    incoming: Option<mpsc::UnboundedSender<Result<Piece, Failure>>>,
    /// How many have come.
    come: u64,
    /// What the other side may still send.
    granted: u64,
    /// How many were sent.
    sent: u64,
    /// This side says no more.
    finished: bool,
    /// The handler of this side runs: how it ends is how the stream ends, if the handler has let go of it.
    handled: bool,
    let_go: bool,
}

/// A piece that waits to be taken.
type Piece = (Bytes, Kept);

/// A stream of pieces, both ways.
#[derive(Debug)]
pub struct Stream {
    sender: StreamSender,
    receiver: StreamReceiver,
}

/// The half of a stream that sends.
pub struct StreamSender {
    mine: Arc<Mine>,
}

/// The half of a stream that receives.
pub struct StreamReceiver {
    incoming: mpsc::UnboundedReceiver<Result<Piece, Failure>>,
    /// What was taken and not yet granted again.
    taken: u32,
    /// Why nothing comes any more, once that was said.
    why: Option<Failure>,
    mine: Arc<Mine>,
}

/// What this side has of a stream, until both halves are dropped.
struct Mine {
    connection: Arc<Connection>,
    id: StreamId,
    ends: Arc<Ends>,
}

/// The handler of a stream that the other side has opened, as long as it runs.
pub(crate) struct Handling {
    connection: Arc<Connection>,
    id: StreamId,
    ends: Arc<Ends>,
    /// What the other side said first, which the handler has.
    _first: Kept,
    /// The place of the connection, which is not free while a handler runs.
    _seat: Option<Arc<Seat>>,
}

impl fmt::Debug for StreamSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamSender({} to {})", self.mine.id.number, self.mine.connection.caller_name())
    }
}

impl fmt::Debug for StreamReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamReceiver({} from {})", self.mine.id.number, self.mine.connection.caller_name())
    }
}

impl Streams {
    pub(crate) fn new(limits: &Limits) -> Self {
        Streams {
            open: Mutex::default(),
            handlers: AtomicUsize::new(0),
            numbers: AtomicU64::new(1),
            room: Room::new(limits.streams_bytes_max, limits.stream_window),
            count_max: limits.streams_max,
            piece_bytes_max: limits.payload_bytes_max,
        }
    }

    /// How many are open.
    pub(crate) fn count(&self) -> usize {
        self.open.lock().len()
    }

    /// None is open, and no handler runs.
    pub(crate) fn are_over(&self) -> bool {
        self.count() == 0 && self.handlers.load(Ordering::Relaxed) == 0
    }

    /// Begins a stream of this side.
    pub(crate) fn begin(&self, connection: &Arc<Connection>) -> Result<Stream, Failure> {
        connection.use_at(Instant::now());
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.add(connection, StreamId { number, mine: true }, 0)
    }

    /// The other side has begun a stream with so many bytes, and grants so much.
    pub(crate) fn accept(
        &self,
        connection: &Arc<Connection>,
        number: u64,
        credit: u32,
        bytes: usize,
    ) -> Result<(Stream, Handling), Failure> {
        if self.handlers.load(Ordering::Relaxed) >= self.count_max {
            return Err(too_much("too many handlers of streams run on this connection"));
        }
        let first = self.room.keep(bytes).ok_or_else(no_room)?;
        let stream = self.add(connection, StreamId { number, mine: false }, credit)?;
        self.handlers.fetch_add(1, Ordering::Relaxed);
        let Mine { id, ends, .. } = &*stream.sender.mine;
        let handling =
            Handling { connection: Arc::clone(connection), id: *id, ends: Arc::clone(ends), _first: first, _seat: connection.seat() };
        connection.say(&Body::Credit(Credit { stream: *id, chunks: ends.promise.window }));
        Ok((stream, handling))
    }

    /// The other side has begun a stream that nobody takes.
    pub(crate) fn refuse(&self, connection: &Connection, number: u64, why: &Failure) {
        let stream = StreamId { number, mine: false };
        let _it_gives_up_by_itself = connection.outgoing.try_push(&Body::Close(Close { stream, chunks: 0, error: Some(why.into()) }));
    }

    fn add(&self, connection: &Arc<Connection>, id: StreamId, credit: u32) -> Result<Stream, Failure> {
        let (sender, incoming) = mpsc::unbounded_channel(); // bounded by what is granted, and by the room that there is
        let promise = self.room.promise();
        let state = State {
            incoming: Some(sender),
            come: 0,
            granted: u64::from(promise.window),
            sent: 0,
            finished: false,
            handled: !id.mine,
            let_go: false,
        };
        let ends = Arc::new(Ends {
            credit: Semaphore::new((credit as usize).min(Semaphore::MAX_PERMITS)),
            window: AtomicU32::new(credit),
            accepted: watch::Sender::new(if id.mine { Accepted::NotYet } else { Accepted::Yes }),
            promise,
            state: Mutex::new(state),
        });
        let mut open = self.open.lock();
        if open.len() >= self.count_max {
            return Err(too_much(format!("{} streams are open on this connection already", open.len())));
        }
        if open.contains_key(&id) {
            return Err(Failure::new(Code::FailedPrecondition, "there is a stream of that number already"));
        }
        open.insert(id, Arc::clone(&ends));
        let mine = Arc::new(Mine { connection: Arc::clone(connection), id, ends });
        let sender = StreamSender { mine: Arc::clone(&mine) };
        Ok(Stream { sender, receiver: StreamReceiver { incoming, taken: 0, why: None, mine } })
    }

    /// What the other side means by that.
    fn find(&self, said: StreamId) -> Option<(StreamId, Arc<Ends>)> {
        let id = StreamId { mine: !said.mine, ..said };
        self.open.lock().get(&id).map(|ends| (id, Arc::clone(ends)))
    }

    /// A piece has come.
    pub(crate) fn chunk(&self, connection: &Connection, chunk: Chunk) {
        let Some((id, ends)) = self.find(chunk.stream) else { return };
        let cost = u64::from(cost(chunk.payload.len(), ends.promise.window));
        let mut state = ends.state.lock();
        let wrong = match state.granted.checked_sub(cost) {
            _ if chunk.place != state.come => Failure::transient("a piece of the stream is missing, or came twice"),
            None => Failure::new(Code::ResourceExhausted, "more of the stream came than was asked for"),
            Some(_) if chunk.payload.len() > self.piece_bytes_max => {
                Failure::new(Code::InvalidArgument, "a piece of the stream is too long")
            }
            Some(left) => match self.room.keep(chunk.payload.len()) {
                Some(kept) => {
                    (state.come, state.granted) = (state.come + 1, left);
                    if let Some(incoming) = &state.incoming {
                        let _nobody_reads = incoming.send(Ok((chunk.payload, kept)));
                    }
                    return;
                }
                None => no_room(),
            },
        };
        drop(state);
        self.abort(connection, id, &ends, &wrong);
    }

    /// More may be sent.
    pub(crate) fn credit(&self, credit: Credit) {
        if let Some((_, ends)) = self.find(credit.stream) {
            let _one_opened_here_has_none_yet = ends.window.compare_exchange(0, credit.chunks, Ordering::Relaxed, Ordering::Relaxed);
            ends.accept(Accepted::Yes);
            let room = Semaphore::MAX_PERMITS - ends.credit.available_permits();
            ends.credit.add_permits((credit.chunks as usize).min(room));
        }
    }

    /// The other side says no more.
    pub(crate) fn closed(&self, connection: &Connection, close: Close) {
        let Some((id, ends)) = self.find(close.stream) else { return };
        let come = ends.state.lock().come;
        match close.error {
            Some(error) => self.end(id, &ends, &error.into()),
            None if come != close.chunks => self.abort(connection, id, &ends, &Failure::transient("the end of the stream is missing")),
            None => {
                let mut state = ends.state.lock();
                state.incoming = None;
                if state.finished {
                    drop(state);
                    self.open.lock().remove(&id);
                }
            }
        }
    }

    /// Nothing comes or goes any more, and both sides are told.
    fn abort(&self, connection: &Connection, id: StreamId, ends: &Ends, why: &Failure) {
        connection.say(&Body::Close(Close { stream: id, chunks: 0, error: Some(why.into()) }));
        self.end(id, ends, why);
    }

    /// This side says no more.
    fn finish(&self, connection: &Connection, id: StreamId, ends: &Ends) {
        let mut state = ends.state.lock();
        if std::mem::replace(&mut state.finished, true) {
            return;
        }
        let (over, chunks) = (state.incoming.is_none(), state.sent);
        drop(state);
        connection.say(&Body::Close(Close { stream: id, chunks, error: None }));
        if over {
            self.open.lock().remove(&id);
        }
    }

    /// Nobody of this side has it any more.
    fn let_go(&self, connection: &Connection, id: StreamId, ends: &Ends) {
        if self.open.lock().contains_key(&id) {
            self.abort(connection, id, ends, &Failure::new(Code::Cancelled, "the other side let go of the stream"));
        }
    }

    /// Nothing comes or goes any more.
    fn end(&self, id: StreamId, ends: &Ends, why: &Failure) {
        self.open.lock().remove(&id);
        ends.end(why);
    }

    /// The connection is cut.
    pub(crate) fn lost(&self, why: &Failure) {
        let open = std::mem::take(&mut *self.open.lock());
        open.values().for_each(|ends| ends.end(why));
    }
}

fn no_room() -> Failure {
    too_much("too much of the streams of this connection waits to be taken")
}

fn too_much(message: impl fmt::Display) -> Failure {
    Failure::new(Code::ResourceExhausted, message).retry_after(RETRY_AFTER)
}

/// What a piece costs whom grants that much: never more than half of it, so that what was taken and not yet granted again leaves room for it.
fn cost(bytes: usize, window: u32) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).clamp(1, (window / 2).max(1))
}

impl Handling {
    /// Ends when the connection has been cut for so long that the handler is given up.
    pub(crate) async fn outlived(&self) {
        self.connection.ended().await;
        time::until(time::after(OUTLIVES)).await;
    }

    /// The handler has ended. If it has let go of the stream, that ends as the handler did.
    pub(crate) fn over(self, outcome: Result<(), Failure>) {
        let streams = &self.connection.streams;
        let let_go = {
            let mut state = self.ends.state.lock();
            state.handled = false;
            state.let_go
        };
        match outcome {
            _ if !let_go || !streams.open.lock().contains_key(&self.id) => {}
            Ok(()) => {
                streams.finish(&self.connection, self.id, &self.ends);
                streams.let_go(&self.connection, self.id, &self.ends); // what the other side still says, nobody reads
            }
            Err(failure) => streams.abort(&self.connection, self.id, &self.ends, &failure),
        }
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        self.connection.streams.handlers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Ends {
    fn end(&self, why: &Failure) {
        if let Some(incoming) = self.state.lock().incoming.take() {
            let _nobody_reads = incoming.send(Err(why.clone()));
        }
        self.credit.close();
        self.accept(Accepted::No);
    }

    /// What is said first counts.
    fn accept(&self, accepted: Accepted) {
        self.accepted
            .send_if_modified(|known| *known == Accepted::NotYet && std::mem::replace(known, accepted) != accepted);
    }
}

impl Stream {
    /// Which, and what is granted at first, as the other side has to be told.
    pub(crate) fn number_and_credit(&self) -> (u64, u32) {
        (self.sender.mine.id.number, self.sender.mine.ends.promise.window)
    }

    /// Waits until the other side has taken it.
    pub(crate) async fn accepted(&mut self) -> Result<(), Failure> {
        let mut accepted = self.sender.mine.ends.accepted.subscribe();
        let accepted = accepted.wait_for(|accepted| *accepted != Accepted::NotYet).await.map(|accepted| *accepted);
        match accepted {
            Ok(Accepted::Yes) => Ok(()),
            _ => Err(self.next().await.err().unwrap_or_else(|| Failure::transient("the stream has ended"))),
        }
    }

    /// What the other end calls itself.
    pub fn peer_name(&self) -> &str {
        self.sender.mine.connection.caller_name()
    }

    /// Sends a piece, once the other side has room for it.
    ///
    /// # Errors
    /// If the stream is over, or the piece is too long.
    pub async fn send(&mut self, piece: impl Into<Bytes>) -> Result<(), Failure> {
        self.sender.send(piece).await
    }

    /// The next piece. Nothing if the other side has finished.
    ///
    /// # Errors
    /// If the stream has ended otherwise: cut, or given up by the other side.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        self.receiver.next().await
    }

    /// Says no more; what the other side sends still comes.
    pub fn finish(&mut self) {
        self.sender.finish();
    }

    /// Ends it on both sides, with the reason. So does a handler of streams that has its stream no more and returns a failure; one that returns well
    /// finishes it.
    pub fn fail(self, why: &Failure) {
        let Mine { connection, id, ends } = &*self.sender.mine;
        connection.streams.abort(connection, *id, ends, why);
    }

    /// Its two halves, for different tasks. It is let go of when both are dropped.
    pub fn split(self) -> (StreamSender, StreamReceiver) {
        (self.sender, self.receiver)
    }
}

impl StreamSender {
    /// Sends a piece, once the other side has room for it.
    ///
    /// # Errors
    /// If the stream is over, or the piece is too long.
    pub async fn send(&mut self, piece: impl Into<Bytes>) -> Result<(), Failure> {
        let payload = piece.into();
        let Mine { connection, id, ends } = &*self.mine;
        if payload.len() > connection.streams.piece_bytes_max.min(connection.payload_bytes_max) {
            return Err(Failure::new(Code::InvalidArgument, format!("a piece of {} bytes is too long", payload.len())));
        }
        let over = || Failure::transient("the stream has ended").code(Code::Unavailable);
        if ends.state.lock().finished {
            return Err(Failure::new(Code::FailedPrecondition, "the stream was finished on this side"));
        }
        let cost = cost(payload.len(), ends.window.load(Ordering::Relaxed));
        let credit = ends.credit.acquire_many(cost).await.map_err(|_| over())?;
        let place = ends.state.lock().sent;
        if !connection.outgoing.push(&Body::Chunk(Chunk { stream: *id, place, payload })).await {
            return Err(over());
        }
        credit.forget(); // not before it is spent: whoever calls this off keeps it
        ends.state.lock().sent += 1;
        Ok(())
    }

    /// Says no more; what the other side sends still comes.
    pub fn finish(&mut self) {
        let Mine { connection, id, ends } = &*self.mine;
        connection.streams.finish(connection, *id, ends);
    }
}

impl StreamReceiver {
    /// The next piece. Nothing if the other side has finished.
    ///
    /// # Errors
    /// If the stream has ended otherwise: cut, or given up by the other side.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        if let Some(why) = &self.why {
            return Err(why.clone());
        }
        let piece = match self.incoming.recv().await {
            Some(Ok((piece, _kept))) => piece,
            Some(Err(why)) => return Err(self.why.insert(why).clone()),
            None => return Ok(None),
        };
        let Mine { connection, id, ends } = &*self.mine;
        self.taken += cost(piece.len(), ends.promise.window);
        if self.taken >= ends.promise.window / 2 {
            let chunks = std::mem::take(&mut self.taken);
            ends.state.lock().granted += u64::from(chunks);
            connection.say(&Body::Credit(Credit { stream: *id, chunks }));
        }
        Ok(Some(piece))
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        let mut state = self.ends.state.lock();
        state.let_go = true;
        if !state.handled {
            drop(state);
            self.connection.streams.let_go(&self.connection, self.id, &self.ends);
        }
    }
}
