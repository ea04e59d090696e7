//! Another life of a run: what is carried over, what is discarded, what is supplied.
//! ended, interrupted, waiting --RetryRun--> running | ready: RUN_RETRIED
//!
//! What the code was told before the outcome of a step cannot depend on it, and neither can what it was told later in another branch of the same `join` or
//! `all`. So that is carried over, everything else from the outcome on is discarded, and so is what is on record of steps that are not done. A step that is
//! not repeatable and may have happened stays in doubt. A step that was undone is never carried over, nor a child of which nothing more can come. The
//! cut is at the end of the code at the latest: what was settled there was settled by nobody. If nothing in a stage of a task has failed, and the task has
//! all the same, its code did not accept what the stage was told: the cut is where the stage begins.
//!
//! Tested by `crates/sdk/tests/it/epochs.rs`.

use super::evolve::{evolve, forget_answers, go_on, remember};
use super::turn::disarm_all;
use super::{Child, Deadline, Ended, How, Open, Phase, Run, Slots, Stage, Status, Step, Verb, task};
use crate::machine::Decision;
use crate::{
    Answer, Code, Effect, Entry, Event, Failure, LimitKey, Payload, Refusal, Retried, RetryFrom, RetryRun, RunId, Seq, StepId, Timestamp,
};
use std::collections::{BTreeMap, BTreeSet};

/// What a retry would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// The epoch that would begin.
    pub epoch: crate::Epoch,
    /// Steps on record that are executed again if the code comes to them.
    pub runs_again: Vec<StepId>,
    /// Steps of which what is on record is kept.
    pub kept: Vec<StepId>,
    /// Those of them that are not repeatable and whose last attempt may have happened: their probe, or a person, is asked before they are executed again.
    pub in_doubt: Vec<StepId>,
    /// Steps that are not executed because their output is supplied.
    pub supplied: Vec<StepId>,
    /// The idempotency keys under which attempts were made before and are made again: whoever receives them can tell that it is the same work.
    pub repeated_keys: Vec<String>,
    /// The idempotency keys of work that was done before and is done once more, as new work.
    pub new_keys: Vec<String>,
    /// Children that are called off; the code starts others in their place.
    pub cancelled_children: Vec<RunId>,
    /// Other children that are not carried over: their outcome is discarded, they were called off before, or nobody waits for them.
    pub restarted_children: Vec<RunId>,
    /// Signals that were taken and have to be sent again.
    pub signals_asked_again: Vec<String>,
    /// Limits that a slot is asked of before it begins.
    pub slots: Vec<LimitKey>,
}

pub(super) fn decide(run: &Run, command: RetryRun, now: Timestamp) -> Result<Decision, Refusal> {
    let decision = begin(run, command, now)?;
    Ok(task::let_begin(run, decision, now))
}

/// Another life; a task waits for its turn.
pub(super) fn begin(run: &Run, command: RetryRun, now: Timestamp) -> Result<Decision, Refusal> {
    if run.has_done(Verb::Retry, &command.origin) {
        return Ok(Decision::answer(Answer::Retried));
    }
    if run.task.is_some() && is_edited(&command) {
        return Err(run.refuse("a task is retried from its checkpoint or from its start, with what it was given"));
    }
    let retried = plan(run, command)?;
    let entry = Entry::new(run.seq + 1, run.epoch + 1, now, Event::RunRetried(Box::new(retried)));
    let mut effects = disarm_all(run);
    if let Ok(next) = evolve(&run.id, Some(run.clone()), &entry) {
        effects.extend(next.timers().into_iter().map(Effect::Arm));
        effects.push(Effect::Close);
        if !next.is_ready() {
            effects.push(Effect::Host);
        }
    }
    effects.push(Effect::Answer(Answer::Retried));
    Ok(Decision { entries: vec![entry], effects })
}

/// Whether it begins somewhere in between, or with something else than before.
fn is_edited(command: &RetryRun) -> bool {
    let in_between = match &command.from {
        RetryFrom::Failed | RetryFrom::Start | RetryFrom::Letter { .. } => false,
        RetryFrom::Step(_) => true,
        RetryFrom::Steps(steps) => !steps.is_empty(),
    };
    in_between || command.input.is_some() || !command.outputs.is_empty()
}

