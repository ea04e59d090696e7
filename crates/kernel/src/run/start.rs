//! Begin a run, or find the one of that id.
//! – --StartRun--> running | ready · any --StartRun, the same again--> unchanged
//!
//! Tested by `crates/sdk/tests/it/starting.rs`.

use super::{Decision, Run};
use crate::{Answer, Effect, Encoding, Entry, Event, Payload, Refusal, StartRun, Timer, TimerName, Timestamp};
use std::collections::BTreeSet;

pub(super) fn begin(command: StartRun, now: Timestamp) -> Decision {
    let StartRun { run, workflow, input, seed, deadline, mut options } = command;
    let mut keys = BTreeSet::new();
    options.limits.retain(|limit| keys.insert(limit.key.clone())); // a run has one slot of a limit at the most
    let deadline = deadline.filter(|_| options.task.is_none()); // that is for its plan to say
    let deadline_at = deadline.map(|deadline| now.saturating_add(deadline));
    let opens = (options.limits.is_empty() && options.task.is_none()).then_some(Effect::Open); // otherwise it waits for its slots, or its turn
    let entry = Entry::new(1, 1, now, Event::RunStarted { workflow, input, seed, deadline_at, options });
    let deadline = deadline_at.map(|due| Effect::Arm(Timer { entity: run.into(), name: TimerName::Deadline, due, revision: entry.seq }));
    let effects = deadline.into_iter().chain(opens).chain([Effect::Answer(Answer::Created)]).collect();
    Decision { entries: vec![entry], effects }
}

/// Whether two inputs say the same: JSON does, however it is written.
pub(crate) fn is_same(one: &Payload, other: &Payload) -> bool {
    let json = |payload: &Payload| serde_json::from_slice::<serde_json::Value>(&payload.bytes).ok();
    let both_json = one.encoding == Encoding::Json && other.encoding == Encoding::Json;
    one == other || (both_json && json(one).is_some_and(|one| Some(one) == json(other)))
}

/// The id makes a start idempotent: the same again is answered with the run that is there.
pub(super) fn repeat(run: &Run, command: &StartRun) -> Result<Decision, Refusal> {
    if run.workflow == command.workflow && is_same(&run.given, &command.input) {
        return Ok(Decision::answer(Answer::Exists));
    }
    Err(Refusal::RunExists { run: run.id.clone() })
}
