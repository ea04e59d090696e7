//! Replay: the recorded completions, delivered in the order of the journal, by the same means as live ones.
//!
//! There is no flag for it: what the code asks for and what the journal holds are compared, and after the last entry the run is live.
//!
//! Tested by `crates/sdk/tests/it/changed.rs`.
//! Tested by `crates/sdk/tests/it/golden/mod.rs`.
//! Tested by `crates/sdk/tests/it/programs/mod.rs`.
//! Tested by `crates/sdk/tests/it/scenarios.rs`.
//! Tested by `crates/sdk/tests/it/versions.rs`.
//! Tested by `crates/sdk/tests/it/waiting.rs`.

use super::Opening;
use super::board::Key;
use super::workflow::Workflow;
use std::collections::{BTreeMap, BTreeSet};
use steadfast_kernel::{Code, Entry, Event, Failure, Payload, StepId, Timestamp, Wait};

/// Brings the code to where the journal ends.
///
/// # Errors
/// A [`Wait::Mismatch`] that names both sides, if they part.
pub(super) async fn replay(workflow: &mut Workflow, opening: Opening) -> Result<(), Wait> {
    let Opening { script: journal, mut retried, unsure_until, .. } = opening;
    let last = journal.iter().rposition(|entry| !is_arrival(&entry.event)).unwrap_or(0);
    for (index, entry) in journal.iter().enumerate() {
        if index == last {
            workflow.board.go_live();
        }
        if let Some((at, _)) = retried.take_if(|(_, seq)| *seq < entry.seq) {
            workflow.board.begin_again(at);
        }
        check(workflow, entry)?;
        workflow.board.replaying(entry.seq);
        workflow.settle().await;
        if entry.in_flight.is_some() {
            workflow.board.forget_orphans(); // it ends a turn
        }
        if let Some((expected, found)) = workflow.board.unknown_version() {
            return Err(Wait::Mismatch { at: entry.seq, expected, found });
        }
    }
    if let Some((at, _)) = retried {
        workflow.board.begin_again(at);
    }
    workflow.board.end_replay(unsure_until);
    Ok(())
}

/// What happens to a run without its code having any part in it.
pub(super) fn is_arrival(event: &Event) -> bool {
    match event {
        Event::SignalReceived { .. }
        | Event::ChildEnded { .. }
        | Event::StepHeartbeat { .. }
        | Event::SlotAcquired { .. }
        | Event::RunPaused { .. }
        | Event::RunResumed { .. }
        | Event::RunInterrupted
        | Event::RunCancelRequested { .. } => true,
        Event::Task(event) => event.stage().is_none(), // its turn and its lock
        _ => false,
    }
}

/// The versions that are on record. They are needed before their entries come, because the code does not wait for them.
pub(super) fn versions(journal: &[Entry]) -> BTreeMap<StepId, u32> {
    let version = |entry: &Entry| match &entry.event {
        Event::StepCompleted { step, output, .. } if step.is_version() => {
            Some((step.clone(), std::str::from_utf8(&output.bytes).ok()?.parse().ok()?))
        }
        _ => None,
    };
    journal.iter().filter_map(version).collect()
}

/// What the code has said of itself that is on record; it does not wait for that either.
pub(super) fn notes(journal: &[Entry]) -> BTreeSet<(&'static str, StepId)> {
    let note = |entry: &Entry| is_note(&entry.event).then(|| Some((entry.event.kind(), entry.event.subject()?.clone())))?;
    journal.iter().filter_map(note).collect()
}

/// What the code says of itself, and does not wait for.
fn is_note(event: &Event) -> bool {
    match event {
        Event::ProgressNoted { .. } | Event::StepSkipped { .. } => true,
        Event::Task(event) => event.stage().is_some(),
        _ => false,
    }
}

