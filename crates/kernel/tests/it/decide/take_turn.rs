//! `TakeTurn`: what a turn delivered is recorded whole, or refused whole.

use super::*;

#[test]
fn a_run_that_does_not_exist_is_not_found() {
    let not_found = || Err(Refusal::RunNotFound { run: run_id() });
    check(&[], 70, turn(70, [run_completed("18")], 0), not_found());
    check(&[], 70, timed_out("charge#1", 1, &policy()), not_found());
    check(&[], 70, fire(TimerName::Deadline, 1), not_found());
}

#[test]
fn an_ended_run_takes_no_turn() {
    check(&completed(), 70, turn(70, [step_completed("charge#1", 1, "18")], 0), ended());
    check(&completed(), 70, turn(70, [], 0), ended());
    check(&history([run_started(), run_failed(timeout())]), 70, turn(70, [run_completed("18")], 0), ended());
}

#[test]
fn what_was_delivered_is_recorded_in_order_with_the_times_of_delivery() {
    let Command::TakeTurn(mut command) = turn(30, [step_completed("a#1", 1, "1"), step_failed("b#1", 1, card_refused())], 2) else {
        unreachable!()
    };
    command.proposals[1].at = at(40);
    let entries = [entry(2, 30, step_completed("a#1", 1, "1")), entry(3, 40, step_failed("b#1", 1, card_refused())).leaving(2)];
    check(&open(), 99, Command::TakeTurn(command), Ok(decision(entries, [answer(Answer::TurnTaken)])));
}

#[test]
fn only_the_last_entry_says_how_many_attempts_are_in_flight() {
    let events = || [step_completed("a#1", 1, "1"), step_completed("b#1", 1, "2"), step_completed("c#1", 1, "3")];
    let [a, b, c] = events();
    let entries = [entry(2, 30, a), entry(3, 30, b), entry(4, 30, c).leaving(7)];
    check(&open(), 30, turn(30, events(), 7), Ok(decision(entries, [answer(Answer::TurnTaken)])));
}

#[test]
fn a_turn_without_proposals_writes_nothing() {
    check(&open(), 70, turn(70, [], 3), Ok(decision([], [answer(Answer::TurnTaken)])));
}

#[test]
fn a_sleep_is_armed_by_the_entry_that_sets_it() {
    let entries = [entry(2, 70, step_completed("a#1", 1, "1")), entry(3, 70, timer_set("sleep#1", 900)).leaving(0)];
    let effects = [arm(sleep("sleep#1"), 900, 3), answer(Answer::TurnTaken)];
    check(&open(), 70, turn(70, [step_completed("a#1", 1, "1"), timer_set("sleep#1", 900)], 0), Ok(decision(entries, effects)));
}

#[test]
fn a_sleep_that_has_fired_is_disarmed() {
    let effects = [disarm(sleep("sleep#1")), answer(Answer::TurnTaken)];
    let expected = decision([entry(3, 1000, timer_fired("sleep#1")).leaving(1)], effects);
    check(&asleep(), 1000, turn(1000, [timer_fired("sleep#1")], 1), Ok(expected));
}

#[test]
fn a_step_that_has_its_outcome_is_disarmed_if_it_was_in_backoff() {
    for outcome in [|| step_completed("charge#1", 2, "18"), || step_failed("charge#1", 2, timeout())] {
        let effects = [disarm(retry("charge#1")), answer(Answer::TurnTaken)];
        check(&in_backoff(), 1000, turn(1000, [outcome()], 1), Ok(decision([entry(3, 1000, outcome()).leaving(1)], effects)));
    }
}

#[test]
fn an_end_disarms_every_armed_timer() {
    for end in [|| run_completed("18"), || run_failed(timeout())] {
        let timers = [disarm(retry("charge#1")), disarm(sleep("sleep#1")), disarm(TimerName::Deadline)];
        let effects = [timers.as_slice(), &[Effect::AnnounceEnd, answer(Answer::TurnTaken)]].concat();
        check(&with_every_timer(), 70, turn(70, [end()], 0), Ok(decision([entry(4, 70, end()).leaving(0)], effects)));
    }
}

