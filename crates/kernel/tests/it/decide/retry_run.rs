//! `RetryRun`: another life. What came before the cut is kept, what came after it is not, and what was unfinished begins again.

mod continued;
mod stages;

use super::*;
use steadfast_kernel::run::{How, Step};

fn from_step(step: &str) -> Command {
    Command::RetryRun(retry_from(RetryFrom::Step(id(step))))
}

fn from_start() -> Command {
    Command::RetryRun(retry_from(RetryFrom::Start))
}

/// `a#1` succeeded by entry 2, `charge#1` failed by entry 3, and with it the run.
fn failed() -> Vec<Entry> {
    history([run_started(), step_completed("a#1", 1, "1"), step_failed("charge#1", 1, timeout()), run_failed(timeout())])
}

/// The next entry of a history that is in its first life: another life.
fn life(seq: u64, retried: Retried) -> Entry {
    entry(seq, 70, Event::RunRetried(Box::new(retried))).in_epoch(2)
}

fn hosts(timers: impl IntoIterator<Item = Effect>) -> Vec<Effect> {
    timers.into_iter().chain([Effect::Close, Effect::Host, answer(Answer::Retried)]).collect()
}

/// The run begins again from there; the state after it.
#[track_caller]
fn retries(history: &[Entry], command: Command, retried: Retried) -> Run {
    retries_with(history, command, retried, [])
}

#[track_caller]
fn retries_with(history: &[Entry], command: Command, retried: Retried, timers: impl IntoIterator<Item = Effect>) -> Run {
    let next = life(history.len() as u64 + 1, retried);
    check(history, 70, command, Ok(decision([next.clone()], hosts(timers))));
    folded(&[history, &[next]].concat()).expect("a run")
}

fn steps(run: &Run) -> Vec<&str> {
    run.open().expect("an open run").steps.keys().map(StepId::as_str).collect()
}

#[test]
fn a_failed_run_begins_again_at_the_step_that_failed() {
    let run = retries(&failed(), retry_run(), retried(Some("charge#1"), 3, &["charge#1"]));
    assert_eq!((run.epoch, run.status(), steps(&run)), (2, Status::Running, vec!["a#1"]));
    assert_eq!(run.open().map(|open| open.in_flight), Some(1), "a restart has to host it");
}

#[test]
fn what_an_old_life_says_is_stale_and_the_new_one_goes_on() {
    let again = [failed(), vec![life(5, retried(Some("charge#1"), 3, &["charge#1"]))]].concat();
    check(&again, 80, turn(80, [step_completed("charge#1", 1, "18")], 0), stale("the run is in epoch 2, not 1"));
    let Command::TakeTurn(command) = turn(80, [step_completed("charge#1", 1, "18"), run_completed("18")], 0) else { unreachable!() };
    let entries = [entry(6, 80, step_completed("charge#1", 1, "18")).in_epoch(2), entry(7, 80, run_completed("18")).in_epoch(2).leaving(0)];
    let effects = [Effect::AnnounceEnd, answer(Answer::TurnTaken)];
    check(&again, 80, Command::TakeTurn(TakeTurn { epoch: 2, ..command }), Ok(decision(entries, effects)));
}

#[test]
fn a_failure_that_the_code_handled_is_not_where_it_failed() {
    let handled = [run_started(), step_failed("charge#1", 1, timeout()), step_completed("sorry#1", 1, "1"), run_failed(card_refused())];
    let run = retries(&history(handled), retry_run(), retried(None, 4, &[]));
    assert_eq!(steps(&run), ["charge#1", "sorry#1"], "where it stopped");
    let told_later = [run_started(), step_failed("charge#1", 1, timeout()), step_completed("sorry#1", 1, "1"), run_failed(timeout())];
    retries(&history(told_later), retry_run(), retried(Some("charge#1"), 2, &["charge#1", "sorry#1"]));
}

