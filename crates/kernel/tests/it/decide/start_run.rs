//! `StartRun`: begin a run, or find the one of that id.

use super::*;

#[test]
fn a_new_run_is_opened() {
    let expected = decision([entry(1, 70, run_started())], [Effect::Open, answer(Answer::Created)]);
    check(&[], 70, start(), Ok(expected));
}

#[test]
fn a_deadline_counts_from_the_start_and_is_armed_with_it() {
    let command = Command::StartRun(StartRun { deadline: Some(5 * SECOND), ..start_run() });
    let effects = [arm(TimerName::Deadline, 5070, 1), Effect::Open, answer(Answer::Created)];
    check(&[], 70, command, Ok(decision([entry(1, 70, run_started_until(5070))], effects)));
}

#[test]
fn the_same_start_again_finds_the_run_whatever_its_state() {
    for history in [open(), in_backoff(), with_every_timer(), completed()] {
        check(&history, 70, start(), Ok(decision([], [answer(Answer::Exists)])));
    }
}

#[test]
fn seed_and_deadline_do_not_make_it_another_start() {
    let again = StartRun { seed: steadfast_kernel::random::Seed([8; 32]), deadline: Some(SECOND), ..start_run() };
    check(&open(), 70, Command::StartRun(again), Ok(decision([], [answer(Answer::Exists)])));
}

#[test]
fn another_workflow_or_input_under_the_same_id_is_refused() {
    let other_workflow = StartRun { workflow: workflow("refund"), ..start_run() };
    let other_input = StartRun { input: Payload::json("18"), ..start_run() };
    for (history, other) in [(open(), other_workflow.clone()), (open(), other_input), (completed(), other_workflow)] {
        check(&history, 70, Command::StartRun(other), Err(Refusal::RunExists { run: run_id() }));
    }
}

#[test]
fn a_run_that_needs_a_slot_is_not_opened_and_asks_for_the_first() {
    let options = limited(&["a", "b"]);
    let command = Command::StartRun(StartRun { deadline: Some(5 * SECOND), options: options.clone(), ..start_run() });
    let entries = [entry(1, 70, run_started_with(Some(5070), options))];
    let effects = [arm(TimerName::Deadline, 5070, 1), answer(Answer::Created)];
    check(&[], 70, command, Ok(decision(entries.clone(), effects)));
    assert_eq!(said(&entries), [(70_001, limit_id("a"), Message::RequestSlot { epoch: 1, slots: 2 })]);
    let run = folded(&entries).expect("a run");
    assert_eq!((run.status(), run.is_waiting(), run.recover()), (Status::Ready, true, None));
    assert_eq!(run.waits(), [Wait::Slot { key: limit_key("a"), position: None }]);
    assert_eq!(run.timers(), [timer(TimerName::Deadline, at(5070), 1)]);
}

#[test]
fn a_limit_that_is_named_twice_is_asked_once() {
    let command = Command::StartRun(StartRun { options: limited(&["a", "b", "a"]), ..start_run() });
    let entries = [entry(1, 70, run_started_with(None, limited(&["a", "b"])))];
    check(&[], 70, command, Ok(decision(entries, [answer(Answer::Created)])));
}

#[test]
fn the_same_start_again_finds_the_run_though_its_code_was_given_something_else_since() {
    let edited = Event::RunRetried(Box::new(Retried { input: Some(Payload::json("19")), ..retried(None, 2, &[]) }));
    for history in [history([run_started(), run_continued("18")]), history([run_started(), run_failed(timeout()), edited])] {
        check(&history, 70, start(), Ok(decision([], [answer(Answer::Exists)])));
        let other = StartRun { input: Payload::json("18"), ..start_run() };
        check(&history, 70, Command::StartRun(other), Err(Refusal::RunExists { run: run_id() }));
    }
}