#[test]
fn a_turn_that_sets_a_sleep_and_ends_arms_nothing() {
    let entries = [entry(2, 70, timer_set("sleep#1", 900)), entry(3, 70, run_completed("18")).leaving(0)];
    let effects = [Effect::AnnounceEnd, answer(Answer::TurnTaken)];
    check(&open(), 70, turn(70, [timer_set("sleep#1", 900), run_completed("18")], 0), Ok(decision(entries, effects)));
}

#[test]
fn a_turn_that_settles_and_ends_disarms_each_timer_once() {
    let events = || [step_completed("charge#1", 2, "18"), timer_fired("sleep#1"), run_completed("18")];
    let [step, fired, end] = events();
    let entries = [entry(4, 2000, step), entry(5, 2000, fired), entry(6, 2000, end).leaving(0)];
    let effects =
        [disarm(retry("charge#1")), disarm(sleep("sleep#1")), disarm(TimerName::Deadline), Effect::AnnounceEnd, answer(Answer::TurnTaken)];
    check(&with_every_timer(), 2000, turn(2000, events(), 0), Ok(decision(entries, effects)));
}

#[test]
fn something_after_an_end_is_refused() {
    let events = [run_completed("18"), step_completed("charge#1", 1, "18")];
    check(&open(), 70, turn(70, events, 0), stale("something follows the end"));
    check(&open(), 70, turn(70, [run_completed("18"), run_completed("18")], 0), stale("something follows the end"));
}

#[test]
fn the_same_step_or_sleep_twice_in_a_turn_is_refused() {
    let twice = [step_completed("charge#1", 1, "18"), step_failed("charge#1", 1, timeout())];
    check(&open(), 70, turn(70, twice, 0), stale("charge#1 is in the turn twice"));
    check(&open(), 70, turn(70, [timer_set("sleep#1", 900), timer_set("sleep#1", 901)], 0), stale("sleep#1 is in the turn twice"));
    check(&asleep(), 1000, turn(1000, [timer_fired("sleep#1"), timer_fired("sleep#1")], 0), stale("sleep#1 is in the turn twice"));
}

#[test]
fn a_step_and_a_sleep_of_the_same_name_are_two_things() {
    let entries = [entry(2, 70, step_completed("sleep#1", 1, "18")), entry(3, 70, timer_set("sleep#1", 900)).leaving(0)];
    let effects = [arm(sleep("sleep#1"), 900, 3), answer(Answer::TurnTaken)];
    check(&open(), 70, turn(70, [step_completed("sleep#1", 1, "18"), timer_set("sleep#1", 900)], 0), Ok(decision(entries, effects)));
}

#[test]
fn a_retry_cannot_be_proposed_in_a_turn() {
    let proposed = turn(70, [retry_scheduled("charge#1", 2, 3, 1000)], 0);
    check(&open(), 70, proposed, stale("a turn cannot propose RETRY_SCHEDULED"));
}

#[test]
fn a_second_start_cannot_be_proposed_in_a_turn() {
    check(&open(), 70, turn(70, [run_started()], 0), stale("a turn cannot propose RUN_STARTED"));
}

#[test]
fn an_outcome_of_any_other_attempt_than_the_one_to_come_is_stale() {
    check(&open(), 70, turn(70, [step_completed("charge#1", 2, "18")], 0), stale("charge#1 is at attempt 1, not 2"));
    check(&in_backoff(), 70, turn(70, [step_completed("charge#1", 1, "18")], 0), stale("charge#1 is at attempt 2, not 1"));
    check(&in_backoff(), 70, turn(70, [step_failed("charge#1", 3, timeout())], 0), stale("charge#1 is at attempt 2, not 3"));
}

#[test]
fn an_outcome_of_a_step_that_has_one_is_stale() {
    let done = history([run_started(), step_completed("charge#1", 1, "18")]);
    check(&done, 70, turn(70, [step_completed("charge#1", 1, "18")], 0), stale("charge#1 has its outcome already"));
    check(&done, 70, turn(70, [step_failed("charge#1", 2, timeout())], 0), stale("charge#1 has its outcome already"));
}

#[test]
fn a_sleep_is_set_once_and_fires_once() {
    let fired = history([run_started(), timer_set("sleep#1", 10), timer_fired("sleep#1")]);
    check(&open(), 70, turn(70, [timer_fired("sleep#1")], 0), stale("sleep#1 was never set"));
    check(&asleep(), 70, turn(70, [timer_set("sleep#1", 900)], 0), stale("sleep#1 is set already"));
    check(&fired, 70, turn(70, [timer_set("sleep#1", 900)], 0), stale("sleep#1 is set already"));
    check(&fired, 70, turn(70, [timer_fired("sleep#1")], 0), stale("sleep#1 has fired already"));
}

