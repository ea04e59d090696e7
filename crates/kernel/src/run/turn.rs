//! Record what a turn delivered and proposed: whole, or not at all. Only that attempts begin is left out while the run is paused: the host, which hears of the
//! pause before the answer, asks for them again when the run goes on.
//! open --TakeTurn--> open | compensating | ended · compensating --TakeTurn--> compensating | ended

use super::order::is_of_the_code;
use super::{Decision, Open, Phase, Run, task};
use crate::{Answer, Effect, Event, Proposal, Refusal, StepId, TakeTurn, Timer, TimerName, Timestamp};
use std::collections::BTreeSet;

pub(super) fn decide(run: &Run, command: TakeTurn) -> Result<Decision, Refusal> {
    let Phase::Open(open) = &run.phase else { return Err(Refusal::Ended { run: run.id.clone() }) };
    let stale = |why: String| Refusal::Stale { run: run.id.clone(), why };
    if command.epoch != run.epoch {
        return Err(stale(format!("the run is in epoch {}, not {}", run.epoch, command.epoch)));
    }
    run.may_go_on().map_err(stale)?;
    if command.abandoned.contains(&TimerName::Deadline) {
        return Err(stale("the deadline cannot be abandoned".into()));
    }
    check(run, &command.proposals).map_err(stale)?;

    let mut decision = Decision::default();
    let recorded = command
        .proposals
        .into_iter()
        .filter(|proposal| !open.stands_still() || !command.asks_again || !is_a_beginning(&proposal.event));
    for (offset, Proposal { at, event }) in recorded.enumerate() {
        let entry = run.entry(offset, at, None, event);
        decision.effects.extend(timers(run, &entry));
        decision.entries.push(entry);
    }
    if let Some(last) = decision.entries.last_mut() {
        last.held = if open.stands_still() { command.asked } else { 0 };
        last.in_flight = Some(open.still_in_flight(command.in_flight, &command.unanswered).saturating_sub(last.held));
        if !open.stands_still() {
            decision.effects.extend(command.abandoned.iter().cloned().map(Effect::Disarm));
        }
        last.abandoned = command.abandoned;
        if closes_the_code(&last.event) {
            decision.effects = disarm_all(run);
        }
        if let Event::RunContinued { .. } = last.event {
            last.epoch += 1;
            decision.effects.retain(|effect| *effect != Effect::Disarm(TimerName::Deadline));
            decision.effects.push(Effect::Close);
            decision.effects.extend((!open.stands_still()).then_some(Effect::Host));
        }
        if last.event.is_end() {
            decision.effects.push(Effect::AnnounceEnd);
        }
    }
    decision.effects.push(Effect::Answer(Answer::TurnTaken));
    Ok(decision)
}

/// An attempt begins once that is on record.
fn is_a_beginning(event: &Event) -> bool {
    matches!(event, Event::StepStarted { .. })
}

/// Nothing that the code waited for may fire after it.
fn closes_the_code(event: &Event) -> bool {
    event.is_end() || matches!(event, Event::RunCompensating { .. } | Event::RunContinued { .. })
}

/// Every proposal must fit the state, no two of a turn may be about the same thing, and an end comes last.
fn check(run: &Run, proposals: &[Proposal]) -> Result<(), String> {
    let Phase::Open(open) = &run.phase else { return Ok(()) };
    let (mut seen, mut taken) = (BTreeSet::new(), BTreeSet::new());
    let mut task = run.task().cloned();
    for (index, Proposal { event, at }) in proposals.iter().enumerate() {
        if let Event::TimerFired { sleep } = event
            && due(open, sleep).is_some_and(|due| *at < due)
        {
            return Err(format!("{sleep} is not due yet: the run was paused before that was recorded"));
        }
        if !is_of_the_host(event) {
            return Err(format!("a turn cannot propose {}", event.kind()));
        }
        match just_awaited(&proposals[..index], event) {
            Some((name, signal)) => open.may_take(name, signal)?,
            None => run.may_follow(event)?,
        }
        if let (Event::Task(said), Some(task)) = (event, &mut task) {
            task::may_come(run, task, said)?;
            task::record(task, &run.entry(index, *at, None, event.clone()), said);
        }
        if let Some(subject) = event.subject()
            && (!seen.insert((Kind::of(event), subject)) || begins_after_its_end(&seen, event))
        {
            return Err(format!("{subject} is in the turn twice"));
        }
        if let Event::SignalTaken { signal, .. } = event
            && !taken.insert(signal)
        {
            return Err(format!("signal {signal} is in the turn twice"));
        }
        if closes_the_code(event) && index + 1 < proposals.len() {
            return Err("something follows the end".into());
        }
    }
    Ok(())
}

