//! The fold: what the machine does not list cannot be followed, and says so in words.

use crate::support::*;
use std::time::Duration;
use steadfast_kernel::run::{Deadline, Slots, decide};
use steadfast_kernel::{
    Attempt, Command, Completion, Effect, Entry, Event, Origin, Payload, Policy, ReportFailure, Run, Status, TimerName,
};

/// That entry cannot come after that history, and the message says why.
#[track_caller]
fn illegal(history: &[Entry], next: Entry, message: &str) {
    folded(history);
    let illegal = fold(&[history, std::slice::from_ref(&next)].concat()).expect_err("an entry that does not fit");
    assert_eq!((illegal.entity.clone(), illegal.seq, illegal.kind), (run_id().into(), next.seq, next.event.kind()));
    assert_eq!(illegal.to_string(), message);
}

/// As [`illegal`], for an event that comes next in order.
#[track_caller]
fn does_not_follow(history: &[Entry], event: Event, why: &str) {
    let next = entry(history.len() as u64 + 1, 0, event);
    let message = format!("the journal of order-17 cannot be followed at event {} ({}): {why}", next.seq, next.event.kind());
    illegal(history, next, &message);
}

fn open() -> Vec<Entry> {
    history([run_started()])
}

#[test]
fn a_gap_cannot_be_followed() {
    let next = entry(3, 0, run_completed("18"));
    illegal(&open(), next, "the journal of order-17 cannot be followed at event 3 (RUN_COMPLETED): event 2 is missing");
}

#[test]
fn an_entry_a_second_time_cannot_be_followed() {
    let twice = [open(), vec![entry(2, 0, step_completed("charge#1", 1, "18"))]].concat();
    let again = entry(2, 0, step_completed("charge#1", 1, "18"));
    illegal(&twice, again, "the journal of order-17 cannot be followed at event 2 (STEP_COMPLETED): event 3 is missing");
}

#[test]
fn a_journal_that_lacks_its_first_entry_cannot_be_followed() {
    let next = entry(2, 0, step_completed("charge#1", 1, "18"));
    illegal(&[], next, "the journal of order-17 cannot be followed at event 2 (STEP_COMPLETED): event 1 is missing");
}

/// One event of every type of a run but the first, and but what begins another life of one that has ended.
fn every_other_event() -> Vec<Event> {
    vec![
        step_started("charge#1", 1),
        step_completed("charge#1", 1, "18"),
        step_failed("charge#1", 1, timeout()),
        retry_scheduled("charge#1", 2, 3, 1000),
        timer_set("sleep#1", 1000),
        timer_fired("sleep#1"),
        signal_awaited("signal:approve#1", "approve"),
        signal_received("approve", None),
        signal_taken("signal:approve#1", 2),
        cancel_requested(),
        run_compensating(None),
        undo_completed("charge#1", 1),
        undo_failed("charge#1", 1, timeout()),
        Event::RunCancelled,
        run_completed("18"),
        run_failed(timeout()),
        slot_acquired("a"),
        Event::StepHeartbeat { step: id("charge#1"), attempt: 1, details: Payload::json("7") },
        noted("note:#1", "half of it"),
        child_started("child:parcel#1", "parcel-1"),
        child_ended("child:parcel#1", Ok("2")),
        child_taken("child:parcel#1"),
        run_paused(),
        run_resumed(),
        Event::RunInterrupted,
    ]
}

#[test]
fn a_journal_begins_with_run_started() {
    for event in every_other_event().into_iter().chain([run_retried(None, 1, &[])]) {
        does_not_follow(&[], event, "a journal begins with RUN_STARTED");
    }
}

#[test]
fn a_run_does_not_start_twice() {
    does_not_follow(&open(), run_started(), "the run has started already");
    does_not_follow(&history([run_started(), run_compensating(None)]), run_started(), "the run has started already");
}

#[test]
fn final_states_are_final() {
    let ends = [
        history([run_started(), run_completed("18")]),
        history([run_started(), run_failed(timeout())]),
        history([run_started(), cancel_requested(), Event::RunCancelled]),
        history([run_started(), run_compensating(None), run_failed(timeout())]),
    ];
    for end in ends {
        for event in every_other_event().into_iter().chain([run_started()]) {
            does_not_follow(&end, event, "the run has ended");
        }
    }
}

#[test]
fn an_entry_of_another_epoch_cannot_be_followed() {
    for epoch in [0, 2] {
        let other = Entry { epoch, ..entry(2, 0, run_completed("18")) };
        let why = format!("it belongs to epoch {epoch}, the run is in epoch 1");
        illegal(&open(), other, &format!("the journal of order-17 cannot be followed at event 2 (RUN_COMPLETED): {why}"));
    }
}

