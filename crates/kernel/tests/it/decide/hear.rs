//! `Hear`: what a limit, a parent or a child says is heard once, and only by whom it concerns.

use super::*;

fn heard(entries: impl Into<Vec<Entry>>, effects: impl IntoIterator<Item = Effect>) -> Result<Decision, Refusal> {
    Ok(decision(entries, effects.into_iter().chain([answer(Answer::Heard)]).collect::<Vec<_>>()))
}

fn of_no_concern() -> Result<Decision, Refusal> {
    heard([], [])
}

fn parent() -> EntityId {
    other_run("parent-1").into()
}

fn parcel() -> EntityId {
    other_run("parcel-1").into()
}

/// The run is a child of `parent-1`.
fn child() -> Vec<Entry> {
    history([run_started_with(None, child_of(&other_run("parent-1"), "child:checkout#1", false))])
}

/// The run waits for its child `parcel-1`, started by entry 2.
fn with_child() -> Vec<Entry> {
    history([run_started(), child_started("child:parcel#1", "parcel-1")])
}

fn grant(epoch: u32) -> Message {
    Message::GrantSlot { epoch }
}

fn cancel_child() -> Message {
    Message::CancelChild { origin: ada() }
}

fn parcel_ended(outcome: Result<&'static str, Failure>) -> Message {
    Message::ChildEnded { child: id("child:parcel#1"), outcome: outcome.map(Payload::json) }
}

// Slots.

#[test]
fn a_slot_that_was_asked_for_is_acquired_and_the_next_is_asked_for() {
    let entries = [entry(2, 70, slot_acquired("a")).heard(limit_id("a"), 9)];
    check(&ready(), 70, hear(limit_id("a"), 9, grant(1)), heard(entries.clone(), []));
    let journal = [ready(), entries.to_vec()].concat();
    assert_eq!(said(&journal), [(2, limit_id("b"), Message::RequestSlot { epoch: 1, slots: 2 })]);
    let run = folded(&journal).expect("a run");
    assert_eq!((run.status(), run.wanted()), (Status::Ready, Some(&limit_key("b"))));
}

#[test]
fn with_its_last_slot_the_run_begins() {
    let one_to_go = [ready(), vec![entry(2, 0, slot_acquired("a")).heard(limit_id("a"), 9)]].concat();
    let entries = [entry(3, 70, slot_acquired("b")).heard(limit_id("b"), 4)];
    check(&one_to_go, 70, hear(limit_id("b"), 4, grant(1)), heard(entries.clone(), [Effect::Host]));
    let journal = [one_to_go, entries.to_vec()].concat();
    assert_eq!(said(&journal), []);
    assert_eq!(folded(&journal).map(|run| run.status()), Some(Status::Running));
}

#[test]
fn a_slot_is_acquired_once() {
    let has_it = [ready(), vec![entry(2, 0, slot_acquired("a")).heard(limit_id("a"), 9)]].concat();
    check(&has_it, 70, hear(limit_id("a"), 9, grant(1)), of_no_concern());
    check(&has_it, 70, hear(limit_id("a"), 10, grant(1)), of_no_concern());
}

#[test]
fn a_slot_that_the_run_does_not_wait_for_is_of_no_concern() {
    check(&ready(), 70, hear(limit_id("b"), 1, grant(1)), of_no_concern());
    check(&ready(), 70, hear(limit_id("a"), 1, grant(2)), of_no_concern());
    check(&ready(), 70, hear(parcel(), 1, grant(1)), of_no_concern());
    check(&open(), 70, hear(limit_id("a"), 1, grant(1)), of_no_concern());
    check(&completed(), 70, hear(limit_id("a"), 1, grant(1)), of_no_concern());
    check(&[], 70, hear(limit_id("a"), 1, grant(1)), of_no_concern());
    let over = [ready(), vec![entry(2, 0, cancel_requested()), entry(3, 0, Event::RunCancelled)]].concat();
    check(&over, 70, hear(limit_id("a"), 1, grant(1)), of_no_concern());
}

#[test]
fn a_paused_run_takes_its_slot_and_does_not_begin() {
    let paused = history([run_started_with(None, limited(&["a"])), run_paused()]);
    let entries = [entry(3, 70, slot_acquired("a")).heard(limit_id("a"), 9)];
    check(&paused, 70, hear(limit_id("a"), 9, grant(1)), heard(entries.clone(), []));
    let resumed = [paused, entries.to_vec(), vec![entry(4, 80, run_resumed())]].concat();
    assert_eq!(folded(&resumed).map(|run| run.status()), Some(Status::Running));
}

