//! A key gets a value, a time and an owner.

use super::*;

fn put(put: PutKey) -> Command {
    Command::PutKey(put)
}

fn put_until(revision: Revision, expires_ms: i64) -> Effect {
    answer(Answer::Put { revision, expires_at: at(expires_ms) })
}

#[test]
fn a_key_is_made_and_its_end_is_armed() {
    let effects = [arm_expiry(1000, 5), put_until(5, 1000)];
    check(&[], 0, put(put_key(5)), Ok(decision(plain(), effects)));
}

#[test]
fn everything_that_it_is_given_is_kept() {
    let target = Target::StartRun { workflow: workflow("log-out"), input: Payload::json("{}") };
    let command = PutKey { owner: gate(), directory: true, on_expire: Some(target.clone()), handled: true, ..put_key(5) };
    let put_at = held_from(5, 70);
    let entries = [entry(1, 70, key_put(Held { owner: gate(), directory: true, on_expire: Some(target), ..put_at }))];
    check(&[], 70, put(command), Ok(decision(entries, [arm_expiry(1070, 5), put_until(5, 1070)])));
}

#[test]
fn what_the_key_says_goes_before_the_handler_of_the_process() {
    for (says, is_told) in [(None, Target::Handler), (Some(url()), url())] {
        let entries = [entry(1, 0, key_put(Held { on_expire: Some(is_told), ..held(5) }))];
        let command = PutKey { on_expire: says, handled: true, ..put_key(5) };
        check(&[], 0, put(command), Ok(decision(entries, [arm_expiry(1000, 5), put_until(5, 1000)])));
    }
}

#[test]
fn an_update_replaces_all_of_it_and_is_armed_anew() {
    for (ttl, expires) in [(100, 600), (9000, 9500)] {
        let after = Held { ttl: millis(ttl), expires_at: at(expires), value: Payload::json("18"), ..held_from(6, 500) };
        let command = PutKey { ttl: millis(ttl), value: Payload::json("18"), ..put_key(6) };
        let decided = decision([entry(2, 500, key_put(after.clone()))], [arm_expiry(expires, 6), put_until(6, expires)]);
        check(&plain(), 500, put(command.clone()), Ok(decided));
        let owned_after = Held { owner: gate(), ..after };
        let decided = decision([entry(2, 500, key_put(owned_after))], [arm_expiry(expires, 6), put_until(6, expires)]);
        check(&owned(), 500, put(PutKey { owner: gate(), ..command }), Ok(decided));
    }
}

#[test]
fn a_key_with_an_owner_is_put_by_that_owner_alone() {
    for owner in [None, Some("other".to_string()), Some(String::new())] {
        check(&owned(), 999, put(PutKey { owner, ..put_key(6) }), is_owned());
    }
    let taken_over = decision([entry(2, 1, key_put(Held { owner: gate(), ..held_from(6, 1) }))], [arm_expiry(1001, 6), put_until(6, 1001)]);
    check(&plain(), 1, put(PutKey { owner: gate(), ..put_key(6) }), Ok(taken_over));
}

#[test]
fn once_its_time_is_over_it_is_everybodys_and_its_callback_is_kept() {
    let entries = [entry(2, 1000, key_expired(5, 1000)), entry(3, 1000, key_put(held_from(9, 1000)))];
    let effects = [arm_expiry(2000, 9), call_back(5, 1), put_until(9, 2000)];
    check(&owned(), 1000, put(put_key(9)), Ok(decision(entries.clone(), effects)));
    let key = state(&[owned(), entries.to_vec()].concat());
    assert_eq!(key.callbacks.keys().collect::<Vec<_>>(), [&5]);
    let callback = &key.callbacks[&5];
    assert_eq!((callback.ended_at, callback.target.clone(), callback.owner.clone()), (at(1000), Some(url()), gate()));
    assert_eq!(key.held.map(|held| held.revision), Some(9));
}

#[test]
fn a_handler_is_told_of_what_ended_unseen() {
    let expired = Event::KeyExpired { revision: 5, ended_at: at(1000), handled: true, with: None };
    let again = Held { on_expire: Some(Target::Handler), ..held_from(9, 1500) };
    let entries = [entry(2, 1500, expired), entry(3, 1500, key_put(again))];
    let effects = [arm_expiry(2500, 9), call_back(5, 1), put_until(9, 2500)];
    check(&plain(), 1500, put(PutKey { handled: true, ..put_key(9) }), Ok(decision(entries, effects)));
}

#[test]
fn where_nobody_is_told_nothing_is_called() {
    let entries = [entry(2, 1500, key_expired(5, 1000)), entry(3, 1500, key_put(held_from(9, 1500)))];
    check(&plain(), 1500, put(put_key(9)), Ok(decision(entries, [arm_expiry(2500, 9), put_until(9, 2500)])));
}

