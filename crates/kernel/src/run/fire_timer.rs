//! A timer is due: pass it on, or end the run.
//! open --FireTimer--> open (retry, sleep) | ended (deadline) · any --FireTimer, replaced, gone or too early--> unchanged

use super::turn::disarm_all;
use super::{Await, DEADLINE_REVISION, Decision, Phase, Run, Sleep, Step};
use crate::{Answer, Code, Completion, Effect, Event, Failure, FireTimer, Timer, TimerName, Timestamp};

pub(super) fn decide(run: &Run, fire: &FireTimer, now: Timestamp) -> Decision {
    let superseded = pass_on(Effect::Answer(Answer::Superseded));
    let Phase::Open(open) = &run.phase else { return superseded };
    let (due, revision, fired) = match &fire.name {
        TimerName::Retry(step) => match open.steps.get(step) {
            Some(Step::Backoff { attempt, due_at, revision, .. }) => {
                (*due_at, *revision, pass_on(Effect::StartAttempt { step: step.clone(), attempt: *attempt }))
            }
            _ => return superseded,
        },
        TimerName::Sleep(sleep) => match open.sleeps.get(sleep) {
            Some(Sleep::Pending { due_at, revision }) => {
                (*due_at, *revision, pass_on(Effect::Deliver(Completion::TimerFired { sleep: sleep.clone() })))
            }
            _ => match open.awaits.get(sleep) {
                Some(Await { until: Some(due), revision, .. }) => {
                    (*due, *revision, pass_on(Effect::Deliver(Completion::TimerFired { sleep: sleep.clone() })))
                }
                _ => return superseded,
            },
        },
        TimerName::Deadline => match run.deadline(open) {
            Some(due) if open.undoable.is_empty() => (due, DEADLINE_REVISION, end(run, now)),
            Some(due) => (due, DEADLINE_REVISION, pass_on(Effect::Deliver(Completion::Stopped { failure: Some(out_of_time()) }))),
            None => return superseded,
        },
    };
    if revision != fire.revision {
        return superseded;
    }
    if due > now {
        return pass_on(Effect::Arm(Timer { run: run.id.clone(), name: fire.name.clone(), due, revision })); // the clock was set back
    }
    fired
}

/// Firing writes nothing: what it leads to is recorded, and until then the timer's row stays and fires again after a crash.
fn pass_on(effect: Effect) -> Decision {
    Decision { entries: Vec::new(), effects: vec![effect] }
}

fn end(run: &Run, now: Timestamp) -> Decision {
    let mut effects = disarm_all(run);
    effects.extend([Effect::Close, Effect::AnnounceEnd]);
    Decision { entries: vec![run.entry(0, now, Some(0), Event::RunFailed { failure: out_of_time() })], effects }
}

fn out_of_time() -> Failure {
    Failure::permanent("the run did not end before its deadline").code(Code::DeadlineExceeded)
}