#[test]
fn what_an_earlier_life_waited_for_is_armed_when_the_run_has_its_slot() {
    let again = history([
        run_started_with(Some(9000), limited(&["a"])),
        slot_acquired("a"),
        timer_set("sleep#1", 1000),
        step_failed("charge#1", 1, timeout()),
        run_failed(timeout()),
        run_retried(Some("charge#1"), 4, &["charge#1"]),
    ]);
    let run = folded(&again).expect("a run");
    assert_eq!((run.status(), run.timers()), (Status::Ready, vec![timer(TimerName::Deadline, at(9000), 6)]));
    check(&again, 2000, fire(sleep("sleep#1"), 3), superseded());
    let entries = [entry(7, 70, slot_acquired("a")).in_epoch(2).heard(limit_id("a"), 9)];
    let effects = [arm(sleep("sleep#1"), 1000, 3), arm(TimerName::Deadline, 9000, 6), Effect::Host];
    check(&again, 70, hear(limit_id("a"), 9, grant(2)), heard(entries, effects));
    check(&again, 70, hear(limit_id("a"), 9, grant(1)), of_no_concern());
}

#[test]
fn nothing_of_a_run_happens_before_it_has_its_slots() {
    check(&ready(), 70, turn(70, [step_completed("charge#1", 1, "18")], 0), stale("the run waits for a slot"));
    check(&ready(), 70, turn(70, [run_failed(timeout())], 0), stale("the run waits for a slot"));
    check(&ready(), 70, timed_out("charge#1", 1, &policy()), stale("the run waits for a slot"));
}

#[test]
fn the_deadline_of_a_run_that_waits_for_its_slot_ends_it() {
    let ready = history([run_started_with(Some(9000), limited(&["a"]))]);
    let entries = [entry(2, 9000, run_failed(deadline_exceeded())).leaving(0)];
    let effects = [disarm(TimerName::Deadline), Effect::Close, Effect::AnnounceEnd];
    check(&ready, 9000, fire(TimerName::Deadline, 1), Ok(decision(entries.clone(), effects)));
    assert_eq!(said(&[ready, entries.to_vec()].concat()), [(2, limit_id("a"), Message::ReleaseSlot { epoch: 1 })]);
}

// Being a child.

fn start_child(options: RunOptions) -> StartChild {
    let (workflow, input) = (workflow("checkout"), Payload::json("17"));
    StartChild { workflow, input, seed: SEED, deadline: Some(5 * SECOND), options }
}

#[test]
fn a_child_begins_as_any_run_does() {
    let options = child_of(&other_run("parent-1"), "child:checkout#1", false);
    let entries = [entry(1, 70, run_started_with(Some(5070), options.clone())).heard(parent(), 3)];
    let effects = [arm(TimerName::Deadline, 5070, 1), Effect::Open];
    let message = Message::StartChild(start_child(options.clone()));
    check(&[], 70, hear(parent(), 3, message.clone()), heard(entries.clone(), effects));
    check(&entries, 70, hear(parent(), 3, message), of_no_concern());
    let limits = RunOptions { limits: limited(&["a"]).limits, ..options };
    let entries = [entry(1, 70, run_started_with(Some(5070), limits.clone())).heard(parent(), 3)];
    check(&[], 70, hear(parent(), 3, Message::StartChild(start_child(limits))), heard(entries, [arm(TimerName::Deadline, 5070, 1)]));
}

fn bounced(outcome: Result<Payload, Failure>) -> Result<Decision, Refusal> {
    let message = Message::ChildEnded { child: id("child:checkout#1"), outcome };
    let envelope = Envelope { from: run_id().into(), seq: 0, to: parent(), message };
    Ok(decision([], [Effect::Bounce(Box::new(envelope))]))
}

#[test]
fn an_id_that_another_run_has_is_the_end_of_the_child() {
    let options = |detached| child_of(&other_run("parent-1"), "child:checkout#1", detached);
    let exists = Failure::permanent("run order-17 exists already, and is not a child of this run").code(Code::FailedPrecondition);
    for history in [open(), completed()] {
        let start = |detached| hear(parent(), 3, Message::StartChild(start_child(options(detached))));
        check(&history, 70, start(false), bounced(Err(exists.clone())));
        check(&history, 70, start(true), of_no_concern());
    }
}

#[test]
fn a_child_that_is_started_again_after_it_has_ended_says_so_again() {
    let options = child_of(&other_run("parent-1"), "child:checkout#1", false);
    let start = || hear(parent(), 4, Message::StartChild(start_child(options.clone())));
    check(&child(), 70, start(), of_no_concern());
    let over = [child(), vec![entry(2, 0, run_completed("18"))]].concat();
    check(&over, 70, start(), bounced(Ok(Payload::json("18"))));
}

