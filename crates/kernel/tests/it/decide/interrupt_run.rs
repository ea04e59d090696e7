//! `InterruptRun`: its process has died, and whether it goes on is a person's to decide.

use super::*;

fn started() -> Event {
    run_started_with(Some(9000), manual())
}

fn interrupts(seq: u64, timers: &[TimerName]) -> Result<Decision, Refusal> {
    let effects = timers.iter().cloned().map(disarm).chain([Effect::Close, answer(Answer::Interrupted)]);
    Ok(decision([entry(seq, 70, Event::RunInterrupted).leaving(0)], effects.collect::<Vec<_>>()))
}

fn nothing_happens() -> Result<Decision, Refusal> {
    Ok(decision([], [answer(Answer::Interrupted)]))
}

#[test]
fn an_attempt_in_flight_interrupts_the_run() {
    check(&history([started()]), 70, Command::InterruptRun, interrupts(2, &[TimerName::Deadline]));
    let asleep = [entry(1, 0, started()), entry(2, 0, timer_set("sleep#1", 1000)).leaving(1)];
    check(&asleep, 70, Command::InterruptRun, interrupts(3, &[sleep("sleep#1"), TimerName::Deadline]));
}

#[test]
fn a_step_in_backoff_interrupts_the_run() {
    let waiting = [entry(1, 0, started()), entry(2, 0, retry_scheduled("charge#1", 2, 3, 1000)).leaving(0)];
    check(&waiting, 70, Command::InterruptRun, interrupts(3, &[retry("charge#1"), TimerName::Deadline]));
}

#[test]
fn a_run_that_only_waited_goes_on_by_itself() {
    let asleep = [entry(1, 0, started()), entry(2, 0, timer_set("sleep#1", 1000)).leaving(0)];
    check(&asleep, 70, Command::InterruptRun, nothing_happens());
    let approval = [entry(1, 0, started()), entry(2, 0, signal_awaited("signal:approve#1", "approve")).leaving(0)];
    check(&approval, 70, Command::InterruptRun, nothing_happens());
}

#[test]
fn a_run_with_automatic_recovery_is_not_interrupted() {
    for history in [open(), in_backoff(), compensating(), completed()] {
        check(&history, 70, Command::InterruptRun, nothing_happens());
    }
}

#[test]
fn a_run_that_has_not_begun_is_not_interrupted() {
    let options = RunOptions { limits: limited(&["a"]).limits, ..manual() };
    check(&history([run_started_with(None, options)]), 70, Command::InterruptRun, nothing_happens());
}

#[test]
fn a_run_that_is_undone_is_interrupted_too() {
    let undoing = history([started(), undoable_completed("charge#1", 1, "18"), run_compensating(None)]);
    check(&undoing, 70, Command::InterruptRun, interrupts(4, &[]));
}

#[test]
fn a_paused_run_whose_attempt_was_in_flight_is_interrupted() {
    let paused = history([started(), run_paused()]);
    check(&paused, 70, Command::InterruptRun, interrupts(3, &[]));
    let run = folded(&[paused, vec![entry(3, 70, Event::RunInterrupted).leaving(0)]].concat()).expect("a run");
    assert_eq!((run.status(), run.is_waiting()), (Status::Interrupted, false));
}

#[test]
fn interrupting_twice_is_one_event() {
    check(&interrupted(), 70, Command::InterruptRun, nothing_happens());
}

#[test]
fn nothing_of_an_interrupted_run_goes_on() {
    let run = folded(&interrupted()).expect("a run");
    assert_eq!((run.status(), run.timers(), run.recover()), (Status::Interrupted, vec![], None));
    check(&interrupted(), 70, turn(70, [step_completed("charge#1", 1, "18")], 0), stale("the run is interrupted"));
    check(&interrupted(), 70, turn(70, [run_failed(timeout())], 0), stale("the run is interrupted"));
    check(&interrupted(), 70, timed_out("charge#1", 2, &policy()), stale("the run is interrupted"));
    check(&interrupted(), 9000, fire(TimerName::Deadline, 1), superseded());
    check(&interrupted(), 9000, fire(retry("charge#1"), 2), superseded());
}

#[test]
fn arrivals_are_still_recorded() {
    let effects = [deliver_signal(4, "approve"), answer(Answer::SignalReceived)];
    let expected = decision([entry(4, 70, signal_received("approve", None))], effects);
    check(&interrupted(), 70, send_signal("approve", None), Ok(expected));
}

#[test]
fn a_run_that_never_was_is_not_found() {
    check(&[], 70, Command::InterruptRun, Err(Refusal::RunNotFound { run: run_id() }));
}
