//! What becomes of the rows of keys, and of their ends, when an entry is written.

use std::time::Duration;
use steadfast_kernel::key::{advance, begin_with};
use steadfast_kernel::{
    Entry, Event, Failure, Held, Key, KeyName, Letter, LetterAbout, Origin, Payload, Revision, Seq, Target, Timestamp, WorkflowName,
};
use steadfast_store::{CallbackChange, CallbackFilter, CallbackRow, EndedBelow, KeyChange, KeyRow, key_changes};

const SHARD: u32 = 3;

fn name() -> KeyName {
    KeyName::new("a/b").unwrap()
}

fn time(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

/// What is put at that time with that revision, for ten seconds.
fn held(revision: Revision, put_at: i64) -> Held {
    Held {
        revision,
        value: Payload::json("1"),
        ttl: Duration::from_secs(10),
        expires_at: time(put_at + 10),
        owner: Some("me".into()),
        directory: false,
        on_expire: None,
        put_at: time(put_at),
    }
}

fn told(revision: Revision, put_at: i64) -> Held {
    Held { on_expire: Some(Target::Handler), ..held(revision, put_at) }
}

fn directory(revision: Revision, put_at: i64) -> Held {
    Held { directory: true, ..held(revision, put_at) }
}

fn put(held: &Held) -> Event {
    Event::KeyPut(Box::new(held.clone()))
}

fn expired(held: &Held) -> Event {
    Event::KeyExpired { revision: held.revision, ended_at: held.expires_at, handled: false, with: None }
}

fn deleted(held: &Held) -> Event {
    Event::KeyDeleted { revision: held.revision, with: None }
}

fn settled(revision: Revision) -> Event {
    Event::CallbackSettled { revision, attempt: 1, run: None }
}

/// A key, as its journal makes it.
#[derive(Default)]
struct Story(Option<Key>, Seq);

impl Story {
    /// What changes when these are written by one commit, at that second.
    fn write(&mut self, second: i64, events: impl IntoIterator<Item = Event>) -> (Vec<KeyChange>, Vec<CallbackChange>) {
        let before = self.0.clone();
        for event in events {
            self.1 += 1;
            let entry = Entry::new(self.1, 1, time(second), event);
            match &mut self.0 {
                Some(key) => advance(key, &entry).unwrap(),
                nothing => *nothing = Some(begin_with(&name(), &entry).unwrap()),
            }
        }
        key_changes(SHARD, before.as_ref(), self.0.as_ref().unwrap())
    }
}

fn row(held: &Held) -> KeyRow {
    KeyRow { shard: SHARD, key: name(), held: held.clone(), ended_at: None, ended_below: None }
}

fn is(row: KeyRow) -> Vec<KeyChange> {
    vec![KeyChange::Put(Box::new(row))]
}

fn is_gone() -> Vec<KeyChange> {
    vec![KeyChange::Remove(name())]
}

fn callback(held: &Held, target: &str) -> CallbackRow {
    CallbackRow {
        shard: SHARD,
        key: name(),
        revision: held.revision,
        ended_at: held.expires_at,
        target: target.into(),
        attempt: 1,
        next_at: None,
        of: None,
        failure: None,
    }
}

fn is_to_be_told(row: CallbackRow) -> Vec<CallbackChange> {
    vec![CallbackChange::Put(Box::new(row))]
}

fn is_told(revision: Revision) -> Vec<CallbackChange> {
    vec![CallbackChange::Remove(name(), revision)]
}

#[test]
fn what_is_put_or_renewed_is_the_row() {
    let mut story = Story::default();
    assert_eq!(story.write(0, [put(&held(1, 0))]), (is(row(&held(1, 0))), vec![]));
    assert_eq!(story.write(2, [put(&told(2, 2))]), (is(row(&told(2, 2))), vec![]));
    let renewed = Held { revision: 3, ttl: Duration::from_secs(1), expires_at: time(5), ..told(2, 2) };
    let event = Event::KeyRenewed { revision: 3, ttl: renewed.ttl, expires_at: renewed.expires_at, restated: None };
    assert_eq!(story.write(4, [event]), (is(row(&renewed)), vec![]));
}

#[test]
fn a_key_that_has_ended_has_no_row() {
    for end in [expired, deleted] {
        let mut story = Story::default();
        story.write(0, [put(&held(1, 0))]);
        assert_eq!(story.write(10, [end(&held(1, 0))]), (is_gone(), vec![]));
    }
}

#[test]
fn nothing_changes_without_an_entry() {
    let mut story = Story::default();
    for event in [put(&directory(1, 0)), expired(&directory(1, 0))] {
        story.write(10, [event]);
        assert_eq!(story.write(11, []), (vec![], vec![]));
    }
}

#[test]
fn an_end_that_is_to_be_told_is_a_row_until_it_is_told() {
    let mut story = Story::default();
    story.write(0, [put(&told(1, 0))]);
    let end = callback(&told(1, 0), "handler");
    assert_eq!(story.write(10, [expired(&told(1, 0))]), (is_gone(), is_to_be_told(end)));
    assert_eq!(story.write(11, [settled(1)]), (vec![], is_told(1)));
}

#[test]
fn a_failed_attempt_is_shown_with_the_next_one() {
    let mut story = Story::default();
    story.write(0, [put(&told(1, 0))]);
    story.write(10, [expired(&told(1, 0))]);
    let failure = Failure::poison("away");
    let delay = Duration::from_secs(1);
    let failed = Event::CallbackFailed { revision: 1, attempt: 1, of: 5, delay, due_at: time(12), failure: failure.clone() };
    let end = CallbackRow { attempt: 2, next_at: Some(time(12)), of: Some(5), failure: Some(failure), ..callback(&told(1, 0), "handler") };
    assert_eq!(story.write(11, [failed]), (vec![], is_to_be_told(end)));
}

#[test]
fn a_dead_letter_is_no_end_to_be_told_until_it_is_redriven() {
    let mut story = Story::default();
    story.write(0, [put(&told(1, 0))]);
    story.write(10, [expired(&told(1, 0))]);
    let about = LetterAbout::Expiry { key: name(), revision: 1 };
    let letter = Letter { about, attempt: 1, tenant: None, failure: Failure::poison("no"), payload: Payload::json("1") };
    assert_eq!(story.write(11, [Event::LetterAdded(Box::new(letter))]), (vec![], is_told(1)));
    let redriven = Event::LetterRedriven { letter: 3, origin: Origin::default() };
    assert_eq!(story.write(12, [redriven]), (vec![], is_to_be_told(callback(&told(1, 0), "handler"))));
}

#[test]
fn a_key_may_be_there_again_while_its_end_is_told() {
    let mut story = Story::default();
    story.write(0, [put(&told(1, 0))]);
    let changes = story.write(20, [expired(&told(1, 0)), put(&told(2, 20))]);
    assert_eq!(changes, (is(row(&told(2, 20))), is_to_be_told(callback(&told(1, 0), "handler"))));
    assert_eq!(story.write(30, [expired(&told(2, 20))]), (is_gone(), is_to_be_told(callback(&told(2, 20), "handler"))));
    assert_eq!(story.write(31, [settled(1)]), (vec![], is_told(1)));
    assert_eq!(story.write(31, [settled(2)]), (vec![], is_told(2)));
}

fn expired_at(seconds: i64) -> EndedBelow {
    EndedBelow { at: time(seconds), deleted: false }
}

#[test]
fn a_directory_is_there_until_the_keys_below_it_have_ended() {
    let ended = |ended: EndedBelow| KeyRow { ended_at: Some(ended.at), ended_below: Some(ended), ..row(&directory(1, 0)) };
    let mut story = Story::default();
    story.write(0, [put(&directory(1, 0))]);
    let changes = story.write(12, [expired(&directory(1, 0))]);
    assert_eq!(changes, (is(ended(expired_at(10))), is_to_be_told(callback(&directory(1, 0), "keys below"))));
    assert_eq!(story.write(13, [settled(1)]), (is_gone(), is_told(1)));

    let mut story = Story::default();
    story.write(0, [put(&directory(1, 0))]);
    let end = CallbackRow { ended_at: time(7), ..callback(&directory(1, 0), "keys below") };
    assert_eq!(story.write(7, [deleted(&directory(1, 0))]), (is(ended(EndedBelow { deleted: true, ..expired_at(7) })), is_to_be_told(end)));
    assert_eq!(story.write(8, [settled(1)]), (is_gone(), is_told(1)));
}

/// Keys below that ended with the first one must not be seen again because there is a second one.
#[test]
fn a_directory_that_is_there_again_remembers_the_end_before_it() {
    let again = |ended_below| KeyRow { ended_below, ..row(&directory(2, 20)) };
    let mut story = Story::default();
    story.write(0, [put(&directory(1, 0))]);
    let (keys, _) = story.write(20, [expired(&directory(1, 0)), put(&directory(2, 20))]);
    assert_eq!(keys, is(again(Some(expired_at(10)))));
    assert_eq!(story.write(21, [settled(1)]).0, is(again(None)));
}

#[test]
fn of_two_ends_of_a_directory_the_later_one_counts() {
    let ended = KeyRow { ended_at: Some(time(30)), ended_below: Some(expired_at(30)), ..row(&directory(2, 20)) };
    for (first, second) in [(1, 2), (2, 1)] {
        let mut story = Story::default();
        story.write(0, [put(&directory(1, 0))]);
        story.write(20, [expired(&directory(1, 0)), put(&directory(2, 20))]);
        assert_eq!(story.write(30, [expired(&directory(2, 20))]).0, is(ended.clone()));
        assert_eq!(story.write(31, [settled(first)]).0, [], "there may still be keys below");
        assert_eq!(story.write(31, [settled(second)]).0, is_gone());
    }
}

#[test]
fn a_plain_key_that_was_a_directory_stays_until_the_keys_below_have_ended() {
    let mut story = Story::default();
    story.write(0, [put(&directory(1, 0))]);
    story.write(20, [expired(&directory(1, 0)), put(&held(2, 20))]);
    let ended = KeyRow { ended_at: Some(time(10)), ended_below: Some(expired_at(10)), ..row(&held(2, 20)) };
    assert_eq!(story.write(25, [deleted(&held(2, 20))]).0, is(ended));
    assert_eq!(story.write(26, [settled(1)]).0, is_gone());
}

/// What is asked of an address often has a secret in it.
#[test]
fn who_is_told_is_shown_without_secrets() {
    let run = Target::StartRun { workflow: WorkflowName::new("team/log-out").unwrap(), input: Payload::json("\"secret\"") };
    let targets = [
        (Target::Url("https://example.com/hook?token=secret".into()), "https://example.com/hook"),
        (Target::Url("https://example.com/#secret?x".into()), "https://example.com/"),
        (run, "run team/log-out"),
        (Target::Handler, "handler"),
    ];
    for (target, shown) in targets {
        for (directory, shown) in [(false, shown.to_string()), (true, format!("keys below, then {shown}"))] {
            let held = Held { on_expire: Some(target.clone()), directory, ..held(1, 0) };
            let mut story = Story::default();
            story.write(0, [put(&held)]);
            assert_eq!(story.write(10, [expired(&held)]).1, is_to_be_told(callback(&held, &shown)));
        }
    }
}

#[test]
fn a_key_is_live_until_its_time_is_over_or_it_has_ended() {
    let live = row(&held(1, 0));
    assert!(live.is_live(time(0)) && live.is_live(Timestamp::from_micros(9_999_999)));
    assert!(!live.is_live(time(10)) && !live.is_live(time(11)));
    let gone = KeyRow { ended_at: Some(time(3)), ..live };
    assert!(!gone.is_live(time(1)) && !gone.is_live(time(3)));
}

/// Whoever was put by then.
#[test]
fn a_directory_ends_those_that_were_there_at_its_end() {
    let below = |put_at| row(&held(9, put_at));
    let live = row(&directory(1, 0));
    assert!(!live.ends(&below(5), time(9)), "its time is not over");
    assert!(live.ends(&below(5), time(10)), "though it is not on record");
    assert!(live.ends(&below(10), time(11)) && !live.ends(&below(11), time(12)));
    assert!(!row(&held(1, 0)).ends(&below(5), time(10)), "it is no directory");

    let ended = KeyRow { ended_at: Some(time(3)), ended_below: Some(expired_at(3)), ..live };
    assert!(ended.ends(&below(3), time(3)) && ended.ends(&below(0), time(99)));
    assert!(!ended.ends(&below(4), time(99)), "it came after it");

    let again = KeyRow { ended_below: Some(expired_at(10)), ..row(&directory(2, 20)) };
    assert!(again.ends(&below(10), time(21)) && !again.ends(&below(15), time(21)));
    assert!(again.ends(&below(30), time(30)) && !again.ends(&below(31), time(31)));
    let plain = KeyRow { ended_below: Some(expired_at(10)), ..row(&held(2, 20)) };
    assert!(plain.ends(&below(10), time(21)) && !plain.ends(&below(15), time(99)));
}

#[test]
fn a_filter_lets_through_what_all_of_it_applies_to() {
    let end = callback(&told(1, 0), "handler");
    let filter = |shard, prefix: &str, first| CallbackFilter { shard, prefix: prefix.into(), first };
    for through in [filter(None, "", false), filter(Some(SHARD), "a/b", true), filter(None, "a/", true)] {
        assert!(through.lets_through(&end), "{through:?}");
    }
    for out in [filter(Some(0), "", false), filter(None, "a/b/", false), filter(None, "b", true)] {
        assert!(!out.lets_through(&end), "{out:?}");
    }
    let tried = CallbackRow { next_at: Some(time(1)), ..end };
    assert!(!filter(None, "", true).lets_through(&tried) && filter(None, "", false).lets_through(&tried));
}