#[test]
fn a_retry_whose_entry_is_missing_is_named() {
    does_not_follow(&open(), step_completed("charge#1", 2, "18"), "charge#1 is at attempt 1, not 2");
    does_not_follow(&open(), step_failed("charge#1", 3, timeout()), "charge#1 is at attempt 1, not 3");
    let once = history([run_started(), retry_scheduled("charge#1", 2, 3, 1000)]);
    does_not_follow(&once, step_completed("charge#1", 3, "18"), "charge#1 is at attempt 2, not 3");
}

#[test]
fn attempts_are_consecutive() {
    does_not_follow(&open(), retry_scheduled("charge#1", 3, 5, 1000), "charge#1 is at attempt 1, not 2");
    does_not_follow(&open(), retry_scheduled("charge#1", 1, 5, 1000), "charge#1 is at attempt 1, not 0");
    does_not_follow(&open(), retry_scheduled("charge#1", 0, 5, 1000), "charge#1 is at attempt 1, not 0");
    let once = history([run_started(), retry_scheduled("charge#1", 2, 5, 1000)]);
    does_not_follow(&once, retry_scheduled("charge#1", 2, 5, 1000), "charge#1 is at attempt 2, not 1");
    does_not_follow(&once, step_completed("charge#1", 1, "18"), "charge#1 is at attempt 2, not 1");
}

#[test]
fn a_recorded_step_never_changes() {
    for outcome in [step_completed("charge#1", 1, "18"), step_failed("charge#1", 1, timeout())] {
        let done = history([run_started(), outcome]);
        does_not_follow(&done, step_completed("charge#1", 1, "19"), "charge#1 has its outcome already");
        does_not_follow(&done, step_failed("charge#1", 1, timeout()), "charge#1 has its outcome already");
        does_not_follow(&done, retry_scheduled("charge#1", 2, 3, 1000), "charge#1 has its outcome already");
    }
}

#[test]
fn a_sleep_is_set_once_and_fires_once() {
    let asleep = history([run_started(), timer_set("sleep#1", 1000)]);
    let awake = history([run_started(), timer_set("sleep#1", 1000), timer_fired("sleep#1")]);
    does_not_follow(&open(), timer_fired("sleep#1"), "sleep#1 was never set");
    does_not_follow(&asleep, timer_set("sleep#1", 1000), "sleep#1 is set already");
    does_not_follow(&awake, timer_set("sleep#1", 1000), "sleep#1 is set already");
    does_not_follow(&awake, timer_fired("sleep#1"), "sleep#1 has fired already");
}

#[test]
fn two_equal_failures_in_a_row_are_two_events() {
    let policy = Policy::constant(SECOND).max_attempts(5);
    let mut journal = open();
    for attempt in 1..=2 {
        let run = folded(&journal);
        journal.extend(
            decide(&run_id(), run.as_ref(), timed_out("charge#1", attempt, &policy), at(0))
                .expect("a retry")
                .entries,
        );
    }
    assert_eq!(
        journal[1..],
        [entry(2, 0, retry_scheduled("charge#1", 2, 5, 1000)).leaving(0), entry(3, 0, retry_scheduled("charge#1", 3, 5, 1000)).leaving(0),]
    );
}

/// How many more attempts fail before the step is given up. Every state is what a restart finds in the store.
fn attempts_that_remain(mut journal: Vec<Entry>, first: Attempt, policy: &Policy) -> u32 {
    for made in 0.. {
        let run = folded(&stored(&journal)).expect("a run");
        let report = ReportFailure { attempt: first + made, ..report_timeout("charge#1", 1, policy) };
        match decide(&run_id(), Some(&run), Command::ReportFailure(report), at(0)) {
            Ok(decided) if decided.entries.is_empty() => {
                assert!(matches!(&decided.effects[..], [Effect::Deliver(Completion::StepFailed { .. })]));
                return made + 1;
            }
            Ok(decided) => journal.extend(decided.entries),
            Err(_) => return made,
        }
    }
    unreachable!("attempts are bounded")
}

#[test]
fn after_a_restart_exactly_the_attempts_that_are_not_on_record_remain() {
    for max in 1..=6 {
        let policy = Policy::constant(SECOND).max_attempts(max);
        for on_record in 0..max {
            let retries = (1..=on_record).map(|attempt| retry_scheduled("charge#1", attempt + 1, max, 1000));
            let journal = history([run_started()].into_iter().chain(retries));
            assert_eq!(attempts_that_remain(journal, on_record + 1, &policy), max - on_record, "{on_record} of {max} on record");
        }
        let retries = (2..=max).map(|attempt| retry_scheduled("charge#1", attempt, max, 1000));
        let all = history([run_started()].into_iter().chain(retries).chain([step_failed("charge#1", max, gave_up(max))]));
        assert_eq!(attempts_that_remain(all, max + 1, &policy), 0, "all {max} on record");
    }
}