/// When that sleep or wait is over; a pause puts it off.
fn due(open: &Open, sleep: &StepId) -> Option<Timestamp> {
    open.sleeps.get(sleep).map(|sleep| sleep.due_at).or_else(|| open.awaits.get(sleep)?.until)
}

/// What only a host can say, in a turn; retries, heartbeats, arrivals, starts and what operators want are the engine's to record.
fn is_of_the_host(event: &Event) -> bool {
    let said_alone = matches!(event, Event::RetryScheduled { .. } | Event::StepHeartbeat { .. });
    event.is_end() || (is_of_the_code(event) && !said_alone)
}

/// A signal that had arrived early is taken in the turn that asks for it.
fn just_awaited<'a>(before: &'a [Proposal], event: &Event) -> Option<(&'a str, crate::Seq)> {
    let Event::SignalTaken { wait, signal } = event else { return None };
    before.iter().find_map(|proposal| match &proposal.event {
        Event::SignalAwaited { wait: asked, name, .. } if asked == wait => Some((name.as_str(), *signal)),
        _ => None,
    })
}

/// The outcome of a step is in the turn already.
fn begins_after_its_end(seen: &BTreeSet<(Kind, &StepId)>, event: &Event) -> bool {
    matches!(event, Event::StepStarted { step, .. } if seen.contains(&(Kind::Step, step)))
}

/// What tells two events about the same subject apart.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Step,
    StepStart,
    /// A sleep, or the end of a wait for a signal: taken and too late exclude each other.
    Sleep,
    SignalAsked,
    Note,
    ChildStart,
    ChildEnd,
    /// Of a stage: it begins, is done, has failed, is saved.
    Stage(&'static str),
}

impl Kind {
    fn of(event: &Event) -> Self {
        match event {
            Event::TimerSet { .. } | Event::TimerFired { .. } | Event::SignalTaken { .. } => Kind::Sleep,
            Event::SignalAwaited { .. } => Kind::SignalAsked,
            Event::ProgressNoted { .. } => Kind::Note,
            Event::ChildStarted { .. } => Kind::ChildStart,
            Event::ChildTaken { .. } => Kind::ChildEnd,
            Event::StepStarted { .. } => Kind::StepStart,
            Event::Task(event) => Kind::Stage(event.kind()),
            _ => Kind::Step,
        }
    }
}

fn timers(run: &Run, entry: &crate::Entry) -> Option<Effect> {
    let open = run.open().filter(|open| !open.stands_still())?; // its timers are armed when it goes on
    match &entry.event {
        Event::StepStarted { step, .. } | Event::StepCompleted { step, .. } | Event::StepFailed { step, .. } => {
            open.steps.contains_key(step).then(|| Effect::Disarm(TimerName::Retry(step.clone())))
        }
        Event::UndoCompleted { step, .. } | Event::UndoFailed { step, .. } => {
            open.steps.contains_key(&step.undo()).then(|| Effect::Disarm(TimerName::Retry(step.undo())))
        }
        Event::SignalAwaited { wait, until, .. } => {
            let name = TimerName::Sleep(wait.clone());
            until.map(|due| Effect::Arm(Timer { entity: run.id.clone().into(), name, due, revision: entry.seq }))
        }
        Event::SignalTaken { wait, .. } => Some(Effect::Disarm(TimerName::Sleep(wait.clone()))),
        Event::TimerSet { sleep, due_at } => {
            let name = TimerName::Sleep(sleep.clone());
            Some(Effect::Arm(Timer { entity: run.id.clone().into(), name, due: *due_at, revision: entry.seq }))
        }
        Event::TimerFired { sleep } => Some(Effect::Disarm(TimerName::Sleep(sleep.clone()))),
        _ => None,
    }
}

/// A run that ends takes its timers with it.
pub(super) fn disarm_all(run: &Run) -> Vec<Effect> {
    run.timers().into_iter().map(|timer| Effect::Disarm(timer.name)).collect()
}
