//! What people see of a run, step by step.

use crate::support::*;
use steadfast_kernel::run::{StepView, Try, script, steps};
use steadfast_kernel::{Attempt, Entry, Event, StepId, TimerName, Timestamp};

fn ms(at: Timestamp) -> i64 {
    at.as_micros() / 1000
}

/// `NAME STATUS xATTEMPTS FROM..TO next=.. [ATTEMPT FROM..TO failure +BACKOFF]…`
fn shown(view: &StepView) -> String {
    let end = |at: Option<Timestamp>| at.map(|at| ms(at).to_string()).unwrap_or_default();
    let tried = |tried: &Try| {
        let failure = tried.failure.as_ref().map(|failure| format!(" {}", failure.code)).unwrap_or_default();
        let backoff = tried.backoff.map(|backoff| format!(" +{}", backoff.as_millis())).unwrap_or_default();
        format!(" [{} {}..{}{failure}{backoff}]", tried.attempt, ms(tried.started_at), end(tried.ended_at))
    };
    let next = view.next_attempt_at.map(|at| format!(" next={}", ms(at))).unwrap_or_default();
    let tries: String = view.tries.iter().map(tried).collect();
    format!("{} {} x{} {}..{}{next}{tries}", view.id, view.status.as_str(), view.attempts, ms(view.started_at), end(view.ended_at))
}

#[track_caller]
fn check<const N: usize>(journal: impl IntoIterator<Item = (i64, Event)>, in_flight: &[(&str, Attempt)], expected: [&str; N]) {
    let entries = journal.into_iter().zip(1..).map(|((at_ms, event), seq)| entry(seq, at_ms, event)).collect();
    check_entries(entries, in_flight, expected);
}

