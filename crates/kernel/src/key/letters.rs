//! What a person does about an end that nobody will tell by itself.
//! any --RedriveLetter--> same: LETTER_REDRIVEN, and its first attempt begins · any --DropLetter--> same: LETTER_DROPPED · (known: answered, no event)
//!
//! Tested by `crates/sdk/tests/it/keys/letters.rs`.

use super::Key;
use crate::machine::Decision;
use crate::{Answer, DropLetter, Effect, Event, KeyName, LetterHome, LetterId, Origin, RedriveLetter, Refusal, Seq, Timestamp};

pub(super) const REDRIVEN: &str = "redriven";
pub(super) const DROPPED: &str = "dropped";

pub(super) fn redrive(name: &KeyName, key: Option<&Key>, command: RedriveLetter, now: Timestamp) -> Result<Decision, Refusal> {
    let RedriveLetter { letter, origin } = command;
    let Some(key) = find(name, key, letter, REDRIVEN, &origin)? else { return Ok(Decision::answer(Answer::Redriven)) };
    let begin = key
        .letters
        .get(&letter)
        .map(|callback| Effect::CallBack { revision: callback.revision, attempt: 1 });
    let entry = key.entry(0, now, Event::LetterRedriven { letter, origin });
    Ok(Decision { entries: vec![entry], effects: begin.into_iter().chain([Effect::Answer(Answer::Redriven)]).collect() })
}

pub(super) fn throw_away(name: &KeyName, key: Option<&Key>, command: DropLetter, now: Timestamp) -> Result<Decision, Refusal> {
    let DropLetter { letter, origin } = command;
    let Some(key) = find(name, key, letter, DROPPED, &origin)? else { return Ok(Decision::answer(Answer::Dropped)) };
    let entry = key.entry(0, now, Event::LetterDropped { letter, origin });
    let spent = key.held.is_none() && key.callbacks.is_empty() && key.letters.len() == 1;
    let retire = spent.then_some(Effect::Retire(entry.seq));
    Ok(Decision { entries: vec![entry], effects: retire.into_iter().chain([Effect::Answer(Answer::Dropped)]).collect() })
}

/// The key that has that letter; nothing if the same was done to the same letter by the same command before.
fn find<'a>(name: &KeyName, key: Option<&'a Key>, letter: Seq, done: &str, origin: &Origin) -> Result<Option<&'a Key>, Refusal> {
    let not_found = || Refusal::LetterNotFound { letter: LetterId { home: LetterHome::Key(name.clone()), seq: letter } };
    let key = key.ok_or_else(not_found)?;
    if key.letters.contains_key(&letter) {
        return Ok(Some(key));
    }
    let known = origin
        .command
        .as_deref()
        .is_some_and(|command| key.commands.contains(&carried_out(letter, done, command)));
    if known { Ok(None) } else { Err(not_found()) }
}

/// What is remembered of a command on a letter.
pub(super) fn carried_out(letter: Seq, done: &str, command: &str) -> String {
    format!("{letter} {done} {command}")
}
