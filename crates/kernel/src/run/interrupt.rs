//! The run's process has died. A run with manual recovery that had an attempt in flight or in backoff does not go on by itself.
//! A task that was let begin, and waited for its lock, waits for its turn again.
//! open --InterruptRun--> interrupted: RUN_INTERRUPTED · any --InterruptRun, nothing was under way--> unchanged
//!
//! Tested by `crates/sdk/tests/it/interrupted.rs`.
//! Tested by `crates/crash-test/tests/it/facts/manual_recovery_waits_for_a_person.rs`.

use super::turn::disarm_all;
use super::{Decision, Recover, Run, task};
use crate::{Answer, Effect, Event, Timestamp};

pub(super) fn decide(run: &Run, now: Timestamp) -> Decision {
    if run.recover() != Some(Recover::Interrupt) {
        return Decision::answer(Answer::Interrupted);
    }
    if let Some(Decision { entries, effects }) = task::interrupt(run, now) {
        return Decision { entries, effects: effects.into_iter().chain([Effect::Answer(Answer::Interrupted)]).collect() };
    }
    let entry = run.entry(0, now, Some(0), Event::RunInterrupted);
    let effects = disarm_all(run).into_iter().chain([Effect::Close, Effect::Answer(Answer::Interrupted)]).collect();
    Decision { entries: vec![entry], effects }
}
