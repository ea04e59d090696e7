//! Record what a turn delivered and proposed: whole, or not at all.
//! open --TakeTurn--> open | ended

use super::{Decision, Phase, Run};
use crate::{Answer, Effect, Event, Proposal, Refusal, TakeTurn, Timer, TimerName};
use std::collections::BTreeSet;

pub(super) fn decide(run: &Run, command: TakeTurn) -> Result<Decision, Refusal> {
    let Phase::Open(_) = &run.phase else { return Err(Refusal::Ended { run: run.id.clone() }) };
    let stale = |why: String| Refusal::Stale { run: run.id.clone(), why };
    if command.epoch != run.epoch {
        return Err(stale(format!("the run is in epoch {}, not {}", run.epoch, command.epoch)));
    }
    check(run, &command.proposals).map_err(stale)?;

    let last = command.proposals.len().saturating_sub(1);
    let mut decision = Decision::default();
    for (offset, Proposal { at, event }) in command.proposals.into_iter().enumerate() {
        let in_flight = (offset == last).then_some(command.in_flight);
        let entry = run.entry(offset, at, in_flight, event);
        decision.effects.extend(timers(run, &entry));
        decision.entries.push(entry);
    }
    if decision.entries.last().is_some_and(|entry| entry.event.is_end()) {
        decision.effects = disarm_all(run);
        decision.effects.push(Effect::AnnounceEnd);
    }
    decision.effects.push(Effect::Answer(Answer::TurnTaken));
    Ok(decision)
}

/// Every proposal must fit the state, no two of a turn may be about the same thing, and an end comes last.
fn check(run: &Run, proposals: &[Proposal]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for (index, Proposal { event, .. }) in proposals.iter().enumerate() {
        if matches!(event, Event::RetryScheduled { .. }) {
            return Err("a turn cannot schedule a retry; report the failure instead".into());
        }
        run.may_follow(event)?;
        let set = matches!(event, Event::TimerSet { .. } | Event::TimerFired { .. });
        if let Some(subject) = event.subject()
            && !seen.insert((set, subject))
        {
            return Err(format!("{subject} is in the turn twice"));
        }
        if event.is_end() && index + 1 < proposals.len() {
            return Err("something follows the end".into());
        }
    }
    Ok(())
}

fn timers(run: &Run, entry: &crate::Entry) -> Option<Effect> {
    let Phase::Open(open) = &run.phase else { return None };
    match &entry.event {
        Event::StepCompleted { step, .. } | Event::StepFailed { step, .. } => {
            open.steps.contains_key(step).then(|| Effect::Disarm(TimerName::Retry(step.clone())))
        }
        Event::TimerSet { sleep, due_at } => {
            let name = TimerName::Sleep(sleep.clone());
            Some(Effect::Arm(Timer { run: run.id.clone(), name, due: *due_at, revision: entry.seq }))
        }
        Event::TimerFired { sleep } => Some(Effect::Disarm(TimerName::Sleep(sleep.clone()))),
        _ => None,
    }
}

/// A run that ends takes its timers with it.
pub(super) fn disarm_all(run: &Run) -> Vec<Effect> {
    run.timers().into_iter().map(|timer| Effect::Disarm(timer.name)).collect()
}
