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
