//! What is derived from the state: status, waits, timers.

use super::*;

fn state(history: &[Entry]) -> Run {
    folded(history).expect("a run")
}

fn backoff(step: &str, due_ms: i64) -> Wait {
    Wait::Backoff { step: id(step), attempt: 2, of: 3, due_at: at(due_ms), failure: timeout() }
}

#[test]
fn a_run_that_has_just_started_is_running() {
    let run = state(&open());
    assert_eq!((run.status(), run.waits()), (Status::Running, vec![]));
}

#[test]
fn a_run_with_attempts_in_flight_is_running_though_a_timer_is_pending() {
    for history in [in_backoff(), asleep()] {
        let [first, last] = history.try_into().expect("two entries");
        assert_eq!(state(&[first.clone(), last.clone().leaving(1)]).status(), Status::Running);
        assert_eq!(state(&[first, last.leaving(0)]).status(), Status::Waiting);
    }
}

#[test]
fn the_code_itself_is_in_flight_until_the_host_says_otherwise() {
    assert_eq!(state(&in_backoff()).status(), Status::Running);
    assert_eq!(state(&asleep()).status(), Status::Running);
}

#[test]
fn a_run_waits_for_the_earliest_first() {
    let run = state(&[
        entry(1, 0, run_started()),
        entry(2, 0, retry_scheduled("charge#1", 2, 3, 3000)),
        entry(3, 0, timer_set("sleep#1", 2000)),
        entry(4, 0, timer_set("sleep#2", 4000)),
        entry(5, 0, retry_scheduled("ship#1", 2, 3, 1000)).leaving(0),
    ]);
    assert_eq!(run.status(), Status::Waiting);
    assert_eq!(
        run.waits(),
        [backoff("ship#1", 1000), Wait::Timer { due_at: at(2000) }, backoff("charge#1", 3000), Wait::Timer { due_at: at(4000) }]
    );
}

#[test]
fn what_is_settled_is_not_waited_for() {
    let run = state(&[
        entry(1, 0, run_started()),
        entry(2, 0, retry_scheduled("charge#1", 2, 3, 3000)),
        entry(3, 0, timer_set("sleep#1", 2000)),
        entry(4, 0, step_completed("charge#1", 2, "18")),
        entry(5, 0, timer_fired("sleep#1")).leaving(0),
    ]);
    assert_eq!((run.status(), run.waits(), run.timers()), (Status::Running, vec![], vec![]));
}

#[test]
fn the_count_of_attempts_in_flight_stays_until_the_next_one_is_given() {
    let given = entry(2, 0, timer_set("sleep#1", 1000)).leaving(0);
    let silent = entry(3, 0, step_completed("charge#1", 1, "18"));
    assert_eq!(state(&[entry(1, 0, run_started()), given.clone(), silent.clone()]).status(), Status::Waiting);
    assert_eq!(state(&[entry(1, 0, run_started()), given, silent.leaving(1)]).status(), Status::Running);
}

#[test]
fn an_ended_run_waits_for_nothing_and_says_how_it_ended() {
    for (end, status) in [(run_completed("18"), Status::Completed), (run_failed(timeout()), Status::Failed)] {
        let run = state(&[with_every_timer(), vec![entry(4, 70, end)]].concat());
        assert_eq!((run.status(), run.waits(), run.timers()), (status, vec![], vec![]));
        assert_eq!(run.ended().map(|ended| (ended.at, ended.outcome.is_ok())), Some((at(70), status == Status::Completed)));
        assert!(run.status().is_final());
    }
}

#[test]
fn the_last_retry_of_any_step_is_the_retry_context() {
    assert_eq!(state(&open()).retry_context, None);
    let context = state(&in_backoff()).retry_context.expect("a retry");
    assert_eq!((context.current_attempt, context.last_backoff), (2, SECOND));
}

#[test]
fn the_timers_of_a_run_are_those_that_its_entries_armed() {
    let armed = [timer(retry("charge#1"), at(1000), 2), timer(sleep("sleep#1"), at(2000), 3), timer(TimerName::Deadline, at(9000), 1)];
    assert_eq!(state(&with_every_timer()).timers(), armed);
}

