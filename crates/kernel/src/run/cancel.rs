//! Call the run off. The host puts the end of the code in its place among what the code was told; where no host can, the run ends here if nothing has to
//! be undone.
//! open --CancelRun--> open: RUN_CANCEL_REQUESTED, unless it was asked for before · running --CancelRun, blocked, nothing to undo--> ended

use super::turn::disarm_all;
use super::{Decision, Phase, Run, Stage};
use crate::{Answer, CancelRun, Completion, Effect, Event, Refusal, Timestamp};

pub(super) fn decide(run: &Run, command: CancelRun, now: Timestamp) -> Result<Decision, Refusal> {
    let Phase::Open(open) = &run.phase else { return Err(Refusal::Ended { run: run.id.clone() }) };
    let CancelRun { by, why, blocked } = command;
    let mut decision = Decision::default();
    if !open.cancel_requested {
        decision.entries.push(run.entry(0, now, None, Event::RunCancelRequested { by, why }));
        decision.effects.push(Effect::Deliver(Completion::Stopped { failure: None }));
    }
    if blocked && open.stage == Stage::Running && open.undoable.is_empty() {
        decision.entries.push(run.entry(decision.entries.len(), now, Some(0), Event::RunCancelled));
        decision.effects = disarm_all(run);
        decision.effects.push(Effect::AnnounceEnd);
    }
    decision.effects.push(Effect::Answer(Answer::CancelRequested));
    Ok(decision)
}
