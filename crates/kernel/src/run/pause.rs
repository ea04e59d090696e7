//! Begin nothing new, and go on again: the run's own time stands still in between.
//! open --PauseRun--> paused: RUN_PAUSED · paused --ResumeRun--> open: RUN_RESUMED · asked for before: answered, no event
//!
//! Tested by `crates/sdk/tests/it/pausing.rs`.

use super::evolve::evolve;
use super::turn::disarm_all;
use super::{Decision, Run, Verb};
use crate::{Answer, Effect, Event, Origin, Refusal, Timestamp};

pub(super) fn pause(run: &Run, origin: Origin, now: Timestamp) -> Result<Decision, Refusal> {
    if run.has_done(Verb::Pause, &origin) {
        return Ok(Decision::answer(Answer::Paused));
    }
    let Some(open) = run.open() else { return Err(run.over()) };
    if open.interrupted.is_some() {
        return Err(interrupted(run));
    }
    if open.paused.is_some() {
        return Ok(Decision::answer(Answer::Paused));
    }
    let entry = run.entry(0, now, None, Event::RunPaused { origin });
    let effects = disarm_all(run).into_iter().chain([Effect::Pause, Effect::Answer(Answer::Paused)]).collect();
    Ok(Decision { entries: vec![entry], effects })
}

pub(super) fn resume(run: &Run, origin: Origin, now: Timestamp) -> Result<Decision, Refusal> {
    if run.has_done(Verb::Resume, &origin) {
        return Ok(Decision::answer(Answer::Resumed));
    }
    let Some(open) = run.open() else { return Err(run.over()) };
    if open.interrupted.is_some() {
        return Err(interrupted(run));
    }
    if open.paused.is_none() {
        return Ok(Decision::answer(Answer::Resumed));
    }
    let entry = run.entry(0, now, None, Event::RunResumed { origin });
    let timers = evolve(&run.id, Some(run.clone()), &entry).map(|next| next.timers()).unwrap_or_default();
    let effects = timers
        .into_iter()
        .map(Effect::Arm)
        .chain([Effect::Resume, Effect::Answer(Answer::Resumed)])
        .collect();
    Ok(Decision { entries: vec![entry], effects })
}

fn interrupted(run: &Run) -> Refusal {
    run.refuse("its process died: retry it, or cancel it")
}
