//! Give a key a value.
//! – | gone | held --PutKey--> held: KEY_PUT; before it KEY_EXPIRED, if the time of what was there is over: its callback is not lost

use super::state::{expiry, whole};
use super::{Held, KEPT, Key, OWED_BYTES_MAX, OWED_MAX, Target};
use crate::machine::Decision;
use crate::{Answer, Effect, Entry, Event, KeyName, PutKey, Refusal, TimerName, Timestamp};

pub(super) fn decide(name: &KeyName, key: Option<&Key>, command: PutKey, now: Timestamp) -> Result<Decision, Refusal> {
    let PutKey { revision, value, ttl, owner, directory, on_expire, if_revision, handled } = command;
    match key.and_then(|key| key.live(now)) {
        Some(held) => {
            held.check_owner(name, owner.as_deref())?;
            held.check_revision(name, if_revision)?;
        }
        None if if_revision.is_some_and(|expected| expected != 0) => {
            return Err(Refusal::KeyChanged { key: name.clone(), revision: None });
        }
        None => {}
    }
    if key.is_some_and(Key::owes_too_much) {
        return Err(Refusal::TooManyEnds { key: name.clone(), max: OWED_MAX, bytes_max: OWED_BYTES_MAX });
    }
    let over = key.and_then(|key| key.held.as_ref()).filter(|held| held.is_over(now));
    let (ttl, expires_at) = (whole(ttl), now.saturating_add(ttl));
    let on_expire = on_expire.or_else(|| handled.then_some(Target::Handler));
    let put = Held { revision, value, ttl, expires_at, owner, directory, on_expire, put_at: now };
    let expired = over.map(|held| Event::KeyExpired { revision: held.revision, ended_at: held.expires_at, handled, with: None });
    let first = key.map_or(0, |key| key.seq) + 1;
    let entries: Vec<_> = (first..)
        .zip(expired.into_iter().chain([Event::KeyPut(Box::new(put))]))
        .map(|(seq, event)| Entry::new(seq, 1, now, event))
        .collect();

    let called_back = over.and_then(|held| Key::expired(held, held.expires_at, handled));
    let base = key.filter(|key| key.has_told_all() && called_back.is_none()).map(|key| key.base);
    let last = entries.last().map_or(first, |entry| entry.seq);
    let was_spent = key.is_some_and(Key::is_spent);
    let mut effects = vec![expiry(name, expires_at, revision)];
    effects.extend(was_spent.then_some(Effect::Disarm(TimerName::Forget)));
    effects.extend(called_back.map(|callback| Effect::CallBack { revision: callback.revision, attempt: callback.attempt }));
    effects.extend(base.filter(|base| last - base >= KEPT).map(Effect::Shorten));
    effects.push(Effect::Answer(Answer::Put { revision, expires_at }));
    Ok(Decision { entries, effects })
}
