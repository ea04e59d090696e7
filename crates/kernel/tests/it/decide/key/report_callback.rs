//! An attempt to tell of an end is over.

use super::*;
use steadfast_kernel::{Code, Failure, Jitter};

/// Three attempts, a second apart.
fn policy() -> Policy {
    Policy::constant(SECOND).max_attempts(3)
}

fn timed_out(revision: Revision, attempt: u32, policy: &Policy) -> Command {
    reported(revision, attempt, Err(timeout()), policy)
}

#[test]
fn who_was_told_is_on_record_and_the_key_may_be_forgotten() {
    let effects = [Effect::Retire(3), answer(Answer::Reported)];
    check(&owing(), 1100, told(5, 1), Ok(decision([entry(3, 1100, callback_settled(5, 1))], effects)));
}

#[test]
fn the_run_that_was_started_is_on_record() {
    let run = Some(other_run("expired-5"));
    let settled = Event::CallbackSettled { revision: 5, attempt: 1, run: run.clone() };
    let effects = [Effect::Retire(3), answer(Answer::Reported)];
    check(&owing(), 1100, reported(5, 1, Ok(run), &policy()), Ok(decision([entry(3, 1100, settled)], effects)));
}

#[test]
fn the_timer_of_an_attempt_stays_until_it_is_over() {
    let timer = TimerName::Callback(5);
    let effects = [disarm(timer.clone()), Effect::Retire(4), answer(Answer::Reported)];
    check(&failed_once(), 2100, told(5, 2), Ok(decision([entry(4, 2100, callback_settled(5, 2))], effects)));
    let again = entry(4, 2100, callback_failed(5, 2, 3, 3100));
    let effects = [arm_key(timer.clone(), at(3100), 4), answer(Answer::Reported)];
    check(&failed_once(), 2100, timed_out(5, 2, &policy()), Ok(decision([again.clone()], effects)));
    let letter = entry(5, 3100, expiry_letter(5, 3, gave_up(3)));
    let twice = [failed_once(), vec![again]].concat();
    check(&twice, 3100, timed_out(5, 3, &policy()), Ok(decision([letter], [disarm(timer), answer(Answer::Reported)])));
}

#[test]
fn a_failure_is_tried_again_by_policy() {
    let effects = [arm_key(TimerName::Callback(5), at(2000), 3), answer(Answer::Reported)];
    check(&owing(), 1000, timed_out(5, 1, &policy()), Ok(decision([entry(3, 1000, callback_failed(5, 1, 3, 2000))], effects)));
    let callback = state(&failed_once()).callbacks[&5].clone();
    let failed = callback.failed.expect("it failed");
    assert_eq!((callback.attempt, failed.failure, failed.due_at, failed.seq, failed.of), (2, timeout(), at(2000), 3, 3));
}

#[test]
fn another_attempt_is_never_made_before_its_delay() {
    let policies = [Jitter::None, Jitter::Additive].map(|jitter| Policy::exponential(SECOND).jitter(jitter));
    for (policy, revision) in policies.into_iter().flat_map(|policy| (1..40).map(move |revision| (policy.clone(), revision))) {
        let journal = history([key_put(Held { on_expire: Some(url()), ..held(revision) }), key_expired(revision, 1000)]);
        let decided = decide(&session(), folded_key(&journal).as_ref(), timed_out(revision, 1, &policy), at(1000)).expect("it is taken");
        let [Entry { event: Event::CallbackFailed { delay, due_at, .. }, .. }] = &decided.entries[..] else { panic!("{decided:?}") };
        assert!(*delay >= SECOND && *due_at == at(1000).saturating_add(*delay), "{policy:?}: {delay:?}");
        assert!(decided.effects.contains(&arm_key(TimerName::Callback(revision), *due_at, 3)), "{decided:?}");
    }
}

#[test]
fn who_asks_for_more_time_gets_it() {
    let busy = timeout().retry_after(SECOND * 20);
    let failed = Event::CallbackFailed { revision: 5, attempt: 1, of: 3, delay: SECOND * 20, due_at: at(21_000), failure: busy.clone() };
    let effects = [arm_key(TimerName::Callback(5), at(21_000), 3), answer(Answer::Reported)];
    let policy = policy().max_delay(SECOND * 60);
    check(&owing(), 1000, reported(5, 1, Err(busy), &policy), Ok(decision([entry(3, 1000, failed)], effects)));
}

