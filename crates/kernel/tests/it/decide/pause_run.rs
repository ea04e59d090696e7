//! `PauseRun`: nothing new is begun, and the run's own time stands still.

use super::*;

/// `charge#1` waits for its second attempt, due at 1000, and the run is paused since 300 by entry 3.
fn paused() -> Vec<Entry> {
    [in_backoff(), vec![entry(3, 300, run_paused())]].concat()
}

#[test]
fn every_timer_is_disarmed_and_the_host_is_told() {
    let timers = [disarm(retry("charge#1")), disarm(sleep("sleep#1")), disarm(TimerName::Deadline)];
    let effects = [timers.as_slice(), &[Effect::Pause, answer(Answer::Paused)]].concat();
    check(&with_every_timer(), 70, pause(), Ok(decision([entry(4, 70, run_paused())], effects)));
    let run = folded(&[with_every_timer(), vec![entry(4, 70, run_paused())]].concat()).expect("a run");
    assert_eq!((run.status(), run.timers(), run.is_waiting()), (Status::Paused, vec![], true));
    let why = Wait::Paused { by: Some("ada".into()), why: Some("ordered twice".into()), since: at(70) };
    assert_eq!(run.waits().first(), Some(&why), "a person has to see to it first");
}

#[test]
fn a_run_is_paused_whatever_it_is_doing() {
    let undoing = [disarm(retry("charge#1/undo")), Effect::Pause, answer(Answer::Paused)];
    check(&undo_in_backoff(), 70, pause(), Ok(decision([entry(5, 70, run_paused())], undoing)));
    for history in [open(), awaiting(), called_off(), compensating(), ready()] {
        let next = history.len() as u64 + 1;
        let expected = decision([entry(next, 70, run_paused())], [Effect::Pause, answer(Answer::Paused)]);
        check(&history, 70, pause(), Ok(expected));
        let run = folded(&[history, vec![entry(next, 70, run_paused())]].concat()).expect("a run");
        assert_eq!(run.status(), Status::Paused);
    }
}

#[test]
fn pausing_twice_is_one_event() {
    check(&paused(), 400, pause(), Ok(decision([], [answer(Answer::Paused)])));
}

#[test]
fn the_same_command_again_is_answered_whatever_has_happened_since() {
    let command = || Command::PauseRun(ada_with("c-1"));
    let paused = || Event::RunPaused { origin: ada_with("c-1") };
    let answered = || Ok(decision([], [answer(Answer::Paused)]));
    check(&history([run_started(), paused()]), 70, command(), answered());
    check(&history([run_started(), paused(), run_resumed()]), 70, command(), answered());
    check(&history([run_started(), paused(), run_resumed(), run_completed("18")]), 70, command(), answered());
    let interrupted = [run_started_with(None, manual()), paused(), run_resumed(), Event::RunInterrupted];
    check(&history(interrupted), 70, command(), answered());
}

#[test]
fn a_run_that_has_ended_or_never_was_is_not_paused() {
    check(&completed(), 70, pause(), ended());
    check(&[], 70, pause(), Err(Refusal::RunNotFound { run: run_id() }));
}

#[test]
fn a_run_whose_process_died_is_not_paused() {
    let what_to_do = "its process died: retry it, or cancel it";
    let refused = || Err(Refusal::WrongStatus { run: run_id(), status: Status::Interrupted, what_to_do: what_to_do.into() });
    check(&interrupted(), 70, pause(), refused());
    check(&history([run_started_with(None, manual()), run_paused(), Event::RunInterrupted]), 70, pause(), refused());
}