#[test]
fn a_step_and_what_came_after_it_begin_again() {
    let run = retries(&failed(), from_step("a#1"), retried(Some("a#1"), 2, &["a#1", "charge#1"]));
    assert_eq!(steps(&run), Vec::<&str>::new());
    let completed = history([run_started(), step_completed("a#1", 1, "1"), step_completed("b#1", 1, "2"), run_completed("3")]);
    let run = retries(&completed, from_step("b#1"), retried(Some("b#1"), 3, &["b#1"]));
    assert_eq!((run.status(), steps(&run)), (Status::Running, vec!["a#1"]));
}

#[test]
fn from_the_start_nothing_is_kept() {
    let run = retries(&failed(), from_start(), retried(None, 2, &["a#1", "charge#1"]));
    assert_eq!((steps(&run).len(), run.input), (0, Payload::json("17")));
}

#[test]
fn another_input_means_from_the_start() {
    let command = RetryRun { input: Some(Payload::json("19")), ..retry_from(RetryFrom::Failed) };
    let next = Retried { input: Some(Payload::json("19")), ..retried(None, 2, &["a#1", "charge#1"]) };
    let run = retries(&failed(), Command::RetryRun(command), next);
    assert_eq!((run.input, run.given), (Payload::json("19"), Payload::json("17")));
}

#[test]
fn an_output_is_supplied_in_place_of_an_execution() {
    let outputs = vec![(id("charge#1"), Payload::json("18")), (id("later#1"), Payload::json("7"))];
    let command = RetryRun { outputs: outputs.clone(), ..retry_from(RetryFrom::Failed) };
    let next = Retried { supplied: outputs.clone(), ..retried(Some("charge#1"), 3, &["charge#1"]) };
    let run = retries(&failed(), Command::RetryRun(command), next);
    assert_eq!(run.supplied, outputs.into_iter().collect());
}

#[test]
fn an_output_that_replaces_another_discards_what_came_of_it() {
    let outputs = vec![(id("a#1"), Payload::json("7"))];
    let command = RetryRun { outputs: outputs.clone(), ..retry_from(RetryFrom::Failed) };
    let next = Retried { supplied: outputs, ..retried(Some("charge#1"), 2, &["a#1", "charge#1"]) };
    retries(&failed(), Command::RetryRun(command), next);
}

#[test]
fn the_generation_rises_when_a_success_is_discarded() {
    let undo = |run: &Run| run.generations.key(&run.id, &id("a#1").undo());
    let run = retries(&failed(), from_start(), retried(None, 2, &["a#1", "charge#1"]));
    let key = |step: &str| run.generations.key(&run.id, &id(step));
    assert_eq!([key("a#1"), key("charge#1"), key("b#1")], ["order-17/a#1/2", "order-17/charge#1/1", "order-17/b#1/1"]);
    assert_eq!(undo(&run), "order-17/a#1/undo/2", "what is done once more is undone once more");
    let again = [failed(), vec![life(5, retried(None, 2, &["a#1", "charge#1"]))]].concat();
    let thrice = [again, history([]), vec![entry(6, 70, step_completed("a#1", 1, "1")).in_epoch(2)]].concat();
    let thrice = [thrice, vec![entry(7, 70, run_failed(timeout())).in_epoch(2), entry(8, 70, run_retried(None, 2, &["a#1"])).in_epoch(3)]];
    let run = folded(&thrice.concat()).expect("a run");
    assert_eq!(run.generations.get(&id("a#1")), 3);
}

#[test]
fn an_undone_step_is_never_kept() {
    let undone = history([
        run_started(),
        step_completed("a#1", 1, "1"),
        undoable_completed("b#1", 1, "2"),
        step_completed("c#1", 1, "3"),
        step_failed("charge#1", 1, timeout()),
        run_compensating(Some(timeout())),
        undo_completed("b#1", 1),
        run_failed(timeout()),
    ]);
    let run = retries(&undone, retry_run(), retried(Some("charge#1"), 3, &["b#1", "c#1", "charge#1"]));
    assert_eq!((steps(&run), run.has_undoable()), (vec!["a#1"], false));
    assert_eq!(run.generations.get(&id("b#1")), 2);
}

