//! Call the run off. The host puts the end of the code in its place among what the code was told; where no host can, the run ends here if nothing has to
//! be undone.
//! open --CancelRun--> open: RUN_CANCEL_REQUESTED, unless it was asked for before · ready or blocked, nothing to undo --CancelRun--> ended

use super::evolve::evolve;
use super::turn::disarm_all;
use super::{Decision, Run, Stage, Verb};
use crate::{Answer, CancelRun, Completion, Effect, Event, Refusal, Timestamp};

pub(super) fn decide(run: &Run, command: CancelRun, now: Timestamp) -> Result<Decision, Refusal> {
    let CancelRun { origin, blocked } = command;
    if run.has_done(Verb::Cancel, &origin) && !blocked {
        return Ok(Decision::answer(Answer::CancelRequested));
    }
    let Some(open) = run.open() else { return Err(Refusal::Ended { run: run.id.clone() }) };
    let mut decision = Decision::default();
    if !open.cancel_requested || open.stands_still() {
        let entry = run.entry(0, now, None, Event::RunCancelRequested { origin, terminate: false });
        let stopped = Effect::Deliver(Completion::Stopped { failure: None });
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
