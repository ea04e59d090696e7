//! The dead letters of a route: messages that nobody will send or handle again by itself, kept until a person redrives or drops them.
//!
//! ```text
//!   –, open --AddLetter-----> open    LETTER_ADDED | LETTER_FAILED (that message is here: its newer failure counts)
//!   open    --FailLetter----> open    LETTER_FAILED
//!   open    --RedriveLetter-> open    LETTER_REDRIVEN | (known: answered, no event)
//!   open    --DropLetter----> open    LETTER_DROPPED | (known: answered, no event)
//!   any     --anything else--> unchanged
//! ```
//!
//! To redrive a letter is to send or handle its message again. That happens outside, first; the box only keeps what came of it.
//!
//! Tested by `crates/sdk/tests/it/dead_messages.rs`.

mod words;

pub use words::{Direction, MessageKind};

use crate::machine::{Decision, IllegalTransition, illegal};
use crate::{
    Answer, Attempt, Command, DropLetter, Effect, EntityId, Entry, Event, FailLetter, Letter, LetterAbout, LetterHome, LetterId, Origin,
    RedriveLetter, Refusal, RouteName, Seq, Timestamp,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// How many letters a route may have. What comes then is refused: whoever has it knows that nobody else does.
pub const LETTERS_MAX: usize = 100_000;

/// How long the messages of all letters of a route may be together, in bytes: as many letters of the longest messages would fill every disk.
pub const LETTERS_BYTES_MAX: u64 = 1 << 30;

/// How many commands are remembered, so that the same one again is answered and not refused.
pub const COMMANDS_MAX: usize = 10_000;

const REDRIVEN: &str = "redriven";
const DROPPED: &str = "dropped";

/// The dead letters of a route: the fold of their journal. The bytes stay in the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteBox {
    /// The route.
    pub route: RouteName,
    /// The sequence of the last entry.
    pub seq: Seq,
    /// How long the messages of all letters are together, in bytes.
    pub bytes: u64,
    /// Every letter that is here, by the sequence of its arrival.
    pub letters: BTreeMap<Seq, Kept>,
    /// The letter of each message that has one.
    pub messages: BTreeMap<String, Seq>,
    /// The last commands that were carried out, with the letter and what was done, oldest first.
    pub commands: VecDeque<String>,
}

/// A letter that is here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    /// What tells its message from others: direction, peer, request, and a digest of its bytes.
    pub message: String,
    /// How many attempts there were in all.
    pub attempts: Attempt,
    /// How long its message is, in bytes.
    pub bytes: u64,
}

impl RouteBox {
    fn new(route: &RouteName) -> Self {
        RouteBox { route: route.clone(), seq: 0, bytes: 0, letters: BTreeMap::new(), messages: BTreeMap::new(), commands: VecDeque::new() }
    }

    fn remember(&mut self, letter: Seq, done: &str, origin: &Origin) {
        let Some(command) = &origin.command else { return };
        if self.commands.len() >= COMMANDS_MAX {
            self.commands.pop_front();
        }
        self.commands.push_back(carried_out(letter, done, command));
    }

    fn remove(&mut self, letter: Seq) -> Option<()> {
        let kept = self.letters.remove(&letter)?;
        self.bytes = self.bytes.saturating_sub(kept.bytes);
        self.messages.remove(&kept.message).map(drop)
    }
}

/// Decides on a command.
///
/// # Errors
/// A [`Refusal`] leaves no trace.
pub fn decide(route: &RouteName, state: Option<&RouteBox>, command: Command, now: Timestamp) -> Result<Decision, Refusal> {
    match command {
        Command::AddLetter(letter) => add(route, state, *letter, now),
        Command::FailLetter(FailLetter { letter, failure }) => {
            let (letters, kept) = find(route, state, letter)?;
            let event = failed(letter, kept, failure.attempts.max(1), failure);
            Ok(decided(letters.seq, now, event, Answer::Kept { letter }))
        }
        Command::RedriveLetter(RedriveLetter { letter, origin }) => match settled(route, state, letter, REDRIVEN, &origin)? {
            Some(letters) => Ok(decided(letters.seq, now, Event::LetterRedriven { letter, origin }, Answer::Redriven)),
            None => Ok(Decision::answer(Answer::Redriven)),
        },
        Command::DropLetter(DropLetter { letter, origin }) => match settled(route, state, letter, DROPPED, &origin)? {
            Some(letters) => Ok(decided(letters.seq, now, Event::LetterDropped { letter, origin }, Answer::Dropped)),
            None => Ok(Decision::answer(Answer::Dropped)),
        },
        _ => Ok(Decision::answer(Answer::Heard)),
    }
}

