//! Every arrow of the transition table: a history, a command, and everything that follows from it or why it is refused.

mod cancel_run;
mod fire_timer;
mod hear;
mod interrupt_run;
mod key;
mod letters;
mod limit;
mod pause_run;
mod preview;
mod record_heartbeat;
mod report_failure;
mod resume_run;
mod retry_run;
mod routes;
mod send_signal;
mod start_run;
mod status;
mod take_turn;
mod terminate_run;

use crate::support::*;
use std::time::Duration;
use steadfast_kernel::run::{SIGNALS_MAX, decide};
use steadfast_kernel::{
    Answer, CancelRun, Code, Command, Completion, Decision, DropLetter, Effect, EntityId, Entry, Envelope, Event, Failure, Letter,
    LetterAbout, LetterHome, LetterId, Message, Origin, Payload, Policy, RecordHeartbeat, Refusal, ReportFailure, Retried, RetryFrom,
    RetryRun, Run, RunOptions, StartChild, StartRun, Status, StepId, TakeTurn, TimerName, Wait, WorkflowName, code,
};

/// Decides on a command after that history, and compares the whole answer. What is decided must fold.
#[track_caller]
fn check(history: &[Entry], now_ms: i64, command: Command, expected: Result<Decision, Refusal>) {
    let state = folded(history);
    let decided = decide(&run_id(), state.as_ref(), command, at(now_ms));
    assert_eq!(decided, expected);
    if let Ok(Decision { entries, .. }) = decided {
        folded(&[history, &entries].concat());
    }
}

#[track_caller]
fn stale(why: &str) -> Result<Decision, Refusal> {
    Err(Refusal::Stale { run: run_id(), why: why.into() })
}

fn ended() -> Result<Decision, Refusal> {
    Err(Refusal::Ended { run: run_id() })
}

fn superseded() -> Result<Decision, Refusal> {
    Ok(decision([], [answer(Answer::Superseded)]))
}

fn open() -> Vec<Entry> {
    history([run_started()])
}

fn completed() -> Vec<Entry> {
    history([run_started(), run_completed("18")])
}

/// `charge#1` waits for its second attempt, armed by entry 2 and due at 1000.
fn in_backoff() -> Vec<Entry> {
    history([run_started(), retry_scheduled("charge#1", 2, 3, 1000)])
}

/// `sleep#1` waits for its end, armed by entry 2 and due at 1000.
fn asleep() -> Vec<Entry> {
    history([run_started(), timer_set("sleep#1", 1000)])
}

/// One of each timer is armed: the deadline by entry 1, a retry by entry 2, a sleep by entry 3.
fn with_every_timer() -> Vec<Entry> {
    history([run_started_until(9000), retry_scheduled("charge#1", 2, 3, 1000), timer_set("sleep#1", 2000)])
}

/// `signal:approve#1` waits for `approve`, asked for by entry 2, however long.
fn awaiting() -> Vec<Entry> {
    history([run_started(), signal_awaited("signal:approve#1", "approve")])
}

/// `signal:approve#1` waits for `approve`, asked for by entry 2, until 1000.
fn awaiting_until() -> Vec<Entry> {
    history([run_started(), signal_awaited_until("signal:approve#1", "approve", 1000)])
}

/// Somebody has asked for the end, by entry 2.
fn called_off() -> Vec<Entry> {
    history([run_started(), cancel_requested()])
}

/// The run had until 9000; `charge#1` has an undo and is to be undone since entry 3.
fn compensating() -> Vec<Entry> {
    history([run_started_until(9000), undoable_completed("charge#1", 1, "18"), run_compensating(Some(card_refused()))])
}

/// As [`compensating`], and the undo waits for its second attempt, armed by entry 4 and due at 1000.
fn undo_in_backoff() -> Vec<Entry> {
    [compensating(), vec![entry(4, 0, retry_scheduled("charge#1/undo", 2, 3, 1000))]].concat()
}

/// The run waits for a slot of `a`, which it has asked for by entry 1, and then for one of `b`.
fn ready() -> Vec<Entry> {
    history([run_started_with(None, limited(&["a", "b"]))])
}

/// The process died while `charge#1` was waiting for its second attempt; the run had until 9000.
fn interrupted() -> Vec<Entry> {
    let started = run_started_with(Some(9000), manual());
    history([started, retry_scheduled("charge#1", 2, 3, 1000), Event::RunInterrupted])
}

fn policy() -> Policy {
    Policy::constant(SECOND).max_attempts(3)
}

#[test]
fn every_refusal_has_its_code() {
    let run = run_id();
    let refusals = [
        (Refusal::RunExists { run: run.clone() }, code::RUN_EXISTS),
        (Refusal::RunNotFound { run: run.clone() }, code::RUN_NOT_FOUND),
        (Refusal::Ended { run: run.clone() }, code::RUN_ENDED),
        (Refusal::TooManySignals { run: run.clone(), max: SIGNALS_MAX }, code::TOO_MANY_SIGNALS),
        (Refusal::NotAsked { run: run.clone(), name: "undo:charge#1".into() }, code::NOT_ASKED),
        (Refusal::WrongStatus { run: run.clone(), status: Status::Ready, what_to_do: "wait".into() }, code::WRONG_STATUS),
        (Refusal::StepNotFound { run: run.clone(), step: id("charge#1") }, code::STEP_NOT_FOUND),
        (Refusal::Stale { run, why: "it is".into() }, code::STALE),
    ];
    for (refusal, code) in refusals {
        assert_eq!(refusal.code(), code);
        assert!(refusal.to_string().contains("order-17"), "{refusal}");
    }
    let key = || keys::session();
    let refusals = [
        (Refusal::KeyNotFound { key: key() }, code::KEY_NOT_FOUND),
        (Refusal::KeyOwned { key: key() }, code::KEY_OWNED),
        (Refusal::KeyChanged { key: key(), revision: Some(5) }, code::KEY_CHANGED),
        (Refusal::KeyChanged { key: key(), revision: None }, code::KEY_CHANGED),
    ];
    for (refusal, code) in refusals {
        assert_eq!(refusal.code(), code);
        assert!(refusal.to_string().contains("sessions/ada"), "{refusal}");
    }
    let letter = Refusal::LetterNotFound { letter: LetterId { home: LetterHome::Workflow(workflow("checkout")), seq: 3 } };
    assert_eq!(letter.code(), code::LETTER_NOT_FOUND);
    assert!(letter.to_string().contains("checkout.3"), "{letter}");
}
