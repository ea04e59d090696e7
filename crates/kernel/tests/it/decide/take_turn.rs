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
