//! An attempt has failed: again, or enough?
//! open --ReportFailure--> open: RETRY_SCHEDULED, or the final failure is handed to the host, which records it with the turn that delivers it

use super::{Decision, Phase, Run};
use crate::random::Stream;
use crate::{Answer, Completion, Effect, Entry, Event, Refusal, ReportFailure, Timer, TimerName, Timestamp, Verdict};

pub(super) fn decide(run: &Run, report: ReportFailure, now: Timestamp) -> Result<Decision, Refusal> {
    let Phase::Open(open) = &run.phase else { return Err(Refusal::Ended { run: run.id.clone() }) };
    let stale = |why: String| Err(Refusal::Stale { run: run.id.clone(), why });
    if report.epoch != run.epoch {
        return stale(format!("the run is in epoch {}, not {}", run.epoch, report.epoch));
    }
    match run.may_go_on().and_then(|()| open.may_be_tried(&report.step, report.attempt)) {
        // It is on record already, by a commit that was said to have failed: the next attempt has its time, and may even have begun.
        Err(_) if run.may_go_on().is_ok() && open.is_scheduled(&report.step, report.attempt.saturating_add(1)) => {
            Ok(Decision::answer(Answer::RetryScheduled))
        }
        Ok(()) => {
            let in_flight = open.still_in_flight(report.in_flight, &report.unanswered);
            Ok(judge(run, open.stands_still(), ReportFailure { in_flight, ..report }, now))
        }
        Err(why) => stale(why),
    }
}

/// While the run stands still no timer is armed; it is when the run goes on.
fn judge(run: &Run, stands_still: bool, report: ReportFailure, now: Timestamp) -> Decision {
    let ReportFailure { step, attempt, failure, policy, asked_at, in_flight, asked, details, .. } = report;
    let out_of_time = [run.deadline_seen_from(now), policy.deadline_at(asked_at)].into_iter().flatten().min();
    let draw = Stream::new(&run.seed, step.as_str(), "backoff").at(u64::from(attempt));
    match policy.after(attempt, &failure, now, out_of_time, draw) {
        Verdict::RetryIn { delay, of } => {
            let due_at = now.saturating_add(delay);
            let event = Event::RetryScheduled { step: step.clone(), attempt: attempt + 1, of, delay, due_at, failure, details };
            let held = if stands_still { asked } else { 0 };
            let entry = Entry { held, ..run.entry(0, now, Some(in_flight.saturating_sub(held)), event) };
            let timer = Timer { entity: run.id.clone().into(), name: TimerName::Retry(step), due: due_at, revision: entry.seq };
            let armed = (!stands_still).then_some(Effect::Arm(timer));
            Decision { entries: vec![entry], effects: armed.into_iter().chain([Effect::Answer(Answer::RetryScheduled)]).collect() }
        }
        Verdict::GiveUp(why) => {
            let failure = why.failure(failure, attempt);
            Decision { entries: Vec::new(), effects: vec![Effect::Deliver(Completion::StepFailed { step, attempt, failure })] }
        }
    }
}
