//! `FireTimer`: passed on, ends the run, or superseded.

use super::*;

#[test]
fn a_retry_that_is_due_starts_its_attempt() {
    for now in [1000, 99_000] {
        check(&in_backoff(), now, fire(retry("charge#1"), 2), Ok(decision([], [start_attempt("charge#1", 2)])));
    }
}

#[test]
fn a_sleep_that_is_due_is_delivered() {
    for now in [1000, 99_000] {
        check(&asleep(), now, fire(sleep("sleep#1"), 2), Ok(decision([], [deliver_timer("sleep#1")])));
    }
}

#[test]
fn firing_twice_says_the_same_twice() {
    check(&asleep(), 1000, fire(sleep("sleep#1"), 2), Ok(decision([], [deliver_timer("sleep#1")])));
    check(&asleep(), 1000, fire(sleep("sleep#1"), 2), Ok(decision([], [deliver_timer("sleep#1")])));
}

#[test]
fn a_deadline_that_is_due_ends_the_run_whatever_it_waits_for() {
    let effects = [disarm(retry("charge#1")), disarm(sleep("sleep#1")), disarm(TimerName::Deadline), Effect::Close, Effect::AnnounceEnd];
    let entries = [entry(4, 9000, run_failed(deadline_exceeded())).leaving(0)];
    check(&with_every_timer(), 9000, fire(TimerName::Deadline, 1), Ok(decision(entries, effects)));
}

#[test]
fn a_timer_of_another_revision_is_superseded() {
    for revision in [0, 1, 3] {
        check(&in_backoff(), 1000, fire(retry("charge#1"), revision), superseded());
        check(&asleep(), 1000, fire(sleep("sleep#1"), revision), superseded());
    }
    for revision in [0, 2] {
        check(&with_every_timer(), 9000, fire(TimerName::Deadline, revision), superseded());
    }
}

#[test]
fn the_timer_of_a_retry_before_the_last_is_superseded() {
    let twice = history([run_started(), retry_scheduled("charge#1", 2, 3, 10), retry_scheduled("charge#1", 3, 3, 20)]);
    check(&twice, 1000, fire(retry("charge#1"), 2), superseded());
    check(&twice, 1000, fire(retry("charge#1"), 3), Ok(decision([], [start_attempt("charge#1", 3)])));
}

#[test]
fn a_timer_that_is_not_yet_due_is_armed_again() {
    check(&in_backoff(), 999, fire(retry("charge#1"), 2), Ok(decision([], [arm(retry("charge#1"), 1000, 2)])));
    check(&asleep(), 999, fire(sleep("sleep#1"), 2), Ok(decision([], [arm(sleep("sleep#1"), 1000, 2)])));
    check(&with_every_timer(), 8999, fire(TimerName::Deadline, 1), Ok(decision([], [arm(TimerName::Deadline, 9000, 1)])));
}

#[test]
fn a_timer_that_was_never_armed_is_superseded() {
    check(&open(), 1000, fire(retry("charge#1"), 1), superseded());
    check(&open(), 1000, fire(sleep("sleep#1"), 1), superseded());
    check(&open(), 1000, fire(TimerName::Deadline, 1), superseded());
    check(&in_backoff(), 1000, fire(sleep("charge#1"), 2), superseded());
    check(&asleep(), 1000, fire(retry("sleep#1"), 2), superseded());
}

#[test]
fn a_timer_that_was_settled_is_superseded() {
    let events =
        [timer_set("sleep#1", 10), timer_fired("sleep#1"), retry_scheduled("charge#1", 2, 3, 10), step_completed("charge#1", 2, "")];
    let settled = history([run_started()].into_iter().chain(events));
    check(&settled, 1000, fire(sleep("sleep#1"), 2), superseded());
    check(&settled, 1000, fire(retry("charge#1"), 4), superseded());
}

#[test]
fn every_timer_of_an_ended_run_is_superseded() {
    let over = [with_every_timer(), vec![entry(4, 0, run_completed("18"))]].concat();
    for (name, revision) in [(TimerName::Deadline, 1), (retry("charge#1"), 2), (sleep("sleep#1"), 3)] {
        check(&over, 99_000, fire(name, revision), superseded());
    }
}

