//! `CancelRun`: on record once; the host puts the end in its place.

use super::*;

#[test]
fn a_request_is_recorded_and_the_code_is_told() {
    for history in [open(), in_backoff(), asleep(), awaiting(), with_every_timer()] {
        let next = history.len() as u64 + 1;
        let effects = [deliver_stop(None), answer(Answer::CancelRequested)];
        check(&history, 70, cancel(), Ok(decision([entry(next, 70, cancel_requested())], effects)));
    }
}

#[test]
fn nobody_has_to_say_who_and_why() {
    let silent = Command::CancelRun(CancelRun { by: None, why: None, blocked: false });
    let event = Event::RunCancelRequested { by: None, why: None };
    let effects = [deliver_stop(None), answer(Answer::CancelRequested)];
    check(&open(), 70, silent, Ok(decision([entry(2, 70, event)], effects)));
}

#[test]
fn asking_twice_is_one_event() {
    check(&called_off(), 70, cancel(), Ok(decision([], [answer(Answer::CancelRequested)])));
    let other = Command::CancelRun(CancelRun { by: Some("bob".into()), why: None, blocked: false });
    check(&called_off(), 70, other, Ok(decision([], [answer(Answer::CancelRequested)])));
    let undone = [called_off(), vec![entry(3, 0, run_compensating(None))]].concat();
    check(&undone, 70, cancel(), Ok(decision([], [answer(Answer::CancelRequested)])));
}

#[test]
fn a_run_that_is_undone_for_another_reason_can_be_called_off() {
    let effects = [deliver_stop(None), answer(Answer::CancelRequested)];
    check(&compensating(), 70, cancel(), Ok(decision([entry(4, 70, cancel_requested())], effects)));
}

#[test]
fn an_ended_run_cannot_be_called_off() {
    check(&completed(), 70, cancel(), ended());
    check(&history([run_started(), run_failed(timeout())]), 70, cancel(), ended());
    check(&[called_off(), vec![entry(3, 0, Event::RunCancelled)]].concat(), 70, cancel(), ended());
}

#[test]
fn a_run_that_does_not_exist_cannot_be_called_off() {
    check(&[], 70, cancel(), Err(Refusal::RunNotFound { run: run_id() }));
}

#[test]
fn a_run_that_no_host_can_go_on_with_ends_at_once_if_nothing_has_to_be_undone() {
    let blocked = || Command::CancelRun(CancelRun { by: Some("ada".into()), why: Some("ordered twice".into()), blocked: true });
    let ends = || [Effect::AnnounceEnd, answer(Answer::CancelRequested)];
    let cancelled = |seq| Entry { in_flight: Some(0), ..entry(seq, 70, Event::RunCancelled) };
    check(&open(), 70, blocked(), Ok(decision([entry(2, 70, cancel_requested()), cancelled(3)], ends())));
    check(&called_off(), 70, blocked(), Ok(decision([cancelled(3)], ends())));
    let effects = [deliver_stop(None), answer(Answer::CancelRequested)];
    check(&compensating(), 70, blocked(), Ok(decision([entry(4, 70, cancel_requested())], effects)));
}
