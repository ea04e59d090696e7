//! The fold: one entry after another gives the state. The same function live and at recovery.

use super::retry::begin_again;
use super::said::said;
use super::signal::answers_a_question;
use super::task;
use super::{
    Await, Child, Deadline, Ended, Generations, How, Open, Past, Paused, Phase, RetryContext, Run, Settled, Sleep, Slots, Stage, Step, Verb,
};
use crate::machine::{IllegalTransition, envelopes, illegal};
use crate::random::Seed;
use crate::{Class, Code, EntityId, Entry, Envelope, Event, Failure, Heard, Origin, Payload, RunId, Seq, TaskEvent, TimerName, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Folds one entry into the state; `None` is the state of a run that does not exist yet.
///
/// # Errors
/// [`IllegalTransition`] if the entry cannot come next: a gap, another epoch, or anything the machine does not list.
pub fn evolve(id: &RunId, state: Option<Run>, entry: &Entry) -> Result<Run, IllegalTransition> {
    match state {
        None => begin_with(id, entry).map(|(run, _)| run),
        Some(mut run) => advance(&mut run, entry).map(|_said| run),
    }
}

/// The state of a run that begins with that entry, and what it tells others.
///
/// # Errors
/// [`IllegalTransition`] if no journal begins like that.
pub fn begin_with(id: &RunId, entry: &Entry) -> Result<(Run, Vec<Envelope>), IllegalTransition> {
    let me = EntityId::from(id);
    if entry.seq != 1 {
        return Err(illegal(&me, entry, "event 1 is missing"));
    }
    let mut run = begin(id, entry).ok_or_else(|| illegal(&me, entry, "a journal begins with RUN_STARTED"))?;
    let said = take_in(&mut run, &me, entry);
    Ok((run, said))
}

/// Folds one entry into the state, in place, and tells what it says to others.
///
/// # Errors
/// [`IllegalTransition`] if the entry cannot come next; the state is as it was.
pub fn advance(run: &mut Run, entry: &Entry) -> Result<Vec<Envelope>, IllegalTransition> {
    let me = EntityId::from(&run.id);
    let next = run.seq + 1;
    if entry.seq != next {
        return Err(illegal(&me, entry, format!("event {next} is missing")));
    }
    let epoch = run.epoch + u32::from(opens_an_epoch(&entry.event));
    if entry.epoch != epoch {
        return Err(illegal(&me, entry, format!("it belongs to epoch {}, the run is in epoch {}", entry.epoch, run.epoch)));
    }
    run.may_follow(&entry.event).map_err(|why| illegal(&me, entry, why))?;
    Ok(take_in(run, &me, entry))
}

fn take_in(run: &mut Run, me: &EntityId, entry: &Entry) -> Vec<Envelope> {
    let said = envelopes(me, run.numbered_from() + run.sent, said(run, entry));
    run.sent += said.len() as u64;
    apply(run, entry);
    if let Some(Heard { from, seq }) = &entry.heard {
        run.heard.insert(from.clone(), *seq);
    }
    run.seq = entry.seq;
    said
}

/// What operators, and restarts, ask of the run: it still counts when its code goes on with a fresh past.
pub(super) fn is_verb(event: &Event) -> bool {
    matches!(event, Event::RunPaused { .. } | Event::RunResumed { .. } | Event::RunInterrupted | Event::RunCancelRequested { .. })
}

/// What begins another life of the run.
pub(super) fn opens_an_epoch(event: &Event) -> bool {
    matches!(event, Event::RunRetried(_) | Event::RunContinued { .. })
}

fn begin(id: &RunId, entry: &Entry) -> Option<Run> {
    let Event::RunStarted { workflow, input, seed, deadline_at, options } = &entry.event else { return None };
    let deadline = deadline_at.map(|at| Deadline { at, allowed: at.saturating_since(entry.at), revision: entry.seq });
    Some(Run {
        id: id.clone(),
        workflow: workflow.clone(),
        input: input.clone(),
        given: input.clone(),
        seed: *seed,
        options: options.clone(),
        epoch: entry.epoch,
        retried: None,
        seq: entry.seq,
        sent: 0,
        heard: BTreeMap::new(),
        commands: BTreeSet::new(),
        started_at: entry.at,
        deadline,
        retry_context: None,
        generations: Generations::default(),
        supplied: BTreeMap::new(),
        letters: BTreeSet::new(),
        slots: Slots::default(),
        details: BTreeMap::new(),
        note: None,
        past: Past::default(),
        task: options.task.as_ref().map(|_| Box::default()),
        phase: Phase::Open(Open { in_flight: 1, ..Open::default() }),
    })
}

fn apply(run: &mut Run, entry: &Entry) {
    match &entry.event {
        Event::RunStarted { options, .. } => run.slots = Slots { epoch: run.epoch, asked: options.limits.len().min(1), held: 0 },
        Event::RunRetried(retried) => return begin_again(run, entry, retried),
        Event::RunContinued { input } => return continue_as_new(run, entry, input),
        Event::SlotAcquired { .. } => {
            run.slots.held += 1;
            run.slots.asked = run.options.limits.len().min(run.slots.held + 1);
        }
        Event::RetryScheduled { step, attempt, delay, details, .. } => {
            run.retry_context = Some(RetryContext { current_attempt: *attempt, last_backoff: *delay });
            run.details.extend(details.clone().map(|details| (step.clone(), details)));
        }
        Event::StepHeartbeat { step, details, .. } => drop(run.details.insert(step.clone(), details.clone())),
        Event::StepCompleted { step, .. } => {
            run.details.remove(step);
            run.task.iter_mut().for_each(|task| task::record_done(task, entry));
        }
        Event::RunInterrupted => run.task.iter_mut().for_each(|task| task.adopting = false),
        Event::UndoCompleted { step, .. } => drop(run.details.remove(&step.undo())),
        Event::ProgressNoted { text, .. } => run.note = Some(text.clone()),
        Event::StepFailed { step, failure, .. } if failure.class == Class::Poison => drop(run.letters.insert(step.clone())),
        Event::RunPaused { origin } => remember(run, Verb::Pause, origin),
        Event::RunResumed { origin } => remember(run, Verb::Resume, origin),
        Event::RunCancelRequested { origin, terminate, undo } => {
            let verb = if *undo { Verb::RollBack } else { Verb::Cancel };
            remember(run, if *terminate { Verb::Terminate } else { verb }, origin);
            run.task.iter_mut().for_each(|task| task.rolls_back = *undo);
        }
        Event::RunCompensating { .. } => task::undo(run, entry),
        Event::Task(event) => run.task.iter_mut().for_each(|task| task::record(task, entry, event)),
        _ => {}
    }
    if is_verb(&entry.event) {
        run.past.verbs.insert(entry.seq);
    }
    if let (Phase::Ended(ended, _), Some((outcome, cancelled))) = (&mut run.phase, end(&entry.event)) {
        *ended = Ended { at: entry.at, outcome, cancelled }; // a task that had failed is called off
        return task::end(run, false);
    }
    let Phase::Open(open) = &mut run.phase else { return };
    if let Some(in_flight) = entry.in_flight {
        (open.in_flight, open.held) = (in_flight, entry.held);
    }
    if let Some(gone_on) = goes_on(open, entry)
        && let Some(deadline) = &mut run.deadline
    {
        deadline.at = deadline.at.saturating_add(gone_on);
    }
    record(open, entry);
    entry.abandoned.iter().for_each(|name| abandon(open, name, entry.seq)); // after the event: it may have been asked for in the same turn
    if let Some((outcome, cancelled)) = end(&entry.event) {
        let left = std::mem::take(open);
        let failed = outcome.is_err() && !cancelled;
        run.phase = Phase::Ended(Ended { at: entry.at, outcome, cancelled }, Box::new(left));
        run.slots = Slots::default();
        task::end(run, failed);
    }
}

/// The same command again is one.
pub(super) fn remember(run: &mut Run, verb: Verb, origin: &Origin) {
    run.commands.extend(origin.command.clone().map(|id| (verb, id)));
}

/// What is kept of an event.
fn record(open: &mut Open, entry: &Entry) {
    let (since, revision) = (entry.at, entry.seq);
    match &entry.event {
        Event::StepStarted { step, attempt } => {
            open.steps.insert(step.clone(), Step::Started { attempt: *attempt });
            open.begun.insert(step.clone(), revision);
        }
        Event::StepCompleted { step, undoable, .. } => {
            open.steps.insert(step.clone(), Step::Done { at: revision, how: How::Completed });
            if *undoable {
                open.undoable.insert(step.clone());
            }
        }
        Event::StepFailed { step, failure, .. } => {
            open.steps.insert(step.clone(), Step::Done { at: revision, how: How::Failed(failure.clone()) });
        }
        Event::RetryScheduled { step, attempt, of, due_at, failure, .. } => {
            let (attempt, of, due_at, failure) = (*attempt, *of, *due_at, failure.clone());
            open.steps.insert(step.clone(), Step::Backoff { attempt, of, due_at, since, revision, failure });
        }
        Event::TimerSet { sleep, due_at } => {
            open.sleeps.insert(sleep.clone(), Sleep { due_at: *due_at, since, revision, fired: None });
        }
        Event::TimerFired { sleep } => match open.awaits.get_mut(sleep) {
            Some(awaited) => awaited.settled = Some(Settled { at: revision, signal: None }),
            None => drop(open.sleeps.get_mut(sleep).map(|sleep| sleep.fired = Some(revision))),
        },
        Event::SignalAwaited { wait, name, until, approval } => {
            let (name, approval) = (name.clone(), approval.clone());
            open.awaits
                .insert(wait.clone(), Await { name, until: *until, approval, since, revision, settled: None });
        }
        Event::SignalReceived { name, id, .. } => {
            open.signal_ids.extend(id.clone().map(|id| (id, revision)));
            open.signals.insert(revision, name.clone());
        }
        Event::SignalTaken { wait, signal } => {
            open.signals.remove(signal);
            if let Some(awaited) = open.awaits.get_mut(wait) {
                awaited.settled = Some(Settled { at: revision, signal: Some(*signal) });
            }
        }
        Event::ChildStarted { child, run, options, .. } => {
            let detached = options.parent.as_ref().is_some_and(|parent| parent.detached);
            let new = Child { run: run.clone(), detached, started: revision, ended: false, failure: None, taken: None, cancelled: false };
            open.children.insert(child.clone(), new);
        }
        Event::ChildEnded { child, outcome } => {
            if let Some(child) = open.children.get_mut(child) {
                (child.ended, child.failure) = (true, outcome.as_ref().err().cloned());
            }
        }
        Event::ChildTaken { child } => drop(open.children.get_mut(child).map(|child| child.taken = Some(revision))),
        Event::RunPaused { origin } => open.paused = Some(Paused { at: since, origin: origin.clone() }),
        Event::RunInterrupted => open.interrupted = Some(since),
        Event::RunCancelRequested { .. } => open.cancel_requested = true,
        Event::RunCompensating { failure } => compensate(open, failure.clone(), revision),
        Event::UndoCompleted { step, .. } => {
            open.undoable.remove(step);
            open.steps.insert(step.undo(), Step::Done { at: revision, how: How::Completed });
            if let Some(Step::Done { how, .. }) = open.steps.get_mut(step) {
                *how = How::Undone;
            }
        }
        Event::UndoFailed { step, .. } => drop(open.steps.remove(&step.undo())), // a person may have it tried again, from the first attempt on
        Event::RunFailed { .. } | Event::RunCancelled => cancel_children(open),
        Event::Task(event) if **event == TaskEvent::Started && open.paused.is_some() => {
            open.held += std::mem::take(&mut open.in_flight); // its code begins when it is resumed
        }
        _ => {}
    }
}

fn end(event: &Event) -> Option<(Result<Payload, Failure>, bool)> {
    match event {
        Event::RunCompleted { output } => Some((Ok(output.clone()), false)),
        Event::RunFailed { failure } => Some((Err(failure.clone()), false)),
        Event::RunCancelled => Some((Err(Failure::new(Code::Cancelled, "the run was cancelled")), true)),
        _ => None,
    }
}

/// How long the run's own time stood still, if that event makes it go on.
fn goes_on(open: &mut Open, entry: &Entry) -> Option<Duration> {
    matches!(entry.event, Event::RunResumed { .. } | Event::RunCancelRequested { .. }).then(|| go_on(open, entry.at))?
}

/// The run's own time goes on, if it stood still: what is pending keeps the time that was left. How long it stood still.
pub(super) fn go_on(open: &mut Open, now: Timestamp) -> Option<Duration> {
    let still = open.still_since()?;
    (open.paused, open.interrupted) = (None, None);
    open.in_flight += std::mem::take(&mut open.held);
    let later = |due: &mut Timestamp, since: Timestamp| *due = due.saturating_add(now.saturating_since(still.max(since)));
    for step in open.steps.values_mut() {
        if let Step::Backoff { due_at, since, .. } = step {
            later(due_at, *since);
        }
    }
    open.sleeps
        .values_mut()
        .filter(|sleep| sleep.fired.is_none())
        .for_each(|sleep| later(&mut sleep.due_at, sleep.since));
    for awaited in open.awaits.values_mut().filter(|awaited| awaited.is_open()) {
        if let Some(until) = &mut awaited.until {
            later(until, awaited.since);
        }
    }
    Some(now.saturating_since(still))
}

/// The code does not wait for it any more, and nothing of it may fire.
fn abandon(open: &mut Open, name: &TimerName, at: Seq) {
    match name {
        TimerName::Retry(step) => match open.steps.get(step) {
            Some(Step::Done { .. }) => {}
            _ => drop(open.steps.insert(step.clone(), Step::Done { at, how: How::Abandoned })),
        },
        TimerName::Sleep(id) => {
            if let Some(awaited) = open.awaits.get_mut(id) {
                awaited.settled.get_or_insert(Settled { at, signal: None });
            } else if let Some(sleep) = open.sleeps.get_mut(id) {
                sleep.fired.get_or_insert(at);
            } else if let Some(child) = open.children.get_mut(id) {
                child.taken.get_or_insert(at);
            }
        }
        TimerName::Deadline | TimerName::Expiry | TimerName::Callback(_) | TimerName::Forget | TimerName::Lease => {}
    }
}

/// The code is gone, and with it everything it waited for. What may have happened stays in doubt.
fn compensate(open: &mut Open, failure: Option<Failure>, at: Seq) {
    open.stage = Stage::Compensating { failure, at };
    open.in_flight = open.in_flight.max(1);
    for step in open.steps.values_mut().filter(|step| matches!(step, Step::Backoff { .. })) {
        *step = Step::Done { at, how: How::Abandoned };
    }
    for sleep in open.sleeps.values_mut() {
        sleep.fired.get_or_insert(at);
    }
    for awaited in open.awaits.values_mut() {
        awaited.settled.get_or_insert(Settled { at, signal: None });
    }
    cancel_children(open);
}

fn cancel_children(open: &mut Open) {
    for child in open.children.values_mut().filter(|child| !child.detached && !child.ended) {
        child.cancelled = true;
    }
}

/// The code begins again without a past; what was sent to it and not taken is still there, and so are its slots. Children that have not ended are
/// left to themselves, and letters to people.
fn continue_as_new(run: &mut Run, entry: &Entry, input: &Payload) {
    let Phase::Open(open) = &mut run.phase else { return };
    forget_answers(open);
    run.past.continued = entry.seq;
    run.past.kept = open.signals.keys().chain(&run.past.verbs).chain([&1]).copied().collect();
    *open = Open {
        in_flight: 1,
        signals: std::mem::take(&mut open.signals),
        signal_ids: std::mem::take(&mut open.signal_ids),
        cancel_requested: open.cancel_requested,
        paused: open.paused.take(),
        ..Open::default()
    };
    let discarded = run.generations.of.values().max().copied().unwrap_or_default();
    run.generations = Generations { base: run.generations.base + discarded + 1, of: BTreeMap::new() };
    run.epoch = entry.epoch;
    run.input = input.clone();
    run.seed = next_seed(&run.seed);
    run.retried = None;
    run.supplied.clear();
    run.details.clear();
    run.letters.clear();
    (run.retry_context, run.note) = (None, None);
}

/// The questions of a life end with it, and an answer is not kept for a later question.
pub(super) fn forget_answers(open: &mut Open) {
    let answers: Vec<Seq> = open
        .signals
        .iter()
        .filter(|(_, name)| answers_a_question(name))
        .map(|(signal, _)| *signal)
        .collect();
    open.signals.retain(|signal, _| !answers.contains(signal));
    open.signal_ids.retain(|_, signal| !answers.contains(signal));
}

/// A seed for the next life, whose chance is not that of this one.
pub(super) fn next_seed(seed: &Seed) -> Seed {
    seed.derive("", "next-seed")
}
