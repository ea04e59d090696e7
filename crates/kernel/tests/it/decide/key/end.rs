//! The directory of a key has ended.

use super::*;

/// It ended at that time.
fn end(ended_ms: i64, deleted: bool) -> Command {
    Command::EndKey(EndKey { directory: name("sessions"), ended_at: at(ended_ms), deleted, handled: false })
}

fn with_it(revision: Revision, ended_ms: i64) -> Event {
    Event::KeyExpired { revision, ended_at: at(ended_ms), handled: false, with: Some(name("sessions")) }
}

#[test]
fn it_expires_with_its_directory_before_its_own_time() {
    let effects = [disarm(TimerName::Expiry), call_back(5, 1), answer(Answer::Expired)];
    let entries = [entry(2, 650, with_it(5, 600))];
    check(&owned(), 650, end(600, false), Ok(decision(entries.clone(), effects)));
    let key = state(&[owned(), entries.to_vec()].concat());
    assert_eq!((key.held, key.callbacks[&5].ended_at), (None, at(600)));
}

#[test]
fn it_is_removed_with_its_directory_and_nobody_is_called_back() {
    let removed = Event::KeyDeleted { revision: 5, with: Some(name("sessions")) };
    let effects = [disarm(TimerName::Expiry), Effect::Retire(2), answer(Answer::Deleted { revision: 5 })];
    check(&owned(), 650, end(600, true), Ok(decision([entry(2, 650, removed)], effects)));
}

#[test]
fn the_owner_is_not_asked() {
    let effects = [disarm(TimerName::Expiry), call_back(5, 1), answer(Answer::Expired)];
    check(&owned(), 0, end(0, false), Ok(decision([entry(2, 0, with_it(5, 0))], effects)));
}

#[test]
fn one_whose_own_time_was_over_by_then_has_expired_by_itself() {
    for deleted in [false, true] {
        let effects = [disarm(TimerName::Expiry), call_back(5, 1), answer(Answer::Expired)];
        for ended in [1000, 3000] {
            check(&owned(), 3000, end(ended, deleted), Ok(decision([entry(2, 3000, key_expired(5, 1000))], effects.clone())));
        }
    }
}

#[test]
fn one_that_was_put_after_that_is_not_concerned() {
    let later = history([key_put(held_from(9, 601))]);
    for deleted in [false, true] {
        check(&later, 650, end(600, deleted), nothing_but(Answer::Mismatch));
    }
    let renewed = [plain(), vec![entry(2, 700, key_renewed(6, 1000, 1700))]].concat();
    let effects = [disarm(TimerName::Expiry), Effect::Retire(3), answer(Answer::Expired)];
    check(&renewed, 750, end(600, false), Ok(decision([entry(3, 750, with_it(6, 600))], effects)));
}

#[test]
fn one_that_is_gone_is_not_found() {
    for history in [vec![], spent(), owing()] {
        check(&history, 3000, end(2000, false), nothing_but(Answer::NotFound));
        check(&history, 3000, end(2000, true), nothing_but(Answer::NotFound));
    }
}

#[test]
fn the_handler_of_the_process_is_told() {
    let command = Command::EndKey(EndKey { directory: name("sessions"), ended_at: at(600), deleted: false, handled: true });
    let expired = Event::KeyExpired { revision: 5, ended_at: at(600), handled: true, with: Some(name("sessions")) };
    let effects = [disarm(TimerName::Expiry), call_back(5, 1), answer(Answer::Expired)];
    check(&plain(), 650, command, Ok(decision([entry(2, 650, expired)], effects)));
}

#[test]
fn a_directory_in_a_directory_takes_those_below_it_along() {
    let inner = history([key_put(Held { directory: true, ..held(5) })]);
    for (deleted, below) in [(false, Below::Expire), (true, Below::Delete)] {
        let decided = decide(&session(), folded_key(&inner).as_ref(), end(600, deleted), at(650)).expect("it ends");
        assert!(decided.effects.contains(&call_back(5, 1)), "{decided:?}");
        assert_eq!(state(&[inner.clone(), decided.entries].concat()).callbacks[&5].below, Some(below));
    }
}
