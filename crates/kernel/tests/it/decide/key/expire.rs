//! The time of a key is over.

use super::*;

#[test]
fn it_is_removed_and_its_callback_begins_in_the_same_decision() {
    let effects = [disarm(TimerName::Expiry), call_back(5, 1), answer(Answer::Expired)];
    for now in [1000, 7000] {
        let entries = [entry(2, now, key_expired(5, 1000))];
        check(&owned(), now, expire_key(5), Ok(decision(entries.clone(), effects.clone())));
        let key = state(&[owned(), entries.to_vec()].concat());
        let callback = &key.callbacks[&5];
        assert_eq!(key.held, None);
        assert_eq!((callback.ended_at, callback.attempt, callback.value.clone()), (at(1000), 1, Payload::json("17")));
        assert_eq!((callback.target.clone(), callback.owner.clone(), callback.below), (Some(url()), gate(), None));
    }
}

#[test]
fn where_nobody_is_told_it_may_be_forgotten() {
    let effects = [disarm(TimerName::Expiry), Effect::Retire(2), answer(Answer::Expired)];
    check(&plain(), 1000, expire_key(5), Ok(decision([entry(2, 1000, key_expired(5, 1000))], effects)));
}

#[test]
fn the_handler_of_the_process_is_told_if_the_key_says_nothing() {
    let command = || Command::ExpireKey(ExpireKey { revision: 5, handled: true });
    let expired = [entry(2, 1000, Event::KeyExpired { revision: 5, ended_at: at(1000), handled: true, with: None })];
    let effects = [disarm(TimerName::Expiry), call_back(5, 1), answer(Answer::Expired)];
    for (history, target) in [(plain(), Target::Handler), (owned(), url())] {
        check(&history, 1000, command(), Ok(decision(expired.clone(), effects.clone())));
        assert_eq!(state(&[history, expired.to_vec()].concat()).callbacks[&5].target, Some(target));
    }
}

#[test]
fn one_that_is_gone_is_not_found() {
    for history in [vec![], spent(), owing(), with_letter()] {
        check(&history, 1000, expire_key(5), nothing_but(Answer::NotFound));
    }
}

#[test]
fn one_that_was_changed_or_made_anew_does_not_match() {
    let renewed = [plain(), vec![entry(2, 500, key_renewed(6, 1000, 1500))]].concat();
    let updated = [plain(), vec![entry(2, 500, key_put(held_from(6, 500)))]].concat();
    let made_anew = [spent(), vec![entry(3, 600, key_put(held_from(6, 600)))]].concat();
    for history in [renewed, updated, made_anew] {
        for now in [1000, 9000] {
            check(&history, now, expire_key(5), nothing_but(Answer::Mismatch));
        }
        check(&history, 9000, expire_key(7), nothing_but(Answer::Mismatch));
    }
}

#[test]
fn too_early_is_armed_again() {
    check(&owned(), 999, expire_key(5), Ok(decision([], [arm_expiry(1000, 5)])));
}

#[test]
fn it_expires_once() {
    check(&owing(), 1000, expire_key(5), nothing_but(Answer::NotFound));
}

#[test]
fn those_below_a_directory_expire_with_it() {
    for on_expire in [None, Some(url())] {
        let directory = history([key_put(Held { directory: true, on_expire: on_expire.clone(), ..held(5) })]);
        let effects = [disarm(TimerName::Expiry), call_back(5, 1), answer(Answer::Expired)];
        let entries = [entry(2, 1000, key_expired(5, 1000))];
        check(&directory, 1000, expire_key(5), Ok(decision(entries.clone(), effects)));
        let callback = state(&[directory, entries.to_vec()].concat()).callbacks[&5].clone();
        assert_eq!((callback.below, callback.target), (Some(Below::Expire), on_expire));
    }
}
