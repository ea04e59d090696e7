//! End the run at once; nothing is undone, whatever it was doing.
//! open --TerminateRun--> ended: RUN_CANCEL_REQUESTED, RUN_CANCELLED

use super::turn::disarm_all;
use super::{Decision, Run, Verb};
use crate::{Answer, Effect, Event, Origin, Refusal, Timestamp};

pub(super) fn decide(run: &Run, origin: Origin, now: Timestamp) -> Result<Decision, Refusal> {
    if run.has_done(Verb::Terminate, &origin) {
        return Ok(Decision::answer(Answer::Terminated));
    }
    if run.open().is_none() {
        return Err(run.over());
    }
    let requested = run.entry(0, now, None, Event::RunCancelRequested { origin, terminate: true, undo: false });
    let cancelled = run.entry(1, now, Some(0), Event::RunCancelled);
    let mut effects = disarm_all(run);
    effects.extend([Effect::Close, Effect::AnnounceEnd, Effect::Answer(Answer::Terminated)]);
    Ok(Decision { entries: vec![requested, cancelled], effects })
}
