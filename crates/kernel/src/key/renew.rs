//! Give a key another time, longer or shorter.
//! held --RenewKey--> held: KEY_RENEWED, which now and then says all there is to be known

use super::state::{expiry, whole};
use super::{Held, KEPT, Key};
use crate::machine::Decision;
use crate::{Answer, Effect, Event, KeyName, Refusal, RenewKey, Timestamp};

pub(super) fn decide(name: &KeyName, key: Option<&Key>, command: &RenewKey, now: Timestamp) -> Result<Decision, Refusal> {
    let RenewKey { revision, ttl, owner, if_revision } = command;
    let (key, held) = Key::live_of(name, key, now)?;
    held.check_owner(name, owner.as_deref())?;
    held.check_revision(name, *if_revision)?;
    let (revision, ttl, expires_at) = (*revision, whole(*ttl), now.saturating_add(*ttl));
    let restates = key.has_told_all() && key.seq + 1 - key.base >= KEPT;
    let restated = restates.then(|| Box::new(Held { revision, ttl, expires_at, ..held.clone() }));
    let mut effects = vec![expiry(name, expires_at, revision)];
    effects.extend(restates.then_some(Effect::Shorten(key.base)));
    effects.push(Effect::Answer(Answer::Renewed { revision, expires_at }));
    Ok(Decision { entries: vec![key.entry(0, now, Event::KeyRenewed { revision, ttl, expires_at, restated })], effects })
}