#[test]
fn a_child_that_ends_tells_its_parent() {
    let ended = |outcome| vec![(1, parent(), Message::ChildEnded { child: id("child:checkout#1"), outcome })];
    assert_eq!(said(&[child(), vec![entry(2, 0, run_completed("18"))]].concat()), ended(Ok(Payload::json("18"))));
    assert_eq!(said(&[child(), vec![entry(2, 0, run_failed(timeout()))]].concat()), ended(Err(timeout())));
    let detached = history([run_started_with(None, child_of(&other_run("parent-1"), "child:checkout#1", true)), run_completed("18")]);
    assert_eq!(said(&detached), []);
}

#[test]
fn a_child_that_its_parent_calls_off_is_told() {
    let entries = [entry(2, 70, cancel_requested()).heard(parent(), 4)];
    check(&child(), 70, hear(parent(), 4, cancel_child()), heard(entries.clone(), [deliver_stop(None)]));
    let called_off = [child(), entries.to_vec()].concat();
    check(&called_off, 70, hear(parent(), 4, cancel_child()), of_no_concern());
    check(&called_off, 70, hear(parent(), 5, cancel_child()), of_no_concern());
    let over = [child(), vec![entry(2, 0, run_completed("18"))]].concat();
    check(&over, 70, hear(parent(), 4, cancel_child()), of_no_concern());
    check(&[], 70, hear(parent(), 4, cancel_child()), of_no_concern());
}

#[test]
fn a_child_that_has_not_begun_ends_when_it_is_called_off() {
    let options = RunOptions { limits: limited(&["a"]).limits, ..child_of(&other_run("parent-1"), "child:checkout#1", false) };
    let ready = history([run_started_with(None, options)]);
    let entries = [entry(2, 70, cancel_requested()).heard(parent(), 4), entry(3, 70, Event::RunCancelled).leaving(0)];
    check(&ready, 70, hear(parent(), 4, cancel_child()), heard(entries, [Effect::AnnounceEnd]));
}

#[test]
fn nobody_but_its_parent_calls_a_run_off_by_a_message() {
    check(&open(), 70, hear(parent(), 4, cancel_child()), of_no_concern());
    check(&child(), 70, hear(parcel(), 4, cancel_child()), of_no_concern());
}

// Having children.

#[test]
fn a_child_is_started_with_its_own_chance() {
    let said = said(&with_child());
    let [(1, to, Message::StartChild(StartChild { workflow: code, input, seed, deadline, options }))] = &said[..] else {
        panic!("{said:?}")
    };
    assert_eq!((to, code, input), (&parcel(), &workflow("parcel"), &Payload::json("1")));
    assert_eq!((*deadline, options), (None, &child_of(&run_id(), "child:parcel#1", false)));
    assert_ne!(*seed, SEED);
}

#[test]
fn the_end_of_a_child_is_an_arrival() {
    for outcome in [Ok("2"), Err(card_refused())] {
        let entries = [entry(3, 70, child_ended("child:parcel#1", outcome.clone())).heard(parcel(), 1)];
        let completion = Completion::ChildEnded { child: id("child:parcel#1"), outcome: outcome.clone().map(Payload::json) };
        let expected = heard(entries, [Effect::Deliver(completion)]);
        check(&with_child(), 70, hear(parcel(), 1, parcel_ended(outcome)), expected);
    }
}

#[test]
fn the_end_of_a_child_is_heard_once() {
    let over = [with_child(), vec![entry(3, 0, child_ended("child:parcel#1", Ok("2"))).heard(parcel(), 1)]].concat();
    check(&over, 70, hear(parcel(), 1, parcel_ended(Ok("2"))), of_no_concern());
    check(&over, 70, hear(parcel(), 2, parcel_ended(Err(timeout()))), of_no_concern());
}

#[test]
fn a_child_that_could_not_be_started_has_ended() {
    let entries = [entry(3, 70, child_ended("child:parcel#1", Err(card_refused())))];
    let completion = Completion::ChildEnded { child: id("child:parcel#1"), outcome: Err(card_refused()) };
    check(&with_child(), 70, hear(parcel(), 0, parcel_ended(Err(card_refused()))), heard(entries.clone(), [Effect::Deliver(completion)]));
    check(&[with_child(), entries.to_vec()].concat(), 70, hear(parcel(), 0, parcel_ended(Err(card_refused()))), of_no_concern());
}

