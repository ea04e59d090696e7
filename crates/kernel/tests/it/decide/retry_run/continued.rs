//! Code that begins again by itself: a life without a past.

use super::*;

#[test]
fn code_that_begins_again_has_no_past() {
    let journal = history([
        run_started_until(9000),
        undoable_completed("a#1", 1, "1"),
        timer_set("sleep#1", 2000),
        signal_received("approve", Some("m-1")),
        signal_awaited("pay#1/in-doubt#1", "in-doubt:pay#1"),
        signal_received("in-doubt:pay#1", Some("m-2")),
        step_failed("b#1", 1, poison()),
        noted("note:#1", "half of it"),
    ]);
    let entries = [entry(9, 70, run_continued("18")).in_epoch(2).leaving(0)];
    let effects = [disarm(sleep("sleep#1")), Effect::Close, Effect::Host, answer(Answer::TurnTaken)];
    check(&journal, 70, turn(70, [run_continued("18")], 0), Ok(decision(entries.clone(), effects)));
    let run = folded(&[journal, entries.to_vec()].concat()).expect("a run");
    assert_eq!((run.epoch, run.status(), run.input.clone(), run.note.clone()), (2, Status::Running, Payload::json("18"), None));
    assert_eq!(run.timers(), [timer(TimerName::Deadline, at(9000), 1)], "it has the time that it had");
    let open = run.open().expect("an open run");
    assert!(open.steps.is_empty() && open.sleeps.is_empty() && open.awaits.is_empty() && open.undoable.is_empty());
    assert_eq!(open.signals, [(4, "approve".to_string())].into(), "an answer is not kept for a later question");
    assert!(run.letters.is_empty() && run.seed != SEED);
    assert_eq!((run.generations.get(&id("a#1")), run.generations.get(&id("b#1"))), (2, 2), "all of it is new work");
}

#[test]
fn code_that_begins_again_while_it_is_paused_waits() {
    let paused = history([run_started(), run_paused()]);
    let entries = [entry(3, 70, run_continued("18")).in_epoch(2).leaving(0)];
    check(&paused, 70, turn(70, [run_continued("18")], 0), Ok(decision(entries.clone(), [Effect::Close, answer(Answer::TurnTaken)])));
    let run = folded(&[paused, entries.to_vec()].concat()).expect("a run");
    assert_eq!(run.status(), Status::Paused);
}

#[test]
fn a_run_that_has_begun_again_by_itself_is_retried_from_there() {
    let journal = history([
        run_started(),
        step_completed("a#1", 1, "1"),
        run_continued("18"),
        step_completed("a#1", 1, "2"),
        step_failed("charge#1", 1, timeout()),
        run_failed(timeout()),
    ]);
    let next = entry(7, 70, run_retried(Some("charge#1"), 5, &["charge#1"])).in_epoch(3);
    check(&journal, 70, retry_run(), Ok(decision([next], hosts([]))));
    let next = entry(7, 70, run_retried(None, 2, &["a#1", "charge#1"])).in_epoch(3);
    check(&journal, 70, from_start(), Ok(decision([next.clone()], hosts([]))));
    let run = folded(&[journal, vec![next]].concat()).expect("a run");
    assert_eq!((run.input, run.generations.get(&id("a#1"))), (Payload::json("18"), 3));
}

#[test]
fn what_an_earlier_life_gave_up_is_not_given_up_in_one_without_a_past() {
    let journal = [
        entry(1, 0, run_started()),
        entry(2, 0, child_started("child:parcel#1", "parcel-1")).abandoning([retry("charge#1")]),
        entry(3, 0, run_failed(timeout())),
        entry(4, 0, run_retried(None, 3, &["child:parcel#1"])).in_epoch(2),
        entry(5, 0, run_continued("18")).in_epoch(3).leaving(0),
    ];
    let script = steadfast_kernel::run::script(journal.to_vec());
    assert_eq!(script.iter().map(|entry| (entry.event.kind(), entry.abandoned.len())).collect::<Vec<_>>(), [("RUN_STARTED", 0)]);
}