#[test]
fn a_run_with_something_to_take_is_not_waiting() {
    let awaiting = entry(2, 0, signal_awaited("signal:approve#1", "approve")).leaving(0);
    let run = state(&[entry(1, 0, run_started()), awaiting.clone()]);
    assert_eq!((run.status(), run.is_waiting()), (Status::Waiting, true));
    let other = state(&[entry(1, 0, run_started()), awaiting.clone(), entry(3, 0, signal_received("another", None))]);
    assert_eq!((other.status(), other.is_waiting()), (Status::Waiting, true), "nobody waits for that");
    let arrived = state(&[entry(1, 0, run_started()), awaiting, entry(3, 0, signal_received("approve", None))]);
    assert_eq!((arrived.status(), arrived.is_waiting()), (Status::Running, false), "a restart has to host it");
}

#[test]
fn a_report_that_crosses_a_signal_does_not_hide_it() {
    let journal = [
        entry(1, 0, run_started()),
        entry(2, 0, signal_awaited("signal:approve#1", "approve")).leaving(1),
        entry(3, 0, signal_received("approve", None)),
        entry(4, 0, retry_scheduled("charge#1", 2, 3, 1000)).leaving(0), // said before the host heard of the signal
    ];
    assert!(!state(&journal).is_waiting());
    let taken = [&journal[..], &[entry(5, 0, signal_taken("signal:approve#1", 3)).leaving(0)]].concat();
    assert!(state(&taken).is_waiting(), "for the retry");
    let early = [
        entry(1, 0, run_started()),
        entry(2, 0, signal_received("approve", None)),
        entry(3, 0, signal_awaited("signal:approve#1", "approve")).leaving(0),
    ];
    assert!(!state(&early).is_waiting());
}

#[test]
fn a_run_that_is_called_off_is_not_waiting_until_its_code_was_told() {
    let asleep = entry(2, 0, timer_set("sleep#1", 1000)).leaving(0);
    let asked = [entry(1, 0, run_started()), asleep, entry(3, 0, cancel_requested())];
    assert_eq!((state(&asked).status(), state(&asked).is_waiting()), (Status::Running, false), "a restart has to host it");
    let crossed = [&asked[..], &[entry(4, 0, step_completed("charge#1", 1, "18")).leaving(0)]].concat();
    assert!(!state(&crossed).is_waiting(), "the host had not heard of it");
    let told = [&crossed[..], &[entry(5, 0, run_compensating(None)).leaving(0)]].concat();
    let question = entry(6, 0, signal_awaited("charge#1/undo-failed#1", "undo:charge#1")).leaving(0);
    let asks = state(&[told, vec![question]].concat());
    assert_eq!((asks.status(), asks.is_waiting()), (Status::Compensating, true), "only a person moves it now");
}

#[test]
fn only_a_run_that_was_called_off_is_cancelled() {
    let called_off = state(&[called_off(), vec![entry(3, 70, Event::RunCancelled)]].concat());
    assert_eq!((called_off.status(), called_off.waits(), called_off.timers()), (Status::Cancelled, vec![], vec![]));
    let outcome = called_off.ended().map(|ended| (ended.at, ended.outcome.clone()));
    assert_eq!(outcome, Some((at(70), Err(Failure::new(Code::Cancelled, "the run was cancelled")))));
    let failed = state(&history([run_started(), run_failed(Failure::new(Code::Cancelled, "the bank called it off"))]));
    assert_eq!(failed.status(), Status::Failed, "the code failed with a code of that name");
}

#[test]
fn waits_without_an_end_come_last() {
    let run = state(&[
        entry(1, 0, run_started()),
        entry(2, 0, signal_awaited("signal:approve#1", "approve")),
        entry(3, 0, step_started("pay#1", 1)),
        entry(4, 0, signal_awaited("pay#1/in-doubt#1", "in-doubt:pay#1")),
        entry(5, 0, signal_awaited_until("signal:cancel#1", "cancel", 3000)),
        entry(6, 0, timer_set("sleep#1", 4000)),
        entry(7, 0, retry_scheduled("charge#1", 2, 3, 2000)).leaving(0),
    ]);
    let signal = |name: &str, until| Wait::Signal { name: name.into(), until };
    assert_eq!(run.status(), Status::Waiting);
    assert_eq!(
        run.waits(),
        [
            backoff("charge#1", 2000),
            signal("cancel", Some(at(3000))),
            Wait::Timer { due_at: at(4000) },
            Wait::InDoubt { step: id("pay#1"), attempt: 1 },
            signal("approve", None),
        ]
    );
}

