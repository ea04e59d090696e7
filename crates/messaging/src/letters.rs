//! Dead letters: messages that nobody will try again by itself, and the port to those who keep them.

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt, ready};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use steadfast_kernel::{Code, Failure};

/// A message that nobody will try again by itself.
#[derive(Clone, PartialEq)]
pub struct Letter {
    /// Whether it came here or was to go from here.
    pub direction: Direction,
    /// What it was.
    pub kind: LetterKind,
    /// Whom it came from: the [scope](crate::Caller::scope) of its caller. Or whom it was to go to: an address, or a name with an @ in front; before that, with @@ in between, on whose
    /// behalf, if that was not this node.
    pub peer: String,
    /// Who was to deal with it; empty if that could not be read.
    pub route: String,
    /// What tells it apart from other messages of its sender; empty if that could not be read.
    pub id: String,
    /// Its bytes, exactly.
    pub payload: Bytes,
    /// Why it is here. How many attempts there were is in it.
    pub failure: Failure,
}

/// Which way a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It came here.
    Received,
    /// It was to go from here.
    Sent,
}

/// What a dead letter was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetterKind {
    /// A request with an answer.
    Call,
    /// A one-way message.
    Tell,
    /// Bytes that are no frame, or no packet.
    Frame,
}

/// Shows what it is about, never its bytes.
impl fmt::Debug for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Letter { direction, kind, peer, route, id, payload, failure } = self;
        write!(f, "Letter({direction:?} {kind:?} {route} {id} {peer}, {} bytes, {failure})", payload.len())
    }
}

/// Keeps dead letters until a person looks at them.
pub trait Letters: Send + Sync + 'static {
    /// Keeps one. The same message may come again; its newest failure counts.
    ///
    /// # Errors
    /// If it could not be kept; transient if it is worth another try.
    fn post(&self, letter: Letter) -> BoxFuture<'static, Result<(), Failure>>;
}

/// A box in memory, for nodes without a store: bounded, and empty after a restart.
#[derive(Debug)]
pub struct MemoryLetters {
    letters: Mutex<VecDeque<Letter>>,
    count_max: usize,
    bytes_max: usize,
}

/// The payloads of all letters of a box in memory, in bytes, unless said otherwise.
const BYTES_MAX: usize = 64 << 20;

impl MemoryLetters {
    /// A box for so many.
    pub fn new(count_max: usize) -> Self {
        MemoryLetters { letters: Mutex::default(), count_max, bytes_max: BYTES_MAX }
    }

    /// How long their payloads may be together; 64 MiB unless said otherwise.
    #[must_use]
    pub fn bytes_max(self, bytes_max: usize) -> Self {
        MemoryLetters { bytes_max, ..self }
    }

    /// Those that are here, oldest first.
    pub fn list(&self) -> Vec<Letter> {
        self.letters.lock().iter().cloned().collect()
    }

    /// Takes out those of which that is true, oldest first: to redrive them, or to throw them away.
    pub fn take(&self, mut which: impl FnMut(&Letter) -> bool) -> Vec<Letter> {
        let mut letters = self.letters.lock();
        let (taken, kept): (VecDeque<_>, VecDeque<_>) = letters.drain(..).partition(|letter| which(letter));
        *letters = kept;
        taken.into()
    }
}

impl Default for MemoryLetters {
    fn default() -> Self {
        MemoryLetters::new(10_000)
    }
}

impl Letters for MemoryLetters {
    fn post(&self, letter: Letter) -> BoxFuture<'static, Result<(), Failure>> {
        let mut letters = self.letters.lock();
        let is_same = |other: &Letter| {
            (other.direction, other.kind, &other.peer, &other.route, &other.id)
                == (letter.direction, letter.kind, &letter.peer, &letter.route, &letter.id)
        };
        let known = match letter.kind {
            LetterKind::Frame => None,
            LetterKind::Call | LetterKind::Tell => letters.iter().position(is_same),
        };
        // Bytes that are no message come from anybody: they leave half of the box to messages.
        let share = if letter.kind == LetterKind::Frame { 2 } else { 1 };
        let others = |(place, other): (usize, &Letter)| if Some(place) == known { 0 } else { other.payload.len() };
        let bytes = letters.iter().enumerate().map(others).sum::<usize>() + letter.payload.len();
        if bytes > self.bytes_max / share || known.is_none() && letters.len() >= self.count_max / share {
            return ready(Err(Failure::new(Code::ResourceExhausted, "the box for dead letters is full"))).boxed();
        }
        match known {
            Some(place) => letters[place] = letter,
            None => letters.push_back(letter),
        }
        ready(Ok(())).boxed()
    }
}