#[test]
fn the_first_entry_says_all_that_is_known_of_a_new_run() {
    let run = folded(&[entry(1, 70, run_started_until(9000))]).expect("a run");
    assert_eq!((run.id.clone(), run.workflow.clone(), run.seed), (run_id(), workflow("checkout"), SEED));
    assert_eq!((run.epoch, run.seq, run.started_at), (1, 1, at(70)));
    let deadline = Deadline { at: at(9000), allowed: Duration::from_millis(8930), revision: 1 };
    assert_eq!((run.deadline, run.slots, run.sent), (Some(deadline), Slots { epoch: 1, asked: 0, held: 0 }, 0));
    assert_eq!((run.status(), run.ended().is_none(), Run::waits(&run)), (Status::Running, true, vec![]));
}

#[test]
fn retries_belong_to_what_is_being_done() {
    let running = history([run_started(), undoable_completed("charge#1", 1, "18")]);
    does_not_follow(&running, retry_scheduled("charge#1/undo", 2, 3, 1000), "the run is not being undone");
    let undoing = history([run_started(), undoable_completed("charge#1", 1, "18"), run_compensating(None)]);
    does_not_follow(&undoing, retry_scheduled("ship#1", 2, 3, 1000), "the run is being undone");
    does_not_follow(&undoing, retry_scheduled("ship#1/undo", 2, 3, 1000), "there is nothing of ship#1 to undo");
    does_not_follow(&undoing, retry_scheduled("charge#1/undo", 3, 3, 1000), "charge#1/undo is at attempt 1, not 2");
}

#[test]
fn a_signal_is_taken_once_by_somebody_who_asked_for_its_name() {
    let arrived = history([run_started(), signal_received("approve", None), signal_awaited("signal:approve#1", "approve")]);
    does_not_follow(&arrived, signal_awaited("signal:approve#1", "approve"), "signal:approve#1 is on record already");
    does_not_follow(&arrived, signal_taken("signal:approve#2", 2), "signal:approve#2 was never asked for");
    does_not_follow(&arrived, signal_taken("signal:approve#1", 3), "there is no signal 3 to be taken");
    does_not_follow(&arrived, timer_fired("signal:approve#1"), "signal:approve#1 was never set");
    let events = arrived.iter().map(|entry| entry.event.clone());
    let taken = history(events.chain([signal_taken("signal:approve#1", 2), signal_awaited("signal:approve#2", "approve")]));
    does_not_follow(&taken, signal_taken("signal:approve#2", 2), "there is no signal 2 to be taken");
    does_not_follow(&taken, signal_taken("signal:approve#1", 2), "signal:approve#1 is settled already");
    let other = history([run_started(), signal_received("another", None), signal_awaited("signal:approve#1", "approve")]);
    does_not_follow(&other, signal_taken("signal:approve#1", 2), "signal 2 is another, not approve");
}

#[test]
fn the_end_is_asked_for_once_and_before_the_run_is_cancelled() {
    does_not_follow(&open(), Event::RunCancelled, "nobody asked for it");
    does_not_follow(&history([run_started(), run_compensating(None)]), Event::RunCancelled, "nobody asked for it");
    does_not_follow(&history([run_started(), cancel_requested()]), cancel_requested(), "it was asked for already");
}

#[test]
fn code_and_undo_exclude_each_other() {
    let running = history([run_started(), undoable_completed("charge#1", 1, "18")]);
    does_not_follow(&running, undo_completed("charge#1", 1), "the run is not being undone");
    does_not_follow(&running, undo_failed("charge#1", 1, timeout()), "the run is not being undone");
    let undoing = history([run_started(), undoable_completed("charge#1", 1, "18"), run_compensating(None)]);
    let of_the_code = [step_started("ship#1", 1), step_completed("ship#1", 1, "1"), step_failed("ship#1", 1, timeout())];
    for event in of_the_code
        .into_iter()
        .chain([timer_set("sleep#1", 10), run_compensating(None), run_completed("18")])
    {
        does_not_follow(&undoing, event, "the run is being undone");
    }
    does_not_follow(&undoing, undo_completed("ship#1", 1), "there is nothing of ship#1 to undo");
    does_not_follow(&undoing, undo_completed("charge#1", 2), "charge#1/undo is at attempt 1, not 2");
}