#[test]
fn a_turn_of_another_epoch_is_stale() {
    for epoch in [0, 2] {
        let Command::TakeTurn(command) = turn(70, [run_completed("18")], 0) else { unreachable!() };
        let why = format!("the run is in epoch 1, not {epoch}");
        check(&open(), 70, Command::TakeTurn(TakeTurn { epoch, ..command }), stale(&why));
    }
}

#[test]
fn one_bad_proposal_refuses_the_whole_turn() {
    let events = [step_completed("a#1", 1, "1"), timer_set("sleep#1", 900), step_completed("b#1", 2, "2"), run_completed("18")];
    check(&open(), 70, turn(70, events, 0), stale("b#1 is at attempt 1, not 2"));
}

#[test]
fn a_signal_is_taken_once_in_a_turn() {
    let two_wait = history([
        run_started(),
        signal_awaited("left/signal:approve#1", "approve"),
        signal_awaited("right/signal:approve#1", "approve"),
        signal_received("approve", None),
    ]);
    let both = [signal_taken("left/signal:approve#1", 4), signal_taken("right/signal:approve#1", 4)];
    check(&two_wait, 70, turn(70, both, 0), stale("signal 4 is in the turn twice"));
}

#[test]
fn a_wait_is_over_once_in_a_turn() {
    let arrived = [awaiting_until(), vec![entry(3, 0, signal_received("approve", None))]].concat();
    let (taken, fired) = (signal_taken("signal:approve#1", 3), timer_fired("signal:approve#1"));
    for events in [[taken.clone(), fired.clone()], [fired, taken]] {
        check(&arrived, 1000, turn(1000, events, 0), stale("signal:approve#1 is in the turn twice"));
    }
}

#[test]
fn an_attempt_does_not_start_after_its_outcome() {
    let events = [step_completed("charge#1", 1, "18"), step_started("charge#1", 1)];
    check(&open(), 70, turn(70, events, 0), stale("charge#1 is in the turn twice"));
}

#[test]
fn what_is_asked_for_and_abandoned_in_one_turn_is_not_waited_for() {
    let asked = [
        (timer_set("sleep#1", 900), sleep("sleep#1")),
        (signal_awaited_until("signal:approve#1", "approve", 900), sleep("signal:approve#1")),
    ];
    for (event, name) in asked {
        let entries = [entry(2, 70, event.clone()).leaving(1).abandoning([name.clone()])];
        let effects = [arm(name.clone(), 900, 2), disarm(name.clone()), answer(Answer::TurnTaken)];
        check(&open(), 70, turn_abandoning(70, [event], 1, [name]), Ok(decision(entries.clone(), effects)));
        let run = folded(&[open(), entries.into()].concat()).expect("a run");
        assert_eq!((run.waits(), run.timers()), (vec![], vec![]));
    }
}

#[test]
fn a_wait_without_an_end_arms_nothing() {
    let event = || signal_awaited("signal:approve#1", "approve");
    check(&open(), 70, turn(70, [event()], 0), Ok(decision([entry(2, 70, event()).leaving(0)], [answer(Answer::TurnTaken)])));
}

#[test]
fn a_wait_with_an_end_is_armed_by_the_entry_that_asks() {
    let events = || [step_completed("a#1", 1, "1"), signal_awaited_until("signal:approve#1", "approve", 900)];
    let [step, wait] = events();
    let entries = [entry(2, 70, step), entry(3, 70, wait).leaving(0)];
    let effects = [arm(sleep("signal:approve#1"), 900, 3), answer(Answer::TurnTaken)];
    check(&open(), 70, turn(70, events(), 0), Ok(decision(entries, effects)));
}

#[test]
fn taking_a_signal_disarms_its_wait() {
    let arrived = [awaiting_until(), vec![entry(3, 0, signal_received("approve", None))]].concat();
    let effects = [disarm(sleep("signal:approve#1")), answer(Answer::TurnTaken)];
    let expected = decision([entry(4, 70, signal_taken("signal:approve#1", 3)).leaving(1)], effects);
    check(&arrived, 70, turn(70, [signal_taken("signal:approve#1", 3)], 1), Ok(expected));
}