#[test]
fn what_was_not_undone_is_kept_and_can_still_be_undone() {
    let half = history([
        run_started_with(None, manual()),
        undoable_completed("a#1", 1, "1"),
        undoable_completed("b#1", 1, "2"),
        run_compensating(Some(timeout())),
        undo_completed("b#1", 1),
        Event::RunInterrupted,
    ]);
    let run = retries(&half, retry_run(), retried(None, 3, &["b#1"]));
    assert_eq!((steps(&run), run.has_undoable(), run.status()), (vec!["a#1"], true, Status::Running));
}

#[test]
fn what_the_code_waited_for_when_it_was_called_off_is_waited_for_again() {
    let cancelled = history([
        run_started(),
        retry_scheduled("charge#1", 2, 3, 1000),
        timer_set("sleep#1", 2000),
        signal_awaited_until("signal:approve#1", "approve", 3000),
        cancel_requested(),
        run_compensating(None),
        Event::RunCancelled,
    ]);
    let timers = [arm(sleep("sleep#1"), 2000, 3), arm(sleep("signal:approve#1"), 3000, 4)];
    let run = retries_with(&cancelled, retry_run(), retried(None, 6, &["charge#1"]), timers);
    assert_eq!((steps(&run).len(), run.is_called_off()), (0, false));
    let open = run.open().expect("an open run");
    assert!(open.sleeps[&id("sleep#1")].fired.is_none() && open.awaits[&id("signal:approve#1")].is_open());
}

#[test]
fn what_the_end_of_the_code_left_behind_is_waited_for_again() {
    let end = entry(4, 0, run_failed(card_refused())).leaving(0).abandoning([sleep("sleep#1"), retry("charge#1")]);
    let journal = [history([run_started(), timer_set("sleep#1", 2000), retry_scheduled("charge#1", 2, 3, 1000)]), vec![end]].concat();
    retries_with(&journal, retry_run(), retried(None, 4, &["charge#1"]), [arm(sleep("sleep#1"), 2000, 2)]);
}

#[test]
fn the_loser_of_a_race_stays_abandoned() {
    let won = entry(4, 0, step_completed("fast#1", 1, "1"))
        .leaving(1)
        .abandoning([sleep("sleep#1"), retry("slow#1")]);
    let raced = [history([run_started(), timer_set("sleep#1", 2000), retry_scheduled("slow#1", 2, 3, 1000)]), vec![won]].concat();
    let journal = [raced, vec![entry(5, 0, step_failed("charge#1", 1, timeout())), entry(6, 0, run_failed(timeout()))]].concat();
    let run = retries(&journal, retry_run(), retried(Some("charge#1"), 5, &["charge#1"]));
    assert_eq!((steps(&run), run.waits()), (vec!["fast#1", "slow#1"], vec![]));
}

#[test]
fn a_waiting_run_begins_its_unfinished_steps_again_and_goes_on_with_the_rest() {
    let waiting = [
        entry(1, 0, run_started()),
        entry(2, 0, step_completed("a#1", 1, "1")),
        entry(3, 0, timer_set("sleep#1", 2000)),
        entry(4, 0, retry_scheduled("charge#1", 2, 3, 1000)).leaving(0),
    ];
    let timers = [disarm(retry("charge#1")), disarm(sleep("sleep#1")), arm(sleep("sleep#1"), 2000, 3)];
    let run = retries_with(&waiting, retry_run(), retried(None, 5, &["charge#1"]), timers);
    assert_eq!((steps(&run), run.status()), (vec!["a#1"], Status::Running));
    assert_eq!(run.generations.get(&id("charge#1")), 1, "whoever receives it can tell that it is the same work");
    let again = [&waiting[..], &[life(5, retried(None, 5, &["charge#1"]))]].concat();
    check(&again, 9000, fire(retry("charge#1"), 4), superseded());
    check(&again, 9000, fire(sleep("sleep#1"), 3), Ok(decision([], [deliver_timer("sleep#1")])));
}

