//! Call the run off. The host puts the end of the code in its place among what the code was told.
//! open --CancelRun--> open: RUN_CANCEL_REQUESTED, unless it was asked for before

use super::{Decision, Phase, Run};
use crate::{Answer, CancelRun, Completion, Effect, Event, Refusal, Timestamp};

pub(super) fn decide(run: &Run, command: CancelRun, now: Timestamp) -> Result<Decision, Refusal> {
    let Phase::Open(open) = &run.phase else { return Err(Refusal::Ended { run: run.id.clone() }) };
    let answer = Effect::Answer(Answer::CancelRequested);
    if open.cancel_requested {
        return Ok(Decision { entries: Vec::new(), effects: vec![answer] });
    }
    let entry = run.entry(0, now, None, Event::RunCancelRequested { by: command.by, why: command.why });
    Ok(Decision { entries: vec![entry], effects: vec![Effect::Deliver(Completion::Stopped { failure: None }), answer] })
}