#[test]
fn a_signal_that_came_early_is_taken_in_the_turn_that_asks_for_it() {
    let early = history([run_started(), signal_received("approve", None)]);
    let events = || [signal_awaited_until("signal:approve#1", "approve", 900), signal_taken("signal:approve#1", 2)];
    let [asked, taken] = events();
    let entries = [entry(3, 70, asked), entry(4, 70, taken).leaving(1)];
    let effects = [arm(sleep("signal:approve#1"), 900, 3), disarm(sleep("signal:approve#1")), answer(Answer::TurnTaken)];
    check(&early, 70, turn(70, events(), 1), Ok(decision(entries, effects)));
}

#[test]
fn only_a_signal_of_the_name_that_is_there_can_be_taken() {
    let other = [awaiting(), vec![entry(3, 0, signal_received("another", None))]].concat();
    let take = |signal| turn(70, [signal_taken("signal:approve#1", signal)], 0);
    check(&other, 70, take(3), stale("signal 3 is another, not approve"));
    check(&other, 70, take(4), stale("there is no signal 4 to be taken"));
    check(&other, 70, take(1), stale("there is no signal 1 to be taken"));
    let early = history([run_started(), signal_received("another", None)]);
    let asked_and_taken = |signal| turn(70, [signal_awaited("signal:approve#1", "approve"), signal_taken("signal:approve#1", signal)], 0);
    check(&early, 70, asked_and_taken(2), stale("signal 2 is another, not approve"));
    check(&early, 70, asked_and_taken(3), stale("there is no signal 3 to be taken"));
}

#[test]
fn only_somebody_who_asked_takes_a_signal() {
    let arrived = history([run_started(), signal_received("approve", None)]);
    let never_asked = stale("signal:approve#1 was never asked for");
    check(&arrived, 70, turn(70, [signal_taken("signal:approve#1", 2)], 0), never_asked.clone());
    let other_asks = [signal_awaited("signal:approve#2", "approve"), signal_taken("signal:approve#1", 2)];
    check(&arrived, 70, turn(70, other_asks, 0), never_asked.clone());
    let the_wrong_way_round = [signal_taken("signal:approve#1", 2), signal_awaited("signal:approve#1", "approve")];
    check(&arrived, 70, turn(70, the_wrong_way_round, 0), never_asked);
}

#[test]
fn a_signal_is_taken_once() {
    let taken = history([
        run_started(),
        signal_received("approve", None),
        signal_awaited("signal:approve#1", "approve"),
        signal_taken("signal:approve#1", 2),
        signal_awaited("signal:approve#2", "approve"),
    ]);
    check(&taken, 70, turn(70, [signal_taken("signal:approve#1", 2)], 0), stale("signal:approve#1 is settled already"));
    check(&taken, 70, turn(70, [signal_taken("signal:approve#2", 2)], 0), stale("there is no signal 2 to be taken"));
}

#[test]
fn the_same_wait_is_not_asked_for_twice() {
    let again = || signal_awaited("signal:approve#1", "approve");
    check(&awaiting(), 70, turn(70, [again()], 0), stale("signal:approve#1 is on record already"));
    check(&open(), 70, turn(70, [again(), again()], 0), stale("signal:approve#1 is in the turn twice"));
}

#[test]
fn a_wait_that_is_out_of_time_is_disarmed() {
    let effects = [disarm(sleep("signal:approve#1")), answer(Answer::TurnTaken)];
    let expected = decision([entry(3, 1000, timer_fired("signal:approve#1")).leaving(1)], effects);
    check(&awaiting_until(), 1000, turn(1000, [timer_fired("signal:approve#1")], 1), Ok(expected));
}

#[test]
fn a_wait_without_an_end_does_not_run_out_of_time() {
    let fired = || turn(1000, [timer_fired("signal:approve#1")], 1);
    check(&awaiting(), 1000, fired(), stale("signal:approve#1 was never set"));
    let over = [awaiting_until(), vec![entry(3, 0, timer_fired("signal:approve#1"))]].concat();
    check(&over, 1000, fired(), stale("signal:approve#1 is settled already"));
}

#[test]
fn arrivals_cannot_be_proposed_in_a_turn() {
    check(&open(), 70, turn(70, [signal_received("approve", None)], 0), stale("a turn cannot propose SIGNAL_RECEIVED"));
    check(&open(), 70, turn(70, [cancel_requested()], 0), stale("a turn cannot propose RUN_CANCEL_REQUESTED"));
}