#[test]
fn nothing_that_the_code_waited_for_outlives_it() {
    let waiting = history([
        run_started_until(9000),
        retry_scheduled("charge#1", 2, 3, 1000),
        timer_set("sleep#1", 2000),
        signal_awaited_until("signal:approve#1", "approve", 3000),
        signal_received("approve", Some("m-1")),
        run_compensating(None),
    ]);
    does_not_follow(&waiting, timer_fired("sleep#1"), "sleep#1 has fired already");
    does_not_follow(&waiting, timer_fired("signal:approve#1"), "signal:approve#1 is settled already");
    does_not_follow(&waiting, signal_taken("signal:approve#1", 5), "signal:approve#1 is settled already");
    let run = folded(&waiting).expect("a run");
    assert_eq!((run.status(), run.waits(), run.timers()), (Status::Compensating, vec![], vec![]));
}

#[test]
fn another_life_begins_in_the_next_epoch() {
    let failed = history([run_started(), run_failed(timeout())]);
    for epoch in [1, 3] {
        let other = entry(3, 0, run_retried(None, 2, &[])).in_epoch(epoch);
        let why = format!("it belongs to epoch {epoch}, the run is in epoch 1");
        illegal(&failed, other, &format!("the journal of order-17 cannot be followed at event 3 (RUN_RETRIED): {why}"));
    }
}

#[test]
fn a_run_that_is_paused_undone_or_not_begun_has_no_other_life() {
    let next = |journal: &[Entry], why: &str| {
        let other = entry(journal.len() as u64 + 1, 0, run_retried(None, 2, &[])).in_epoch(2);
        let message = format!("the journal of order-17 cannot be followed at event {} (RUN_RETRIED): {why}", other.seq);
        illegal(journal, other, &message);
    };
    next(&history([run_started(), run_paused()]), "the run is PAUSED");
    next(&history([run_started(), run_compensating(None)]), "the run is COMPENSATING");
    next(&history([run_started_with(None, limited(&["a"]))]), "the run is READY");
}

#[test]
fn a_run_stands_still_once_and_goes_on_once() {
    let paused = history([run_started_with(None, manual()), run_paused()]);
    does_not_follow(&paused, run_paused(), "the run stands still already");
    does_not_follow(&open(), run_resumed(), "the run is not paused");
    does_not_follow(&open(), Event::RunInterrupted, "the run goes on by itself");
    let interrupted = history([run_started_with(None, manual()), run_paused(), Event::RunInterrupted]);
    for event in [run_paused(), run_resumed(), Event::RunInterrupted, step_completed("a#1", 1, "1"), run_failed(timeout())] {
        let why = match event {
            Event::RunPaused { .. } => "the run stands still already",
            Event::RunResumed { .. } => "the run is not paused",
            _ => "the run is interrupted",
        };
        does_not_follow(&interrupted, event, why);
    }
}

#[test]
fn a_slot_is_acquired_once_and_in_order() {
    let ready = history([run_started_with(None, limited(&["a", "b"]))]);
    does_not_follow(&ready, slot_acquired("b"), "the run does not wait for a slot of key/b");
    does_not_follow(&ready, step_completed("a#1", 1, "1"), "the run waits for a slot");
    does_not_follow(&ready, Event::RunInterrupted, "the run goes on by itself");
    let begun = history([run_started_with(None, limited(&["a"])), slot_acquired("a")]);
    does_not_follow(&begun, slot_acquired("a"), "the run does not wait for a slot of key/a");
}

#[test]
fn a_child_is_started_ends_and_is_taken_once() {
    let child = "child:parcel#1";
    let started = history([run_started(), child_started(child, "parcel-1")]);
    does_not_follow(&open(), child_ended(child, Ok("2")), "child:parcel#1 was never started");
    does_not_follow(&started, child_started(child, "parcel-1"), "child:parcel#1 is on record already");
    does_not_follow(&started, child_taken(child), "there is no outcome of child:parcel#1 to be taken");
    let over = history([run_started(), child_started(child, "parcel-1"), child_ended(child, Ok("2"))]);
    does_not_follow(&over, child_ended(child, Ok("2")), "child:parcel#1 has ended already");
    let detached = history([run_started(), detached_started(child, "parcel-1")]);
    does_not_follow(&detached, child_ended(child, Ok("2")), "nobody waits for child:parcel#1");
}

#[test]
fn what_happens_to_others_does_not_happen_to_a_run() {
    let granted = Event::SlotGranted { run: run_id() };
    does_not_follow(&open(), granted, "no such event can happen to a run");
    does_not_follow(&open(), Event::LetterRedriven { letter: 1, origin: Origin::default() }, "no such event can happen to a run");
}

#[test]
fn abandoning_the_deadline_changes_nothing() {
    let left = entry(2, 0, step_completed("a#1", 1, "1")).abandoning([TimerName::Deadline]);
    let run = folded(&[entry(1, 0, run_started_until(9000)), left]).expect("a run");
    assert_eq!(run.timers(), [timer(TimerName::Deadline, at(9000), 1)]);
}
