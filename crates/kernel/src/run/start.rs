//! Begin a run, or find the one of that id.
//! – --StartRun--> open · any --StartRun, the same again--> unchanged

use super::{DEADLINE_REVISION, Decision, Run};
use crate::{Answer, Effect, Entry, Event, Refusal, StartRun, Timer, TimerName, Timestamp};

pub(super) fn begin(command: StartRun, now: Timestamp) -> Decision {
    let StartRun { run, workflow, input, seed, deadline } = command;
    let deadline_at = deadline.map(|deadline| now.saturating_add(deadline));
    let event = Event::RunStarted { workflow, input, seed, deadline_at };
    let deadline = deadline_at.map(|due| Effect::Arm(Timer { run, name: TimerName::Deadline, due, revision: DEADLINE_REVISION }));
    Decision {
        entries: vec![Entry { seq: 1, epoch: 1, at: now, in_flight: None, abandoned: Vec::new(), event }],
        effects: deadline.into_iter().chain([Effect::Open, Effect::Answer(Answer::Created)]).collect(),
    }
}

/// The id makes a start idempotent: the same again is answered with the run that is there.
pub(super) fn repeat(run: &Run, command: &StartRun) -> Result<Decision, Refusal> {
    if run.workflow == command.workflow && run.input == command.input {
        return Ok(Decision { entries: Vec::new(), effects: vec![Effect::Answer(Answer::Exists)] });
    }
    Err(Refusal::RunExists { run: run.id.clone() })
}
