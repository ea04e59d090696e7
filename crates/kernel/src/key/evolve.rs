//! How an entry changes a key. The same function runs live and at recovery.

use super::letters::{DROPPED, REDRIVEN, carried_out};
use super::state::Failed;
use super::{Callback, Held, KEPT, Key};
use crate::machine::{IllegalTransition, illegal};
use crate::{EntityId, Entry, Event, KeyName, LetterAbout, Origin, Revision, Seq};
use std::collections::BTreeMap;

/// How many ids of commands on letters are remembered.
const COMMANDS_MAX: usize = 16;

/// The key after the first entry that is kept of its journal, which says all there is to be known.
///
/// # Errors
/// [`IllegalTransition`] if it does not.
pub fn begin_with(name: &KeyName, entry: &Entry) -> Result<Key, IllegalTransition> {
    let held = match &entry.event {
        Event::KeyPut(held) | Event::KeyRenewed { restated: Some(held), .. } => (**held).clone(),
        _ => return Err(wrong(name, entry, "a journal of a key begins with what it holds")),
    };
    Ok(Key {
        name: name.clone(),
        seq: entry.seq,
        revision: held.revision,
        held: Some(held),
        callbacks: BTreeMap::new(),
        letters: BTreeMap::new(),
        base: entry.seq,
        commands: Vec::new(),
    })
}

/// Folds one entry into the state. If it does not fit, the state is not to be used any more.
///
/// # Errors
/// [`IllegalTransition`] if the entry cannot come next.
pub fn advance(key: &mut Key, entry: &Entry) -> Result<(), IllegalTransition> {
    if entry.seq != key.seq + 1 {
        return Err(wrong(&key.name, entry, "an event is missing"));
    }
    change(key, entry).map_err(|why| wrong(&key.name, entry, why))?;
    key.seq = entry.seq;
    Ok(())
}

fn change(key: &mut Key, entry: &Entry) -> Result<(), &'static str> {
    match &entry.event {
        Event::KeyPut(held) => {
            rises(key, held.revision)?;
            key.held = Some((**held).clone());
            say_all(key, entry);
        }
        Event::KeyRenewed { revision, ttl, expires_at, restated } => {
            rises(key, *revision)?;
            let held = key.held.as_mut().ok_or("there is nothing to renew")?;
            (held.revision, held.ttl, held.expires_at) = (*revision, *ttl, *expires_at);
            if restated.as_deref().is_some_and(|restated| restated != held) {
                return Err("it says something else than what is known");
            }
            if restated.is_some() {
                say_all(key, entry);
            }
        }
        Event::KeyDeleted { revision, .. } => {
            let held = take(key, *revision)?;
            let callback = Key::deleted(&held, entry.at);
            key.callbacks.extend(callback.map(|callback| (*revision, callback)));
        }
        Event::KeyExpired { revision, ended_at, handled, .. } => {
            let held = take(key, *revision)?;
            let callback = Key::expired(&held, *ended_at, *handled);
            key.callbacks.extend(callback.map(|callback| (*revision, callback)));
        }
        Event::CallbackFailed { revision, attempt, of, due_at, failure, .. } => {
            let callback = key.callbacks.get_mut(revision).ok_or("there is no such callback")?;
            if callback.attempt != *attempt {
                return Err("it is not the attempt to come");
            }
            callback.attempt += 1;
            callback.failed = Some(Failed { failure: failure.clone(), due_at: *due_at, seq: entry.seq, of: *of });
        }
        Event::CallbackSettled { revision, attempt, .. } => {
            let callback = key.callbacks.remove(revision).ok_or("there is no such callback")?;
            if callback.attempt != *attempt {
                return Err("it is not the attempt to come");
            }
        }
        Event::LetterAdded(letter) => {
            let LetterAbout::Expiry { revision, .. } = &letter.about else { return Err("the letter belongs to something else") };
            let callback = key.callbacks.remove(revision).ok_or("there is no such callback")?;
            key.letters.insert(entry.seq, Callback { attempt: 1, failed: None, ..callback });
        }
        Event::LetterRedriven { letter, origin } => {
            let callback = key.letters.remove(letter).ok_or("there is no such letter")?;
            key.callbacks.insert(callback.revision, callback);
            remember(key, *letter, REDRIVEN, origin);
        }
        Event::LetterDropped { letter, origin } => {
            key.letters.remove(letter).ok_or("there is no such letter")?;
            remember(key, *letter, DROPPED, origin);
        }
        _ => return Err("no such event can happen to a key"),
    }
    Ok(())
}

/// Revisions rise: one that does not is of another key, or of another time.
fn rises(key: &mut Key, revision: Revision) -> Result<(), &'static str> {
    if revision <= key.revision {
        return Err("revisions rise");
    }
    key.revision = revision;
    Ok(())
}

fn take(key: &mut Key, revision: Revision) -> Result<Held, &'static str> {
    key.held.take_if(|held| held.revision == revision).ok_or("there is no such revision")
}

/// The journal may begin here, if nothing of what came before is still to be told.
fn say_all(key: &mut Key, entry: &Entry) {
    if key.has_told_all() && entry.seq - key.base >= KEPT {
        key.base = entry.seq;
        key.commands.clear();
    }
}

fn remember(key: &mut Key, letter: Seq, done: &str, origin: &Origin) {
    key.commands.extend(origin.command.as_deref().map(|command| carried_out(letter, done, command)));
    let many = key.commands.len().saturating_sub(COMMANDS_MAX);
    key.commands.drain(..many);
}

fn wrong(name: &KeyName, entry: &Entry, why: &str) -> IllegalTransition {
    illegal(&EntityId::Key(name.clone()), entry, why)
}