#[test]
fn a_wait_has_a_timer_only_if_it_has_an_end() {
    let run = state(&[
        entry(1, 0, run_started()),
        entry(2, 0, signal_awaited("signal:approve#1", "approve")),
        entry(3, 0, signal_awaited_until("signal:cancel#1", "cancel", 3000)),
    ]);
    assert_eq!(run.timers(), [timer(sleep("signal:cancel#1"), at(3000), 3)]);
}

#[test]
fn the_attempt_in_doubt_is_named() {
    let events = [
        run_started(),
        retry_scheduled("left/pay#2", 2, 3, 10),
        step_started("left/pay#2", 2),
        signal_awaited("left/pay#2/in-doubt#3", "in-doubt:left/pay#2"),
    ];
    assert_eq!(state(&history(events)).waits(), [Wait::InDoubt { step: id("left/pay#2"), attempt: 2 }]);
}

#[test]
fn a_run_that_is_undone_shows_it_whatever_it_waits_for() {
    assert_eq!((state(&compensating()).status(), state(&compensating()).is_waiting()), (Status::Compensating, false));
    let last = entry(4, 0, retry_scheduled("charge#1/undo", 2, 3, 1000)).leaving(0);
    let run = state(&[compensating(), vec![last]].concat());
    assert_eq!((run.status(), run.is_waiting()), (Status::Compensating, true));
    assert_eq!(run.waits(), [backoff("charge#1/undo", 1000)]);
    assert_eq!(run.timers(), [timer(retry("charge#1/undo"), at(1000), 4)]);
}

#[test]
fn a_run_that_begins_to_be_undone_is_hosted_though_nothing_is_in_flight() {
    let journal = history([run_started(), undoable_completed("charge#1", 1, "18")]);
    let begins = entry(3, 0, run_compensating(None)).leaving(0);
    let question = entry(4, 0, signal_awaited("charge#1/undo-failed#1", "undo:charge#1"));
    assert!(!state(&[journal.clone(), vec![begins.clone(), question.clone()]].concat()).is_waiting());
    assert!(state(&[journal, vec![begins, question.leaving(0)]].concat()).is_waiting());
}

#[test]
fn what_has_an_undo_is_known_until_it_is_undone() {
    assert!(!state(&history([run_started(), step_completed("charge#1", 1, "18")])).has_undoable());
    assert!(state(&history([run_started(), undoable_completed("charge#1", 1, "18")])).has_undoable());
    assert!(state(&compensating()).has_undoable());
    let failed = [compensating(), vec![entry(4, 0, undo_failed("charge#1", 1, timeout()))]].concat();
    assert!(state(&failed).has_undoable());
    assert!(!state(&[compensating(), vec![entry(4, 0, undo_completed("charge#1", 1))]].concat()).has_undoable());
}

#[test]
fn every_status_is_known_by_its_name() {
    let names = Status::ALL.map(Status::as_str);
    let open = ["READY", "RUNNING", "WAITING", "PAUSED", "COMPENSATING", "INTERRUPTED"];
    let ended = ["COMPLETED", "FAILED", "CANCELLED"];
    assert_eq!(names.to_vec(), [&open[..], &ended].concat());
    assert_eq!(names.map(Status::parse), Status::ALL.map(Some));
    assert_eq!(Status::ALL.into_iter().filter(|status| status.is_final()).map(Status::as_str).collect::<Vec<_>>(), ended);
}

#[test]
fn an_attempt_whose_retry_is_on_record_is_not_in_flight_whatever_the_host_counts() {
    let report =
        |attempt| ReportFailure { in_flight: 1, unanswered: vec![(id("charge#1"), attempt)], ..report_timeout("ship#1", 1, &policy()) };
    let counted = |attempt| {
        let run = folded(&in_backoff()).expect("a run");
        let decided = decide(&run.id, Some(&run), Command::ReportFailure(report(attempt)), at(0)).expect("the attempt to come");
        decided.entries[0].in_flight
    };
    assert_eq!(counted(1), Some(0), "its first attempt has failed, and the second waits");
    assert_eq!(counted(2), Some(1), "nothing is known of its second attempt");
}