#[test]
fn what_nobody_will_try_again_is_a_letter() {
    let refused = Failure::permanent("no").code(Code::NotFound);
    for (failure, as_told) in [(refused.clone(), after(1, refused)), (poison(), after(1, poison()))] {
        let entries = [entry(3, 1000, expiry_letter(5, 1, as_told))];
        let expected = decision(entries.clone(), [answer(Answer::Reported)]);
        check(&owing(), 1000, reported(5, 1, Err(failure), &policy()), Ok(expected));
        let key = state(&[owing(), entries.to_vec()].concat());
        assert_eq!((key.callbacks.len(), key.letters.keys().collect::<Vec<_>>()), (0, vec![&3]));
    }
}

#[test]
fn the_deadline_of_the_policy_counts_from_the_end_of_the_key() {
    let policy = policy().deadline(SECOND * 2);
    let late = entry(3, 2500, expiry_letter(5, 1, out_of_time(1)));
    check(&owing(), 2500, timed_out(5, 1, &policy), Ok(decision([late], [answer(Answer::Reported)])));
}

#[test]
fn only_the_attempt_to_come_is_heard() {
    for attempt in [0, 1, 3] {
        check(&failed_once(), 2100, told(5, attempt), nothing_but(Answer::Mismatch));
        check(&failed_once(), 2100, timed_out(5, attempt, &policy()), nothing_but(Answer::Mismatch));
    }
}

#[test]
fn what_is_settled_a_letter_or_never_was_is_not_found() {
    let settled = [owing(), vec![entry(3, 1000, callback_settled(5, 1))]].concat();
    for history in [vec![], plain(), settled, with_letter()] {
        check(&history, 1100, told(5, 1), nothing_but(Answer::NotFound));
        check(&history, 1100, timed_out(5, 1, &policy()), nothing_but(Answer::NotFound));
    }
    check(&owing(), 1100, told(6, 1), nothing_but(Answer::NotFound));
}

#[test]
fn another_key_of_that_name_is_not_touched() {
    let again = [failed_once(), vec![entry(4, 1500, key_put(held_from(9, 1500)))]].concat();
    let expected = state(&again).held;
    let timer = TimerName::Callback(5);
    let settled = entry(5, 2100, callback_settled(5, 2));
    check(&again, 2100, told(5, 2), Ok(decision([settled.clone()], [disarm(timer.clone()), answer(Answer::Reported)])));
    let failed = entry(5, 2100, callback_failed(5, 2, 3, 3100));
    let effects = [arm_key(timer.clone(), at(3100), 5), answer(Answer::Reported)];
    check(&again, 2100, timed_out(5, 2, &policy()), Ok(decision([failed.clone()], effects)));
    let letter = entry(5, 2100, expiry_letter(5, 2, after(2, poison())));
    let effects = [disarm(timer), answer(Answer::Reported)];
    check(&again, 2100, reported(5, 2, Err(poison()), &policy()), Ok(decision([letter.clone()], effects)));
    for entry in [settled, failed, letter] {
        assert_eq!(state(&[again.clone(), vec![entry]].concat()).held, expected);
    }
}

#[test]
fn a_key_with_a_letter_is_not_forgotten_when_another_end_is_told() {
    let second = Held { on_expire: Some(url()), ..held_from(9, 1500) };
    let both = [with_letter(), vec![entry(4, 1500, key_put(second)), entry(5, 2500, key_expired(9, 2500))]].concat();
    check(&both, 2600, told(9, 1), Ok(decision([entry(6, 2600, callback_settled(9, 1))], [answer(Answer::Reported)])));
}

#[test]
fn two_ends_of_one_name_are_told_apart() {
    let second = Held { on_expire: Some(url()), ..held_from(9, 1500) };
    let both = [failed_once(), vec![entry(4, 1500, key_put(second)), entry(5, 2500, key_expired(9, 2500))]].concat();
    let settled = entry(6, 2600, callback_settled(9, 1));
    check(&both, 2600, told(9, 1), Ok(decision([settled], [answer(Answer::Reported)])));
    let settled = entry(6, 2600, callback_settled(5, 2));
    check(&both, 2600, told(5, 2), Ok(decision([settled], [disarm(TimerName::Callback(5)), answer(Answer::Reported)])));
    assert_eq!(state(&both).callbacks.into_keys().collect::<Vec<_>>(), [5, 9]);
}
