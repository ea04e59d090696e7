//! `ReportFailure`: again, or enough?

use super::*;

#[test]
fn a_transient_failure_is_tried_again_after_the_delay() {
    let report = ReportFailure { in_flight: 4, ..report_timeout("charge#1", 1, &policy()) };
    let entries = [entry(2, 70, retry_scheduled("charge#1", 2, 3, 1070)).leaving(4)];
    let effects = [arm(retry("charge#1"), 1070, 2), answer(Answer::RetryScheduled)];
    check(&open(), 70, Command::ReportFailure(report), Ok(decision(entries, effects)));
}

#[test]
fn the_next_retry_replaces_the_timer_of_the_one_before() {
    let entries = [entry(3, 1500, retry_scheduled("charge#1", 3, 3, 2500)).leaving(0)];
    let effects = [arm(retry("charge#1"), 2500, 3), answer(Answer::RetryScheduled)];
    check(&in_backoff(), 1500, timed_out("charge#1", 2, &policy()), Ok(decision(entries, effects)));
}

#[test]
fn the_last_failure_is_delivered_and_not_yet_recorded() {
    let last = history([run_started(), retry_scheduled("charge#1", 2, 3, 10), retry_scheduled("charge#1", 3, 3, 20)]);
    let delivered = decision([], [deliver_failure("charge#1", 3, gave_up(3))]);
    check(&last, 70, timed_out("charge#1", 3, &policy()), Ok(delivered));
    check(&open(), 70, timed_out("charge#1", 1, &Policy::once()), Ok(decision([], [deliver_failure("charge#1", 1, gave_up(1))])));
}

#[test]
fn permanent_and_poison_failures_are_delivered_at_once() {
    for failure in [card_refused, || Failure::poison("not a receipt")] {
        let delivered = decision([], [deliver_failure("charge#1", 2, after(2, failure()))]);
        check(&in_backoff(), 70, failed_with(failure(), "charge#1", 2, &policy()), Ok(delivered));
    }
}

#[test]
fn a_permanent_failure_that_the_policy_names_is_tried_again() {
    let named = policy().on(Code::PermissionDenied, Policy::constant(2 * SECOND).max_attempts(9));
    let decided = decide(&run_id(), folded(&open()).as_ref(), failed_with(card_refused(), "charge#1", 1, &named), at(70)).unwrap();
    let event = steadfast_kernel::Event::RetryScheduled {
        step: id("charge#1"),
        attempt: 2,
        of: 9,
        delay: 2 * SECOND,
        due_at: at(2070),
        failure: card_refused(),
        details: None,
    };
    assert_eq!(decided.entries, [entry(2, 70, event).leaving(0)]);
}

#[test]
fn the_runs_deadline_bounds_its_retries() {
    let until = |ms| history([run_started_until(ms)]);
    let in_time = decision(
        [entry(2, 70, retry_scheduled("charge#1", 2, 3, 1070)).leaving(0)],
        [arm(retry("charge#1"), 1070, 2), answer(Answer::RetryScheduled)],
    );
    let too_late = decision([], [deliver_failure("charge#1", 1, out_of_time(1))]);
    check(&until(1071), 70, timed_out("charge#1", 1, &policy()), Ok(in_time));
    check(&until(1070), 70, timed_out("charge#1", 1, &policy()), Ok(too_late));
}

#[test]
fn the_policys_deadline_counts_from_when_the_step_was_asked_for() {
    let bounded = policy().deadline(5 * SECOND);
    let asked = |ms| Command::ReportFailure(ReportFailure { asked_at: at(ms), ..report_timeout("charge#1", 2, &bounded) });
    let in_time = decision(
        [entry(3, 6000, retry_scheduled("charge#1", 3, 3, 7000)).leaving(0)],
        [arm(retry("charge#1"), 7000, 3), answer(Answer::RetryScheduled)],
    );
    let too_late = decision([], [deliver_failure("charge#1", 2, out_of_time(2))]);
    check(&in_backoff(), 6000, asked(2001), Ok(in_time));
    check(&in_backoff(), 6000, asked(2000), Ok(too_late));
}

#[test]
fn the_earlier_of_the_two_deadlines_counts() {
    let too_late = || Ok(decision([], [deliver_failure("charge#1", 1, out_of_time(1))]));
    let until = |ms| history([run_started_until(ms)]);
    check(&until(500), 70, timed_out("charge#1", 1, &policy().deadline(60 * SECOND)), too_late());
    check(&until(60_000), 70, timed_out("charge#1", 1, &policy().deadline(SECOND)), too_late());
}

#[test]
fn exhaustion_goes_before_lack_of_time() {
    let expected = decision([], [deliver_failure("charge#1", 1, gave_up(1))]);
    check(&history([run_started_until(80)]), 70, timed_out("charge#1", 1, &Policy::once()), Ok(expected));
}

#[test]
fn any_other_attempt_than_the_one_to_come_is_stale() {
    check(&open(), 70, timed_out("charge#1", 0, &policy()), stale("charge#1 is at attempt 1, not 0"));
    check(&open(), 70, timed_out("charge#1", 2, &policy()), stale("charge#1 is at attempt 1, not 2"));
    check(&in_backoff(), 70, timed_out("charge#1", 0, &policy()), stale("charge#1 is at attempt 2, not 0"));
    check(&in_backoff(), 70, timed_out("charge#1", 3, &policy()), stale("charge#1 is at attempt 2, not 3"));
}

#[test]
fn a_step_that_has_its_outcome_cannot_fail() {
    for outcome in [step_completed("charge#1", 1, "18"), step_failed("charge#1", 1, timeout())] {
        let done = history([run_started(), outcome]);
        check(&done, 70, timed_out("charge#1", 1, &policy()), stale("charge#1 has its outcome already"));
        check(&done, 70, timed_out("charge#1", 2, &policy()), stale("charge#1 has its outcome already"));
    }
}