/// What a retry would do; nothing changes.
///
/// # Errors
/// As the retry itself.
pub fn preview(run: &Run, command: RetryRun) -> Result<Preview, Refusal> {
    let retried = plan(run, command)?;
    let records = run.records();
    let reset = |step: &StepId| retried.resets(step);
    let supplied: Vec<StepId> = retried.supplied.iter().map(|(step, _)| step.clone()).collect();
    let (again, kept): (Vec<_>, Vec<_>) = records.steps.iter().filter(|(step, _)| is_of_the_user(step)).partition(|(step, _)| reset(step));
    let again: Vec<_> = again.into_iter().filter(|(step, _)| !supplied.contains(step)).collect();
    let in_doubt = kept.iter().copied().filter(|(_, state)| !state.is_done()).collect();
    let names = |steps: Vec<(&StepId, &Step)>| steps.into_iter().map(|(step, _)| step.clone()).collect();
    let key = |(step, state): &(&StepId, &Step)| {
        let mut generations = run.generations.clone();
        if succeeded(state) {
            *generations.of.entry((*step).clone()).or_default() += 1;
        }
        generations.key(&run.id, step)
    };
    let (new, repeated): (Vec<_>, Vec<_>) = again.iter().partition(|(_, state)| succeeded(state));
    let children = records.children.iter().filter(|(child, _)| reset(child)).map(|(_, child)| child);
    let (cancelled, restarted): (Vec<_>, Vec<_>) = children.partition(|child| !child.detached && !child.ended && !child.cancelled);
    let ids = |children: Vec<&Child>| children.into_iter().map(|child| child.run.clone()).collect();
    let spent = spent_signals(records, &retried);
    Ok(Preview {
        epoch: run.epoch + 1,
        runs_again: again.iter().map(|(step, _)| (*step).clone()).collect(),
        kept: names(kept),
        in_doubt: names(in_doubt),
        supplied,
        repeated_keys: repeated.into_iter().map(key).collect(),
        new_keys: new.into_iter().map(key).collect(),
        cancelled_children: ids(cancelled),
        restarted_children: ids(restarted),
        signals_asked_again: spent.into_values().collect(),
        slots: run.options.limits.iter().filter(|_| run.ended().is_some()).map(|limit| limit.key.clone()).collect(),
    })
}

fn is_of_the_user(step: &StepId) -> bool {
    step.undone().is_none() && !step.is_version()
}

fn succeeded(step: &Step) -> bool {
    matches!(step, Step::Done { how: How::Completed | How::Undone, .. })
}

/// Which records are kept and which are not.
fn plan(run: &Run, command: RetryRun) -> Result<Retried, Refusal> {
    let RetryRun { origin, from, input, outputs, blocked, in_flight } = command;
    if let RetryFrom::Letter { letter, step, number } = &from
        && !(number.is_some_and(|number| number > run.numbered_from()) && run.letters.contains(step))
    {
        return Err(Refusal::LetterNotFound { letter: letter.clone() }); // redriven, dropped, or of a past that the run no longer has
    }
    if in_flight {
        let what_to_do = "an attempt is in flight: retry it when that has ended, or cancel it first";
        return Err(Refusal::WrongStatus { run: run.id.clone(), status: Status::Running, what_to_do: what_to_do.into() });
    }
    may_be_retried(run, &from, input.is_some(), blocked)?;
    let records = run.records();
    let is_undone = run.task_status() == Some(crate::TaskStatus::RolledBack); // nothing of it is done any more
    let (from_start, from_failed) = (input.is_some() || from == RetryFrom::Start || is_undone, from == RetryFrom::Failed);
    let from = match from {
        _ if from_start => Vec::new(),
        RetryFrom::Step(step) | RetryFrom::Letter { step, .. } => vec![step],
        RetryFrom::Steps(steps) => steps,
        RetryFrom::Failed | RetryFrom::Start => failed(run, records),
    };
    let refused = task::refused_stage(run).filter(|_| from_failed && from.is_empty());
    let mut retried = Retried {
        origin,
        cut: if from_start { 2 } else { refused.unwrap_or_else(|| end_of_the_code(run)) },
        cuts: Vec::new(),
        reset: Vec::new(),
        supplied: outputs,
        input,
        from,
    };
    for step in retried.from.clone() {
        let place = place(run, records, &step).ok_or_else(|| Refusal::StepNotFound { run: run.id.clone(), step: step.clone() })?;
        retried.cut_at(place, &step);
    }
    for (step, _) in retried.supplied.clone() {
        place(run, records, &step).into_iter().for_each(|place| retried.cut_at(place, &step));
    }
    for (step, state) in &records.steps {
        if let Step::Done { at, how: How::Undone } = state {
            retried.cut_at(*at, step);
        }
    }
    let (cut, cuts) = (retried.cut, &mut retried.cuts);
    cuts.retain(|(at, _)| *at < cut);
    retried.reset = reset(run, records, &retried);
    Ok(retried)
}

impl Retried {
    /// What may depend on the outcome of that step, which was told at that place, is not kept.
    fn cut_at(&mut self, place: Seq, step: &StepId) {
        if step.is_in_a_fork() {
            self.cuts.push((place, step.clone()));
        } else {
            self.cut = self.cut.min(place);
        }
    }
}