#[test]
fn what_is_abandoned_is_disarmed_and_said_by_the_last_entry() {
    let events = || [step_completed("a#1", 1, "1"), step_completed("b#1", 1, "2")];
    let abandoned = || [retry("charge#1"), sleep("sleep#1"), sleep("signal:approve#1")];
    let racing = [with_every_timer(), vec![entry(4, 0, signal_awaited_until("signal:approve#1", "approve", 3000))]].concat();
    let [a, b] = events();
    let entries = [entry(5, 70, a), entry(6, 70, b).leaving(1).abandoning(abandoned())];
    let [charge, nap, wait] = abandoned().map(disarm);
    let effects = [charge, nap, wait, answer(Answer::TurnTaken)];
    check(&racing, 70, turn_abandoning(70, events(), 1, abandoned()), Ok(decision(entries.clone(), effects)));

    let left = [racing, entries.into()].concat();
    let run = folded(&left).expect("a run");
    assert_eq!((run.waits(), run.timers()), (vec![], vec![timer(TimerName::Deadline, at(9000), 1)]));
    check(&left, 3000, timed_out("charge#1", 2, &policy()), stale("charge#1 has its outcome already"));
    check(&left, 3000, turn(3000, [step_completed("charge#1", 2, "18")], 0), stale("charge#1 has its outcome already"));
    check(&left, 3000, turn(3000, [timer_fired("sleep#1")], 0), stale("sleep#1 has fired already"));
    check(&left, 3000, turn(3000, [timer_fired("signal:approve#1")], 0), stale("signal:approve#1 is settled already"));
}

#[test]
fn an_abandoned_wait_leaves_its_signal_to_others() {
    let arrived = [awaiting(), vec![entry(3, 0, signal_received("approve", None))]].concat();
    let left = entry(4, 0, step_completed("a#1", 1, "1")).leaving(0).abandoning([sleep("signal:approve#1")]);
    let journal = [arrived, vec![left]].concat();
    check(&journal, 70, turn(70, [signal_taken("signal:approve#1", 3)], 0), stale("signal:approve#1 is settled already"));
    let events = || [signal_awaited("signal:approve#2", "approve"), signal_taken("signal:approve#2", 3)];
    let [asked, taken] = events();
    let entries = [entry(5, 70, asked), entry(6, 70, taken).leaving(0)];
    let effects = [disarm(sleep("signal:approve#2")), answer(Answer::TurnTaken)];
    check(&journal, 70, turn(70, events(), 0), Ok(decision(entries, effects)));
}

#[test]
fn an_attempt_that_may_not_be_repeated_starts_on_record() {
    let expected = decision([entry(2, 70, step_started("charge#1", 1)).leaving(1)], [answer(Answer::TurnTaken)]);
    check(&open(), 70, turn(70, [step_started("charge#1", 1)], 1), Ok(expected));
    let effects = [disarm(retry("charge#1")), answer(Answer::TurnTaken)];
    let expected = decision([entry(3, 1000, step_started("charge#1", 2)).leaving(1)], effects);
    check(&in_backoff(), 1000, turn(1000, [step_started("charge#1", 2)], 1), Ok(expected));
}

#[test]
fn only_the_attempt_to_come_starts() {
    check(&open(), 70, turn(70, [step_started("charge#1", 2)], 1), stale("charge#1 is at attempt 1, not 2"));
    check(&in_backoff(), 70, turn(70, [step_started("charge#1", 1)], 1), stale("charge#1 is at attempt 2, not 1"));
    let done = history([run_started(), step_completed("charge#1", 1, "18")]);
    check(&done, 70, turn(70, [step_started("charge#1", 1)], 1), stale("charge#1 has its outcome already"));
    let started = history([run_started(), step_started("charge#1", 1)]);
    check(&started, 70, turn(70, [step_completed("charge#1", 2, "18")], 1), stale("charge#1 is at attempt 1, not 2"));
    check(&started, 70, turn(70, [step_started("charge#1", 2)], 1), stale("charge#1 is at attempt 1, not 2"));
}

