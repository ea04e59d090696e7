//! Short constructors for keys, and the fold of a key's journal.

use super::*;
use steadfast_kernel::key::{self, Key};
use steadfast_kernel::{
    DropLetter, ExpireKey, Held, KeyName, Letter, LetterAbout, PutKey, RedriveLetter, ReportCallback, Revision, Target,
};

pub(crate) fn name(name: &str) -> KeyName {
    KeyName::new(name).expect("the name of a key")
}

/// The key of the tests.
pub(crate) fn session() -> KeyName {
    name("sessions/ada")
}

pub(crate) fn url() -> Target {
    Target::Url("http://127.0.0.1:9/gone".into())
}

pub(crate) fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Put at the beginning of time, for a second; it belongs to nobody, and nobody is told.
pub(crate) fn held(revision: Revision) -> Held {
    Held {
        revision,
        value: Payload::json("17"),
        ttl: SECOND,
        expires_at: at(1000),
        owner: None,
        directory: false,
        on_expire: None,
        put_at: at(0),
    }
}

/// As [`held`], put at another time.
pub(crate) fn held_from(revision: Revision, put_ms: i64) -> Held {
    Held { expires_at: at(put_ms + 1000), put_at: at(put_ms), ..held(revision) }
}

// Events.

pub(crate) fn key_put(held: Held) -> Event {
    Event::KeyPut(Box::new(held))
}

pub(crate) fn key_renewed(revision: Revision, ttl_ms: u64, expires_ms: i64) -> Event {
    Event::KeyRenewed { revision, ttl: millis(ttl_ms), expires_at: at(expires_ms), restated: None }
}

pub(crate) fn key_deleted(revision: Revision) -> Event {
    Event::KeyDeleted { revision, with: None }
}

/// Nothing is known of a handler.
pub(crate) fn key_expired(revision: Revision, ended_ms: i64) -> Event {
    Event::KeyExpired { revision, ended_at: at(ended_ms), handled: false, with: None }
}

/// The first of so many attempts failed and the second is due after a delay of one second.
pub(crate) fn callback_failed(revision: Revision, attempt: Attempt, of: Attempt, due_ms: i64) -> Event {
    Event::CallbackFailed { revision, attempt, of, delay: SECOND, due_at: at(due_ms), failure: timeout() }
}

pub(crate) fn callback_settled(revision: Revision, attempt: Attempt) -> Event {
    Event::CallbackSettled { revision, attempt, run: None }
}

pub(crate) fn expiry_letter(revision: Revision, attempt: Attempt, failure: Failure) -> Event {
    let about = LetterAbout::Expiry { key: session(), revision };
    Event::LetterAdded(Box::new(Letter { about, attempt, tenant: None, failure, payload: Payload::json("17") }))
}

pub(crate) fn letter_redriven(letter: Seq, origin: Origin) -> Event {
    Event::LetterRedriven { letter, origin }
}

pub(crate) fn letter_dropped(letter: Seq, origin: Origin) -> Event {
    Event::LetterDropped { letter, origin }
}

// Commands.

/// What makes a key as [`held`] is.
pub(crate) fn put_key(revision: Revision) -> PutKey {
    PutKey {
        revision,
        value: Payload::json("17"),
        ttl: SECOND,
        owner: None,
        directory: false,
        on_expire: None,
        if_revision: None,
        handled: false,
    }
}

pub(crate) fn expire_key(revision: Revision) -> Command {
    Command::ExpireKey(ExpireKey { revision, handled: false })
}

/// An attempt was made, and somebody was told.
pub(crate) fn told(revision: Revision, attempt: Attempt) -> Command {
    reported(revision, attempt, Ok(None), &Policy::once())
}

pub(crate) fn reported(revision: Revision, attempt: Attempt, outcome: Result<Option<RunId>, Failure>, policy: &Policy) -> Command {
    Command::ReportCallback(ReportCallback { revision, attempt, outcome, policy: policy.clone() })
}

pub(crate) fn redrive(letter: Seq, origin: Origin) -> Command {
    Command::RedriveLetter(RedriveLetter { letter, origin })
}

pub(crate) fn drop_letter(letter: Seq, origin: Origin) -> Command {
    Command::DropLetter(DropLetter { letter, origin })
}

// Effects.

pub(crate) fn arm_key(name: TimerName, due: Timestamp, revision: Seq) -> Effect {
    Effect::Arm(Timer { entity: EntityId::Key(session()), name, due, revision })
}

/// The timer of the key's end.
pub(crate) fn arm_expiry(due_ms: i64, revision: Revision) -> Effect {
    arm_key(TimerName::Expiry, at(due_ms), revision)
}

pub(crate) fn call_back(revision: Revision, attempt: Attempt) -> Effect {
    Effect::CallBack { revision, attempt }
}

// Folding.

/// The state after one more entry.
pub(crate) fn next_key(state: Option<Key>, entry: &Entry) -> Result<Key, IllegalTransition> {
    match state {
        None => key::begin_with(&session(), entry),
        Some(mut key) => key::advance(&mut key, entry).map(|()| key),
    }
}

/// The state after those entries, from scratch; nothing where there are none.
pub(crate) fn fold_key(entries: &[Entry]) -> Result<Option<Key>, IllegalTransition> {
    entries.iter().try_fold(None, |state, entry| next_key(state, entry).map(Some))
}

/// The state after a journal that is known to be good, from what a store keeps of it.
#[track_caller]
pub(crate) fn folded_key(entries: &[Entry]) -> Option<Key> {
    fold_key(&stored(entries)).unwrap_or_else(|illegal| panic!("{illegal}"))
}
