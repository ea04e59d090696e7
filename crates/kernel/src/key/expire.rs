//! The time of a key is over.
//! held --ExpireKey--> gone: KEY_EXPIRED, and its callback is to be told · gone: *not found* · another revision: *mismatch* · too early: armed again
//!
//! Tested by `crates/sdk/tests/it/keys/expiry.rs`.

use super::state::expiry;
use super::{Held, Key, not_found};
use crate::machine::Decision;
use crate::{Answer, Effect, Event, ExpireKey, KeyName, TimerName, Timestamp};

pub(super) fn decide(key: &Key, command: ExpireKey, now: Timestamp) -> Decision {
    let ExpireKey { revision, handled } = command;
    match &key.held {
        None => not_found(),
        Some(held) if held.revision != revision => Decision::answer(Answer::Mismatch),
        Some(held) if !held.is_over(now) => {
            Decision { entries: Vec::new(), effects: vec![expiry(&key.name, held.expires_at, revision)] } // the clock was set back
        }
        Some(held) => expire(key, held, held.expires_at, None, handled, now),
    }
}

/// It is gone, by itself or with a directory.
pub(super) fn expire(key: &Key, held: &Held, ended_at: Timestamp, with: Option<KeyName>, handled: bool, now: Timestamp) -> Decision {
    let revision = held.revision;
    let entry = key.entry(0, now, Event::KeyExpired { revision, ended_at, handled, with });
    let called_back = Key::expired(held, ended_at, handled);
    let spent = key.has_told_all() && called_back.is_none();
    let mut effects = vec![Effect::Disarm(TimerName::Expiry)];
    effects.extend(called_back.map(|callback| Effect::CallBack { revision, attempt: callback.attempt }));
    effects.extend(spent.then_some(Effect::Retire(entry.seq)));
    effects.push(Effect::Answer(Answer::Expired));
    Decision { entries: vec![entry], effects }
}