/// Delivers one entry, if the code waits for what it says.
fn check(workflow: &mut Workflow, entry: &Entry) -> Result<(), Wait> {
    let Entry { at, event, .. } = entry;
    if let Some(outcome) = &workflow.outcome {
        return match (event, outcome) {
            (Event::RunCompleted { output }, Ok(result)) if output == result => Ok(()),
            (Event::RunFailed { failure }, Err(found)) if failure == found => Ok(()),
            (Event::RunFailed { .. } | Event::RunCancelled, _) if workflow.undoing.is_some() => Ok(()),
            (Event::RunFailed { failure }, _) if failure.code == Code::DeadlineExceeded => Ok(()), // by the engine, before the code's own end was recorded
            (Event::RunCancelled, _) => Ok(()),                                                    // likewise
            (Event::RunCompensating { failure: Some(failure) }, Err(found)) if failure == found => {
                begin_undo(workflow, Some(failure.clone()), *at);
                Ok(())
            }
            (event, _) if is_arrival(event) => Ok(()),
            (Event::StepCompleted { step, output, .. }, _) if step.is_version() || workflow.board.adopt(step, output) => Ok(()),
            (Event::RunCompensating { failure: None }, _) => {
                begin_undo(workflow, None, *at); // of a task, however it had ended
                Ok(())
            }
            (event, _) if is_note(event) => Ok(()), // said in the turn that it ended in
            (Event::ChildStarted { child, .. }, _) if workflow.board.set_recorded(&Key::Child(child.clone())) => Ok(()),
            (Event::RunCompleted { .. }, Ok(_)) => Err(mismatch(entry, "the code returned another result".into())),
            (_, Err(found)) => Err(mismatch(entry, format!("the code has failed: {}", found.message))),
            (_, Ok(_)) => Err(mismatch(entry, "the code has ended".into())),
        };
    }
    let board = &workflow.board;
    let fits = match event {
        Event::RunStarted { .. } => {
            board.set_now(*at);
            workflow.wake();
            true
        }
        Event::StepStarted { step, attempt } => board.begun_recorded(step, *attempt),
        Event::StepCompleted { step, .. } if step.is_version() => true, // the code has it from `versions`
        Event::ProgressNoted { .. } | Event::StepSkipped { .. } => true, // likewise, from `notes`
        Event::StepCompleted { step, undoable, .. } if !board.undoable_recorded(step, *undoable) => {
            return Err(mismatch(entry, "the code no longer says how to undo it".into()));
        }
        Event::StepCompleted { step, output, .. } => {
            board.deliver(&Key::Step(step.clone()), Ok(output.clone()), *at) || board.adopt(step, output)
        }
        Event::StepFailed { step, failure, .. } => board.deliver(&Key::Step(step.clone()), Err(failure.clone()), *at),
        Event::RetryScheduled { step, details, .. } => {
            details.iter().for_each(|details| board.details_recorded(step, details));
            board.retry_recorded(step, entry.seq)
        }
        Event::StepHeartbeat { step, details, .. } => {
            board.details_recorded(step, details);
            true
        }
        Event::ChildStarted { child, .. } => board.set_recorded(&Key::Child(child.clone())),
        Event::ChildEnded { child, outcome } => {
            let (child, outcome) = (child.clone(), outcome.clone());
            board.line_up(steadfast_kernel::Completion::ChildEnded { child, outcome });
            true
        }
        Event::ChildTaken { child } => board
            .take_child(child)
            .is_some_and(|outcome| board.deliver(&Key::Child(child.clone()), outcome, *at)),
        Event::TimerSet { sleep, .. } => board.set_recorded(&Key::Sleep(sleep.clone())),
        Event::TimerFired { sleep } => match board.too_late(sleep) {
            Some(failure) => board.deliver(&Key::Signal(sleep.clone()), Err(failure), *at),
            None => board.deliver(&Key::Sleep(sleep.clone()), Ok(Payload::json("null")), *at),
        },
        Event::SignalAwaited { wait, .. } => match wait.doubted() {
            Some(step) => return ask_a_person(workflow, entry, &step),
            None => board.set_recorded(&Key::Signal(wait.clone())),
        },
        Event::SignalReceived { name, payload, .. } => {
            let (signal, name, payload) = (entry.seq, name.clone(), payload.clone());
            board.line_up(steadfast_kernel::Completion::SignalReceived { signal, name, payload });
            true
        }
        Event::SignalTaken { wait, signal } => board
            .take_signal(*signal)
            .is_some_and(|payload| board.deliver(&Key::Signal(wait.clone()), Ok(payload), *at)),
        Event::RunCompensating { failure } => {
            begin_undo(workflow, failure.clone(), *at);
            true
        }
        Event::UndoCompleted { step, .. } => board.deliver(&Key::Undo(step.clone()), Ok(Payload::json("null")), *at),
        Event::UndoFailed { step, failure, .. } => board.deliver(&Key::Undo(step.clone()), Err(failure.clone()), *at),
        Event::RunCompleted { .. } => false,
        Event::RunPaused { .. } | Event::RunInterrupted => {
            board.stand_still(*at);
            true
        }
        Event::RunResumed { .. } | Event::RunCancelRequested { .. } => {
            board.go_on(*at);
            true
        }
        Event::RunFailed { .. } | Event::RunCancelled | Event::SlotAcquired { .. } | Event::Task(_) => true, // called off, or out of time
        Event::RunRetried(_) | Event::RunContinued { .. } => true,                                           // never part of a script
        Event::SlotRequested { .. }
        | Event::SlotGranted { .. }
        | Event::SlotReleased { .. }
        | Event::LetterAdded(_)
        | Event::LetterRedriven { .. }
        | Event::LetterDropped { .. }
        | Event::LetterFailed { .. }
        | Event::KeyPut(_)
        | Event::KeyRenewed { .. }
        | Event::KeyDeleted { .. }
        | Event::KeyExpired { .. }
        | Event::CallbackFailed { .. }
        | Event::CallbackSettled { .. }
        | Event::Plan(_)
        | Event::Lock(_) => false,
    };
    if fits { Ok(()) } else { Err(mismatch(entry, format!("the code waits for {}", workflow.board.waits_for()))) }
}

fn begin_undo(workflow: &mut Workflow, failure: Option<Failure>, at: Timestamp) {
    workflow.board.set_now(at);
    workflow.undoing = Some(failure);
    workflow.undo();
}

/// A step was in doubt, and a person was asked: the step asks again, which is then on record.
fn ask_a_person(workflow: &mut Workflow, entry: &Entry, step: &StepId) -> Result<(), Wait> {
    let Some(wait) = entry.event.subject() else { return Ok(()) };
    let asked = workflow.board.doubt_recorded(step) && {
        workflow.poll_now();
        workflow.board.set_recorded(&Key::Signal(wait.clone()))
    };
    if asked { Ok(()) } else { Err(mismatch(entry, format!("the code waits for {}", workflow.board.waits_for()))) }
}

fn mismatch(entry: &Entry, found: String) -> Wait {
    let subject = entry.event.subject().map(|subject| format!(" {subject}")).unwrap_or_default();
    Wait::Mismatch { at: entry.seq, expected: format!("{}{subject}", entry.event.kind()), found }
}