#[test]
fn the_callback_of_an_earlier_one_goes_on() {
    for history in [owing(), failed_once(), with_letter()] {
        let seq = history.len() as u64 + 1;
        let before = state(&history);
        let entries = [entry(seq, 1500, key_put(held_from(9, 1500)))];
        check(&history, 1500, put(put_key(9)), Ok(decision(entries.clone(), [arm_expiry(2500, 9), put_until(9, 2500)])));
        let after = state(&[history, entries.to_vec()].concat());
        assert_eq!((after.callbacks, after.letters), (before.callbacks, before.letters));
    }
}

#[test]
fn a_key_that_is_to_be_forgotten_is_not() {
    let entries = [entry(3, 700, key_put(held_from(9, 700)))];
    check(&spent(), 700, put(put_key(9)), Ok(decision(entries, [arm_expiry(1700, 9), disarm(TimerName::Forget), put_until(9, 1700)])));
}

#[test]
fn only_the_revision_that_is_expected_is_replaced() {
    let put_if = |if_revision| put(PutKey { if_revision: Some(if_revision), ..put_key(9) });
    let replaced = decision([entry(2, 10, key_put(held_from(9, 10)))], [arm_expiry(1010, 9), put_until(9, 1010)]);
    check(&plain(), 10, put_if(5), Ok(replaced));
    for other in [0, 4, 6, 9] {
        check(&plain(), 10, put_if(other), changed(Some(5)));
    }
    for history in [vec![], spent()] {
        check(&history, 600, put_if(5), changed(None));
    }
    check(&plain(), 1000, put_if(5), changed(None));
}

#[test]
fn zero_stands_for_no_key_at_all() {
    let make = || put(PutKey { if_revision: Some(0), ..put_key(9) });
    let made = |seq| entry(seq, 1000, key_put(held_from(9, 1000)));
    check(&[], 1000, make(), Ok(decision([made(1)], [arm_expiry(2000, 9), put_until(9, 2000)])));
    let gone = [entry(2, 1000, key_expired(5, 1000)), made(3)];
    check(&plain(), 1000, make(), Ok(decision(gone, [arm_expiry(2000, 9), put_until(9, 2000)])));
    check(&plain(), 999, make(), changed(Some(5)));
}

#[test]
fn a_stranger_hears_of_the_owner_and_not_of_the_revision() {
    check(&owned(), 10, put(PutKey { if_revision: Some(5), ..put_key(9) }), is_owned());
    check(&owned(), 10, put(PutKey { if_revision: Some(4), owner: gate(), ..put_key(9) }), changed(Some(5)));
}

#[test]
fn a_huge_time_saturates_and_a_part_of_a_microsecond_is_not_early() {
    for (ttl, kept, expires_at) in [
        (Duration::MAX, Duration::from_micros(u64::MAX), Timestamp::MAX),
        (Duration::from_nanos(1_500), Duration::from_micros(2), Timestamp::from_micros(70_002)),
    ] {
        let entries = [entry(1, 70, key_put(Held { ttl: kept, expires_at, ..held_from(5, 70) }))];
        let effects = [arm_key(TimerName::Expiry, expires_at, 5), answer(Answer::Put { revision: 5, expires_at })];
        check(&[], 70, put(PutKey { ttl, ..put_key(5) }), Ok(decision(entries, effects)));
    }
}

/// So many ends that nobody was told of, each of another revision.
fn owing_many(ends: u64, value: &'static str) -> Vec<Entry> {
    let one = |number: u64| {
        let held = Held { on_expire: Some(url()), value: Payload::json(value), ..held(number) };
        [key_put(held), key_expired(number, 1000)]
    };
    (1..).zip((1..=ends).flat_map(one)).map(|(seq, event)| entry(seq, 1000, event)).collect()
}

#[test]
fn a_key_that_owes_too_much_takes_no_other_value() {
    let refused = || Err(Refusal::TooManyEnds { key: session(), max: 1000, bytes_max: 16 << 20 });
    let key = folded_key(&owing_many(1000, "1"));
    assert_eq!(decide_key(key.as_ref(), put(put_key(5000)), at(2000)), refused());
    let large: &'static str = Box::leak("x".repeat(6 << 20).into_boxed_str());
    assert_eq!(decide_key(folded_key(&owing_many(3, large)).as_ref(), put(put_key(5000)), at(2000)), refused());
    assert!(decide_key(folded_key(&owing_many(2, large)).as_ref(), put(put_key(5000)), at(2000)).is_ok());
    assert!(decide_key(folded_key(&owing_many(999, "1")).as_ref(), put(put_key(5000)), at(2000)).is_ok());
}

fn decide_key(key: Option<&Key>, command: Command, now: Timestamp) -> Result<Decision, Refusal> {
    steadfast_kernel::key::decide(&session(), key, command, now)
}
