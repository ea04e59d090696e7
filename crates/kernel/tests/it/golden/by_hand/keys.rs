//! Keys: sessions of people below a directory, a journal that was shortened, and every way in which an end is told.

use super::{Journal, journal};
use crate::support::{ada, ada_with, at, entry, other_run, poison, timeout, workflow};
use std::time::Duration;
use steadfast_kernel::{Entry, Event, Held, KeyName, Letter, LetterAbout, Origin, Payload, Target, Timestamp};

const MINUTE: Duration = Duration::from_secs(60);

pub(super) fn journals() -> Vec<Journal> {
    vec![
        journal("key:sessions", directory()),
        journal("key:sessions/ada", told_at_an_address()),
        journal("key:sessions/bob", told_by_a_run()),
        journal("key:sessions/cleo", removed_with_its_directory()),
        journal("key:cache:front", shortened()),
        journal("key:upload.7", by_a_handler()),
        journal("key:upload.8", dropped()),
    ]
}

fn name(name: &str) -> KeyName {
    KeyName::new(name).unwrap()
}

/// For a minute from that time on, without anything else.
fn held(revision: u64, put_ms: i64, value: &'static str) -> Held {
    Held {
        revision,
        value: Payload::json(value),
        ttl: MINUTE,
        expires_at: at(put_ms + 60_000),
        owner: None,
        directory: false,
        on_expire: None,
        put_at: at(put_ms),
    }
}

fn put(held: Held) -> Event {
    Event::KeyPut(Box::new(held))
}

fn expired(revision: u64, ended_ms: i64, handled: bool) -> Event {
    Event::KeyExpired { revision, ended_at: at(ended_ms), handled, with: None }
}

fn failed(revision: u64, attempt: u32, due_ms: i64) -> Event {
    let delay = Duration::from_micros(1_000_001);
    Event::CallbackFailed { revision, attempt, of: 5, delay, due_at: at(due_ms), failure: timeout() }
}

fn settled(revision: u64, attempt: u32) -> Event {
    Event::CallbackSettled { revision, attempt, run: None }
}

fn added(key: &str, revision: u64, attempt: u32, value: &'static str) -> Event {
    let about = LetterAbout::Expiry { key: name(key), revision };
    Event::LetterAdded(Box::new(Letter { about, attempt, tenant: None, failure: poison(), payload: Payload::json(value) }))
}

/// It expires, is put again while those below it are still ending, and removed.
fn directory() -> Vec<Entry> {
    let directory = |revision, put_ms| Held { directory: true, ..held(revision, put_ms, "\"all of them\"") };
    vec![
        entry(1, 0, put(directory(11, 0))),
        entry(2, 60_001, expired(11, 60_000, false)),
        entry(3, 60_005, put(directory(19, 60_005))),
        entry(4, 60_009, settled(11, 1)),
        entry(5, 61_000, Event::KeyDeleted { revision: 19, with: None }),
    ]
}

/// Its address fails, it becomes a letter, is redriven and settled; another one of that name lives on.
fn told_at_an_address() -> Vec<Entry> {
    let on_expire = Some(Target::Url("https://example.org/logged-out?who=ada".into()));
    let session =
        |revision, put_ms, value| Held { owner: Some("gate-1".into()), on_expire: on_expire.clone(), ..held(revision, put_ms, value) };
    vec![
        entry(1, 0, put(session(12, 0, "{\"who\":\"ada\"}"))),
        entry(2, 30_000, Event::KeyRenewed { revision: 15, ttl: MINUTE / 2, expires_at: at(60_000), restated: None }),
        entry(3, 60_001, expired(15, 60_000, false)),
        entry(4, 60_002, failed(15, 1, 61_003)),
        entry(5, 61_010, failed(15, 2, 62_011)),
        entry(6, 62_020, added("sessions/ada", 15, 3, "{\"who\":\"ada\"}")),
        entry(7, 70_000, put(session(31, 70_000, "{\"who\":\"ada\",\"again\":true}"))),
        entry(8, 71_000, Event::LetterRedriven { letter: 6, origin: ada_with("c-1") }),
        entry(9, 71_001, failed(15, 1, 72_002)),
        entry(10, 72_003, settled(15, 2)),
    ]
}

/// It expires with its directory, and a run is started for it.
fn told_by_a_run() -> Vec<Entry> {
    let on_expire = Some(Target::StartRun { workflow: workflow("log-out"), input: Payload::json("{\"who\":\"bob\"}") });
    let with = Some(name("sessions"));
    vec![
        entry(1, 10, put(Held { on_expire, ..held(13, 10, "null") })),
        entry(2, 60_002, Event::KeyExpired { revision: 13, ended_at: at(60_000), handled: false, with }),
        entry(3, 60_003, Event::CallbackSettled { revision: 13, attempt: 1, run: Some(other_run("expired-bob-13")) }),
    ]
}

fn removed_with_its_directory() -> Vec<Entry> {
    let owner = Some("gate-2".into());
    vec![
        entry(1, 60_500, put(Held { owner, ..held(20, 60_500, "3") })),
        entry(2, 61_001, Event::KeyDeleted { revision: 20, with: Some(name("sessions")) }),
    ]
}

/// What came before is gone, and it lives for ever.
fn shortened() -> Vec<Entry> {
    let (ttl, expires_at) = (Duration::from_micros(u64::MAX), Timestamp::MAX);
    let (owner, on_expire) = (Some("front".into()), Some(Target::Handler));
    let known = Held { owner, on_expire, directory: true, ttl: MINUTE, expires_at: at(90_000), ..held(640, 0, "[1,2]") };
    vec![
        entry(65, 30_000, Event::KeyRenewed { revision: 640, ttl: MINUTE, expires_at: at(90_000), restated: Some(Box::new(known)) }),
        entry(66, 31_000, Event::KeyRenewed { revision: 641, ttl, expires_at, restated: None }),
    ]
}

/// The process has a handler though the key does not say so; another attempt is to come.
fn by_a_handler() -> Vec<Entry> {
    vec![entry(1, 0, put(held(14, 0, "7"))), entry(2, 60_001, expired(14, 60_000, true)), entry(3, 60_002, failed(14, 1, 61_003))]
}

/// One letter is dropped, by nobody in particular, and the other one is still there.
fn dropped() -> Vec<Entry> {
    vec![
        entry(1, 0, put(Held { on_expire: Some(Target::Handler), ..held(16, 0, "8") })),
        entry(2, 60_001, expired(16, 60_000, false)),
        entry(3, 60_001, put(Held { on_expire: Some(Target::Handler), ..held(21, 60_001, "9") })),
        entry(4, 60_002, added("upload.8", 16, 1, "8")),
        entry(5, 120_002, expired(21, 120_001, false)),
        entry(6, 120_003, added("upload.8", 21, 1, "9")),
        entry(7, 120_004, Event::LetterDropped { letter: 4, origin: Origin { command: Some("c-2".into()), ..ada() } }),
    ]
}
