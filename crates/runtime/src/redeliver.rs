//! Messages of dead letters: who can send or handle them again, and which of them are on their way. The engine itself knows no messages.
//!
//! Tested by `crates/sdk/tests/it/dead_messages.rs`.

use crate::engine::RedrivenLetters;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use steadfast_kernel::{
    Attempt, Direction, Failure, InvalidId, Letter, LetterAbout, LetterId, MessageKind, Payload, RouteName, check_peer, check_request,
    check_tenant, random,
};

/// The route of what nobody could read far enough to know its own.
const UNREADABLE: &str = "unreadable";

/// How many answers to commands on many letters are kept, so that the same command again has the same answer.
const ANSWERS_MAX: usize = 1_000;

/// A message that nobody will send or handle again by itself.
#[derive(Clone, PartialEq)]
pub struct MessageLetter {
    /// What it was for, 1 to 128 characters of `A-Z a-z 0-9 . _ - /`; empty if nobody could read that.
    pub route: String,
    /// Whether it came or went.
    pub direction: Direction,
    /// What it was.
    pub kind: MessageKind,
    /// Who sent it, or was to have it: 1 to 256 visible ASCII characters.
    pub peer: String,
    /// The id that the one who sent it gave it: as the peer; empty if nobody could read that.
    pub request: String,
    /// Whose work it is.
    pub tenant: Option<String>,
    /// How many attempts there were.
    pub attempts: Attempt,
    /// Why nobody will try it again.
    pub failure: Failure,
    /// Its bytes, exactly.
    pub payload: Payload,
}

/// Shows what it is about, never its bytes.
impl fmt::Debug for MessageLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MessageLetter { route, direction, kind, peer, request, tenant: _, attempts, failure, payload } = self;
        let (direction, kind) = (direction.as_str(), kind.as_str());
        write!(f, "MessageLetter({direction} {kind} {request} on {route:?}, {peer}, {attempts} attempts, {payload:?}: {failure})")
    }
}

impl MessageLetter {
    /// The letter that is kept, and where. What could not be read gets a name: that of the route, and of the bytes.
    pub(crate) fn into_letter(self) -> Result<(RouteName, Letter), InvalidId> {
        let MessageLetter { route, direction, kind, peer, request, tenant, attempts, failure, payload } = self;
        let route = RouteName::new(if route.is_empty() { UNREADABLE } else { &route })?;
        check_peer(&peer)?;
        let request = if request.is_empty() { format!("bytes-{}", random::digest_of(&payload.bytes)) } else { request };
        check_request(&request)?;
        tenant.as_deref().map(check_tenant).transpose()?;
        let about = LetterAbout::Message { route: route.clone(), direction, kind, peer, request };
        Ok((route, Letter { about, attempt: attempts.max(1), tenant, failure, payload }))
    }

    /// What is delivered again; nothing if the letter is about something else.
    pub(crate) fn of(letter: Letter) -> Option<Self> {
        let Letter { about, attempt, tenant, failure, payload } = letter;
        let LetterAbout::Message { route, direction, kind, peer, request } = about else { return None };
        Some(MessageLetter { route: route.to_string(), direction, kind, peer, request, tenant, attempts: attempt, failure, payload })
    }
}

/// Sends and handles messages again.
pub trait Redeliver: Send + Sync + 'static {
    /// Sends a message that went again, or hands one that came to its handler again, under the request id that it has: whoever has had it knows it by that.
    /// Success means that nobody has to keep it any longer. How long that may take is for whoever implements this to say: until it ends, nobody else can do anything about the letter.
    fn deliver(&self, letter: LetterId, message: MessageLetter) -> BoxFuture<'static, Result<(), Failure>>;
}

/// What an engine knows of letters that are being tried again.
pub(crate) struct Post {
    pub(crate) redeliver: Option<Arc<dyn Redeliver>>,
    /// Those that are on their way.
    claimed: Arc<Mutex<BTreeSet<LetterId>>>,
    /// What came of commands on many letters, oldest first.
    answers: Mutex<VecDeque<(String, RedrivenLetters)>>,
}

impl Post {
    pub(crate) fn new(redeliver: Option<Arc<dyn Redeliver>>) -> Self {
        Post { redeliver, claimed: Arc::default(), answers: Mutex::default() }
    }

    /// Takes a letter, so that nobody else does anything about it meanwhile; nothing if somebody has it.
    pub(crate) fn claim(&self, letter: &LetterId) -> Option<Claim> {
        let is_new = self.claimed.lock().insert(letter.clone());
        is_new.then(|| Claim { letter: letter.clone(), claimed: Arc::clone(&self.claimed) })
    }

    /// What came of that command before.
    pub(crate) fn answered(&self, command: &str) -> Option<RedrivenLetters> {
        self.answers.lock().iter().find(|(known, _)| known == command).map(|(_, answer)| answer.clone())
    }

    pub(crate) fn remember(&self, command: String, answer: RedrivenLetters) {
        let mut answers = self.answers.lock();
        if answers.len() >= ANSWERS_MAX {
            answers.pop_front();
        }
        answers.push_back((command, answer));
    }
}

/// A letter that somebody does something about; dropped, it is free.
pub(crate) struct Claim {
    letter: LetterId,
    claimed: Arc<Mutex<BTreeSet<LetterId>>>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claimed.lock().remove(&self.letter);
    }
}
