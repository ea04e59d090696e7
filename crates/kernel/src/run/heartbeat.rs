//! Keep what an attempt says of how far it has come, for the next one to read.
//! open --RecordHeartbeat--> open: STEP_HEARTBEAT

use super::{Decision, Run};
use crate::{Answer, Effect, Event, RecordHeartbeat, Refusal, Timestamp};

pub(super) fn decide(run: &Run, command: RecordHeartbeat, now: Timestamp) -> Result<Decision, Refusal> {
    if run.open().is_none() {
        return Err(Refusal::Ended { run: run.id.clone() });
    }
    let RecordHeartbeat { epoch, step, attempt, details } = command;
    let stale = |why: String| Refusal::Stale { run: run.id.clone(), why };
    if epoch != run.epoch {
        return Err(stale(format!("the run is in epoch {}, not {epoch}", run.epoch)));
    }
    let event = Event::StepHeartbeat { step, attempt, details };
    run.may_follow(&event).map_err(stale)?;
    Ok(Decision { entries: vec![run.entry(0, now, None, event)], effects: vec![Effect::Answer(Answer::HeartbeatRecorded)] })
}
