//! Call the run off. The host puts the end of the code in its place among what the code was told; where no host can, the run ends here if nothing has to
//! be undone.
//! A task ends at once: what it did is undone only if a person wants that, and one that has failed gives its lock back.
//! open --CancelRun--> open: RUN_CANCEL_REQUESTED, unless it was asked for before · ready or blocked, nothing to undo --CancelRun--> ended

use super::evolve::evolve;
use super::turn::disarm_all;
use super::{Decision, Run, Stage, Verb, task};
use crate::{Answer, CancelRun, Completion, Effect, Event, Refusal, Timestamp};

pub(super) fn decide(run: &Run, command: CancelRun, now: Timestamp) -> Result<Decision, Refusal> {
    let CancelRun { origin, blocked } = command;
    if run.has_done(Verb::Cancel, &origin) && !blocked {
        return Ok(Decision::answer(Answer::CancelRequested));
    }
    if run.is_handed_over() {
        return Err(run.refuse(task::ELSEWHERE));
    }
    if run.task.is_some() && (run.open().is_some() || task::may_be_called_off(run)) {
        return Ok(end(run, origin, now));
    }
    let Some(open) = run.open() else { return Err(run.over()) };
    let mut decision = Decision::default();
    if !open.cancel_requested || open.stands_still() {
        let entry = run.entry(0, now, None, Event::RunCancelRequested { origin, terminate: false, undo: false });
        let stopped = Effect::Deliver(Completion::Stopped { failure: None, undo: false });
        if open.stands_still() {
            let timers = evolve(&run.id, Some(run.clone()), &entry).map(|next| next.timers()).unwrap_or_default();
            let goes_on = [stopped, Effect::Resume]; // in this order, or something would be begun in between
            decision.effects.extend(timers.into_iter().map(Effect::Arm).chain(goes_on));
        } else {
            decision.effects.push(stopped);
        }
        decision.entries.push(entry);
    }
    if (blocked || run.is_ready()) && open.stage == Stage::Running && open.undoable.is_empty() {
        decision.entries.push(run.entry(decision.entries.len(), now, Some(0), Event::RunCancelled));
        decision.effects = disarm_all(run);
        decision.effects.push(Effect::AnnounceEnd);
    }
    decision.effects.push(Effect::Answer(Answer::CancelRequested));
    Ok(decision)
}

/// A task ends here and now.
fn end(run: &Run, origin: crate::Origin, now: Timestamp) -> Decision {
    let requested = run.entry(0, now, None, Event::RunCancelRequested { origin, terminate: false, undo: false });
    let cancelled = run.entry(1, now, run.open().map(|_| 0), Event::RunCancelled);
    let mut effects = disarm_all(run);
    effects.extend([Effect::Close, Effect::AnnounceEnd, Effect::Answer(Answer::CancelRequested)]);
    Decision { entries: vec![requested, cancelled], effects }
}