#[test]
fn a_step_in_doubt_stays_so_unless_somebody_names_it_or_knows_better() {
    let question = signal_awaited("pay#1/in-doubt#1", "in-doubt:pay#1");
    let doubted = [entry(1, 0, run_started_with(None, manual())), entry(2, 0, step_started("pay#1", 1)), entry(3, 0, question).leaving(0)];
    let run = retries(&doubted, retry_run(), retried(None, 4, &[]));
    assert_eq!((steps(&run), run.waits()), (vec!["pay#1"], vec![Wait::InDoubt { step: id("pay#1"), attempt: 1 }]));
    let run = retries(&doubted, Command::RetryRun(retry_from(RetryFrom::Step(id("pay#1")))), retried(Some("pay#1"), 4, &["pay#1"]));
    assert_eq!((steps(&run).len(), run.waits()), (0, vec![]));
    let answered = [&doubted[..], &[entry(4, 0, signal_received("in-doubt:pay#1", Some("m-1"))), entry(5, 0, Event::RunInterrupted)]];
    let run = retries(&answered.concat(), retry_run(), retried(None, 6, &[]));
    let open = run.open().expect("an open run");
    assert!(open.signals.is_empty() && open.signal_ids.is_empty(), "an answer is not kept for a later question");
}

#[test]
fn a_step_that_is_called_as_a_sleep_is_has_nothing_to_do_with_it() {
    let events = [run_started(), timer_set("sleep#1", 10), timer_fired("sleep#1"), retry_scheduled("sleep#1", 2, 3, 10)];
    let journal = history(events.into_iter().chain([step_completed("a#1", 1, "1"), run_failed(card_refused())]));
    let run = retries(&journal, retry_run(), retried(None, 6, &["sleep#1"]));
    let open = run.open().expect("an open run");
    assert_eq!(open.sleeps[&id("sleep#1")].fired, Some(3), "the code was told, and went on");
    assert!(!open.steps.contains_key(&id("sleep#1")));
}

#[test]
fn a_signal_whose_taking_is_discarded_has_to_be_sent_again() {
    let taken = history([
        run_started(),
        signal_received("approve", Some("m-1")),
        signal_received("other", Some("m-2")),
        step_completed("a#1", 1, "1"),
        signal_awaited("signal:approve#1", "approve"),
        signal_taken("signal:approve#1", 2),
        step_failed("charge#1", 1, timeout()),
        run_failed(timeout()),
    ]);
    let kept = retries(&taken, retry_run(), retried(Some("charge#1"), 7, &["charge#1"]));
    assert_eq!(kept.open().map(|open| open.signal_ids.len()), Some(2));
    let run = retries(&taken, from_step("a#1"), retried(Some("a#1"), 4, &["a#1", "charge#1"]));
    let open = run.open().expect("an open run");
    assert_eq!(open.signals, [(3, "other".to_string())].into(), "what was not taken is still there");
    assert_eq!(open.signal_ids, [("m-2".to_string(), 3)].into(), "and the same id may be sent again");
    assert!(open.awaits.is_empty());
}

#[test]
fn a_wait_that_was_asked_for_before_the_cut_is_open_again() {
    let taken = history([
        run_started(),
        signal_awaited("signal:approve#1", "approve"),
        signal_received("approve", None),
        step_completed("a#1", 1, "1"),
        signal_taken("signal:approve#1", 3),
        run_failed(timeout()),
    ]);
    let run = retries(&taken, from_step("a#1"), retried(Some("a#1"), 4, &["a#1"]));
    let open = run.open().expect("an open run");
    assert!(open.awaits[&id("signal:approve#1")].is_open() && open.signals.is_empty());
}

#[test]
fn the_deadline_begins_again() {
    let failed = history([run_started_until(9000), step_failed("charge#1", 1, timeout()), run_failed(timeout())]);
    let timers = [arm(TimerName::Deadline, 9070, 4)];
    retries_with(&failed, retry_run(), retried(Some("charge#1"), 2, &["charge#1"]), timers);
    let again = [failed, vec![life(4, retried(Some("charge#1"), 2, &["charge#1"]))]].concat();
    check(&again, 9070, fire(TimerName::Deadline, 1), superseded());
    let ended = entry(5, 9070, run_failed(deadline_exceeded())).in_epoch(2).leaving(0);
    let effects = [disarm(TimerName::Deadline), Effect::Close, Effect::AnnounceEnd];
    check(&again, 9070, fire(TimerName::Deadline, 4), Ok(decision([ended], effects)));
}