/// The steps and children that begin again.
fn reset(run: &Run, records: &Open, retried: &Retried) -> Vec<StepId> {
    let is_kept = |id: &StepId, step: &Step| match step {
        Step::Done { at, .. } => !retried.cuts_off(id, *at),
        Step::Started { .. } => records.begun.get(id).is_some_and(|at| !retried.cuts_off(id, *at)), // it stays in doubt
        Step::Backoff { .. } => false,
    };
    let supplied = retried.supplied.iter().map(|(step, _)| step).filter(|step| records.steps.contains_key(step));
    let steps = records
        .steps
        .iter()
        .filter(|(id, step)| id.undone().is_none() && !is_kept(id, step))
        .map(|(id, _)| id);
    let is_discarded = |id: &StepId, child: &Child| {
        let not_told = child.taken.is_none_or(|taken| retried.cuts_off(id, taken));
        retried.cuts_off(id, child.started) || (not_told && is_lost(run, child))
    };
    let children = records.children.iter().filter(|(id, child)| is_discarded(id, child)).map(|(id, _)| id);
    steps
        .chain(children)
        .chain(&retried.from)
        .chain(supplied)
        .cloned()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

fn may_be_retried(run: &Run, from: &RetryFrom, edited: bool, blocked: bool) -> Result<(), Refusal> {
    let refused = |what_to_do| Err(run.refuse(what_to_do));
    if run.is_handed_over() {
        return refused(task::ELSEWHERE);
    }
    if run.is_half_undone() && !matches!(from, RetryFrom::Start | RetryFrom::Steps(_)) {
        return refused("some of what it did is undone: roll it back again, or retry it from its start");
    }
    match run.status() {
        Status::Failed | Status::Cancelled | Status::Interrupted | Status::Waiting => Ok(()),
        Status::Completed if *from == RetryFrom::Failed && run.task.is_some() => {
            refused("it has done all of its stages: retry it from its start")
        }
        Status::Completed if *from == RetryFrom::Failed && !edited => {
            refused("it has no failed step: say from which step, or from the start, it is to be retried")
        }
        Status::Completed => Ok(()),
        Status::Running if blocked => Ok(()),
        Status::Ready if run.waits_again() => Ok(()),
        Status::Ready => refused("it has not begun: cancel it, or wait for its slot"),
        Status::Paused => refused("resume it, or cancel it, before it is retried"),
        Status::Running | Status::Compensating => refused("retry it when it waits or has ended, or cancel it first"),
    }
}

/// The first place that says nothing more of the code. What the code waited for then was settled by its end, and is asked for again.
fn end_of_the_code(run: &Run) -> Seq {
    match (&run.records().stage, run.ended()) {
        (Stage::Compensating { at, .. }, _) => *at,
        (Stage::Running, Some(_)) => run.seq,
        (Stage::Running, None) => run.seq + 1,
    }
}

/// Nothing more can come of that child: it was told to end, or nobody heard of its end.
fn is_lost(run: &Run, child: &Child) -> bool {
    let completed = child.ended && child.failure.is_none();
    !child.detached && !completed && (child.cancelled || (run.ended().is_some() && !child.ended))
}

/// The place from which nothing may be kept if that step, child, wait or sleep is to begin again.
fn place(run: &Run, records: &Open, step: &StepId) -> Option<Seq> {
    match (records.steps.get(step).filter(|_| step.undone().is_none()), records.children.get(step)) {
        (Some(Step::Done { at, .. }), _) => Some(*at),
        (Some(_), _) => Some(end_of_the_code(run)), // it has no outcome that anything could depend on
        (None, Some(child)) => Some(child.started),
        (None, None) => {
            let wait = records.awaits.get(step).map(|awaited| awaited.revision);
            wait.or_else(|| records.sleeps.get(step).map(|sleep| sleep.revision))
        }
    }
}

/// The steps and children whose failure a run that has failed did not get over: it is the very failure that the run has ended with, or nothing that could
/// depend on it has succeeded after it; and the waits for a signal that did not come in time, if that is what the run has ended with. There may be several, side by side.
fn failed(run: &Run, records: &Open) -> Vec<StepId> {
    let Some(Ended { outcome: Err(end), cancelled: false, .. }) = run.ended() else { return Vec::new() };
    let steps = records.steps.iter().filter_map(|(id, step)| match step {
        Step::Done { at, how: How::Failed(failure) } => Some((*at, id, failure)),
        _ => None,
    });
    let children = records.children.iter().filter_map(|(id, child)| Some((child.taken?, id, child.failure.as_ref()?)));
    let went_on = |told: Seq, id: &StepId| {
        let later =
            |(other, step): (&StepId, &Step)| matches!(step, Step::Done { at, how: How::Completed } if *at > told) && !id.is_beside(other);
        records.steps.iter().any(later)
    };
    let late = records
        .awaits
        .iter()
        .filter(|(_, awaited)| awaited.settled.is_some_and(|settled| settled.signal.is_none()) && *end == too_late(&awaited.name))
        .map(|(id, _)| id.clone());
    steps
        .chain(children)
        .filter(|(told, id, failure)| *failure == end || !went_on(*told, id))
        .map(|(_, id, _)| id.clone())
        .chain(late)
        .collect()
}

/// What the code is told when a signal has not come in time.
pub fn too_late(signal: &str) -> Failure {
    Failure::permanent(format!("the signal {signal:?} did not come in time")).code(Code::DeadlineExceeded)
}

/// Signals that were taken and whose taking is discarded, with their names: they are spent, and have to be sent again.
fn spent_signals(records: &Open, retried: &Retried) -> BTreeMap<Seq, String> {
    let discarded = records.awaits.iter().filter_map(|(wait, awaited)| {
        let settled = awaited.settled.filter(|settled| retried.discards_wait(wait, settled.at))?;
        Some((settled.signal?, awaited.name.clone()))
    });
    discarded.collect()
}

/// The state of the new life.
pub(super) fn begin_again(run: &mut Run, entry: &Entry, retried: &Retried) {
    let had_ended = run.ended().is_some();
    let mut open = match std::mem::replace(&mut run.phase, Phase::Open(Open::default())) {
        Phase::Open(open) => open,
        Phase::Ended(_, left) => *left,
    };
    let reset: BTreeSet<&StepId> = retried.reset.iter().collect();
    for (step, state) in &open.steps {
        if reset.contains(step) && succeeded(state) {
            *run.generations.of.entry(step.clone()).or_default() += 1;
        }
    }
    for child in open.children.keys().filter(|child| reset.contains(child)) {
        *run.generations.of.entry(child.clone()).or_default() += 1;
    }
    let spent = spent_signals(&open, retried);
    open.signal_ids.retain(|_, signal| !spent.contains_key(signal));
    forget_answers(&mut open);
    open.steps.retain(|step, _| !reset.contains(step) && step.undone().is_none());
    open.begun.retain(|step, _| open.steps.contains_key(step));
    open.children.retain(|child, _| !reset.contains(child));
    open.undoable.retain(|step| open.steps.contains_key(step));
    keep_waits(&mut open, retried);
    let interrupted = open.interrupted.is_some();
    go_on(&mut open, entry.at);
    let is_as_before = !had_ended && reset.is_empty() && retried.supplied.is_empty() && retried.input.is_none() && retried.cut >= entry.seq;
    if !is_as_before || interrupted {
        open.in_flight = 1; // otherwise its code waits for what it waited for, and has nothing to say
    }
    (open.stage, open.cancel_requested) = (Stage::Running, false);
    run.letters.retain(|step| !reset.contains(step));
    run.supplied = retried.supplied.iter().cloned().collect::<BTreeMap<StepId, Payload>>();
    remember(run, Verb::Retry, &retried.origin);
    (run.epoch, run.retried) = (entry.epoch, Some((entry.at, entry.seq)));
    run.details.retain(|step, _| step.undone().is_none());
    if let Some(input) = &retried.input {
        run.input = input.clone();
        run.details.clear(); // they were about another input
    }
    run.deadline =
        run.deadline
            .map(|Deadline { allowed, .. }| Deadline { at: entry.at.saturating_add(allowed), allowed, revision: entry.seq });
    run.retry_context = None;
    run.past.verbs.clear(); // they were about the life before
    run.task.iter_mut().for_each(|task| task::begin_again(task, retried));
    if had_ended {
        run.slots = Slots { epoch: run.epoch, asked: run.options.limits.len().min(1), held: 0 };
    }
    run.phase = Phase::Open(open);
}

/// Sleeps and waits that were asked for before the cut are kept; what became of them after it is not.
fn keep_waits(open: &mut Open, retried: &Retried) {
    open.sleeps.retain(|id, sleep| !retried.discards_wait(id, sleep.revision));
    for (id, sleep) in &mut open.sleeps {
        sleep.fired = sleep.fired.filter(|fired| !retried.cuts_off(id, *fired));
    }
    open.awaits.retain(|id, awaited| !retried.discards_wait(id, awaited.revision));
    for (id, awaited) in &mut open.awaits {
        awaited.settled = awaited.settled.filter(|settled| !retried.cuts_off(id, settled.at));
    }
    for (id, child) in &mut open.children {
        child.taken = child.taken.filter(|taken| !retried.cuts_off(id, *taken));
        child.cancelled = false;
    }
}
