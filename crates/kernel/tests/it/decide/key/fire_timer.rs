//! A timer of a key is due, other than that of its end.

use super::*;

fn callback(revision: Revision) -> TimerName {
    TimerName::Callback(revision)
}

fn superseded() -> Result<Decision, Refusal> {
    nothing_but(Answer::Superseded)
}

#[test]
fn the_next_attempt_of_a_callback_begins() {
    for now in [2000, 9000] {
        check(&failed_once(), now, fire(callback(5), 3), Ok(decision([], [call_back(5, 2)])));
    }
}

#[test]
fn too_early_is_armed_again() {
    check(&failed_once(), 1999, fire(callback(5), 3), Ok(decision([], [arm_key(callback(5), at(2000), 3)])));
}

#[test]
fn what_was_replaced_settled_or_never_armed_does_nothing() {
    for revision in [0, 2, 4] {
        check(&failed_once(), 2000, fire(callback(5), revision), superseded());
    }
    check(&failed_once(), 2000, fire(callback(6), 3), superseded());
    check(&owing(), 2000, fire(callback(5), 2), superseded());
    let settled = [failed_once(), vec![entry(4, 2000, callback_settled(5, 2))]].concat();
    check(&settled, 2000, fire(callback(5), 3), superseded());
    let twice = [failed_once(), vec![entry(4, 2000, callback_failed(5, 2, 3, 3000))]].concat();
    check(&twice, 3000, fire(callback(5), 3), superseded());
    check(&twice, 3000, fire(callback(5), 4), Ok(decision([], [call_back(5, 3)])));
}

#[test]
fn a_key_of_which_nothing_has_to_be_known_is_forgotten() {
    check(&spent(), 500, fire(TimerName::Forget, 2), Ok(decision([], [Effect::Forget])));
}

#[test]
fn a_key_that_is_there_again_or_owes_something_is_not_forgotten() {
    let again = [spent(), vec![entry(3, 600, key_put(held_from(9, 600)))]].concat();
    check(&again, 9000, fire(TimerName::Forget, 2), superseded());
    let gone_again = [again, vec![entry(4, 700, key_deleted(9))]].concat();
    check(&gone_again, 9000, fire(TimerName::Forget, 2), superseded());
    check(&gone_again, 9000, fire(TimerName::Forget, 4), Ok(decision([], [Effect::Forget])));
    for history in [plain(), owing(), failed_once(), with_letter()] {
        let seq = history.len() as u64;
        check(&history, 9000, fire(TimerName::Forget, seq), superseded());
    }
}

#[test]
fn timers_of_runs_and_of_keys_that_are_forgotten_do_nothing() {
    for name in [TimerName::Deadline, retry("charge#1"), sleep("sleep#1"), TimerName::Expiry] {
        check(&plain(), 9000, fire(name, 1), superseded());
    }
    for name in [TimerName::Forget, callback(5)] {
        check(&[], 9000, fire(name, 1), nothing_but(Answer::NotFound));
    }
}