#[test]
fn an_attempt_in_doubt_that_did_not_happen_starts_again_under_its_number() {
    let answered = history([
        run_started(),
        step_started("charge#1", 1),
        signal_awaited("charge#1/in-doubt#1", "in-doubt:charge#1"),
        signal_received("in-doubt:charge#1", None),
    ]);
    let events = || [signal_taken("charge#1/in-doubt#1", 4), step_started("charge#1", 1)];
    let [taken, again] = events();
    let entries = [entry(5, 70, taken), entry(6, 70, again).leaving(1)];
    let effects = [disarm(sleep("charge#1/in-doubt#1")), disarm(retry("charge#1")), answer(Answer::TurnTaken)];
    check(&answered, 70, turn(70, events(), 1), Ok(decision(entries, effects)));
}

#[test]
fn compensation_disarms_everything_and_the_deadline() {
    let waiting = [with_every_timer(), vec![entry(4, 0, signal_awaited_until("signal:approve#1", "approve", 3000))]].concat();
    let timers = [retry("charge#1"), sleep("sleep#1"), sleep("signal:approve#1"), TimerName::Deadline].map(disarm);
    for why in [None, Some(card_refused())] {
        let events = || [undoable_completed("ship#1", 1, "1"), timer_set("sleep#2", 900), run_compensating(why.clone())];
        let [step, set, end] = events();
        let entries = [entry(5, 70, step), entry(6, 70, set), entry(7, 70, end).leaving(0)];
        let effects = [timers.as_slice(), &[answer(Answer::TurnTaken)]].concat();
        check(&waiting, 70, turn(70, events(), 0), Ok(decision(entries.clone(), effects)));
        let run = folded(&[waiting.clone(), entries.into()].concat()).expect("a run");
        assert_eq!((run.status(), run.waits(), run.timers()), (Status::Compensating, vec![], vec![]));
        assert!(run.has_undoable() && !run.is_waiting(), "a restart has to host it");
    }
}

#[test]
fn compensation_is_the_last_of_its_turn() {
    let events = [run_compensating(None), step_completed("a#1", 1, "1")];
    check(&open(), 70, turn(70, events, 0), stale("something follows the end"));
    check(&open(), 70, turn(70, [run_compensating(None), run_failed(timeout())], 0), stale("something follows the end"));
}

#[test]
fn the_code_says_nothing_while_the_run_is_undone() {
    let events = [
        step_started("ship#1", 1),
        step_completed("ship#1", 1, "1"),
        step_failed("ship#1", 1, timeout()),
        timer_set("sleep#1", 900),
        run_compensating(None),
        run_completed("18"),
    ];
    for event in events {
        check(&compensating(), 70, turn(70, [event], 0), stale("the run is being undone"));
    }
}

#[test]
fn nothing_is_undone_while_the_code_runs() {
    let undoable = history([run_started(), undoable_completed("charge#1", 1, "18")]);
    for event in [undo_completed("charge#1", 1), undo_failed("charge#1", 1, timeout())] {
        check(&undoable, 70, turn(70, [event], 0), stale("the run is not being undone"));
    }
}

#[test]
fn an_undo_has_its_outcome_and_is_disarmed_if_it_was_in_backoff() {
    for outcome in [|n| undo_completed("charge#1", n), |n| undo_failed("charge#1", n, card_refused())] {
        let first = decision([entry(4, 70, outcome(1)).leaving(1)], [answer(Answer::TurnTaken)]);
        check(&compensating(), 70, turn(70, [outcome(1)], 1), Ok(first));
        let effects = [disarm(retry("charge#1/undo")), answer(Answer::TurnTaken)];
        let second = decision([entry(5, 1000, outcome(2)).leaving(1)], effects);
        check(&undo_in_backoff(), 1000, turn(1000, [outcome(2)], 1), Ok(second));
        check(&compensating(), 70, turn(70, [outcome(2)], 1), stale("charge#1/undo is at attempt 1, not 2"));
        check(&undo_in_backoff(), 70, turn(70, [outcome(1)], 1), stale("charge#1/undo is at attempt 2, not 1"));
        check(&compensating(), 70, turn(70, [outcome(1), outcome(1)], 1), stale("charge#1 is in the turn twice"));
    }
}