#[test]
fn a_wait_that_is_out_of_time_is_delivered() {
    for now in [1000, 99_000] {
        check(&awaiting_until(), now, fire(sleep("signal:approve#1"), 2), Ok(decision([], [deliver_timer("signal:approve#1")])));
    }
    let early = decision([], [arm(sleep("signal:approve#1"), 1000, 2)]);
    check(&awaiting_until(), 999, fire(sleep("signal:approve#1"), 2), Ok(early));
}

#[test]
fn a_wait_of_another_revision_or_without_an_end_or_over_is_superseded() {
    for revision in [0, 1, 3] {
        check(&awaiting_until(), 1000, fire(sleep("signal:approve#1"), revision), superseded());
    }
    check(&awaiting(), 1000, fire(sleep("signal:approve#1"), 2), superseded());
    let arrived = [awaiting_until(), vec![entry(3, 0, signal_received("approve", None))]].concat();
    let taken = [arrived.clone(), vec![entry(4, 0, signal_taken("signal:approve#1", 3))]].concat();
    check(&taken, 1000, fire(sleep("signal:approve#1"), 2), superseded());
    let over = [awaiting_until(), vec![entry(3, 0, timer_fired("signal:approve#1"))]].concat();
    check(&over, 1000, fire(sleep("signal:approve#1"), 2), superseded());
    check(&arrived, 1000, fire(sleep("signal:approve#1"), 2), Ok(decision([], [deliver_timer("signal:approve#1")])));
}

#[test]
fn what_was_abandoned_is_superseded() {
    let left = entry(4, 0, step_completed("a#1", 1, "1"))
        .leaving(1)
        .abandoning([retry("charge#1"), sleep("sleep#1")]);
    let left = [with_every_timer(), vec![left]].concat();
    check(&left, 3000, fire(retry("charge#1"), 2), superseded());
    check(&left, 3000, fire(sleep("sleep#1"), 3), superseded());
    let wait = entry(3, 0, step_completed("a#1", 1, "1")).leaving(1).abandoning([sleep("signal:approve#1")]);
    check(&[awaiting_until(), vec![wait]].concat(), 3000, fire(sleep("signal:approve#1"), 2), superseded());
}

#[test]
fn a_retry_whose_attempt_has_started_on_record_is_superseded() {
    let started = [in_backoff(), vec![entry(3, 1000, step_started("charge#1", 2))]].concat();
    check(&started, 2000, fire(retry("charge#1"), 2), superseded());
}

#[test]
fn a_deadline_is_delivered_if_there_is_something_to_undo() {
    let undoable = [with_every_timer(), vec![entry(4, 0, undoable_completed("ship#1", 1, "1"))]].concat();
    for now in [9000, 99_000] {
        let expected = decision([], [deliver_stop(Some(deadline_exceeded()))]);
        check(&undoable, now, fire(TimerName::Deadline, 1), Ok(expected));
    }
    check(&undoable, 8999, fire(TimerName::Deadline, 1), Ok(decision([], [arm(TimerName::Deadline, 9000, 1)])));
    check(&undoable, 9000, fire(TimerName::Deadline, 2), superseded());
}

#[test]
fn a_run_that_is_undone_has_no_deadline_and_nothing_of_its_code_fires() {
    let undoing = [with_every_timer(), vec![entry(4, 0, run_compensating(None))]].concat();
    for (name, revision) in [(TimerName::Deadline, 1), (retry("charge#1"), 2), (sleep("sleep#1"), 3)] {
        check(&undoing, 99_000, fire(name, revision), superseded());
    }
    check(&undo_in_backoff(), 1000, fire(retry("charge#1/undo"), 4), Ok(decision([], [start_attempt("charge#1/undo", 2)])));
}

/// It may have been over when the turn was taken; a commit that failed, a pause and a resume later it is not.
#[test]
fn what_is_not_over_yet_does_not_fire() {
    let why = |wait: &str| stale(&format!("{wait} is not due yet: the run was paused before that was recorded"));
    let asleep = history([run_started(), timer_set("sleep#1", 1000)]);
    check(&asleep, 2000, turn(999, [timer_fired("sleep#1")], 0), why("sleep#1"));
    let awaiting = history([run_started(), signal_awaited_until("signal:approve#1", "approve", 950)]);
    check(&awaiting, 2000, turn(949, [timer_fired("signal:approve#1")], 0), why("signal:approve#1"));
}