#[test]
fn an_interrupted_run_goes_on_with_the_time_that_was_left() {
    let interrupted = [
        entry(1, 0, run_started_with(Some(9000), manual())),
        entry(2, 0, timer_set("sleep#1", 2000)).leaving(1),
        entry(3, 20, Event::RunInterrupted).leaving(0),
    ];
    let timers = [arm(sleep("sleep#1"), 2050, 2), arm(TimerName::Deadline, 9070, 4)];
    retries_with(&interrupted, retry_run(), retried(None, 4, &[]), timers);
}

#[test]
fn a_run_that_had_ended_asks_for_its_slots_again() {
    let failed = history([
        run_started_with(None, limited(&["a"])),
        slot_acquired("a"),
        step_failed("charge#1", 1, timeout()),
        run_failed(timeout()),
    ]);
    let next = life(5, retried(Some("charge#1"), 3, &["charge#1"]));
    check(&failed, 70, retry_run(), Ok(decision([next.clone()], [Effect::Close, answer(Answer::Retried)])));
    let journal = [failed, vec![next]].concat();
    assert_eq!(said(&journal), [(3, limit_id("a"), Message::RequestSlot { epoch: 2, slots: 2 })]);
    assert_eq!(folded(&journal).map(|run| run.status()), Some(Status::Ready));
}

#[test]
fn a_run_that_had_not_ended_keeps_its_slots() {
    let waiting = [
        entry(1, 0, run_started_with(None, limited(&["a"]))),
        entry(2, 0, slot_acquired("a")),
        entry(3, 0, retry_scheduled("charge#1", 2, 3, 1000)).leaving(0),
    ];
    retries_with(&waiting, retry_run(), retried(None, 4, &["charge#1"]), [disarm(retry("charge#1"))]);
    let journal = [&waiting[..], &[life(4, retried(None, 4, &["charge#1"]))]].concat();
    assert_eq!(said(&journal), []);
    let over = [journal, vec![entry(5, 0, run_failed(timeout())).in_epoch(2)]].concat();
    assert_eq!(said(&over), [(2, limit_id("a"), Message::ReleaseSlot { epoch: 1 })], "the one that it asked for in its first life");
}

#[test]
fn a_child_that_is_discarded_is_told_to_end() {
    let waiting = [
        entry(1, 0, run_started()),
        entry(2, 0, step_completed("a#1", 1, "1")),
        entry(3, 0, child_started("child:parcel#1", "parcel-1")).leaving(0),
    ];
    let run = retries(&waiting, from_step("a#1"), retried(Some("a#1"), 2, &["a#1", "child:parcel#1"]));
    assert_eq!(run.generations.get(&id("child:parcel#1")), 2, "another run takes its place");
    let journal = [&waiting[..], &[life(4, retried(Some("a#1"), 2, &["a#1", "child:parcel#1"]))]].concat();
    let [(2, to, Message::CancelChild { .. })] = &said(&journal)[..] else { panic!("{:?}", said(&journal)) };
    assert_eq!(*to, other_run("parcel-1").into());
    let late = Message::ChildEnded { child: id("child:parcel#1"), outcome: Err(timeout()) };
    check(&journal, 80, hear(other_run("parcel-1"), 1, late), Ok(decision([], [answer(Answer::Heard)])));
}

#[test]
fn a_child_that_is_kept_is_still_waited_for() {
    let waiting = [
        entry(1, 0, run_started()),
        entry(2, 0, child_started("child:parcel#1", "parcel-1")),
        entry(3, 0, retry_scheduled("charge#1", 2, 3, 1000)).leaving(0),
    ];
    let run = retries_with(&waiting, retry_run(), retried(None, 4, &["charge#1"]), [disarm(retry("charge#1"))]);
    assert_eq!((run.generations.get(&id("child:parcel#1")), run.waits()), (1, vec![Wait::Child { run: other_run("parcel-1") }]));
}