/// The same message again is the same letter.
fn add(route: &RouteName, state: Option<&RouteBox>, letter: Letter, now: Timestamp) -> Result<Decision, Refusal> {
    let seq = state.map_or(0, |letters| letters.seq);
    let Some(message) = name_of(route, &letter) else { return Ok(Decision::answer(Answer::NotFound)) };
    let known = state.and_then(|letters| letters.messages.get(&message).and_then(|seq| Some((*seq, letters.letters.get(seq)?))));
    if let Some((known, kept)) = known {
        let event = failed(known, kept, letter.attempt, letter.failure);
        return Ok(decided(seq, now, event, Answer::Kept { letter: known }));
    }
    if state.is_some_and(|letters| letters.letters.len() >= LETTERS_MAX) {
        return Err(Refusal::TooManyLetters { route: route.clone(), max: LETTERS_MAX });
    }
    if state.map_or(0, |letters| letters.bytes).saturating_add(length(&letter)) > LETTERS_BYTES_MAX {
        return Err(Refusal::LettersTooLong { route: route.clone(), max: LETTERS_BYTES_MAX });
    }
    Ok(decided(seq, now, Event::LetterAdded(Box::new(letter)), Answer::Kept { letter: seq + 1 }))
}

fn length(letter: &Letter) -> u64 {
    letter.payload.bytes.len() as u64
}

fn failed(letter: Seq, kept: &Kept, attempts: Attempt, mut failure: crate::Failure) -> Event {
    let attempt = kept.attempts.saturating_add(attempts);
    failure.attempts = attempt;
    Event::LetterFailed { letter, attempt, failure }
}

fn decided(seq: Seq, now: Timestamp, event: Event, answer: Answer) -> Decision {
    Decision { entries: vec![Entry::new(seq + 1, 1, now, event)], effects: vec![Effect::Answer(answer)] }
}

fn find<'a>(route: &RouteName, state: Option<&'a RouteBox>, letter: Seq) -> Result<(&'a RouteBox, &'a Kept), Refusal> {
    state
        .and_then(|letters| Some((letters, letters.letters.get(&letter)?)))
        .ok_or_else(|| Refusal::LetterNotFound { letter: LetterId { home: LetterHome::Route(route.clone()), seq: letter } })
}

/// The box that has that letter; nothing if the same was done to the same letter by the same command before.
fn settled<'a>(
    route: &RouteName,
    state: Option<&'a RouteBox>,
    letter: Seq,
    done: &str,
    origin: &Origin,
) -> Result<Option<&'a RouteBox>, Refusal> {
    match find(route, state, letter) {
        Ok((letters, _)) => Ok(Some(letters)),
        Err(refusal) => {
            let known = origin.command.as_deref().map(|command| carried_out(letter, done, command));
            let is_known = known.is_some_and(|known| state.is_some_and(|letters| letters.commands.contains(&known)));
            if is_known { Ok(None) } else { Err(refusal) }
        }
    }
}

/// What is remembered of a command on a letter.
fn carried_out(letter: Seq, done: &str, command: &str) -> String {
    format!("{letter} {done} {command}")
}

/// What tells a message from others of its route. Other bytes under an id that was used before are another message: none is lost.
fn name_of(route: &RouteName, letter: &Letter) -> Option<String> {
    let LetterAbout::Message { route: of, direction, peer, request, .. } = &letter.about else { return None };
    let name = || format!("{} {peer} {request} {}", direction.as_str(), crate::random::digest_of(&letter.payload.bytes));
    (of == route).then(name)
}

/// Folds one entry into the state.
///
/// # Errors
/// [`IllegalTransition`] if the entry cannot come next.
pub fn evolve(route: &RouteName, state: Option<Box<RouteBox>>, entry: &Entry) -> Result<Box<RouteBox>, IllegalTransition> {
    let wrong = |why: &str| illegal(&EntityId::Route(route.clone()), entry, why);
    let mut letters = state.unwrap_or_else(|| Box::new(RouteBox::new(route)));
    if entry.seq != letters.seq + 1 {
        return Err(wrong("an event is missing"));
    }
    let no_such = || wrong("there is no such letter");
    match &entry.event {
        Event::LetterAdded(letter) => {
            let message = name_of(route, letter).ok_or_else(|| wrong("the letter belongs to something else"))?;
            if letters.messages.insert(message.clone(), entry.seq).is_some() {
                return Err(wrong("the message has a letter already"));
            }
            let bytes = length(letter);
            letters.bytes = letters.bytes.saturating_add(bytes);
            letters.letters.insert(entry.seq, Kept { message, attempts: letter.attempt, bytes });
        }
        Event::LetterFailed { letter, attempt, .. } => letters.letters.get_mut(letter).ok_or_else(no_such)?.attempts = *attempt,
        Event::LetterRedriven { letter, origin } => {
            letters.remove(*letter).ok_or_else(no_such)?;
            letters.remember(*letter, REDRIVEN, origin);
        }
        Event::LetterDropped { letter, origin } => {
            letters.remove(*letter).ok_or_else(no_such)?;
            letters.remember(*letter, DROPPED, origin);
        }
        _ => return Err(wrong("no such event can happen to the letters of a route")),
    }
    letters.seq = entry.seq;
    Ok(letters)
}