#[test]
fn only_what_has_an_undo_and_is_not_undone_is_undone() {
    let plain = history([run_started(), step_completed("charge#1", 1, "18"), run_compensating(None)]);
    let undone = [compensating(), vec![entry(4, 0, undo_completed("charge#1", 1))]].concat();
    for history in [plain, undone] {
        for event in [undo_completed("charge#1", 1), undo_failed("charge#1", 1, timeout())] {
            check(&history, 70, turn(70, [event], 0), stale("there is nothing of charge#1 to undo"));
        }
    }
}

#[test]
fn an_undo_that_failed_begins_again_from_its_first_attempt() {
    let failed = [undo_in_backoff(), vec![entry(5, 0, undo_failed("charge#1", 2, card_refused()))]].concat();
    check(&failed, 70, turn(70, [undo_completed("charge#1", 3)], 0), stale("charge#1/undo is at attempt 1, not 3"));
    let entries = [entry(6, 70, retry_scheduled("charge#1/undo", 2, 3, 1070)).leaving(0)];
    let effects = [arm(retry("charge#1/undo"), 1070, 6), answer(Answer::RetryScheduled)];
    check(&failed, 70, timed_out("charge#1/undo", 1, &policy()), Ok(decision(entries, effects)));
    let expected = decision([entry(6, 70, undo_completed("charge#1", 1)).leaving(1)], [answer(Answer::TurnTaken)]);
    check(&failed, 70, turn(70, [undo_completed("charge#1", 1)], 1), Ok(expected));
}

#[test]
fn an_undo_that_failed_asks_a_person() {
    let events = || [undo_failed("charge#1", 1, card_refused()), signal_awaited("charge#1/undo-failed#1", "undo:charge#1")];
    let [failed, question] = events();
    let entries = [entry(4, 70, failed), entry(5, 70, question).leaving(0)];
    check(&compensating(), 70, turn(70, events(), 0), Ok(decision(entries.clone(), [answer(Answer::TurnTaken)])));
    let answered = [compensating(), entries.into(), vec![entry(6, 0, signal_received("undo:charge#1", None))]].concat();
    let skipped = || [signal_taken("charge#1/undo-failed#1", 6), run_failed(card_refused())];
    let [taken, end] = skipped();
    let entries = [entry(7, 70, taken), entry(8, 70, end).leaving(0)];
    check(&answered, 70, turn(70, skipped(), 0), Ok(decision(entries, [Effect::AnnounceEnd, answer(Answer::TurnTaken)])));
}

#[test]
fn a_run_that_was_undone_ends() {
    let effects = [disarm(retry("charge#1/undo")), Effect::AnnounceEnd, answer(Answer::TurnTaken)];
    let entries = [entry(5, 70, run_failed(card_refused())).leaving(0)];
    check(&undo_in_backoff(), 70, turn(70, [run_failed(card_refused())], 0), Ok(decision(entries, effects)));
    let called_off = [called_off(), vec![entry(3, 0, run_compensating(None))]].concat();
    let expected = decision([entry(4, 70, Event::RunCancelled).leaving(0)], [Effect::AnnounceEnd, answer(Answer::TurnTaken)]);
    check(&called_off, 70, turn(70, [Event::RunCancelled], 0), Ok(expected));
}

#[test]
fn a_run_is_cancelled_only_if_somebody_asked_for_it() {
    check(&open(), 70, turn(70, [Event::RunCancelled], 0), stale("nobody asked for it"));
    check(&compensating(), 70, turn(70, [Event::RunCancelled], 0), stale("nobody asked for it"));
    let expected = decision([entry(3, 70, Event::RunCancelled).leaving(0)], [Effect::AnnounceEnd, answer(Answer::TurnTaken)]);
    check(&called_off(), 70, turn(70, [Event::RunCancelled], 0), Ok(expected));
    check(&called_off(), 70, turn(70, [Event::RunCancelled, run_completed("18")], 0), stale("something follows the end"));
}

#[test]
fn code_that_is_called_off_may_be_faster() {
    for end in [|| run_completed("18"), || run_failed(timeout())] {
        let expected = decision([entry(3, 70, end()).leaving(0)], [Effect::AnnounceEnd, answer(Answer::TurnTaken)]);
        check(&called_off(), 70, turn(70, [end()], 0), Ok(expected));
    }
}

#[test]
fn the_deadline_cannot_be_abandoned() {
    let command = turn_abandoning(70, [step_completed("a#1", 1, "1")], 1, [TimerName::Deadline]);
    check(&with_every_timer(), 70, command, stale("the deadline cannot be abandoned"));
}
