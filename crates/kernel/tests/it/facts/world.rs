//! A run, and what the outside knows of it: the journal, the timers, the time.

use super::scenario::{Item, Op, Scenario};
use crate::support::*;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::collections::BTreeMap;
use steadfast_kernel::random::Seed;
use steadfast_kernel::run::{Decision, decide, evolve};
use steadfast_kernel::{
    Answer, Attempt, Code, Command, Completion, Effect, Entry, Event, Failure, Payload, Proposal, Refusal, ReportFailure, Run, StartRun,
    TakeTurn, Timer, TimerName, Timestamp,
};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct World {
    pub(super) now: Timestamp,
    pub(super) state: Option<Run>,
    pub(super) journal: Vec<Entry>,
    /// What arming and disarming has left, in the order of their names.
    pub(super) armed: BTreeMap<TimerName, Timer>,
}

impl World {
    pub(super) fn new() -> Self {
        World { now: at(1_000), state: None, journal: Vec::new(), armed: BTreeMap::new() }
    }

    /// The attempt of a step that the journal says is next.
    fn attempt_to_come(&self, step: &str) -> Attempt {
        let retries = self
            .journal
            .iter()
            .filter(|e| matches!(&e.event, Event::RetryScheduled { step: of, .. } if of.as_str() == step));
        1 + u32::try_from(retries.count()).expect("few retries")
    }

    pub(super) fn command(&self, scenario: &Scenario, op: &Op) -> Command {
        match op {
            Op::Start { same } => {
                let input = Payload::json(if *same { "17" } else { "18" });
                Command::StartRun(StartRun { input, seed: Seed(scenario.seed), deadline: scenario.deadline, ..start_run() })
            }
            Op::Turn { epoch, items, end, and_more, in_flight } => {
                let ended = end.map(|well| if well { run_completed("18") } else { run_failed(timeout()) });
                let more = and_more.then(|| step_completed("after#1", 1, "1")).filter(|_| ended.is_some());
                let events = items.iter().map(|item| self.event(item)).chain(ended).chain(more);
                let proposals = events.map(|event| Proposal { at: self.now, event }).collect();
                Command::TakeTurn(TakeTurn { epoch: *epoch, proposals, in_flight: *in_flight, abandoned: Vec::new() })
            }
            Op::Fail { epoch, step, attempt, class, retry_after, policy, in_flight } => {
                let mut failure = Failure::new(Code::Internal, "it broke").class(*class);
                if let Some(delay) = retry_after {
                    failure = failure.retry_after(*delay);
                }
                Command::ReportFailure(ReportFailure {
                    epoch: *epoch,
                    step: id(step),
                    attempt: attempt.or(self.attempt_to_come(step)),
                    failure,
                    policy: policy.get(&scenario.policies).clone(),
                    asked_at: at(1_000),
                    in_flight: *in_flight,
                })
            }
            Op::FireArmed { which, revision } => {
                let armed: Vec<&Timer> = self.armed.values().collect();
                let (name, right) = if armed.is_empty() {
                    (TimerName::Deadline, 1)
                } else {
                    let timer = which.get(&armed);
                    (timer.name.clone(), timer.revision)
                };
                fire(name, u64::from(revision.or(u32::try_from(right).expect("a short journal"))))
            }
            Op::FireAny { name, revision } => fire(name.clone(), *revision),
            Op::Pass(_) => unreachable!("time is not asked"),
        }
    }

    fn event(&self, item: &Item) -> Event {
        match item {
            Item::Completed(step, attempt) => step_completed(step, attempt.or(self.attempt_to_come(step)), "1"),
            Item::Failed(step, attempt) => step_failed(step, attempt.or(self.attempt_to_come(step)), timeout()),
            Item::Set(sleep, for_long) => Event::TimerSet { sleep: id(sleep), due_at: self.now.saturating_add(*for_long) },
            Item::Fired(sleep) => timer_fired(sleep),
            Item::Retry(step) => retry_scheduled(step, self.attempt_to_come(step) + 1, 9, 1),
            Item::Started => run_started(),
        }
    }

    /// Gives a command and does what a shard would: commits the entries, folds them, arms and disarms.
    pub(super) fn tell(&mut self, command: &Command) -> Result<Result<Decision, Refusal>, TestCaseError> {
        let decided = decide(&run_id(), self.state.as_ref(), command.clone(), self.now);
        let again = decide(&run_id(), self.state.as_ref(), command.clone(), self.now);
        prop_assert_eq!(&decided, &again, "the same question has the same answer");
        if self.state.as_ref().is_some_and(|run| run.ended().is_some()) {
            let unmoved = match (command, &decided) {
                (Command::StartRun(_), Ok(Decision { entries, effects })) => entries.is_empty() && *effects == [answer(Answer::Exists)],
                (Command::FireTimer(_), decided) => *decided == Ok(decision([], [answer(Answer::Superseded)])),
                (_, decided) => decided.is_err(),
            };
            prop_assert!(unmoved, "something follows the end: {:?}", decided);
        }
        if let Ok(Decision { entries, effects }) = &decided {
            in_flight_is_said_last(entries)?;
            self.nothing_is_early(effects)?;
            self.journal.extend(entries.iter().cloned());
            self.state = entries.iter().try_fold(self.state.take(), |state, entry| {
                evolve(&run_id(), state, entry)
                    .map(Some)
                    .map_err(|illegal| TestCaseError::fail(illegal.to_string()))
            })?;
            self.follow(effects)?;
        }
        Ok(decided)
    }

    fn follow(&mut self, effects: &[Effect]) -> TestCaseResult {
        for effect in effects {
            match effect {
                Effect::Arm(timer) => {
                    self.armed.insert(timer.name.clone(), timer.clone());
                }
                Effect::Disarm(name) => prop_assert!(self.armed.remove(name).is_some(), "{} is disarmed and was not armed", name),
                _ => {}
            }
        }
        Ok(())
    }

    /// What a timer leads to comes from one that was armed and is due.
    fn nothing_is_early(&self, effects: &[Effect]) -> TestCaseResult {
        for effect in effects {
            let name = match effect {
                Effect::StartAttempt { step, .. } => TimerName::Retry(step.clone()),
                Effect::Deliver(Completion::TimerFired { sleep }) => TimerName::Sleep(sleep.clone()),
                Effect::Close => TimerName::Deadline,
                _ => continue,
            };
            let due = self.armed.get(&name).map(|timer| timer.due);
            prop_assert!(due.is_some_and(|due| due <= self.now), "{} fires at {} and is due at {:?}", name, self.now, due);
        }
        Ok(())
    }
}

/// Only the last entry of a commit says how many attempts are in flight, and it always does, but for the first of a run.
fn in_flight_is_said_last(entries: &[Entry]) -> TestCaseResult {
    let Some((last, before)) = entries.split_last() else { return Ok(()) };
    prop_assert!(before.iter().all(|entry| entry.in_flight.is_none()));
    prop_assert_eq!(last.in_flight.is_none(), matches!(last.event, Event::RunStarted { .. }));
    Ok(())
}
