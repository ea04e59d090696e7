//! Remove a key. Nobody is called back for that, but the keys below a directory go with it.
//! held --DeleteKey--> gone: KEY_DELETED

use super::{Held, Key};
use crate::machine::Decision;
use crate::{Answer, DeleteKey, Effect, Event, KeyName, Refusal, TimerName, Timestamp};

pub(super) fn decide(name: &KeyName, key: Option<&Key>, command: &DeleteKey, now: Timestamp) -> Result<Decision, Refusal> {
    let (key, held) = Key::live_of(name, key, now)?;
    held.check_owner(name, command.owner.as_deref())?;
    held.check_revision(name, command.if_revision)?;
    Ok(delete(key, held, None, now))
}

/// It is gone, by itself or with a directory.
pub(super) fn delete(key: &Key, held: &Held, with: Option<KeyName>, now: Timestamp) -> Decision {
    let revision = held.revision;
    let entry = key.entry(0, now, Event::KeyDeleted { revision, with });
    let called_back = Key::deleted(held, now);
    let spent = key.has_told_all() && called_back.is_none();
    let mut effects = vec![Effect::Disarm(TimerName::Expiry)];
    effects.extend(called_back.map(|callback| Effect::CallBack { revision, attempt: callback.attempt }));
    effects.extend(spent.then_some(Effect::Retire(entry.seq)));
    effects.push(Effect::Answer(Answer::Deleted { revision }));
    Decision { entries: vec![entry], effects }
}
