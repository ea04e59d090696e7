//! The fold: one entry after another gives the state. The same function live and at recovery.

use super::{Await, DEADLINE_REVISION, Ended, Open, Phase, RetryContext, Run, Sleep, Stage, Step};
use crate::{Code, Entry, Event, Failure, Payload, RunId, Seq, TimerName, Timestamp};

/// A journal that says something that cannot be: a bug or a damaged store. The evidence is kept, nothing is guessed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal of run {run} cannot be followed at event {seq} ({kind}): {why}")]
pub struct IllegalTransition {
    /// The run.
    pub run: RunId,
    /// The event that does not fit.
    pub seq: Seq,
    /// Its type.
    pub kind: &'static str,
    /// What it does not fit.
    pub why: String,
}

/// Folds one entry into the state; `None` is the state of a run that does not exist yet.
///
/// # Errors
/// [`IllegalTransition`] if the entry cannot come next: a gap, another epoch, or anything the machine does not list.
pub fn evolve(id: &RunId, state: Option<Run>, entry: &Entry) -> Result<Run, IllegalTransition> {
    let illegal = |why: String| IllegalTransition { run: id.clone(), seq: entry.seq, kind: entry.event.kind(), why };
    let next = state.as_ref().map_or(1, |run| run.seq + 1);
    if entry.seq != next {
        return Err(illegal(format!("event {next} is missing")));
    }
    let Some(mut run) = state else { return begin(id, entry).ok_or_else(|| illegal("a journal begins with RUN_STARTED".into())) };
    if entry.epoch != run.epoch {
        return Err(illegal(format!("it belongs to epoch {}, the run is in epoch {}", entry.epoch, run.epoch)));
    }
    run.may_follow(&entry.event).map_err(illegal)?;
    apply(&mut run, entry);
    run.seq = entry.seq;
    Ok(run)
}

fn begin(id: &RunId, entry: &Entry) -> Option<Run> {
    let Event::RunStarted { workflow, input, seed, deadline_at } = &entry.event else { return None };
    debug_assert_eq!(entry.seq, DEADLINE_REVISION);
    Some(Run {
        id: id.clone(),
        workflow: workflow.clone(),
        input: input.clone(),
        seed: *seed,
        epoch: entry.epoch,
        seq: entry.seq,
        started_at: entry.at,
        deadline_at: *deadline_at,
        retry_context: None,
        phase: Phase::Open(Open { in_flight: 1, ..Open::default() }),
    })
}

fn apply(run: &mut Run, entry: &Entry) {
    let Phase::Open(open) = &mut run.phase else { return };
    if let Some(in_flight) = entry.in_flight {
        open.in_flight = in_flight;
    }
    match &entry.event {
        Event::StepStarted { step, attempt } => {
            open.steps.insert(step.clone(), Step::Started { attempt: *attempt });
        }
        Event::StepCompleted { step, undoable, .. } => {
            open.steps.insert(step.clone(), Step::Done);
            if *undoable {
                open.undoable.insert(step.clone());
            }
        }
        Event::StepFailed { step, .. } => {
            open.steps.insert(step.clone(), Step::Done);
        }
        Event::RetryScheduled { step, attempt, of, delay, due_at, failure } => {
            let (attempt, of, due_at, failure) = (*attempt, *of, *due_at, failure.clone());
            open.steps.insert(step.clone(), Step::Backoff { attempt, of, due_at, revision: entry.seq, failure });
            run.retry_context = Some(RetryContext { current_attempt: attempt, last_backoff: *delay });
        }
        Event::TimerSet { sleep, due_at } => {
            open.sleeps.insert(sleep.clone(), Sleep::Pending { due_at: *due_at, revision: entry.seq });
        }
        Event::TimerFired { sleep } => {
            if open.awaits.remove(sleep).is_none() {
                open.sleeps.insert(sleep.clone(), Sleep::Fired);
            }
        }
        Event::SignalAwaited { wait, name, until } => {
            open.awaits.insert(wait.clone(), Await { name: name.clone(), until: *until, revision: entry.seq });
        }
        Event::SignalReceived { name, id, .. } => {
            open.signal_ids.extend(id.clone());
            open.signals.insert(entry.seq, name.clone());
        }
        Event::SignalTaken { wait, signal } => {
            open.awaits.remove(wait);
            open.signals.remove(signal);
        }
        Event::RunCancelRequested { .. } => open.cancel_requested = true,
        Event::RunCompensating { failure } => compensate(open, failure.clone()),
        Event::UndoCompleted { step, .. } => {
            open.undoable.remove(step);
            open.steps.insert(step.undo(), Step::Done);
        }
        Event::UndoFailed { step, .. } => {
            open.steps.remove(&step.undo()); // a person may have it tried again, from the first attempt on
        }
        Event::RunCompleted { output } => run.phase = ended(entry.at, Ok(output.clone())),
        Event::RunFailed { failure } => run.phase = ended(entry.at, Err(failure.clone())),
        Event::RunCancelled => {
            let failure = Failure::new(Code::Cancelled, "the run was cancelled");
            run.phase = Phase::Ended(Ended { at: entry.at, outcome: Err(failure), cancelled: true });
        }
        Event::RunStarted { .. } => {} // `may_follow` never lets a second one through
    }
    if let Phase::Open(open) = &mut run.phase {
        entry.abandoned.iter().for_each(|name| abandon(open, name)); // after the event: it may have been asked for in the same turn
    }
}

fn ended(at: Timestamp, outcome: Result<Payload, Failure>) -> Phase {
    Phase::Ended(Ended { at, outcome, cancelled: false })
}

/// The code does not wait for it any more, and nothing of it may fire.
fn abandon(open: &mut Open, name: &TimerName) {
    match name {
        TimerName::Retry(step) => drop(open.steps.insert(step.clone(), Step::Done)),
        TimerName::Sleep(sleep) if open.awaits.remove(sleep).is_some() => {}
        TimerName::Sleep(sleep) => drop(open.sleeps.insert(sleep.clone(), Sleep::Fired)),
        TimerName::Deadline => {}
    }
}

/// The code is gone, and with it everything it waited for.
fn compensate(open: &mut Open, failure: Option<Failure>) {
    open.stage = Stage::Compensating { failure };
    open.in_flight = open.in_flight.max(1);
    open.awaits.clear();
    for step in open.steps.values_mut() {
        *step = Step::Done;
    }
    for sleep in open.sleeps.values_mut() {
        *sleep = Sleep::Fired;
    }
}