#[test]
fn a_failed_child_is_started_anew() {
    let failed = history([
        run_started(),
        child_started("child:parcel#1", "parcel-1"),
        child_ended("child:parcel#1", Err(timeout())),
        child_taken("child:parcel#1"),
        run_failed(timeout()),
    ]);
    let run = retries(&failed, retry_run(), retried(Some("child:parcel#1"), 2, &["child:parcel#1"]));
    assert_eq!(run.generations.get(&id("child:parcel#1")), 2);
}

#[test]
fn the_outcome_of_a_child_is_told_again_if_its_telling_is_discarded() {
    let journal = history([
        run_started(),
        child_started("child:parcel#1", "parcel-1"),
        step_completed("a#1", 1, "1"),
        child_ended("child:parcel#1", Ok("2")),
        child_taken("child:parcel#1"),
        run_completed("3"),
    ]);
    let run = retries(&journal, from_step("a#1"), retried(Some("a#1"), 3, &["a#1"]));
    let child = &run.open().expect("an open run").children[&id("child:parcel#1")];
    assert!(child.ended && child.taken.is_none());
    assert_eq!((run.status(), run.is_waiting()), (Status::Running, false));
}

#[test]
fn a_child_of_which_nothing_more_can_come_is_started_anew() {
    let begun = || [run_started_with(None, manual()), child_started("child:parcel#1", "parcel-1")];
    let told_to_end = history(begun().into_iter().chain([run_failed(card_refused())]));
    retries(&told_to_end, retry_run(), retried(None, 3, &["child:parcel#1"]));
    assert_eq!(said(&[told_to_end, vec![life(4, retried(None, 3, &["child:parcel#1"]))]].concat()), [], "it was told before");
    let left_behind = history(begun().into_iter().chain([step_completed("a#1", 1, "1"), run_completed("1")]));
    retries(&left_behind, from_step("a#1"), retried(Some("a#1"), 3, &["a#1", "child:parcel#1"]));
    let ended_by_it = [run_compensating(None), child_ended("child:parcel#1", Err(timeout())), Event::RunInterrupted];
    let ended_by_it = history(begun().into_iter().chain(ended_by_it));
    retries(&ended_by_it, retry_run(), retried(None, 3, &["child:parcel#1"]));
    let was_faster = [run_compensating(None), child_ended("child:parcel#1", Ok("2")), Event::RunInterrupted];
    let was_faster = history(begun().into_iter().chain(was_faster));
    retries(&was_faster, retry_run(), retried(None, 3, &[]));
}

#[test]
fn a_child_that_nobody_waits_for_is_left_alone() {
    let failed = history([run_started(), detached_started("child:parcel#1", "parcel-1"), run_failed(card_refused())]);
    let run = retries(&failed, retry_run(), retried(None, 3, &[]));
    assert_eq!(run.open().map(|open| open.children.len()), Some(1));
}

#[test]
fn the_letters_of_steps_that_begin_again_are_settled() {
    let failed = history([run_started(), step_failed("charge#1", 1, poison()), run_failed(poison())]);
    let run = retries(&failed, retry_run(), retried(Some("charge#1"), 2, &["charge#1"]));
    assert!(run.letters.is_empty());
    let settled = (2, EntityId::Letters(workflow("checkout")), Message::SettleLetter { step: id("charge#1"), after: run.numbered_from() });
    assert_eq!(said(&[failed, vec![life(4, retried(Some("charge#1"), 2, &["charge#1"]))]].concat()), [settled]);
}

#[test]
fn a_run_is_retried_when_it_waits_stands_or_has_ended() {
    let refused = |status, what_to_do: &'static str| Err(Refusal::WrongStatus { run: run_id(), status, what_to_do: what_to_do.into() });
    let not_now = "retry it when it waits or has ended, or cancel it first";
    check(&open(), 70, retry_run(), refused(Status::Running, not_now));
    check(&compensating(), 70, retry_run(), refused(Status::Compensating, not_now));
    check(&ready(), 70, retry_run(), refused(Status::Ready, "it has not begun: cancel it, or wait for its slot"));
    let paused = history([run_started(), run_paused()]);
    check(&paused, 70, retry_run(), refused(Status::Paused, "resume it, or cancel it, before it is retried"));
    let nothing_failed = "it has no failed step: say from which step, or from the start, it is to be retried";
    check(&completed(), 70, retry_run(), refused(Status::Completed, nothing_failed));
    check(&[], 70, retry_run(), Err(Refusal::RunNotFound { run: run_id() }));
    retries(&completed(), from_start(), retried(None, 2, &[]));
    let paused = [run_started_with(None, manual()), run_paused(), Event::RunInterrupted];
    let run = retries(&history(paused), retry_run(), retried(None, 4, &[]));
    assert_eq!(run.status(), Status::Running);
}

