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
    let silent = Command::CancelRun(CancelRun { origin: Origin::default(), blocked: false });
    let event = Event::RunCancelRequested { origin: Origin::default(), terminate: false, undo: false };
    let effects = [deliver_stop(None), answer(Answer::CancelRequested)];
    check(&open(), 70, silent, Ok(decision([entry(2, 70, event)], effects)));
}

#[test]
fn asking_twice_is_one_event() {
    check(&called_off(), 70, cancel(), Ok(decision([], [answer(Answer::CancelRequested)])));
    let other = Command::CancelRun(CancelRun { origin: Origin { by: Some("bob".into()), ..Origin::default() }, blocked: false });
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
    let blocked = || cancel_where(true);
    let ends = || [Effect::AnnounceEnd, answer(Answer::CancelRequested)];
    let cancelled = |seq| Entry { in_flight: Some(0), ..entry(seq, 70, Event::RunCancelled) };
    check(&open(), 70, blocked(), Ok(decision([entry(2, 70, cancel_requested()), cancelled(3)], ends())));
    check(&called_off(), 70, blocked(), Ok(decision([cancelled(3)], ends())));
    let effects = [deliver_stop(None), answer(Answer::CancelRequested)];
    check(&compensating(), 70, blocked(), Ok(decision([entry(4, 70, cancel_requested())], effects)));
}

#[test]
fn a_run_that_has_not_begun_ends_at_once() {
    let ends = [entry(2, 70, cancel_requested()), entry(3, 70, Event::RunCancelled).leaving(0)];
    let effects = [Effect::AnnounceEnd, answer(Answer::CancelRequested)];
    check(&ready(), 70, cancel(), Ok(decision(ends.clone(), effects)));
    assert_eq!(
        said(&[ready(), ends.to_vec()].concat()),
        [(2, limit_id("a"), Message::ReleaseSlot { epoch: 1 })],
        "nor does it wait in line"
    );
}

#[test]
fn what_an_earlier_life_did_is_undone_once_the_run_has_its_slot() {
    let again = history([
        run_started_with(None, limited(&["a"])),
        slot_acquired("a"),
        undoable_completed("charge#1", 1, "18"),
        run_failed(timeout()),
        run_retried(None, 4, &[]),
    ]);
    assert_eq!(folded(&again).map(|run| run.status()), Some(Status::Ready));
    let effects = [deliver_stop(None), answer(Answer::CancelRequested)];
    check(&again, 70, cancel(), Ok(decision([entry(6, 70, cancel_requested()).in_epoch(2)], effects)));
}

#[test]
fn a_paused_run_goes_on_to_its_end() {
    let paused = [with_every_timer(), vec![entry(4, 500, run_paused())]].concat();
    let timers = [arm(retry("charge#1"), 1100, 2), arm(sleep("sleep#1"), 2100, 3), arm(TimerName::Deadline, 9100, 1)];
    let effects = [timers.as_slice(), &[deliver_stop(None), Effect::Resume, answer(Answer::CancelRequested)]].concat();
    check(&paused, 600, cancel(), Ok(decision([entry(5, 600, cancel_requested())], effects)));
    let run = folded(&[paused, vec![entry(5, 600, cancel_requested())]].concat()).expect("a run");
    assert_eq!((run.status(), run.is_called_off()), (Status::Running, true));
}

#[test]
fn a_run_that_was_called_off_and_then_paused_goes_on_when_it_is_called_off_again() {
    let paused = [called_off(), vec![entry(3, 500, run_paused())]].concat();
    let effects = [deliver_stop(None), Effect::Resume, answer(Answer::CancelRequested)];
    check(&paused, 600, cancel(), Ok(decision([entry(4, 600, cancel_requested())], effects)));
}

#[test]
fn an_interrupted_run_goes_on_to_its_end_with_the_time_that_was_left() {
    let [first, second, _] = interrupted().try_into().expect("three entries");
    let interrupted = [first, second, entry(3, 500, Event::RunInterrupted).leaving(0)];
    let timers = [arm(retry("charge#1"), 20_500, 2), arm(TimerName::Deadline, 28_500, 1)];
    let effects = [timers.as_slice(), &[deliver_stop(None), Effect::Resume, answer(Answer::CancelRequested)]].concat();
    check(&interrupted, 20_000, cancel(), Ok(decision([entry(4, 20_000, cancel_requested())], effects)));
    let run = folded(&[&interrupted[..], &[entry(4, 20_000, cancel_requested())]].concat()).expect("a run");
    assert_eq!((run.status(), run.is_waiting()), (Status::Running, false), "a restart has to host it");
}

#[test]
fn the_undoing_of_an_interrupted_run_goes_on() {
    let events = [run_started_with(None, manual()), undoable_completed("charge#1", 1, "18"), run_compensating(Some(timeout()))];
    let interrupted = [history(events), vec![entry(4, 0, Event::RunInterrupted).leaving(0)]].concat();
    let effects = [deliver_stop(None), Effect::Resume, answer(Answer::CancelRequested)];
    check(&interrupted, 70, cancel(), Ok(decision([entry(5, 70, cancel_requested())], effects)));
    let run = folded(&[interrupted, vec![entry(5, 70, cancel_requested())]].concat()).expect("a run");
    assert_eq!((run.status(), run.is_waiting()), (Status::Compensating, false), "a restart has to host it");
}

#[test]
fn the_same_command_again_is_answered_after_the_end_too() {
    let request = Event::RunCancelRequested { origin: ada_with("c-1"), terminate: false, undo: false };
    let over = history([run_started(), request, Event::RunCancelled]);
    let command = Command::CancelRun(CancelRun { origin: ada_with("c-1"), blocked: false });
    check(&over, 70, command, Ok(decision([], [answer(Answer::CancelRequested)])));
}
