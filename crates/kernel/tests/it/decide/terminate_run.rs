//! `TerminateRun`: it ends at once, and nothing is undone.

use super::*;

fn requested() -> Event {
    Event::RunCancelRequested { origin: ada(), terminate: true, undo: false }
}

fn ends(seq: u64) -> [Entry; 2] {
    [entry(seq, 70, requested()), entry(seq + 1, 70, Event::RunCancelled).leaving(0)]
}

fn effects(timers: &[TimerName]) -> Vec<Effect> {
    let then = [Effect::Close, Effect::AnnounceEnd, answer(Answer::Terminated)];
    timers.iter().cloned().map(disarm).chain(then).collect()
}

#[test]
fn every_open_run_ends_at_once() {
    check(&open(), 70, terminate(), Ok(decision(ends(2), effects(&[]))));
    let all = [retry("charge#1"), sleep("sleep#1"), TimerName::Deadline];
    check(&with_every_timer(), 70, terminate(), Ok(decision(ends(4), effects(&all))));
    check(&compensating(), 70, terminate(), Ok(decision(ends(4), effects(&[]))));
    check(&undo_in_backoff(), 70, terminate(), Ok(decision(ends(5), effects(&[retry("charge#1/undo")]))));
    check(&called_off(), 70, terminate(), Ok(decision(ends(3), effects(&[]))));
    check(&ready(), 70, terminate(), Ok(decision(ends(2), effects(&[]))));
    check(&interrupted(), 70, terminate(), Ok(decision(ends(4), effects(&[]))));
    let paused = [with_every_timer(), vec![entry(4, 0, run_paused())]].concat();
    check(&paused, 70, terminate(), Ok(decision(ends(5), effects(&[]))));
}

#[test]
fn it_is_cancelled_and_what_was_to_be_undone_is_not() {
    let undoable = history([run_started(), undoable_completed("charge#1", 1, "18")]);
    let run = folded(&[undoable, ends(3).to_vec()].concat()).expect("a run");
    assert_eq!((run.status(), run.timers(), run.waits()), (Status::Cancelled, vec![], vec![]));
}

#[test]
fn the_same_command_again_is_answered() {
    let origin = ada_with("c-1");
    let history =
        history([run_started(), Event::RunCancelRequested { origin: origin.clone(), terminate: true, undo: false }, Event::RunCancelled]);
    check(&history, 70, Command::TerminateRun(origin), Ok(decision([], [answer(Answer::Terminated)])));
    check(&history, 70, Command::TerminateRun(ada_with("c-2")), ended());
}

#[test]
fn a_run_that_has_ended_or_never_was_is_not_terminated() {
    check(&completed(), 70, terminate(), ended());
    check(&[], 70, terminate(), Err(Refusal::RunNotFound { run: run_id() }));
}

#[test]
fn slots_children_and_parent_are_told() {
    let parent = other_run("parent-1");
    let options = RunOptions { limits: limited(&["a", "b"]).limits, ..child_of(&parent, "child:checkout#1", false) };
    let events = [run_started_with(None, options), slot_acquired("a"), slot_acquired("b"), child_started("child:parcel#1", "parcel-1")];
    let journal = history(events.into_iter().chain([requested(), Event::RunCancelled]));
    let failure = Failure::new(Code::Cancelled, "run order-17 was cancelled");
    let origin = Origin { by: Some("run order-17".into()), why: Some("the run that started it has not completed".into()), command: None };
    assert_eq!(
        said(&journal),
        [
            (4, parent.into(), Message::ChildEnded { child: id("child:checkout#1"), outcome: Err(failure) }),
            (5, limit_id("a"), Message::ReleaseSlot { epoch: 1 }),
            (6, limit_id("b"), Message::ReleaseSlot { epoch: 1 }),
            (7, other_run("parcel-1").into(), Message::CancelChild { origin }),
        ]
    );
}