#[test]
fn a_run_whose_code_cannot_go_on_counts_as_one_that_waits() {
    let blocked = || Command::RetryRun(RetryRun { blocked: true, ..retry_from(RetryFrom::Failed) });
    retries(&open(), blocked(), retried(None, 2, &[]));
    let not_now = "retry it when it waits or has ended, or cancel it first";
    check(
        &compensating(),
        70,
        blocked(),
        Err(Refusal::WrongStatus { run: run_id(), status: Status::Compensating, what_to_do: not_now.into() }),
    );
}

#[test]
fn a_step_that_is_not_on_record_is_not_found() {
    let not_found = |step: &str| Err(Refusal::StepNotFound { run: run_id(), step: id(step) });
    check(&failed(), 70, from_step("b#1"), not_found("b#1"));
    let undone = [compensating(), vec![entry(4, 0, undo_completed("charge#1", 1)), entry(5, 0, run_failed(timeout()))]].concat();
    check(&undone, 70, from_step("charge#1/undo"), not_found("charge#1/undo"));
    let again = [failed(), vec![life(5, retried(None, 2, &["a#1", "charge#1"])), entry(6, 0, run_failed(timeout())).in_epoch(2)]].concat();
    check(&again, 70, from_step("a#1"), not_found("a#1"));
}

#[test]
fn the_same_command_again_is_answered() {
    let command = || Command::RetryRun(RetryRun { origin: ada_with("c-1"), ..retry_from(RetryFrom::Failed) });
    let once = life(5, Retried { origin: ada_with("c-1"), ..retried(Some("charge#1"), 3, &["charge#1"]) });
    let answered = || Ok(decision([], [answer(Answer::Retried)]));
    check(&[failed(), vec![once.clone()]].concat(), 70, command(), answered());
    let failed_again = vec![once, entry(6, 0, run_failed(timeout())).in_epoch(2)];
    check(&[failed(), failed_again].concat(), 70, command(), answered());
}

#[test]
fn a_run_can_be_retried_again() {
    let once = [failed(), vec![life(5, retried(Some("charge#1"), 3, &["charge#1"]))]].concat();
    let events = [retry_scheduled("charge#1", 2, 3, 10), step_failed("charge#1", 2, timeout()), run_failed(timeout())];
    let twice = (6..).zip(events).map(|(seq, event)| entry(seq, 0, event).in_epoch(2));
    let twice = [once, twice.collect()].concat();
    let next = entry(9, 70, run_retried(Some("charge#1"), 7, &["charge#1"])).in_epoch(3);
    check(&twice, 70, retry_run(), Ok(decision([next.clone()], hosts([]))));
    let run = folded(&[twice, vec![next]].concat()).expect("a run");
    assert_eq!((run.epoch, steps(&run)), (3, vec!["a#1"]));
    assert_eq!(run.open().map(|open| open.steps[&id("a#1")].clone()), Some(Step::Done { at: 2, how: How::Completed }));
}

#[test]
fn a_run_whose_attempt_has_begun_after_its_delay_is_not_retried() {
    let what_to_do = "an attempt is in flight: retry it when that has ended, or cancel it first";
    let refused = || Err(Refusal::WrongStatus { run: run_id(), status: Status::Running, what_to_do: what_to_do.into() });
    for from in [RetryFrom::Failed, RetryFrom::Start, RetryFrom::Step(id("charge#1"))] {
        check(&in_backoff(), 70, Command::RetryRun(RetryRun { in_flight: true, ..retry_from(from) }), refused());
    }
}
