//! The script: what of a journal still counts.

use crate::support::*;
use steadfast_kernel::run::script;
use steadfast_kernel::{Entry, Event, Payload, Retried, TimerName};

/// What is left of that journal, by the places.
#[track_caller]
fn left(journal: &[Entry]) -> Vec<u64> {
    folded(journal);
    script(journal.to_vec()).into_iter().map(|entry| entry.seq).collect()
}

#[test]
fn of_a_first_life_everything_counts() {
    let journal = history([
        run_started_with(None, limited(&["a"])),
        slot_acquired("a"),
        retry_scheduled("charge#1", 2, 3, 10),
        run_paused(),
        run_resumed(),
        step_failed("charge#1", 2, timeout()),
        run_failed(timeout()),
    ]);
    assert_eq!(script(journal.clone()), journal);
}

#[test]
fn what_came_before_the_cut_counts_but_for_what_begins_again() {
    let journal = history([
        run_started(),
        step_completed("a#1", 1, "1"),
        step_started("b#1", 1),
        timer_set("sleep#1", 10),
        step_completed("c#1", 1, "1"),
        timer_fired("sleep#1"),
        step_failed("charge#1", 1, timeout()),
        run_failed(timeout()),
        run_retried(Some("c#1"), 5, &["b#1", "c#1", "charge#1"]),
        step_completed("c#1", 1, "2"),
    ]);
    assert_eq!(left(&journal), [1, 2, 4, 10]);
}

#[test]
fn the_life_itself_is_over_with_it() {
    let journal = history([
        run_started_with(None, manual()),
        undoable_completed("a#1", 1, "1"),
        run_paused(),
        run_resumed(),
        cancel_requested(),
        run_compensating(None),
        retry_scheduled("a#1/undo", 2, 3, 10),
        undo_failed("a#1", 2, timeout()),
        signal_awaited("a#1/undo-failed#1", "undo:a#1"),
        signal_received("undo:a#1", None),
        signal_taken("a#1/undo-failed#1", 10),
        Event::RunInterrupted,
        run_retried(None, 6, &[]),
    ]);
    assert_eq!(left(&journal), [1, 2]);
}

#[test]
fn the_code_need_not_know_of_slots() {
    let begun = || [run_started_with(None, limited(&["a"])), slot_acquired("a"), retry_scheduled("charge#1", 2, 3, 10)];
    let waiting = history(begun().into_iter().chain([run_retried(None, 4, &["charge#1"])]));
    assert_eq!(left(&waiting), [1]);
    let over = history(
        begun()
            .into_iter()
            .chain([run_failed(timeout()), run_retried(None, 4, &["charge#1"]), slot_acquired("a")]),
    );
    assert_eq!(left(&over), [1, 6]);
}

#[test]
fn signals_count_until_they_are_spent() {
    let journal = history([
        run_started(),
        signal_received("approve", None),
        signal_awaited("signal:approve#1", "approve"),
        signal_taken("signal:approve#1", 2),
        step_completed("a#1", 1, "1"),
        signal_received("approve", None),
        signal_awaited("signal:approve#2", "approve"),
        signal_taken("signal:approve#2", 6),
        signal_received("approve", None),
        run_failed(timeout()),
        run_retried(Some("a#1"), 5, &["a#1"]),
    ]);
    assert_eq!(left(&journal), [1, 2, 3, 4, 9]);
}

#[test]
fn answers_that_nobody_has_taken_do_not_count() {
    let journal = history([
        run_started_with(None, manual()),
        step_started("pay#1", 1),
        signal_awaited("pay#1/in-doubt#1", "in-doubt:pay#1"),
        signal_received("in-doubt:pay#1", None),
        signal_taken("pay#1/in-doubt#1", 4),
        step_completed("pay#1", 1, "1"),
        step_started("pay#2", 1),
        signal_awaited("pay#2/in-doubt#1", "in-doubt:pay#2"),
        signal_received("in-doubt:pay#2", None),
        Event::RunInterrupted,
        run_retried(None, 11, &["pay#2"]),
    ]);
    assert_eq!(left(&journal), [1, 2, 3, 4, 5, 6], "what was taken and kept does");
}