#[test]
fn the_end_of_a_run_that_is_no_child_is_of_no_concern() {
    check(&with_child(), 70, hear(parent(), 1, parcel_ended(Ok("2"))), of_no_concern());
    check(&open(), 70, hear(parcel(), 1, parcel_ended(Ok("2"))), of_no_concern());
    check(&[], 70, hear(parcel(), 1, parcel_ended(Ok("2"))), of_no_concern());
    let over = [with_child(), vec![entry(3, 0, run_completed("18"))]].concat();
    check(&over, 70, hear(parcel(), 1, parcel_ended(Ok("2"))), of_no_concern());
    let detached = history([run_started(), detached_started("child:parcel#1", "parcel-1")]);
    check(&detached, 70, hear(parcel(), 1, parcel_ended(Ok("2"))), of_no_concern());
}

#[test]
fn a_run_waits_for_its_child_until_it_has_ended() {
    let state = |journal: &[Entry]| folded(journal).expect("a run");
    let waiting = [entry(1, 0, run_started()), entry(2, 0, child_started("child:parcel#1", "parcel-1")).leaving(0)];
    let run = state(&waiting);
    assert_eq!((run.status(), run.waits()), (Status::Waiting, vec![Wait::Child { run: other_run("parcel-1") }]));
    let over = [&waiting[..], &[entry(3, 0, child_ended("child:parcel#1", Ok("2")))]].concat();
    assert_eq!((state(&over).status(), state(&over).waits()), (Status::Running, vec![]), "a restart has to host it");
    let taken = decision([entry(4, 70, child_taken("child:parcel#1")).leaving(1)], [answer(Answer::TurnTaken)]);
    check(&over, 70, turn(70, [child_taken("child:parcel#1")], 1), Ok(taken));
    let missing = stale("there is no outcome of child:parcel#1 to be taken");
    check(&waiting, 70, turn(70, [child_taken("child:parcel#1")], 1), missing.clone());
    let told = [&over[..], &[entry(4, 0, child_taken("child:parcel#1"))]].concat();
    check(&told, 70, turn(70, [child_taken("child:parcel#1")], 1), missing);
    let again = turn(70, [child_started("child:parcel#1", "parcel-1")], 1);
    check(&told, 70, again, stale("child:parcel#1 is on record already"));
}

#[test]
fn a_run_that_does_not_wait_for_its_child_any_more_waits_for_something_else() {
    let left = entry(3, 0, timer_set("sleep#1", 1000)).leaving(0).abandoning([sleep("child:parcel#1")]);
    let asleep = [with_child(), vec![left]].concat();
    let over = [asleep.clone(), vec![entry(4, 0, child_ended("child:parcel#1", Ok("2")))]].concat();
    for journal in [asleep, over.clone()] {
        let run = folded(&journal).expect("a run");
        assert_eq!((run.status(), run.waits()), (Status::Waiting, vec![Wait::Timer { due_at: at(1000) }]));
    }
    check(&over, 70, turn(70, [child_taken("child:parcel#1")], 1), stale("there is no outcome of child:parcel#1 to be taken"));
}

#[test]
fn children_end_with_a_run_that_does_not_complete() {
    let origin = Origin { by: Some("run order-17".into()), why: Some("the run that started it has not completed".into()), command: None };
    let told = |seq| vec![(seq, parcel(), Message::CancelChild { origin: origin.clone() })];
    let undoing = [with_child(), vec![entry(3, 0, run_compensating(None))]].concat();
    assert_eq!(said(&undoing), told(2));
    assert_eq!(said(&[undoing, vec![entry(4, 0, run_failed(timeout()))]].concat()), [], "it was told before");
    assert_eq!(said(&[with_child(), vec![entry(3, 0, run_failed(timeout()))]].concat()), told(2));
    assert_eq!(said(&[with_child(), vec![entry(3, 0, run_completed("18"))]].concat()), []);
    let detached = history([run_started(), detached_started("child:parcel#1", "parcel-1"), run_failed(timeout())]);
    assert_eq!(said(&detached), []);
    let over = [with_child(), vec![entry(3, 0, child_ended("child:parcel#1", Ok("2"))), entry(4, 0, run_failed(timeout()))]].concat();
    assert_eq!(said(&over), []);
}

// Letters.

#[test]
fn a_step_that_is_poison_is_a_dead_letter() {
    let tenant = RunOptions { tenant: Some("acme".into()), ..RunOptions::default() };
    let journal = history([run_started_with(None, tenant), step_failed("charge#1", 1, after(1, poison()))]);
    let letter = Letter {
        about: LetterAbout::Step { run: run_id(), step: id("charge#1") },
        attempt: 1,
        tenant: Some("acme".into()),
        failure: after(1, poison()),
        payload: Payload::json("17"),
    };
    assert_eq!(said(&journal), [(1, EntityId::Letters(workflow("checkout")), Message::PostLetter(letter))]);
    assert_eq!(said(&history([run_started(), step_failed("charge#1", 1, card_refused())])), []);
}
