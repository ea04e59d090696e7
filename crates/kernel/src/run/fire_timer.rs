//! A timer is due: pass it on, or end the run.
//! open --FireTimer--> open (retry, sleep) | ended (deadline) · any --FireTimer, replaced, gone or too early--> unchanged

use super::turn::disarm_all;
use super::{Await, Decision, Run, Stage, Step};
use crate::{Answer, Code, Completion, Effect, Event, Failure, FireTimer, Timer, TimerName, Timestamp};

pub(super) fn decide(run: &Run, fire: &FireTimer, now: Timestamp) -> Decision {
    let superseded = Decision::answer(Answer::Superseded);
    let Some(open) = run.open().filter(|open| !open.stands_still()) else { return superseded };
    let (due, revision, fired) = match &fire.name {
        TimerName::Retry(_) | TimerName::Sleep(_) if run.is_ready() => return superseded, // armed when it begins
        TimerName::Retry(step) => match open.steps.get(step) {
            Some(Step::Backoff { attempt, due_at, revision, .. }) => {
                (*due_at, *revision, pass_on(Effect::StartAttempt { step: step.clone(), attempt: *attempt }))
            }
            _ => return superseded,
        },
        TimerName::Sleep(id) => {
            let over = || pass_on(Effect::Deliver(Completion::TimerFired { sleep: id.clone() }));
            match (open.sleeps.get(id).filter(|sleep| sleep.fired.is_none()), open.awaits.get(id)) {
                (Some(sleep), _) => (sleep.due_at, sleep.revision, over()),
                (None, Some(Await { until: Some(due), revision, settled: None, .. })) => (*due, *revision, over()),
                _ => return superseded,
            }
        }
        TimerName::Deadline => match run.deadline.filter(|_| open.stage == Stage::Running) {
            Some(deadline) if open.undoable.is_empty() => (deadline.at, deadline.revision, end(run, now)),
            Some(deadline) => (
                deadline.at,
                deadline.revision,
                pass_on(Effect::Deliver(Completion::Stopped { failure: Some(out_of_time()), undo: false })),
            ),
            None => return superseded,
        },
        TimerName::Expiry | TimerName::Callback(_) | TimerName::Forget | TimerName::Lease => return superseded, // a run has none of these
    };
    if revision != fire.revision {
        return superseded;
    }
    if due > now {
        return pass_on(Effect::Arm(Timer { entity: run.id.clone().into(), name: fire.name.clone(), due, revision })); // the clock was set back
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
