//! `SendSignal`: kept until the code asks for it, once.

use super::*;

#[test]
fn a_signal_is_recorded_whether_anybody_waits_for_it_or_not() {
    for history in [open(), awaiting(), awaiting_until(), in_backoff(), called_off(), compensating()] {
        let next = history.len() as u64 + 1;
        let effects = [deliver_signal(next, "approve"), answer(Answer::SignalReceived)];
        let expected = decision([entry(next, 70, signal_received("approve", None))], effects);
        check(&history, 70, send_signal("approve", None), Ok(expected));
    }
}

#[test]
fn a_signal_without_an_id_is_another_one_each_time() {
    let once = history([run_started(), signal_received("approve", None)]);
    let effects = [deliver_signal(3, "approve"), answer(Answer::SignalReceived)];
    check(&once, 70, send_signal("approve", None), Ok(decision([entry(3, 70, signal_received("approve", None))], effects)));
}

#[test]
fn a_signal_is_received_once_per_id() {
    let known = || Ok(decision([], [answer(Answer::SignalKnown)]));
    let once = history([run_started(), signal_received("approve", Some("m-1"))]);
    check(&once, 70, send_signal("approve", Some("m-1")), known());
    check(&once, 70, send_signal("another", Some("m-1")), known());
    let effects = [deliver_signal(3, "approve"), answer(Answer::SignalReceived)];
    let expected = decision([entry(3, 70, signal_received("approve", Some("m-2")))], effects);
    check(&once, 70, send_signal("approve", Some("m-2")), Ok(expected));
}

#[test]
fn an_id_is_remembered_after_its_signal_was_taken_and_while_the_run_is_undone() {
    let known = || Ok(decision([], [answer(Answer::SignalKnown)]));
    let taken = [
        run_started(),
        signal_received("approve", Some("m-1")),
        signal_awaited("signal:approve#1", "approve"),
        signal_taken("signal:approve#1", 2),
    ];
    check(&history(taken.clone()), 70, send_signal("approve", Some("m-1")), known());
    let undone = history(taken.into_iter().chain([run_compensating(None)]));
    check(&undone, 70, send_signal("approve", Some("m-1")), known());
}

/// That many signals have arrived and nobody has taken one; the first has an id.
fn with_signals(count: usize) -> Vec<Entry> {
    let signals = (0..count).map(|n| signal_received("approve", (n == 0).then_some("m-1")));
    history([run_started()].into_iter().chain(signals))
}

#[test]
fn no_more_than_a_thousand_signals_wait_to_be_taken() {
    let full = with_signals(1000);
    let refused = Err(Refusal::TooManySignals { run: run_id(), max: 1000 });
    check(&full, 70, send_signal("approve", None), refused.clone());
    check(&full, 70, send_signal("another", Some("m-2")), refused);
    check(&full, 70, send_signal("approve", Some("m-1")), Ok(decision([], [answer(Answer::SignalKnown)])));
    let effects = [deliver_signal(1001, "approve"), answer(Answer::SignalReceived)];
    let last = decision([entry(1001, 70, signal_received("approve", None))], effects);
    check(&with_signals(999), 70, send_signal("approve", None), Ok(last));
}

#[test]
fn a_signal_that_was_taken_makes_room() {
    let taken = [signal_awaited("signal:approve#1", "approve"), signal_taken("signal:approve#1", 5)];
    let room = history(with_signals(1000).into_iter().map(|entry| entry.event).chain(taken));
    let effects = [deliver_signal(1004, "approve"), answer(Answer::SignalReceived)];
    let expected = decision([entry(1004, 70, signal_received("approve", None))], effects);
    check(&room, 70, send_signal("approve", None), Ok(expected));
}

#[test]
fn an_ended_run_receives_nothing() {
    for history in [completed(), history([run_started(), cancel_requested(), Event::RunCancelled])] {
        check(&history, 70, send_signal("approve", Some("m-1")), ended());
    }
}

/// It may be what ended the run, and whoever sent it may not have heard so.
#[test]
fn an_ended_run_knows_the_signals_that_it_received() {
    let with_id = history([run_started(), signal_received("approve", Some("m-1")), run_completed("18")]);
    check(&with_id, 70, send_signal("approve", Some("m-1")), Ok(decision([], [answer(Answer::SignalKnown)])));
    check(&with_id, 70, send_signal("approve", Some("m-2")), ended());
}

#[test]
fn a_run_that_does_not_exist_receives_nothing() {
    check(&[], 70, send_signal("approve", None), Err(Refusal::RunNotFound { run: run_id() }));
}

#[test]
fn an_answer_is_only_taken_while_its_question_is_open() {
    let name = "in-doubt:pay#1";
    let refused = || Err(Refusal::NotAsked { run: run_id(), name: name.into() });
    let question = || [run_started(), step_started("pay#1", 1), signal_awaited("pay#1/in-doubt#1", name)];
    let answered = || question().into_iter().chain([signal_received(name, None)]);
    check(&open(), 70, send_signal(name, None), refused());
    check(&history(answered()), 70, send_signal(name, None), refused());
    check(&history(answered().chain([signal_taken("pay#1/in-doubt#1", 4)])), 70, send_signal(name, None), refused());
    let effects = [deliver_signal(4, name), answer(Answer::SignalReceived)];
    let taken = decision([entry(4, 70, signal_received(name, None))], effects);
    check(&history(question()), 70, send_signal(name, None), Ok(taken));
}
