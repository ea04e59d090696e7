//! `RecordHeartbeat`: what an attempt says of how far it has come.

use super::*;

fn beat(epoch: u32, step: &str, attempt: u32) -> Command {
    Command::RecordHeartbeat(RecordHeartbeat { epoch, step: id(step), attempt, details: Payload::json("7") })
}

fn beaten(step: &str, attempt: u32) -> Event {
    Event::StepHeartbeat { step: id(step), attempt, details: Payload::json("7") }
}

#[test]
fn what_the_attempt_to_come_says_is_recorded() {
    for (history, step, attempt) in [(open(), "charge#1", 1), (in_backoff(), "charge#1", 2), (compensating(), "charge#1/undo", 1)] {
        let next = history.len() as u64 + 1;
        let expected = decision([entry(next, 70, beaten(step, attempt))], [answer(Answer::HeartbeatRecorded)]);
        check(&history, 70, beat(1, step, attempt), Ok(expected));
    }
}

#[test]
fn it_changes_nothing_but_what_was_said_last() {
    let before = folded(&in_backoff()).expect("a run");
    let after = folded(&[in_backoff(), vec![entry(3, 70, beaten("charge#1", 2))]].concat()).expect("a run");
    assert_eq!(after.details.keys().map(ToString::to_string).collect::<Vec<_>>(), ["charge#1"]);
    assert_eq!(Run { seq: 2, details: before.details.clone(), ..after }, before);
}

#[test]
fn attempts_in_flight_go_on_saying_it_while_the_run_is_paused() {
    let paused = history([run_started(), run_paused()]);
    let expected = decision([entry(3, 70, beaten("charge#1", 1))], [answer(Answer::HeartbeatRecorded)]);
    check(&paused, 70, beat(1, "charge#1", 1), Ok(expected));
}

#[test]
fn what_any_other_attempt_says_is_stale() {
    check(&open(), 70, beat(1, "charge#1", 2), stale("charge#1 is at attempt 1, not 2"));
    check(&in_backoff(), 70, beat(1, "charge#1", 1), stale("charge#1 is at attempt 2, not 1"));
    let done = history([run_started(), step_completed("charge#1", 1, "18")]);
    check(&done, 70, beat(1, "charge#1", 1), stale("charge#1 has its outcome already"));
    check(&open(), 70, beat(1, "charge#1/undo", 1), stale("the run is not being undone"));
    check(&compensating(), 70, beat(1, "charge#1", 1), stale("the run is being undone"));
    check(&open(), 70, beat(2, "charge#1", 1), stale("the run is in epoch 1, not 2"));
    check(&interrupted(), 70, beat(1, "charge#1", 2), stale("the run is interrupted"));
    check(&ready(), 70, beat(1, "charge#1", 1), stale("the run waits for a slot"));
}

#[test]
fn a_run_that_has_ended_or_never_was_hears_nothing() {
    check(&completed(), 70, beat(1, "charge#1", 1), ended());
    check(&[], 70, beat(1, "charge#1", 1), Err(Refusal::RunNotFound { run: run_id() }));
}

#[test]
fn the_next_attempt_can_read_what_the_last_one_said() {
    let report = ReportFailure { details: Some(Payload::json("7")), ..report_timeout("charge#1", 1, &policy()) };
    let Event::RetryScheduled { step, attempt, of, delay, due_at, failure, .. } = retry_scheduled("charge#1", 2, 3, 1070) else {
        unreachable!()
    };
    let event = Event::RetryScheduled { step, attempt, of, delay, due_at, failure, details: Some(Payload::json("7")) };
    let effects = [arm(retry("charge#1"), 1070, 2), answer(Answer::RetryScheduled)];
    check(&open(), 70, Command::ReportFailure(report), Ok(decision([entry(2, 70, event).leaving(0)], effects)));
}
