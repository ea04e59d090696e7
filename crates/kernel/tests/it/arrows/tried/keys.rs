//! Everything that can be asked of a key, and every event that can be built for one.

use super::now;
use crate::support::keys::*;
use crate::support::{ada, fire, poison, timeout};
use steadfast_kernel::{Command, DeleteKey, EndKey, Event, ExpireKey, Held, Key, Policy, PutKey, RenewKey, Target, TimerName};

/// Later than every revision of the plots.
const REVISION: u64 = 1 << 40;

/// What a key is to hold, in all the ways that make a difference; its time is over, or it is not.
fn all_held(revision: u64) -> Vec<Held> {
    let plain = Held { expires_at: now(), put_at: now(), ..held(revision) };
    let ways = [plain.clone(), Held { on_expire: Some(url()), ..plain.clone() }, Held { directory: true, ..plain }];
    let later = ways.clone().map(|held| Held { expires_at: now().saturating_add(millis(1000)), ..held });
    ways.into_iter().chain(later).collect()
}

pub(super) fn of_key(key: Option<&Key>) -> Vec<Command> {
    let revision = key.map_or(REVISION, |key| key.revision + 1);
    let owner = key.and_then(|key| key.held.as_ref()).and_then(|held| held.owner.clone());
    let put = PutKey { owner: owner.clone(), ..put_key(revision) };
    let mut asked: Vec<_> = [
        put.clone(),
        PutKey { handled: true, ..put.clone() },
        PutKey { directory: true, ..put.clone() },
        PutKey { ttl: millis(0), ..put.clone() },
        PutKey { ttl: millis(0), on_expire: Some(Target::Handler), ..put },
    ]
    .map(Command::PutKey)
    .into();
    asked.push(Command::RenewKey(RenewKey { revision, ttl: millis(7), owner: owner.clone(), if_revision: None }));
    asked.push(Command::DeleteKey(DeleteKey { owner, if_revision: None }));
    asked.push(fire(TimerName::Forget, key.map_or(1, |key| key.seq)));
    for held in key.iter().filter_map(|key| key.held.as_ref()) {
        asked.extend([false, true].map(|handled| Command::ExpireKey(ExpireKey { revision: held.revision, handled })));
        let end = EndKey { directory: name("sessions"), ended_at: now(), deleted: false, handled: false };
        asked.extend([false, true].map(|deleted| Command::EndKey(EndKey { deleted, ..end.clone() })));
    }
    for callback in key.iter().flat_map(|key| key.callbacks.values()) {
        let again = Policy::constant(millis(1)).max_attempts(99);
        for outcome in [Ok(None), Err(timeout()), Err(poison())] {
            asked.push(reported(callback.revision, callback.attempt, outcome, &again));
        }
    }
    for letter in key.iter().flat_map(|key| key.letters.keys()) {
        asked.extend([redrive(*letter, ada()), drop_letter(*letter, ada())]);
    }
    asked
}

/// About everything on record and something that is not.
pub(super) fn events(key: Option<&Key>) -> Vec<Event> {
    let next = key.map_or(REVISION, |key| key.revision + 1);
    let mut events: Vec<_> = all_held(next).into_iter().map(key_put).collect();
    events.push(key_renewed(next, 1000, 999_000_000));
    let known = key.and_then(|key| key.held.clone()).unwrap_or_else(|| held(next));
    let restated = Held { revision: next, ..known.clone() };
    let (ttl, expires_at) = (known.ttl, known.expires_at);
    events.push(Event::KeyRenewed { revision: next, ttl, expires_at, restated: Some(Box::new(restated)) });
    for revision in [known.revision, 999] {
        events.push(key_deleted(revision));
        let expired = |handled| Event::KeyExpired { revision, ended_at: now(), handled, with: None };
        events.extend([false, true].map(expired));
    }
    let owed = key
        .iter()
        .flat_map(|key| key.callbacks.values())
        .map(|callback| (callback.revision, callback.attempt));
    for (revision, attempt) in owed.chain([(999, 1)]) {
        events.push(callback_failed(revision, attempt, 9, 999_000_000));
        events.push(callback_settled(revision, attempt));
        events.push(expiry_letter(revision, attempt, timeout()));
    }
    events
}
