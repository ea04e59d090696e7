//! `ResumeRun`: it goes on with the time that was left.

use super::*;

/// One of each timer: the deadline at 9000, a retry at 1000, a sleep at 2000, a wait until 3000; paused since 500 by entry 5.
fn paused() -> Vec<Entry> {
    let wait = entry(4, 0, signal_awaited_until("signal:approve#1", "approve", 3000));
    [with_every_timer(), vec![wait, entry(5, 500, run_paused())]].concat()
}

#[test]
fn everything_that_is_pending_has_the_time_that_was_left() {
    let timers = [
        arm(retry("charge#1"), 1100, 2),
        arm(sleep("sleep#1"), 2100, 3),
        arm(sleep("signal:approve#1"), 3100, 4),
        arm(TimerName::Deadline, 9100, 1),
    ];
    let effects = [timers.as_slice(), &[Effect::Resume, answer(Answer::Resumed)]].concat();
    check(&paused(), 600, resume(), Ok(decision([entry(6, 600, run_resumed())], effects)));
}

#[test]
fn what_was_set_during_the_pause_counts_from_there() {
    let during = vec![
        entry(6, 550, timer_set("sleep#2", 700)),
        entry(7, 580, retry_scheduled("ship#1", 2, 3, 1580)).leaving(0),
        entry(8, 600, run_resumed()),
    ];
    let run = folded(&[paused(), during].concat()).expect("a run");
    let due = |name: TimerName| run.timers().into_iter().find(|timer| timer.name == name).map(|timer| timer.due);
    assert_eq!(due(sleep("sleep#2")), Some(at(750)));
    assert_eq!(due(retry("ship#1")), Some(at(1600)));
    assert_eq!(due(retry("charge#1")), Some(at(1100)));
}

#[test]
fn what_is_settled_does_not_come_back() {
    let during = vec![
        entry(6, 550, timer_fired("sleep#1")),
        entry(7, 550, step_completed("charge#1", 2, "18")),
        entry(8, 550, timer_fired("signal:approve#1")).leaving(1),
        entry(9, 600, run_resumed()),
    ];
    let run = folded(&[paused(), during].concat()).expect("a run");
    assert_eq!(run.timers(), [timer(TimerName::Deadline, at(9100), 1)]);
}

#[test]
fn two_pauses_add_up() {
    let again = vec![entry(6, 600, run_resumed()), entry(7, 700, run_paused()), entry(8, 1000, run_resumed())];
    let run = folded(&[paused(), again].concat()).expect("a run");
    let due: Vec<_> = run.timers().into_iter().map(|timer| timer.due).collect();
    assert_eq!(due, [at(1400), at(2400), at(3400), at(9400)]);
}

#[test]
fn a_clock_that_was_set_back_takes_no_time_away() {
    let run = folded(&[paused(), vec![entry(6, 100, run_resumed())]].concat()).expect("a run");
    let due: Vec<_> = run.timers().into_iter().map(|timer| timer.due).collect();
    assert_eq!(due, [at(1000), at(2000), at(3000), at(9000)]);
}

#[test]
fn a_timer_that_fires_at_its_old_time_is_armed_for_the_new_one() {
    let resumed = [paused(), vec![entry(6, 600, run_resumed())]].concat();
    check(&resumed, 1050, fire(retry("charge#1"), 2), Ok(decision([], [arm(retry("charge#1"), 1100, 2)])));
    check(&resumed, 9050, fire(TimerName::Deadline, 1), Ok(decision([], [arm(TimerName::Deadline, 9100, 1)])));
    check(&resumed, 1100, fire(retry("charge#1"), 2), Ok(decision([], [start_attempt("charge#1", 2)])));
}

#[test]
fn the_undoing_of_a_run_goes_on() {
    let paused = [undo_in_backoff(), vec![entry(5, 500, run_paused())]].concat();
    let effects = [arm(retry("charge#1/undo"), 1100, 4), Effect::Resume, answer(Answer::Resumed)];
    check(&paused, 600, resume(), Ok(decision([entry(6, 600, run_resumed())], effects)));
    let run = folded(&[paused, vec![entry(6, 600, run_resumed())]].concat()).expect("a run");
    assert_eq!(run.status(), Status::Compensating);
}

#[test]
fn a_run_that_waits_for_its_slot_still_does() {
    let resumed = [ready(), vec![entry(2, 500, run_paused()), entry(3, 600, run_resumed())]].concat();
    assert_eq!(folded(&resumed).map(|run| run.status()), Some(Status::Ready));
}

#[test]
fn a_run_that_is_not_paused_is_not_resumed_and_nobody_minds() {
    for history in [open(), in_backoff(), compensating(), ready()] {
        check(&history, 70, resume(), Ok(decision([], [answer(Answer::Resumed)])));
    }
}

#[test]
fn the_same_command_again_is_answered_whatever_has_happened_since() {
    let resumed = Event::RunResumed { origin: ada_with("c-1") };
    let again = [run_started(), run_paused(), resumed, run_paused()];
    let answered = || Ok(decision([], [answer(Answer::Resumed)]));
    check(&history(again.clone()), 70, Command::ResumeRun(ada_with("c-1")), answered());
    check(&history(again.into_iter().chain([run_completed("18")])), 70, Command::ResumeRun(ada_with("c-1")), answered());
}

#[test]
fn a_run_that_has_ended_or_never_was_is_not_resumed() {
    check(&completed(), 70, resume(), ended());
    check(&[], 70, resume(), Err(Refusal::RunNotFound { run: run_id() }));
}

#[test]
fn a_run_whose_process_died_is_not_resumed() {
    let what_to_do = "its process died: retry it, or cancel it";
    let refused = || Err(Refusal::WrongStatus { run: run_id(), status: Status::Interrupted, what_to_do: what_to_do.into() });
    check(&interrupted(), 70, resume(), refused());
    check(&history([run_started_with(None, manual()), run_paused(), Event::RunInterrupted]), 70, resume(), refused());
}
