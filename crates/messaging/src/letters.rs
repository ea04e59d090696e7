//! Dead letters: messages that nobody will try again by itself, and the port to those who keep them.

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt, ready};
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::collections::BTreeMap;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// It came here.
    Received,
    /// It was to go from here.
    Sent,
}

/// What a dead letter was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    kept: Mutex<Kept>,
    count_max: usize,
    bytes_max: usize,
}

/// What tells messages apart.
type Name = (Direction, LetterKind, String, String, String);

#[derive(Debug, Default)]
struct Kept {
    /// In the order in which they came first.
    letters: BTreeMap<u64, Letter>,
    /// Where those are that can come again.
    places: HashMap<Name, u64>,
    /// How many there have ever been.
    last: u64,
    /// How long the payloads are together.
    bytes: usize,
}

impl Kept {
    fn insert(&mut self, place: u64, letter: Letter) {
        self.bytes += letter.payload.len();
        if let Some(replaced) = self.letters.insert(place, letter) {
            self.bytes -= replaced.payload.len();
        }
    }

    fn remove(&mut self, place: u64) -> Option<Letter> {
        let letter = self.letters.remove(&place)?;
        self.bytes -= letter.payload.len();
        letter.name().map(|name| self.places.remove(&name));
        Some(letter)
    }
}

impl Letter {
    /// What tells it apart; nothing if it is bytes that are no message, which are never the same.
    fn name(&self) -> Option<Name> {
        let Letter { direction, kind, peer, route, id, .. } = self;
        (*kind != LetterKind::Frame).then(|| (*direction, *kind, peer.clone(), route.clone(), id.clone()))
    }
}

/// The payloads of all letters of a box in memory, in bytes, unless said otherwise.
const BYTES_MAX: usize = 64 << 20;

impl MemoryLetters {
    /// A box for so many.
    pub fn new(count_max: usize) -> Self {
        MemoryLetters { kept: Mutex::default(), count_max, bytes_max: BYTES_MAX }
    }

    /// How long their payloads may be together; 64 MiB unless said otherwise.
    #[must_use]
    pub fn bytes_max(self, bytes_max: usize) -> Self {
        MemoryLetters { bytes_max, ..self }
    }

    /// Those that are here, oldest first.
    pub fn list(&self) -> Vec<Letter> {
        self.kept.lock().letters.values().cloned().collect()
    }

    /// Takes out those of which that is true, oldest first: to redrive them, or to throw them away.
    pub fn take(&self, mut which: impl FnMut(&Letter) -> bool) -> Vec<Letter> {
        let mut kept = self.kept.lock();
        let places: Vec<_> = kept.letters.iter().filter(|(_, letter)| which(letter)).map(|(place, _)| *place).collect();
        places.into_iter().filter_map(|place| kept.remove(place)).collect()
    }
}

impl Default for MemoryLetters {
    fn default() -> Self {
        MemoryLetters::new(10_000)
    }
}

impl Letters for MemoryLetters {
    fn post(&self, letter: Letter) -> BoxFuture<'static, Result<(), Failure>> {
        let mut kept = self.kept.lock();
        let name = letter.name();
        let known = name.as_ref().and_then(|name| kept.places.get(name).copied());
        // Bytes that are no message come from anybody: they leave half of the box to messages.
        let share = if letter.kind == LetterKind::Frame { 2 } else { 1 };
        let before = known.and_then(|place| kept.letters.get(&place)).map_or(0, |letter| letter.payload.len());
        let bytes = kept.bytes - before + letter.payload.len();
        if bytes > self.bytes_max / share || known.is_none() && kept.letters.len() >= self.count_max / share {
            return ready(Err(Failure::new(Code::ResourceExhausted, "the box for dead letters is full"))).boxed();
        }
        let place = known.unwrap_or(kept.last + 1);
        kept.last = kept.last.max(place);
        kept.places.extend(name.map(|name| (name, place)));
        kept.insert(place, letter);
        ready(Ok(())).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(kind: LetterKind, id: usize, bytes: usize) -> Letter {
        let (direction, peer, route, payload) = (Direction::Received, "a".into(), "r".into(), Bytes::from(vec![0; bytes]));
        Letter { direction, kind, peer, route, id: id.to_string(), payload, failure: Failure::transient("x") }
    }

    #[tokio::test]
    async fn what_is_counted_is_what_is_kept_whatever_comes_and_goes() {
        let letters = MemoryLetters::new(100).bytes_max(5_000);
        for round in 0..10_000 {
            let kind = [LetterKind::Call, LetterKind::Tell, LetterKind::Frame][round % 3];
            let _it_may_be_full = letters.post(letter(kind, round % 70, round % 97)).await;
            if round % 11 == 0 {
                let taken = letters.take(|letter| letter.payload.len() % 13 == round % 13);
                assert!(taken.iter().all(|letter| letter.payload.len() % 13 == round % 13));
            }
            let kept = letters.kept.lock();
            assert_eq!(kept.bytes, kept.letters.values().map(|letter| letter.payload.len()).sum::<usize>(), "round {round}");
            let messages = kept.letters.values().filter(|letter| letter.kind != LetterKind::Frame).count();
            assert_eq!(kept.places.len(), messages, "round {round}");
        }
    }

    #[tokio::test]
    async fn a_message_that_comes_again_keeps_its_place() {
        let letters = MemoryLetters::new(10);
        for id in [1, 2, 1] {
            letters.post(letter(LetterKind::Tell, id, id)).await.unwrap();
        }
        assert_eq!(letters.list().iter().map(|letter| &*letter.id).collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(letters.take(|letter| letter.id == "1").len(), 1);
        letters.post(letter(LetterKind::Tell, 1, 1)).await.unwrap();
        assert_eq!(letters.list().iter().map(|letter| &*letter.id).collect::<Vec<_>>(), ["2", "1"]);
    }
}
