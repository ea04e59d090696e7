//! Keys: what is asked of one, and everything that follows.

mod delete;
mod end;
mod expire;
mod fire_timer;
mod journal;
mod letters;
mod put;
mod renew;
mod report_callback;

use crate::support::keys::*;
use crate::support::*;
use std::time::Duration;
use steadfast_kernel::key::{Below, Key, decide};
use steadfast_kernel::{
    Answer, Command, Decision, DeleteKey, Effect, EndKey, EntityId, Entry, Event, ExpireKey, Held, LetterHome, LetterId, Payload, Policy,
    PutKey, Refusal, RenewKey, Revision, Target, TimerName, Timestamp,
};

/// Decides on a command after that history, and compares the whole answer. What is decided must fold, and is the same when it was stored.
#[track_caller]
fn check(history: &[Entry], now_ms: i64, command: Command, expected: Result<Decision, Refusal>) {
    let decided = decide(&session(), folded_key(history).as_ref(), command, at(now_ms));
    assert_eq!(decided, expected);
    if let Ok(Decision { entries, .. }) = decided {
        let journal = [history, &entries].concat();
        assert_eq!(fold_key(&journal), Ok(folded_key(&journal)), "the store keeps what is known");
    }
}

#[track_caller]
fn state(journal: &[Entry]) -> Key {
    folded_key(journal).expect("a key")
}

/// Revision 5, until 1000; nobody is told.
fn plain() -> Vec<Entry> {
    history([key_put(held(5))])
}

/// Revision 5 of `gate`, until 1000; an address is told.
fn owned() -> Vec<Entry> {
    history([key_put(Held { owner: Some("gate".into()), on_expire: Some(url()), ..held(5) })])
}

/// As [`owned`], and it expired at 1000, by entry 2; nobody has been told yet.
fn owing() -> Vec<Entry> {
    [owned(), vec![entry(2, 1000, key_expired(5, 1000))]].concat()
}

/// As [`owing`], and the first attempt of three failed, by entry 3; the second is due at 2000.
fn failed_once() -> Vec<Entry> {
    [owing(), vec![entry(3, 1000, callback_failed(5, 1, 3, 2000))]].concat()
}

/// As [`owing`], and nobody will be told: a letter, by entry 3.
fn with_letter() -> Vec<Entry> {
    [owing(), vec![entry(3, 1000, expiry_letter(5, 1, after(1, poison())))]].concat()
}

/// It was there, and nothing of it has to be known any more since entry 2.
fn spent() -> Vec<Entry> {
    [plain(), vec![entry(2, 500, key_deleted(5))]].concat()
}

fn not_found() -> Result<Decision, Refusal> {
    Err(Refusal::KeyNotFound { key: session() })
}

fn is_owned() -> Result<Decision, Refusal> {
    Err(Refusal::KeyOwned { key: session() })
}

fn changed(revision: Option<Revision>) -> Result<Decision, Refusal> {
    Err(Refusal::KeyChanged { key: session(), revision })
}

fn nothing_but(told: Answer) -> Result<Decision, Refusal> {
    Ok(decision([], [answer(told)]))
}

fn gate() -> Option<String> {
    Some("gate".into())
}

#[test]
fn the_way_in_is_by_the_kind_of_the_id() {
    let id = EntityId::Key(session());
    let command = Command::PutKey(put_key(5));
    let decided = steadfast_kernel::machine::decide(&id, None, command.clone(), at(0));
    assert_eq!(decided, decide(&session(), None, command, at(0)));
}

#[test]
fn what_is_for_runs_is_of_no_concern() {
    for command in [start(), cancel(), Command::InterruptRun, turn(0, [], 0)] {
        check(&plain(), 10, command.clone(), nothing_but(Answer::Heard));
        check(&[], 10, command, nothing_but(Answer::Heard));
    }
}