#[test]
fn children_count_with_their_ends() {
    let journal = history([
        run_started(),
        child_started("child:parcel#1", "parcel-1"),
        step_completed("a#1", 1, "1"),
        child_started("child:parcel#2", "parcel-2"),
        child_ended("child:parcel#2", Ok("2")),
        child_ended("child:parcel#1", Ok("2")),
        child_taken("child:parcel#1"),
        run_completed("1"),
        run_retried(Some("a#1"), 3, &["a#1", "child:parcel#2"]),
    ]);
    assert_eq!(left(&journal), [1, 2, 6], "the end of a child is told again");
}

#[test]
fn a_step_that_is_called_as_a_sleep_is_has_nothing_to_do_with_it() {
    let journal = history([
        run_started(),
        timer_set("sleep#1", 10),
        timer_fired("sleep#1"),
        retry_scheduled("sleep#1", 2, 3, 10),
        step_completed("a#1", 1, "1"),
        run_failed(timeout()),
        run_retried(None, 6, &["sleep#1"]),
    ]);
    assert_eq!(left(&journal), [1, 2, 3, 5]);
}

#[test]
fn what_was_abandoned_before_the_cut_stays_so_though_its_entry_is_gone() {
    let last = entry(4, 0, step_started("pay#1", 1)).leaving(1).abandoning([sleep("sleep#1")]);
    let begun = history([run_started_with(None, manual()), timer_set("sleep#1", 10), step_completed("a#1", 1, "1")]);
    let again = vec![entry(5, 0, Event::RunInterrupted), entry(6, 0, run_retried(None, 6, &["pay#1"])).in_epoch(2)];
    let journal = [begun.clone(), vec![last], again].concat();
    folded(&journal);
    let [first, set, done] = begun.try_into().expect("three entries");
    assert_eq!(script(journal), [first, set, done.abandoning([sleep("sleep#1")])]);
}

#[test]
fn another_input_stands_in_the_first_entry() {
    let edited = Event::RunRetried(Box::new(Retried { input: Some(Payload::json("19")), ..retried(None, 2, &["a#1"]) }));
    let journal = history([run_started(), step_completed("a#1", 1, "1"), run_failed(timeout()), edited]);
    let [Entry { seq: 1, event: Event::RunStarted { input, .. }, .. }] = &script(journal)[..] else { panic!("more than the beginning") };
    assert_eq!(*input, Payload::json("19"));
}

#[test]
fn code_that_begins_again_has_only_what_was_not_taken() {
    let mut journal = history([
        run_started_with(None, limited(&["a"])),
        slot_acquired("a"),
        signal_received("approve", None),
        signal_received("approve", None),
        signal_awaited("signal:approve#1", "approve"),
        signal_taken("signal:approve#1", 3),
        run_paused(),
        child_started("child:parcel#1", "parcel-1"),
        run_continued("18"),
        run_resumed(),
        step_completed("a#1", 1, "1"),
    ]);
    journal[8].at = at(500);
    assert_eq!(left(&journal), [1, 4, 7, 10, 11]);
    let first = script(journal).remove(0);
    let Event::RunStarted { input, seed, .. } = first.event else { panic!("no beginning") };
    assert_eq!((input, first.at), (Payload::json("18"), at(500)));
    assert_ne!(seed, SEED);
}

/// What of a journal says that the retries of that step are of no use any more.
fn abandoning(journal: &[Entry], step: &str) -> Vec<u64> {
    folded(journal);
    let name = TimerName::Retry(id(step));
    let says = script(journal.to_vec()).into_iter().filter(|entry| entry.abandoned.contains(&name));
    says.map(|entry| entry.seq).collect()
}

#[test]
fn what_was_abandoned_has_its_place_also_when_the_entry_that_said_so_is_gone() {
    let mut journal = history([
        run_started(),
        step_completed("a#1", 1, "1"),
        retry_scheduled("charge#1", 2, 3, 10),
        step_failed("b#1", 1, timeout()),
        run_failed(timeout()),
        run_retried(None, 5, &["b#1"]),
        step_failed("b#1", 1, timeout()),
        run_failed(timeout()),
        run_retried(None, 4, &["b#1", "charge#1"]),
        step_completed("charge#1", 1, "1"),
    ]);
    journal[3].abandoned = vec![TimerName::Retry(id("charge#1"))];
    assert_eq!(abandoning(&journal[..5], "charge#1"), [4]);
    assert_eq!(abandoning(&journal[..8], "charge#1"), [3], "another entry says so");
    assert_eq!(abandoning(&journal, "charge#1"), [0; 0], "it was abandoned after the cut: it begins again");
}