#[test]
fn a_failure_that_is_on_record_already_is_answered_as_before_and_recorded_once() {
    let answered = || Ok(decision([], [answer(Answer::RetryScheduled)]));
    check(&in_backoff(), 70, timed_out("charge#1", 1, &policy()), answered());
    let twice = history([run_started(), retry_scheduled("charge#1", 2, 3, 10), retry_scheduled("charge#1", 3, 3, 20)]);
    check(&twice, 70, timed_out("charge#1", 2, &policy()), answered());
    check(&twice, 70, timed_out("charge#1", 1, &policy()), stale("charge#1 is at attempt 3, not 1"));
}

#[test]
fn a_report_of_another_epoch_is_stale() {
    for epoch in [0, 2] {
        let report = ReportFailure { epoch, ..report_timeout("charge#1", 1, &policy()) };
        check(&open(), 70, Command::ReportFailure(report), stale(&format!("the run is in epoch 1, not {epoch}")));
    }
}

#[test]
fn an_ended_run_hears_of_no_failure() {
    check(&completed(), 70, timed_out("charge#1", 1, &policy()), ended());
}

#[test]
fn retry_after_is_kept_as_the_store_keeps_it() {
    let precise = Failure::transient("slow down").retry_after(Duration::from_nanos(1_500));
    let patient = Policy::constant(Duration::ZERO).max_delay(Duration::from_nanos(2_500));
    for policy in [patient.clone(), patient.max_delay(Duration::from_nanos(1_100))] {
        let decided = decide(&run_id(), folded(&open()).as_ref(), failed_with(precise.clone(), "charge#1", 1, &policy), at(70)).unwrap();
        assert_eq!(stored(&decided.entries), decided.entries);
    }
}

#[test]
fn an_undo_is_tried_again_after_the_delay() {
    let entries = [entry(4, 70, retry_scheduled("charge#1/undo", 2, 3, 1070)).leaving(0)];
    let effects = [arm(retry("charge#1/undo"), 1070, 4), answer(Answer::RetryScheduled)];
    check(&compensating(), 70, timed_out("charge#1/undo", 1, &policy()), Ok(decision(entries, effects)));
}

#[test]
fn the_runs_deadline_does_not_bound_the_retries_of_an_undo() {
    let entries = [entry(4, 9500, retry_scheduled("charge#1/undo", 2, 3, 10_500)).leaving(0)];
    let effects = [arm(retry("charge#1/undo"), 10_500, 4), answer(Answer::RetryScheduled)];
    check(&compensating(), 9500, timed_out("charge#1/undo", 1, &policy()), Ok(decision(entries, effects)));
    let bounded = policy().deadline(9 * SECOND);
    let too_late = decision([], [deliver_failure("charge#1/undo", 1, out_of_time(1))]);
    check(&compensating(), 9500, timed_out("charge#1/undo", 1, &bounded), Ok(too_late));
}

#[test]
fn a_step_of_the_code_is_not_tried_again_while_the_run_is_undone() {
    check(&compensating(), 70, timed_out("ship#1", 1, &policy()), stale("the run is being undone"));
    check(&compensating(), 70, timed_out("charge#1", 1, &policy()), stale("the run is being undone"));
    let was_in_backoff = [in_backoff(), vec![entry(3, 0, run_compensating(None))]].concat();
    check(&was_in_backoff, 70, timed_out("charge#1", 2, &policy()), stale("the run is being undone"));
}

#[test]
fn an_undo_is_tried_only_while_the_run_is_undone_and_it_is_there_to_be_undone() {
    let undoable = history([run_started(), undoable_completed("charge#1", 1, "18")]);
    check(&undoable, 70, timed_out("charge#1/undo", 1, &policy()), stale("the run is not being undone"));
    let undone = [compensating(), vec![entry(4, 0, undo_completed("charge#1", 1))]].concat();
    check(&undone, 70, timed_out("charge#1/undo", 1, &policy()), stale("there is nothing of charge#1 to undo"));
    check(&compensating(), 70, timed_out("ship#1/undo", 1, &policy()), stale("there is nothing of ship#1 to undo"));
}

#[test]
fn an_attempt_that_started_on_record_is_tried_again_under_the_next_number() {
    let started = [in_backoff(), vec![entry(3, 1000, step_started("charge#1", 2))]].concat();
    let entries = [entry(4, 1500, retry_scheduled("charge#1", 3, 3, 2500)).leaving(0)];
    let effects = [arm(retry("charge#1"), 2500, 4), answer(Answer::RetryScheduled)];
    check(&started, 1500, timed_out("charge#1", 2, &policy()), Ok(decision(entries, effects)));
    check(&started, 1500, timed_out("charge#1", 1, &policy()), stale("charge#1 is at attempt 2, not 1"));
    check(&started, 1500, timed_out("charge#1", 3, &policy()), stale("charge#1 is at attempt 2, not 3"));
}

#[test]
fn the_attempts_of_an_undo_are_counted_apart_from_those_of_its_step() {
    let retried = [retry_scheduled("charge#1", 2, 3, 10), undoable_completed("charge#1", 2, "18"), run_compensating(None)];
    let undoing = history([run_started()].into_iter().chain(retried));
    check(&undoing, 70, timed_out("charge#1/undo", 2, &policy()), stale("charge#1/undo is at attempt 1, not 2"));
    let delivered = decision([], [deliver_failure("charge#1/undo", 1, gave_up(1))]);
    check(&undoing, 70, timed_out("charge#1/undo", 1, &Policy::once()), Ok(delivered));
}