#[track_caller]
fn check_entries<const N: usize>(entries: Vec<Entry>, in_flight: &[(&str, Attempt)], expected: [&str; N]) {
    let in_flight: Vec<(StepId, Attempt)> = in_flight.iter().map(|(step, attempt)| (id(step), *attempt)).collect();
    let retried = entries
        .iter()
        .rev()
        .find(|entry| matches!(entry.event, Event::RunRetried(_)))
        .map(|entry| (entry.at, entry.seq));
    let found: Vec<String> = steps(&script(entries), &in_flight, retried).iter().map(shown).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_step_begins_when_the_one_before_it_has_ended() {
    let journal = [(5, run_started()), (20, step_completed("a#1", 1, "1")), (50, step_completed("b#1", 1, "2")), (50, run_completed("3"))];
    check(journal, &[], ["a#1 COMPLETED x1 5..20 [1 5..20]", "b#1 COMPLETED x1 20..50 [1 20..50]"]);
}

#[test]
fn attempts_and_the_delays_between_them_are_told_apart() {
    let retried = [(0, run_started()), (10, retry_scheduled("a#1", 2, 5, 1010))];
    check(retried.clone(), &[], ["a#1 BACKOFF x1 0.. next=1010 [1 0..10 UNAVAILABLE +1000]"]);
    check(retried.clone(), &[("a#1", 2)], ["a#1 RUNNING x2 0.. [1 0..10 UNAVAILABLE +1000] [2 1010..]"]);
    let done = retried.into_iter().chain([(1040, step_completed("a#1", 2, "1"))]);
    check(done, &[], ["a#1 COMPLETED x2 0..1040 [1 0..10 UNAVAILABLE +1000] [2 1010..1040]"]);
}

#[test]
fn an_attempt_in_flight_that_is_not_on_record_is_seen() {
    check(
        [(0, run_started()), (7, step_completed("a#1", 1, "1"))],
        &[("b#1", 1)],
        ["a#1 COMPLETED x1 0..7 [1 0..7]", "b#1 RUNNING x1 7.. [1 7..]"],
    );
}

#[test]
fn a_branch_does_not_wait_for_its_siblings() {
    let journal = [
        (0, run_started()),
        (10, step_completed("all#1.0/a#1", 1, "1")),
        (30, step_completed("all#1.1/a#1", 1, "1")),
        (40, step_completed("all#1.0/b#1", 1, "1")),
        (50, step_completed("c#1", 1, "1")),
    ];
    let expected = [
        "all#1.0/a#1 COMPLETED x1 0..10 [1 0..10]",
        "all#1.1/a#1 COMPLETED x1 0..30 [1 0..30]",
        "all#1.0/b#1 COMPLETED x1 10..40 [1 10..40]",
        "c#1 COMPLETED x1 40..50 [1 40..50]",
    ];
    check(journal, &[], expected);
}

#[test]
fn sleeps_waits_and_children_have_their_lines() {
    let journal = [
        (0, run_started()),
        (1, timer_set("sleep:#1", 100)),
        (100, timer_fired("sleep:#1")),
        (100, signal_awaited_until("signal:ok#1", "ok", 500)),
        (150, signal_received("ok", None)),
        (151, signal_taken("signal:ok#1", 5)),
        (151, signal_awaited_until("signal:ok#2", "ok", 300)),
        (300, timer_fired("signal:ok#2")),
        (300, child_started("child:ship#1", "r/ship")),
        (400, child_ended("child:ship#1", Ok("1"))),
        (401, child_taken("child:ship#1")),
    ];
    let expected = [
        "sleep:#1 COMPLETED x0 1..100",
        "signal:ok#1 COMPLETED x0 100..151",
        "signal:ok#2 FAILED x0 151..300",
        "child:ship#1 COMPLETED x0 300..400",
        "next#1 RUNNING x1 401.. [1 401..]",
    ];
    check(journal, &[("next#1", 1)], expected);
}

#[test]
fn a_skipped_step_was_never_tried() {
    check([(0, run_started()), (3, Event::StepSkipped { step: id("a#1") })], &[], ["a#1 SKIPPED x0 3..3"]);
}

#[test]
fn what_is_undone_says_so() {
    let begun = [
        (0, run_started()),
        (10, undoable_completed("a#1", 1, "1")),
        (20, undoable_completed("b#1", 1, "1")),
        (30, step_failed("c#1", 1, card_refused())),
        (30, run_compensating(Some(card_refused()))),
    ];
    let c = "c#1 FAILED x1 20..30 [1 20..30 PERMISSION_DENIED]";
    let undone = begun
        .into_iter()
        .chain([(40, undo_completed("b#1", 1)), (50, retry_scheduled("a#1/undo", 2, 5, 1050))]);
    let b = "b#1 UNDONE x1 10..20 [1 10..20]";
    check(undone.clone(), &[], ["a#1 UNDOING x1 0..10 next=1050 [1 0..10]", b, c]);
    check(undone.clone(), &[("a#1/undo", 2)], ["a#1 UNDOING x1 0..10 [1 0..10]", b, c]);
    let over = undone.chain([(1060, undo_completed("a#1", 2)), (1060, run_failed(card_refused()))]);
    check(over, &[], ["a#1 UNDONE x1 0..10 [1 0..10]", b, c]);
}

#[test]
fn a_step_in_doubt_waits_for_a_person() {
    let journal = [(0, run_started()), (1, step_started("pay#1", 1)), (9, signal_awaited("pay#1/in-doubt#1", "in-doubt:pay#1"))];
    check(journal, &[], ["pay#1 IN_DOUBT x1 0.. [1 1..]"]);
}

#[test]
fn what_nobody_waits_for_any_more_has_ended() {
    let mut race = history([run_started(), retry_scheduled("race#1.0/a#1", 2, 5, 9000), timer_set("race#1.1/sleep:#1", 5000)]);
    race.push(Entry {
        abandoned: vec![TimerName::Retry(id("race#1.0/a#1")), TimerName::Sleep(id("race#1.1/sleep:#1"))],
        ..entry(4, 70, step_completed("race#1.2/b#1", 1, "1"))
    });
    let found: Vec<String> = steps(&race, &[], None).iter().map(|view| format!("{} {}", view.id, view.status.as_str())).collect();
    assert_eq!(found, ["race#1.0/a#1 FAILED", "race#1.1/sleep:#1 FAILED", "race#1.2/b#1 COMPLETED"]);
    let cancelled = [(0, run_started()), (1, retry_scheduled("a#1", 2, 5, 9000)), (3, cancel_requested()), (4, Event::RunCancelled)];
    check(cancelled, &[], ["a#1 FAILED x1 0..4 [1 0..1 UNAVAILABLE +1000]"]);
}

#[test]
fn another_life_shows_what_it_kept_and_what_it_does() {
    let journal = [
        (0, run_started()),
        (10, step_completed("a#1", 1, "1")),
        (20, step_failed("b#1", 1, card_refused())),
        (20, run_failed(card_refused())),
        (90, run_retried(Some("b#1"), 3, &["b#1"])),
    ];
    check(journal, &[("b#1", 1)], ["a#1 COMPLETED x1 0..10 [1 0..10]", "b#1 RUNNING x1 90.. [1 90..]"]);
}

#[test]
fn a_child_that_nobody_waits_for_is_done_when_it_is_started() {
    let journal = [(0, run_started()), (5, detached_started("child:ship#1", "r/ship")), (9, run_completed("1"))];
    check(journal, &[], ["child:ship#1 COMPLETED x0 5..5"]);
}

#[test]
fn what_could_not_be_undone_stays_done() {
    let journal = [
        (0, run_started()),
        (10, undoable_completed("a#1", 1, "1")),
        (20, run_compensating(Some(card_refused()))),
        (30, undo_failed("a#1", 1, card_refused())),
    ];
    check(journal.clone(), &[], ["a#1 UNDOING x1 0..10 [1 0..10]"]);
    check(journal.into_iter().chain([(40, run_failed(card_refused()))]), &[], ["a#1 COMPLETED x1 0..10 [1 0..10]"]);
}
