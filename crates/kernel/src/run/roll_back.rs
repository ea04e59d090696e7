//! Undo what a task did, newest first. A task that is under way stops; one that has ended, or is interrupted, begins a life in which nothing else is done.
//! open --RollBackRun--> open: RUN_CANCEL_REQUESTED · ended, interrupted --RollBackRun--> ready: RUN_RETRIED, RUN_CANCEL_REQUESTED · never begun: as cancel

use super::evolve::evolve;
use super::turn::disarm_all;
use super::{Decision, Run, Verb, cancel, retry, task};
use crate::{Answer, CancelRun, Completion, Effect, Entry, Event, Origin, Refusal, RetryFrom, RetryRun, TaskStatus, Timestamp};

pub(super) fn decide(run: &Run, origin: Origin, now: Timestamp) -> Result<Decision, Refusal> {
    let refused = |what_to_do| Err(run.refuse(what_to_do));
    let Some(state) = run.task() else { return refused("only tasks of plans are rolled back; cancel it, and it undoes what it did") };
    if run.has_done(Verb::RollBack, &origin) {
        return Ok(Decision::answer(Answer::RollingBack));
    }
    match run.task_status() {
        Some(TaskStatus::HandedOver) => return refused(task::ELSEWHERE),
        Some(TaskStatus::RollingBack) => return Ok(Decision::answer(Answer::RollingBack)),
        Some(TaskStatus::RolledBack) => return refused("it is rolled back already"),
        _ => {}
    }
    if state.started_at.is_none() {
        return match run.open() {
            Some(_) => cancel::decide(run, CancelRun { origin, blocked: false }, now),
            None => refused("it never began: there is nothing to undo"),
        };
    }
    let is_at_rest = run.open().is_none_or(|open| open.interrupted.is_some()) || task::is_being_undone(run);
    if is_at_rest {
        return begin_again(run, origin, now);
    }
    let entry = run.entry(0, now, None, requested(origin));
    let mut effects = Vec::new();
    if !run.is_ready() {
        effects.push(Effect::Deliver(Completion::Stopped { failure: None, undo: true }));
        if run.open().is_some_and(super::Open::stands_still) {
            let timers = evolve(&run.id, Some(run.clone()), &entry).map(|next| next.timers()).unwrap_or_default();
            effects = timers.into_iter().map(Effect::Arm).chain(effects).chain([Effect::Resume]).collect();
        }
    }
    effects.push(Effect::Answer(Answer::RollingBack));
    Ok(Decision { entries: vec![entry], effects })
}

/// Another life, which keeps everything and undoes it.
fn begin_again(run: &Run, origin: Origin, now: Timestamp) -> Result<Decision, Refusal> {
    let nobody = Origin { command: None, ..origin.clone() };
    let keep_all = RetryRun { origin: nobody, from: RetryFrom::Steps(Vec::new()), ..RetryRun::default() };
    let mut decision = retry::begin(run, keep_all, now)?;
    let (seq, epoch) = (run.seq + 2, run.epoch + 1);
    decision.entries.push(Entry::new(seq, epoch, now, requested(origin)));
    decision.effects.retain(|effect| !matches!(effect, Effect::Arm(_) | Effect::Answer(_)));
    decision.effects.extend(disarm_all(run).into_iter().chain([Effect::Answer(Answer::RollingBack)]));
    Ok(task::let_begin(run, decision, now))
}

fn requested(origin: Origin) -> Event {
    Event::RunCancelRequested { origin, terminate: false, undo: true }
}