#[test]
fn what_was_in_flight_finishes_and_arms_nothing() {
    let entries = [entry(4, 400, retry_scheduled("ship#1", 2, 3, 1400)).leaving(0)];
    check(&paused(), 400, timed_out("ship#1", 1, &policy()), Ok(decision(entries, [answer(Answer::RetryScheduled)])));
    let events = || [step_completed("ship#1", 1, "1"), timer_set("sleep#1", 900), signal_awaited_until("signal:approve#1", "approve", 950)];
    let [done, set, asked] = events();
    let entries = [entry(4, 400, done), entry(5, 400, set), entry(6, 400, asked).leaving(0)];
    check(&paused(), 400, turn(400, events(), 0), Ok(decision(entries, [answer(Answer::TurnTaken)])));
    let ends = decision([entry(4, 400, run_completed("18")).leaving(0)], [Effect::AnnounceEnd, answer(Answer::TurnTaken)]);
    check(&paused(), 400, turn(400, [run_completed("18")], 0), Ok(ends));
}

/// A host that had not heard of the pause says that an attempt begins: it does when the run goes on, and is asked for again then.
#[test]
fn a_turn_that_comes_after_the_pause_begins_nothing() {
    let said = |events: &[Event]| {
        let Command::TakeTurn(command) = turn(400, events.to_vec(), 1) else { unreachable!() };
        Command::TakeTurn(TakeTurn { asked: 1, ..command })
    };
    let (done, begins, set) = (step_completed("ship#1", 1, "1"), step_started("pay#1", 1), timer_set("sleep#1", 900));
    let last = Entry { held: 1, ..entry(5, 400, set.clone()).leaving(0) };
    let recorded = decision([entry(4, 400, done.clone()), last], [answer(Answer::TurnTaken)]);
    check(&paused(), 400, said(&[done, begins.clone(), set]), Ok(recorded));
    check(&paused(), 400, said(&[begins]), Ok(decision([], [answer(Answer::TurnTaken)])));
    check(&paused(), 1000, said(&[step_started("charge#1", 2)]), Ok(decision([], [answer(Answer::TurnTaken)])));
    check(&paused(), 400, said(&[step_started("charge#1", 1)]), stale("charge#1 is at attempt 2, not 1"));
}

/// An older host does not ask again, and begins what it said that it would: without a record nobody would know after a crash that it may have been done.
#[test]
fn what_a_host_begins_that_does_not_ask_again_is_on_record() {
    let Command::TakeTurn(command) = turn(400, [step_started("pay#1", 1)], 1) else { unreachable!() };
    let recorded = decision([entry(4, 400, step_started("pay#1", 1)).leaving(1)], [answer(Answer::TurnTaken)]);
    check(&paused(), 400, Command::TakeTurn(TakeTurn { asks_again: false, ..command }), Ok(recorded));
}

#[test]
fn no_timer_of_a_paused_run_fires() {
    let paused = [with_every_timer(), vec![entry(4, 70, run_paused())]].concat();
    for (name, revision) in [(TimerName::Deadline, 1), (retry("charge#1"), 2), (sleep("sleep#1"), 3)] {
        check(&paused, 99_000, fire(name, revision), superseded());
    }
}

#[test]
fn the_deadline_that_bounds_retries_moves_with_the_world() {
    let paused = [history([run_started_until(2000)]), vec![entry(2, 500, run_paused())]].concat();
    let in_time = entry(3, 5000, retry_scheduled("charge#1", 2, 3, 6000)).leaving(0);
    check(&paused, 5000, timed_out("charge#1", 1, &policy()), Ok(decision([in_time], [answer(Answer::RetryScheduled)])));
    let slow = Policy::constant(2 * SECOND).max_attempts(3);
    let too_late = decision([], [deliver_failure("charge#1", 1, out_of_time(1))]);
    check(&paused, 5000, timed_out("charge#1", 1, &slow), Ok(too_late));
}

#[test]
fn signals_arrive_while_the_run_is_paused() {
    let effects = [deliver_signal(4, "approve"), answer(Answer::SignalReceived)];
    let expected = decision([entry(4, 400, signal_received("approve", None))], effects);
    check(&paused(), 400, send_signal("approve", None), Ok(expected));
    let arrived = [awaiting(), vec![entry(3, 0, run_paused()), entry(4, 0, signal_received("approve", None))]].concat();
    let run = folded(&arrived).expect("a run");
    assert_eq!((run.status(), run.is_waiting(), run.recover()), (Status::Paused, true, None), "a restart does not host it");
}
